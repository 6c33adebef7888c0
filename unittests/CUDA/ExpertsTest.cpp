//===- ExpertsTest.cpp - Fused experts on a device ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

using namespace wna16;
using namespace wna16test;

namespace {

/// What the issue of each type's rounding may come to.
double bound(ScalarType type) {
  return type == ScalarType::BF16  ? 5e-3
         : type == ScalarType::F16 ? 8e-4
                                   : 1e-5;
}

void expectRight(Layer &layer, const std::string &what) {
  HostTensor y = outputOnDevice(layer);
  EXPECT_LE(relativeError(y, layer.reference()),
            bound(static_cast<ScalarType>(layer.plan.element)))
      << what;
  EXPECT_TRUE(y.sameBytes(outputOnDevice(layer)))
      << what << ": another run gives other bits";
}

/// Both weights in another layout, scales of the element type.
void bringInto(Layer &layer, const char *layout, ScalarType type) {
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    wna16_weight target = weight->plan;
    target.layout = layoutId(layout);
    target.element = static_cast<int64_t>(type);
    target.scale = static_cast<int64_t>(type);
    *weight = converted(*weight, target);
  }
  layer.plan.w13 = layer.w13.plan;
  layer.plan.w2 = layer.w2.plan;
}

/// Tokens, scales and results of `type`, weights in `layout`.
Layer layerIn(const char *layout, Random &random, int64_t experts,
              int64_t hidden, int64_t width, int64_t tokens, int64_t topK,
              ScalarType type, WeightOptions options = {}) {
  options.scale = type;
  Layer layer =
      packedLayer(random, experts, hidden, width, tokens, topK, type, options);
  layer.outputType = type;
  bringInto(layer, layout, type);
  return layer;
}

Layer marlinLayer(Random &random, int64_t experts, int64_t hidden,
                  int64_t width, int64_t tokens, int64_t topK,
                  const WeightOptions &options = {}) {
  return layerIn("marlin", random, experts, hidden, width, tokens, topK,
                 ScalarType::BF16, options);
}

struct TiledCase {
  const char *layout;
  ScalarType type;
  int bits;
  int64_t group;
  bool zeros;
};

TEST(Tiled, AllCodesGroupsAndNumbersOfTokens) {
  const TiledCase cases[] = {
      {"marlin", ScalarType::BF16, 4, 128, false},
      {"marlin", ScalarType::BF16, 4, 64, true},
      {"marlin", ScalarType::BF16, 4, 32, false},
      {"marlin", ScalarType::BF16, 4, -1, false},
      {"marlin", ScalarType::F16, 4, 128, true},
      {"marlin", ScalarType::F16, 4, 32, true},
      {"marlin", ScalarType::BF16, 8, 128, false},
      {"marlin", ScalarType::BF16, 8, 32, false},
      {"marlin", ScalarType::F16, 8, -1, false},
      {"humming_wgmma", ScalarType::BF16, 4, 128, false},
      {"humming_wgmma", ScalarType::BF16, 4, 32, true},
      {"humming_wgmma", ScalarType::F16, 4, 64, false},
      {"humming_wgmma", ScalarType::BF16, 8, 64, false},
      {"humming_mma", ScalarType::BF16, 4, 128, true},
  };
  for (const TiledCase &c : cases)
    // Streamed, wide with tiles of 32, 64 and 128 and most numbers of columns.
    for (int64_t tokens : {1, 3, 17, 40, 60, 130, 300, 700}) {
      Random random(static_cast<unsigned>(tokens));
      WeightOptions options;
      options.bits = c.bits;
      options.group = c.group;
      options.zeros = c.zeros;
      Layer layer =
          layerIn(c.layout, random, 6, 384, 256, tokens, 2, c.type, options);
      expectRight(layer, std::string(c.layout) + " " + std::to_string(c.bits) +
                             " bits, group " + std::to_string(c.group) + ", " +
                             std::to_string(tokens) + " tokens");
    }
}

