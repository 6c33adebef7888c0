//===- Commands.h - The subcommands of wna16 --------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_COMMANDS_H
#define WNA16_TOOLS_WNA16_COMMANDS_H

#include "CommandLine.h"

namespace wna16::cli {

extern const Command importCommand;
extern const Command explainCommand;
extern const Command checkCommand;
extern const Command runCommand;
extern const Command compileCommand;
extern const Command prepareCommand;
extern const Command layoutCommand;
extern const Command benchCommand;
extern const Command synthCommand;
extern const Command convertCommand;

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_COMMANDS_H
