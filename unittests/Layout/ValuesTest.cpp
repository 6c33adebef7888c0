//===- ValuesTest.cpp - What codes stand for ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

std::vector<float> decodeByte(CodeType code, ZeroPoints zeros) {
  WeightSpec spec = specOf("xpu", code, 2, 1, 2, -1, zeros);
  if (zeros != ZeroPoints::None)
    spec.layout = findLayout("otf");
  spec.experts = 1;
  spec.scale = ScalarType::F32;
  Stored stored(spec);
  std::fill(stored.at(Part::Codes).begin(), stored.at(Part::Codes).end(), 0x9f);
  std::fill(stored.at(Part::Zeros).begin(), stored.at(Part::Zeros).end(), 0);
  float one[2] = {1, 1};
  std::memcpy(stored.at(Part::Scales).data(), one, 8);
  std::vector<float> out(4);
  Failure bad = dequantizeWeight(spec, stored.buffers(), ScalarType::F32, false,
                                 out.data(), {0, 1});
  EXPECT_FALSE(bad) << bad.message;
  out.resize(2);
  return out;
}

TEST(Values, LowNibbleFirst) {
  EXPECT_EQ(decodeByte(CodeType::U4, ZeroPoints::Plain),
            (std::vector<float>{15, 9}));
  EXPECT_EQ(decodeByte(CodeType::U4B8, ZeroPoints::None),
            (std::vector<float>{7, 1}));
  EXPECT_EQ(decodeByte(CodeType::S4, ZeroPoints::None),
            (std::vector<float>{-1, -7}));
}

TEST(Values, RangesIncludeZero) {
  WeightSpec spec =
      specOf("gptq", CodeType::U4, 8, 1, 1, -1, ZeroPoints::Plain);
  spec.experts = 1;
  spec.scale = ScalarType::F32;
  Stored stored(spec);
  std::vector<float> in, out(8);
  for (int i = 0; i < 8; ++i)
    in.push_back(10.5f + 0.5f * static_cast<float>(i));
  ASSERT_FALSE(quantizeWeight(ScalarType::F32, in.data(), spec,
                              stored.buffers(), {0, 1}));
  ASSERT_FALSE(dequantizeWeight(spec, stored.buffers(), ScalarType::F32, false,
                                out.data(), {0, 1}));
  for (int i = 0; i < 8; ++i)
    EXPECT_LE(std::abs(in[i] - out[i]), 0.47f);
}

// A padded, recoded, folded weight decodes to what it was.
TEST(Values, MovesKeepValues) {
  WeightSpec from =
      specOf("awq", CodeType::U4, 96, 2, 32, 32, ZeroPoints::Plain);
  Stored a(from);
  std::mt19937 random(5);
  for (Bytes &part : a.parts)
    for (uint8_t &byte : part)
      byte = static_cast<uint8_t>(random());
  for (size_t i = 1; i < a.at(Part::Scales).size(); i += 2)
    a.at(Part::Scales)[i] = 0x2c;
  WeightSpec to = from;
  to.layout = findLayout("marlin_a8");
  to.code = CodeType::U4FP8;
  to.input = 128;
  to.output = 64;
  Stored b(to);
  ASSERT_EQ(moveAll(a, b), "");
  std::vector<float> x(2 * 64 * 96), y(2 * 128 * 128);
  ASSERT_FALSE(dequantizeWeight(from, a.buffers(), ScalarType::F32, false,
                                x.data(), {0, 2}));
  ASSERT_FALSE(dequantizeWeight(to, b.buffers(), ScalarType::F32, false,
                                y.data(), {0, 2}));
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t r = 0; r < 128; ++r)
      for (int64_t k = 0; k < 128; ++k) {
        int64_t n = r % 64;
        float expected =
            n < 32 && k < 96 ? x[(e * 64 + r / 64 * 32 + n) * 96 + k] : 0.0f;
        ASSERT_EQ(y[(e * 128 + r) * 128 + k], expected) << r << " " << k;
      }
}

} // namespace
