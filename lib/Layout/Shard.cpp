//===- Shard.cpp - A rank's share of a weight -----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Shard.h"

#include <algorithm>
#include <numeric>

using namespace wna16;

/// Parts that are not equal begin at multiples of this where possible, so that
/// groups stay large.
static constexpr int64_t kUnevenUnit = 32;

std::string_view wna16::name(ShardAxis axis) {
  return axis == ShardAxis::Input ? "input" : "output";
}

Result<Share> wna16::shareOf(int64_t extent, Rank rank) {
  if (rank.size < 1 || rank.rank < 0 || rank.rank >= rank.size)
    return fail("expected a rank below the number of ranks, got rank " +
                std::to_string(rank.rank) + " of " + std::to_string(rank.size));
  Share share;
  int64_t ranks = 0;
  for (int64_t unit = kUnevenUnit; unit > 0 && ranks < rank.size; unit /= 2) {
    share.extent = extent / rank.size;
    if (extent % rank.size)
      share.extent = (share.extent / unit + 1) * unit;
    int64_t part = std::max<int64_t>(share.extent, 1);
    ranks = extent / part + (extent % part != 0);
  }
  if (ranks < rank.size && extent > 0)
    return fail("expected a part of " + std::to_string(extent) +
                " for each of " + std::to_string(rank.size) +
                " ranks, got parts of " + std::to_string(share.extent) +
                " for " + std::to_string(ranks) + "; take at most " +
                std::to_string(ranks) + " ranks");
  share.begin = rank.rank * share.extent;
  share.taken = std::min(share.extent, extent - share.begin);
  return share;
}

/// Makes a spec that of `share` of its inputs.
static Failure takeInputs(WeightSpec &spec, Share share) {
  int64_t inputs = spec.input, groups = spec.groups();
  spec.input = share.extent;
  if (spec.code == CodeType::Dense)
    return ok();
  if (spec.actOrder == ActOrder::Sorted)
    return fail("expected rows in the model's order to share " +
                std::to_string(inputs) +
                " inputs, got act_order = sorted; shard before sorting");
  if (spec.actOrder == ActOrder::Index) {
    if (share.extent * (inputs / std::max<int64_t>(share.extent, 1)) != inputs)
      return fail("expected parts of " + std::to_string(share.extent) +
                  " to divide input (" + std::to_string(inputs) +
                  ") with act_order = index; take a number of ranks that "
                  "divides it");
    spec.keptGroups = 0;
    if (spec.groups() < groups)
      spec.keptGroups = groups;
    return ok();
  }
  if (spec.group > 0 && share.extent % spec.group)
    spec.group = std::gcd(spec.group, share.extent);
  return ok();
}

Result<Shard> wna16::shardWeight(const WeightSpec &source, ShardAxis axis,
                                 Rank rank) {
  bool input = axis == ShardAxis::Input;
  Result<Share> share = shareOf(input ? source.input : source.output, rank);
  if (!share)
    return fail(std::string(name(axis)) + ": " + share.message());
  Shard shard;
  shard.spec = source;
  shard.window.inputs = source.input;
  shard.window.outputs = source.output;
  if (input) {
    shard.window.input = share->begin;
    shard.window.inputs = share->taken;
    if (rank.size > 1)
      if (Failure bad = takeInputs(shard.spec, *share))
        return bad;
  } else {
    shard.window.output = share->begin;
    shard.window.outputs = share->taken;
    shard.spec.output = share->extent;
  }
  if (Failure bad = checkMove(source, shard.spec, shard.window))
    return bad;
  return shard;
}
