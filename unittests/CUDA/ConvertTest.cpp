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

wna16_status convertOnCpu(const wna16_convert_plan &plan, TestWeight &source,
                          TestWeight &target) {
  std::vector<wna16_tensor> views;
  for (TestWeight *weight : {&source, &target})
    for (HostTensor &part : weight->parts)
      views.push_back(part.present() ? part.view() : wna16_tensor());
  wna16_status_clear();
  return wna16_cpu_convert(&plan, views.data(),
                           static_cast<int64_t>(views.size()), nullptr, 0,
                           nullptr);
}

/// Converts on the CPU, whose results the golden files pin down, and on the
/// device.
void compare(const wna16_convert_plan &plan, TestWeight &source,
             const std::string &what) {
  TestWeight expected = emptyWeight(plan.target);
  TestWeight actual = emptyWeight(plan.target);
  ASSERT_EQ(convertOnCpu(plan, source, expected), WNA16_OK)
      << what << ": " << wna16_status_message();
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  addParts(actual, tensors);
  ASSERT_EQ(runOnDevice(wna16_cuda_convert, &plan, tensors, kNumParts),
            WNA16_OK)
      << what << ": " << wna16_status_message();
  for (int i = 0; i < kNumParts; ++i)
    EXPECT_TRUE(actual.parts[i].sameBytes(expected.parts[i]))
        << what << ": part " << i;
}

void compare(TestWeight &source, const wna16_weight &target,
             const std::string &what) {
  compare(convertPlan(source.plan, target), source, what);
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
          for (wna16_weight *plan : {&source, &target})
            if (findLayout(plan->layout)->scaleType)
              plan->scale =
                  static_cast<int64_t>(*findLayout(plan->layout)->scaleType);
          if (checkMove(specOf(start.plan), specOf(source)).message.size() ||
              checkMove(specOf(source), specOf(target)).message.size())
            continue;
          TestWeight weight = converted(start, source);
          compare(weight, target,
                  std::string(from.name) + " to " + std::string(to.name) +
                      ", " + std::to_string(bits) + " bits");
          ++pairs;
        }
    }
  EXPECT_GE(pairs, 300);
}

TEST(Convert, DenseLayouts) {
  for (ScalarType type : {ScalarType::BF16, ScalarType::F32})
    for (const char *from :
         {"dense", "interleaved", "transposed", "transposed_interleaved"})
      for (const char *to :
           {"dense", "interleaved", "transposed", "transposed_interleaved"}) {
        Random random(8);
        const TestWeight start = denseWeight(random, 2, 192, 2, 64, type);
        wna16_weight source = start.plan, target = start.plan;
        source.layout = layoutId(from);
        target.layout = layoutId(to);
        target.input += 16;
        target.output += 16;
        TestWeight weight = converted(start, source);
        compare(weight, target, std::string(from) + " to " + to);
      }
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
  compare(source, target, "pad");
  // Inputs alone: halves have no seam, and new inputs of an old group in both
  // of them decode to 0.
  options.group = 64;
  TestWeight cut = packedWeight(random, 3, 224, 2, 128, options);
  target = cut.plan;
  target.layout = layoutId("marlin");
  target.input = 256;
  compare(cut, target, "pad inputs");
  options.actOrder = true;
  TestWeight ordered = packedWeight(random, 3, 256, 1, 128, options);
  target = ordered.plan;
  target.layout = layoutId("marlin");
  target.act_order = static_cast<int64_t>(ActOrder::Sorted);
  compare(ordered, target, "sort");
}

/// From each layout that holds rows out of order, of codes of both widths.
TEST(Convert, SortsRows) {
  for (int bits : {4, 8})
    for (auto [input, output] :
         {std::pair<int64_t, int64_t>{768, 192}, {512, 64}, {96, 320}})
      for (const char *from : {"gptq", "compressed_tensors", "marlin"})
        for (const char *to : {"gptq", "compressed_tensors", "marlin"}) {
          Random random(5);
          WeightOptions options;
          options.bits = bits;
          options.actOrder = true;
          const TestWeight start =
              packedWeight(random, 3, input, 2, output, options);
          wna16_weight source = start.plan, target = start.plan;
          source.layout = layoutId(from);
          target.layout = layoutId(to);
          target.act_order = static_cast<int64_t>(ActOrder::Sorted);
          TestWeight weight = converted(start, source);
          compare(weight, target,
                  std::string(from) + " to " + to + ", input " +
                      std::to_string(input) + ", " + std::to_string(bits) +
                      " bits");
        }
}

