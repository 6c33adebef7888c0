//===- LinearTest.cpp - x times one weight --------------------------------===//
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

void expectLinear(TestWeight weight, ScalarType in, ScalarType out,
                  bool withBias) {
  Random random(2);
  const int64_t rows = weight.plan.output, input = weight.plan.input;
  HostTensor x = randomTensor(random, in, {5, input}), y(out, {5, rows}), bias;
  if (withBias)
    bias = randomTensor(random, ScalarType::F32, {rows});
  wna16_linear_plan plan = {WNA16_ABI_VERSION, weight.plan, 1};
  wna16_status_clear();
  const int64_t bytes = wna16_cpu_linear_workspace(&plan, 5);
  ASSERT_GE(bytes, 0) << wna16_status_message();
  Workspace workspace(bytes);
  y.poison();
  std::vector<wna16_tensor> tensors = {x.view()};
  for (HostTensor &part : weight.parts)
    tensors.push_back(part.view());
  tensors.push_back(bias.view());
  tensors.push_back(y.view());
  ASSERT_EQ(wna16_cpu_linear(&plan, tensors.data(), tensors.size(),
                             workspace.data(), bytes, nullptr),
            WNA16_OK)
      << wna16_status_message();
  std::vector<double> expected(5 * rows);
  for (int64_t i = 0; i < 5 * rows; ++i) {
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

} // namespace
