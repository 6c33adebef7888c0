//===- DeterminismTest.cpp - Equal bits, whatever surrounds the work ------===//
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

using namespace wna16test;

namespace {

TEST(Determinism, B80_ThreadsAndRuns) {
  Random random(80);
  WeightOptions options;
  options.group = 128;
  Layer layer =
      packedLayer(random, 8, 1024, 512, 64, 2, ScalarType::BF16, options);
  HostTensor first = layer.output();
  for (int32_t threads : {1, 2, 7}) {
    wna16_set_num_threads(threads);
    EXPECT_EQ(wna16_get_num_threads(), threads);
    for (int run = 0; run < (threads == 7 ? 10 : 2); ++run)
      EXPECT_TRUE(first.sameBytes(layer.output())) << threads << " threads";
  }
  wna16_set_num_threads(0);
}

/// The token of `layer` at `token`, alone.
Layer single(const Layer &layer, int64_t token) {
  Layer one = layer;
  const int64_t hidden = layer.plan.hidden, topK = layer.plan.top_k;
  HostTensor ids = layer.ids;
  one.x = HostTensor(layer.x.type, {1, hidden});
  one.weights = HostTensor(ScalarType::F32, {1, topK});
  one.ids = HostTensor(ScalarType::I32, {1, topK});
  for (int64_t k = 0; k < hidden; ++k)
    one.x.set(k, layer.x.get(token * hidden + k));
  for (int64_t k = 0; k < topK; ++k) {
    one.weights.set(k, layer.weights.get(token * topK + k));
    one.ids.as<int32_t>()[k] = ids.as<int32_t>()[token * topK + k];
  }
  return one;
}

TEST(Determinism, TokensDoNotSeeEachOther) {
  // Alone or among others, in whatever place: the same bits.
  Random random(81);
  Layer layer = packedLayer(random, 6, 96, 64, 33, 3);
  HostTensor all = layer.output();
  for (int64_t t = 0; t < 33; ++t) {
    HostTensor alone = single(layer, t).output();
    EXPECT_EQ(std::memcmp(alone.data(), all.as<float>() + t * 96, 96 * 4), 0)
        << "token " << t;
  }
}

TEST(Determinism, EveryLayoutGivesTheSameBits) {
  for (const wna16::LayoutEntry &layout : wna16::allLayouts()) {
    Random random(82);
    WeightOptions options;
    options.scale = ScalarType::BF16;
    Layer layer =
        packedLayer(random, 2, 256, 256, 3, 2, ScalarType::BF16, options);
    HostTensor expected = layer.output();
    bool stored = true;
    for (TestWeight *weight : {&layer.w13, &layer.w2}) {
      wna16_weight target = weight->plan;
      target.layout = layout.id;
      if (layout.scaleType)
        target.scale = static_cast<int64_t>(*layout.scaleType);
      if (layout.needsZeros) {
        target.code = static_cast<int64_t>(wna16::CodeType::U4);
        target.zeros = static_cast<int64_t>(wna16::ZeroPoints::Plain);
      }
      if (layout.name == "trtllm")
        target.code = static_cast<int64_t>(wna16::CodeType::S4);
      // Dense floats hold no codes; interleaved needs no more than halves.
      stored &= layout.name != "dense";
      if (stored)
        *weight = converted(*weight, target);
    }
    if (!stored)
      continue;
    layer.plan.w13 = layer.w13.plan;
    layer.plan.w2 = layer.w2.plan;
    EXPECT_TRUE(expected.sameBytes(layer.output())) << layout.name;
  }
}

} // namespace
