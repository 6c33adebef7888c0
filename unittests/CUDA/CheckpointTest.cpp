//===- CheckpointTest.cpp - Compiled checkpoints on a device --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries that `wna16 compile --target cuda:...` wrote on another machine run
// here without LLVM: every MoE layer of every checkpoint, in the layout of
// every backend, against float64. $WNA16_CUDA_MODULES is a directory that
// compile-checkpoints beside this file filled: CHECKPOINT/BACKEND.so, and
// BACKEND.safetensors where the weights were prepared ahead of time. The
// checkpoints are those of $WNA16_TEST_DATA and test/Inputs.
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"

#include "Layout/Scalar.h"
#include "Module/Module.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace wna16;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kTokens[] = {1, 7, 33};
/// Of the error of the reference's own 16-bit run: for backends that round
/// weights to 16 bits, and for those that do not.
constexpr double kRounding = 1.0, kExact = 0.75;
constexpr const char *kRoundingBackends[] = {
    "auto", "cuda", "flashinfer_trtllm", "humming", "marlin"};

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// One library of a checkpoint.
struct Case {
  fs::path library;
  std::string checkpoint() const {
    return library.parent_path().filename().string();
  }
  std::string backend() const { return library.stem().string(); }
  fs::path prepared() const {
    return fs::path(library).replace_extension(".safetensors");
  }
  double bound() const {
    return std::count(std::begin(kRoundingBackends),
                      std::end(kRoundingBackends), backend())
               ? kRounding
               : kExact;
  }
};

std::ostream &operator<<(std::ostream &os, const Case &each) {
  return os << each.library.string();
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  std::error_code error;
  const std::string root = environment("WNA16_CUDA_MODULES");
  for (const auto &entry : fs::recursive_directory_iterator(root, error))
    if (entry.path().extension() == ".so")
      cases.push_back({entry.path()});
  std::sort(cases.begin(), cases.end(),
            [](const Case &a, const Case &b) { return a.library < b.library; });
  return cases;
}

/// Those with a file of prepared weights.
std::vector<Case> preparedCases() {
  std::vector<Case> cases = allCases();
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [](const Case &each) {
                               return !fs::exists(each.prepared());
                             }),
              cases.end());
  return cases;
}

std::string directoryOf(const std::string &checkpoint) {
  for (const std::string &directory : wna16test::checkpointDirectories())
    if (fs::path(directory).filename() == checkpoint)
      return directory;
  return "";
}

/// A tensor on the device.
struct DeviceArray {
  ScalarType type;
  std::vector<int64_t> shape;
  AlignedBuffer buffer;

  int64_t elements() const { return buffer.size() / sizeOf(type); }
  wna16_tensor view() {
    return makeTensor(buffer.data(), type, shape, Place::CUDA);
  }
  std::vector<uint8_t> fetch() const {
    std::vector<uint8_t> bytes(static_cast<size_t>(buffer.size()));
    Failure failure =
        copyBytes(bytes.data(), buffer.data(), buffer.size(), Place::CUDA);
    EXPECT_FALSE(failure) << failure.message;
    return bytes;
  }
};

DeviceArray makeArray(ScalarType type, std::vector<int64_t> shape) {
  int64_t bytes = sizeOf(type);
  for (int64_t extent : shape)
    bytes *= extent;
  auto buffer = AlignedBuffer::allocate(bytes, Place::CUDA);
  EXPECT_TRUE(buffer) << buffer.message();
  return {type, std::move(shape),
          buffer ? std::move(*buffer) : AlignedBuffer()};
}

