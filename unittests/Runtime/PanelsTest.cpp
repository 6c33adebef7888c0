//===- PanelsTest.cpp - Fused experts on panels of weights ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The build runs this once for each instruction set (WNA16_ISA).
//
//===----------------------------------------------------------------------===//

#include "Layout/Isa.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace wna16test;

namespace {

/// The same weight in a layout that consists of panels.
wna16_weight inLayout(wna16_weight weight, const wna16::LayoutEntry &layout) {
  weight.layout = layout.id;
  if (layout.scaleType)
    weight.scale = static_cast<int64_t>(*layout.scaleType);
  if (layout.needsZeros) {
    weight.code = static_cast<int64_t>(wna16::CodeType::U4);
    weight.zeros = static_cast<int64_t>(wna16::ZeroPoints::Plain);
  }
  return weight;
}

Layer inPanels(Layer layer, const char *name = "cpu_panels") {
  const wna16::LayoutEntry &layout = *wna16::findLayout(name);
  layer.w13 =
      converted(layer.w13, layer.plan.w13 = inLayout(layer.w13.plan, layout));
  layer.w2 =
      converted(layer.w2, layer.plan.w2 = inLayout(layer.w2.plan, layout));
  return layer;
}

/// What the machine, or WNA16_ISA, lets fast kernels use.
std::string expectedKernel() { return std::string(name(wna16::isa())); }

/// Hidden values are rounded to x's type, and values that differ in the last
/// bit of an f32 may be rounded apart.
double toleranceOf(const Layer &layer) {
  return std::max(tolerance(layer.x.type), tolerance(layer.outputType));
}

void expectFast(Layer &layer, const std::string &what = "") {
  EXPECT_EQ(wna16_cpu_fused_experts_kernel(&layer.plan, layer.tokens()),
            expectedKernel())
      << what;
  HostTensor y = layer.output();
  EXPECT_LE(relativeError(y, layer.reference()), toleranceOf(layer)) << what;
}

constexpr ScalarType kTypes[] = {ScalarType::F32, ScalarType::F16,
                                 ScalarType::BF16};

TEST(Panels, EveryFormatAndType) {
  for (ScalarType type : kTypes)
    for (int bits : {4, 8})
      for (bool zeros : {false, true})
        for (int64_t group : {16, 32, 64, 128, 256, -1}) {
          Random random(1);
          WeightOptions options;
          options.bits = bits;
          options.zeros = zeros;
          options.group = group;
          options.scale = kTypes[group / 32 % 3];
          Layer source = packedLayer(random, 4, 512, 256, 9, 2, type, options);
          source.outputType = type;
          const std::string what =
              std::to_string(bits) + " bits, group " + std::to_string(group) +
              (zeros ? ", zeros, " : ", ") + std::string(name(type));
          Layer layer = inPanels(source);
          expectFast(layer, what);
          if (bits == 8)
            continue;
          layer = inPanels(source, "cpu_blocked");
          expectFast(layer, what + ", cpu_blocked");
        }
}

/// Every code of both weights is `code`, so that nothing averages out.
Layer constantLayer(int bits, bool zeros, uint32_t code, ScalarType type) {
  Random random(2);
  WeightOptions options;
  options.bits = bits;
  options.zeros = zeros;
  options.group = 128;
  Layer layer = packedLayer(random, 2, 1024, 512, 3, 2, type, options);
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    const double old = bits == 4 ? 8 : 128;
    std::memset(weight->parts[0].data(),
                static_cast<int>(bits == 4 ? code * 0x11 : code),
                weight->parts[0].bytes());
    // Without zero points the values follow; with them they are read back.
    const int64_t groups = weight->plan.input / 128;
    HostTensor &scales = weight->parts[1], &stored = weight->parts[2];
    const int64_t rows = weight->plan.halves * weight->plan.output;
    const int fields = 32 / bits;
    for (size_t i = 0; i < weight->values.size(); ++i) {
      const int64_t row = i / weight->plan.input;
      const int64_t g = i % weight->plan.input / 128;
      double zero = old;
      if (zeros) {
        const int64_t e = row / rows, r = row % rows;
        const uint32_t word =
            stored.as<uint32_t>()[(e * (rows / fields) + r / fields) * groups +
                                  g];
        zero = (word >> (r % fields * bits)) & ((1u << bits) - 1);
      }
      weight->values[i] = (code - zero) * scales.get(row * groups + g);
    }
  }
  return layer;
}

