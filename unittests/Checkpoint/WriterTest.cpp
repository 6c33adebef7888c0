//===- WriterTest.cpp - Writing checkpoints -------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "Checkpoint/TargetFormat.h"
#include "Layout/Catalogue.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace wna16;
using namespace wna16::test;

namespace fs = std::filesystem;

namespace {

/// A name for a directory, gone afterwards.
class WriterTest : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/wna16-writer-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root = name;
    directory = root + "/checkpoint";
  }
  void TearDown() override { fs::remove_all(root); }

  std::string root, directory;
};

const std::vector<PlannedTensor> kTensors = {
    {"a", ScalarType::I32, {2, 3}},
    {"b\"\n", ScalarType::BF16, {5}},
    {"empty", ScalarType::F32, {0, 4}},
    {"scalar", ScalarType::I64, {}},
};

TEST_F(WriterTest, WritesShardsInAnyOrder) {
  for (int64_t shardBytes : {1, 24, 34, 1 << 20}) {
    std::string name = directory + std::to_string(shardBytes);
    Result<CheckpointWriter> writer =
        CheckpointWriter::create(name + "/", kTensors, shardBytes);
    ASSERT_TRUE(writer) << writer.message();
    EXPECT_EQ(writer->bytes(), 24 + 10 + 0 + 8);
    const char *data = "0123456789abcdefghijklmnopqrstuvwxyz";
    EXPECT_FALSE(writer->write(3, 0, data, 8));
    EXPECT_FALSE(writer->write(0, 10, data + 10, 14));
    EXPECT_FALSE(writer->write(0, 0, data, 10));
    EXPECT_FALSE(writer->write(1, 0, data, 10));
    EXPECT_FALSE(writer->write(2, 0, data, 0));
    EXPECT_FALSE(fs::exists(name));
    EXPECT_FALSE(writer->finish("{}"));
    Result<SafeTensors> files = SafeTensors::openDirectory(name);
    ASSERT_TRUE(files) << files.message();
    ASSERT_EQ(files->all().size(), kTensors.size());
    for (const PlannedTensor &tensor : kTensors) {
      const TensorView *view = files->find(tensor.name);
      ASSERT_NE(view, nullptr) << tensor.name;
      EXPECT_EQ(view->type, tensor.type);
      EXPECT_EQ(view->shape, tensor.shape);
      EXPECT_EQ(std::memcmp(view->data, data, size_t(view->bytes)), 0);
    }
    EXPECT_EQ(fs::exists(name + "/model.safetensors"), shardBytes > 42);
    EXPECT_TRUE(fs::exists(name + "/config.json"));
  }
}

TEST_F(WriterTest, LeavesNothingUnfinished) {
  {
    Result<CheckpointWriter> writer =
        CheckpointWriter::create(directory, kTensors, 1 << 20);
    ASSERT_TRUE(writer) << writer.message();
    EXPECT_FALSE(fs::is_empty(root));
  }
  EXPECT_TRUE(fs::is_empty(root));
}

TEST_F(WriterTest, KnowsWhatCannotBeReplaced) {
  auto refusalOf = [&](const std::string &name) {
    return CheckpointWriter::create(name, kTensors, 1 << 20).message();
  };
  const fs::path before = fs::current_path();
  fs::create_directory(directory);
  fs::current_path(directory);
  EXPECT_EQ(refusalOf("."),
            "cannot replace ., a mount point or the current directory; name a "
            "new directory in it");
  fs::current_path(before);
  fs::create_symlink("nowhere", root + "/broken");
  EXPECT_EQ(refusalOf(root + "/broken"), "cannot follow the link " + root +
                                             "/broken: No such file or "
                                             "directory");
  fs::create_symlink("checkpoint", root + "/link");
  Result<CheckpointWriter> writer =
      CheckpointWriter::create(root + "/link", kTensors, 1 << 20);
  ASSERT_TRUE(writer) << writer.message();
  EXPECT_FALSE(writer->finish("{}"));
  EXPECT_TRUE(fs::is_symlink(root + "/link"));
  EXPECT_TRUE(fs::exists(directory + "/config.json"));
}

