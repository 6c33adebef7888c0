//===- FormatTest.cpp - What each format's files say ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "Layout/Catalogue.h"

#include <cstring>
#include <fstream>

using namespace wna16;
using namespace wna16::test;

namespace {

/// Overwrites every 32-bit word of the tensors whose names end so.
void fillWords(CheckpointBuilder &builder, const std::string &suffix,
               uint32_t word) {
  for (auto &[name, tensor] : builder.tensors) {
    if (name.size() < suffix.size() ||
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
      continue;
    for (size_t i = 0; i + 4 <= tensor.bytes.size(); i += 4)
      std::memcpy(&tensor.bytes[i], &word, 4);
  }
}

void eraseSuffix(CheckpointBuilder &builder, const std::string &suffix) {
  for (auto it = builder.tensors.begin(); it != builder.tensors.end();)
    if (it->first.size() > suffix.size() &&
        it->first.compare(it->first.size() - suffix.size(), suffix.size(),
                          suffix) == 0)
      it = builder.tensors.erase(it);
    else
      ++it;
}

bool hasFault(const Checkpoint &checkpoint) {
  for (const Finding &finding : checkpoint.findings())
    if (finding.fault)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Every combination
//===----------------------------------------------------------------------===//

struct Combination {
  Stored stored;
  int bits;
  int64_t group;
  bool symmetric;
  bool actOrder;
};

class Combinations : public testing::TestWithParam<Combination> {};

TEST_P(Combinations, AreExact) {
  Combination c = GetParam();
  LinearStyle linear =
      style(c.stored, c.bits, c.group, c.symmetric, c.actOrder);
  for (ScalarType scale :
       {ScalarType::F16, ScalarType::BF16, ScalarType::F32}) {
    linear.scale = scale;
    CheckpointBuilder builder(model(3, 256, 128), linear);
    Result<Checkpoint> checkpoint = open(builder, true);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    expectExact(*checkpoint, builder);
    const WeightSpec &spec = checkpoint->layers()[0].experts.w13.spec;
    EXPECT_EQ(spec.scale, scale);
    EXPECT_EQ(spec.group, c.group);
    EXPECT_EQ(spec.bits(), c.bits);
    EXPECT_EQ(spec.zeros == ZeroPoints::None, c.symmetric);
    EXPECT_EQ(spec.halves, 2);
    EXPECT_FALSE(hasFault(*checkpoint));
  }
}

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (Stored stored :
       {Stored::GPTQ, Stored::GPTQv2, Stored::AWQ, Stored::CompressedTensors})
    for (int bits : {4, 8})
      for (int64_t group : {-1, 32, 64, 128})
        for (bool symmetric : {true, false})
          for (bool actOrder : {false, true})
            if (stored != Stored::AWQ || (bits == 4 && !actOrder))
              if (group > 0 || !actOrder)
                all.push_back({stored, bits, group, symmetric, actOrder});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Combinations, testing::ValuesIn(combinations()));

//===----------------------------------------------------------------------===//
// Zero points
//===----------------------------------------------------------------------===//

TEST(Format, B16_GPTQv2StoresTheZeroPointItself) {
  std::vector<float> values[2];
  for (Stored stored : {Stored::GPTQ, Stored::GPTQv2}) {
    CheckpointBuilder builder(model(2, 128, 64), style(stored, 4, 64, false));
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    const WeightSource &w13 = checkpoint->layers()[0].experts.w13;
    EXPECT_EQ(w13.spec.zeros, stored == Stored::GPTQ ? ZeroPoints::MinusOne
                                                     : ZeroPoints::Plain);
    values[stored == Stored::GPTQv2] = dequantised(*checkpoint, w13);
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(Format, B17_SymmetricIgnoresStoredZerosAndReportsThem) {
  std::vector<float> values[2];
  for (uint32_t word : {0x77777777u, 0x88888888u}) {
    CheckpointBuilder builder(model(2, 128, 64),
                              style(Stored::GPTQ, 4, 128, true));
    fillWords(builder, ".qzeros", word);
    Result<Checkpoint> checkpoint = open(builder, true);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    expectExact(*checkpoint, builder);
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.zeros, ZeroPoints::None);
    bool odd = word == 0x88888888u;
    EXPECT_EQ(hasFault(*checkpoint), odd);
    if (odd) {
      EXPECT_CONTAINS(checkpoint->findings()[0].text, "8, not 7");
    }
    values[odd] = dequantised(*checkpoint, checkpoint->layers()[0].experts.w13);
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(Format, B17_AsymmetricNeedsACheckpointFormat) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 4, 128, false));
  builder.config["quantization_config"].erase("checkpoint_format");
  EXPECT_CONTAINS(refusal(builder), "without checkpoint_format");
  CheckpointBuilder symmetric(model(2, 128, 64),
                              style(Stored::GPTQ, 4, 128, true));
  symmetric.config["quantization_config"].erase("checkpoint_format");
  Result<Checkpoint> checkpoint = open(symmetric);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, symmetric);
}

TEST(Format, B19_PresenceOfZerosDecidesNothing) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 4, 128, true));
  Result<Checkpoint> with = open(builder);
  ASSERT_TRUE(with) << with.message();
  eraseSuffix(builder, ".qzeros");
  Result<Checkpoint> without = open(builder);
  ASSERT_TRUE(without) << without.message();
  EXPECT_EQ(with->layers()[0].experts.w13.spec,
            without->layers()[0].experts.w13.spec);
  expectExact(*with, builder);
  expectExact(*without, builder);
}

