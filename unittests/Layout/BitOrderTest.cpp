//===- BitOrderTest.cpp - Bit orders and their text -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace wna16;

namespace {

TEST(BitOrder, KeepsItsText) {
  for (const LayoutEntry &entry : allLayouts())
    for (std::string_view text :
         {entry.dense, entry.codes8, entry.scales, entry.scales1, entry.zeros4,
          entry.gated4, entry.gatedScales, entry.zeros8, entry.bias}) {
      if (text.empty())
        continue;
      Result<BitOrder> order = BitOrder::parse(text);
      ASSERT_TRUE(order) << order.message();
      EXPECT_EQ(order->str(), text);
    }
}

TEST(BitOrder, ReadsTileOffTheText) {
  Result<BitOrder> order =
      BitOrder::parse("k3 n3 k0 | n4 n5 k1 k2 n0 n1 n2 | N K");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->tileSize(), 1024);
  EXPECT_EQ(order->tileExtent(Axis::Input), 16);
  EXPECT_EQ(order->tileExtent(Axis::Output), 64);
  EXPECT_FALSE(order->names(Axis::Half));
}

TEST(BitOrder, RejectsNonsense) {
  for (const char *text :
       {"", "|", "x0 | K", "k0 k0 | K", "k1 | K", "k | K", "k0 K k1", "K K",
        "K0", "k0a", "k99", "k64 | K", "u0", "s s", "k-1", "k000"})
    EXPECT_FALSE(BitOrder::parse(text)) << text;
}

TEST(BitOrder, RandomOrdersAreBijections) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> bits = {"k0", "k1", "k2", "n0", "n1", "u"};
    std::shuffle(bits.begin(), bits.end(), random);
    std::string text;
    for (const std::string &bit : bits)
      text += bit + " ";
    Result<BitOrder> order = BitOrder::parse(text + "| N K");
    ASSERT_TRUE(order) << order.message();
    AddressMap map(*order, 24, 2, 12, 1);
    ASSERT_EQ(map.size(), 24 * 24);
    std::vector<bool> seen(24 * 24);
    for (int64_t k = 0; k < 24; ++k)
      for (int64_t r = 0; r < 24; ++r) {
        // The defining formula: one address bit after the other.
        int64_t n = r % 12, s = r / 12, at = 0;
        for (size_t i = 0; i < bits.size(); ++i) {
          int64_t bit = bits[i] == "u"      ? 1 - s
                        : bits[i][0] == 'k' ? k >> (bits[i][1] - '0') & 1
                                            : n >> (bits[i][1] - '0') & 1;
          at += bit << i;
        }
        at += 64 * (n / 4 + 3 * (k / 8));
        ASSERT_EQ(map.input(k) + map.row(r), at) << text;
        ASSERT_FALSE(seen[at]) << text;
        seen[at] = true;
      }
  }
}

} // namespace
