//===- Shard.h - A rank's share of a weight ---------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor parallelism splits the intermediate axis: the outputs of each half of
// w13 and the inputs of w2. Every rank gets a weight of the same type, whose
// values are those of its part of the whole, exactly.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_SHARD_H
#define WNA16_LAYOUT_SHARD_H

#include "Layout/Move.h"

namespace wna16 {

/// The axis that ranks share.
enum class ShardAxis : int64_t { Input = 0, Output = 1 };

/// One of `size` ranks.
struct Rank {
  int64_t rank = 0;
  int64_t size = 1;
};

/// A rank's part of an extent: [begin, begin + taken), padded with zeros to
/// `extent`, which is the same for all ranks.
struct Share {
  int64_t begin = 0;
  int64_t taken = 0;
  int64_t extent = 0;
};

/// Equal parts where `size` divides the extent; otherwise parts of a multiple
/// of 32, or of the next smaller power of two with which every rank gets some,
/// of which the last is padded. Fails when a rank is none of them or
/// would get nothing.
Result<Share> shareOf(int64_t extent, Rank rank);

/// A rank's weight, and what it takes of the source.
struct Shard {
  WeightSpec spec;
  Window window;
};

/// The share of a weight in the source's own layout. Where a group straddles
/// two shares it becomes groups of gcd(group, share), with its scales and zero
/// points repeated; rows that belong to groups by index keep all of them. Fails
/// for rows that are sorted by group, and where the layout cannot hold a share.
Result<Shard> shardWeight(const WeightSpec &source, ShardAxis axis, Rank rank);

std::string_view name(ShardAxis axis);

} // namespace wna16

#endif // WNA16_LAYOUT_SHARD_H
