//===- Ceilings.h - What the machine can do at most -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_CEILINGS_H
#define WNA16_BENCHMARKS_CPU_CEILINGS_H

#include "Report.h"

namespace wna16 {

/// Measures with `threads` threads; takes about a second.
Ceilings measureCeilings(int threads);

/// Bytes a second from memory at this moment; takes milliseconds.
double measureReadNow(int threads);

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_CEILINGS_H
