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

#include <algorithm>
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

/// One of `count` parts of a move that different threads may take. Blocks are
/// shared out; the last part has what they leave.
struct Slice {
  int64_t index = 0;
  int64_t count = 1;

  bool isLast() const { return index + 1 == count; }
  /// Where the slice begins among `size` things; index 1 of 0: where it ends.
  int64_t begin(int64_t size) const {
    return size / count * index + std::min(index, size % count);
  }
  int64_t end(int64_t size) const {
    return Slice{index + 1, count}.begin(size);
  }
};

class BlockMover {
public:
  /// Target coordinates within one half.
  struct Rect {
    int64_t half, outputBegin, outputEnd, innerBegin, innerEnd;
  };
  /// Told of each tile of the target once, in any order; `streams`: what
  /// follows it may bypass the caches.
  using TileVisitor =
      std::function<void(int64_t tile, const uint8_t *codes, bool streams)>;
  /// Converts units that lie side by side, `bytes` of the target's.
  using Converter =
      std::function<void(const uint8_t *from, int64_t bytes, uint8_t *to)>;

  /// What a run moves, and what is done with it on the way.
  struct Work {
    const uint8_t *from = nullptr;
    uint8_t *to = nullptr;
    uint8_t flip = 0;                   ///< XORed into every byte moved
    const TileVisitor *visit = nullptr; ///< of tiles that a trailer follows
    const Converter *convert = nullptr; ///< where units differ in size
  };

  BlockMover() = default;
  /// Plans for the current instruction set. `unitBits` is 4, 8, 16 or 32;
  /// `convertedBits`: of a unit of the source, if units are converted. Without
  /// `plans` all is left to the caller.
  BlockMover(const AddressMap &from, const AddressMap &to, int unitBits,
             const MoveExtents &extents, bool plans, int convertedBits = 0);

  /// Whether `clear` does anything.
  bool clears() const { return !exact; }
  /// Clears what has no coordinate; before any slice of `run`.
  void clear(uint8_t *to, Slice slice) const;
  /// Moves blocks, and clears those that the source has a part of.
  void run(const Work &work, Slice slice) const;
  /// Whether `run` visits tiles; otherwise they are complete once the caller
  /// has filled the rest.
  bool visits() const { return inspects; }
  int64_t bytes() const { return totalBytes; }

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
  /// Addresses in units.
  struct Origin {
    int64_t source, target;
  };
  void listBlock(Origin origin, Rect block);
  void listEdges(int64_t innerEnd, int64_t outputEnd);
  int64_t runBytes(const BlockOrder &order) const;
  bool followsTarget() const;
  bool gathersLines() const;
  bool coversTiles(const AddressMap &to) const;
  void listTiles();
  void clearBlock(uint8_t *to) const;
  bool streams(const uint8_t *to) const;
  BlockList blocks(const Work &work, Slice slice) const;

  MoveExtents extents; ///< two halves without a seam count as one
  int unitBits = 8, sourceBits = 8;
  int64_t totalBytes = 0, tileBytes = 0;
  int tileBits = 0;  ///< log2 of units of a tile
  bool exact = true; ///< every unit of the target has a coordinate
  bool padless = false;
  bool inspects = false;
  const BlockKernels *kernels = nullptr; ///< null: no program
  BlockProgram program;
  std::vector<int64_t> fromOffsets, toOffsets; ///< of whole blocks, in bytes
  std::vector<int64_t> tileOffsets;            ///< of a block that is inspected
  std::vector<int64_t> cleared; ///< blocks of which the source has not all
  std::vector<Rect> left;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_BLOCKMOVER_H
