//===- Threads.h - The threads of a call ------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop whose iterations any thread may run. The caller's thread takes part
// and never waits for helpers to wake up, only for those that have taken an
// iteration; so a machine that is busy with something else costs its share of
// time and no more. Helpers are started once, spin for a moment after a loop
// because the next one usually follows at once, and then sleep.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_THREADS_H
#define WNA16_LIB_RUNTIME_CPU_THREADS_H

#include <cstdint>

namespace wna16 {

/// Threads that a call starting now may use; at least 1.
int threadCount();

/// Which of a loop's threads runs an iteration: below the number of threads
/// asked for, and no two at a time have the same.
using Worker = int;

using LoopBody = void (*)(void *context, int64_t index, Worker worker);

/// Calls body(context, i, worker) once for each i in [0, count), in no order,
/// on up to `threads` threads: the caller's own, if it brought any. A caller
/// that finds the helpers busy with another caller's loop runs all iterations
/// itself. Bodies start no loops.
void runLoop(int threads, int64_t count, LoopBody body, void *context);

template <typename Body>
void parallelFor(int threads, int64_t count, const Body &body) {
  runLoop(
      threads, count,
      [](void *context, int64_t index, Worker worker) {
        (*static_cast<const Body *>(context))(index, worker);
      },
      const_cast<Body *>(&body));
}

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_THREADS_H
