//===- LayerBench.h - The speed of a layer of experts -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs fused experts the way a model does: weights come from memory, because
// every call goes to other experts or other copies of the layer than the one
// before, and routing is random.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_LAYERBENCH_H
#define WNA16_BENCHMARKS_CPU_LAYERBENCH_H

#include "Report.h"

namespace wna16 {

/// Measures on this machine's CPUs.
Result<BenchReport> runBench(const BenchOptions &options,
                             const BenchProgress &progress);

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_LAYERBENCH_H
