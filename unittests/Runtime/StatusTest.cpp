//===- StatusTest.cpp - Status and argument errors ------------------------===//
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

TEST(Status, IsStickyUntilCleared) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 1, 1);
  HostTensor y = layer.emptyOutput();
  layer.plan.top_k = 0;
  EXPECT_EQ(layer.run(y), WNA16_INVALID_ARGUMENT);
  const std::string message = wna16_status_message();
  EXPECT_EQ(message,
            "fused_experts: expected top_k from 1 to 2147483647, got 0");
  layer.plan.top_k = 1;
  EXPECT_EQ(
      wna16_cpu_fused_experts(&layer.plan, nullptr, 0, nullptr, 0, nullptr),
      WNA16_INVALID_ARGUMENT);
  EXPECT_EQ(message, wna16_status_message());
  EXPECT_EQ(layer.run(y), WNA16_OK);
  EXPECT_STREQ(wna16_status_message(), "");
}

TEST(Status, TensorsThatAreMissing) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 1, 1);
  auto call = [&](const wna16_tensor *tensors, int64_t count) -> std::string {
    wna16_status_clear();
    EXPECT_EQ(wna16_cpu_fused_experts(&layer.plan, tensors, count, nullptr, 0,
                                      nullptr),
              WNA16_INVALID_ARGUMENT);
    return wna16_status_message();
  };
  EXPECT_EQ(call(nullptr, 19), "fused_experts: expected 19 tensors, got NULL");
  EXPECT_EQ(call(nullptr, 3), "fused_experts: expected 19 tensors, got 3");
  wna16_status_clear();
}

