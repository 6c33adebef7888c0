//===- Workspace.h - Carving up the caller's workspace ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel lays out its workspace in one function, which runs twice: without
// memory to learn the size, and with the caller's memory to use it.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_WORKSPACE_H
#define WNA16_LIB_RUNTIME_CPU_WORKSPACE_H

#include "../Status.h"

namespace wna16 {

/// Hands out consecutive pieces of memory, each aligned to 64 bytes.
class Carver {
public:
  explicit Carver(void *memory) : memory(static_cast<char *>(memory)) {}

  /// Room for count (>= 0) elements; null while only the size is wanted.
  template <typename T>
  T *take(int64_t count) {
    return static_cast<T *>(takeBytes(count, sizeof(T)));
  }
  void *takeBytes(int64_t count, int64_t size = 1) {
    int64_t bytes = 0;
    int64_t begin = used;
    overflow |= __builtin_mul_overflow(count, size, &bytes) ||
                __builtin_add_overflow(bytes, int64_t(63), &bytes) ||
                __builtin_add_overflow(used, bytes & ~int64_t(63), &used);
    return memory && !overflow ? memory + begin : nullptr;
  }

  /// The bytes handed out; -1, with a status, when they overflow 63 bits.
  int64_t bytes(const char *kernel) const {
    if (!overflow)
      return used;
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: the workspace would exceed 2^63 bytes", kernel);
    return -1;
  }

private:
  char *memory;
  int64_t used = 0;
  bool overflow = false;
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_WORKSPACE_H
