//===- BlockMover.h - Tensors of one expert from layout to layout ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Covers the target of a move with blocks that a program moves, blocks that are
// cleared, and rectangles that are left to the caller: edges, padding with a
// meaning, and everything where no program fits. Each byte of the target is
// written once, but for bytes that no coordinate reaches or blocks at an edge.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_BLOCKMOVER_H
#define WNA16_LIB_LAYOUT_BLOCKMOVER_H

#include "BlockProgram.h"

#include <functional>

namespace wna16 {

/// What moves, and into what: inner coordinates are inputs (codes) or groups
/// (scales and zero points).
struct MoveExtents {
  Axis inner = Axis::Input;
  int64_t halves = 1;

  int64_t innerBegin = 0;   ///< the first that moves, in the source
  int64_t inners = 0;       ///< that move
  int64_t filledInners = 0; ///< that the caller fills; beyond are zeros
  int64_t targetInners = 0;

  int64_t sourceOutputs = 0; ///< of a half
  int64_t outputBegin = 0;   ///< the first that moves, in the source
  int64_t outputs = 0;       ///< of a half, that move
  int64_t targetOutputs = 0;
};

class BlockMover {
public:
  /// Target coordinates within one half.
  struct Rect {
    int64_t half, outputBegin, outputEnd, innerBegin, innerEnd;
  };
  /// Told of each tile of the target once, in any order.
  using TileVisitor = std::function<void(int64_t tile, const uint8_t *codes)>;

  BlockMover() = default;
  /// Plans for the current instruction set. `unitBits` is 4, 8, 16 or 32.
  /// Without `plans` all is left to the caller.
  BlockMover(const AddressMap &from, const AddressMap &to, int unitBits,
             const MoveExtents &extents, bool plans);

  /// Moves blocks and clears; `flip` is XORed into every byte moved.
  void run(const uint8_t *from, uint8_t *to, uint8_t flip) const;
  /// The same for tiles that a trailer follows.
  void run(const uint8_t *from, uint8_t *to, uint8_t flip,
           const TileVisitor &visit) const;
  /// Whether `run` visits tiles; otherwise they are complete once the caller
  /// has filled the rest.
  bool visits() const { return inspects; }

  /// Whether every unit of the target is one that moves: no padding of any
  /// kind.
  bool fills() const { return padless; }
  const std::vector<Rect> &rest() const { return left; }
  int64_t sourceRow(Rect rect, int64_t n) const {
    return rect.half * extents.sourceOutputs + extents.outputBegin + n;
  }
  int64_t targetRow(Rect rect, int64_t n) const {
    return rect.half * extents.targetOutputs + n;
  }
  const MoveExtents &shape() const { return extents; }

private:
  bool plan(const AddressMap &from, const AddressMap &to);
  BlockLimits limits() const;
  void listBlocks(const AddressMap &from, const AddressMap &to);
  void listBlock(const AddressMap &from, const AddressMap &to, Rect block);
  bool coversTiles(const AddressMap &to) const;
  void clear(uint8_t *to) const;
  bool streams(const uint8_t *to) const;
  BlockList blocks(const uint8_t *from, uint8_t *to, uint8_t flip) const;

  MoveExtents extents; ///< two halves without a seam count as one
  int unitBits = 8;
  int64_t totalBytes = 0, tileBytes = 0;
  int tileBits = 0;  ///< log2 of units of a tile
  bool exact = true; ///< every unit of the target has a coordinate
  bool padless = false;
  bool inspects = false;
  const BlockKernels *kernels = nullptr; ///< null: no program
  BlockProgram program;
  std::vector<int64_t> fromOffsets, toOffsets; ///< of whole blocks, in bytes
  std::vector<int64_t> cleared; ///< blocks of which the source has not all
  std::vector<Rect> left;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_BLOCKMOVER_H
