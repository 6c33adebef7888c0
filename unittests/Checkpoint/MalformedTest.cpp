//===- MalformedTest.cpp - Opening never crashes ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <fstream>

using namespace wna16;
using namespace wna16::test;
using Config = nlohmann::ordered_json;

namespace {

/// Values that a key may be set to by someone who means harm, or no harm.
std::vector<Config> oddValues() {
  return {nullptr,
          true,
          false,
          0,
          -1,
          1,
          7,
          4096,
          INT64_MAX,
          INT64_MIN,
          UINT64_MAX,
          1e300,
          0.5,
          "",
          "int4",
          "channel",
          "re:(a*)*b",
          "re:(",
          std::string(2000, 'x'),
          Config::array(),
          Config::array({1, "a", nullptr}),
          Config::object(),
          Config::object({{"a", 1}})};
}

/// All nodes of a document.
void collect(Config &node, std::vector<Config *> &out) {
  out.push_back(&node);
  if (node.is_structured())
    for (Config &child : node)
      collect(child, out);
}

/// Opens and, when that works, reads everything.
bool openAndRead(const std::string &directory) {
  OpenOptions options;
  options.audit = true;
  Result<Checkpoint> checkpoint = Checkpoint::open(directory, options);
  if (!checkpoint) {
    EXPECT_FALSE(checkpoint.message().empty());
    return false;
  }
  for (const MoELayer &layer : checkpoint->layers())
    for (const WeightSource *weight :
         {&layer.router.weight, &layer.experts.w13, &layer.experts.w2})
      dequantised(*checkpoint, *weight);
  return true;
}

std::vector<LinearStyle> styles() {
  LinearStyle gptq, awq, compressed;
  gptq.symmetric = false;
  awq.stored = Stored::AWQ;
  awq.symmetric = false;
  compressed.stored = Stored::CompressedTensors;
  compressed.actOrder = true;
  return {gptq, awq, compressed};
}

TEST(Malformed, EveryKeyWithEveryOddValue) {
  int64_t opened = 0, refused = 0;
  for (const LinearStyle &style : styles()) {
    ModelStyle model;
    model.count = 2;
    model.modelType = "deepseek_v2";
    CheckpointBuilder builder(model, style);
    builder.config["quantization_config"]["dynamic"] = {
        {"+:.*nothing.*", {{"bits", 8}}}};
    TemporaryDirectory directory;
    builder.write(directory.path());
    std::vector<Config *> nodes;
    Config config = builder.config;
    collect(config, nodes);
    for (size_t i = 1; i < nodes.size(); ++i)
      for (const Config &value : oddValues()) {
        Config changed = builder.config;
        std::vector<Config *> all;
        collect(changed, all);
        *all[i] = value;
        directory.write("config.json", changed.dump());
        ++(openAndRead(directory.path()) ? opened : refused);
      }
  }
  RecordProperty("opened", std::to_string(opened));
  RecordProperty("refused", std::to_string(refused));
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 100);
}

TEST(Malformed, TruncatedConfigurations) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  TemporaryDirectory directory;
  builder.write(directory.path());
  std::string text = builder.config.dump();
  for (size_t size = 0; size < text.size(); ++size) {
    directory.write("config.json", text.substr(0, size));
    EXPECT_FALSE(openAndRead(directory.path())) << size;
  }
}

TEST(Malformed, EveryTensorWithEveryOddShape) {
  int64_t opened = 0;
  for (const LinearStyle &style : styles()) {
    ModelStyle model;
    model.count = 1;
    model.topK = 1;
    CheckpointBuilder builder(model, style);
    for (const auto &[name, tensor] : builder.tensors) {
      for (const std::vector<int64_t> &shape : {std::vector<int64_t>{},
                                                {0},
                                                {1},
                                                {64},
                                                {0, 0},
                                                {1, 0},
                                                {0, 64},
                                                {0, INT64_MAX},
                                                {0, int64_t(1) << 62},
                                                {1, 1},
                                                {64, 1},
                                                {8, 8},
                                                {64, 64},
                                                {1, 64, 1}}) {
        for (ScalarType type : {ScalarType::I32, ScalarType::BF16}) {
          CheckpointBuilder changed = builder;
          OwnedTensor &odd = changed.tensors.at(name);
          int64_t elements = 1;
          for (int64_t extent : shape)
            elements *= extent;
          odd = {type, shape,
                 std::vector<uint8_t>(size_t(elements * sizeOf(type)))};
          TemporaryDirectory directory;
          changed.write(directory.path());
          opened += openAndRead(directory.path());
        }
      }
      CheckpointBuilder changed = builder;
      changed.tensors.erase(name);
      TemporaryDirectory directory;
      changed.write(directory.path());
      openAndRead(directory.path());
    }
  }
  RecordProperty("opened", std::to_string(opened));
}

TEST(Malformed, MissingFiles) {
  TemporaryDirectory directory;
  EXPECT_CONTAINS(Checkpoint::open(directory.path()).message(), "config.json");
  EXPECT_CONTAINS(Checkpoint::open(directory.file("nowhere")).message(),
                  "nowhere");
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  directory.write("config.json", builder.config.dump());
  EXPECT_CONTAINS(Checkpoint::open(directory.path()).message(),
                  "model.safetensors");
  builder.tensors.clear();
  builder.addTensor("lm_head.weight", ScalarType::BF16, {4, 4});
  EXPECT_CONTAINS(refusal(builder), "no MoE layer");
}

} // namespace
