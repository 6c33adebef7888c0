//===- ExpertsTest.cpp - Fused experts against the reference --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace wna16test;

namespace {

void expectExact(Layer &layer, const char *what = "") {
  HostTensor y = layer.output();
  EXPECT_LE(relativeError(y, layer.reference()), tolerance(y.type)) << what;
}

/// x's type in, both output types out.
void expectExactInAllTypes(
    const std::function<Layer(Random &, ScalarType)> &make) {
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16}) {
    Random random(7);
    Layer layer = make(random, type);
    layer.outputType = type;
    expectExact(layer);
  }
}

TEST(Formats, B08_GroupsThatDoNotFillATile) {
  Random random(8);
  Layer layer = packedLayer(random, 4, 256, 544, 1, 2);
  expectExact(layer);
}

TEST(Formats, B14_ZeroPointsOfEveryGroup) {
  for (int64_t group : {32, 64, 128, -1})
    expectExactInAllTypes([&](Random &random, ScalarType type) {
      WeightOptions options;
      options.group = group;
      options.zeros = true;
      return packedLayer(random, 4, 256, 128, 16, 2, type, options);
    });
}

TEST(Formats, B31_HalfScalesUnderBfloatActivations) {
  for (const char *layout : {"gptq", "awq"}) {
    Random random(31);
    WeightOptions options;
    options.group = 128;
    Layer layer =
        packedLayer(random, 2, 256, 128, 2, 1, ScalarType::BF16, options);
    for (TestWeight *weight : {&layer.w13, &layer.w2}) {
      wna16_weight target = weight->plan;
      target.layout = layoutId(layout);
      *weight = converted(*weight, target);
    }
    layer.plan.w13 = layer.w13.plan;
    layer.plan.w2 = layer.w2.plan;
    layer.outputType = ScalarType::BF16;
    EXPECT_LE(relativeError(layer.output(), layer.reference()),
              tolerance(ScalarType::BF16))
        << layout;
  }
}

TEST(Formats, EightBitCodes) {
  for (bool zeros : {false, true}) {
    Random random(3);
    WeightOptions options;
    options.bits = 8;
    options.zeros = zeros;
    options.group = -1;
    Layer layer =
        packedLayer(random, 3, 96, 64, 5, 2, ScalarType::F32, options);
    expectExact(layer);
  }
}

TEST(Formats, B25_ActOrderByIndex) {
  expectExactInAllTypes([](Random &random, ScalarType type) {
    WeightOptions options;
    options.group = 64;
    options.actOrder = true;
    return packedLayer(random, 3, 256, 128, 5, 2, type, options);
  });
}

TEST(Formats, B25_ActOrderSorted) {
  Random random(25);
  WeightOptions options;
  options.group = 64;
  options.actOrder = true;
  Layer layer =
      packedLayer(random, 3, 256, 128, 5, 2, ScalarType::F32, options);
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    wna16_weight sorted = weight->plan;
    sorted.act_order = static_cast<int64_t>(wna16::ActOrder::Sorted);
    *weight = converted(*weight, sorted);
  }
  layer.plan.w13 = layer.w13.plan;
  layer.plan.w2 = layer.w2.plan;
  expectExact(layer);
}

TEST(Formats, OrdersOutOfRangeAreRefused) {
  for (auto order : {wna16::ActOrder::Index, wna16::ActOrder::Sorted}) {
    Random random(26);
    WeightOptions options;
    options.actOrder = true;
    Layer layer =
        packedLayer(random, 2, 64, 64, 4, 2, ScalarType::F32, options);
    const bool sorted = order == wna16::ActOrder::Sorted;
    wna16_weight target = layer.w2.plan;
    target.act_order = static_cast<int64_t>(order);
    layer.w2 = converted(layer.w2, target);
    layer.plan.w2 = target;
    const auto part =
        sorted ? wna16::Part::Permutation : wna16::Part::GroupIndex;
    for (int32_t index : {-1, sorted ? 64 : 2, INT32_MIN}) {
      layer.w2.parts[static_cast<int>(part)].as<int32_t>()[64 + 3] = index;
      HostTensor y = layer.emptyOutput();
      EXPECT_EQ(layer.run(y), WNA16_OUT_OF_RANGE);
      EXPECT_EQ(std::string(wna16_status_message()),
                "fused_experts: expected values from 0 to " +
                    std::to_string(sorted ? 63 : 1) + " in w2 " +
                    std::string(name(part)) + " of expert 1, got " +
                    std::to_string(index) + " at position 3");
    }
  }
  wna16_status_clear();
}

