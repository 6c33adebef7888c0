//===- DeviceTest.cpp - With and without a device -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "gtest/gtest.h"

#include <cuda_runtime.h>

using namespace wna16;
using namespace wna16test;

namespace {

TEST(NoDevice, CallsSaySo) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 64, 64, 3, 2, ScalarType::BF16);
  HostTensor y = layer.emptyOutput();
  std::vector<wna16_tensor> tensors = layer.tensors(y);
  for (wna16_tensor &tensor : tensors)
    if (tensor.data)
      tensor.device.device_type = 2;
  const int64_t bytes = wna16_cuda_fused_experts_workspace(&layer.plan, 3);
  EXPECT_GT(bytes, 0) << "a size needs no device";
  Workspace workspace(bytes);
  wna16_status_clear();
  EXPECT_EQ(wna16_cuda_fused_experts(&layer.plan, tensors.data(),
                                     static_cast<int64_t>(tensors.size()),
                                     workspace.data(), bytes, nullptr),
            WNA16_FAILED);
  const std::string message = wna16_status_message();
  EXPECT_EQ(message.rfind("fused_experts: finding a CUDA device failed: ", 0),
            0u)
      << message;
  wna16_status_clear();
}

TEST(NoDevice, BadPlansAreFoundFirst) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 64, 64, 3, 2, ScalarType::BF16);
  layer.plan.activation_type = 1;
  EXPECT_EQ(wna16_cuda_fused_experts_workspace(&layer.plan, 3), -1);
  EXPECT_EQ(wna16_status_get(), WNA16_UNSUPPORTED);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: int8 activations (activation_type 1) are not "
               "supported on cuda yet; use 16-bit activations (0)");
  layer.plan.activation_type = 0;
  layer.plan.batched = layer.plan.top_k = 1;
  EXPECT_EQ(wna16_cuda_fused_experts_workspace(&layer.plan, 1 << 30), -1);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected tokens (1073741824) of all experts (2) "
               "to be at most 2147483647");
  layer.plan.batched = 0;
  layer.plan.top_k = 262145;
  EXPECT_EQ(wna16_cuda_fused_experts_workspace(&layer.plan, 3), -1);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected top_k from 1 to 262144, got 262145");
  wna16_status_clear();
}

TEST(Route, EqualsTheCpu) {
  struct {
    int64_t experts, topK, scoring, groups, topGroups, afterTopK;
    bool corrected;
    double jitter = 0;
  } const cases[] = {
      {8, 2, WNA16_SOFTMAX, 0, 0, 0, false},
      {128, 8, WNA16_SOFTMAX, 0, 0, 1, false},
      {256, 8, WNA16_SIGMOID, 8, 4, 0, true},
      {60, 4, WNA16_SIGMOID, 4, 2, 0, false},
      {512, 10, WNA16_SOFTMAX, 0, 0, 0, true},
      {16, 2, WNA16_SPARSEMIXER, 0, 0, 0, false, 0.01},
      {72, 5, WNA16_SPARSEMIXER, 0, 0, 0, false, 0.3},
  };
  for (const auto &c : cases) {
    Random random(7);
    wna16_route_plan plan = {};
    plan.abi_version = WNA16_ABI_VERSION;
    plan.experts = c.experts;
    plan.top_k = c.topK;
    plan.scoring = c.scoring;
    plan.renormalize = c.scoring != WNA16_SPARSEMIXER;
    plan.groups = c.groups;
    plan.top_groups = c.topGroups;
    plan.softmax_after_topk = c.afterTopK;
    plan.scaling = 2.5;
    plan.jitter = c.jitter;
    HostTensor logits =
        randomTensor(random, ScalarType::F32, {17, c.experts}, 2);
    // Ties.
    for (int64_t e = 0; e < c.experts; ++e)
      logits.set(e, static_cast<double>(e % 3));
    HostTensor correction, scale;
    if (c.corrected)
      correction = randomTensor(random, ScalarType::F32, {c.experts}, 0.1);
    else
      scale = randomTensor(random, ScalarType::BF16, {c.experts});
    HostTensor weights[2], ids[2];
    for (int i = 0; i < 2; ++i) {
      weights[i] = HostTensor(ScalarType::F32, {17, c.topK});
      ids[i] = HostTensor(ScalarType::I32, {17, c.topK});
    }
    const int64_t bytes = wna16_cpu_route_workspace(&plan, 17);
    Workspace workspace(bytes);
    wna16_tensor views[] = {logits.view(), correction.view(), scale.view(),
                            weights[0].view(), ids[0].view()};
    ASSERT_EQ(
        wna16_cpu_route(&plan, views, 5, workspace.data(), bytes, nullptr),
        WNA16_OK)
        << wna16_status_message();
    ASSERT_EQ(runOnDevice(wna16_cuda_route, &plan,
                          {&logits, &correction, &scale, &weights[1], &ids[1]},
                          2),
              WNA16_OK)
        << wna16_status_message();
    EXPECT_TRUE(ids[0].sameBytes(ids[1])) << c.experts << " experts";
    EXPECT_LE(relativeError(weights[1], weights[0].values()), 1e-6);
  }
}

