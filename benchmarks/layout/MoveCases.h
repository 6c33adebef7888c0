//===- MoveCases.h - What benchmarks of moves move --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_LAYOUT_MOVECASES_H
#define WNA16_BENCHMARKS_LAYOUT_MOVECASES_H

#include "Layout/Move.h"

#include <algorithm>

namespace wna16 {

/// A weight of a model.
struct MoveCase {
  const char *model;
  int64_t experts, input, halves, output;
};

/// A weight of 4-bit codes in a layout.
inline WeightSpec specOf(const LayoutEntry &layout, const MoveCase &shape) {
  WeightSpec spec;
  spec.layout = &layout;
  spec.code = layout.needsZeros ? CodeType::U4 : CodeType::U4B8;
  spec.zeros = layout.needsZeros ? ZeroPoints::Plain : ZeroPoints::None;
  spec.group = layout.group.value_or(128);
  spec.scale = layout.scaleType.value_or(ScalarType::BF16);
  spec.experts = shape.experts;
  spec.input = shape.input;
  spec.halves = shape.halves;
  spec.output = shape.output;
  return spec;
}

/// The source in the target's terms: what differs is the layout alone.
inline WeightSpec sourceOf(const LayoutEntry &layout,
                           const WeightSpec &target) {
  WeightSpec spec = target;
  spec.layout = &layout;
  spec.scale = layout.scaleType.value_or(ScalarType::BF16);
  if (target.zeros != ZeroPoints::None && layout.zeros4.empty()) {
    spec.code = CodeType::U4B8;
    spec.zeros = ZeroPoints::None;
  }
  if (layout.needsZeros) {
    spec.code = CodeType::U4;
    spec.zeros = ZeroPoints::Plain;
  }
  return spec;
}

template <typename T>
T median(std::vector<T> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace wna16

#endif // WNA16_BENCHMARKS_LAYOUT_MOVECASES_H
