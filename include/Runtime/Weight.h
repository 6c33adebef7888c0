//===- Weight.h - A stored weight as the C ABI says it ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_RUNTIME_WEIGHT_H
#define WNA16_RUNTIME_WEIGHT_H

#include "Layout/WeightSpec.h"
#include "Runtime/wna16.h"

namespace wna16 {

/// The fields of a plan that say how `spec`, which has a layout, is stored.
inline wna16_weight weightOf(const WeightSpec &spec) {
  wna16_weight weight = {};
  weight.code = static_cast<int64_t>(spec.code);
  weight.element = static_cast<int64_t>(spec.element);
  weight.scale = static_cast<int64_t>(spec.scale);
  weight.zeros = static_cast<int64_t>(spec.zeros);
  weight.act_order = static_cast<int64_t>(spec.actOrder);
  weight.group = spec.group;
  weight.layout = spec.layout->id;
  weight.experts = spec.experts;
  weight.input = spec.input;
  weight.halves = spec.halves;
  weight.output = spec.output;
  weight.kept_groups = spec.keptGroups;
  return weight;
}

} // namespace wna16

#endif // WNA16_RUNTIME_WEIGHT_H