TEST(Status, PlansThatAreRefused) {
  struct {
    wna16_status status;
    const char *message;
    std::function<void(Layer &)> change;
  } cases[] = {
      {WNA16_UNSUPPORTED,
       "fused_experts: int8 activations (activation_type 1) are not supported "
       "on the cpu yet; use 16-bit activations (0)",
       [](Layer &layer) { layer.plan.activation_type = 1; }},
      {WNA16_UNSUPPORTED,
       "fused_experts: fp8 activations (activation_type 2) are not supported "
       "on the cpu yet; use 16-bit activations (0)",
       [](Layer &layer) { layer.plan.activation_type = 2; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected top_k 1 with weight_on_input, got 2",
       [](Layer &layer) { layer.plan.weight_on_input = 1; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected top_k 1 with batched tokens, got 2",
       [](Layer &layer) { layer.plan.batched = 1; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected weight_on_input 0 with batched tokens, got 1",
       [](Layer &layer) {
         layer.plan.batched = layer.plan.weight_on_input = 1;
         layer.plan.top_k = 1;
       }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected w13 with 2 halves for swigluoai and "
       "swiglustep, got 1",
       [](Layer &layer) {
         Random random(1);
         layer = packedLayer(random, 2, 32, 32, 3, 2, ScalarType::F32, {}, 1);
         layer.plan.activation = WNA16_SWIGLUOAI;
       }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected a finite limit for swiglustep, got inf",
       [](Layer &layer) {
         layer.plan.activation = WNA16_SWIGLUSTEP;
         layer.plan.limit = INFINITY;
       }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected a finite alpha, got -inf",
       [](Layer &layer) { layer.plan.alpha = -INFINITY; }},
      {WNA16_INVALID_ARGUMENT, "fused_experts: expected a finite beta, got inf",
       [](Layer &layer) { layer.plan.beta = INFINITY; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected activation from 0 to 5, got 6",
       [](Layer &layer) { layer.plan.activation = 6; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected w13.input (32) to be at least hidden (33)",
       [](Layer &layer) { layer.plan.hidden = 33; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: w13.layout 99 is not in the catalogue",
       [](Layer &layer) { layer.plan.w13.layout = 99; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected a positive limit, or infinity for none, got "
       "-2.5",
       [](Layer &layer) { layer.plan.limit = -2.5; }},
      {WNA16_INVALID_ARGUMENT,
       "fused_experts: expected topk_ids of shape [3, 2], got rank 2, [3, 1]",
       [](Layer &layer) { layer.ids = indexTensor({3, 1}, {0, 0, 0}); }},
      {WNA16_INVALID_ARGUMENT, "fused_experts: topk_ids is missing",
       [](Layer &layer) { layer.ids = {}; }},
  };
  for (const auto &entry : cases) {
    Random random(1);
    Layer layer = packedLayer(random, 2, 32, 32, 3, 2);
    entry.change(layer);
    HostTensor y = layer.emptyOutput();
    EXPECT_EQ(layer.run(y), entry.status);
    EXPECT_STREQ(wna16_status_message(), entry.message);
  }
}

TEST(Status, TokensThatAreTooMany) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 3, 1);
  layer.plan.batched = 1;
  EXPECT_EQ(wna16_cpu_fused_experts_workspace(&layer.plan, INT64_MAX), -1);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected tokens (9223372036854775807) of all "
               "experts (2) to be at most 9223372036854775807");
  EXPECT_EQ(wna16_cpu_fused_experts_workspace(&layer.plan, -1), -1);
  EXPECT_STREQ(wna16_status_message(),
               "fused_experts: expected tokens from 0 to 9223372036854775807, "
               "got -1");
  wna16_status_clear();
}

TEST(Status, TensorsAndWorkspaceThatAreRefused) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 3, 2);
  HostTensor y = layer.emptyOutput();
  wna16_status_clear();
  const int64_t bytes = wna16_cpu_fused_experts_workspace(&layer.plan, 3);
  Workspace workspace(bytes);
  auto call = [&](const std::function<void(wna16_tensor &)> &change,
                  int64_t given) {
    std::vector<wna16_tensor> tensors = layer.tensors(y);
    change(tensors[0]);
    wna16_status_clear();
    wna16_cpu_fused_experts(&layer.plan, tensors.data(), tensors.size(),
                            workspace.data(), given, nullptr);
    return std::string(wna16_status_message());
  };
  EXPECT_EQ(
      call([](auto &x) { x.device.device_type = 2; }, bytes),
      "fused_experts: expected x on device type 1 (1 is the cpu), got device "
      "type 2");
  EXPECT_EQ(call([](auto &x) { x.dtype = {0, 32, 1}; }, bytes),
            "fused_experts: expected x of type f32, got i32 (code 0, 32 bits, "
            "1 lanes)");
  int64_t strides[] = {1, 3};
  EXPECT_EQ(call([&](auto &x) { x.strides = strides; }, bytes),
            "fused_experts: x has to be contiguous in row-major order");
  EXPECT_EQ(call([](auto &x) { x.data = nullptr; }, bytes),
            "fused_experts: x has no data");
  EXPECT_EQ(call([](auto &) {}, bytes - 1),
            "expected a workspace of " + std::to_string(bytes) +
                " bytes, got " + std::to_string(bytes - 1));
  EXPECT_EQ(wna16_status_get(), WNA16_WORKSPACE);
  wna16_status_clear();
}

TEST(Status, KernelNameCanBeAskedFor) {
  Random random(1);
  Layer layer = packedLayer(random, 2, 32, 32, 3, 2);
  wna16_status_clear();
  EXPECT_STREQ(wna16_cpu_fused_experts_kernel(&layer.plan, 3), "portable");
}

TEST(Status, SignaturesAreChecked) {
  HostTensor tensor(ScalarType::F32, {2, 3});
  const wna16_tensor view = tensor.view();
  auto check = [&](std::vector<int64_t> signature, int64_t count) {
    wna16_check_arguments(signature.data(), &view, count);
    return std::string(wna16_status_message());
  };
  EXPECT_EQ(check({1, 1, 2, 2, 2, -1}, 1), "");
  EXPECT_EQ(check({1, 1, 2, 2, 2, 4}, 1),
            "arguments: expected argument 0 of shape [2, 4], got rank 2, [2, "
            "3]");
  EXPECT_EQ(check({1, 1, 0, 2, 2, 3}, 1),
            "arguments: expected argument 0 of type f16, got f32 (code 2, 32 "
            "bits, 1 lanes)");
  EXPECT_EQ(check({1, 1, 10, 2, 2, 3}, 1),
            "arguments: expected a signature's type from 0 to 9, got 10");
  EXPECT_EQ(check({1, 1, 2, 9, 2, 3}, 1),
            "arguments: expected a signature's rank from 0 to 8, got 9");
  EXPECT_EQ(check({1, 1, 2, -1}, 1),
            "arguments: expected a signature's rank from 0 to 8, got -1");
  EXPECT_EQ(check({1, 2, 2, 2, 2, 3}, 1),
            "arguments: expected 2 tensors, got 1");
  // One symbol is one extent: [2, 3] is not square.
  EXPECT_EQ(check({1, 1, 2, 2, -2, -3}, 1), "");
  EXPECT_EQ(check({1, 1, 2, 2, -2, -2}, 1),
            "arguments: expected axis 1 of argument 0 to be 2 as in the "
            "tensors before, got 3");
  EXPECT_EQ(check({1, 1, 2, 2, -2, -1000}, 1),
            "arguments: expected a signature's symbol from 0 to 127, got 998");
  EXPECT_EQ(check({2, 1, 2, 2, 2, 3}, 1),
            "arguments: expected argument 0 on device type 2 (1 is the cpu), "
            "got device type 1");
  EXPECT_EQ(wna16_check_arguments(nullptr, &view, 1), WNA16_INVALID_ARGUMENT);
  wna16_status_clear();
}

} // namespace
