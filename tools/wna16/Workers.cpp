//===- Workers.cpp - Long work on all cores -------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <thread>
#include <vector>

using namespace wna16;
using namespace wna16::cli;

double ByteProgress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

void ByteProgress::add(int64_t bytes) {
  constexpr double kInterval = 0.1, kGiB = 1 << 30;
  int64_t now = done += bytes;
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock || seconds() < shown + kInterval ||
      !llvm::sys::Process::StandardErrIsDisplayed())
    return;
  shown = seconds();
  llvm::errs() << llvm::formatv(
      "\r\033[K{0}: {1:f2} of {2:f2} GiB, {3:f2} GB/s", what,
      double(now) / kGiB, double(total) / kGiB,
      double(now) / 1e9 / std::max(shown, 1e-3));
}

ByteProgress::~ByteProgress() {
  if (shown >= 0)
    llvm::errs() << "\r\033[K";
}

Failure cli::forEach(int64_t count, int64_t threads,
                     llvm::function_ref<Failure(int64_t)> work) {
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Failure first;
  auto run = [&] {
    for (int64_t i; (i = next++) < count;)
      if (Failure failure = work(i)) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!first)
          first = std::move(failure);
        next = count;
      }
  };
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < std::min(threads, count); ++i)
    pool.emplace_back(run);
  run();
  for (std::thread &thread : pool)
    thread.join();
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
