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

namespace {

/// A bit of a coordinate, and what it adds to an address.
struct Place {
  Axis axis;
  int bit;
  int64_t weight;
};

} // namespace

/// What bit `bit` of a coordinate adds to the address; 0 beyond the axis, and
/// where its 0 counts.
static int64_t weightOf(const AddressMap &map, Axis axis, int bit) {
  const AddressMap::Terms &terms = map.bits(axis);
  for (const AddressMap::Term &term : terms)
    if (term.bit == bit)
      return term.inverted ? 0 : term.weight;
  return map.tileStride(axis) << (bit - static_cast<int>(terms.size()));
}

bool MovePlan::copies() const {
  for (size_t bit = 0; bit < permutation.size(); ++bit)
    if (permutation[bit] != bit)
      return false;
  return true;
}

/// Widens (input, output) so that the lowest `runBits` bits of the map's
/// address belong to the block, as far as the limits allow.
static void cover(const AddressMap &map, BlockLimits limits, int runBits,
                  BlockLimits &block) {
  for (int run = 0; run < runBits; ++run) {
    int64_t wanted = int64_t(1) << run;
    bool found = false;
    for (int bit = 0; bit < limits.inputBits && !found; ++bit)
      if (weightOf(map, Axis::Input, bit) == wanted) {
        block.inputBits = std::max(block.inputBits, bit + 1);
        found = true;
      }
    for (int bit = 0; bit < limits.outputBits && !found; ++bit)
      if (weightOf(map, Axis::Output, bit) == wanted) {
        block.outputBits = std::max(block.outputBits, bit + 1);
        found = true;
      }
    if (!found)
      return;
  }
}

/// Adds bits until there are `bits`, those first that lengthen the target's
/// runs; false when the limits forbid it.
static bool widen(const AddressMap &target, BlockLimits limits, int bits,
                  BlockLimits &block) {
  while (block.inputBits + block.outputBits < bits) {
    bool input = block.inputBits < limits.inputBits;
    bool output = block.outputBits < limits.outputBits;
    if (!input && !output)
      return false;
    if (input && output)
      input = weightOf(target, Axis::Input, block.inputBits) <
              weightOf(target, Axis::Output, block.outputBits);
    ++(input ? block.inputBits : block.outputBits);
  }
  return true;
}

/// The bits of the block by what they add, lowest first.
static std::vector<Place> sortedPlaces(const AddressMap &map,
                                       BlockLimits block) {
  std::vector<Place> places;
  for (int bit = 0; bit < block.inputBits; ++bit)
    places.push_back({Axis::Input, bit, weightOf(map, Axis::Input, bit)});
  for (int bit = 0; bit < block.outputBits; ++bit)
    places.push_back({Axis::Output, bit, weightOf(map, Axis::Output, bit)});
  std::sort(places.begin(), places.end(),
            [](Place a, Place b) { return a.weight < b.weight; });
  return places;
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

static bool isLinear(const std::vector<Place> &places) {
  return std::all_of(places.begin(), places.end(),
                     [](Place place) { return place.weight > 0; });
}

std::optional<MovePlan> wna16::planMove(const AddressMap &source,
                                        const AddressMap &target, int codeBits,
                                        BlockLimits limits, int minBits) {
  int byteBits = codeBits == 4 ? 1 : 0;
  // From whole lines downwards, until the block is small enough.
  for (int lineBits = 6 + byteBits; lineBits > 0; --lineBits) {
    BlockLimits block;
    cover(source, limits, lineBits, block);
    cover(target, limits, lineBits, block);
    if (block.inputBits + block.outputBits > MovePlan::kMaxBits)
      continue;
    if (!widen(target, limits, minBits, block))
      return std::nullopt;
    std::vector<Place> from = sortedPlaces(source, block),
                       to = sortedPlaces(target, block);
    if (!isLinear(from) || !isLinear(to))
      return std::nullopt;
    MovePlan plan;
    plan.codeBits = codeBits;
    plan.inputBits = block.inputBits;
    plan.outputBits = block.outputBits;
    plan.source = orderOf(from);
    plan.target = orderOf(to);
    // Nibbles of other blocks may not share a byte with this one's.
    if (std::min(plan.source.runBits, plan.target.runBits) < byteBits)
      return std::nullopt;
    for (Place place : to)
      for (size_t bit = 0; bit < from.size(); ++bit)
        if (from[bit].axis == place.axis && from[bit].bit == place.bit)
          plan.permutation.push_back(static_cast<uint8_t>(bit));
    return plan;
  }
  return std::nullopt;
}