TEST(Format, B20_AsymmetricWithoutZerosIsRefused) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 4, 128, false));
  builder.tensors.erase("model.layers.0.mlp.experts.1.up_proj.qzeros");
  EXPECT_CONTAINS(refusal(builder),
                  "missing tensor model.layers.0.mlp.experts.1.up_proj.qzeros");
}

TEST(Format, UnusedZerosOfSymmetricAWQAreRefused) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::AWQ, 4, 32, false));
  builder.config["quantization_config"]["zero_point"] = false;
  EXPECT_CONTAINS(refusal(builder), "qzeros");
}

TEST(Format, UnpackedZerosAreRefusedWithBothShapes) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::CompressedTensors, 4, 32, false));
  builder.addTensor("model.layers.0.mlp.experts.0.gate_proj.weight_zero_point",
                    ScalarType::BF16, {64, 4});
  EXPECT_CONTAINS(refusal(builder), "expected i32 [8, 4], got bf16 [64, 4]");
}

//===----------------------------------------------------------------------===//
// Act-order
//===----------------------------------------------------------------------===//

TEST(Format, B25_EachExpertHasItsOwnOrder) {
  CheckpointBuilder builder(
      model(3, 256, 128), style(Stored::CompressedTensors, 4, 64, true, true));
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.actOrder, ActOrder::Index);
}

TEST(Format, B25_GateAndUpMustShareTheirOrder) {
  for (Stored stored : {Stored::CompressedTensors, Stored::GPTQ}) {
    CheckpointBuilder builder(model(3, 256, 128),
                              style(stored, 4, 64, true, true));
    builder.addLinear("model.layers.0.mlp.experts.1.up_proj", 256, 128,
                      builder.model.w13, 99);
    EXPECT_CONTAINS(refusal(builder), "experts.1.up_proj");
  }
}

TEST(Format, GroupIndexIsChecked) {
  const std::string tensor = "model.layers.0.mlp.experts.0.down_proj.g_idx";
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 4, 32, true, true));
  builder.tensors.at(tensor).bytes[0] = 2; // of two groups
  EXPECT_CONTAINS(refusal(builder), "expected groups from 0 to 1, got 2");
  builder.tensors.erase(tensor);
  EXPECT_CONTAINS(refusal(builder), "missing tensor " + tensor);

  CheckpointBuilder plain(model(2, 128, 64), style(Stored::GPTQ, 4, 32, true));
  plain.tensors.at(tensor).bytes[0] = 1;
  EXPECT_CONTAINS(refusal(plain), "no act-order");
  plain.tensors.erase(tensor);
  Result<Checkpoint> checkpoint = open(plain);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
}

TEST(Format, ActOrderOfOneGroupIsNone) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 4, -1, true, true));
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.actOrder, ActOrder::None);
  expectExact(*checkpoint, builder);
}

