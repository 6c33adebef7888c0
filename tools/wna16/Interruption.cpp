//===- Interruption.cpp - Signals that ask for an end ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interruption.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>

using namespace wna16;
using namespace wna16::cli;

static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

static std::atomic<int> received = 0;
static struct sigaction before[std::size(kSignals)];

Interruptible::Interruptible() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { received = signal; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], &action, &before[i]);
    // Under nohup, say.
    if (before[i].sa_handler == SIG_IGN)
      ::sigaction(kSignals[i], &before[i], nullptr);
  }
}

Interruptible::~Interruptible() {
  for (size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], &before[i], nullptr);
}

Failure cli::checkInterrupted() {
  return received ? fail("interrupted") : ok();
}

void cli::endIfInterrupted() {
  if (int signal = received) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}
