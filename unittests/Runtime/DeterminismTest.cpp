//===- DeterminismTest.cpp - Equal bits, whatever surrounds the work ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace wna16test;

namespace {

TEST(Determinism, B80_ThreadsAndRuns) {
  Random random(80);
  WeightOptions options;
  options.group = 128;
  Layer layer =
      packedLayer(random, 8, 1024, 512, 64, 2, ScalarType::BF16, options);
  HostTensor first = layer.output();
  for (int32_t threads : {1, 2, 7}) {
    wna16_set_num_threads(threads);
    EXPECT_EQ(wna16_get_num_threads(), threads);
    for (int run = 0; run < 10; ++run)
      EXPECT_TRUE(first.sameBytes(layer.output())) << threads << " threads";
  }
  wna16_set_num_threads(0);
}

// Each call has room for its own threads only: helpers of the call before, of
// which there were more, have to stay away.
TEST(Determinism, ThreadsChangeFromCallToCall) {
  Random random(86);
  Layer layer = packedLayer(random, 4, 64, 64, 17, 2, ScalarType::BF16);
  HostTensor first = layer.output();
  for (int run = 0; run < 40; ++run)
    for (int32_t threads : {7, 2, 5, 1, 3}) {
      wna16_set_num_threads(threads);
      ASSERT_TRUE(first.sameBytes(layer.output())) << threads << " threads";
    }
  wna16_set_num_threads(0);
}

/// Threads of a caller: as many as there may be, last iterations first.
struct CallersThreads {
  std::atomic<int64_t> loops{0}, iterations{0};

