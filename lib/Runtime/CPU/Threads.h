//===- Threads.h - How many threads a call uses -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_THREADS_H
#define WNA16_LIB_RUNTIME_CPU_THREADS_H

namespace wna16 {

/// Threads that a call starting now may use; at least 1.
int threadCount();

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_THREADS_H
