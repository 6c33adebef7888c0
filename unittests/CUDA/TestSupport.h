//===- TestSupport.h - Tests on a CUDA device ---------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_CUDA_TESTSUPPORT_H
#define WNA16_UNITTESTS_CUDA_TESTSUPPORT_H

#include "../Runtime/TestSupport.h"
#include "Runtime/wna16_cuda.h"

#include <memory>

namespace wna16test {

bool hasDevice();
/// Why there is no device.
std::string deviceFault();

/// A copy of a tensor in the device's memory.
class DeviceTensor {
public:
  explicit DeviceTensor(HostTensor &host);
  ~DeviceTensor();
  DeviceTensor(const DeviceTensor &) = delete;
  DeviceTensor &operator=(const DeviceTensor &) = delete;

  wna16_tensor view();
  /// Copies the device's bytes into the host's tensor.
  void fetch();

private:
  HostTensor &host;
  void *memory = nullptr;
};

/// Calls a kernel of one of the C ABI's signatures on copies of tensors in
/// device memory, the last `outs` of which come back. Outputs and workspace are
/// poisoned.
wna16_status runOnDevice(wna16_kernel kernel, const void *plan,
                         std::vector<HostTensor *> tensors, size_t outs,
                         int64_t workspaceBytes = 0);

/// Runs a layer on the device; an empty tensor, and a failed test, when a call
/// fails.
HostTensor outputOnDevice(Layer &layer);

/// A weight's six tensors, in order.
void addParts(TestWeight &weight, std::vector<HostTensor *> &tensors);

} // namespace wna16test

#endif // WNA16_UNITTESTS_CUDA_TESTSUPPORT_H
