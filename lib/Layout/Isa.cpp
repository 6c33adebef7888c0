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

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace wna16;

static constexpr std::string_view kNames[] = {"portable", "avx2", "avx512",
                                              "amx"};

/// Whether the machine has tiles and the process may use them: the registers
/// are so large that Linux wants to be asked.
static bool mayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return __builtin_cpu_supports("amx-tile") &&
         __builtin_cpu_supports("amx-int8") &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

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
  return mayUseTiles() ? Isa::AMX : Isa::AVX512;
#else
  return Isa::Portable;
#endif
}

static Isa best() {
  static const Isa found = detect();
  return found;
}

static Isa initial() {
  if (const char *wanted = std::getenv("WNA16_ISA"))
    for (Isa isa : kIsas)
      if (name(isa) == wanted && isa <= best())
        return isa;
  return best();
}

static std::atomic<Isa> &current() {
  static std::atomic<Isa> value{initial()};
  return value;
}

Isa wna16::isa() { return current().load(std::memory_order_relaxed); }

bool wna16::setIsa(Isa wanted) {
  if (wanted > best())
    return false;
  current().store(wanted, std::memory_order_relaxed);
  return true;
}

std::string_view wna16::name(Isa isa) { return kNames[static_cast<int>(isa)]; }