/// Sums after blocks of any length, in groups of several blocks, and of no
/// power of two; zero points stored either way.
TEST(Convert, SumsBlocks) {
  for (int64_t group : {16, 32, 64, 128, 256, 384, -1})
    for (const char *from :
         {"gptq", "compressed_tensors", "awq", "marlin", "cpu_panels"})
      for (ZeroPoints zeros :
           {ZeroPoints::None, ZeroPoints::Plain, ZeroPoints::MinusOne})
        for (bool padded : {false, true}) {
          Random random(16);
          WeightOptions options;
          options.group = group;
          options.zeros = zeros != ZeroPoints::None;
          options.scale = ScalarType::BF16;
          const TestWeight start = packedWeight(random, 2, 768, 2, 96, options);
          wna16_weight source = start.plan, target = start.plan;
          source.layout = layoutId(from);
          source.zeros = static_cast<int64_t>(zeros);
          target.layout = layoutId("cpu_blocked");
          target.code = static_cast<int64_t>(CodeType::U4);
          target.zeros = static_cast<int64_t>(ZeroPoints::Plain);
          target.scale = static_cast<int64_t>(ScalarType::F32);
          target.output += padded ? 32 : 0;
          if (checkMove(specOf(start.plan), specOf(source)) ||
              checkMove(specOf(source), specOf(target)))
            continue;
          TestWeight weight = converted(start, source);
          compare(weight, target,
                  std::string(from) + ", group " + std::to_string(group) +
                      (padded ? ", padded" : ""));
        }
}

/// Scales and zero points of other types, narrower, wider and as wide.
TEST(Convert, ChangesSides) {
  const ScalarType types[] = {ScalarType::F16, ScalarType::BF16,
                              ScalarType::F32};
  for (int bits : {4, 8})
    for (ScalarType from : types)
      for (ScalarType to : types)
        for (const char *layout :
             {"gptq", "compressed_tensors", "marlin_a8", "cpu_panels"})
          for (bool padded : {false, true}) {
            Random random(17);
            WeightOptions options;
            options.bits = bits;
            options.zeros = true;
            options.scale = from;
            TestWeight source = packedWeight(random, 2, 512, 2, 192, options);
            wna16_weight target = source.plan;
            target.layout = layoutId(layout);
            target.zeros = static_cast<int64_t>(ZeroPoints::MinusOne);
            target.scale = static_cast<int64_t>(to);
            target.input += padded ? 64 : 0;
            target.output += padded ? 64 : 0;
            if (checkMove(specOf(source.plan), specOf(target)))
              continue;
            compare(source, target, layout);
            TestWeight moved = converted(source, target);
            wna16_weight back = moved.plan;
            back.layout = layoutId("awq");
            back.zeros = static_cast<int64_t>(ZeroPoints::Plain);
            if (!checkMove(specOf(moved.plan), specOf(back)))
              compare(moved, back, std::string(layout) + " to awq");
          }
}

/// Extents without factors of two, runs of single words, and blocks that the
/// edges cut.
TEST(Convert, OddExtents) {
  for (auto [input, output] : {std::pair<int64_t, int64_t>{250, 77},
                               {96, 40},
                               {72, 64},
                               {2048 + 64, 72}})
    for (const char *from : {"compressed_tensors", "gptq", "awq"})
      for (const char *to : {"compressed_tensors", "gptq", "awq"}) {
        Random random(9);
        WeightOptions options;
        options.group = 64;
        options.zeros = true;
        const TestWeight start =
            packedWeight(random, 2, input, 2, output, options);
        wna16_weight source = start.plan, target = start.plan;
        source.layout = layoutId(from);
        target.layout = layoutId(to);
        target.zeros = static_cast<int64_t>(ZeroPoints::MinusOne);
        TestWeight weight = converted(start, source);
        compare(weight, target,
                std::string(from) + " to " + to + " " + std::to_string(input));
      }
}

