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
