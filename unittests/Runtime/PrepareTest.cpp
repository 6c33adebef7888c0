//===- PrepareTest.cpp - The preparation steps ----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace wna16;
using namespace wna16test;

namespace {

wna16_weight densePlan(const wna16_weight &weight, ScalarType type) {
  wna16_weight dense = weight;
  dense.code = dense.zeros = dense.act_order = 0;
  dense.element = static_cast<int64_t>(type);
  dense.layout = layoutId("dense");
  return dense;
}

wna16_status dequantized(TestWeight weight, ScalarType type, bool scaleFirst,
                         HostTensor &values) {
  const wna16_weight &plan = weight.plan;
  values =
      HostTensor(type, {plan.experts, plan.halves * plan.output, plan.input});
  values.poison();
  wna16_convert_plan convert = convertPlan(plan, densePlan(plan, type));
  convert.scale_first = scaleFirst;
  std::vector<wna16_tensor> tensors;
  for (HostTensor &part : weight.parts)
    tensors.push_back(part.view());
  tensors.push_back(values.view());
  wna16_status_clear();
  return wna16_cpu_dequantize(&convert, tensors.data(), tensors.size(), nullptr,
                              0, nullptr);
}

wna16_status quantized(HostTensor values, TestWeight &weight) {
  const wna16_convert_plan convert =
      convertPlan(densePlan(weight.plan, values.type), weight.plan);
  std::vector<wna16_tensor> tensors = {values.view()};
  for (HostTensor &part : weight.parts) {
    part.poison();
    tensors.push_back(part.view());
  }
  wna16_status_clear();
  return wna16_cpu_quantize(&convert, tensors.data(), tensors.size(), nullptr,
                            0, nullptr);
}

TEST(Prepare, DequantizeGivesTheValues) {
  Random random(3);
  WeightOptions options;
  options.zeros = true;
  TestWeight weight = packedWeight(random, 3, 96, 2, 32, options);
  HostTensor values;
  ASSERT_EQ(dequantized(weight, ScalarType::F32, false, values), WNA16_OK)
      << wna16_status_message();
  EXPECT_LE(relativeError(values, weight.values), 1e-7);
}

/// Without a leading 1.
HostTensor withoutExperts(HostTensor tensor) {
  if (!tensor.shape.empty())
    tensor.shape.erase(tensor.shape.begin());
  return tensor;
}

TEST(Prepare, OneMatrixNeedsNoExpertAxis) {
  Random random(5);
  TestWeight weight = packedWeight(random, 1, 96, 1, 32);
  for (HostTensor &part : weight.parts)
    part = withoutExperts(part);
  HostTensor values(ScalarType::F32, {32, 96});
  values.poison();
  const wna16_convert_plan plan =
      convertPlan(weight.plan, densePlan(weight.plan, ScalarType::F32));
  std::vector<wna16_tensor> tensors;
  for (HostTensor &part : weight.parts)
    tensors.push_back(part.view());
  tensors.push_back(values.view());
  wna16_status_clear();
  ASSERT_EQ(wna16_cpu_dequantize(&plan, tensors.data(), tensors.size(), nullptr,
                                 0, nullptr),
            WNA16_OK)
      << wna16_status_message();
  EXPECT_LE(relativeError(values, weight.values), 1e-7);

  TestWeight again = weight;
  ASSERT_EQ(quantized(values, again), WNA16_OK) << wna16_status_message();
  HostTensor restored;
  for (HostTensor &part : again.parts)
    if (!part.shape.empty())
      part.shape.insert(part.shape.begin(), 1);
  ASSERT_EQ(dequantized(again, ScalarType::F32, false, restored), WNA16_OK);
  EXPECT_LE(relativeError(restored, weight.values), 0.1);
}

TEST(Prepare, DequantizeRoundsOnceOrScaleFirst) {
  // An f16 scale does not fit bf16, so that the two orders differ.
  Random random(4);
  TestWeight weight = packedWeight(random, 2, 64, 1, 32);
  HostTensor once, first;
  ASSERT_EQ(dequantized(weight, ScalarType::BF16, false, once), WNA16_OK);
  ASSERT_EQ(dequantized(weight, ScalarType::BF16, true, first), WNA16_OK);
  EXPECT_FALSE(once.sameBytes(first));
  for (int64_t i = 0; i < once.elements(); ++i) {
    const double scale = weight.parts[1].get(i / 32);
    const double steps = std::round(weight.values[i] / scale);
    ASSERT_EQ(once.get(i), roundTo(ScalarType::BF16, steps * scale)) << i;
    ASSERT_EQ(first.get(i), roundTo(ScalarType::BF16,
                                    steps * roundTo(ScalarType::BF16, scale)))
        << i;
  }
}

TEST(Prepare, QuantizeStaysWithinHalfAStep) {
  for (int bits : {4, 8})
    for (bool zeros : {false, true}) {
      Random random(5);
      WeightOptions options;
      options.bits = bits;
      options.zeros = zeros;
      TestWeight weight = packedWeight(random, 2, 80, 2, 16, options);
      HostTensor dense = randomTensor(random, ScalarType::F32, {2, 32, 80});
      ASSERT_EQ(quantized(dense, weight), WNA16_OK) << wna16_status_message();
      HostTensor back;
      ASSERT_EQ(dequantized(weight, ScalarType::F32, false, back), WNA16_OK);
      for (int64_t i = 0; i < dense.elements(); ++i) {
        // 80 inputs are three groups, the last one short.
        const double step = weight.parts[1].get(i / 80 * 3 + i % 80 / 32);
        // Half a step; and an f16 scale, off by at most 2^-11 of itself, moves
        // the far end of the range by that part of all steps.
        const double bound = 0.5 + ((1 << bits) - 1) / 2048.0;
        ASSERT_LE(std::fabs(back.get(i) - dense.get(i)), step * bound)
            << bits << " bits, element " << i;
      }
    }
}

TEST(Prepare, QuantizeRefusesWhatIsNotFinite) {
  Random random(6);
  TestWeight weight = packedWeight(random, 2, 32, 1, 16);
  HostTensor dense = randomTensor(random, ScalarType::F32, {2, 16, 32});
  dense.set(16 * 32 + 5, NAN);
  EXPECT_EQ(quantized(dense, weight), WNA16_OUT_OF_RANGE);
  EXPECT_NE(std::string(wna16_status_message()).find("expert 1, row 0"),
            std::string::npos)
      << wna16_status_message();
  wna16_status_clear();
}

TEST(Prepare, QuantizeRefusesTargetsWithoutCodes) {
  Random random(6);
  HostTensor dense = randomTensor(random, ScalarType::F32, {2, 16, 32});
  TestWeight weight = denseWeight(random, 2, 32, 1, 16, ScalarType::F32);
  EXPECT_EQ(quantized(dense, weight), WNA16_INVALID_ARGUMENT);
  EXPECT_STREQ(wna16_status_message(),
               "quantize: expected codes of target, got dense");
  wna16_status_clear();
}

TEST(Prepare, IndicesOutOfRangeAreRefused) {
  for (int32_t index : {-1, 2, INT32_MAX}) {
    Random random(7);
    WeightOptions options;
    options.actOrder = true;
    TestWeight weight = packedWeight(random, 2, 64, 1, 32, options);
    weight.parts[static_cast<int>(Part::GroupIndex)].as<int32_t>()[64 + 7] =
        index;
    HostTensor values;
    EXPECT_EQ(dequantized(weight, ScalarType::F32, false, values),
              WNA16_OUT_OF_RANGE);
    EXPECT_EQ(std::string(wna16_status_message()),
              "dequantize: expected group indices of expert 1 in 0..1, got " +
                  std::to_string(index) + " at input 7");
  }
  wna16_status_clear();
}

wna16_status convertedWith(const wna16_convert_plan &plan, TestWeight &from,
                           TestWeight &to) {
  std::vector<wna16_tensor> tensors;
  for (TestWeight *weight : {&from, &to})
    for (HostTensor &part : weight->parts)
      tensors.push_back(part.view());
  wna16_status_clear();
  return wna16_cpu_convert(&plan, tensors.data(), tensors.size(), nullptr, 0,
                           nullptr);
}

// Inputs 32 .. 95 and outputs 16 .. 47 of each half.
TEST(Prepare, TakesAWindow) {
  Random random(12);
  TestWeight from = packedWeight(random, 2, 128, 2, 64);
  wna16_weight target = from.plan;
  target.input = 64;
  target.output = 32;
  TestWeight to = emptyWeight(target);
  wna16_convert_plan plan = convertPlan(from.plan, target);
  plan.input = 32;
  plan.inputs = 64;
  plan.output = 16;
  plan.outputs = 32;
  ASSERT_EQ(convertedWith(plan, from, to), WNA16_OK) << wna16_status_message();
  HostTensor values(ScalarType::F32, {2, 64, 64});
  const wna16_convert_plan dequantize =
      convertPlan(target, densePlan(target, ScalarType::F32));
  std::vector<wna16_tensor> tensors;
  for (HostTensor &part : to.parts)
    tensors.push_back(part.view());
  tensors.push_back(values.view());
  ASSERT_EQ(wna16_cpu_dequantize(&dequantize, tensors.data(), tensors.size(),
                                 nullptr, 0, nullptr),
            WNA16_OK)
      << wna16_status_message();
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t r = 0; r < 64; ++r)
      for (int64_t k = 0; k < 64; ++k)
        ASSERT_EQ(values.get((e * 64 + r) * 64 + k),
                  from.at(e, r / 32 * 64 + 16 + r % 32, 32 + k));
  plan.output = 40;
  EXPECT_EQ(convertedWith(plan, from, to), WNA16_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(wna16_status_message()),
            "convert: expected a window within output 64, got 32 from 40 on");
  plan.output = 0;
  plan.outputs = 0; // all, which are too many
  EXPECT_EQ(convertedWith(plan, from, to), WNA16_INVALID_ARGUMENT);
  wna16_status_clear();
}

