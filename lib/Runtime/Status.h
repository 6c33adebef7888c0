//===- Status.h - The calling thread's status -------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_STATUS_H
#define WNA16_LIB_RUNTIME_STATUS_H

#include "Runtime/wna16.h"

namespace wna16 {

/// Records the first error of the thread, with a message as printf makes it,
/// and returns the thread's status. Allocates nothing.
__attribute__((format(printf, 2, 3))) wna16_status setStatus(wna16_status code,
                                                             const char *format,
                                                             ...);

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_STATUS_H