TEST(Tiled, OddExtents) {
  // Inputs that fill no unit, an odd number of row tiles.
  for (int64_t tokens : {2, 100}) {
    Random random(11);
    Layer layer = marlinLayer(random, 3, 320, 64, tokens, 2);
    expectRight(layer, std::to_string(tokens) + " tokens");
  }
}

TEST(Tiled, BiasesActivationsAndWeightsOnInput) {
  const std::pair<int64_t, double> activations[] = {
      {WNA16_SILU, std::numeric_limits<double>::infinity()},
      {WNA16_SILU, 7},
      {WNA16_GELU, 7},
      {WNA16_SWIGLUOAI, 7}};
  for (auto [activation, limit] : activations)
    // Streamed, wide with tiles of 32, 64 and 128.
    for (int64_t tokens : {3, 90, 150, 400}) {
      Random random(12);
      Layer layer = marlinLayer(random, 4, 256, 128, tokens, 1);
      layer.plan.activation = activation;
      layer.plan.alpha = 1.702;
      layer.plan.beta = activation == WNA16_SWIGLUOAI ? 1 : 0;
      layer.plan.limit = limit;
      layer.bias13 = randomTensor(random, ScalarType::BF16, {4, 2, 128});
      layer.bias2 = randomTensor(random, ScalarType::F32, {4, 256});
      layer.plan.weight_on_input = 1;
      expectRight(layer, std::to_string(activation) + ", " +
                             std::to_string(tokens) + " tokens");
    }
}

TEST(Tiled, SameExpertTwiceAndMissingExperts) {
  Random random(13);
  Layer layer = marlinLayer(random, 4, 128, 64, 6, 2);
  layer.expertMap = indexTensor({8}, {-1, 2, -1, 0, 3, -1, 1, -1});
  layer.ids = indexTensor({6, 2}, {1, 3, 0, 6, -1, 4, 2, 5, 7, -1, 3, 3});
  expectRight(layer, "map");
}

TEST(Tiled, OrderOfTokensDoesNotMatter) {
  for (int64_t tokens : {5, 40, 400}) {
    Random random(14);
    Layer layer = marlinLayer(random, 4, 256, 128, tokens, 2);
    HostTensor y = outputOnDevice(layer);
    Layer turned = layer;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t from = tokens - 1 - t;
      for (int64_t k = 0; k < 256; ++k)
        turned.x.set(t * 256 + k, layer.x.get(from * 256 + k));
      for (int64_t i = 0; i < 2; ++i) {
        turned.ids.as<int32_t>()[t * 2 + i] =
            layer.ids.as<int32_t>()[from * 2 + i];
        turned.weights.set(t * 2 + i, layer.weights.get(from * 2 + i));
      }
    }
    HostTensor z = outputOnDevice(turned);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < 256; ++k)
        ASSERT_EQ(z.get(t * 256 + k), y.get((tokens - 1 - t) * 256 + k));
  }
}

void expectBatchInvariant(Layer layer, const std::string &what) {
  layer.plan.batch_invariant = 1;
  Layer few = layer.prefix(7);
  expectRight(few, what);
  const HostTensor all = outputOnDevice(layer);
  for (int64_t tokens : {1, 2, 7, 33, 100, 300}) {
    Layer some = layer.prefix(tokens);
    const HostTensor y = outputOnDevice(some);
    EXPECT_EQ(std::memcmp(y.data(), all.data(), y.bytes()), 0)
        << tokens << " tokens, " << what;
  }
}

// In tiles of every size, with rows in order and not.
TEST(BatchInvariant, Tiled) {
  for (const char *layout : {"marlin", "humming_wgmma"})
    for (ScalarType type : {ScalarType::BF16, ScalarType::F16})
      for (int bits : {4, 8}) {
        Random random(22);
        WeightOptions options;
        options.bits = bits;
        Layer layer =
            layerIn(layout, random, 4, 512, 2048, 400, 2, type, options);
        expectBatchInvariant(layer, std::string(layout) + ", " +
                                        std::to_string(bits) + " bits");
      }
}

