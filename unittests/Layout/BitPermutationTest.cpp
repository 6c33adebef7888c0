//===- BitPermutationTest.cpp - Bit orders as an algebra ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/BitPermutation.h"
#include "Layout/Catalogue.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace wna16;

namespace {

BitOrder parsed(std::string_view text) {
  Result<BitOrder> order = BitOrder::parse(text);
  EXPECT_TRUE(order) << order.message();
  return order ? *order : *BitOrder::parse("K | N");
}

BitPermutation between(const BitOrder &from, const BitOrder &to,
                       const Extents &extents) {
  Result<BitPermutation> map = BitPermutation::between(from, to, extents);
  EXPECT_TRUE(map) << map.message();
  return map ? *map : BitPermutation();
}

BitPermutation compose(const BitPermutation &first,
                       const BitPermutation &second) {
  Result<BitPermutation> map = BitPermutation::compose(first, second);
  EXPECT_TRUE(map) << map.message();
  return map ? *map : BitPermutation();
}

/// An order of inputs, outputs and, one time in two, halves: some bits of each
/// in any order, then the rests.
BitOrder randomOrder(std::mt19937 &random) {
  std::vector<std::string> bits, rests = {"K", "N"};
  for (char axis : {'k', 'n'})
    for (unsigned bit = 0, count = random() % 5; bit < count; ++bit)
      bits.push_back(axis + std::to_string(bit));
  if (random() % 2)
    bits.push_back(random() % 2 ? "s" : "u");
  std::shuffle(bits.begin(), bits.end(), random);
  std::shuffle(rests.begin(), rests.end(), random);
  bits.insert(bits.end(), rests.begin(), rests.end());
  std::string text;
  for (const std::string &bit : bits)
    text += bit + (random() % 3 ? " " : " | ");
  return parsed(text);
}

constexpr Extents kExtents = {64, 32, 2, 1};

TEST(BitOrder, PrintsNormalForm) {
  EXPECT_EQ(parsed("| k1  k0 u|| n0 |N K |").str(), "k1 k0 u | n0 | N K");
  EXPECT_EQ(parsed("G").str(), "G");
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    BitOrder order = randomOrder(random);
    std::string text = order.str();
    BitOrder again = parsed(text);
    EXPECT_EQ(again.str(), text);
    ASSERT_TRUE(std::equal(order.bits().begin(), order.bits().end(),
                           again.bits().begin(), again.bits().end()));
    ASSERT_TRUE(std::equal(order.rests().begin(), order.rests().end(),
                           again.rests().begin(), again.rests().end()));
  }
}

TEST(BitPermutation, IsAGroupoid) {
  std::mt19937 random(5);
  const BitPermutation identity =
      between(parsed("K | N"), parsed("K N"), kExtents);
  for (int round = 0; round < 300; ++round) {
    BitOrder a = randomOrder(random), b = randomOrder(random),
             c = randomOrder(random);
    SCOPED_TRACE(a.str() + " to " + b.str() + " to " + c.str());
    BitPermutation ab = between(a, b, kExtents), bc = between(b, c, kExtents);
    ASSERT_EQ(compose(ab, bc), between(a, c, kExtents));
    ASSERT_EQ(ab.inverse(), between(b, a, kExtents));
    ASSERT_EQ(ab.inverse().inverse(), ab);
    ASSERT_EQ(compose(ab, ab.inverse()), identity);
    ASSERT_EQ(compose(ab.inverse(), ab), identity);
    ASSERT_EQ(between(a, a, kExtents), identity);
    for (int64_t address = 0; address < 4096; address += 1 + random() % 64) {
      ASSERT_EQ(bc.apply(ab.apply(address)), compose(ab, bc).apply(address));
      ASSERT_EQ(ab.inverse().apply(ab.apply(address)), address);
    }
  }
}

TEST(BitPermutation, AgreesWithAddresses) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    BitOrder a = randomOrder(random), b = randomOrder(random);
    BitPermutation map = between(a, b, kExtents);
    AddressMap from(a, 64, 2, 32, 1), to(b, 64, 2, 32, 1);
    ASSERT_EQ(map.bits(), 12);
    for (int64_t k = 0; k < 64; ++k)
      for (int64_t r = 0; r < 64; ++r)
        ASSERT_EQ(map.apply(from.input(k) + from.row(r)),
                  to.input(k) + to.row(r))
            << a.str() << " to " << b.str();
  }
}

// Two names for one order, and the word formula of Marlin's repack.
TEST(BitPermutation, KnownMaps) {
  const Extents extents = {64, 128, 1, 1};
  for (bool wide : {false, true}) {
    auto order = [&](const char *name) {
      const LayoutEntry *layout = findLayout(name);
      return parsed(wide ? layout->codes8 : layout->codes4);
    };
    BitPermutation toMarlin = between(order("gptq"), order("marlin"), extents);
    EXPECT_EQ(between(order("gptq"), order("humming_mma"), extents), toMarlin);
    EXPECT_NE(between(order("gptq"), order("humming_wgmma"), extents),
              toMarlin);
    int64_t perWord = wide ? 4 : 8, words = 1024 / perWord;
    for (int64_t at = 0; at < 64 * 128; ++at) {
      int64_t p = at % perWord, tile = at / 1024, w = at / perWord % words;
      int64_t t = w / (wide ? 8 : 4), u = wide ? w % 8 / 2 : w % 4;
      int64_t upper = wide ? w % 2 : p >> 1 & 1;
      int64_t k = 16 * (tile / 2) + 2 * (t & 3) + 8 * (p & 1) +
                  (wide ? p >> 1 : p >> 2);
      int64_t n = 64 * (tile % 2) + 16 * u + 8 * upper + (t >> 2);
      // GPTQ: word (k / perWord, n), field k mod perWord.
      int64_t source = (k / perWord * 128 + n) * perWord + k % perWord;
      ASSERT_EQ(toMarlin.apply(source), at) << k << " " << n;
    }
  }
}

TEST(BitPermutation, NamesWhatDoesNotSuit) {
  auto message = [](const char *from, const char *to, const Extents &extents) {
    Result<BitPermutation> map =
        BitPermutation::between(parsed(from), parsed(to), extents);
    return map ? "" : map.message();
  };
  EXPECT_EQ(message("K | N", "N | K", {48, 32, 1, 1}),
            "expected extents that are powers of two, got 48");
  EXPECT_EQ(message("K | N", "N | K", {0, 32, 1, 1}),
            "expected extents that are powers of two, got 0");
  EXPECT_EQ(message("K | N", "k0 k1 k2 | N K", {4, 32, 1, 1}),
            "expected an extent of input that suits tiles of 8, got 4 for bit "
            "order 'k0 k1 k2 | N K'");
  EXPECT_EQ(message("k0 k1 | N", "K | N", {8, 32, 1, 1}),
            "expected an extent of input that suits tiles of 4, got 8 for bit "
            "order 'k0 k1 | N'");
  EXPECT_EQ(message("s | K N", "K | N", {8, 32, 1, 1}),
            "expected an extent of half that suits tiles of 2, got 1 for bit "
            "order 's | K N'");
  EXPECT_EQ(
      message("K | N", "N | K", {int64_t(1) << 40, int64_t(1) << 40, 1, 1}),
      "expected at most 62 address bits, got 80");
  Result<BitPermutation> mixed =
      BitPermutation::compose(between(parsed("K"), parsed("K"), {8, 1, 1, 1}),
                              between(parsed("K"), parsed("K"), {16, 1, 1, 1}));
  EXPECT_EQ(mixed.message(), "expected maps of as many bits, got 3 and 4");
}

} // namespace