/// A bias in the order of a layout, for a weight of these extents.
HostTensor convertedBias(HostTensor bias, const char *layout) {
  wna16_weight source = {};
  source.group = -1;
  source.experts = bias.shape[0];
  source.halves = bias.shape[1];
  source.output = bias.shape[2];
  source.input = 256;
  source.code = static_cast<int64_t>(CodeType::U4B8);
  source.layout = layoutId("compressed_tensors");
  wna16_weight target = source;
  target.layout = layoutId(layout);
  HostTensor result(bias.type, bias.shape);
  result.poison();
  const wna16_tensor tensors[] = {bias.view(), result.view()};
  const wna16_convert_plan plan = convertPlan(source, target);
  wna16_status_clear();
  EXPECT_EQ(wna16_cpu_convert_bias(&plan, tensors, 2, nullptr, 0, nullptr),
            WNA16_OK)
      << wna16_status_message();
  return result;
}

TEST(Prepare, BiasOrders) {
  HostTensor bias(ScalarType::F32, {2, 2, 64});
  for (int64_t i = 0; i < bias.elements(); ++i)
    bias.set(i, static_cast<double>(i));
  HostTensor rows = convertedBias(bias, "interleaved");
  HostTensor tiles = convertedBias(bias, "marlin");
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t r = 0; r < 128; ++r) {
      const int64_t i = e * 128 + r;
      EXPECT_EQ(rows.get(e * 128 + r % 64 * 2 + r / 64), i);
      // Address bits, lowest first: r0 r3 r4 r1 r2, then the rest.
      const int64_t at = (r & 1) | (r >> 3 & 1) << 1 | (r >> 4 & 1) << 2 |
                         (r >> 1 & 1) << 3 | (r >> 2 & 1) << 4 | r / 32 * 32;
      EXPECT_EQ(tiles.get(e * 128 + at), i);
    }
}

