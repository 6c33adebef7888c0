//===- Threads.h - Work on several threads ----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_THREADS_H
#define WNA16_CHECKPOINT_THREADS_H

#include <cstdint>
#include <functional>

namespace wna16 {

/// Calls `work` from `count` threads at once, the caller's among them, and
/// waits for all. Where the system refuses threads, there are fewer.
void onThreads(int64_t count, const std::function<void()> &work);

} // namespace wna16

#endif // WNA16_CHECKPOINT_THREADS_H