TEST(Format, ActOrderOfCompressedTensorsByName) {
  for (const char *order : {"weight", "static"}) {
    CheckpointBuilder builder(model(2, 128, 64),
                              style(Stored::CompressedTensors, 4, 32, true));
    builder.config["quantization_config"]["config_groups"]["group_0"]["weights"]
                  ["actorder"] = order;
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.actOrder,
              ActOrder::None);
    expectExact(*checkpoint, builder);
  }
  CheckpointBuilder builder(
      model(2, 128, 64), style(Stored::CompressedTensors, 4, 32, true, true));
  auto &order = builder.config["quantization_config"]["config_groups"]
                              ["group_0"]["weights"]["actorder"];
  order = "dynamic";
  Result<Checkpoint> checkpoint = open(builder);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
  order = "backwards";
  EXPECT_CONTAINS(refusal(builder), "\"backwards\"");
}

//===----------------------------------------------------------------------===//
// Groups and shapes
//===----------------------------------------------------------------------===//

TEST(Format, B04_LastGroupMayBeShort) {
  ModelStyle shape = model(4, 256, 704);
  shape.topK = 2;
  CheckpointBuilder builder(shape, style(Stored::GPTQ, 4, 128, true));
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const WeightSource &w2 = checkpoint->layers()[0].experts.w2;
  EXPECT_EQ(w2.spec.groups(), 6);
  EXPECT_EQ(w2.parts[1].shape, (std::vector<int64_t>{4, 6, 256}));
  expectExact(*checkpoint, builder);
}

TEST(Format, B26_ChannelWithoutGroupSize) {
  ModelStyle shape = model(8, 256, 512);
  CheckpointBuilder builder(shape,
                            style(Stored::CompressedTensors, 4, -1, true));
  EXPECT_TRUE(builder
                  .config["quantization_config"]["config_groups"]["group_0"]
                         ["weights"]["group_size"]
                  .is_null());
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.group, -1);
  expectExact(*checkpoint, builder);
}

TEST(Format, B29_EightBitsWithEveryGroup) {
  for (int64_t group : {-1, 32, 128})
    for (bool symmetric : {true, false}) {
      CheckpointBuilder builder(model(2, 256, 128),
                                style(Stored::GPTQ, 8, group, symmetric));
      Result<Checkpoint> checkpoint = open(builder);
      ASSERT_TRUE(checkpoint) << checkpoint.message();
      EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.code,
                symmetric ? CodeType::U8B128 : CodeType::U8);
      expectExact(*checkpoint, builder);
    }
}

TEST(Format, B56_WeightShapeOnlyChecks) {
  const std::string tensor =
      "model.layers.0.mlp.experts.0.gate_proj.weight_shape";
  CheckpointBuilder builder(model(2, 256, 128),
                            style(Stored::CompressedTensors, 4, 32, true));
  EXPECT_EQ(
      builder.tensors.at("model.layers.0.mlp.experts.0.gate_proj.weight_packed")
          .shape,
      (std::vector<int64_t>{128, 32}));
  int64_t stale[2] = {32, 256};
  std::memcpy(builder.tensors.at(tensor).bytes.data(), stale, 16);
  EXPECT_CONTAINS(refusal(builder), "[32, 256]");
  eraseSuffix(builder, ".weight_shape");
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
}

TEST(Format, B58_GroupSizeIsNotInferred) {
  CheckpointBuilder builder(model(1, 256, 2048),
                            style(Stored::CompressedTensors, 4, 128, true));
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w2.spec.group, 128);
  EXPECT_EQ(checkpoint->layers()[0].experts.w2.spec.groups(), 16);
  // A table of another size does not make another group size.
  builder.addTensor("model.layers.0.mlp.experts.0.down_proj.weight_scale",
                    ScalarType::F16, {256, 8});
  EXPECT_CONTAINS(refusal(builder), "expected f16 [256, 16], got f16 [256, 8]");
}

TEST(Format, B61_MissingScaleIsNamed) {
  CheckpointBuilder builder(model(8, 64, 64),
                            style(Stored::CompressedTensors, 4, 32, true));
  const std::string tensor =
      "model.layers.0.mlp.experts.5.down_proj.weight_scale";
  builder.tensors.erase(tensor);
  EXPECT_CONTAINS(refusal(builder), "missing tensor " + tensor);
}