TEST(Biases, EveryOrderGivesTheSameBits) {
  Random random(8);
  Layer layer = packedLayer(random, 2, 64, 64, 3, 2);
  layer.bias13 = randomTensor(random, ScalarType::F32, {2, 2, 64});
  layer.bias2 = randomTensor(random, ScalarType::F32, {2, 64});
  HostTensor expected = layer.output();
  HostTensor bias2 = layer.bias2;
  bias2.shape = {2, 1, 64};
  for (const char *name : {"interleaved", "gptq", "marlin", "marlin_a8",
                           "humming_mma", "humming_wgmma"}) {
    Layer other = layer;
    other.plan.bias_layout = layoutId(name);
    other.bias13 = convertedBias(layer.bias13, name);
    other.bias2 = convertedBias(bias2, name);
    other.bias2.shape = {2, 64};
    EXPECT_TRUE(expected.sameBytes(other.output())) << name;
  }
}

TEST(Biases, OrdersThatDoNotFit) {
  Random random(9);
  Layer layer = packedLayer(random, 2, 80, 64, 3, 2);
  layer.bias2 = randomTensor(random, ScalarType::F32, {2, 80});
  HostTensor y = layer.emptyOutput();
  layer.plan.bias_layout = layoutId("marlin");
  EXPECT_EQ(layer.run(y), WNA16_INVALID_ARGUMENT);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected bias2 of whole tiles in bias_layout "
               "marlin, got 80 rows; pad to 96");
  layer.plan.bias_layout = 99;
  EXPECT_EQ(layer.run(y), WNA16_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(wna16_status_message()),
            "fused_experts: expected bias_layout from 0 to " +
                std::to_string(wna16::allLayouts().size() - 1) + ", got 99");
  wna16_status_clear();
}

} // namespace
