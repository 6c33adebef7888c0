//===- Threads.cpp - Work on several threads ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Threads.h"

#include <system_error>
#include <thread>
#include <vector>

void wna16::onThreads(int64_t count, const std::function<void()> &work) {
  std::vector<std::thread> others;
  others.reserve(count > 1 ? static_cast<size_t>(count - 1) : 0);
  try {
    for (int64_t i = 1; i < count; ++i)
      others.emplace_back(work);
  } catch (const std::system_error &) {
    // What is there does the work.
  }
  work();
  for (std::thread &other : others)
    other.join();
}
