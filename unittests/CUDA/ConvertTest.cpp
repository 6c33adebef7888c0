//===- ConvertTest.cpp - Conversion on a device -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "Layout/Move.h"

#include "gtest/gtest.h"

using namespace wna16;
using namespace wna16test;

namespace {

/// Converts on the CPU, whose results the golden files pin down, and on the
/// device; false when the pair is not one that the device takes.
bool compare(TestWeight &source, const wna16_weight &target,
             const std::string &what) {
  const wna16_convert_plan plan = convertPlan(source.plan, target);
  TestWeight expected = converted(source, target);
  TestWeight actual = emptyWeight(target);
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  addParts(actual, tensors);
  const wna16_status status =
      runOnDevice(wna16_cuda_convert, &plan, tensors, kNumParts);
  if (status == WNA16_UNSUPPORTED)
    return false;
  EXPECT_EQ(status, WNA16_OK) << what << ": " << wna16_status_message();
  for (int i = 0; i < kNumParts; ++i)
    EXPECT_TRUE(actual.parts[i].sameBytes(expected.parts[i]))
        << what << ": part " << i;
  return true;
}

TEST(Convert, EveryPairOfLayouts) {
  int pairs = 0;
  for (int bits : {4, 8})
    for (bool zeros : {false, true}) {
      Random random(3);
      WeightOptions options;
      options.bits = bits;
      options.zeros = zeros;
      options.group = 32;
      options.scale = ScalarType::BF16;
      const TestWeight start = packedWeight(random, 2, 256, 2, 256, options);
      for (const LayoutEntry &from : allLayouts())
        for (const LayoutEntry &to : allLayouts()) {
          wna16_weight source = start.plan, target = start.plan;
          source.layout = from.id;
          target.layout = to.id;
          if (checkMove(specOf(start.plan), specOf(source)).message.size() ||
              checkMove(specOf(source), specOf(target)).message.size())
            continue;
          TestWeight weight = converted(start, source);
          pairs +=
              compare(weight, target,
                      std::string(from.name) + " to " + std::string(to.name) +
                          ", " + std::to_string(bits) + " bits");
        }
    }
  EXPECT_GE(pairs, 200);
}

TEST(Convert, PadsRegroupsAndSorts) {
  Random random(4);
  WeightOptions options;
  options.group = 64;
  options.zeros = true;
  TestWeight source = packedWeight(random, 3, 192, 2, 96, options);
  wna16_weight target = source.plan;
  target.layout = layoutId("marlin");
  target.group = 32;
  target.input = 256;
  target.output = 128;
  target.scale = static_cast<int64_t>(ScalarType::BF16);
  EXPECT_TRUE(compare(source, target, "pad"));
  options.actOrder = true;
  TestWeight ordered = packedWeight(random, 3, 256, 1, 128, options);
  target = ordered.plan;
  target.layout = layoutId("marlin");
  target.act_order = static_cast<int64_t>(ActOrder::Sorted);
  EXPECT_TRUE(compare(ordered, target, "sort"));
}

TEST(Dequantize, EqualsTheCpu) {
  for (int64_t first : {0, 1}) {
    Random random(6);
    WeightOptions options;
    options.zeros = true;
    TestWeight source = packedWeight(random, 2, 96, 2, 40, options);
    TestWeight shape = denseWeight(random, 2, 96, 2, 40, ScalarType::BF16);
    wna16_convert_plan plan = convertPlan(source.plan, shape.plan);
    plan.scale_first = first;
    HostTensor out[2] = {HostTensor(ScalarType::BF16, {2, 80, 96}),
                         HostTensor(ScalarType::BF16, {2, 80, 96})};
    std::vector<HostTensor *> tensors;
    addParts(source, tensors);
    std::vector<wna16_tensor> views;
    for (HostTensor *tensor : tensors)
      views.push_back(tensor->view());
    views.push_back(out[0].view());
    wna16_status_clear();
    ASSERT_EQ(wna16_cpu_dequantize(&plan, views.data(),
                                   static_cast<int64_t>(views.size()), nullptr,
                                   0, nullptr),
              WNA16_OK);
    tensors.push_back(&out[1]);
    ASSERT_EQ(runOnDevice(wna16_cuda_dequantize, &plan, tensors, 1), WNA16_OK)
        << wna16_status_message();
    EXPECT_TRUE(out[0].sameBytes(out[1]));
  }
}

/// Values lie in the order of inputs, which sorted rows have lost.
TEST(Dequantize, RefusesSortedRows) {
  Random random(15);
  WeightOptions options;
  options.actOrder = true;
  const TestWeight start = packedWeight(random, 1, 64, 1, 64, options);
  wna16_weight sorted = start.plan;
  sorted.act_order = static_cast<int64_t>(ActOrder::Sorted);
  TestWeight source = converted(start, sorted);
  TestWeight shape = denseWeight(random, 1, 64, 1, 64, ScalarType::BF16);
  const wna16_convert_plan plan = convertPlan(source.plan, shape.plan);
  HostTensor out(ScalarType::BF16, {1, 64, 64});
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  tensors.push_back(&out);
  EXPECT_EQ(runOnDevice(wna16_cuda_dequantize, &plan, tensors, 1),
            WNA16_INVALID_ARGUMENT);
  EXPECT_NE(std::string(wna16_status_message())
                .find("dequantise before the rows are sorted"),
            std::string::npos);
}

} // namespace
