//===- Device.h - The CUDA device and its errors ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_DEVICE_H
#define WNA16_LIB_RUNTIME_CUDA_DEVICE_H

#include "../Status.h"

#include <cuda_runtime.h>

namespace wna16::cuda {

/// What kernels are chosen by.
struct DeviceInfo {
  int multiprocessors = 0;
  int capability = 0; ///< 90 for sm_90
  /// What kernels were compiled for, in the same form. Less than `capability`
  /// where the driver compiled them anew for a later device.
  int code = 0;
};

/// The calling thread's current device; null, with a status, when there is none
/// that can be used. Asks the driver once for each device.
const DeviceInfo *currentDevice(const char *kernel);

/// Turns a CUDA error into the thread's status; true when there was none.
bool check(const char *kernel, const char *what, cudaError_t error);

/// How a kernel starts.
struct Launch {
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  /// Blocks along the grid's third axis that share their memory.
  unsigned cluster = 1;
  /// May start before the one before it in the stream ends: it waits by itself,
  /// with waitForPrevious(), before it reads or writes what that one writes.
  bool early = false;
};

/// Launches a kernel; false, with a status, when it could not be.
template <typename... Parameters, typename... Arguments>
bool launch(const char *name, void (*kernel)(Parameters...), const Launch &how,
            Arguments... arguments) {
  // 48 KiB are free, of which kernels themselves declare some.
  constexpr size_t kFree = 48 * 1024, kDeclared = 24 * 1024;
  if (how.shared > kFree - kDeclared &&
      !check(name, "setting shared memory",
             cudaFuncSetAttribute(kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(how.shared))))
    return false;
  cudaLaunchConfig_t config = {};
  config.gridDim = how.grid;
  config.blockDim = how.block;
  config.dynamicSmemBytes = how.shared;
  config.stream = how.stream;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (how.early) {
    cudaLaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  if (how.cluster > 1) {
    cudaLaunchAttribute &attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {1, 1, how.cluster};
  }
  return check(name, "the launch",
               cudaLaunchKernelEx(&config, kernel,
                                  static_cast<Parameters>(arguments)...));
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_DEVICE_H
