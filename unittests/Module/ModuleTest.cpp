//===- ModuleTest.cpp - Running compiled modules without LLVM -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include "Layout/Scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

using namespace wna16;

namespace {

const std::string kCheckpoint =
    WNA16_TEST_INPUTS "/checkpoints/qwen3moe-gptq-int4-sym-g32";

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<uint16_t> data;
};

/// The backend that the library was compiled for.
class ModuleTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto file = SafeTensors::open(kCheckpoint + "/reference.safetensors");
    ASSERT_TRUE(file) << file.message();
    reference = std::move(*file);
  }

  Result<Module> open(LoadOptions options = {}) {
    return Module::open(path(".so"), kCheckpoint, options);
  }

  std::string path(const char *suffix) const {
    return std::string(WNA16_MODULE_DIR "/") + GetParam() + suffix;
  }

  /// Rows of an input, in bf16, in the given order.
  Tensor input(const std::string &name, bool reversed = false) {
    const TensorView *view = reference.find(name);
    Tensor x{view->shape, {}};
    int64_t rows = x.shape[0], columns = x.shape[1];
    for (int64_t i = 0; i < rows * columns; ++i) {
      int64_t row = i / columns;
      int64_t from = reversed ? rows - 1 - row : row;
      x.data.push_back(floatToBF16(
          loadFloat(view->type, view->data, from * columns + i % columns)));
    }
    return x;
  }

  static Tensor run(Module &module, Tensor x) {
    Tensor out{x.shape, std::vector<uint16_t>(x.data.size())};
    Failure failure =
        module.call(module.functions()[0],
                    {makeTensor(x.data.data(), ScalarType::BF16, x.shape),
                     makeTensor(out.data.data(), ScalarType::BF16, out.shape)});
    EXPECT_FALSE(failure) << failure.message;
    return out;
  }

  SafeTensors reference;
};

TEST_P(ModuleTest, HasNoLLVMInTheProcess) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  std::ifstream maps("/proc/self/maps");
  ASSERT_TRUE(maps);
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("libLLVM"), std::string::npos) << line;
    EXPECT_EQ(line.find("libMLIR"), std::string::npos) << line;
  }
}

TEST_P(ModuleTest, AgreesWithTheReference) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  // 0.75 of the reference's own 16-bit errors, which are 0.0054 and more.
  const double limit = 0.75 * 0.0053;
  for (const char *tokens : {"M1", "M7", "M33"}) {
    Tensor out = run(*module, input(std::string("x.") + tokens));
    const TensorView *view =
        reference.find(std::string("layers.0.out.") + tokens);
    ASSERT_NE(view, nullptr);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < out.data.size(); ++i) {
      double expected;
      std::memcpy(&expected, view->data + 8 * i, 8);
      double delta = bf16ToFloat(out.data[i]) - expected;
      difference += delta * delta;
      norm += expected * expected;
    }
    EXPECT_LT(std::sqrt(difference / norm), limit) << tokens;
  }
}

TEST_P(ModuleTest, GivesTheBitsOfTheJIT) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  auto jit = SafeTensors::open(path(".safetensors"));
  ASSERT_TRUE(jit) << jit.message();
  for (const char *tokens : {"M1", "M7", "M33"}) {
    Tensor out = run(*module, input(std::string("x.") + tokens));
    const TensorView *view = jit->find(std::string("layers.0.out.") + tokens);
    ASSERT_NE(view, nullptr);
    ASSERT_EQ(view->bytes, static_cast<int64_t>(2 * out.data.size()));
    EXPECT_EQ(std::memcmp(view->data, out.data.data(), 2 * out.data.size()), 0)
        << tokens;
  }
}

TEST_P(ModuleTest, DoesNotDependOnBuffersThreadsOrOrder) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  Tensor expected = run(*module, input("x.M33"));
  LoadOptions options;
  options.poison = true;
  auto poisoned = open(options);
  ASSERT_TRUE(poisoned) << poisoned.message();
  EXPECT_EQ(run(*poisoned, input("x.M33")).data, expected.data);
  for (int32_t threads : {1, 2, 5}) {
    wna16_set_num_threads(threads);
    EXPECT_EQ(run(*module, input("x.M33")).data, expected.data) << threads;
  }
  wna16_set_num_threads(0);
  Tensor reversed = run(*module, input("x.M33", /*reversed=*/true));
  int64_t columns = expected.shape[1];
  for (int64_t row = 0; row < 33; ++row)
    EXPECT_TRUE(std::equal(expected.data.begin() + row * columns,
                           expected.data.begin() + (row + 1) * columns,
                           reversed.data.begin() + (32 - row) * columns))
        << row;
}