TEST(Format, B61_OddScalesAreReported) {
  CheckpointBuilder builder(model(8, 64, 64),
                            style(Stored::CompressedTensors, 4, 32, true));
  auto set = [&](const std::string &module, size_t at, uint16_t bits) {
    std::memcpy(&builder.tensors.at(module + ".weight_scale").bytes[2 * at],
                &bits, 2);
  };
  const std::string experts = "model.layers.0.mlp.experts.";
  set(experts + "0.up_proj", 3, 0x0000);
  set(experts + "1.gate_proj", 0, 0xbc00);
  set(experts + "2.down_proj", 1, 0x7e00);
  set(experts + "3.down_proj", 2, 0x7c00);
  Result<Checkpoint> checkpoint = open(builder, true);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  std::map<std::string, std::string> found;
  for (const Finding &finding : checkpoint->findings())
    found[finding.tensor] = finding.text;
  ASSERT_EQ(found.size(), 4u);
  EXPECT_CONTAINS(found[experts + "0.up_proj.weight_scale"],
                  "1 of 128 scales are zero, the first is number 3");
  EXPECT_CONTAINS(found[experts + "1.gate_proj.weight_scale"], "negative");
  EXPECT_CONTAINS(found[experts + "2.down_proj.weight_scale"], "NaN");
  EXPECT_CONTAINS(found[experts + "3.down_proj.weight_scale"], "infinite");
}

TEST(Format, OddFloatsAreReported) {
  ModelStyle style = model(2, 64, 32);
  CheckpointBuilder builder(style, LinearStyle{});
  std::string block = builder.block(0), experts = block + "experts.";
  auto add = [&](const std::string &name, std::vector<uint16_t> bits) {
    builder.addTensor(name, ScalarType::BF16, {int64_t(bits.size())});
    std::memcpy(builder.tensors.at(name).bytes.data(), bits.data(),
                2 * bits.size());
  };
  add(block + "gate.bias", {0x7f80, 0});
  add(block + "gate.e_score_correction_bias", {0x7fc0, 0xbf80});
  std::vector<uint16_t> bias(32);
  bias[7] = 0xff80;
  add(experts + "1.up_proj.bias", bias);
  for (const char *rest : {"0.gate_proj", "0.up_proj", "1.gate_proj"})
    builder.addTensor(experts + rest + ".bias", ScalarType::BF16, {32});
  uint16_t nan = 0x7fc1;
  std::memcpy(&builder.tensors.at(block + "gate.weight").bytes[20], &nan, 2);
  Result<Checkpoint> checkpoint = open(builder, true);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  std::map<std::string, std::string> found;
  for (const Finding &finding : checkpoint->findings())
    found[finding.tensor] = finding.text;
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[block + "gate.weight"],
            "1 of 128 elements are NaN, the first is number 10");
  EXPECT_CONTAINS(found[block + "gate.bias"], "1 of 2 elements are infinite");
  EXPECT_CONTAINS(found[block + "gate.e_score_correction_bias"], "NaN");
  EXPECT_CONTAINS(found[experts + "1.up_proj.bias"], "is number 7");
}

//===----------------------------------------------------------------------===//
// Refusals by name
//===----------------------------------------------------------------------===//

/// The message for a checkpoint whose tensor has another type in the same
/// bytes.
std::string refusalOfType(const CheckpointBuilder &builder,
                          const std::string &tensor, const char *type,
                          std::vector<int64_t> shape) {
  TemporaryDirectory directory;
  builder.write(directory.path());
  std::ifstream in(directory.file("model.safetensors"), std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)),
                   std::istreambuf_iterator<char>());
  uint64_t size = 0;
  std::memcpy(&size, text.data(), 8);
  nlohmann::json header = nlohmann::json::parse(text.substr(8, size));
  header[tensor]["dtype"] = type;
  header[tensor]["shape"] = shape;
  std::string changed = header.dump();
  uint64_t length = changed.size();
  directory.write("model.safetensors",
                  std::string(reinterpret_cast<char *>(&length), 8) + changed +
                      text.substr(8 + size));
  return Checkpoint::open(directory.path()).message();
}

