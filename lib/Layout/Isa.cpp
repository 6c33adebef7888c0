//===- Isa.cpp - Which instruction set kernels use ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <initializer_list>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace wna16;

static constexpr std::string_view kNames[] = {"portable", "avx2", "avx512",
                                              "amx"};

#if defined(__x86_64__)
/// The registers of tiles are so large that Linux wants to be asked for them;
/// what a process was granted it keeps.
static bool mayUseTiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted =
      syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

/// Whether the machine has what a set adds to the one before it.
static bool hasMore(Isa isa) {
  const auto all = [](std::initializer_list<int> supported) {
    return std::find(supported.begin(), supported.end(), 0) == supported.end();
  };
  switch (isa) {
  case Isa::Portable:
    return true;
  case Isa::AVX2:
    return all({__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                __builtin_cpu_supports("bmi2"),
                __builtin_cpu_supports("f16c")});
  case Isa::AVX512:
    return all(
        {__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
         __builtin_cpu_supports("avx512dq"), __builtin_cpu_supports("avx512vl"),
         __builtin_cpu_supports("avx512vbmi"),
         __builtin_cpu_supports("avx512vnni")});
  case Isa::AMX:
    return all({__builtin_cpu_supports("amx-tile"),
                __builtin_cpu_supports("amx-int8")}) &&
           mayUseTiles();
  }
  return false;
}
#else
static bool hasMore(Isa isa) { return isa == Isa::Portable; }
#endif

/// The best set up to `most` that the machine has.
static Isa bestUpTo(Isa most) {
  Isa best = Isa::Portable;
  for (Isa isa : kIsas)
    if (isa <= most && hasMore(isa))
      best = isa;
    else
      break;
  return best;
}

static Isa initial() {
  Isa most = Isa::AMX;
  if (const char *wanted = std::getenv("WNA16_ISA"))
    for (Isa isa : kIsas)
      if (name(isa) == wanted)
        most = isa;
  return bestUpTo(most);
}

static std::atomic<Isa> &current() {
  static std::atomic<Isa> value{initial()};
  return value;
}

Isa wna16::isa() { return current().load(std::memory_order_relaxed); }

bool wna16::setIsa(Isa wanted) {
  if (bestUpTo(wanted) != wanted)
    return false;
  current().store(wanted, std::memory_order_relaxed);
  return true;
}

std::string_view wna16::name(Isa isa) { return kNames[static_cast<int>(isa)]; }