TEST(RmsNorm, EqualsTheCpu) {
  Random random(9);
  for (int64_t hidden : {1, 100, 2816})
    for (ScalarType type : {ScalarType::F32, ScalarType::BF16})
      for (bool adds : {false, true}) {
        const wna16_rms_norm_plan plan = {WNA16_ABI_VERSION, hidden, 1e-6, 0.5};
        HostTensor x = randomTensor(random, type, {19, hidden}, 3);
        HostTensor weight = randomTensor(random, ScalarType::BF16, {hidden});
        HostTensor addend;
        if (adds)
          addend = randomTensor(random, ScalarType::F32, {19, hidden});
        HostTensor y(ScalarType::F32, x.shape),
            expected(ScalarType::F32, x.shape);
        wna16_tensor views[] = {x.view(), weight.view(), addend.view(),
                                expected.view()};
        ASSERT_EQ(wna16_cpu_rms_norm(&plan, views, 4, nullptr, 0, nullptr),
                  WNA16_OK)
            << wna16_status_message();
        ASSERT_EQ(runOnDevice(wna16_cuda_rms_norm, &plan,
                              {&x, &weight, &addend, &y}, 1),
                  WNA16_OK)
            << wna16_status_message();
        EXPECT_LE(relativeError(y, expected.values()), 1e-6) << hidden;
      }
}

TEST(Linear, EqualsTheCpu) {
  for (bool dense : {true, false}) {
    Random random(5);
    TestWeight weight =
        dense ? denseWeight(random, 1, 200, 1, 130, ScalarType::BF16)
              : packedWeight(random, 1, 256, 1, 128);
    wna16_linear_plan plan = {};
    plan.abi_version = WNA16_ABI_VERSION;
    plan.weight = weight.plan;
    const int64_t rows = weight.plan.output;
    HostTensor x =
        randomTensor(random, ScalarType::BF16, {37, weight.plan.input});
    HostTensor bias = randomTensor(random, ScalarType::F32, {rows});
    HostTensor y(ScalarType::F32, {37, rows});
    std::vector<HostTensor *> tensors = {&x};
    addParts(weight, tensors);
    tensors.push_back(&bias);
    tensors.push_back(&y);
    ASSERT_EQ(runOnDevice(wna16_cuda_linear, &plan, tensors, 1), WNA16_OK)
        << wna16_status_message();
    std::vector<double> expected;
    for (int64_t t = 0; t < 37; ++t)
      for (int64_t n = 0; n < rows; ++n) {
        double sum = bias.get(n);
        for (int64_t k = 0; k < weight.plan.input; ++k)
          sum += x.get(t * weight.plan.input + k) * weight.at(0, n, k);
        expected.push_back(sum);
      }
    EXPECT_LE(relativeError(y, expected), 1e-6);
  }
}

} // namespace
