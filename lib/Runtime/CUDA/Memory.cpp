//===- Memory.cpp - A device for programs without CUDA ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>
#include <cinttypes>

using namespace wna16;
using namespace wna16::cuda;

static bool isSize(const char *call, int64_t bytes) {
  if (bytes < 0)
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected 0 bytes or more, got %" PRId64, call, bytes);
  return wna16_status_get() == WNA16_OK;
}

int32_t wna16_cuda_capability() {
  const DeviceInfo *device = currentDevice("capability");
  return device ? device->capability : -1;
}

wna16_status wna16_cuda_allocate(int64_t bytes, void **memory) {
  constexpr const char *kCall = "allocate";
  if (!memory)
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: nowhere to put the address",
                     kCall);
  *memory = nullptr;
  if (isSize(kCall, bytes) && currentDevice(kCall))
    check(kCall, "taking device memory",
          cudaMalloc(memory, static_cast<size_t>(std::max<int64_t>(bytes, 1))));
  return wna16_status_get();
}

void wna16_cuda_free(void *memory) { cudaFree(memory); }

wna16_status wna16_cuda_transfer(void *target, const void *source,
                                 int64_t bytes) {
  constexpr const char *kCall = "transfer";
  if (isSize(kCall, bytes) && bytes > 0)
    check(kCall, "copying",
          cudaMemcpy(target, source, static_cast<size_t>(bytes),
                     cudaMemcpyDefault));
  return wna16_status_get();
}

wna16_status wna16_cuda_synchronize(void *stream) {
  constexpr const char *kCall = "synchronize";
  if (wna16_status_get() == WNA16_OK)
    check(kCall, "waiting for a stream",
          cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  return wna16_status_get();
}
