//===- TestWeights.cpp - Random weights and their values ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include "Layout/Scalar.h"

using namespace wna16;
using namespace wna16::test;

WeightSpec wna16::test::specOf(std::string_view layout, CodeType code,
                               int64_t input, int64_t halves, int64_t output,
                               int64_t group, ZeroPoints zeros) {
  WeightSpec spec;
  spec.layout = findLayout(layout);
  spec.code = code;
  spec.zeros = zeros;
  spec.group = group;
  spec.experts = 2;
  spec.input = input;
  spec.halves = halves;
  spec.output = output;
  return spec;
}

WeightSpec wna16::test::plainSpec(const LayoutEntry &layout, CodeType code,
                                  int64_t input, int64_t halves, int64_t output,
                                  int64_t group) {
  WeightSpec spec = specOf(layout.name, code, input, halves, output, group);
  spec.scale = layout.scaleType.value_or(ScalarType::F16);
  if (code == CodeType::U4 || code == CodeType::U8)
    spec.zeros = ZeroPoints::Plain;
  return spec;
}

WeightSpec wna16::test::plainSpec(const char *layout, CodeType code,
                                  int64_t input, int64_t halves, int64_t output,
                                  int64_t group) {
  return plainSpec(*findLayout(layout), code, input, halves, output, group);
}

void wna16::test::randomize(Stored &stored, std::mt19937 &random) {
  for (Part part : {Part::Codes, Part::Zeros})
    for (uint8_t &byte : stored.at(part))
      byte = static_cast<uint8_t>(random());
  if (zeroBits(stored.spec) > stored.spec.bits())
    for (uint8_t &zero : stored.at(Part::Zeros))
      zero &= 15;
  Bytes &scales = stored.at(Part::Scales);
  for (size_t i = 0; i < scales.size() / sizeOf(stored.spec.scale); ++i)
    storeFloat(stored.spec.scale, scales.data(), static_cast<int64_t>(i),
               0.015625f * static_cast<float>(4 + random() % 4));
}

std::vector<float> wna16::test::valuesOf(Stored &stored) {
  const WeightSpec &spec = stored.spec;
  std::vector<int64_t> table(
      static_cast<size_t>(RowDecoder::tableBytes(spec) / 8));
  RowDecoder decoder;
  Failure bad = decoder.init(spec, stored.buffers(), table.data());
  EXPECT_FALSE(bad) << bad.message;
  std::vector<float> values(
      static_cast<size_t>(spec.experts * spec.rows() * spec.input));
  for (int64_t e = 0; e < spec.experts; ++e)
    for (int64_t r = 0; r < spec.rows(); ++r)
      decoder.decode(e, r, values.data() + (e * spec.rows() + r) * spec.input);
  return values;
}