TEST(Convert, TakesWindows) {
  for (const char *layout : {"gptq", "compressed_tensors", "marlin"})
    for (bool padded : {false, true}) {
      Random random(10);
      WeightOptions options;
      options.group = 64;
      options.zeros = true;
      const TestWeight start = packedWeight(random, 2, 512, 2, 256, options);
      wna16_weight stored = start.plan;
      stored.layout = layoutId(layout);
      TestWeight source = converted(start, stored);
      wna16_weight target = source.plan;
      target.layout = layoutId("marlin");
      target.group = 32;
      target.input = 256;
      target.output = 128;
      wna16_convert_plan plan = convertPlan(source.plan, target);
      plan.input = 96;
      plan.inputs = padded ? 160 : 256;
      plan.output = padded ? 40 : 128;
      plan.outputs = padded ? 100 : 128;
      compare(plan, source, std::string(layout) + (padded ? ", padded" : ""));
    }
}

/// A shard of rows that belong to any group keeps all groups.
TEST(Convert, TakesWindowsOfIndexedRows) {
  Random random(14);
  WeightOptions options;
  options.group = 32;
  options.actOrder = true;
  TestWeight source = packedWeight(random, 3, 256, 1, 128, options);
  wna16_weight target = source.plan;
  target.layout = layoutId("gptq");
  target.input = 128;
  target.kept_groups = 8;
  wna16_convert_plan plan = convertPlan(source.plan, target);
  plan.input = 128;
  plan.inputs = 128;
  compare(plan, source, "kept groups");
}

TEST(Convert, FoldsScales) {
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16})
    for (int64_t group : {int64_t(-1), int64_t(128)}) {
      Random random(11);
      WeightOptions options;
      options.scale = type;
      options.group = group;
      TestWeight source = packedWeight(random, 3, 256, 2, 128, options);
      wna16_weight target = source.plan;
      target.layout = layoutId("marlin_a8");
      target.scale = static_cast<int64_t>(ScalarType::I16);
      compare(source, target, "fold");
      TestWeight folded = converted(source, target);
      target.layout = layoutId("gptq");
      compare(folded, target, "folded");
    }
}

TEST(Convert, RewritesCodes) {
  for (const char *layout : {"compressed_tensors", "gptq", "awq", "marlin"})
    for (int64_t group : {32, 128, 384, -1})
      for (bool zeros : {false, true})
        for (int64_t padding : {0, 64}) {
          Random random(12);
          WeightOptions options;
          options.zeros = zeros;
          options.group = group;
          const TestWeight start =
              packedWeight(random, 2, 768, 2, 192, options);
          wna16_weight stored = start.plan;
          stored.layout = layoutId(layout);
          TestWeight source = converted(start, stored);
          wna16_weight target = source.plan;
          target.layout = layoutId("marlin_a8");
          target.code = static_cast<int64_t>(CodeType::U4FP8);
          target.input += padding;
          target.output += padding;
          if (checkMove(specOf(source.plan), specOf(target)))
            continue;
          const std::string what =
              std::string(layout) + ", group " + std::to_string(group);
          compare(source, target, "fp8 from " + what);
          TestWeight rewritten = converted(source, target);
          target.code = source.plan.code;
          target.layout = layoutId(layout);
          compare(rewritten, target, "fp8 to " + what);
        }
}

TEST(Bias, EqualsTheCpu) {
  for (const char *layout : {"marlin", "interleaved", "gptq"})
    for (ScalarType type : {ScalarType::F16, ScalarType::F32}) {
      Random random(13);
      wna16_weight source = packedWeight(random, 3, 64, 2, 96).plan;
      wna16_weight target = source;
      target.layout = layoutId(layout);
      target.output = 64;
      wna16_convert_plan plan = convertPlan(source, target);
      plan.output = 32;
      plan.outputs = 40;
      HostTensor in = randomTensor(random, type, {3, 2, 96});
      HostTensor out[2] = {HostTensor(type, {3, 2, 64}),
                           HostTensor(type, {3, 2, 64})};
      wna16_tensor views[] = {in.view(), out[0].view()};
      wna16_status_clear();
      ASSERT_EQ(wna16_cpu_convert_bias(&plan, views, 2, nullptr, 0, nullptr),
                WNA16_OK)
          << wna16_status_message();
      ASSERT_EQ(runOnDevice(wna16_cuda_convert_bias, &plan, {&in, &out[1]}, 1),
                WNA16_OK)
          << wna16_status_message();
      EXPECT_TRUE(out[0].sameBytes(out[1])) << layout;
    }
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
