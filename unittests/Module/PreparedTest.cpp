//===- PreparedTest.cpp - Weights prepared ahead of time ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/wait.h>
#include <unistd.h>

using namespace wna16;

namespace fs = std::filesystem;

namespace {

const std::string kCheckpoint =
    WNA16_TEST_INPUTS "/checkpoints/qwen3moe-gptq-int4-sym-g32";

std::string libraryOf(const std::string &backend) {
  return std::string(WNA16_MODULE_DIR "/") + backend + ".so";
}

std::string contents(const std::string &file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

class PreparedTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    directory = fs::path(testing::TempDir()) /
                ("prepared-" + std::to_string(::getpid()));
    fs::create_directories(directory);
    auto opened = Checkpoint::open(kCheckpoint);
    ASSERT_TRUE(opened) << opened.message();
    checkpoint.emplace(std::move(*opened));
    library = lookupOf(GetParam());
  }
  void TearDown() override { fs::remove_all(directory); }

  static SymbolLookup lookupOf(const std::string &backend) {
    void *handle = dlopen(libraryOf(backend).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    return [handle](const std::string &symbol) {
      return dlsym(handle, symbol.c_str());
    };
  }

  std::string prepare(const std::string &name, LoadOptions options = {}) {
    std::string file = directory / name;
    Failure failure = prepareWeights(library, *checkpoint, file, options);
    EXPECT_FALSE(failure) << failure.message;
    return file;
  }

  /// Prepares in a process of its own, which is killed once half is done.
  void prepareAndDie(const std::string &file, const SymbolLookup &lookup) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      wna16_set_num_threads(1); // the parent's threads are not here
      LoadOptions options;
      options.progress = [](int64_t done, int64_t total) {
        if (2 * done >= total)
          ::kill(::getpid(), SIGKILL);
        return ok();
      };
      Failure failure =
          prepareWeights(lookup, *checkpoint, file, options, /*syncBytes=*/1);
      ::_exit(failure ? 2 : 3);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
  }

  static std::vector<uint16_t> run(Module &module) {
    const ModuleFunction &forward = module.functions()[0];
    std::vector<int64_t> shape = forward.arguments[0].shapeFor(5);
    std::vector<uint16_t> x(static_cast<size_t>(shape[0] * shape[1]));
    for (size_t i = 0; i < x.size(); ++i) // bf16 of either sign around 1
      x[i] =
          static_cast<uint16_t>(0x3f80 + 37 * i % 128 + (i % 3 ? 0x8000 : 0));
    std::vector<uint16_t> y(x.size());
    Failure failure =
        module.call(forward, {makeTensor(x.data(), ScalarType::BF16, shape),
                              makeTensor(y.data(), ScalarType::BF16, shape)});
    EXPECT_FALSE(failure) << failure.message;
    return y;
  }

  fs::path directory;
  std::optional<Checkpoint> checkpoint;
  SymbolLookup library;
};

TEST_P(PreparedTest, GivesTheBitsOfLoading) {
  std::string file = prepare("a");
  auto mapped = Module::openPrepared(libraryOf(GetParam()), file);
  ASSERT_TRUE(mapped) << mapped.message();
  auto loaded = Module::open(libraryOf(GetParam()), kCheckpoint);
  ASSERT_TRUE(loaded) << loaded.message();
  EXPECT_EQ(run(*mapped), run(*loaded));
}

TEST_P(PreparedTest, DoesNotDependOnJobs) {
  std::string first = contents(prepare("a"));
  for (int jobs : {1, 2, 7}) {
    LoadOptions options;
    options.jobs = jobs;
    options.poison = true;
    EXPECT_EQ(contents(prepare("b", options)), first) << jobs;
  }
}

TEST_P(PreparedTest, SaysWhatItHolds) {
  auto tensors = SafeTensors::open(prepare("a"));
  ASSERT_TRUE(tensors) << tensors.message();
  const auto &metadata = tensors->metadata();
  EXPECT_EQ(metadata.at("format"), "wna16-prepared");
  EXPECT_EQ(metadata.at("target"), "#wna16.target<cpu>");
  EXPECT_EQ(metadata.at("source"), *checkpoint->identity());
  EXPECT_EQ(metadata.at("rank"), "0");
  EXPECT_EQ(metadata.at("size"), "1");
  std::string codes = "model.layers.0.mlp.w13.codes";
  EXPECT_EQ(metadata.at("backend." + codes), GetParam());
  EXPECT_NE(metadata.at("encoding." + codes).find("tensor<4x"),
            std::string::npos);
  EXPECT_NE(tensors->find("model.layers.0.mlp.gate.weight"), nullptr);
  for (const auto &[name, view] : tensors->all()) {
    bool fills = name.rfind("__padding__", 0) == 0;
    EXPECT_TRUE(fills || reinterpret_cast<uintptr_t>(view.data) % 4096 == 0)
        << name;
  }
}

TEST_P(PreparedTest, GoesOnAfterAKill) {
  std::string whole = contents(prepare("a"));
  std::string file = directory / "b";
  prepareAndDie(file, library);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(file + ".partial"));
  EXPECT_FALSE(SafeTensors::open(file + ".partial"));
  LoadOptions options;
  int64_t least = INT64_MAX, all = 0;
  options.progress = [&](int64_t done, int64_t total) {
    least = std::min(least, done);
    all = total;
    return ok();
  };
  prepare("b", options);
  EXPECT_GT(least, all / 2) << "began anew";
  EXPECT_EQ(contents(file), whole);
  EXPECT_FALSE(fs::exists(file + ".partial"));
}

TEST_P(PreparedTest, BeginsAnewForAnotherBackend) {
  std::string other = GetParam() == std::string("cpu") ? "emulation" : "cpu";
  std::string whole = contents(prepare("a"));
  prepareAndDie(directory / "b", lookupOf(other));
  EXPECT_EQ(contents(prepare("b")), whole);
}

TEST_P(PreparedTest, RefusesTheOthersFile) {
  std::string other = GetParam() == std::string("cpu") ? "emulation" : "cpu";
  std::string file = prepare("a");
  auto module = Module::openPrepared(libraryOf(other), file);
  ASSERT_FALSE(module);
  EXPECT_NE(module.message().find(std::string("prepared for backend ") +
                                  GetParam() + ", the module takes " + other),
            std::string::npos)
      << module.message();
}

TEST_P(PreparedTest, RefusesWhatIsCut) {
  std::string file = prepare("a");
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_FALSE(Module::openPrepared(libraryOf(GetParam()), file));
  fs::resize_file(file, 0);
  EXPECT_FALSE(Module::openPrepared(libraryOf(GetParam()), file));
}

TEST_P(PreparedTest, RefusesDataOffTheirElements) {
  std::string file = prepare("a"), bytes = contents(file);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.insert(sizeof length + length, 1, ' ');
  ++length;
  std::memcpy(bytes.data(), &length, sizeof length);
  std::ofstream(file, std::ios::binary) << bytes;
  auto module = Module::openPrepared(libraryOf(GetParam()), file);
  ASSERT_FALSE(module);
  EXPECT_NE(module.message().find("expected data at a multiple of"),
            std::string::npos)
      << module.message();
}

INSTANTIATE_TEST_SUITE_P(Backends, PreparedTest,
                         testing::Values("cpu", "emulation"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