TEST(Formats, FoldedScalesAreHonoured) {
  Random random(27);
  Layer layer = packedLayer(random, 3, 128, 128, 5, 2);
  const std::vector<double> expected = layer.reference();
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    wna16_weight target = weight->plan;
    target.scale = static_cast<int64_t>(ScalarType::I16);
    *weight = converted(*weight, target);
  }
  layer.plan.w13 = layer.w13.plan;
  layer.plan.w2 = layer.w2.plan;
  // A folded scale is off by at most half a unit, of which the largest scale
  // has thousands.
  EXPECT_LE(relativeError(layer.output(), expected), 1e-3);
}

TEST(Formats, DenseWeightsHaveNoGroups) {
  // A plan may keep what the packed weight had: nothing stands for it.
  for (int64_t order : {1, 2}) {
    Random random(55);
    Layer layer = makeLayer(random, denseWeight(random, 4, 64, 2, 32),
                            denseWeight(random, 4, 32, 1, 64), 7, 2);
    HostTensor expected = layer.output();
    for (wna16_weight *weight : {&layer.plan.w13, &layer.plan.w2}) {
      weight->act_order = order;
      weight->zeros = 1;
      weight->group = 32;
      weight->kept_groups = 5;
    }
    EXPECT_TRUE(expected.sameBytes(layer.output())) << order;
  }
}

TEST(Formats, B55_PackedGateUpAndDenseDown) {
  for (ScalarType dense :
       {ScalarType::BF16, ScalarType::F16, ScalarType::F32}) {
    Random random(55);
    WeightOptions options;
    options.group = 128;
    options.zeros = true;
    Layer layer =
        makeLayer(random, packedWeight(random, 4, 128, 2, 128, options),
                  denseWeight(random, 4, 128, 1, 128, dense), 7, 2);
    expectExact(layer);
    layer = makeLayer(random, denseWeight(random, 4, 128, 2, 128, dense),
                      packedWeight(random, 4, 128, 1, 128, options), 7, 2);
    expectExact(layer);
  }
}

TEST(Activations, B40_EachAgainstTheFormula) {
  for (int64_t activation : {WNA16_SILU, WNA16_GELU, WNA16_GELU_TANH,
                             WNA16_RELU2, WNA16_SWIGLUOAI, WNA16_SWIGLUSTEP})
    for (double limit : {double(INFINITY), 0.5}) {
      Random random(40);
      Layer layer = packedLayer(random, 8, 256, 704, 3, 8);
      layer.plan.activation = activation;
      layer.plan.alpha = 1.702;
      layer.plan.beta = 1;
      layer.plan.limit =
          activation == WNA16_SWIGLUSTEP && limit > 1 ? 7.0 : limit;
      expectExact(layer, std::to_string(activation).c_str());
    }
}

TEST(Activations, WithoutGate) {
  for (int64_t activation :
       {WNA16_SILU, WNA16_GELU, WNA16_GELU_TANH, WNA16_RELU2}) {
    Random random(4);
    Layer layer = packedLayer(random, 4, 64, 96, 5, 2, ScalarType::F32, {}, 1);
    layer.plan.activation = activation;
    expectExact(layer, std::to_string(activation).c_str());
  }
}

TEST(Activations, B41_NonGatedExpertsHaveNRows) {
  Random random(41);
  Layer layer =
      packedLayer(random, 4, 2688, 1856, 2, 2, ScalarType::BF16, {}, 1);
  layer.plan.activation = WNA16_RELU2;
  layer.outputType = ScalarType::BF16;
  expectExact(layer);
  // Codes with the rows of a gated weight are refused.
  layer.plan.w13.output /= 2;
  layer.plan.w2.input /= 2;
  HostTensor y = layer.emptyOutput();
  EXPECT_EQ(layer.run(y), WNA16_INVALID_ARGUMENT);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected w13 codes of shape [4, 928, 336], got "
               "rank 3, [4, 1856, 336]");
}

