//===- PanelSteps.h - What surrounds the products, for any vector -*- C++ -*-=//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps between the products, written once over a type Vector of f32 lanes
// that each instruction set defines in a namespace of its own. Nothing here
// calls a function that another file might have compiled for another set.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELSTEPS_H
#define WNA16_LIB_RUNTIME_CPU_PANELSTEPS_H

#include "Panels.h"

namespace wna16 {

template <typename Vector>
struct PanelSteps {
  static constexpr int64_t kLanes = Vector::kLanes;

  /// `count` (1 .. kLanes) elements of a float type, then zeros.
  static Vector loadSome(ScalarType type, const void *data, int64_t index,
                         int64_t count) {
    auto *bytes = static_cast<const uint8_t *>(data);
    if (count >= kLanes)
      return load(type, bytes, index);
    alignas(64) uint8_t part[4 * kLanes] = {};
    const int64_t size = type == ScalarType::F32 ? 4 : 2;
    __builtin_memcpy(part, bytes + index * size, count * size);
    return load(type, part, 0);
  }

  static Vector load(ScalarType type, const uint8_t *data, int64_t index) {
    switch (type) {
    case ScalarType::F16:
      return Vector::loadF16(data + 2 * index);
    case ScalarType::BF16:
      return Vector::loadBF16(data + 2 * index);
    default:
      return Vector::load(data + 4 * index);
    }
  }

  static void store(Vector value, ScalarType type, uint8_t *data,
                    int64_t index) {
    switch (type) {
    case ScalarType::F16:
      return value.storeF16(data + 2 * index);
    case ScalarType::BF16:
      return value.storeBF16(data + 2 * index);
    default:
      return value.store(data + 4 * index);
    }
  }

  static void storeSome(Vector value, ScalarType type, void *data,
                        int64_t index, int64_t count) {
    auto *bytes = static_cast<uint8_t *>(data);
    if (count >= kLanes)
      return store(value, type, bytes, index);
    alignas(64) uint8_t part[4 * kLanes];
    store(value, type, part, 0);
    const int64_t size = type == ScalarType::F32 ? 4 : 2;
    __builtin_memcpy(bytes + index * size, part, count * size);
  }

  //===--------------------------------------------------------------------===//
  // Activations
  //===--------------------------------------------------------------------===//

  /// e^x to within a few units in the last place; NaN stays NaN.
  static Vector exp(Vector x) {
    // Beyond these, swish no longer depends on the value.
    x = Vector::min(Vector::splat(88.0f), x);
    x = Vector::max(Vector::splat(-87.0f), x);
    const Vector power = (x * Vector::splat(1.44269504f)).round();
    // ln 2 in two parts, the first one with trailing zeros.
    Vector rest = Vector::fma(power, Vector::splat(-0.693359375f), x);
    rest = Vector::fma(power, Vector::splat(2.12194440e-4f), rest);
    // The Taylor series: |rest| <= ln 2 / 2.
    constexpr float kInverseFactorial[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120,
                                           1.0f / 24,   1.0f / 6,   0.5f,
                                           1.0f,        1.0f};
    Vector sum = Vector::splat(kInverseFactorial[0]);
    for (int i = 1; i < 8; ++i)
      sum = Vector::fma(sum, rest, Vector::splat(kInverseFactorial[i]));
    return sum.timesPowerOfTwo(power);
  }

  /// x * sigmoid(scale * x).
  static Vector swish(Vector x, Vector scale) {
    const Vector one = Vector::splat(1.0f);
    return x / (one + exp(Vector::splat(0.0f) - scale * x));
  }

  /// x * Phi(x), from the tail of the normal distribution, which keeps its
  /// precision where 1 + erf(x) cancels.
  static Vector gelu(Vector x) {
    // e^(t^2) erfc(t) = y P(y) for t = |x| / sqrt(2), y = 1 / (1 + 0.35 t):
    // the polynomial that is exact in ten Chebyshev points of t <= 14, within
    // 1.4e-8.
    constexpr float kCoefficients[] = {
        0.0411128246f, -0.174234086f, 0.218897273f, -0.0796659048f,
        0.132012502f,  0.120897632f,  0.160232447f, 0.185886698f,
        0.19739028f,   0.197470341f};
    const Vector zero = Vector::splat(0.0f), one = Vector::splat(1.0f);
    const Vector magnitude = Vector::max(zero - x, x);
    const Vector y =
        one / Vector::fma(Vector::splat(0.35f * 0.707106781f), magnitude, one);
    Vector sum = Vector::splat(kCoefficients[0]);
    for (int i = 1; i < 10; ++i)
      sum = Vector::fma(sum, y, Vector::splat(kCoefficients[i]));
    // e^(-x^2 / 2), with what rounding takes from the square put back.
    const Vector most = Vector::min(Vector::splat(14.0f), magnitude);
    const Vector square = most * most;
    const Vector rest = Vector::fma(most, most, zero - square);
    const Vector half = Vector::splat(-0.5f);
    const Vector power = exp(square * half);
    const Vector tail =
        Vector::splat(0.5f) * y * sum * Vector::fma(power, rest * half, power);
    return x * Vector::ifNegative(x, tail, one - tail);
  }

