//===- MovePlan.h - A block of codes from one layout to another -*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block is 2^i inputs by 2^o outputs of one half. Its codes count up in two
// orders, the source's and the target's; the way from one to the other permutes
// the bits of that count, the same way for every block. Which bits: as few as
// give both sides runs of whole cache lines. CPU kernels turn the permutation
// into register shuffles, device kernels into index arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_MOVEPLAN_H
#define WNA16_LAYOUT_MOVEPLAN_H

#include "Layout/Catalogue.h"

namespace wna16 {

/// One of the two orders in which the codes of a block count up.
struct BlockOrder {
  /// What one bit of the count adds to the address, in codes, lowest first.
  InlineVector<int64_t, 16> weights;
  /// Codes that lie side by side: the first log2 bits are 1, 2, 4, ...
  int runBits = 0;

  /// Offset of code `count` of the block from its first, in codes.
  int64_t offset(int64_t count) const {
    int64_t sum = 0;
    for (size_t bit = 0; bit < weights.size(); ++bit)
      sum += ((count >> bit) & 1) * weights[bit];
    return sum;
  }
};

struct MovePlan {
  static constexpr int kMaxBits = 14;

  int codeBits = 4; ///< 4 or 8
  int inputBits = 0;
  int outputBits = 0;
  BlockOrder source, target;
  /// For each bit of the target's count, the bit of the source's.
  InlineVector<uint8_t, 16> permutation;

  int bits() const { return inputBits + outputBits; }
  int64_t inputs() const { return int64_t(1) << inputBits; }
  int64_t outputs() const { return int64_t(1) << outputBits; }
  /// Nothing is shuffled: runs are copied.
  bool copies() const;
};

/// The part of one half of a weight that blocks have to fit into: where blocks
/// may start (alignments: every start is a multiple) and how far they reach.
struct BlockLimits {
  int inputBits = 0;
  int outputBits = 0;
};

/// Plans blocks of at least `minBits` bits that have whole lines of 64 bytes on
/// both sides where the limits allow it, shorter runs where they do not. None
/// when the limits are too tight for `minBits`.
std::optional<MovePlan> planMove(const AddressMap &source,
                                 const AddressMap &target, int codeBits,
                                 BlockLimits limits, int minBits);

} // namespace wna16

#endif // WNA16_LAYOUT_MOVEPLAN_H
