//===- Isa.cpp - Which instruction set kernels use ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Isa.h"

#include <atomic>
#include <cstdlib>

using namespace wna16;

static constexpr std::string_view kNames[] = {"portable", "avx2", "avx512"};

static Isa detect() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    return Isa::Portable;
  for (bool has : {bool(__builtin_cpu_supports("avx512f")),
                   bool(__builtin_cpu_supports("avx512bw")),
                   bool(__builtin_cpu_supports("avx512dq")),
                   bool(__builtin_cpu_supports("avx512vl")),
                   bool(__builtin_cpu_supports("avx512vbmi")),
                   bool(__builtin_cpu_supports("avx512vnni"))})
    if (!has)
      return Isa::AVX2;
  return Isa::AVX512;
#else
  return Isa::Portable;
#endif
}

static Isa initial() {
  Isa best = detect();
  if (const char *wanted = std::getenv("WNA16_ISA"))
    for (Isa isa : {Isa::Portable, Isa::AVX2, Isa::AVX512})
      if (name(isa) == wanted && isa <= best)
        return isa;
  return best;
}

static std::atomic<Isa> &current() {
  static std::atomic<Isa> value{initial()};
  return value;
}

Isa wna16::isa() { return current().load(std::memory_order_relaxed); }

bool wna16::setIsa(Isa wanted) {
  if (wanted > detect())
    return false;
  current().store(wanted, std::memory_order_relaxed);
  return true;
}

std::string_view wna16::name(Isa isa) { return kNames[static_cast<int>(isa)]; }