TEST(Activations, B43_SwigluParametersAndLayouts) {
  for (const char *layout : {"compressed_tensors", "interleaved"})
    for (double alpha : {1.0, 1.702})
      for (double beta : {0.0, 1.0})
        for (double limit : {double(INFINITY), 7.0}) {
          Random random(43);
          Layer layer = packedLayer(random, 2, 64, 32, 4, 2);
          // Large enough that the limit matters.
          for (int64_t i = 0; i < layer.x.elements(); ++i)
            layer.x.set(i, layer.x.get(i) * 8);
          layer.plan.activation = WNA16_SWIGLUOAI;
          layer.plan.alpha = alpha;
          layer.plan.beta = beta;
          layer.plan.limit = limit;
          wna16_weight target = layer.w13.plan;
          target.layout = layoutId(layout);
          layer.w13 = converted(layer.w13, target);
          layer.plan.w13 = target;
          expectExact(layer, layout);
        }
}

TEST(Biases, B44_AddedOnceAndInTheRightPlace) {
  for (ScalarType type : {ScalarType::F32, ScalarType::BF16}) {
    Random random(44);
    Layer layer = packedLayer(random, 2, 2880, 2880, 2, 2);
    layer.plan.activation = WNA16_SWIGLUOAI;
    layer.plan.alpha = 1.702;
    layer.plan.beta = 1;
    layer.plan.limit = 7;
    layer.bias13 = randomTensor(random, type, {2, 2, 2880});
    layer.bias2 = randomTensor(random, type, {2, 2880});
    expectExact(layer);
  }
}

TEST(Routing, B67_WeightOnInputAndOnOutput) {
  Random random(67);
  Layer layer = packedLayer(random, 4, 64, 64, 6, 1);
  HostTensor after = layer.output();
  expectExact(layer);
  layer.plan.weight_on_input = 1;
  expectExact(layer);
  EXPECT_FALSE(after.sameBytes(layer.output()));
}

TEST(Routing, B68_SameExpertTwice) {
  Random random(68);
  Layer layer = packedLayer(random, 4, 32, 32, 2, 2);
  layer.ids = indexTensor({2, 2}, {3, 3, 0, 3});
  const double weights[] = {0.25, 0.75, 0.5, 0.5};
  for (int i = 0; i < 4; ++i)
    layer.weights.set(i, weights[i]);
  expectExact(layer);
}

TEST(Parallel, ExpertMapAndMissingExperts) {
  Random random(70);
  Layer layer = packedLayer(random, 4, 64, 64, 6, 2);
  layer.expertMap = indexTensor({8}, {-1, 2, -1, 0, 3, -1, 1, -1});
  layer.ids = indexTensor({6, 2}, {1, 3, 0, 6, -1, 4, 2, 5, 7, -1, 3, 3});
  expectExact(layer);
  HostTensor y = layer.output();
  for (int64_t k = 0; k < 64; ++k)
    EXPECT_EQ(y.get(3 * 64 + k), 0) << "nobody's token";
}

TEST(Parallel, B70_ExpertMapBeyondTheLocalExperts) {
  Random random(70);
  Layer layer = packedLayer(random, 4, 64, 64, 1, 2);
  layer.expertMap = indexTensor({8}, {-1, -1, -1, -1, -1, -1, 3, 4});
  HostTensor y = layer.emptyOutput();
  EXPECT_EQ(layer.run(y), WNA16_OUT_OF_RANGE);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected values from -1 to 3 in expert_map, got "
               "4 at position 7");
}

TEST(Parallel, IdsOutOfRange) {
  for (int32_t id : {4, -2, INT32_MAX, INT32_MIN}) {
    Random random(70);
    Layer layer = packedLayer(random, 4, 64, 64, 1, 2);
    layer.ids = indexTensor({1, 2}, {0, id});
    HostTensor y = layer.emptyOutput();
    EXPECT_EQ(layer.run(y), WNA16_OUT_OF_RANGE);
    EXPECT_EQ(std::string(wna16_status_message()),
              "fused_experts: expected values from -1 to 3 in topk_ids, got " +
                  std::to_string(id) + " at position 1");
  }
}