TEST_F(WriterTest, RefusesWhatDoesNotFit) {
  auto refusalOf = [&](std::vector<PlannedTensor> tensors) {
    return CheckpointWriter::create(directory, std::move(tensors), 1).message();
  };
  EXPECT_CONTAINS(refusalOf({kTensors[0], kTensors[0]}),
                  "tensor a appears twice");
  EXPECT_CONTAINS(
      refusalOf({{"x", ScalarType::F64, {int64_t(1) << 32, 1 << 30}}}),
      "tensor x: its size does not fit 63 bits");
  EXPECT_CONTAINS(refusalOf({{"x", ScalarType::U8, {int64_t(1) << 60}}}),
                  "expected room for 1152921504606846976 bytes");
  fs::create_directory(directory);
  std::ofstream(directory + "/file") << "text";
  EXPECT_CONTAINS(refusalOf(kTensors), "to be an empty directory or none");
  fs::remove(directory + "/file");
  Result<CheckpointWriter> writer =
      CheckpointWriter::create(directory, kTensors, 1);
  ASSERT_TRUE(writer) << writer.message();
  EXPECT_CONTAINS(writer->write(0, 20, "12345", 5).message,
                  "tensor a: expected bytes 0 to 24, got 20 to 25");
  EXPECT_FALSE(writer->finish("{}"));
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

WeightSpec packed(CodeType code, int64_t input, int64_t output) {
  WeightSpec spec;
  spec.layout = findLayout("compressed_tensors");
  spec.code = code;
  bool implied = code == CodeType::U4B8 || code == CodeType::U8B128;
  spec.zeros = implied ? ZeroPoints::None : ZeroPoints::Plain;
  spec.group = 32;
  spec.input = input;
  spec.output = output;
  return spec;
}

std::string refused(const char *format, const WeightSpec &spec) {
  return specIn(*findTargetFormat(format), spec).message();
}

TEST(TargetFormatTest, RefusesWhatAFormatCannotHold) {
  WeightSpec spec = packed(CodeType::U4, 100, 40);
  EXPECT_CONTAINS(refused("gptq", spec),
                  "an extent of 100; the next multiple of 8 is 104");
  EXPECT_CONTAINS(
      refused("awq", spec),
      "an input of 100 in groups of 32; the next multiple of 32 is 128");
  EXPECT_EQ(refused("compressed-tensors", spec), "");
  EXPECT_CONTAINS(refused("awq", packed(CodeType::U4, 64, 36)),
                  "an extent of 36; the next multiple of 8 is 40");
  EXPECT_EQ(refused("gptq", packed(CodeType::U4, 64, 36)), "");
  EXPECT_CONTAINS(refused("awq", packed(CodeType::U8, 64, 64)), "got 8 bits");
  spec = packed(CodeType::U4B8, 64, 64);
  spec.actOrder = ActOrder::Index;
  EXPECT_CONTAINS(refused("awq", spec), "no act-order");
  WeightSpec dense;
  dense.layout = findLayout("dense");
  EXPECT_CONTAINS(refused("gptq", dense), "quantising floats is not exact");
}

TEST(TargetFormatTest, GivesAWQZeroPoints) {
  Result<WeightSpec> spec =
      specIn(*findTargetFormat("awq"), packed(CodeType::U4B8, 64, 64));
  ASSERT_TRUE(spec) << spec.message();
  EXPECT_EQ(spec->code, CodeType::U4);
  EXPECT_EQ(spec->zeros, ZeroPoints::Plain);
}

TEST(TargetFormatTest, RefusesZeroPointsThatWrap) {
  const TargetFormat &v1 = *findTargetFormat("gptq");
  Result<WeightSpec> spec = specIn(v1, packed(CodeType::U4, 64, 16));
  ASSERT_TRUE(spec) << spec.message();
  std::vector<uint8_t> zeros(2 * 16 / 2, 0x77);
  EXPECT_FALSE(checkStoredZeros(v1, *spec, zeros.data()));
  zeros[8 + 5] = 0xf0; // of group 1, outputs 10 and 11
  EXPECT_CONTAINS(checkStoredZeros(v1, *spec, zeros.data()).message,
                  "zero point 0 of group 1, output 11");
  EXPECT_FALSE(
      checkStoredZeros(*findTargetFormat("gptq_v2"), *spec, zeros.data()));
}

TEST(TargetFormatTest, RewritesConfigurations) {
  std::string config = R"({"z": 1e-06, "text_config": {"a": 1,
    "quantization_config": {"bits": 3}}, "quantization_config": {"bits": 4}})";
  TargetScheme scheme;
  auto rewritten = [&](const char *format) {
    Result<std::string> text = configIn(
        *findTargetFormat(format), scheme, config,
        {"model.layers.0.mlp.gate", "model.layers.1.mlp.gate",
         "model.layers.0.q_proj", "lm_head"},
        {"model.layers.0.mlp.experts.0.up_proj", "model.layers.1.q_proj"});
    EXPECT_TRUE(text) << text.message();
    return nlohmann::json::parse(*text);
  };
  nlohmann::json dense = rewritten("dense");
  EXPECT_EQ(dense,
            nlohmann::json::parse(R"({"z": 1e-06, "text_config": {"a": 1}})"));
  // A pattern for all layers only where it leaves packed modules alone.
  nlohmann::json ignore =
      rewritten("compressed-tensors")["quantization_config"]["ignore"];
  EXPECT_EQ(ignore,
            (nlohmann::json{"re:model\\.layers\\.\\d+\\.mlp\\.gate$",
                            "re:model\\.layers\\.0\\.q_proj$", "re:lm_head$"}));
  nlohmann::json v2 = rewritten("gptq_v2")["quantization_config"];
  EXPECT_EQ(v2["checkpoint_format"], "gptq_v2");
  EXPECT_EQ(v2["dynamic"].size(), 3u);
}

} // namespace
