//===- TestSupport.cpp - Tests on a CUDA device -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "gtest/gtest.h"

#include <cuda_runtime.h>

using namespace wna16test;

bool wna16test::hasDevice() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::string wna16test::deviceFault() {
  int count = 0;
  return cudaGetErrorString(cudaGetDeviceCount(&count));
}

static void check(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

DeviceTensor::DeviceTensor(HostTensor &host) : host(host) {
  if (!host.present())
    return;
  const auto bytes = static_cast<size_t>(host.bytes());
  check(cudaMalloc(&memory, bytes ? bytes : 1));
  check(cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice));
}

DeviceTensor::~DeviceTensor() { cudaFree(memory); }

wna16_tensor DeviceTensor::view() {
  wna16_tensor view = host.present() ? host.view() : wna16_tensor();
  view.data = memory;
  view.device.device_type = host.present() ? 2 : 0;
  return view;
}

void DeviceTensor::fetch() {
  check(cudaMemcpy(host.data(), memory, static_cast<size_t>(host.bytes()),
                   cudaMemcpyDeviceToHost));
}

wna16_status wna16test::runOnDevice(wna16_kernel kernel, const void *plan,
                                    std::vector<HostTensor *> tensors,
                                    size_t outs, int64_t workspaceBytes) {
  std::vector<std::unique_ptr<DeviceTensor>> copies;
  std::vector<wna16_tensor> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i + outs >= tensors.size())
      tensors[i]->poison();
    copies.push_back(std::make_unique<DeviceTensor>(*tensors[i]));
    views.push_back(copies.back()->view());
  }
  void *workspace = nullptr;
  check(cudaMalloc(&workspace, static_cast<size_t>(workspaceBytes) + 1));
  check(cudaMemset(workspace, 0xff, static_cast<size_t>(workspaceBytes)));
  wna16_status_clear();
  const wna16_status status =
      kernel(plan, views.data(), static_cast<int64_t>(views.size()), workspace,
             workspaceBytes, nullptr);
  check(cudaDeviceSynchronize());
  cudaFree(workspace);
  for (size_t i = tensors.size() - outs; i < tensors.size(); ++i)
    if (tensors[i]->present())
      copies[i]->fetch();
  return status;
}

void wna16test::addParts(TestWeight &weight,
                         std::vector<HostTensor *> &tensors) {
  for (HostTensor &part : weight.parts)
    tensors.push_back(&part);
}

HostTensor wna16test::outputOnDevice(Layer &layer) {
  HostTensor y = layer.emptyOutput();
  std::vector<HostTensor *> tensors = {&layer.x, &layer.weights, &layer.ids};
  addParts(layer.w13, tensors);
  addParts(layer.w2, tensors);
  for (HostTensor *tensor : {&layer.bias13, &layer.bias2, &layer.expertMap, &y})
    tensors.push_back(tensor);
  const int64_t rows = layer.x.shape[layer.plan.batched ? 1 : 0];
  const int64_t bytes = wna16_cuda_fused_experts_workspace(&layer.plan, rows);
  EXPECT_GE(bytes, 0) << wna16_status_message();
  EXPECT_EQ(runOnDevice(wna16_cuda_fused_experts, &layer.plan, tensors, 1,
                        std::max<int64_t>(bytes, 0)),
            WNA16_OK)
      << wna16_status_message();
  return y;
}