TEST(Shapes, B71_PaddingStaysPrivate) {
  // K 80 padded to 96, N 48 padded to 64; x and y keep 80 columns.
  Random random(71);
  WeightOptions options;
  options.group = 16;
  Layer layer = packedLayer(random, 4, 80, 48, 3, 4, ScalarType::F32, options);
  const std::vector<double> expected = layer.reference();
  HostTensor unpadded = layer.output();
  layer.plan.w13.input = 96;
  layer.plan.w13.output = layer.plan.w2.input = 64;
  layer.plan.w2.output = 96;
  layer.w13 = converted(layer.w13, layer.plan.w13);
  layer.w2 = converted(layer.w2, layer.plan.w2);
  HostTensor y = layer.output();
  EXPECT_EQ(y.shape, (std::vector<int64_t>{3, 80}));
  EXPECT_LE(relativeError(y, expected), 1e-6);
  EXPECT_TRUE(y.sameBytes(unpadded)) << "padding adds zeros only";
}

/// The layer with N padded, in fresh buffers whose bytes are all `before`.
Layer paddedLayer(Layer layer, const char *layout, int64_t width,
                  uint8_t before) {
  const wna16_weight plain = layer.plan.w13;
  layer.plan.w13.output = layer.plan.w2.input = width;
  layer.plan.w13.layout = layer.plan.w2.layout = layoutId(layout);
  layer.w13 = converted(layer.w13, layer.plan.w13, before);
  layer.w2 = converted(layer.w2, layer.plan.w2, before);
  HostTensor bias = layer.bias13;
  layer.bias13 = HostTensor(bias.type, {plain.experts, plain.halves, width});
  layer.bias13.fill(before);
  wna16_weight target = layer.plan.w13;
  target.layout = plain.layout; // of biases: the natural order
  const wna16_convert_plan plan = convertPlan(plain, target);
  const wna16_tensor tensors[] = {bias.view(), layer.bias13.view()};
  EXPECT_EQ(wna16_cpu_convert_bias(&plan, tensors, 2, nullptr, 0, nullptr),
            WNA16_OK)
      << wna16_status_message();
  return layer;
}

TEST(Shapes, B05_PadsAreWritten) {
  for (bool zeros : {false, true}) {
    Random random(5);
    WeightOptions options;
    options.zeros = zeros;
    Layer layer =
        packedLayer(random, 8, 256, 704, 4, 8, ScalarType::F32, options);
    layer.plan.activation = WNA16_GELU_TANH;
    layer.bias13 = randomTensor(random, ScalarType::F32, {8, 2, 704});
    const std::vector<double> expected = layer.reference();
    for (const char *layout : {"cpu_panels", "marlin", "compressed_tensors"}) {
      Layer clean = paddedLayer(layer, layout, 768, 0);
      Layer poisoned = paddedLayer(layer, layout, 768, 0xff);
      for (int part = 0; part < wna16::kNumParts; ++part) {
        EXPECT_TRUE(clean.w13.parts[part].sameBytes(poisoned.w13.parts[part]))
            << layout << ", part " << part << " of w13";
        EXPECT_TRUE(clean.w2.parts[part].sameBytes(poisoned.w2.parts[part]))
            << layout << ", part " << part << " of w2";
      }
      EXPECT_TRUE(clean.bias13.sameBytes(poisoned.bias13)) << layout;
      HostTensor y = poisoned.output();
      EXPECT_TRUE(y.sameBytes(clean.output())) << layout;
      EXPECT_LE(relativeError(y, expected), tolerance(y.type)) << layout;
    }
  }
}

TEST(Empty, B73_IdleExpertsAreNeverRead) {
  Random random(73);
  Layer layer = packedLayer(random, 16, 64, 64, 1, 1);
  layer.ids = indexTensor({1, 1}, {5});
  const std::vector<double> expected = layer.reference();
  for (TestWeight *weight : {&layer.w13, &layer.w2})
    for (int64_t e = 0; e < 16; ++e) {
      HostTensor &scales = weight->parts[1];
      const int64_t count = scales.elements() / 16;
      for (int64_t i = 0; e != 5 && i < count; ++i)
        scales.set(e * count + i, NAN);
    }
  EXPECT_LE(relativeError(layer.output(), expected), 1e-6);
}

TEST(Empty, NoTokens) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 0, 2);
  HostTensor y = layer.emptyOutput();
  EXPECT_EQ(layer.run(y), WNA16_OK) << wna16_status_message();
}