  static void run(void *context, int32_t threads, int64_t count,
                  void (*body)(void *, int64_t, int32_t), void *data) {
    auto &self = *static_cast<CallersThreads *>(context);
    ++self.loops;
    std::atomic<int64_t> left{count};
    std::vector<std::thread> workers;
    for (int32_t worker = 0; worker < threads; ++worker)
      workers.emplace_back([&, worker] {
        for (int64_t i; (i = --left) >= 0; ++self.iterations)
          body(data, i, worker);
      });
    for (std::thread &worker : workers)
      worker.join();
  }
};

TEST(Determinism, ThreadsOfTheCaller) {
  Random random(80);
  Layer layer = packedLayer(random, 8, 256, 128, 17, 2, ScalarType::BF16);
  HostTensor first = layer.output();
  CallersThreads threads;
  wna16_set_parallel_for(CallersThreads::run, &threads);
  wna16_set_num_threads(5);
  EXPECT_TRUE(first.sameBytes(layer.output()));
  const int64_t loops = threads.loops;
  EXPECT_GE(loops, 2) << "gate and up, down";
  EXPECT_GT(threads.iterations, loops);
  wna16_set_parallel_for(nullptr, nullptr);
  EXPECT_TRUE(first.sameBytes(layer.output()));
  EXPECT_EQ(threads.loops, loops) << "the library's own threads";
  wna16_set_num_threads(0);
}

/// In a process of its own: layers with several threads, asleep in between,
/// and then with more. Its status tells of other bits or of waiting for ever.
[[noreturn]] void computeInChild(Layer layer, const HostTensor &expected) {
  ::alarm(30);
  bool same = true;
  for (int32_t threads : {2, 2, 2, 5, 5, 5}) {
    wna16_set_num_threads(threads);
    same &= expected.sameBytes(layer.output());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::_exit(same ? 0 : 1);
}

TEST(Determinism, ThreadsOfAForkedProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
#endif
  Random random(82);
  Layer layer = packedLayer(random, 8, 256, 128, 17, 2, ScalarType::BF16);
  wna16_set_num_threads(2);
  HostTensor first = layer.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // fall asleep
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    computeInChild(layer, first);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(first.sameBytes(layer.output()));
  wna16_set_num_threads(0);
}

/// The token of `layer` at `token`, alone.
Layer single(const Layer &layer, int64_t token) {
  Layer one = layer;
  const int64_t hidden = layer.plan.hidden, topK = layer.plan.top_k;
  HostTensor ids = layer.ids;
  one.x = HostTensor(layer.x.type, {1, hidden});
  one.weights = HostTensor(ScalarType::F32, {1, topK});
  one.ids = HostTensor(ScalarType::I32, {1, topK});
  for (int64_t k = 0; k < hidden; ++k)
    one.x.set(k, layer.x.get(token * hidden + k));
  for (int64_t k = 0; k < topK; ++k) {
    one.weights.set(k, layer.weights.get(token * topK + k));
    one.ids.as<int32_t>()[k] = ids.as<int32_t>()[token * topK + k];
  }
  return one;
}

TEST(Determinism, TokensDoNotSeeEachOther) {
  // Alone or among others, in whatever place: the same bits.
  Random random(81);
  Layer layer = packedLayer(random, 6, 96, 64, 33, 3);
  HostTensor all = layer.output();
  for (int64_t t = 0; t < 33; ++t) {
    HostTensor alone = single(layer, t).output();
    EXPECT_EQ(std::memcmp(alone.data(), all.as<float>() + t * 96, 96 * 4), 0)
        << "token " << t;
  }
}

TEST(Determinism, TokensInAnotherOrder) {
  Random random(83);
  const int64_t tokens = 33, hidden = 96, topK = 3;
  Layer layer = packedLayer(random, 6, hidden, 64, tokens, topK);
  HostTensor expected = layer.output();
  std::vector<int64_t> from(tokens);
  std::iota(from.begin(), from.end(), 0);
  std::shuffle(from.begin(), from.end(), random);
  Layer shuffled = layer;
  for (int64_t t = 0; t < tokens; ++t) {
    Layer one = single(layer, from[t]);
    std::copy_n(one.x.as<float>(), hidden, shuffled.x.as<float>() + t * hidden);
    std::copy_n(one.weights.as<float>(), topK,
                shuffled.weights.as<float>() + t * topK);
    std::copy_n(one.ids.as<int32_t>(), topK,
                shuffled.ids.as<int32_t>() + t * topK);
  }
  HostTensor y = shuffled.output();
  for (int64_t t = 0; t < tokens; ++t)
    EXPECT_EQ(std::memcmp(y.as<float>() + t * hidden,
                          expected.as<float>() + from[t] * hidden, hidden * 4),
              0)
        << "token " << from[t] << " at " << t;
}

// From a few tokens an expert to many: kernels may not change what they add up.
TEST(Determinism, BatchInvariant) {
  for (const char *layout : {"compressed_tensors", "cpu_panels"})
    for (ScalarType type : {ScalarType::BF16, ScalarType::F16, ScalarType::F32})
      for (int bits : {4, 8}) {
        Random random(85);
        WeightOptions options;
        options.bits = bits;
        Layer layer = packedLayer(random, 4, 256, 128, 200, 2, type, options);
        for (TestWeight *weight : {&layer.w13, &layer.w2}) {
          wna16_weight target = weight->plan;
          target.layout = layoutId(layout);
          *weight = converted(*weight, target);
        }
        layer.plan.w13 = layer.w13.plan;
        layer.plan.w2 = layer.w2.plan;
        layer.plan.batch_invariant = 1;
        HostTensor all = layer.output();
        for (int64_t tokens : {1, 2, 7, 33, 100}) {
          HostTensor some = layer.prefix(tokens).output();
          EXPECT_EQ(std::memcmp(some.data(), all.data(), some.bytes()), 0)
              << tokens << " tokens, " << layout << ", " << bits << " bits of "
              << wna16::name(type);
        }
      }
}

/// Asks for a workspace with `asked` threads and calls with `used`.
wna16_status callWithThreads(Layer &layer, int32_t asked, int32_t used) {
  HostTensor y = layer.emptyOutput();
  std::vector<wna16_tensor> tensors = layer.tensors(y);
  wna16_status_clear();
  wna16_set_num_threads(asked);
  const int64_t bytes =
      wna16_cpu_fused_experts_workspace(&layer.plan, layer.tokens());
  Workspace workspace(bytes);
  wna16_set_num_threads(used);
  const wna16_status status =
      wna16_cpu_fused_experts(&layer.plan, tensors.data(), tensors.size(),
                              workspace.data(), bytes, nullptr);
  wna16_set_num_threads(0);
  if (status == WNA16_OK) {
    EXPECT_LE(relativeError(y, layer.reference()), tolerance(y.type));
  }
  return status;
}

TEST(Determinism, ThreadsMayChangeAfterTheQuery) {
  Random random(84);
  Layer layer = packedLayer(random, 4, 64, 64, 5, 2);
  EXPECT_EQ(callWithThreads(layer, 7, 1), WNA16_OK);
  EXPECT_EQ(callWithThreads(layer, 1, 7), WNA16_WORKSPACE);
  EXPECT_EQ(callWithThreads(layer, 2, 2), WNA16_OK);
  wna16_status_clear();
}

/// Kernels add up in orders of their own; layouts that one kernel reads give
/// the same bits.
TEST(Determinism, EveryLayoutGivesTheSameBits) {
  std::map<std::string, HostTensor> outputs;
  for (const wna16::LayoutEntry &layout : wna16::allLayouts()) {
    Random random(82);
    WeightOptions options;
    options.scale = ScalarType::BF16;
    Layer layer =
        packedLayer(random, 2, 256, 256, 3, 2, ScalarType::BF16, options);
    const std::vector<double> reference = layer.reference();
    bool stored = true;
    for (TestWeight *weight : {&layer.w13, &layer.w2}) {
      wna16_weight target = weight->plan;
      target.layout = layout.id;
      if (layout.scaleType)
        target.scale = static_cast<int64_t>(*layout.scaleType);
      if (layout.needsZeros) {
        target.code = static_cast<int64_t>(wna16::CodeType::U4);
        target.zeros = static_cast<int64_t>(wna16::ZeroPoints::Plain);
      }
      if (layout.name == "trtllm")
        target.code = static_cast<int64_t>(wna16::CodeType::S4);
      // Layouts of floats hold no codes.
      stored &= !layout.codes4.empty();
      if (stored)
        *weight = converted(*weight, target);
    }
    if (!stored)
      continue;
    layer.plan.w13 = layer.w13.plan;
    layer.plan.w2 = layer.w2.plan;
    HostTensor y = layer.output();
    EXPECT_LE(relativeError(y, reference), tolerance(layer.x.type))
        << layout.name;
    const HostTensor &first =
        outputs.emplace(wna16_cpu_fused_experts_kernel(&layer.plan, 3), y)
            .first->second;
    EXPECT_TRUE(first.sameBytes(y)) << layout.name;
  }
}

} // namespace