double relativeError(const std::vector<double> &got,
                     const std::vector<double> &expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

/// A call of one layer: its input and, by name, its outputs.
struct LayerCall {
  const ModuleFunction *function;
  DeviceArray x;
  std::map<std::string, DeviceArray> outputs;

  std::vector<wna16_tensor> tensors() {
    std::vector<wna16_tensor> list{x.view()};
    for (const ModuleArgument &argument : function->arguments)
      if (argument.role == ModuleArgument::Role::Output)
        list.push_back(outputs.at(argument.name).view());
    return list;
  }
  void poison() {
    for (auto &[name, output] : outputs)
      EXPECT_FALSE(fillBytes(output.buffer.data(), 0xff, output.buffer.size(),
                             Place::CUDA));
  }
  std::map<std::string, std::vector<uint8_t>> fetch() const {
    std::map<std::string, std::vector<uint8_t>> bytes;
    for (const auto &[name, output] : outputs)
      bytes[name] = output.fetch();
    return bytes;
  }
};

class CheckpointTest : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    directory = directoryOf(GetParam().checkpoint());
    ASSERT_FALSE(directory.empty())
        << "no checkpoint " << GetParam().checkpoint()
        << " in $WNA16_TEST_DATA/checkpoints or test/Inputs/checkpoints";
    auto opened = Checkpoint::open(directory);
    ASSERT_TRUE(opened) << opened.message();
    checkpoint.emplace(std::move(*opened));
    reference = wna16test::openReference(directory);
  }

  Module open(bool poison = false) {
    LoadOptions options;
    options.poison = poison;
    auto module = Module::open(GetParam().library, directory, options);
    EXPECT_TRUE(module) << module.message();
    return module ? std::move(*module) : Module();
  }

  /// A call of a layer on an input of the reference.
  LayerCall prepareCall(const Module &module, int64_t layer, int64_t tokens) {
    std::string name = checkpoint->layers().size() == 1
                           ? "forward"
                           : "forward_" + std::to_string(layer);
    LayerCall call{module.find(name), {}, {}};
    EXPECT_NE(call.function, nullptr) << name;
    if (!call.function)
      return call;
    const TensorView &view =
        *reference.tensors.find("x.M" + std::to_string(tokens));
    const ScalarType dtype = checkpoint->dtype();
    call.x = makeArray(dtype, view.shape);
    std::vector<uint8_t> rounded(static_cast<size_t>(call.x.buffer.size()));
    for (int64_t i = 0; i < call.x.elements(); ++i)
      storeFloat(dtype, rounded.data(), i, loadFloat(view.type, view.data, i));
    EXPECT_FALSE(copyBytes(call.x.buffer.data(), rounded.data(),
                           call.x.buffer.size(), Place::CUDA));
    for (const ModuleArgument &argument : call.function->arguments)
      if (argument.role == ModuleArgument::Role::Output)
        call.outputs.emplace(
            argument.name, makeArray(argument.type, argument.shapeFor(tokens)));
    return call;
  }

  void run(Module &module, LayerCall &call, cudaStream_t stream = nullptr) {
    Failure failure = module.call(*call.function, call.tensors(), stream);
    ASSERT_FALSE(failure) << failure.message;
    failure = waitFor(stream, Place::CUDA);
    ASSERT_FALSE(failure) << failure.message;
  }

  std::vector<double> expected(int64_t layer, const std::string &name,
                               int64_t tokens) {
    auto find = [&](const std::string &each) {
      return reference.tensors.find("layers." + std::to_string(layer) + "." +
                                    each + ".M" + std::to_string(tokens));
    };
    const TensorView *view = find(name);
    if (!view && name == "experts_out") // a block without shared experts
      view = find("out");
    EXPECT_NE(view, nullptr) << name;
    return view ? wna16test::valuesOf(*view) : std::vector<double>();
  }

  std::vector<double> got(const LayerCall &call, const std::string &name) {
    const DeviceArray &output = call.outputs.at(name);
    return wna16test::valuesOf(output.type, output.fetch().data(),
                               output.elements());
  }

  /// Ids as sets, weights by id.
  void compareRouting(const LayerCall &call, int64_t layer, int64_t tokens) {
    auto sorted = [&](const std::vector<double> &ids,
                      const std::vector<double> &weights) {
      std::vector<std::pair<double, double>> slots;
      for (size_t i = 0; i < ids.size(); ++i)
        slots.push_back({ids[i], weights[i]});
      const size_t topK = ids.size() / static_cast<size_t>(tokens);
      for (size_t i = 0; i < slots.size(); i += topK)
        std::sort(slots.begin() + static_cast<ptrdiff_t>(i),
                  slots.begin() + static_cast<ptrdiff_t>(i + topK));
      return slots;
    };
    auto mine = sorted(got(call, "topk_ids"), got(call, "topk_weights"));
    auto theirs = sorted(expected(layer, "topk_ids", tokens),
                         expected(layer, "topk_weights", tokens));
    ASSERT_EQ(mine.size(), theirs.size());
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].first, theirs[i].first) << "slot " << i;
      EXPECT_NEAR(mine[i].second, theirs[i].second, 1e-5) << "slot " << i;
    }
  }

  void compare(const LayerCall &call, int64_t layer, int64_t tokens) {
    compareRouting(call, layer, tokens);
    const double own = reference.errors.at("layers." + std::to_string(layer) +
                                           ".M" + std::to_string(tokens));
    double error[2];
    const char *const names[2] = {"experts_out", "out"};
    for (int i = 0; i < 2; ++i) {
      error[i] =
          relativeError(got(call, names[i]), expected(layer, names[i], tokens));
      EXPECT_LE(error[i], GetParam().bound() * own)
          << names[i] << ", layer " << layer << ", M = " << tokens;
    }
    std::printf("| %s | %s | %lld | %lld | %.2e | %.2e | %.2e | %.2f |\n",
                GetParam().checkpoint().c_str(), GetParam().backend().c_str(),
                static_cast<long long>(layer), static_cast<long long>(tokens),
                error[0], error[1], own, error[1] / own);
  }

  std::string directory;
  std::optional<Checkpoint> checkpoint;
  wna16test::ReferenceFiles reference;
};

