//===- DeviceBench.h - The speed of a layer on a device ---------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CUDA_DEVICEBENCH_H
#define WNA16_BENCHMARKS_CUDA_DEVICEBENCH_H

#include "Report.h"

namespace wna16 {

/// Measures on the current CUDA device: layouts marlin, humming_mma and
/// humming_wgmma. Fails where there is none.
Result<BenchReport> runDeviceBench(const BenchOptions &options,
                                   const BenchProgress &progress);

} // namespace wna16

#endif // WNA16_BENCHMARKS_CUDA_DEVICEBENCH_H