TEST(Format, ElementTypesOfOtherFormatsAreRefused) {
  CheckpointBuilder builder(model(2, 64, 64),
                            style(Stored::CompressedTensors, 4, 32, true));
  const std::string module = builder.expert(0, 1) + "up_proj";
  EXPECT_CONTAINS(
      refusalOfType(builder, module + ".weight_scale", "F8_E4M3", {64, 4}),
      "tensor " + module +
          ".weight_scale has dtype F8_E4M3, which is not supported");
  const std::string first = builder.expert(0, 0) + "gate_proj";
  EXPECT_CONTAINS(
      refusalOfType(builder, first + ".weight_packed", "U32", {64, 8}),
      "module " + first + " is packed, but not as compressed-tensors: tensor " +
          first + ".weight_packed has dtype U32, which is not supported");
}

TEST(Format, PackingMustMatchTheMethod) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::AWQ, 4, 32, false));
  builder.config["quantization_config"] =
      quantizationConfig(style(Stored::GPTQ, 4, 32, false));
  EXPECT_CONTAINS(refusal(builder), "packed as awq, but the configuration "
                                    "says gptq");
  builder.config["quantization_config"] =
      quantizationConfig(style(Stored::CompressedTensors, 4, 32, false));
  EXPECT_CONTAINS(refusal(builder), "not as compressed-tensors");
  builder.config.erase("quantization_config");
  EXPECT_CONTAINS(refusal(builder), "no quantization_config");
}

TEST(Format, UnsupportedVariantsAreNamed) {
  struct Case {
    Stored stored;
    const char *key;
    nlohmann::ordered_json value;
    const char *message;
  };
  for (const Case &c : std::vector<Case>{
           {Stored::GPTQ, "checkpoint_format", "gptq_p", "\"gptq_p\""},
           {Stored::GPTQ, "checkpoint_format", "marlin", "\"marlin\""},
           {Stored::GPTQ, "checkpoint_format", "bitblas", "\"bitblas\""},
           {Stored::GPTQ, "is_marlin_format", true, "\"marlin\""},
           {Stored::GPTQ, "bits", 3, "3 bits"},
           {Stored::GPTQ, "bits", 2, "2 bits"},
           {Stored::GPTQ, "group_size", 0, "group size 0"},
           {Stored::GPTQ, "group_size", -7, "group size -7"},
           {Stored::GPTQ, "pack_dtype", "int16", "\"int16\""},
           {Stored::GPTQ, "quant_method", "bitsandbytes", "\"bitsandbytes\""},
           {Stored::AWQ, "version", "gemv", "\"gemv\""},
           {Stored::AWQ, "version", "gemv_fast", "\"gemv_fast\""},
           {Stored::AWQ, "version", "llm-awq", "\"llm-awq\""},
           {Stored::AWQ, "version", "marlin", "\"marlin\""},
           {Stored::AWQ, "bits", 8, "awq with 8 bits"},
           {Stored::CompressedTensors, "format", "marlin-24", "\"marlin-24\""},
           {Stored::CompressedTensors, "format", "nvfp4-pack-quantized",
            "\"nvfp4-pack-quantized\""}}) {
    CheckpointBuilder builder(model(2, 128, 64), style(c.stored, 4, 32, false));
    builder.config["quantization_config"][c.key] = c.value;
    EXPECT_CONTAINS(refusal(builder), c.message);
  }
}

TEST(Format, UnsupportedCompressedSchemesMatterOnlyWhereUsed) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::CompressedTensors, 4, 32, true));
  auto &groups = builder.config["quantization_config"]["config_groups"];
  groups["fp8"] = {{"targets", {"re:.*self_attn.*"}},
                   {"weights",
                    {{"num_bits", 8},
                     {"type", "float"},
                     {"strategy", "tensor"},
                     {"symmetric", true}}}};
  Result<Checkpoint> checkpoint = open(builder);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
  groups["fp8"]["targets"] = {"re:.*experts.*"};
  EXPECT_CONTAINS(refusal(builder), "\"float\"");
  groups.erase("fp8");
  for (std::string side : {"input", "output"}) {
    groups["group_0"][side + "_activations"] = {{"num_bits", 8}};
    EXPECT_CONTAINS(refusal(builder), side + " activations");
    groups["group_0"].erase(side + "_activations");
  }
}

