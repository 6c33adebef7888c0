//===- Activation.cpp - From gate and up to the hidden value --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activation.h"

#include <cmath>

using namespace wna16;

// The bounds are written so that NaN passes through.
static float atMost(float value, float limit) {
  return value > limit ? limit : value;
}

static float clampBoth(float value, float limit) {
  return value < -limit ? -limit : atMost(value, limit);
}

/// x * sigmoid(scale * x).
static float swish(float x, float scale) {
  return x / (1.0f + std::exp(-scale * x));
}

static float gelu(float x) {
  // erfc keeps its precision where 1 + erf cancels.
  return 0.5f * x * std::erfc(x * -0.70710678f);
}

static float geluTanh(float x) {
  // 0.5 * (1 + tanh(u)) = sigmoid(2 u), u = sqrt(2/pi) * (x + 0.044715 x^3).
  return swish(x, 1.59576912f * (1.0f + 0.044715f * x * x));
}

static float relu2(float x) {
  float positive = x < 0 ? 0.0f : x;
  return positive * positive;
}

float Activation::operator()(float gate, float up) const {
  if (kind == WNA16_SWIGLUSTEP)
    return atMost(swish(gate, 1.0f), limit) * clampBoth(up, limit);
  const float factor = clampBoth(up, limit);
  return (*this)(gate) * (kind == WNA16_SWIGLUOAI ? factor + beta : factor);
}

float Activation::operator()(float value) const {
  const float x = atMost(value, limit);
  switch (kind) {
  case WNA16_GELU:
    return gelu(x);
  case WNA16_GELU_TANH:
    return geluTanh(x);
  case WNA16_RELU2:
    return relu2(x);
  case WNA16_SWIGLUOAI:
    return swish(x, alpha);
  default:
    return swish(x, 1.0f);
  }
}
