//===- NoDevice.cpp - Measuring in a build without CUDA -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceBench.h"

#include "Runtime/wna16_cuda.h"

using namespace wna16;

Result<BenchReport> wna16::runDeviceBench(const BenchOptions &,
                                          const BenchProgress &) {
  wna16_cuda_capability();
  return fail(std::string("no device to run on: ") + wna16_status_message());
}