/// Nothing depends on what the device's memory held.
TEST_P(CheckpointTest, AgreesWithTheReference) {
  Module module = open(/*poison=*/true);
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(module.place(), Place::CUDA);
  for (const MoELayer &layer : checkpoint->layers())
    for (int64_t tokens : kTokens) {
      LayerCall call = prepareCall(module, layer.index, tokens);
      ASSERT_FALSE(HasFailure());
      run(module, call);
      ASSERT_FALSE(HasFatalFailure());
      compare(call, layer.index, tokens);
    }
}

/// A call neither allocates nor waits: a stream captures it, and the graph
/// gives the bits of the call.
TEST_P(CheckpointTest, IsCapturedInAGraph) {
  Module module = open();
  ASSERT_FALSE(HasFailure());
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            cudaSuccess);
  for (const MoELayer &layer : checkpoint->layers())
    for (int64_t tokens : kTokens) {
      LayerCall call = prepareCall(module, layer.index, tokens);
      ASSERT_FALSE(HasFailure());
      run(module, call, stream); // takes the workspace
      ASSERT_FALSE(HasFatalFailure());
      const auto expected = call.fetch();
      call.poison();
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal),
                cudaSuccess);
      Failure failure = module.call(*call.function, call.tensors(), stream);
      cudaGraph_t graph;
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_FALSE(failure) << failure.message;
      cudaGraphExec_t exec;
      ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
      for (int replay = 0; replay < 2; ++replay) {
        ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(call.fetch(), expected)
            << "layer " << layer.index << ", M = " << tokens << ", replay "
            << replay;
      }
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(graph);
    }
  cudaStreamDestroy(stream);
}

class PreparedCheckpointTest : public CheckpointTest {};

/// Weights prepared on another machine's CPU give the same bits as weights that
/// the device prepared.
TEST_P(PreparedCheckpointTest, GivesTheSameBits) {
  Module module = open();
  ASSERT_FALSE(HasFailure());
  auto mapped = Module::openPrepared(GetParam().library, GetParam().prepared());
  ASSERT_TRUE(mapped) << mapped.message();
  for (const MoELayer &layer : checkpoint->layers())
    for (int64_t tokens : kTokens) {
      LayerCall call = prepareCall(module, layer.index, tokens);
      ASSERT_FALSE(HasFailure());
      run(module, call);
      ASSERT_FALSE(HasFatalFailure());
      const auto expected = call.fetch();
      call.poison();
      call.function = mapped->find(call.function->name);
      run(*mapped, call);
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_EQ(call.fetch(), expected)
          << "layer " << layer.index << ", M = " << tokens;
    }
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string name = info.param.checkpoint() + "_" + info.param.backend();
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

// Modules.AreThere says it when there is nothing to run.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CheckpointTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PreparedCheckpointTest);
INSTANTIATE_TEST_SUITE_P(Modules, CheckpointTest, testing::ValuesIn(allCases()),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Modules, PreparedCheckpointTest,
                         testing::ValuesIn(preparedCases()), nameOf);

TEST(Modules, AreThere) {
  if (preparedCases().empty())
    GTEST_SKIP() << "checkpoint tests DID NOT RUN: expected libraries in "
                    "$WNA16_CUDA_MODULES ("
                 << environment("WNA16_CUDA_MODULES")
                 << "), which unittests/CUDA/compile-checkpoints writes";
}

TEST(NoDevice, ModulesSaySo) {
  const std::string directory =
      WNA16_TEST_INPUTS "/checkpoints/qwen3moe-gptq-int4-sym-g32";
  auto checkpoint = Checkpoint::open(directory);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  std::string json =
      R"({"abi": )" + std::to_string(WNA16_ABI_VERSION) +
      R"(, "target": "#wna16.target<cuda, capability = 90>", "functions": [
      {"name": "forward", "arguments": [{"role": "parameter", "pattern":
       "model.layers.0.mlp.gate.weight", "type": "bf16", "shape": [4, 64]}]}]})";
  auto module = Module::load(
      [&](const std::string &symbol) -> void * {
        return symbol == "wna16_module_description" ? json.data() : nullptr;
      },
      *checkpoint);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.message().rfind("model.layers.0.mlp.gate.weight: allocate: "
                                   "finding a CUDA device failed: ",
                                   0),
            0u)
      << module.message();
}

} // namespace
