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
#include <random>
#include <utility>
#include <vector>

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

/// For each input of each expert its group: as many of each, in any order.
inline std::vector<int32_t> shuffledGroups(const WeightSpec &spec) {
  std::vector<int32_t> groups(static_cast<size_t>(spec.experts * spec.input));
  std::mt19937 engine(2);
  for (auto row = groups.begin(); row != groups.end(); row += spec.input) {
    for (int64_t k = 0; k < spec.input; ++k)
      row[k] = static_cast<int32_t>(k / spec.group);
    std::shuffle(row, row + spec.input, engine);
  }
  return groups;
}

/// A move that changes more than the layout.
struct MoveChange {
  const char *what, *from, *to;
  void (*apply)(WeightSpec &source, WeightSpec &target);

  std::pair<WeightSpec, WeightSpec> specs(const MoveCase &shape) const {
    WeightSpec target = specOf(*findLayout(to), shape);
    WeightSpec source = sourceOf(*findLayout(from), target);
    apply(source, target);
    return {source, target};
  }
};

namespace changes {

inline void sort(WeightSpec &source, WeightSpec &target) {
  source.actOrder = ActOrder::Index;
  target.actOrder = ActOrder::Sorted;
}
inline void pad(WeightSpec &, WeightSpec &target) {
  target.input += 128;
  target.output += 64;
}
inline void regroup(WeightSpec &, WeightSpec &target) { target.group = 64; }
inline void shiftZeros(WeightSpec &source, WeightSpec &target) {
  source.code = target.code = CodeType::U4;
  source.zeros = ZeroPoints::MinusOne;
  target.zeros = ZeroPoints::Plain;
}
inline void flipSigns(WeightSpec &source, WeightSpec &) {
  source.code = CodeType::S4;
}
inline void toFP8(WeightSpec &, WeightSpec &target) {
  target.code = CodeType::U4FP8;
}
inline void toFP8AroundZeros(WeightSpec &source, WeightSpec &target) {
  shiftZeros(source, target);
  toFP8(source, target);
}
inline void fold(WeightSpec &, WeightSpec &target) {
  target.scale = ScalarType::I16;
}
inline void changeScales(WeightSpec &source, WeightSpec &) {
  source.scale = ScalarType::F16;
}

} // namespace changes

constexpr MoveChange kMoveChanges[] = {
    {"rows sorted by group", "gptq", "gptq", changes::sort},
    {"rows sorted by group", "gptq", "marlin", changes::sort},
    {"rows sorted by group", "compressed_tensors", "marlin", changes::sort},
    {"rows sorted by group", "compressed_tensors", "compressed_tensors",
     changes::sort},
    {"padded", "gptq", "marlin", changes::pad},
    {"padded", "awq", "marlin", changes::pad},
    {"padded", "compressed_tensors", "humming_mma", changes::pad},
    {"groups halved", "gptq", "marlin", changes::regroup},
    {"groups halved", "compressed_tensors", "marlin", changes::regroup},
    {"zero points less one to plain", "gptq", "gptq", changes::shiftZeros},
    {"zero points less one to plain", "gptq", "marlin", changes::shiftZeros},
    {"zero points less one to plain", "awq", "humming_mma",
     changes::shiftZeros},
    {"s4 to u4b8", "gptq", "marlin", changes::flipSigns},
    {"s4 to u4b8", "compressed_tensors", "marlin", changes::flipSigns},
    {"codes for fp8", "gptq", "marlin_a8", changes::toFP8},
    {"codes for fp8 around zero points", "gptq", "marlin_a8",
     changes::toFP8AroundZeros},
    {"codes for fp8 around zero points", "awq", "marlin_a8",
     changes::toFP8AroundZeros},
    {"scales folded to i16", "gptq", "marlin_a8", changes::fold},
    {"scales f16 to bf16", "gptq", "marlin", changes::changeScales}};

template <typename T>
T median(std::vector<T> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace wna16

#endif // WNA16_BENCHMARKS_LAYOUT_MOVECASES_H
