//===- MovePlan.cpp - A block of codes from one layout to another ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/MovePlan.h"

#include <algorithm>

using namespace wna16;

/// Longer runs gain nothing.
static constexpr int64_t kWantedRun = 512;

namespace {

/// A bit of a coordinate, and what it adds to an address.
struct Place {
  Axis axis;
  int bit;
  int64_t weight;
};

class Planner {
public:
  Planner(const AddressMap &source, const AddressMap &target, int unitBits,
          Axis inner, BlockLimits limits, int64_t wantedBytes)
      : source(source), target(target), unitBits(unitBits), inner(inner),
        limits(limits), wantedBytes(wantedBytes) {}

  std::optional<MovePlan> plan(int64_t minBytes) {
    if (!chooseBlock() || bytes() < minBytes)
      return std::nullopt;
    std::vector<Place> from = places(source), to = places(target);
    MovePlan plan;
    plan.unitBits = unitBits;
    plan.innerBits = block.inner;
    plan.outputBits = block.output;
    plan.source = orderOf(from);
    plan.target = orderOf(to);
    // Nibbles of other blocks may not share a byte with this one's.
    int byteBits = unitBits < 8 ? 1 : 0;
    if (std::min(plan.source.runBits, plan.target.runBits) < byteBits ||
        from.front().weight <= 0 || to.front().weight <= 0)
      return std::nullopt;
    for (Place place : to)
      for (size_t bit = 0; bit < from.size(); ++bit)
        if (from[bit].axis == place.axis && from[bit].bit == place.bit)
          plan.permutation.push_back(static_cast<uint8_t>(bit));
    return plan;
  }

private:
  int64_t bytes() const {
    return (int64_t(1) << (block.inner + block.output)) * unitBits / 8;
  }

  /// The longest runs that fit into a block.
  bool chooseBlock() {
    for (int64_t run = kWantedRun; run * 8 >= unitBits; run /= 2) {
      block = {};
      cover(source, run * 8 / unitBits);
      cover(target, run * 8 / unitBits);
      if (int64_t tile = tileUnits(target); tile < target.tile())
        cover(target, tile);
      if (bytes() > MovePlan::kMaxBytes)
        continue;
      widen();
      return true;
    }
    return false;
  }

  static int64_t tileUnits(const AddressMap &map) {
    size_t bits = 0;
    for (Axis axis : {Axis::Input, Axis::Output, Axis::Half, Axis::Group})
      bits += map.bits(axis).size();
    return int64_t(1) << bits;
  }

  /// What bit `bit` of a coordinate adds to the address; 0 beyond the axis, and
  /// where its 0 counts.
  static int64_t weightOf(const AddressMap &map, Axis axis, int bit) {
    const AddressMap::Terms &terms = map.bits(axis);
    for (const AddressMap::Term &term : terms)
      if (term.bit == bit)
        return term.inverted ? 0 : term.weight;
    return map.tileStride(axis) << (bit - static_cast<int>(terms.size()));
  }

  /// Widens the block so that the first `units` addresses of the map belong to
  /// it, as far as the limits allow.
  void cover(const AddressMap &map, int64_t units) {
    for (int64_t weight = 1; weight < units; weight *= 2)
      if (!coverBit(map, inner, limits.inner, weight, block.inner) &&
          !coverBit(map, Axis::Output, limits.output, weight, block.output))
        return;
  }

  static bool coverBit(const AddressMap &map, Axis axis, int limit,
                       int64_t weight, int &bits) {
    for (int bit = 0; bit < limit; ++bit)
      if (weightOf(map, axis, bit) == weight) {
        bits = std::max(bits, bit + 1);
        return true;
      }
    return false;
  }

  /// Adds bits until the block is large enough, those first that lengthen the
  /// target's runs, as far as the limits allow.
  void widen() {
    while (bytes() < wantedBytes) {
      bool in = block.inner < limits.inner;
      bool out = block.output < limits.output;
      if (!in && !out)
        return;
      if (in && out)
        in = weightOf(target, inner, block.inner) <
             weightOf(target, Axis::Output, block.output);
      ++(in ? block.inner : block.output);
    }
  }

  /// The bits of the block by what they add, lowest first.
  std::vector<Place> places(const AddressMap &map) const {
    std::vector<Place> list;
    for (int bit = 0; bit < block.inner; ++bit)
      list.push_back({inner, bit, weightOf(map, inner, bit)});
    for (int bit = 0; bit < block.output; ++bit)
      list.push_back({Axis::Output, bit, weightOf(map, Axis::Output, bit)});
    std::sort(list.begin(), list.end(),
              [](Place a, Place b) { return a.weight < b.weight; });
    return list;
  }

  static BlockOrder orderOf(const std::vector<Place> &places) {
    BlockOrder order;
    for (Place place : places) {
      order.weights.push_back(place.weight);
      if (place.weight == int64_t(1) << order.runBits)
        ++order.runBits;
    }
    return order;
  }

  const AddressMap &source, &target;
  int unitBits;
  Axis inner;
  BlockLimits limits, block;
  int64_t
      wantedBytes; ///< so that what a block costs beside its units is little
};

} // namespace

std::optional<MovePlan> wna16::planMove(const AddressMap &source,
                                        const AddressMap &target, int unitBits,
                                        Axis inner, BlockLimits limits,
                                        int64_t minBytes, int64_t wantedBytes) {
  return Planner(source, target, unitBits, inner, limits, wantedBytes)
      .plan(minBytes);
}
