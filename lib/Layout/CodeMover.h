//===- CodeMover.h - Codes of an expert from layout to layout -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_CODEMOVER_H
#define WNA16_LIB_LAYOUT_CODEMOVER_H

#include "BlockMover.h"
#include "Codes.h"

#include <optional>

namespace wna16 {

/// Which input of the source goes where, and its group: what act-order changes.
struct InputOrder {
  std::vector<int64_t> source; ///< of each input that the target takes
  std::vector<int64_t> group;  ///< of each input of the source
};

/// Moves the codes of experts: blocks where codes keep their bits or flip their
/// sign. Inputs are sorted, and codes changed with their zero points, in a
/// layout between, the strips, where an input of 64 outputs is one run.
class CodeMover {
public:
  CodeMover() = default;
  /// The specs passed `checkMove`; the window's extents are filled in.
  static Result<CodeMover> make(const WeightSpec &source,
                                const WeightSpec &target, Window window);

  /// Into how many parts it is worth to cut an expert, at most.
  int64_t slices() const;
  /// Clears padding of an expert; before all slices of `run`.
  void clear(const ExpertView &to, Slice slice) const {
    mover.clear(to.codeData, slice);
  }
  /// Writes codes of an expert. Where trailers follow the target's tiles,
  /// `visit` is told of each tile once its codes are known.
  void run(const ExpertView &from, const ExpertView &to,
           const InputOrder &order, const BlockMover::TileVisitor &visit,
           Slice slice) const;

private:
  void planStrips(const AddressMap &from, const AddressMap &to,
                  MoveExtents extents);
  void sortStrips(const uint8_t *strip, const InputOrder &order,
                  uint8_t *sorted) const;
  void recodeStrips(const ExpertView &from, const InputOrder &order,
                    uint8_t *strip) const;
  void moveBlocks(const ExpertView &from, const ExpertView &to,
                  const InputOrder &order, const BlockMover::TileVisitor &visit,
                  Slice slice) const;
  void moveRect(const ExpertView &from, const ExpertView &to,
                const InputOrder &order, BlockMover::Rect rect) const;
  uint32_t recode(const ExpertView &from, int64_t group, int64_t row,
                  uint32_t code) const;
  uint32_t padding(const ExpertView &from, int64_t row, int64_t input) const;

  WeightSpec source, target;
  Window window;
  bool recodes = false; ///< codes change with their zero point
  bool sorts = false;   ///< inputs change places
  uint8_t flip = 0;     ///< XORed into every byte otherwise
  BlockMover mover;     ///< from strips if there are any
  std::optional<AddressMap> strips;
  BlockMover striper; ///< makes them
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_CODEMOVER_H
