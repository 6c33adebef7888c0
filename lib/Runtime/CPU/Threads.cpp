//===- Threads.cpp - How many threads a call uses -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads.h"

#include "Runtime/wna16.h"

#include <algorithm>
#include <atomic>
#include <omp.h>

static constexpr int32_t kMaxThreads = 1024;

/// What the user asked for; 0: one per core.
static std::atomic<int32_t> requestedThreads{0};

int wna16::threadCount() {
  int32_t requested = requestedThreads.load(std::memory_order_relaxed);
  return std::clamp(requested > 0 ? requested : omp_get_num_procs(), 1,
                    kMaxThreads);
}

void wna16_set_num_threads(int32_t threads) {
  requestedThreads.store(std::max(threads, 0), std::memory_order_relaxed);
}

int32_t wna16_get_num_threads(void) { return wna16::threadCount(); }
