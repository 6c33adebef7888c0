//===- Disk.h - Files that outlast a loss of power --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_DISK_H
#define WNA16_LIB_CHECKPOINT_DISK_H

#include "Layout/Result.h"

#include <string>

namespace wna16 {

/// A failure that ends with the text of `errno`.
Failure systemFailure(const std::string &what);

/// Waits until a file's bytes, or a directory's names, are on disk.
Failure syncToDisk(const std::string &path);

/// Gives what is on disk its name, for good.
Failure rename(const std::string &from, const std::string &to);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_DISK_H
