//===- Interruption.h - Signals that ask for an end -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_INTERRUPTION_H
#define WNA16_TOOLS_WNA16_INTERRUPTION_H

#include "Layout/Result.h"

namespace wna16::cli {

/// While one lives, SIGINT, SIGTERM and SIGHUP do not end the process: work
/// asks for them and fails, so that what it began is put away. A second signal
/// ends the process at once.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;
};

/// A failure once there was a signal.
Failure checkInterrupted();

/// Ends the process by the signal that there was, if any.
void endIfInterrupted();

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_INTERRUPTION_H
