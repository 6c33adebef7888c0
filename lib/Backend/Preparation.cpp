//===- Preparation.cpp - Specifications that backends want ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Preparation.h"

#include "Layout/Catalogue.h"

#include <limits>
#include <numeric>

using namespace wna16;

int64_t wna16::roundUp(int64_t value, int64_t multiple) {
  if (multiple <= 1 || value <= 0)
    return value;
  int64_t rest = value % multiple;
  if (rest == 0 ||
      value > std::numeric_limits<int64_t>::max() - (multiple - rest))
    return value;
  return value + (multiple - rest);
}

int64_t wna16::leastMultiple(int64_t a, int64_t b) {
  if (a <= 0 || b <= 0)
    return a;
  int64_t factor = b / std::gcd(a, b);
  return a > std::numeric_limits<int64_t>::max() / factor ? a : a * factor;
}

/// The unit that an input axis is padded to: whole groups as well.
static int64_t inputUnit(const WeightSpec &weight, int64_t unit) {
  return weight.code != CodeType::Dense && weight.group > 0
             ? leastMultiple(unit, weight.group)
             : unit;
}

WeightSpec wna16::padded(const LayerInfo &layer, const WeightSpec &source,
                         Projection which, Units units, bool padInput) {
  WeightSpec result = source;
  int64_t intermediate = inputUnit(layer.w2, units.intermediate);
  if (which == Projection::W13) {
    result.output = roundUp(source.output, intermediate);
    if (padInput)
      result.input = roundUp(source.input, inputUnit(source, units.input));
  } else {
    result.input = roundUp(source.input, intermediate);
    result.output = roundUp(source.output, units.output);
  }
  return result;
}

CodeType wna16::unsignedCode(CodeType code) {
  switch (code) {
  case CodeType::S4:
    return CodeType::U4B8;
  case CodeType::S8:
    return CodeType::U8B128;
  default:
    return code;
  }
}

WeightSpec wna16::inLayout(const WeightSpec &source, std::string_view layout) {
  WeightSpec result = source;
  result.layout = findLayout(layout);
  result.code = unsignedCode(source.code);
  if (source.zeros == ZeroPoints::MinusOne)
    result.zeros = ZeroPoints::Plain;
  return result;
}

WeightSpec wna16::dequantized(const WeightSpec &source, ScalarType element) {
  if (source.code == CodeType::Dense)
    return source;
  WeightSpec result;
  result.element = element;
  result.layout = findLayout("dense");
  result.experts = source.experts;
  result.input = source.input;
  result.halves = source.halves;
  result.output = source.output;
  return result;
}
