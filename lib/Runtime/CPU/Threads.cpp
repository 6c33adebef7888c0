//===- Threads.cpp - The threads of a call --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads.h"

#include "Runtime/wna16.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <system_error>
#include <thread>

using namespace wna16;

static constexpr int32_t kMaxThreads = 1024;
/// Pauses after which a helper goes to sleep: a few hundred microseconds, more
/// than lies between the loops of a call, less than anyone would notice.
static constexpr int kSpins = 8192;
/// The same where threads outnumber cores: spinning would keep others from
/// working.
static constexpr int kSpinsCrowded = 16;

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Cores that the process may run on.
static int coreCount() {
  static const int cores = [] {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
      return std::max(1, CPU_COUNT(&set));
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }();
  return cores;
}

namespace {

/// The helpers and the loop they help with.
class Pool {
public:
  /// Runs a loop with helpers; false when another caller has them.
  bool run(int threads, int64_t count, LoopBody body, void *context);

private:
  void startHelpers(int wanted);
  void help(uint64_t index);
  int joinLoop();
  void runIterations(Worker worker);
  void closeLoop();
  uint64_t awaitLoop(uint64_t index, uint64_t seen);

  /// `state`: whether the loop takes helpers, how many run iterations now, how
  /// many threads may take part, and how many have ever joined it (the caller
  /// is the first). In one word, so that who joins a loop has compared with the
  /// limit of that loop and not of another one that looks the same.
  static constexpr uint64_t kOpen = 1;
  static constexpr uint64_t kActive = 2;
  static constexpr uint64_t kLimit = uint64_t(1) << 16;
  static constexpr uint64_t kJoined = uint64_t(1) << 32;
  static_assert(kMaxThreads < kLimit / kActive);
  static uint64_t activeIn(uint64_t state) { return state % kLimit / kActive; }
  static uint64_t limitIn(uint64_t state) { return state % kJoined / kLimit; }
  static uint64_t joinedIn(uint64_t state) { return state / kJoined; }

  std::atomic<bool> taken{false};
  // The loop; written while it is closed and nobody is active.
  LoopBody body = nullptr;
  void *context = nullptr;
  int64_t count = 0;
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<uint64_t> state{0};
  std::atomic<uint64_t> generation{0}; ///< loops published so far

  std::mutex mutex; ///< guards `sleeping` against lost wake-ups
  std::condition_variable wake;
  std::atomic<int> sleeping{0};
  std::atomic<int> spins{kSpins};
  int helpers = 0; ///< started; changed by whoever has `taken`
};

} // namespace

void Pool::runIterations(Worker worker) {
  for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
    body(context, i, worker);
}

/// Joins the loop at hand; -1 when it needs nobody.
int Pool::joinLoop() {
  uint64_t now = state.load(std::memory_order_relaxed);
  while ((now & kOpen) && joinedIn(now) < limitIn(now))
    if (state.compare_exchange_weak(now, now + kActive + kJoined,
                                    std::memory_order_acquire,
                                    std::memory_order_relaxed))
      return static_cast<int>(joinedIn(now));
  return -1;
}

/// Waits for a loop after the `seen`-th that the helper may join: spins, then
/// sleeps. Returns its number.
uint64_t Pool::awaitLoop(uint64_t index, uint64_t seen) {
  uint64_t now = seen;
  auto isWanted = [&] {
    now = generation.load();
    return now != seen &&
           index < limitIn(state.load(std::memory_order_relaxed));
  };
  for (int i = 0; i < spins.load(std::memory_order_relaxed); ++i) {
    if (isWanted())
      return now;
    pause();
  }
  std::unique_lock<std::mutex> lock(mutex);
  sleeping.fetch_add(1);
  wake.wait(lock, isWanted);
  sleeping.fetch_sub(1);
  return now;
}

void Pool::help(uint64_t index) {
  for (uint64_t seen = 0;;) {
    seen = awaitLoop(index, seen);
    const int worker = joinLoop();
    if (worker < 0)
      continue;
    runIterations(worker);
    state.fetch_sub(kActive, std::memory_order_release);
  }
}

/// Starts helpers up to a number. Where the system refuses, there are fewer.
void Pool::startHelpers(int wanted) {
  for (; helpers < wanted; ++helpers) {
    try {
      std::thread([this, index = helpers + 1] { help(index); }).detach();
    } catch (const std::system_error &) {
      return;
    }
  }
}

/// Lets nobody join any more and waits for those that have.
void Pool::closeLoop() {
  state.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int i = 0; activeIn(state.load(std::memory_order_acquire)) > 0; ++i)
    if (i < kSpins && spins.load(std::memory_order_relaxed) == kSpins)
      pause();
    else
      sched_yield();
}

bool Pool::run(int threads, int64_t iterations, LoopBody loopBody,
               void *loopContext) {
  if (taken.exchange(true, std::memory_order_acquire))
    return false;
  startHelpers(threads - 1);
  spins.store(threads > coreCount() ? kSpinsCrowded : kSpins,
              std::memory_order_relaxed);
  body = loopBody;
  context = loopContext;
  count = iterations;
  next.store(0, std::memory_order_relaxed);
  state.store(kOpen | static_cast<uint64_t>(threads) * kLimit | kJoined,
              std::memory_order_release);
  generation.fetch_add(1);
  if (sleeping.load() > 0) {
    std::lock_guard<std::mutex> lock(mutex);
    wake.notify_all();
  }
  runIterations(0);
  closeLoop();
  taken.store(false, std::memory_order_release);
  return true;
}

/// Never destroyed: the helpers outlive everything. A forked process has none
/// of its parent's helpers, and locks that they hold stay locked there: it
/// begins anew.
static Pool &pool() {
  static std::atomic<Pool *> instance{nullptr};
  static const bool once [[maybe_unused]] = [] {
    instance = new Pool;
    return pthread_atfork(nullptr, nullptr, [] { instance = new Pool; }) == 0;
  }();
  return *instance.load(std::memory_order_relaxed);
}

/// What the caller brought.
static wna16_parallel_for callersLoop = nullptr;
static void *callersContext = nullptr;

void wna16_set_parallel_for(wna16_parallel_for run, void *context) {
  callersLoop = run;
  callersContext = context;
}

void wna16::runLoop(int threads, int64_t count, LoopBody body, void *context) {
  const int useful = static_cast<int>(std::min<int64_t>(threads, count));
  if (useful > 1 && callersLoop)
    return callersLoop(callersContext, useful, count, body, context);
  if (useful > 1 && pool().run(useful, count, body, context))
    return;
  for (int64_t i = 0; i < count; ++i)
    body(context, i, 0);
}

//===----------------------------------------------------------------------===//
// How many
//===----------------------------------------------------------------------===//

/// What the user asked for; 0: one per core.
static std::atomic<int32_t> requestedThreads{0};

int wna16::threadCount() {
  const int32_t requested = requestedThreads.load(std::memory_order_relaxed);
  return std::clamp(requested > 0 ? requested : coreCount(), 1, kMaxThreads);
}

void wna16_set_num_threads(int32_t threads) {
  requestedThreads.store(std::max(threads, 0), std::memory_order_relaxed);
}

int32_t wna16_get_num_threads(void) { return wna16::threadCount(); }