TEST(Empty, NoSlotHere) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 2, 2);
  layer.ids = indexTensor({2, 2}, {-1, -1, -1, -1});
  for (double value : layer.output().values())
    EXPECT_EQ(value, 0);
}

TEST(Overflow, B76_ManyTokens) {
  Random random(76);
  Layer layer = packedLayer(random, 2, 32, 32, 16401, 2);
  HostTensor y = layer.output();
  const std::vector<double> expected = layer.reference();
  for (int64_t t = 0; t < 16401; ++t) {
    HostTensor row(ScalarType::F32, {32});
    for (int64_t k = 0; k < 32; ++k)
      row.set(k, y.get(t * 32 + k));
    // Row by row, relative to that row: one wrong row must not drown.
    ASSERT_LE(relativeError(row, {expected.begin() + t * 32,
                                  expected.begin() + (t + 1) * 32}),
              tolerance(ScalarType::F32))
        << "row " << t;
  }
}

TEST(Limits, B77_ExpertCounts) {
  for (int64_t experts :
       {1, 2, 60, 64, 128, 256, 384, 512, 896, 1023, 1024, 1025}) {
    Random random(77);
    Layer layer = packedLayer(random, experts, 32, 32, 33, 1);
    expectExact(layer, std::to_string(experts).c_str());
  }
}

TEST(Numerics, B79_AccumulatesInF32) {
  // Each expert gives 5000; 6 * 0.1 * 16 of them are 48000, finite in f16.
  Random random(79);
  Layer layer =
      makeLayer(random, denseWeight(random, 6, 32, 1, 32),
                denseWeight(random, 6, 32, 1, 32), 1, 6, ScalarType::F16);
  layer.bias2 = HostTensor(ScalarType::F32, {6, 32});
  for (int64_t i = 0; i < 6 * 32; ++i)
    layer.bias2.set(i, 5000);
  for (int64_t k = 0; k < 32; ++k)
    layer.x.set(k, 0);
  for (int64_t k = 0; k < 6; ++k)
    layer.weights.set(k, 0.1f * 16);
  layer.outputType = ScalarType::F16;
  for (double value : layer.output().values())
    EXPECT_EQ(value, 48000);
  // What is beyond f16 is infinity, for all to see.
  layer.weights.set(0, 10);
  for (double value : layer.output().values())
    EXPECT_EQ(value, INFINITY);
}

TEST(Numerics, ActivationIsRoundedOnce) {
  // An f32 output shows that nothing else is rounded to 16 bits.
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16}) {
    Random random(5);
    Layer layer = packedLayer(random, 4, 256, 128, 7, 2, type);
    EXPECT_LE(relativeError(layer.output(), layer.reference()), 1e-5);
  }
}

TEST(Batched, RowsOfEachExpert) {
  Random random(9);
  Layer layer = packedLayer(random, 4, 64, 64, 1, 1);
  layer.plan.batched = 1;
  layer.weights = {};
  layer.x = randomTensor(random, ScalarType::F32, {4, 5, 64});
  layer.ids = indexTensor({4}, {3, 0, 5, 1});
  for (int64_t e = 0; e < 4; ++e)
    for (int64_t t = layer.ids.as<int32_t>()[e]; t < 5; ++t)
      for (int64_t k = 0; k < 64; ++k)
        layer.x.set((e * 5 + t) * 64 + k, NAN);
  HostTensor y = layer.output();
  EXPECT_LE(relativeError(y, layer.reference()), 1e-6);
  for (int64_t k = 0; k < 5 * 64; ++k)
    EXPECT_EQ(y.get(5 * 64 + k), 0) << "beyond the tokens of expert 1";
}

TEST(Batched, CountsOutOfRange) {
  for (int32_t count : {-1, 6}) {
    Random random(9);
    Layer layer = packedLayer(random, 2, 64, 64, 1, 1);
    layer.plan.batched = 1;
    layer.weights = {};
    layer.x = randomTensor(random, ScalarType::F32, {2, 5, 64});
    layer.ids = indexTensor({2}, {0, count});
    HostTensor y = layer.emptyOutput();
    EXPECT_EQ(layer.run(y), WNA16_OUT_OF_RANGE);
    EXPECT_EQ(std::string(wna16_status_message()),
              "fused_experts: expected values from 0 to 5 in tokens of each "
              "expert, got " +
                  std::to_string(count) + " at position 1");
  }
}

} // namespace
