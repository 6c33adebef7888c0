//===- Fp8ScaleTest.cpp - Scales of codes rewritten for fp8 ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

WeightSpec specOf(const char *layout, CodeType code, ScalarType scale) {
  WeightSpec spec;
  spec.layout = findLayout(layout);
  spec.code = code;
  spec.scale = scale;
  spec.group = 32;
  spec.experts = 2;
  spec.input = 64;
  spec.output = 64;
  return spec;
}

uint16_t element(const Bytes &bytes, int64_t index) {
  uint16_t bits;
  std::memcpy(&bits, &bytes[2 * index], 2);
  return bits;
}

void setElement(Bytes &bytes, int64_t index, uint16_t bits) {
  std::memcpy(&bytes[2 * index], &bits, 2);
}

/// A finite positive 16-bit float, by its fields.
double valueOf(ScalarType type, uint16_t bits) {
  int mantissa = type == ScalarType::F16 ? 10 : 7;
  int bias = type == ScalarType::F16 ? 15 : 127;
  int exponent = bits >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  return exponent ? std::ldexp(fraction + (1 << mantissa),
                               exponent - bias - mantissa)
                  : std::ldexp(fraction, 1 - bias - mantissa);
}

/// The bits of 128, the least power of two whose 512-fold f16 cannot hold.
uint16_t bitsOf128(ScalarType type) {
  return type == ScalarType::F16 ? (15 + 7) << 10 : (127 + 7) << 7;
}

// Any scale below 128, subnormal ones among them, goes there and back.
TEST(Fp8Scales, AreStoredTimes512) {
  std::mt19937 random(47);
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16}) {
    Stored source(specOf("gptq", CodeType::U4B8, type));
    Stored target(specOf("marlin_a8", CodeType::U4FP8, type));
    Stored back(source.spec);
    Bytes &scales = source.at(Part::Scales);
    for (int64_t i = 0; i < 2 * 2 * 64; ++i)
      setElement(
          scales, i,
          static_cast<uint16_t>(i < 32 ? i : random() % bitsOf128(type)));
    ASSERT_EQ(moveAll(source, target), "");
    for (int64_t block = 0; block < 2 * 2 * 2; ++block)
      for (int64_t j = 0; j < 32; ++j) {
        int64_t n = 2 * (j / 8) + (j & 1) + 8 * (j % 8 >> 1);
        ASSERT_EQ(
            valueOf(type, element(target.at(Part::Scales), 32 * block + j)),
            512 * valueOf(type, element(scales, 32 * block + n)));
      }
    ASSERT_EQ(moveAll(target, back), "");
    EXPECT_EQ(back.parts, source.parts);
  }
}

TEST(Fp8Scales, OverflowNamesScaleExpertAndRemedy) {
  Stored source(specOf("gptq", CodeType::U4B8, ScalarType::F16), 0x11);
  uint16_t most = bitsOf128(ScalarType::F16);
  // Expert 1, group 1, row 5.
  int64_t at = (1 * 2 + 1) * 64 + 5;
  Stored half(specOf("marlin_a8", CodeType::U4FP8, ScalarType::F16));
  setElement(source.at(Part::Scales), at, static_cast<uint16_t>(most - 1));
  EXPECT_EQ(moveAll(source, half), "");
  setElement(source.at(Part::Scales), at, most);
  EXPECT_EQ(moveAll(source, half),
            "expected a scale that f16 can hold times 512, got 128.000000 for "
            "expert 1, group 1, row 5; use scales of bf16");
  Stored brain(specOf("marlin_a8", CodeType::U4FP8, ScalarType::BF16));
  EXPECT_EQ(moveAll(source, brain), "");
}

// Codes 3 and 12 are 3 and 15 - 12 - 8; a stored scale of 128 is 0.25.
TEST(Fp8Scales, DivideWhenRead) {
  WeightSpec spec = specOf("marlin_a8", CodeType::U4FP8, ScalarType::F16);
  for (auto [code, value] : {std::pair(0x33, 0.75f), std::pair(0xcc, -1.25f)}) {
    Stored stored(spec, static_cast<uint8_t>(code));
    for (int64_t i = 0; i < 2 * 2 * 64; ++i)
      setElement(stored.at(Part::Scales), i, bitsOf128(ScalarType::F16));
    std::vector<float> expected(2 * 64 * 64, value), got(expected.size());
    for (bool scaleFirst : {false, true}) {
      Failure bad = dequantizeWeight(spec, stored.buffers(), ScalarType::F32,
                                     scaleFirst, got.data(), {0, 2});
      EXPECT_FALSE(bad) << bad.message;
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(Fp8Scales, MultiplyWhenQuantised) {
  std::mt19937 random(53);
  std::vector<float> values(2 * 64 * 64);
  for (float &value : values)
    value = 0.01f * (static_cast<float>(random() % 2001) - 1000);
  Stored plain(specOf("gptq", CodeType::U4B8, ScalarType::F16));
  Stored rewritten(specOf("gptq", CodeType::U4FP8, ScalarType::F16));
  Stored moved(rewritten.spec);
  for (Stored *weight : {&plain, &rewritten})
    ASSERT_FALSE(quantizeWeight(ScalarType::F32, values.data(), weight->spec,
                                weight->buffers(), {0, 2}));
  for (int64_t i = 0; i < 2 * 2 * 64; ++i)
    ASSERT_EQ(valueOf(ScalarType::F16, element(rewritten.at(Part::Scales), i)),
              512 *
                  valueOf(ScalarType::F16, element(plain.at(Part::Scales), i)));
  ASSERT_EQ(moveAll(plain, moved), "");
  EXPECT_EQ(moved.parts, rewritten.parts);
  values.assign(values.size(), 1000.0f);
  EXPECT_TRUE(quantizeWeight(ScalarType::F32, values.data(), rewritten.spec,
                             rewritten.buffers(), {0, 2}));
}

// Codes with a sign come and go with their values.
TEST(Fp8Scales, BelongToSignedCodesToo) {
  std::mt19937 random(59);
  Stored start(specOf("gptq", CodeType::S4, ScalarType::F16));
  for (uint8_t &byte : start.at(Part::Codes))
    byte = static_cast<uint8_t>(random());
  for (int64_t i = 0; i < 2 * 2 * 64; ++i)
    setElement(start.at(Part::Scales), i, 0x3c00); // 1
  Stored rewritten(specOf("marlin_a8", CodeType::U4FP8, ScalarType::F16));
  Stored back(start.spec);
  ASSERT_EQ(moveAll(start, rewritten), "");
  ASSERT_EQ(moveAll(rewritten, back), "");
  EXPECT_EQ(back.parts, start.parts);
  std::vector<float> values[2];
  for (int i : {0, 1}) {
    Stored &weight = i ? rewritten : start;
    values[i].resize(2 * 64 * 64);
    Failure bad =
        dequantizeWeight(weight.spec, weight.buffers(), ScalarType::F32, false,
                         values[i].data(), {0, 2});
    ASSERT_FALSE(bad) << bad.message;
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(Fp8Scales, AreFloats) {
  EXPECT_EQ(storageOf(specOf("marlin_a8", CodeType::U4FP8, ScalarType::I16))
                .message(),
            "expected scales of f16, bf16 or f32 with code u4fp8, got i16");
}

} // namespace
