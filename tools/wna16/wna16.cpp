//===- wna16.cpp - Quantised MoE checkpoints on the command line ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interruption.h"

#include "Layout/Isa.h"

#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

#include <csignal>
#include <cstdlib>

using namespace wna16;
using namespace wna16::cli;

/// The library takes the best set that there is instead of what it cannot obey;
/// a person should hear of it.
static Failure checkIsa() {
  const char *wanted = std::getenv("WNA16_ISA");
  if (!wanted || !*wanted || name(isa()) == wanted)
    return ok();
  std::string there;
  for (Isa isa : kIsas)
    if (setIsa(isa))
      there += (there.empty() ? "" : ", ") + std::string(name(isa));
  return fail("WNA16_ISA: expected a set of instructions that this machine "
              "has (" +
              there + "), got '" + wanted + "'");
}

/// A standard output that could not be written; LLVM would end the process.
static int checkOutput(int status) {
  llvm::raw_fd_ostream &os = llvm::outs();
  os.flush();
  if (!os.has_error())
    return status;
  llvm::errs() << "wna16: error: cannot write standard output: "
               << os.error().message() << "\n";
  os.clear_error();
  return 1;
}

int main(int argc, char **argv) {
  llvm::setBugReportMsg("please report this with the input and the command "
                        "line, and the stack below\n");
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::PrettyStackTraceProgram trace(argc, argv);
  // A file that reaches the limit of files is an error of its writer.
  std::signal(SIGXFSZ, SIG_IGN);
  const Command *commands[] = {&importCommand, &explainCommand, &checkCommand,
                               &runCommand,    &compileCommand, &prepareCommand,
                               &layoutCommand, &synthCommand,   &convertCommand,
                               &benchCommand};
  if (Failure failure = checkIsa()) {
    llvm::errs() << "wna16: error: " << failure.message << "\n";
    return 2;
  }
  int status = checkOutput(dispatch(commands, argc, argv));
  endIfInterrupted();
  return status;
}
