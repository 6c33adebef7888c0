//===- Workers.h - Long work on all cores -----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_WORKERS_H
#define WNA16_TOOLS_WNA16_WORKERS_H

#include "CommandLine.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace wna16::cli {

/// Calls `work` for 0 .. count - 1 from `threads` threads (0: one for each
/// core). Stops at the first failure, or an interruption, and returns it.
Failure forEach(int64_t count, int64_t threads,
                llvm::function_ref<Failure(int64_t)> work);

/// A number of bytes, "500M" or "5G" in powers of 1024.
Result<int64_t> byteSize(const Arguments &arguments, llvm::StringRef option,
                         int64_t otherwise);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_WORKERS_H
