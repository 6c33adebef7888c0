//===- wna16.cpp - Quantised MoE checkpoints on the command line ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

using namespace wna16::cli;

int main(int argc, char **argv) {
  llvm::setBugReportMsg("please report this with the input and the command "
                        "line, and the stack below\n");
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::PrettyStackTraceProgram trace(argc, argv);
  const Command *commands[] = {&importCommand, &explainCommand, &checkCommand,
                               &runCommand,    &compileCommand, &prepareCommand,
                               &layoutCommand, &synthCommand,   &convertCommand,
                               &benchCommand};
  return dispatch(commands, argc, argv);
}
