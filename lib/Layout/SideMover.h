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
#include "SideValues.h"

namespace wna16 {

/// Moves the scales and zero points of experts by blocks, converted on the way.
/// A finer group repeats its old group's values.
class SideMover {
public:
  SideMover() = default;
  /// The specs passed `checkMove`; the window's extents are filled in.
  static Result<SideMover> make(const WeightSpec &source,
                                const WeightSpec &target, Window window);

  /// Clears padding of an expert; before all else.
  void clear(const ExpertView &to, Slice slice) const;
  bool clears() const { return scales.clears() || zeros.clears(); }
  /// Writes scales of an expert. `largest`: of all experts' scales, where they
  /// are folded into int16. Fails when the target's type cannot hold one.
  Failure moveScales(const ExpertView &from, const ExpertView &to,
                     int64_t expert, float largest, Slice slice) const;
  /// Whether all zero points are the one that the source's codes imply.
  bool impliesZeros(const ExpertView &from) const {
    return !from.zeroData && zeros.fills();
  }
  /// Writes zero points of an expert, if the target has any.
  void moveZeros(const ExpertView &from, const ExpertView &to,
                 Slice slice) const;

private:
  MoveExtents extents() const;
  bool keepsGroups() const;
  int64_t sourceGroup(int64_t group) const;
  template <typename Fn>
  void forRest(const BlockMover &mover, const AddressMap &from,
               const AddressMap &to, Slice slice, Fn fn) const;

  Failure checkScales(const ExpertView &from, ScaleConverter::Units units,
                      int64_t expert) const;
  void fillZeros(const ExpertView &to, Slice slice) const;

  WeightSpec source, target;
  Window window;
  ScaleConverter scaleConverter;
  ZeroConverter zeroConverter;
  BlockMover scales, zeros;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_SIDEMOVER_H
