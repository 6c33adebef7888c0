//===- Workers.cpp - Long work on all cores -------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "Interruption.h"

#include "Checkpoint/Threads.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

using namespace wna16;
using namespace wna16::cli;

Failure cli::forEach(int64_t count, int64_t threads,
                     llvm::function_ref<Failure(int64_t)> work) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Failure first;
  auto run = [&] {
    for (int64_t i; (i = next++) < count;) {
      Failure failure = checkInterrupted();
      if (!failure)
        failure = work(i);
      if (!failure)
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (!first)
        first = std::move(failure);
      next = count;
    }
  };
  onThreads(std::min(threads, count), run);
  return first;
}

Result<int64_t> cli::byteSize(const Arguments &arguments,
                              llvm::StringRef option, int64_t otherwise) {
  if (!arguments.has(option))
    return otherwise;
  std::string given = arguments.get(option);
  llvm::StringRef text = given;
  int shift = text.consume_back("K")   ? 10
              : text.consume_back("M") ? 20
              : text.consume_back("G") ? 30
                                       : 0;
  int64_t value;
  if (text.getAsInteger(10, value) || value < 1 || value > INT64_MAX >> shift)
    return usage(option +
                 ": expected a number of bytes such as 500M or 5G, got '" +
                 given + "'");
  return value << shift;
}
