//===- MixedTest.cpp - Which modules of a layer are quantised ---*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "Layout/Catalogue.h"

using namespace wna16;
using namespace wna16::test;

namespace {

TEST(Mixed, B46_SharedExpertsAreDecidedPerLayer) {
  ModelStyle shape = model(8, 128, 64);
  shape.modelType = "qwen2_moe";
  shape.layers = 2;
  LinearStyle packed = style(Stored::CompressedTensors, 4, 32, true);
  LinearStyle dense = style(Stored::Dense, 4, 32, true);
  CheckpointBuilder builder(shape, packed);
  builder.addExpert(builder.block(0) + "shared_expert.", dense, dense, 1);
  builder.addExpert(builder.block(1) + "shared_expert.", packed, packed, 1);
  builder.config["quantization_config"]["ignore"].push_back(
      "re:.*layers.0.mlp.shared_expert.*");
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].shared->w13.spec.code, CodeType::Dense);
  EXPECT_EQ(checkpoint->layers()[1].shared->w13.spec.code, CodeType::U4B8);
  expectExact(*checkpoint, builder);
}

TEST(Mixed, B47_SomeExpertsDenseIsRefused) {
  CheckpointBuilder builder(model(4, 128, 64),
                            style(Stored::GPTQ, 4, 32, true));
  builder.removeModule("model.layers.0.mlp.experts.2.gate_proj");
  builder.addLinear("model.layers.0.mlp.experts.2.gate_proj", 128, 64,
                    style(Stored::Dense, 4, 32, true));
  std::string message = refusal(builder);
  EXPECT_CONTAINS(message, "layer 0");
  EXPECT_CONTAINS(message,
                  "are dense (model.layers.0.mlp.experts.2.gate_proj)");
}

TEST(Mixed, B52_IgnoreListsNameLeaves) {
  ModelStyle shape = model(4, 64, 32);
  shape.prefix = "mtp.";
  LinearStyle packed = style(Stored::CompressedTensors, 4, 32, true);
  LinearStyle dense = style(Stored::Dense, 4, 32, true);
  auto leaves = [](int64_t experts) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (int64_t e = 0; e < experts; ++e)
      for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
        list.push_back("mtp.layers.0.mlp.experts." + std::to_string(e) + "." +
                       leaf);
    return list;
  };
  CheckpointBuilder all(shape, dense);
  all.config["quantization_config"] = quantizationConfig(packed);
  auto &ignore = all.config["quantization_config"]["ignore"];
  for (nlohmann::ordered_json list :
       {leaves(4), nlohmann::ordered_json::array({"re:.*mtp.*"})}) {
    ignore = list;
    Result<Checkpoint> checkpoint = open(all);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.code, CodeType::Dense);
    EXPECT_EQ(checkpoint->layers()[0].index, 1); // after layer 0
    expectExact(*checkpoint, all);
  }
  ignore = leaves(2);
  EXPECT_CONTAINS(refusal(all), "mtp.layers.0.mlp.experts.2.gate_proj");

  CheckpointBuilder none(shape, packed);
  Result<Checkpoint> checkpoint = open(none);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.code, CodeType::U4B8);
  // Packed although ignored: which scheme would it be?
  none.config["quantization_config"]["ignore"] = leaves(4);
  EXPECT_CONTAINS(refusal(none), "keeps it dense");
}

TEST(Mixed, B53_DynamicRules) {
  ModelStyle shape = model(2, 128, 64);
  shape.modelType = "qwen2_moe";
  shape.layers = 2;
  LinearStyle four = style(Stored::GPTQ, 4, 128, true);
  LinearStyle eight = style(Stored::GPTQ, 8, 64, true);
  LinearStyle dense = style(Stored::Dense, 4, 32, true);
  for (const char *sign : {"+:", ""}) {
    CheckpointBuilder builder(shape, four);
    for (int64_t e = 0; e < 2; ++e)
      builder.addExpert(builder.expert(1, e), eight, eight, 1);
    for (int64_t layer = 0; layer < 2; ++layer)
      builder.addExpert(builder.block(layer) + "shared_expert.", dense, dense,
                        1);
    auto &dynamic = builder.config["quantization_config"]["dynamic"];
    dynamic[std::string(sign) + ".*layers\\.1\\..*experts.*"] = {
        {"bits", 8}, {"group_size", 64}};
    dynamic["-:.*shared_expert.*"] = nlohmann::ordered_json::object();
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.bits(), 4);
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.group, 128);
    EXPECT_EQ(checkpoint->layers()[1].experts.w2.spec.bits(), 8);
    EXPECT_EQ(checkpoint->layers()[1].experts.w2.spec.group, 64);
    EXPECT_EQ(checkpoint->layers()[0].shared->w13.spec.code, CodeType::Dense);
    expectExact(*checkpoint, builder);
  }
}

TEST(Mixed, B53_FirstDynamicRuleWinsAndMatchesFromTheStart) {
  CheckpointBuilder builder(model(2, 128, 64),
                            style(Stored::GPTQ, 8, 64, true));
  auto &config = builder.config["quantization_config"];
  config["bits"] = 4;
  config["dynamic"]["experts"] = {{"bits", 3}}; // not at the start
  config["dynamic"]["model.*experts.*"] = {{"bits", 8}};
  config["dynamic"][".*"] = {{"bits", 4}};
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
}

TEST(Mixed, B53_RulesThatSplitExpertsAreRefused) {
  CheckpointBuilder builder(model(4, 128, 64),
                            style(Stored::GPTQ, 4, 64, true));
  builder.config["quantization_config"]["dynamic"][".*experts.2.up_proj"] = {
      {"bits", 8}};
  EXPECT_CONTAINS(refusal(builder), "experts.2.up_proj 8 bits");
}

TEST(Mixed, B55_PackedW13WithDenseW2) {
  ModelStyle shape = model(4, 128, 128);
  shape.layers = 1;
  shape.w13 = style(Stored::AWQ, 4, 128, false);
  shape.w2 = style(Stored::Dense, 4, 32, true);
  CheckpointBuilder builder(shape);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.code, CodeType::U4);
  EXPECT_EQ(checkpoint->layers()[0].experts.w2.spec.code, CodeType::Dense);
  expectExact(*checkpoint, builder);
}

TEST(Mixed, SeveralConfigGroups) {
  ModelStyle shape = model(2, 128, 64);
  shape.w13 = style(Stored::CompressedTensors, 4, 32, true);
  shape.w2 = style(Stored::CompressedTensors, 8, -1, false);
  CheckpointBuilder builder(shape);
  auto &groups = builder.config["quantization_config"]["config_groups"];
  groups["group_1"] = quantizationConfig(shape.w2)["config_groups"]["group_0"];
  groups["group_1"]["targets"] = {"re:.*down_proj$"};
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w2.spec.code, CodeType::U8);
  expectExact(*checkpoint, builder);
}

TEST(Mixed, QuantisedRouterIsRead) {
  CheckpointBuilder builder(model(8, 128, 64),
                            style(Stored::GPTQ, 4, 32, true));
  builder.removeModule("model.layers.0.mlp.gate");
  builder.addLinear("model.layers.0.mlp.gate", 128, 8, builder.model.w13);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].router.weight.spec.code, CodeType::U4B8);
  expectExact(*checkpoint, builder);
}

} // namespace
