//===- RoutePortable.cpp - Scores and choices of experts on any machine ---===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RouteSteps.h"

#include <cmath>

using namespace wna16;

namespace {

/// One lane, with the operations of the other sets.
struct Vector {
  static constexpr int64_t kLanes = 1;
  float lane;

  static Vector load(const void *at) {
    Vector value;
    __builtin_memcpy(&value.lane, at, sizeof value.lane);
    return value;
  }
  static Vector splat(float value) { return {value}; }
  void store(void *at) const { __builtin_memcpy(at, &lane, sizeof lane); }

  Vector operator+(Vector o) const { return {lane + o.lane}; }
  Vector operator-(Vector o) const { return {lane - o.lane}; }
  Vector operator*(Vector o) const { return {lane * o.lane}; }
  Vector operator/(Vector o) const { return {lane / o.lane}; }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {std::fma(a.lane, b.lane, c.lane)};
  }
  /// NaN in b stays.
  static Vector min(Vector a, Vector b) { return a.lane < b.lane ? a : b; }
  static Vector max(Vector a, Vector b) { return a.lane > b.lane ? a : b; }
  Vector round() const { return {std::nearbyint(lane)}; }
  Vector timesPowerOfTwo(Vector power) const {
    return {std::ldexp(lane, static_cast<int>(power.lane))};
  }
};

} // namespace

const RouteKernels wna16::portableRoute = routeKernels<Vector>();