// More slots than have rows in f32 where tokens may matter.
TEST(BatchInvariant, Plain) {
  Random random(23);
  WeightOptions options;
  options.scale = ScalarType::BF16;
  Layer layer =
      packedLayer(random, 4, 64, 32, 5000, 2, ScalarType::BF16, options);
  layer.outputType = ScalarType::BF16;
  expectBatchInvariant(layer, "compressed_tensors");
}

TEST(Tiled, MorePiecesThanADeviceTakesAtOnce) {
  // Groups of warps go on from one piece of work to the next; experts with more
  // slots than a tile holds.
  for (int64_t tokens : {50, 400}) {
    Random random(17);
    Layer layer = marlinLayer(random, 72, 128, 2048, tokens, 2);
    expectRight(layer, std::to_string(tokens) + " tokens");
  }
}

TEST(Tiled, ManySlotsOfWideExperts) {
  // Rows of x are brought into the order of the slots, tiles that are not full
  // go last; some slots are nobody's, one expert has no slots.
  Random random(19);
  constexpr int64_t kTokens = 300, kTopK = 2;
  WeightOptions options;
  options.zeros = true;
  Layer layer = marlinLayer(random, 5, 320, 2048, kTokens, kTopK, options);
  auto *ids = layer.ids.as<int32_t>();
  for (int64_t i = 0; i < kTokens * kTopK; ++i)
    ids[i] = i % 7 == 0 ? -1 : i % 3 == 0 ? 4 : static_cast<int32_t>(i % 3);
  expectRight(layer, "600 slots");
}

TEST(Tiled, SlotsThatManyBlocksSort) {
  // Some slots are nobody's, one expert has no slots, one has most; tiles have
  // any number of slots.
  Random random(23);
  constexpr int64_t kTopK = 3;
  for (int64_t tokens : {1400, 1733, 2999}) {
    Layer layer = marlinLayer(random, 40, 64, 128, tokens, kTopK);
    auto *ids = layer.ids.as<int32_t>();
    for (int64_t i = 0; i < tokens * kTopK; ++i)
      ids[i] = i % 11 == 0  ? -1
               : i % 4 == 0 ? 7
                            : static_cast<int32_t>(i * i % 39);
    expectRight(layer, std::to_string(tokens) + " tokens");
  }
}

TEST(Tiled, LongInputsOfFewTokens) {
  // Blocks of a cluster share the inputs of a column of the first product; the
  // second one's pieces are split, some into nothing.
  const std::pair<int64_t, int64_t> shapes[] = {{6144, 128}, {512, 12416}};
  for (auto [hidden, width] : shapes)
    for (int64_t tokens : {1, 3}) {
      Random random(18);
      Layer layer = marlinLayer(random, 4, hidden, width, tokens, 2);
      layer.bias2 = randomTensor(random, ScalarType::F32, {4, hidden});
      layer.ids.as<int32_t>()[0] = -1;
      expectRight(layer, std::to_string(tokens) + " tokens");
    }
}

class Token : public ::testing::Test {
protected:
  void SetUp() override {
    if (wna16_cuda_capability() < 90)
      GTEST_SKIP() << "the kernel needs sm_90 or later";
  }
};

