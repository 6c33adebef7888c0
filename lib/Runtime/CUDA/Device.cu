//===- Device.cu - The CUDA device and its errors -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"

#include <atomic>

using namespace wna16;
using namespace wna16::cuda;

bool cuda::check(const char *kernel, const char *what, cudaError_t error) {
  if (error == cudaSuccess)
    return true;
  // Launch errors stay until they are fetched.
  cudaGetLastError();
  setStatus(WNA16_FAILED, "%s: %s failed: %s (%s)", kernel, what,
            cudaGetErrorString(error), cudaGetErrorName(error));
  return false;
}

/// Compiled as all kernels are.
static __global__ void anyKernel() {}

static bool askCode(const char *kernel, DeviceInfo &info) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, anyKernel);
  if (error == cudaErrorNoKernelImageForDevice ||
      error == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    setStatus(WNA16_UNSUPPORTED,
              "%s: this build has no kernels for a device of compute "
              "capability %d.%d; -DWNA16_CUDA_ARCHITECTURES=%d%s makes some",
              kernel, info.capability / 10, info.capability % 10,
              info.capability, info.capability == 90 ? "a" : "");
    return false;
  }
  if (!check(kernel, "asking for a kernel's attributes", error))
    return false;
  info.code = attributes.ptxVersion;
  return true;
}

static bool ask(const char *kernel, int device, DeviceInfo &info) {
  int major = 0, minor = 0;
  struct {
    cudaDeviceAttr attribute;
    int *value;
  } const questions[] = {
      {cudaDevAttrMultiProcessorCount, &info.multiprocessors},
      {cudaDevAttrComputeCapabilityMajor, &major},
      {cudaDevAttrComputeCapabilityMinor, &minor}};
  for (auto [attribute, value] : questions)
    if (!check(kernel, "asking for a device's attributes",
               cudaDeviceGetAttribute(value, attribute, device)))
      return false;
  info.capability = 10 * major + minor;
  if (info.capability >= 80)
    return askCode(kernel, info);
  setStatus(WNA16_UNSUPPORTED,
            "%s: expected a device of compute capability 8.0 or more, got "
            "%d.%d",
            kernel, major, minor);
  return false;
}

const DeviceInfo *cuda::currentDevice(const char *kernel) {
  constexpr int kMaxDevices = 64;
  static DeviceInfo known[kMaxDevices];
  static std::atomic<bool> isKnown[kMaxDevices];
  int device = 0;
  if (!check(kernel, "finding a CUDA device", cudaGetDevice(&device)))
    return nullptr;
  if (device < 0 || device >= kMaxDevices) {
    setStatus(WNA16_UNSUPPORTED, "%s: expected a device below %d, got %d",
              kernel, kMaxDevices, device);
    return nullptr;
  }
  if (isKnown[device].load(std::memory_order_acquire))
    return &known[device];
  DeviceInfo info;
  if (!ask(kernel, device, info))
    return nullptr;
  // Threads that race write the same.
  known[device] = info;
  isKnown[device].store(true, std::memory_order_release);
  return &known[device];
}
