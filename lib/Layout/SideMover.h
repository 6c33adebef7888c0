//===- SideMover.h - Scales and zero points from layout to layout ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_SIDEMOVER_H
#define WNA16_LIB_LAYOUT_SIDEMOVER_H

#include "BlockMover.h"
#include "Codes.h"

namespace wna16 {

/// Moves the scales and zero points of experts: values are converted where they
/// lie, then moved by blocks. A finer group repeats its old group's values.
class SideMover {
public:
  SideMover() = default;
  /// The specs passed `checkMove`; the window's extents are filled in.
  static Result<SideMover> make(const WeightSpec &source,
                                const WeightSpec &target, Window window);

  /// Writes all scales of an expert. `largest`: of all experts' scales, where
  /// they are folded into int16. Fails when the target's type cannot hold one.
  Failure moveScales(const ExpertView &from, const ExpertView &to,
                     int64_t expert, float largest) const;
  /// Writes all zero points of an expert, if the target has any.
  void moveZeros(const ExpertView &from, const ExpertView &to) const;

private:
  using Bytes = std::unique_ptr<uint8_t[]>;

  MoveExtents extents() const;
  bool keepsGroups() const;
  int64_t sourceGroup(int64_t group) const;
  template <typename Fn>
  void forRest(const BlockMover &mover, const AddressMap &from,
               const AddressMap &to, Fn fn) const;

  bool convertsScales() const;
  bool mayOverflow() const;
  Bytes convertScales(const ExpertView &from, float largest) const;
  Failure checkScales(const ExpertView &from, const uint8_t *converted,
                      int64_t expert) const;
  Bytes convertZeros(const ExpertView &from) const;
  void fillZeros(const ExpertView &to) const;

  WeightSpec source, target;
  Window window;
  BlockMover scales, zeros;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_SIDEMOVER_H
