//===- ElementwiseTest.cpp - fill, sum and copy on a device ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "gtest/gtest.h"

using namespace wna16;
using namespace wna16test;

namespace {

constexpr ScalarType kFloats[] = {ScalarType::F16, ScalarType::BF16,
                                  ScalarType::F32};
/// More elements than one sweep of the grid has threads.
const std::vector<int64_t> kShapes[] = {
    {0, 5}, {1, 1}, {7, 33}, {2, 3, 4}, {1100, 1024}};

TEST(Elementwise, FillsWithOneValue) {
  wna16_fill_plan plan = {WNA16_ABI_VERSION, -2.5};
  for (const auto &shape : kShapes)
    for (ScalarType type : kFloats) {
      HostTensor y(type, shape);
      ASSERT_EQ(runOnDevice(wna16_cuda_fill, &plan, {&y}, 1), WNA16_OK)
          << wna16_status_message();
      for (int64_t i = 0; i < y.elements(); ++i)
        ASSERT_EQ(y.get(i), -2.5) << i;
    }
  plan.value = 7;
  HostTensor ids(ScalarType::I32, {9, 1});
  ASSERT_EQ(runOnDevice(wna16_cuda_fill, &plan, {&ids}, 1), WNA16_OK)
      << wna16_status_message();
  for (int64_t i = 0; i < ids.elements(); ++i)
    EXPECT_EQ(ids.as<int32_t>()[i], 7);
}

TEST(Elementwise, AddsInF32AndRoundsOnce) {
  const wna16_sum_plan plan = {WNA16_ABI_VERSION};
  Random random(3);
  for (const auto &shape : kShapes)
    for (ScalarType type : kFloats)
      for (bool two : {false, true}) {
        HostTensor a = randomTensor(random, ScalarType::F32, shape);
        HostTensor b =
            two ? randomTensor(random, ScalarType::F32, shape) : HostTensor();
        HostTensor y(type, shape);
        ASSERT_EQ(runOnDevice(wna16_cuda_sum, &plan, {&a, &b, &y}, 1), WNA16_OK)
            << wna16_status_message();
        for (int64_t i = 0; i < y.elements(); ++i) {
          const auto first = static_cast<float>(a.get(i));
          const float sum = two ? first + static_cast<float>(b.get(i)) : first;
          ASSERT_EQ(y.get(i), roundTo(type, sum)) << i;
        }
      }
}

TEST(Elementwise, CopiesBytes) {
  const wna16_copy_plan plan = {WNA16_ABI_VERSION};
  Random random(4);
  HostTensor source = randomTensor(random, ScalarType::BF16, {13, 17});
  HostTensor target(ScalarType::BF16, {13, 17});
  ASSERT_EQ(runOnDevice(wna16_cuda_copy, &plan, {&source, &target}, 1),
            WNA16_OK)
      << wna16_status_message();
  EXPECT_TRUE(source.sameBytes(target));
}

/// Found before there is need of a device.
TEST(NoDevice, ElementwiseArgumentsAreChecked) {
  auto message = [](wna16_kernel kernel, std::vector<HostTensor *> tensors) {
    const wna16_fill_plan plan = {WNA16_ABI_VERSION, 0};
    std::vector<wna16_tensor> views;
    for (HostTensor *tensor : tensors) {
      views.push_back(tensor->present() ? tensor->view() : wna16_tensor());
      views.back().device.device_type = 2;
    }
    wna16_status_clear();
    kernel(&plan, views.data(), static_cast<int64_t>(views.size()), nullptr, 0,
           nullptr);
    std::string text = wna16_status_message();
    wna16_status_clear();
    return text;
  };
  HostTensor f32(ScalarType::F32, {2, 3}), other(ScalarType::F32, {3, 2}),
      ids(ScalarType::I32, {2, 3}), bf16(ScalarType::BF16, {2, 3});
  HostTensor absent;
  EXPECT_EQ(message(wna16_cuda_fill, {}), "fill: expected 1 tensors, got 0");
  EXPECT_EQ(message(wna16_cuda_sum, {&f32, &other, &bf16}),
            "sum: expected b of shape [2, 3], got rank 2, [3, 2]");
  EXPECT_EQ(message(wna16_cuda_sum, {&f32, &absent, &ids}),
            "sum: expected y of type f16 or bf16 or f32, got i32 (code 0, 32 "
            "bits, 1 lanes)");
  EXPECT_EQ(message(wna16_cuda_copy, {&f32, &bf16}),
            "copy: expected target of type f32, got bf16 (code 4, 16 bits, 1 "
            "lanes)");
}

TEST(NoDevice, MemorySaysSo) {
  wna16_status_clear();
  EXPECT_EQ(wna16_cuda_capability(), -1);
  EXPECT_EQ(wna16_status_get(), WNA16_FAILED);
  wna16_status_clear();
  void *memory = &memory;
  EXPECT_EQ(wna16_cuda_allocate(64, &memory), WNA16_FAILED);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(std::string(wna16_status_message())
                .rfind("allocate: finding a CUDA device failed: ", 0),
            0u)
      << wna16_status_message();
  wna16_status_clear();
  EXPECT_EQ(wna16_cuda_allocate(-1, &memory), WNA16_INVALID_ARGUMENT);
  EXPECT_STREQ(wna16_status_message(),
               "allocate: expected 0 bytes or more, got -1");
  wna16_status_clear();
  EXPECT_EQ(wna16_cuda_allocate(64, nullptr), WNA16_INVALID_ARGUMENT);
  EXPECT_STREQ(wna16_status_message(), "allocate: nowhere to put the address");
  wna16_status_clear();
  wna16_cuda_free(nullptr);
}

} // namespace