/// One token: 2048 x 128 has its first product's inputs in four parts, 512 x 64
/// a block a column; 448 fill no unit.
TEST_F(Token, AllCodesGroupsAndShares) {
  const TiledCase cases[] = {
      {"marlin", ScalarType::BF16, 4, 128, false},
      {"marlin", ScalarType::BF16, 4, 64, true},
      {"marlin", ScalarType::BF16, 4, 32, false},
      {"marlin", ScalarType::BF16, 4, -1, true},
      {"marlin", ScalarType::F16, 4, 128, true},
      {"marlin", ScalarType::F16, 4, 32, true},
      {"marlin", ScalarType::F16, 4, -1, false},
      {"humming_wgmma", ScalarType::BF16, 4, 128, true},
      {"humming_wgmma", ScalarType::F16, 4, 32, false},
      {"humming_mma", ScalarType::BF16, 4, 64, false},
      {"humming_mma", ScalarType::BF16, 4, 128, true},
  };
  const struct {
    int64_t hidden, width, topK;
  } shapes[] = {{2048, 128, 8}, {512, 64, 2}, {448, 448, 3}, {128, 1024, 16}};
  for (const TiledCase &c : cases)
    for (auto [hidden, width, topK] : shapes) {
      if (c.group > 0 && (hidden % c.group || width % c.group))
        continue;
      Random random(static_cast<unsigned>(hidden + c.group));
      WeightOptions options;
      options.group = c.group;
      options.zeros = c.zeros;
      Layer layer = layerIn(c.layout, random, 20, hidden, width, 1, topK,
                            c.type, options);
      EXPECT_STREQ(wna16_cuda_fused_experts_kernel(&layer.plan, 1), "token");
      expectRight(layer, std::string(c.layout) + ", group " +
                             std::to_string(c.group) + ", " +
                             std::to_string(hidden) + " x " +
                             std::to_string(width));
    }
}

Layer tokenLayer(Random &random, int64_t topK) {
  return marlinLayer(random, 8, 1024, 128, 1, topK);
}

TEST_F(Token, MissingExpertsAndTheSameTwice) {
  Random random(19);
  Layer layer = tokenLayer(random, 4);
  const std::vector<int32_t> routings[] = {
      {3, -1, 3, 900}, {-1, 7, 0, 2}, {-1, -1, -1, -1}};
  for (const std::vector<int32_t> &ids : routings) {
    layer.ids = indexTensor({1, 4}, ids);
    // Nobody's slots may weigh anything.
    layer.weights.set(1, std::numeric_limits<float>::quiet_NaN());
    if (ids[1] >= 0)
      layer.weights.set(1, 0.25);
    EXPECT_STREQ(wna16_cuda_fused_experts_kernel(&layer.plan, 1), "token");
    HostTensor y = outputOnDevice(layer);
    for (int64_t i = 0; i < y.elements(); ++i)
      ASSERT_TRUE(std::isfinite(y.get(i))) << i;
    std::vector<int32_t> known = ids; // the device takes 900 for nobody's
    std::replace(known.begin(), known.end(), 900, -1);
    layer.ids = indexTensor({1, 4}, known);
    if (ids[1] < 0)
      layer.weights.set(1, 0);
    if (ids[0] < 0 && ids[1] < 0)
      continue; // zeros: no relative error
    EXPECT_LE(relativeError(y, layer.reference()), bound(ScalarType::BF16));
  }
  layer.expertMap = indexTensor({8}, {-1, 2, -1, 0, 3, -1, 1, -1});
  layer.ids = indexTensor({1, 4}, {1, 3, 0, 6});
  layer.weights.set(1, 0.5);
  expectRight(layer, "map");
}

TEST_F(Token, BiasesActivationsAndWeightsOnInput) {
  const std::pair<int64_t, double> activations[] = {
      {WNA16_SILU, std::numeric_limits<double>::infinity()},
      {WNA16_SILU, 7},
      {WNA16_GELU, 7},
      {WNA16_SWIGLUOAI, 7}};
  for (auto [activation, limit] : activations)
    for (int64_t onInput : {0, 1}) {
      Random random(20);
      Layer layer = tokenLayer(random, onInput ? 1 : 4);
      layer.plan.activation = activation;
      layer.plan.alpha = 1.702;
      layer.plan.beta = activation == WNA16_SWIGLUOAI ? 1 : 0;
      layer.plan.limit = limit;
      layer.plan.weight_on_input = onInput;
      expectRight(layer, std::to_string(activation));
      layer.bias13 = randomTensor(random, ScalarType::BF16, {8, 2, 128});
      layer.bias2 = randomTensor(random, ScalarType::F32, {8, 1024});
      EXPECT_STREQ(wna16_cuda_fused_experts_kernel(&layer.plan, 1), "token");
      expectRight(layer, std::to_string(activation) + " with biases");
    }
}

