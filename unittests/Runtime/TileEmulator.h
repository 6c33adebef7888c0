//===- TileEmulator.h - AMX on machines without it --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_RUNTIME_TILEEMULATOR_H
#define WNA16_UNITTESTS_RUNTIME_TILEEMULATOR_H

#include <csignal>
#include <cstdint>

namespace wna16test {

/// As long as one lives, instructions of AMX-TILE and TDPBSUD that this machine
/// refuses (SIGILL) are executed as the Intel Software Developer's Manual,
/// volume 2, defines them. What that refuses too, or does not say, ends the
/// process. For one thread; at most one lives.
class TileEmulator {
public:
  TileEmulator();
  ~TileEmulator();
  TileEmulator(const TileEmulator &) = delete;
  TileEmulator &operator=(const TileEmulator &) = delete;

  /// Products of tiles so far.
  int64_t products() const;
  /// Whether a configuration is loaded.
  bool isConfigured() const;

private:
  struct sigaction previous;
};

} // namespace wna16test

#endif // WNA16_UNITTESTS_RUNTIME_TILEEMULATOR_H