  // The second operand passes NaN through.
  static Vector atMost(Vector value, Vector limit) {
    return Vector::min(limit, value);
  }
  static Vector clampBoth(Vector value, Vector limit) {
    return Vector::max(Vector::splat(0.0f) - limit, atMost(value, limit));
  }

  static Vector activateOne(const Activation &activation, Vector x) {
    const Vector one = Vector::splat(1.0f);
    switch (activation.kind) {
    case WNA16_GELU_TANH:
      return swish(x, Vector::splat(1.59576912f) *
                          Vector::fma(Vector::splat(0.044715f) * x, x, one));
    case WNA16_RELU2: {
      const Vector positive = Vector::max(Vector::splat(0.0f), x);
      return positive * positive;
    }
    case WNA16_SWIGLUOAI:
      return swish(x, Vector::splat(activation.alpha));
    case WNA16_GELU:
      return gelu(x);
    default:
      return swish(x, one);
    }
  }

  static Vector activateGated(const Activation &activation, Vector gate,
                              Vector up) {
    const Vector limit = Vector::splat(activation.limit);
    const Vector factor = clampBoth(up, limit);
    if (activation.kind == WNA16_SWIGLUSTEP)
      return atMost(activateOne(activation, gate), limit) * factor;
    const Vector value = activateOne(activation, atMost(gate, limit));
    return activation.kind == WNA16_SWIGLUOAI
               ? value * (factor + Vector::splat(activation.beta))
               : value * factor;
  }

  static void activate(const Activation &activation, const float *gate,
                       const float *gateBias, const float *up,
                       const float *upBias, ScalarType type, void *out) {
    for (int64_t i = 0; i < kPanelRows; i += kLanes) {
      const Vector x = Vector::load(gate + i) + Vector::load(gateBias + i);
      const Vector value =
          up ? activateGated(activation, x,
                             Vector::load(up + i) + Vector::load(upBias + i))
             : activateOne(activation,
                           atMost(x, Vector::splat(activation.limit)));
      store(value, type, static_cast<uint8_t *>(out), i);
    }
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  static void finish(float *rows, int64_t count, int64_t width,
                     const float *bias, const float *weights) {
    for (int64_t t = 0; t < count; ++t) {
      const Vector weight = Vector::splat(weights[t]);
      for (int64_t i = 0; i < width; i += kLanes) {
        float *at = rows + t * width + i;
        ((Vector::load(at) + Vector::load(bias + i)) * weight).store(at);
      }
    }
  }

  static void sum(const float *rows, int64_t width, const int32_t *positions,
                  int64_t slots, ScalarType type, int64_t count, void *out) {
    for (int64_t i = 0; i < count; i += kLanes) {
      Vector total = Vector::splat(0.0f);
      for (int64_t slot = 0; slot < slots; ++slot)
        if (positions[slot] >= 0)
          total = total + Vector::load(rows + positions[slot] * width + i);
      storeSome(total, type, out, i, count - i);
    }
  }

  //===--------------------------------------------------------------------===//
  // Rows of f32
  //===--------------------------------------------------------------------===//

  static int64_t exactRowBytes(const PanelShape &shape) {
    return (4 * shape.input + 63) & ~int64_t(63);
  }

  static void prepareExact(const PanelShape &shape, ScalarType type,
                           const void *source, int64_t count, float factor,
                           uint8_t *row) {
    int64_t k = 0;
    for (; k < count; k += kLanes)
      (loadSome(type, source, k, count - k) * Vector::splat(factor))
          .store(row + 4 * k);
    for (; k < shape.input; k += kLanes)
      Vector::splat(0.0f).store(row + 4 * k);
  }
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_PANELSTEPS_H
