//===- ThreadsTest.cpp - Work on several threads --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

using namespace wna16;

TEST(OnThreads, CallsFromAsManyAtOnceAndWaits) {
  for (int count : {1, 2, 5}) {
    std::mutex mutex;
    std::set<std::thread::id> callers;
    std::atomic<int> there{0};
    onThreads(count, [&] {
      for (++there; there < count;)
        std::this_thread::yield();
      std::lock_guard<std::mutex> lock(mutex);
      callers.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(callers.size(), static_cast<size_t>(count));
    EXPECT_EQ(callers.count(std::this_thread::get_id()), 1u);
  }
}

TEST(OnThreads, CallsOnceWhereNoneIsAskedFor) {
  int calls = 0;
  onThreads(0, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}
