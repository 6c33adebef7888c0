//===- ScalarTest.cpp - Floats of 16 bits ---------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Scalar.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace wna16;

namespace {

/// `value` rounded to nearest even in a format of `bits` of significand and a
/// least exponent, in doubles.
double rounded(double value, int bits, int least, double most) {
  if (value == 0 || std::isnan(value) || std::isinf(value))
    return value;
  int exponent = std::max(std::ilogb(value), least);
  double step = std::ldexp(1.0, exponent - (bits - 1));
  double result = std::nearbyint(value / step) * step;
  return std::abs(result) > most ? std::copysign(INFINITY, value) : result;
}

TEST(Scalar, EveryHalfIsExact) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float f = f16ToFloat(half), b = bf16ToFloat(half);
    int exponent = (half >> 10) & 31, mantissa = half & 1023;
    if (exponent < 31) {
      double value = exponent ? std::ldexp(1024 + mantissa, exponent - 25)
                              : std::ldexp(mantissa, -24);
      ASSERT_EQ(f, half & 0x8000 ? -value : value);
      ASSERT_EQ(floatToF16(f), half);
      if (exponent < 30 || mantissa < 1023) {
        // Halfway to the next value: to even.
        float next = f16ToFloat(static_cast<uint16_t>(half + 1));
        float middle = (f + next) / 2;
        ASSERT_EQ(floatToF16(middle), static_cast<uint16_t>(half + (half & 1)));
        ASSERT_EQ(floatToF16(std::nextafter(middle, f)), half);
      }
    } else {
      ASSERT_EQ(std::isnan(f), mantissa != 0);
      ASSERT_EQ(std::isnan(f16ToFloat(floatToF16(f))), mantissa != 0);
    }
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(bf16ToFloat(floatToBF16(b))));
      continue;
    }
    ASSERT_EQ(floatToBF16(b), half);
    if (std::isinf(b))
      continue;
    uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(floatToBF16(floatOf(middle)),
              static_cast<uint16_t>(half + (half & 1)));
    ASSERT_EQ(floatToBF16(floatOf(middle - 1)), half);
    ASSERT_EQ(floatToBF16(floatOf(middle + 1)),
              static_cast<uint16_t>(half + 1));
  }
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
}

TEST(Scalar, AgreesWithDoubles) {
  const double mostHalf = 65504, mostBrain = std::ldexp(255.0, 120);
  auto check = [&](float value) {
    double half = f16ToFloat(floatToF16(value));
    double brain = bf16ToFloat(floatToBF16(value));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half) && std::isnan(brain));
      return;
    }
    ASSERT_EQ(half, rounded(value, 11, -14, mostHalf)) << value;
    ASSERT_EQ(brain, rounded(value, 8, -126, mostBrain)) << value;
    ASSERT_EQ(std::signbit(half), std::signbit(value));
    ASSERT_EQ(std::signbit(brain), std::signbit(value));
  };
  // Every half and brain float, its neighbours and the middle to the next.
  for (uint32_t bits = 0; bits < 65536; ++bits)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(floatOf(bits << 16 | low));
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint32_t half = bitsOf(f16ToFloat(static_cast<uint16_t>(bits)));
    for (int32_t step : {-1, 0, 1, 0xfff, 0x1000, 0x1001})
      check(floatOf(half + static_cast<uint32_t>(step)));
  }
}

} // namespace