TEST(Panels, ExtremeCodesEverywhere) {
  for (ScalarType type : kTypes)
    for (bool zeros : {false, true}) {
      // -8, the largest, the zero, one of each side.
      for (uint32_t code : {0, 15, 8, 7}) {
        Layer layer = inPanels(constantLayer(4, zeros, code, type));
        expectFast(layer, "4 bits, code " + std::to_string(code));
      }
      for (uint32_t code : {0, 255, 128, 127}) {
        Layer layer = inPanels(constantLayer(8, zeros, code, type));
        expectFast(layer, "8 bits, code " + std::to_string(code));
      }
    }
}

TEST(Panels, LargestActivationsOfBothSigns) {
  // Sums of a block at their largest, with every sign of zero-point terms.
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16})
    for (int bits : {4, 8})
      for (double value : {1.9990234375, -1.9990234375, 1.0, -1.9921875}) {
        Layer layer =
            inPanels(constantLayer(bits, true, bits == 4 ? 15 : 255, type));
        for (int64_t i = 0; i < layer.x.elements(); ++i)
          layer.x.set(i, value);
        expectFast(layer, std::to_string(bits) +
                              " bits, x = " + std::to_string(value));
      }
}

TEST(Panels, LongRows) {
  // Longer than 7168 inputs, in both products, with several tokens an expert.
  for (ScalarType type : kTypes)
    for (int bits : {4, 8}) {
      Random random(3);
      WeightOptions options;
      options.bits = bits;
      options.group = 128;
      Layer layer =
          inPanels(packedLayer(random, 2, 14336, 64, 5, 1, type, options));
      expectFast(layer, "hidden 14336");
      options.group = 32;
      layer = inPanels(packedLayer(random, 2, 64, 14336, 5, 1, type, options));
      expectFast(layer, "width 14336");
    }
}

TEST(Panels, DenseWeights) {
  // One of the two, or both, as those of a shared expert are; inputs that fill
  // no vector.
  const ScalarType dense[] = {ScalarType::F16, ScalarType::BF16,
                              ScalarType::F32};
  for (ScalarType type : kTypes)
    for (int i = 0; i < 3; ++i)
      for (int64_t tokens : {1, 3, 50}) {
        Random random(18);
        auto packed = [&](int64_t input, int64_t halves, int64_t output) {
          const TestWeight weight =
              packedWeight(random, 4, input, halves, output);
          return converted(
              weight, inLayout(weight.plan, *wna16::findLayout("cpu_panels")));
        };
        Layer layer = makeLayer(random, packed(128, 2, 96),
                                denseWeight(random, 4, 96, 1, 128, dense[i]),
                                tokens, 2, type);
        expectFast(layer, "dense w2");
        layer = makeLayer(random, denseWeight(random, 4, 128, 2, 96, dense[i]),
                          packed(96, 1, 128), tokens, 2, type);
        expectFast(layer, "dense w13");
        layer = makeLayer(random, denseWeight(random, 4, 96, 1, 32, dense[i]),
                          denseWeight(random, 4, 32, 1, 96, dense[i]), tokens,
                          2, type);
        layer.plan.hidden = 90;
        layer.x = randomTensor(random, type, {tokens, 90});
        expectFast(layer, "both dense");
      }
}

TEST(Panels, AnyNumberOfTokens) {
  for (int64_t tokens : {0, 1, 2, 3, 5, 6, 7, 11, 13, 31, 49, 97, 100})
    for (ScalarType type : kTypes) {
      Random random(4);
      Layer layer = inPanels(packedLayer(random, 8, 128, 96, tokens, 3, type));
      if (tokens > 0) {
        expectFast(layer, std::to_string(tokens));
        continue;
      }
      HostTensor y = layer.emptyOutput();
      EXPECT_EQ(layer.run(y), WNA16_OK) << wna16_status_message();
    }
}

TEST(Panels, OneExpertGetsAllTokens) {
  for (ScalarType type : kTypes) {
    Random random(5);
    Layer layer = inPanels(packedLayer(random, 8, 128, 64, 131, 2, type));
    for (int64_t slot = 0; slot < layer.ids.elements(); ++slot)
      layer.ids.as<int32_t>()[slot] = 5;
    expectFast(layer);
  }
}

TEST(Panels, MoreTokensThanAChunk) {
  Random random(6);
  Layer layer =
      inPanels(packedLayer(random, 4, 64, 32, 4500, 2, ScalarType::BF16));
  expectFast(layer);
}

