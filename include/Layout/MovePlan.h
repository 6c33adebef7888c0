//===- MovePlan.h - A block of codes from one layout to another -*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block is 2^i inputs (or groups) by 2^o outputs of one half. Its units,
// codes or elements, count up in two orders, the source's and the target's; the
// way from one to the other permutes the bits of that count, the same way for
// every block. Which bits: enough to give both sides runs of whole cache lines.
// CPU kernels turn the permutation into register shuffles, device kernels into
// index arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_MOVEPLAN_H
#define WNA16_LAYOUT_MOVEPLAN_H

#include "Layout/Catalogue.h"

namespace wna16 {

/// One of the two orders in which the units of a block count up.
struct BlockOrder {
  /// What one bit of the count adds to the address, in units, lowest first.
  InlineVector<int64_t, 16> weights;
  /// Units that lie side by side: the first log2 bits are 1, 2, 4, ...
  int runBits = 0;

  /// Offset of unit `count` of the block from its first, in units.
  int64_t offset(int64_t count) const {
    int64_t sum = 0;
    for (size_t bit = 0; bit < weights.size(); ++bit)
      sum += ((count >> bit) & 1) * weights[bit];
    return sum;
  }
};

struct MovePlan {
  /// Of a block, in bytes.
  static constexpr int64_t kMaxBytes = 8192;

  int unitBits = 4; ///< 4, 8, 16 or 32
  int innerBits = 0;
  int outputBits = 0;
  BlockOrder source, target;
  /// For each bit of the target's count, the bit of the source's.
  InlineVector<uint8_t, 16> permutation;

  int bits() const { return innerBits + outputBits; }
  int64_t inners() const { return int64_t(1) << innerBits; }
  int64_t outputs() const { return int64_t(1) << outputBits; }
};

/// log2 of the largest blocks that the extents allow, along inputs or groups
/// and along outputs: every block starts at a multiple of its extents.
struct BlockLimits {
  int inner = 0;
  int output = 0;
};

/// Plans blocks with runs as long as their size allows on both sides, whole
/// lines of 64 bytes where the limits do, and whole tiles of a target that has
/// something between them; blocks grow to `wantedBytes`. `inner` is Axis::Input
/// or Axis::Group. None when blocks of `minBytes` are too large for the limits,
/// or share bytes.
std::optional<MovePlan> planMove(const AddressMap &source,
                                 const AddressMap &target, int unitBits,
                                 Axis inner, BlockLimits limits,
                                 int64_t minBytes, int64_t wantedBytes = 2048);

} // namespace wna16

#endif // WNA16_LAYOUT_MOVEPLAN_H
