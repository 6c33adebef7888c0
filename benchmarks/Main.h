//===- Main.h - Programs of Google Benchmark --------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_MAIN_H
#define WNA16_BENCHMARKS_MAIN_H

#include <benchmark/benchmark.h>

namespace wna16 {

/// Defined by each program, called by the `main` of all.
void registerBenchmarks();

} // namespace wna16

#endif // WNA16_BENCHMARKS_MAIN_H
