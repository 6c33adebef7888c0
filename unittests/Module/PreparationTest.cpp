//===- PreparationTest.cpp - How much memory preparation holds ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Module/Preparation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

using namespace wna16;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(PreparationTest, MemoryIsThatOfTheLargestStepAnd48MiB) {
  EXPECT_EQ(jobsWithRoom(1, 58 * kMiB), 1);
  EXPECT_EQ(jobsWithRoom(8, 58 * kMiB), 1);
  EXPECT_EQ(jobsWithRoom(8, 48 * kMiB + 1), 1);
  EXPECT_EQ(jobsWithRoom(8, 48 * kMiB), 2);
  EXPECT_EQ(jobsWithRoom(8, 10 * kMiB), 5);
  EXPECT_EQ(jobsWithRoom(8, kMiB), 8);
  EXPECT_EQ(jobsWithRoom(8, 0), 8);
}

/// A module whose functions write a byte for each expert: `prepare_w13` with a
/// workspace of 40 MiB, `prepare_w2` with none.
struct Functions {
  static inline std::atomic<int> active{0};
  static inline std::atomic<int> most{0};

  static int32_t prepareW13(const wna16_tensor *tensors, int64_t,
                            void *workspace, int64_t bytes, void *) {
    int now = ++active;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);)
      ;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    bool hasRoom = workspace && bytes >= workspaceBytes(0);
    static_cast<uint8_t *>(tensors[1].data)[0] = hasRoom ? 1 : 0;
    --active;
    return WNA16_OK;
  }
  static int32_t prepareW2(const wna16_tensor *tensors, int64_t, void *,
                           int64_t, void *) {
    static_cast<uint8_t *>(tensors[1].data)[0] = 2;
    return WNA16_OK;
  }
  static int64_t workspaceBytes(int64_t) { return 40 * kMiB; }

  static void *lookup(const std::string &symbol) {
    static const std::string description = [] {
      auto prepare = [](const std::string &weight, const std::string &rest) {
        return R"({"name": "prepare_)" + weight +
               R"(", "prepares": "forward", "experts": 4, )" + rest +
               R"("arguments": [{"role": "parameter", "type": "i32",
                 "shape": [1, 8, 32], "pattern":
                 "model.layers.0.mlp.experts.{expert}.gate_proj.qweight"},
                 {"role": "prepared", "type": "u8", "shape": [1],
                 "name": ")" +
               weight + R"("}]}, )";
      };
      return R"({"abi": )" + std::to_string(WNA16_ABI_VERSION) +
             R"(, "functions": [)" +
             prepare("w13", R"("workspace": "workspace_w13", )") +
             prepare("w2", "") + R"({"name": "forward", "arguments": [
               {"role": "prepared", "type": "u8", "shape": [4], "name": "w13"},
               {"role": "prepared", "type": "u8", "shape": [4], "name": "w2"}]}
             ]})";
    }();
    if (symbol == "wna16_module_description")
      return const_cast<char *>(description.c_str());
    if (symbol == "prepare_w13")
      return reinterpret_cast<void *>(prepareW13);
    if (symbol == "prepare_w2")
      return reinterpret_cast<void *>(prepareW2);
    if (symbol == "workspace_w13")
      return reinterpret_cast<void *>(workspaceBytes);
    return nullptr;
  }
};

TEST(PreparationTest, JobsWithoutMemoryTakeTheStepsThatNeedNone) {
  auto checkpoint = Checkpoint::open(WNA16_TEST_INPUTS
                                     "/checkpoints/qwen3moe-gptq-int4-sym-g32");
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  auto description = describe(Functions::lookup);
  ASSERT_TRUE(description) << description.message();
  for (int jobs : {1, 2, 8}) {
    auto weights = ModuleWeights::of(*description);
    ASSERT_TRUE(weights) << weights.message();
    auto preparation = Preparation::plan(*description, *weights,
                                         Functions::lookup, *checkpoint);
    ASSERT_TRUE(preparation) << preparation.message();
    std::vector<uint8_t> written(8, 9);
    for (ModuleWeight &weight : weights->list)
      weight.data = written.data() + (weight.argument.name == "w2" ? 4 : 0);
    LoadOptions options;
    options.jobs = jobs;
    StepJournal journal;
    Functions::most = 0;
    Failure failure = preparation->run(*weights, options, journal);
    EXPECT_FALSE(failure) << failure.message;
    EXPECT_LE(Functions::most, 2) << jobs;
    EXPECT_EQ(written, std::vector<uint8_t>({1, 1, 1, 1, 2, 2, 2, 2}));
  }
}

} // namespace
