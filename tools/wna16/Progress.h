//===- Progress.h - A line on the terminal ----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_PROGRESS_H
#define WNA16_TOOLS_WNA16_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Process.h"

#include <atomic>
#include <chrono>
#include <mutex>

namespace wna16::cli {

/// A line on the terminal that the next one replaces; nothing in a pipe. For
/// any thread.
class Progress {
public:
  Progress() = default;
  /// Of work that `add` counts the bytes of.
  Progress(llvm::StringRef what, int64_t total) : what(what), total(total) {}
  ~Progress() { show(""); }

  void show(const llvm::Twine &text);
  /// A bar and a rate, drawn again ten times a second.
  void showBytes(llvm::StringRef what, int64_t done, int64_t total);
  void add(int64_t bytes) { showBytes(what, added += bytes, total); }
  double seconds() const;

private:
  using Clock = std::chrono::steady_clock;

  const bool terminal = llvm::sys::Process::StandardErrIsDisplayed();
  const Clock::time_point start = Clock::now();
  llvm::StringRef what;
  int64_t total = 0;
  std::atomic<int64_t> added{0};

  std::mutex mutex; ///< guards what is below, and the line
  bool written = false;
  double barStart = -1, drawn = -1; ///< in seconds after `start`
  int64_t before = 0;               ///< bytes done when the bar began
};

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_PROGRESS_H
