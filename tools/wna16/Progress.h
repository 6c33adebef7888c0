//===- Progress.h - A line on the terminal ----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_PROGRESS_H
#define WNA16_TOOLS_WNA16_PROGRESS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

namespace wna16::cli {

/// A line on the terminal that the next one replaces; nothing in a pipe.
class Progress {
public:
  ~Progress() { show(""); }

  void show(const llvm::Twine &text) {
    if (terminal)
      llvm::errs() << "\r\033[K" << text;
  }

  /// A bar, drawn again for each percent.
  void showBytes(llvm::StringRef what, int64_t done, int64_t total) {
    constexpr int64_t kWidth = 40;
    int64_t percent =
        total > 0 ? static_cast<int64_t>(100.0 * done / total) : 100;
    if (!terminal || percent == shown)
      return;
    shown = percent;
    int64_t full = percent * kWidth / 100;
    show(what + " [" + std::string(full, '#') +
         std::string(kWidth - full, ' ') + "] " + llvm::Twine(percent) +
         " % of " + llvm::Twine(total >> 20) + " MiB");
  }

private:
  bool terminal = llvm::sys::Process::StandardErrIsDisplayed();
  int64_t shown = -1;
};

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_PROGRESS_H
