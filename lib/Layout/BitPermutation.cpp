//===- BitPermutation.cpp - From one layout's addresses to another's ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/BitPermutation.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace wna16;

/// The exponents of the extents, all powers of two.
static Result<std::array<int, kNumAxes>> exponentsOf(const Extents &extents) {
  std::array<int, kNumAxes> exponents = {};
  int bits = 0;
  for (int axis = 0; axis < kNumAxes; ++axis) {
    int64_t extent = extents[axis];
    if (extent < 1 || (extent & (extent - 1)))
      return fail("expected extents that are powers of two, got " +
                  std::to_string(extent));
    while (extent >> exponents[axis] > 1)
      ++exponents[axis];
    bits += exponents[axis];
  }
  if (bits > BitPermutation::kMaxBits)
    return fail("expected at most " + std::to_string(BitPermutation::kMaxBits) +
                " address bits, got " + std::to_string(bits));
  return exponents;
}

static constexpr const char *kAxes[] = {"input", "output", "half", "group"};

/// Every address bit of a tensor, lowest first: the listed ones, then those of
/// the rests.
static Result<std::vector<BitOrder::Bit>>
addressBits(const BitOrder &order, std::array<int, kNumAxes> exponents) {
  const int half = static_cast<int>(Axis::Half);
  const int output = static_cast<int>(Axis::Output);
  int outputBits = exponents[output];
  // Orders that do not name halves count them above the outputs.
  if (!order.names(Axis::Half))
    exponents[output] += std::exchange(exponents[half], 0);
  std::vector<BitOrder::Bit> bits(order.bits().begin(), order.bits().end());
  std::array<int, kNumAxes> left = exponents;
  for (BitOrder::Bit bit : bits)
    --left[static_cast<int>(bit.axis)];
  for (Axis rest : order.rests())
    for (int &count = left[static_cast<int>(rest)]; count > 0; --count)
      bits.push_back(
          {rest,
           static_cast<uint8_t>(exponents[static_cast<int>(rest)] - count),
           false});
  for (int axis = 0; axis < kNumAxes; ++axis)
    if (left[axis] != 0)
      return fail("expected an extent of " + std::string(kAxes[axis]) +
                  " that suits tiles of " +
                  std::to_string(order.tileExtent(Axis(axis))) + ", got " +
                  std::to_string(int64_t(1) << exponents[axis]) +
                  " for bit order '" + order.str() + "'");
  for (BitOrder::Bit &bit : bits)
    if (bit.axis == Axis::Output && bit.index >= outputBits)
      bit = {Axis::Half, static_cast<uint8_t>(bit.index - outputBits), false};
  return bits;
}

Result<BitPermutation> BitPermutation::between(const BitOrder &from,
                                               const BitOrder &to,
                                               const Extents &extents) {
  Result<std::array<int, kNumAxes>> exponents = exponentsOf(extents);
  if (!exponents)
    return exponents.takeFailure();
  Result<std::vector<BitOrder::Bit>> source = addressBits(from, *exponents),
                                     image = addressBits(to, *exponents);
  if (!source)
    return source.takeFailure();
  if (!image)
    return image.takeFailure();
  BitPermutation map;
  for (BitOrder::Bit bit : *source) {
    auto found =
        std::find_if(image->begin(), image->end(), [&](BitOrder::Bit other) {
          return other.axis == bit.axis && other.index == bit.index;
        });
    int64_t at = found - image->begin();
    map.target[map.count++] = static_cast<uint8_t>(at);
    map.flips |= int64_t(bit.inverted != found->inverted) << at;
  }
  return map;
}

Result<BitPermutation> BitPermutation::compose(const BitPermutation &first,
                                               const BitPermutation &second) {
  if (first.count != second.count)
    return fail("expected maps of as many bits, got " +
                std::to_string(first.count) + " and " +
                std::to_string(second.count));
  BitPermutation map = first;
  for (int bit = 0; bit < map.count; ++bit)
    map.target[bit] = second.target[first.target[bit]];
  // Second also moves the bits that first flips.
  map.flips = second.apply(first.flips);
  return map;
}

BitPermutation BitPermutation::inverse() const {
  BitPermutation map = *this;
  for (int bit = 0; bit < count; ++bit)
    map.target[target[bit]] = static_cast<uint8_t>(bit);
  map.flips = 0;
  map.flips = map.apply(flips);
  return map;
}

int64_t BitPermutation::apply(int64_t address) const {
  int64_t image = flips;
  for (int bit = 0; bit < count; ++bit)
    image ^= (address >> bit & 1) << target[bit];
  return image;
}
