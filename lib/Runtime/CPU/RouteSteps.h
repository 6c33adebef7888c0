//===- RouteSteps.h - Scores and choices, for any vector --------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which experts are chosen must not depend on the machine: every instruction
// set computes the same bits, as 16 lanes that are added up in one order.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_ROUTESTEPS_H
#define WNA16_LIB_RUNTIME_CPU_ROUTESTEPS_H

#include "PanelSteps.h"

namespace wna16 {

/// Rows that these kernels take are padded to a multiple of this.
constexpr int64_t kRouteLanes = 16;

/// A rank below those of all values: of an expert that is taken or out of play.
constexpr int32_t kTaken = INT32_MIN;

/// The kernels of one instruction set. `count` is a multiple of kRouteLanes.
struct RouteKernels {
  /// In place; entries of -infinity become zeros.
  void (*softmax)(float *values, int64_t count);
  void (*sigmoid)(float *values, int64_t count);
  /// Integers that order as values are chosen: NaN after everything, both zeros
  /// alike; kTaken after that is left to the caller.
  void (*rank)(const float *values, int64_t count, int32_t *ranks);
  /// The highest entry, the first of equals.
  int64_t (*best)(const int32_t *ranks, int64_t count);
};

extern const RouteKernels portableRoute;
extern const RouteKernels avx2Route;
extern const RouteKernels avx512Route;

template <typename Vector>
struct RouteSteps {
  using Steps = PanelSteps<Vector>;
  static constexpr int64_t kLanes = Vector::kLanes;
  static_assert(kRouteLanes % kLanes == 0);

  /// Sixteen lanes, whatever a register holds.
  using Lanes = float[kRouteLanes];
  using Ranks = int32_t __attribute__((vector_size(64)));

  /// e^x, less what the exponential does not go below, so that e^-infinity is
  /// nothing.
  static Vector expOrZero(Vector x) {
    return Steps::exp(x) - Steps::exp(Vector::splat(-88.0f));
  }

  static float highest(const float *values, int64_t count) {
    Lanes lanes;
    for (int64_t i = 0; i < kRouteLanes; i += kLanes) {
      Vector most = Vector::splat(-__builtin_inff());
      for (int64_t k = i; k < count; k += kRouteLanes)
        most = Vector::max(Vector::load(values + k), most);
      most.store(lanes + i);
    }
    float most = lanes[0];
    for (int64_t i = 1; i < kRouteLanes; ++i)
      most = lanes[i] > most ? lanes[i] : most;
    return most;
  }

  static void softmax(float *values, int64_t count) {
    const Vector most = Vector::splat(highest(values, count));
    alignas(64) Lanes lanes;
    for (int64_t i = 0; i < kRouteLanes; i += kLanes) {
      Vector sum = Vector::splat(0.0f);
      for (int64_t k = i; k < count; k += kRouteLanes) {
        const Vector value = expOrZero(Vector::load(values + k) - most);
        value.store(values + k);
        sum = sum + value;
      }
      sum.store(lanes + i);
    }
    for (int64_t n = kRouteLanes / 2; n > 0; n /= 2)
      for (int64_t i = 0; i < n; ++i)
        lanes[i] += lanes[i + n];
    const Vector sum = Vector::splat(lanes[0]);
    for (int64_t k = 0; k < count; k += kLanes)
      (Vector::load(values + k) / sum).store(values + k);
  }

  static void sigmoid(float *values, int64_t count) {
    const Vector one = Vector::splat(1.0f);
    auto of = [&](Vector x) {
      return one / (one + Steps::exp(Vector::splat(0.0f) - x));
    };
    // As with expOrZero.
    const Vector least = of(Vector::splat(-100.0f));
    for (int64_t k = 0; k < count; k += kLanes)
      (of(Vector::load(values + k)) - least).store(values + k);
  }

  static void rank(const float *values, int64_t count, int32_t *ranks) {
    for (int64_t k = 0; k < count; k += kRouteLanes) {
      Ranks bits;
      __builtin_memcpy(&bits, values + k, sizeof bits);
      const Ranks magnitude = bits & INT32_MAX;
      Ranks result = bits < 0 ? -magnitude : magnitude;
      result = magnitude > 0x7f800000 ? kTaken + 1 + (bits & 0) : result;
      __builtin_memcpy(ranks + k, &result, sizeof result);
    }
  }

  static int64_t best(const int32_t *ranks, int64_t count) {
    Ranks most, value;
    __builtin_memcpy(&most, ranks, sizeof most);
    Ranks where = most & 0, at = where;
    for (int64_t k = kRouteLanes; k < count; k += kRouteLanes) {
      __builtin_memcpy(&value, ranks + k, sizeof value);
      at += static_cast<int32_t>(kRouteLanes);
      const Ranks isMore = value > most;
      most = isMore ? value : most;
      where = isMore ? at : where;
    }
    int64_t lane = 0;
    for (int64_t i = 1; i < kRouteLanes; ++i)
      if (most[i] > most[lane] ||
          (most[i] == most[lane] && where[i] < where[lane]))
        lane = i;
    return where[lane] + lane;
  }
};

/// A vector's row of the table.
template <typename Vector>
constexpr RouteKernels routeKernels() {
  using Steps = RouteSteps<Vector>;
  return {Steps::softmax, Steps::sigmoid, Steps::rank, Steps::best};
}

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_ROUTESTEPS_H
