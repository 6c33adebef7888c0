//===- LinearTest.cpp - x times one weight --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <cstring>

#include <algorithm>

using namespace wna16test;

namespace {

/// x times a weight, whatever the batch.
HostTensor linear(TestWeight weight, HostTensor x, HostTensor bias,
                  ScalarType out) {
  const int64_t tokens = x.shape[0];
  HostTensor y(out, {tokens, weight.plan.output});
  y.poison();
  wna16_linear_plan plan = {WNA16_ABI_VERSION, weight.plan, 1};
  wna16_status_clear();
  const int64_t bytes = wna16_cpu_linear_workspace(&plan, tokens);
  EXPECT_GE(bytes, 0) << wna16_status_message();
  Workspace workspace(bytes);
  std::vector<wna16_tensor> tensors = {x.view()};
  for (HostTensor &part : weight.parts)
    tensors.push_back(part.view());
  tensors.push_back(bias.view());
  tensors.push_back(y.view());
  EXPECT_EQ(wna16_cpu_linear(&plan, tensors.data(), tensors.size(),
                             workspace.data(), bytes, nullptr),
            WNA16_OK)
      << wna16_status_message();
  return y;
}

void expectLinear(TestWeight weight, ScalarType in, ScalarType out,
                  bool withBias, int64_t tokens = 5) {
  Random random(2);
  const int64_t rows = weight.plan.output, input = weight.plan.input;
  HostTensor x = randomTensor(random, in, {tokens, input}), bias;
  if (withBias)
    bias = randomTensor(random, ScalarType::F32, {rows});
  HostTensor y = linear(weight, x, bias, out);
  std::vector<double> expected(tokens * rows);
  for (int64_t i = 0; i < tokens * rows; ++i) {
    expected[i] = withBias ? bias.get(i % rows) : 0;
    for (int64_t k = 0; k < input; ++k)
      expected[i] += x.get(i / rows * input + k) * weight.at(0, i % rows, k);
  }
  EXPECT_LE(relativeError(y, expected), tolerance(out));
}

TEST(Linear, DenseAndPackedInAllTypes) {
  const ScalarType types[] = {ScalarType::F32, ScalarType::F16,
                              ScalarType::BF16};
  for (ScalarType in : types)
    for (ScalarType out : types)
      for (bool bias : {false, true}) {
        Random random(1);
        expectLinear(denseWeight(random, 1, 100, 1, 8, in), in, out, bias);
        expectLinear(packedWeight(random, 1, 96, 1, 24), in, out, bias);
      }
}

/// The same weight as panels.
TestWeight inPanels(const TestWeight &weight) {
  wna16_weight plan = weight.plan;
  plan.layout = layoutId("cpu_panels");
  return converted(weight, plan);
}

TEST(Linear, Panels) {
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16}) {
    Random random(3);
    for (int64_t tokens : {1, 7, 65})
      expectLinear(inPanels(packedWeight(random, 1, 192, 1, 96)), type, type,
                   true, tokens);
  }
}

TEST(Linear, ExtentsThatFillNoTile) {
  // Of inputs, outputs and tokens: a shared expert's gate has one output.
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16})
    for (int64_t input : {1, 3, 100, 2049})
      for (int64_t outputs : {1, 2, 33, 60})
        for (int64_t tokens : {1, 2, 3, 4, 9, 64, 131}) {
          Random random(4);
          expectLinear(denseWeight(random, 1, input, 1, outputs, type), type,
                       ScalarType::F32, true, tokens);
        }
}

TEST(Linear, MoreTokensThanAChunk) {
  Random random(5);
  expectLinear(denseWeight(random, 1, 32, 1, 36, ScalarType::BF16),
               ScalarType::BF16, ScalarType::F32, false, 2100);
}

TEST(Linear, BatchInvariant) {
  Random random(7);
  HostTensor x = randomTensor(random, ScalarType::BF16, {150, 256});
  for (const TestWeight &weight :
       {denseWeight(random, 1, 256, 1, 64, ScalarType::BF16),
        packedWeight(random, 1, 256, 1, 64),
        inPanels(packedWeight(random, 1, 256, 1, 64))}) {
    HostTensor all = linear(weight, x, {}, ScalarType::F32);
    for (int64_t tokens : {1, 2, 5, 16, 149}) {
      HostTensor first(x.type, {tokens, 256});
      std::memcpy(first.data(), x.data(), first.bytes());
      HostTensor some = linear(weight, first, {}, ScalarType::F32);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.bytes()), 0)
          << tokens << " tokens, layout " << weight.plan.layout;
    }
  }
}

TEST(Linear, NoTokens) {
  Random random(6);
  TestWeight weight = denseWeight(random, 1, 32, 1, 36);
  wna16_linear_plan plan = {WNA16_ABI_VERSION, weight.plan, 0};
  HostTensor x(ScalarType::F32, {0, 32}), y(ScalarType::F32, {0, 36}), none;
  std::vector<wna16_tensor> tensors = {x.view()};
  for (HostTensor &part : weight.parts)
    tensors.push_back(part.view());
  tensors.push_back(none.view());
  tensors.push_back(y.view());
  Workspace workspace(wna16_cpu_linear_workspace(&plan, 0));
  EXPECT_EQ(wna16_cpu_linear(&plan, tensors.data(), tensors.size(),
                             workspace.data(),
                             wna16_cpu_linear_workspace(&plan, 0), nullptr),
            WNA16_OK)
      << wna16_status_message();
}

} // namespace