TEST_P(ModuleTest, TakesNoTokens) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  Tensor x = input("x.M1");
  x.shape[0] = 0;
  x.data.clear();
  EXPECT_TRUE(run(*module, x).data.empty());
}

TEST_P(ModuleTest, NamesTensorsThatDoNotFit) {
  auto module = open();
  ASSERT_TRUE(module) << module.message();
  const ModuleFunction &forward = module->functions()[0];
  Tensor x = input("x.M7"), out = x;
  auto tensor = [](Tensor &t, ScalarType type) {
    return makeTensor(t.data.data(), type, t.shape);
  };
  Failure failure = module->call(
      forward, {tensor(x, ScalarType::F16), tensor(out, ScalarType::BF16)});
  EXPECT_NE(failure.message.find("x: expected bf16 [M, "), std::string::npos)
      << failure.message;
  out.shape[0] = 6;
  failure = module->call(
      forward, {tensor(x, ScalarType::BF16), tensor(out, ScalarType::BF16)});
  EXPECT_NE(failure.message.find("out: expected bf16 [M, "), std::string::npos)
      << failure.message;
  EXPECT_NE(failure.message.find("with M = 7"), std::string::npos)
      << failure.message;
  failure = module->call(forward, {tensor(x, ScalarType::BF16)});
  EXPECT_NE(failure.message.find("no tensor for out"), std::string::npos)
      << failure.message;
}

INSTANTIATE_TEST_SUITE_P(Backends, ModuleTest,
                         testing::Values("cpu", "emulation"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

TEST(ModuleOpenTest, SaysWhatCannotBeLoaded) {
  auto missing = Module::open("/nonexistent.so", kCheckpoint);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.message().find("cannot load the module"),
            std::string::npos);
  auto checkpoint = Checkpoint::open(kCheckpoint);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  auto empty = Module::load(
      [](const std::string &) -> void * { return nullptr; }, *checkpoint);
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.message().find("wna16_module_description"),
            std::string::npos);
}

/// A description of this build's version in place of a module's.
Result<Module> loadDescribed(const std::string &functions,
                             const std::string &target = "cpu") {
  std::string json = R"({"abi": )" + std::to_string(WNA16_ABI_VERSION) +
                     R"(, "target": "#wna16.target<)" + target +
                     R"(>", "functions": )" + functions + "}";
  auto checkpoint = Checkpoint::open(kCheckpoint);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
  return Module::load(
      [&](const std::string &symbol) -> void * {
        return symbol == "wna16_module_description" ? json.data() : nullptr;
      },
      *checkpoint);
}

TEST(ModuleOpenTest, RefusesDevicesThatItDoesNotKnow) {
  auto module = loadDescribed("[]", "xpu");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.message(), "module: this version loads modules for cpu and "
                              "cuda, got one for xpu");
}

TEST(ModuleOpenTest, RefusesAnotherCheckpointsModule) {
  auto unknown = loadDescribed(R"([
    {"name": "forward", "arguments": [{"role": "parameter",
     "pattern": "model.layers.9.gate", "type": "f32", "shape": [2]}]}])");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.message().find("tensor model.layers.9.gate"),
            std::string::npos)
      << unknown.message();
  auto type = loadDescribed(R"([
    {"name": "forward", "arguments": [{"role": "parameter",
     "pattern": "model.layers.0.mlp.gate.weight", "type": "f16",
     "shape": [4, 64]}]}])");
  ASSERT_FALSE(type);
  EXPECT_NE(type.message().find("compiled for f16, the checkpoint has bf16"),
            std::string::npos)
      << type.message();
  auto unprepared = loadDescribed(R"([
    {"name": "forward", "arguments": [{"role": "prepared", "name": "w13.codes",
     "type": "u8", "shape": [2]}]}])");
  ASSERT_FALSE(unprepared);
  EXPECT_NE(unprepared.message().find("nothing prepares w13.codes"),
            std::string::npos)
      << unprepared.message();
}

} // namespace
