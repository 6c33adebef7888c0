//===- MoveTest.cpp - Weights from layout to layout -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include "Layout/Scalar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

// Random codes survive every ordered pair of layouts.
TEST(Move, EveryPairRoundTrips) {
  std::mt19937 random(11);
  int pairs = 0;
  for (bool zeros : {false, true})
    for (bool wide : {false, true})
      for (const LayoutEntry &a : allLayouts())
        for (const LayoutEntry &b : allLayouts()) {
          WeightSpec spec = specOf(
              "gptq",
              zeros ? (wide ? CodeType::U8 : CodeType::U4)
                    : (wide ? CodeType::U8B128 : CodeType::U4B8),
              256, 2, 64, 32, zeros ? ZeroPoints::Plain : ZeroPoints::None);
          WeightSpec first = spec, second = spec;
          first.layout = &a;
          second.layout = &b;
          for (WeightSpec *one : {&first, &second})
            one->scale = one->layout->scaleType.value_or(ScalarType::F32);
          if (!storageOf(first) || !storageOf(second))
            continue;
          Stored original(spec), x(first), y(second), back(spec);
          for (Bytes &part : original.parts)
            for (uint8_t &byte : part)
              byte = static_cast<uint8_t>(random());
          // Scales that every type holds.
          for (size_t i = 0; i < original.at(Part::Scales).size(); i += 2) {
            original.at(Part::Scales)[i] = 0;
            original.at(Part::Scales)[i + 1] = uint8_t(0x30 + random() % 8);
          }
          ASSERT_EQ(moveAll(original, x), "");
          ASSERT_EQ(moveAll(x, y), "");
          ASSERT_EQ(moveAll(y, back), "");
          ASSERT_EQ(back.parts, original.parts) << a.name << " " << b.name;
          ++pairs;
        }
  EXPECT_GT(pairs, 200);
}

// A zero point of 0 is stored as 15 in GPTQ v1 without touching neighbours.
TEST(Move, ZeroPointsOfGptqV1) {
  WeightSpec spec =
      specOf("gptq", CodeType::U4, 8, 1, 16, -1, ZeroPoints::Plain);
  WeightSpec minusOne = spec;
  minusOne.zeros = ZeroPoints::MinusOne;
  Stored plain(spec), packed(minusOne), back(spec);
  for (Bytes &part : plain.parts)
    std::fill(part.begin(), part.end(), uint8_t(0x10));
  ASSERT_EQ(moveAll(plain, packed), "");
  for (uint8_t byte : packed.at(Part::Zeros))
    EXPECT_EQ(byte, 0x0f);
  ASSERT_EQ(moveAll(packed, back), "");
  EXPECT_EQ(back.parts, plain.parts);
}

TEST(Move, FoldsScalesForInt8) {
  WeightSpec from = specOf("gptq", CodeType::U4B8, 64, 1, 64, 32);
  WeightSpec to = from;
  to.layout = findLayout("marlin_a8");
  to.scale = ScalarType::I16;
  Stored a(from), b(to);
  auto *scales = reinterpret_cast<uint16_t *>(a.at(Part::Scales).data());
  int64_t count = 2 * 2 * 64;
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    scales[i] = floatToF16(0.003f + 0.0007f * static_cast<float>(i % 97));
    largest = std::max(largest, f16ToFloat(scales[i]));
  }
  ASSERT_EQ(moveAll(a, b), "");
  EXPECT_EQ(*b.buffers().get<float>(Part::GlobalScale), largest / 4096);
  auto *folded = b.buffers().get<int16_t>(Part::Scales);
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t g = 0; g < 2; ++g)
      for (int64_t block = 0; block < 2; ++block)
        for (int64_t j = 0; j < 32; ++j) {
          int64_t source = 2 * (j / 8) + (j & 1) + 8 * ((j % 8) >> 1);
          int64_t at = (e * 2 + g) * 64 + 32 * block;
          float s = f16ToFloat(scales[at + source]);
          float r = f16ToFloat(floatToF16(s / largest));
          ASSERT_EQ(folded[at + j],
                    std::nearbyint(f16ToFloat(floatToF16(r * 4096))));
        }
}

TEST(Move, RejectsBadGroupIndices) {
  WeightSpec from = specOf("gptq", CodeType::U4B8, 64, 1, 64, 32);
  from.actOrder = ActOrder::Index;
  WeightSpec to = from;
  to.layout = findLayout("marlin");
  to.actOrder = ActOrder::Sorted;
  Stored a(from), b(to);
  auto *index = reinterpret_cast<int32_t *>(a.at(Part::GroupIndex).data());
  for (int64_t k = 0; k < 128; ++k)
    index[k] = static_cast<int32_t>(k & 1);
  EXPECT_EQ(moveAll(a, b), "");
  auto *perm = reinterpret_cast<int32_t *>(b.at(Part::Permutation).data());
  for (int64_t k = 0; k < 128; ++k)
    EXPECT_EQ(perm[k], k % 64 < 32 ? 2 * (k % 64) : 2 * (k % 32) + 1);
  for (int32_t bad : {2, -1, INT32_MAX, INT32_MIN}) {
    index[70] = bad;
    std::string message = moveAll(a, b);
    EXPECT_NE(message.find("expert 1"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(bad)), std::string::npos) << message;
    std::vector<float> out(2 * 64 * 64);
    EXPECT_TRUE(dequantizeWeight(from, a.buffers(), ScalarType::F32, false,
                                 out.data(), {0, 2}));
  }
  index[70] = 1; // 31 and 33 rows
  EXPECT_NE(moveAll(a, b).find("expert 1"), std::string::npos);
  EXPECT_TRUE(moveWeight(from, a.buffers(), to, b.buffers(), {0, 3}));
}

TEST(Move, ChecksNeverCrash) {
  std::mt19937_64 random(3);
  const int64_t values[] = {0,   1,    2,         8,         32,       64,
                            100, 128,  256,       4096,      -1,       -7,
                            3,   1000, INT64_MAX, INT64_MIN, 1LL << 31};
  auto pick = [&] { return values[random() % std::size(values)]; };
  auto make = [&] {
    WeightSpec spec;
    spec.layout = random() % 20 ? findLayout(int64_t(random() % 15)) : nullptr;
    spec.code = CodeType(random() % 9);
    spec.element = ScalarType(random() % 11);
    spec.scale = ScalarType(random() % 11);
    spec.zeros = ZeroPoints(random() % 4);
    spec.actOrder = ActOrder(random() % 4);
    spec.group = pick();
    spec.experts = pick();
    spec.input = pick();
    spec.halves = random() % 4 ? 1 + int64_t(random() % 2) : pick();
    spec.output = pick();
    return spec;
  };
  int fit = 0;
  for (int round = 0; round < 200000; ++round) {
    WeightSpec a = make(), b = random() % 2 ? make() : a;
    if (random() % 2)
      b.layout = findLayout(int64_t(random() % 15));
    fit += !checkMove(a, b);
  }
  EXPECT_GT(fit, 0);
}

} // namespace
