//===- Progress.cpp - A line on the terminal ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace wna16::cli;

static void replaceLine(const llvm::Twine &text) {
  llvm::errs() << "\r\033[K" << text;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Progress::show(const llvm::Twine &text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!terminal || (!written && text.isTriviallyEmpty()))
    return;
  replaceLine(text);
  written = true;
}

void Progress::showBytes(llvm::StringRef name, int64_t done, int64_t all) {
  constexpr double kInterval = 0.1;
  constexpr int64_t kWidth = 40;
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  double now = seconds();
  if (!terminal || !lock || (drawn >= 0 && now < drawn + kInterval))
    return;
  if (drawn < 0) {
    barStart = now;
    before = done;
  }
  drawn = now;
  written = true;
  double part = all > 0 ? double(done) / double(all) : 1;
  auto full = static_cast<size_t>(std::clamp(part, 0.0, 1.0) * kWidth);
  double rate = double(done - before) / 1e9 / std::max(now - barStart, 1e-3);
  replaceLine(llvm::formatv("{0} [{1}{2}] {3:f0} % of {4} MiB, {5:f2} GB/s",
                            name, std::string(full, '#'),
                            std::string(kWidth - full, ' '), 100 * part,
                            all >> 20, rate)
                  .str());
}