TEST_F(Token, LeavesTheRest) {
  Random random(21);
  Layer layer = tokenLayer(random, 4);
  EXPECT_STREQ(wna16_cuda_fused_experts_kernel(&layer.plan, 2), "stream");
  layer.plan.batch_invariant = 1;
  EXPECT_STREQ(wna16_cuda_fused_experts_kernel(&layer.plan, 1), "wide");
}

TEST(Plain, AnyLayout) {
  for (const char *layout :
       {"gptq", "awq", "compressed_tensors", "xpu", "interleaved"}) {
    Random random(15);
    Layer layer = packedLayer(random, 3, 96, 64, 21, 2);
    bringInto(layer, layout, ScalarType::F32);
    expectRight(layer, layout);
  }
}

TEST(Plain, TrtllmAndDense) {
  Random random(16);
  Layer layer = packedLayer(random, 2, 256, 256, 9, 2, ScalarType::BF16);
  layer.outputType = ScalarType::BF16;
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    wna16_weight target = weight->plan;
    target.layout = layoutId("trtllm");
    target.code = static_cast<int64_t>(CodeType::S4);
    target.scale = static_cast<int64_t>(ScalarType::BF16);
    *weight = converted(*weight, target);
  }
  layer.plan.w13 = layer.w13.plan;
  layer.plan.w2 = layer.w2.plan;
  expectRight(layer, "trtllm");
  Layer dense = makeLayer(random, denseWeight(random, 3, 96, 2, 64),
                          denseWeight(random, 3, 64, 1, 96), 20, 2);
  expectRight(dense, "dense");
}

TEST(Plain, ActOrder) {
  for (bool sorted : {false, true}) {
    Random random(25);
    WeightOptions options;
    options.group = 64;
    options.actOrder = true;
    Layer layer =
        packedLayer(random, 3, 256, 128, 5, 2, ScalarType::F32, options);
    for (TestWeight *weight : {&layer.w13, &layer.w2}) {
      wna16_weight target = weight->plan;
      target.act_order =
          static_cast<int64_t>(sorted ? ActOrder::Sorted : ActOrder::Index);
      *weight = converted(*weight, target);
    }
    layer.plan.w13 = layer.w13.plan;
    layer.plan.w2 = layer.w2.plan;
    expectRight(layer, sorted ? "sorted" : "index");
  }
}

TEST(Plain, Activations) {
  for (int64_t activation : {WNA16_SILU, WNA16_GELU, WNA16_GELU_TANH,
                             WNA16_RELU2, WNA16_SWIGLUOAI, WNA16_SWIGLUSTEP}) {
    Random random(40);
    Layer layer = packedLayer(random, 4, 96, 64, 3, 2);
    layer.plan.activation = activation;
    layer.plan.alpha = 1.702;
    layer.plan.beta = 1;
    layer.plan.limit = 0.5;
    expectRight(layer, std::to_string(activation));
  }
}

TEST(Plain, WithoutGate) {
  Random random(4);
  Layer layer = packedLayer(random, 4, 64, 96, 5, 2, ScalarType::F32, {}, 1);
  layer.plan.activation = WNA16_RELU2;
  expectRight(layer, "relu2");
}

TEST(Batched, RowsOfEachExpert) {
  for (ScalarType type : {ScalarType::F32, ScalarType::BF16}) {
    Random random(9);
    WeightOptions options;
    options.scale = type == ScalarType::F32 ? ScalarType::F16 : type;
    Layer layer = packedLayer(random, 4, 64, 64, 1, 1, type, options);
    layer.outputType = type;
    if (type == ScalarType::BF16)
      bringInto(layer, "marlin", type);
    layer.plan.batched = 1;
    layer.weights = {};
    layer.x = randomTensor(random, type, {4, 40, 64});
    layer.ids = indexTensor({4}, {3, 0, 40, 1});
    expectRight(layer, "batched");
  }
}

TEST(Empty, NoTokens) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 64, 64, 0, 2);
  HostTensor y = outputOnDevice(layer);
  EXPECT_EQ(y.elements(), 0);
}

} // namespace