TEST(Panels, MissingExpertsAndMaps) {
  Random random(7);
  Layer layer =
      inPanels(packedLayer(random, 4, 128, 64, 23, 3, ScalarType::BF16));
  for (int64_t slot = 0; slot < layer.ids.elements(); slot += 4)
    layer.ids.as<int32_t>()[slot] = -1;
  // A token that no expert takes may hold anything.
  for (int64_t slot = 6; slot < 9; ++slot)
    layer.ids.as<int32_t>()[slot] = -1;
  for (int64_t k = 0; k < 128; ++k)
    layer.x.set(2 * 128 + k, NAN);
  Layer clean = layer;
  for (int64_t k = 0; k < 128; ++k)
    clean.x.set(2 * 128 + k, 0);
  HostTensor y = layer.output();
  EXPECT_LE(relativeError(y, clean.reference()), toleranceOf(layer));
  layer = clean;
  layer.expertMap = indexTensor({4}, {2, -1, 0, 3});
  expectFast(layer, "map");
}

TEST(Panels, BiasesAndActivations) {
  for (int64_t activation : {WNA16_SILU, WNA16_GELU, WNA16_GELU_TANH,
                             WNA16_RELU2, WNA16_SWIGLUOAI, WNA16_SWIGLUSTEP})
    for (int64_t halves : {1, 2}) {
      if (halves == 1 && activation >= WNA16_SWIGLUOAI)
        continue;
      for (double limit : {double(INFINITY), 0.5}) {
        Random random(8);
        Layer layer = inPanels(
            packedLayer(random, 4, 128, 96, 7, 2, ScalarType::F32, {}, halves));
        layer.bias13 = randomTensor(random, ScalarType::BF16, {4, halves, 96});
        layer.bias2 = randomTensor(random, ScalarType::F32, {4, 128});
        layer.plan.activation = activation;
        layer.plan.alpha = 1.702;
        layer.plan.beta = 1;
        layer.plan.limit =
            activation == WNA16_SWIGLUSTEP && limit > 1 ? 7.0 : limit;
        expectFast(layer, std::to_string(activation));
      }
    }
}

TEST(Panels, ActivationsFarOut) {
  // Where the exponential over- or underflows.
  Random random(9);
  for (int64_t activation : {WNA16_SILU, WNA16_GELU, WNA16_GELU_TANH})
    for (double deviation : {5.0, 30.0, 1000.0}) {
      Layer layer =
          inPanels(packedLayer(random, 2, 128, 64, 5, 1, ScalarType::F32));
      layer.plan.activation = activation;
      for (int64_t i = 0; i < layer.x.elements(); ++i)
        layer.x.set(i, layer.x.get(i) * deviation);
      expectFast(layer);
    }
}

TEST(Panels, RoutingWeightOnInput) {
  for (ScalarType type : kTypes) {
    Random random(10);
    Layer layer = inPanels(packedLayer(random, 4, 128, 64, 9, 1, type));
    layer.plan.weight_on_input = 1;
    layer.plan.activation = WNA16_RELU2;
    expectFast(layer);
  }
}

TEST(Panels, BatchedTokens) {
  Random random(11);
  Layer layer = inPanels(packedLayer(random, 3, 128, 64, 1, 1));
  layer.plan.batched = 1;
  layer.x = randomTensor(random, ScalarType::F32, {3, 7, 128});
  layer.weights = HostTensor();
  layer.ids = indexTensor({3}, {7, 0, 4});
  HostTensor y = layer.output();
  EXPECT_LE(relativeError(y, layer.reference()), toleranceOf(layer));
}

TEST(Panels, PaddedExtents) {
  // x has fewer columns than w13 has inputs, y fewer than w2 has outputs.
  Random random(12);
  for (ScalarType type : kTypes) {
    Layer layer = packedLayer(random, 4, 256, 64, 6, 2, type);
    layer = inPanels(layer);
    layer.plan.hidden = 208;
    HostTensor x(type, {6, 208});
    for (int64_t i = 0; i < x.elements(); ++i)
      x.set(i, layer.x.get(i));
    layer.x = x;
    expectFast(layer);
  }
}