// Each would change what the weights mean.
TEST(Format, CompressedExtensionsAreRefusedUnlessEmpty) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::CompressedTensors, 4, 32, true));
  auto &config = builder.config["quantization_config"];
  const auto empty = nlohmann::ordered_json::object();
  config["transform_config"] = empty;
  config["sparsity_config"] = empty;
  EXPECT_TRUE(open(builder));
  config["sparsity_config"] = {{"format", "dense"}};
  EXPECT_TRUE(open(builder));
  config["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
  EXPECT_CONTAINS(refusal(builder), "sparsity_config is not supported");
  config["sparsity_config"] = nullptr;
  config["transform_config"] = {{"config_groups", {{"R1", {{"type", "x"}}}}}};
  EXPECT_CONTAINS(refusal(builder), "transform_config is not supported");
}

TEST(Format, AWQGroupsMustDivideTheInput) {
  CheckpointBuilder builder(model(2, 128, 96),
                            style(Stored::AWQ, 4, 64, false));
  EXPECT_CONTAINS(refusal(builder), "96");
}

TEST(Format, B35_AliasesAreOneTable) {
  for (const char *method : {"awq", "awq_marlin"}) {
    CheckpointBuilder builder(model(2, 256, 192),
                              style(Stored::AWQ, 4, 64, false));
    builder.config["quantization_config"]["quant_method"] = method;
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->method(), "awq");
    expectExact(*checkpoint, builder);
  }
  CheckpointBuilder builder(model(2, 256, 192),
                            style(Stored::GPTQ, 4, 64, true));
  builder.config["quantization_config"]["quant_method"] = "gptq_marlin";
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->method(), "gptq");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(Format, ReadTakesARangeOfExperts) {
  CheckpointBuilder builder(model(4, 64, 32), style(Stored::GPTQ, 4, 32, true));
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const TensorPattern &codes =
      checkpoint->layers()[0].experts.w13.parts[0]; // [4, 8, 64]
  std::vector<uint32_t> all(4 * 8 * 64), some(4 * 8 * 64, 7);
  ASSERT_FALSE(checkpoint->read(codes, all.data()));
  ASSERT_FALSE(checkpoint->read(codes, some.data(), 1, 3));
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(some[i], i / (8 * 64) == 1 || i / (8 * 64) == 2 ? all[i] : 7u);
  EXPECT_CONTAINS(checkpoint->read(codes, some.data(), 0, 5).message, "0 to 4");
  EXPECT_CONTAINS(checkpoint->read(codes, some.data(), -1, 2).message,
                  "-1 to 2");
  EXPECT_CONTAINS(checkpoint->read(codes, some.data(), 3, 2).message, "3 to 2");
}

TEST(Format, BiasesOfExperts) {
  CheckpointBuilder builder(model(2, 64, 32), style(Stored::GPTQ, 4, 32, true));
  for (int64_t e = 0; e < 2; ++e) {
    builder.addTensor(builder.expert(0, e) + "gate_proj.bias", ScalarType::F16,
                      {32});
    builder.addTensor(builder.expert(0, e) + "up_proj.bias", ScalarType::F16,
                      {32});
    builder.addTensor(builder.expert(0, e) + "down_proj.bias", ScalarType::F16,
                      {64});
  }
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const ExpertsSource &experts = checkpoint->layers()[0].experts;
  ASSERT_TRUE(experts.bias13 && experts.bias2);
  EXPECT_EQ(experts.bias13->shape, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(experts.bias2->shape, (std::vector<int64_t>{2, 64}));
  std::vector<uint8_t> bias(2 * 64 * 2);
  ASSERT_FALSE(checkpoint->read(*experts.bias13, bias.data()));
  const auto &up = builder.tensors.at(builder.expert(0, 1) + "up_proj.bias");
  EXPECT_EQ(std::memcmp(&bias[(64 + 32) * 2], up.bytes.data(), 64), 0);

  builder.tensors.erase(builder.expert(0, 1) + "up_proj.bias");
  EXPECT_CONTAINS(refusal(builder), "experts.1.up_proj.bias");
}

} // namespace
