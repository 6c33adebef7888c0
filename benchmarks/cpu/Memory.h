//===- Memory.h - Large pieces of memory ------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_MEMORY_H
#define WNA16_BENCHMARKS_CPU_MEMORY_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>

namespace wna16 {

/// Memory on large pages, where the system has them and it fills one; every
/// page written.
class PageMemory {
public:
  explicit PageMemory(int64_t bytes) {
    constexpr int64_t kPage = int64_t(2) << 20;
    const int64_t unit = bytes < kPage ? 64 : kPage;
    const int64_t whole = (bytes + unit - 1) / unit * unit;
    memory.reset(
        static_cast<char *>(std::aligned_alloc(unit, whole ? whole : unit)));
    if (!memory)
      throw std::bad_alloc();
    if (unit == kPage)
      madvise(memory.get(), whole, MADV_HUGEPAGE);
    std::memset(memory.get(), 0, whole);
  }

  char *data() const { return memory.get(); }

private:
  struct Free {
    void operator()(char *address) const { std::free(address); }
  };
  std::unique_ptr<char, Free> memory;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_MEMORY_H