TEST(Panels, OutliersDoNotDrownTheRest) {
  // One input of a block is fifty times the others, but its weights are zero,
  // so that only the others count. They are multiples of 2^-9 then, off by
  // 2^-9 / sqrt(12), and nothing but they matter.
  Random random(13);
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16}) {
    Layer source = packedLayer(random, 2, 128, 64, 4, 1, type);
    TestWeight &w = source.w13;
    for (int64_t row = 0; row < 2 * 128; ++row)
      for (int64_t k = 0; k < 128; k += 32) {
        uint32_t &word = w.parts[0].as<uint32_t>()[row * 16 + k / 8];
        word = (word & ~15u) | 8;
        w.values[row * 128 + k] = 0;
      }
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t k = 0; k < 128; k += 32)
        source.x.set(t * 128 + k, 50);
    Layer layer = inPanels(source);
    HostTensor y = layer.output();
    EXPECT_LE(relativeError(y, layer.reference()), toleranceOf(layer) + 1.2e-3);
  }
}

TEST(Panels, WhatIsNotFiniteStaysSo) {
  for (ScalarType type : kTypes)
    for (double value : {double(NAN), double(INFINITY), -double(INFINITY)}) {
      Random random(14);
      Layer layer = inPanels(packedLayer(random, 4, 128, 64, 6, 2, type));
      HostTensor before = layer.output();
      layer.x.set(3 * 128 + 77, value);
      HostTensor y = layer.output();
      for (int64_t t = 0; t < 6; ++t) {
        if (t == 3)
          EXPECT_FALSE(std::isfinite(y.get(t * 128))) << value;
        else
          EXPECT_EQ(std::memcmp(y.as<float>() + t * 128,
                                before.as<float>() + t * 128, 512),
                    0);
      }
    }
}

TEST(Panels, TinyAndHugeActivations) {
  for (double scale : {1e-30, 1e-36, 1e30}) {
    Random random(15);
    Layer layer =
        inPanels(packedLayer(random, 2, 128, 64, 3, 1, ScalarType::BF16));
    layer.plan.activation = WNA16_SILU;
    layer.bias13 = randomTensor(random, ScalarType::F32, {2, 2, 64});
    for (int64_t i = 0; i < layer.x.elements(); ++i)
      layer.x.set(i, layer.x.get(i) * scale);
    if (scale > 1) {
      HostTensor y = layer.emptyOutput();
      EXPECT_EQ(layer.run(y), WNA16_OK);
      continue;
    }
    expectFast(layer);
  }
}

/// Tokens `from` of a layer.
Layer pick(const Layer &layer, const std::vector<int64_t> &from) {
  Layer result = layer;
  const int64_t hidden = layer.plan.hidden, topK = layer.plan.top_k;
  const int64_t count = static_cast<int64_t>(from.size());
  HostTensor ids = layer.ids;
  result.x = HostTensor(layer.x.type, {count, hidden});
  result.weights = HostTensor(ScalarType::F32, {count, topK});
  result.ids = HostTensor(ScalarType::I32, {count, topK});
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t k = 0; k < hidden; ++k)
      result.x.set(t * hidden + k, layer.x.get(from[t] * hidden + k));
    for (int64_t k = 0; k < topK; ++k) {
      result.weights.set(t * topK + k, layer.weights.get(from[t] * topK + k));
      result.ids.as<int32_t>()[t * topK + k] =
          ids.as<int32_t>()[from[t] * topK + k];
    }
  }
  return result;
}

TEST(Panels, TokensDoNotSeeEachOther) {
  for (ScalarType type : kTypes) {
    Random random(16);
    const int64_t tokens = 101, hidden = 128;
    Layer layer = inPanels(packedLayer(random, 6, hidden, 64, tokens, 3, type));
    HostTensor all = layer.output();
    std::vector<int64_t> order(tokens);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t count : {int64_t(1), int64_t(2), int64_t(7), tokens}) {
      order.resize(count);
      HostTensor some = pick(layer, order).output();
      for (int64_t t = 0; t < count; ++t)
        EXPECT_EQ(std::memcmp(some.as<float>() + t * hidden,
                              all.as<float>() + order[t] * hidden, 4 * hidden),
                  0)
            << "token " << order[t] << " among " << count;
      order.resize(tokens);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
    }
  }
}

TEST(Panels, ThreadsDoNotMatter) {
  for (int64_t tokens : {1, 40}) {
    Random random(17);
    Layer layer = inPanels(
        packedLayer(random, 8, 1024, 256, tokens, 2, ScalarType::BF16));
    HostTensor first = layer.output();
    for (int32_t threads : {1, 2, 3, 8}) {
      wna16_set_num_threads(threads);
      for (int run = 0; run < 5; ++run)
        EXPECT_TRUE(first.sameBytes(layer.output())) << threads << " threads";
    }
    wna16_set_num_threads(0);
  }
}

} // namespace
