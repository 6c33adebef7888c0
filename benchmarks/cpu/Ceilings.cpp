//===- Ceilings.cpp - What the machine can do at most ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ceilings.h"

#include "Layout/Isa.h"
#include "Memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace wna16;

/// Seconds from when all threads are there until the last one is done; throws
/// std::system_error where the system refuses a thread.
template <typename Body>
static double timeOnThreads(int threads, Body body) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> workers;
  auto finish = [&] {
    go = true;
    for (std::thread &worker : workers)
      worker.join();
  };
  // Threads may outnumber cores: whoever waits lets others run.
  try {
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        ++ready;
        while (!go)
          std::this_thread::yield();
        body(t);
      });
  } catch (...) {
    finish();
    throw;
  }
  while (ready < threads)
    std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Keeps a value that nobody uses.
template <typename T>
static void keep(T value) {
  asm volatile("" ::"r"(&value) : "memory");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static constexpr int64_t kReadBytes = int64_t(512) << 20;
static constexpr int64_t kStepBytes = 256;

/// Reads `streams` parts of a range side by side, fetching ahead if asked to.
static void readRange(const char *begin, int64_t bytes, int streams,
                      int64_t ahead) {
  using Wide = long long __attribute__((vector_size(32)));
  const int64_t part = bytes / streams;
  Wide sum[8] = {};
  for (int64_t at = 0; at + kStepBytes <= part; at += kStepBytes)
    for (int stream = 0; stream < streams; ++stream) {
      const char *from = begin + stream * part + at;
      for (int line = 0; ahead && line < kStepBytes; line += 64)
        __builtin_prefetch(from + ahead + line);
      for (int i = 0; i < 8; ++i)
        sum[i] += reinterpret_cast<const Wide *>(from)[i];
    }
  keep(sum);
}

namespace {
struct ReadWay {
  int streams;
  int64_t ahead;
};
} // namespace

/// The best of several reads of `bytes` in each way.
template <size_t kCount>
static double measureRead(int threads, const ReadWay (&ways)[kCount],
                          int64_t bytes, int repeats) {
  static const PageMemory memory(kReadBytes + (1 << 20));
  const int64_t part = bytes / threads / 4096 * 4096;
  double best = 0;
  for (auto [streams, ahead] : ways)
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const double time = timeOnThreads(threads, [&](int t) {
        readRange(memory.data() + t * part, part, streams, ahead);
      });
      best = std::max(best, static_cast<double>(part * threads) / time);
    }
  return best;
}

static double measureRead(int threads) {
  constexpr ReadWay kWays[] = {{1, 0},    {1, 4096}, {1, 8192},
                               {2, 8192}, {4, 8192}, {16, 4096}};
  return measureRead(threads, kWays, kReadBytes, 3);
}

double wna16::measureReadNow(int threads) {
  constexpr ReadWay kWays[] = {{1, 4096}, {1, 8192}};
  return measureRead(threads, kWays, kReadBytes / 4, 1);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)

static constexpr int kChains = 14; // more than latency times width
static constexpr int64_t kRounds = 2000000;

#define WNA16_CHAINS(INSTRUCTION, SOURCES)                                     \
  for (int64_t i = 0; i < kRounds; ++i)                                        \
  asm volatile(                                                                \
      INSTRUCTION                                                              \
      " " SOURCES "0\n\t" INSTRUCTION " " SOURCES "1\n\t" INSTRUCTION          \
      " " SOURCES "2\n\t" INSTRUCTION " " SOURCES "3\n\t" INSTRUCTION          \
      " " SOURCES "4\n\t" INSTRUCTION " " SOURCES "5\n\t" INSTRUCTION          \
      " " SOURCES "6\n\t" INSTRUCTION " " SOURCES "7\n\t" INSTRUCTION          \
      " " SOURCES "8\n\t" INSTRUCTION " " SOURCES "9\n\t" INSTRUCTION          \
      " " SOURCES "10\n\t" INSTRUCTION " " SOURCES "11\n\t" INSTRUCTION        \
      " " SOURCES "12\n\t" INSTRUCTION " " SOURCES "13"                        \
      :                                                                        \
      :                                                                        \
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",        \
        "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

// What the registers hold does not matter to the speed, except that denormal
// numbers would: all start as zero.
static void fma256() {
  asm volatile("vzeroall" ::: "memory");
  WNA16_CHAINS("vfmadd231ps", "%%ymm14, %%ymm15, %%ymm");
  asm volatile("vzeroupper" ::: "memory");
}
static void fma512() {
  asm volatile("vzeroall" ::: "memory");
  WNA16_CHAINS("vfmadd231ps", "%%zmm14, %%zmm15, %%zmm");
  asm volatile("vzeroupper" ::: "memory");
}
static void vnni512() {
  asm volatile("vzeroall" ::: "memory");
  WNA16_CHAINS("vpdpbusd", "%%zmm14, %%zmm15, %%zmm");
  asm volatile("vzeroupper" ::: "memory");
}

#undef WNA16_CHAINS

static double measureRate(int threads, void (*chains)(),
                          double operationsPerInstruction) {
  double best = 0;
  for (int repeat = 0; repeat < 8; ++repeat) {
    const double time = timeOnThreads(threads, [&](int) { chains(); });
    best = std::max(best, threads * kChains * static_cast<double>(kRounds) *
                              operationsPerInstruction / time);
  }
  return best;
}

Ceilings wna16::measureCeilings(int threads) {
  Ceilings result;
  result.readBytes = measureRead(threads);
  if (isa() >= Isa::AVX512) {
    result.fmaFlops = measureRate(threads, fma512, 32);
    result.vnniOps = measureRate(threads, vnni512, 128);
  } else if (isa() >= Isa::AVX2) {
    result.fmaFlops = measureRate(threads, fma256, 16);
  }
  return result;
}

#else

Ceilings wna16::measureCeilings(int threads) {
  Ceilings result;
  result.readBytes = measureRead(threads);
  return result;
}

#endif
