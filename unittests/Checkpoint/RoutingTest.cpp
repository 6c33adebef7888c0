//===- RoutingTest.cpp - Routing and activation by architecture -*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace wna16;
using namespace wna16::test;
using Config = nlohmann::ordered_json;

namespace {

/// What an architecture's releases compute, as their model code does.
struct Expected {
  const char *modelType;
  Config keys; ///< added to, or taken from, the configuration
  wna16_scoring scoring;
  bool renormalize;
  bool afterTopK = false;
  bool onInput = false;
  int64_t groups = 1;
  int64_t topGroups = 1;
  double scaling = 1.0;
  double jitter = 0.0;
  wna16_activation activation = WNA16_SILU;
};

std::vector<Expected> expectations() {
  const Config deepSeek = {{"n_group", 4},
                           {"topk_group", 2},
                           {"routed_scaling_factor", 2.5},
                           {"norm_topk_prob", true},
                           {"scoring_func", "sigmoid"},
                           {"topk_method", "noaux_tc"}};
  Expected v3 = {"deepseek_v3", deepSeek, WNA16_SIGMOID, true};
  v3.groups = 4;
  v3.topGroups = 2;
  v3.scaling = 2.5;
  Expected kimi = {"kimi_linear",
                   {{"num_expert_group", 1},
                    {"topk_group", 1},
                    {"moe_renormalize", true},
                    {"norm_topk_prob", nullptr},
                    {"moe_router_activation_func", "sigmoid"},
                    {"routed_scaling_factor", 2.446}},
                   WNA16_SIGMOID,
                   true};
  kimi.scaling = 2.446;
  Expected v2 = {"deepseek_v2",
                 {{"norm_topk_prob", false},
                  {"n_group", 4},
                  {"topk_group", 2},
                  {"topk_method", "group_limited_greedy"},
                  {"routed_scaling_factor", 16.0}},
                 WNA16_SOFTMAX,
                 false};
  v2.groups = 4;
  v2.topGroups = 2;
  v2.scaling = 16.0;
  Expected lite = v2;
  lite.keys["topk_method"] = "greedy";
  lite.groups = lite.topGroups = 1;
  Expected gptOss = {"gpt_oss", {{"swiglu_limit", 7.0}}, WNA16_SOFTMAX, false};
  gptOss.afterTopK = true;
  gptOss.activation = WNA16_SWIGLUOAI;
  Expected granite = {"granitemoe", Config::object(), WNA16_SOFTMAX, false};
  granite.afterTopK = true;
  Expected llama = {"llama4_text", Config::object(), WNA16_SIGMOID, false};
  llama.onInput = true;
  Expected nemotron = {"nemotron_h",
                       {{"mlp_hidden_act", "relu2"},
                        {"hidden_act", nullptr},
                        {"routed_scaling_factor", 2.5}},
                       WNA16_SIGMOID,
                       true};
  nemotron.scaling = 2.5;
  nemotron.activation = WNA16_RELU2;
  Expected phi = {
      "phimoe", {{"router_jitter_noise", 0.25}}, WNA16_SPARSEMIXER, false};
  phi.jitter = 0.25;
  Expected phiSilent = {"phimoe", Config::object(), WNA16_SPARSEMIXER, false};
  phiSilent.jitter = 0.01;
  Expected gelu = {
      "qwen3_moe", {{"hidden_act", "gelu_pytorch_tanh"}}, WNA16_SOFTMAX, true};
  gelu.activation = WNA16_GELU_TANH;
  const Config silent = {{"norm_topk_prob", nullptr}};
  return {{"qwen2_moe", {{"norm_topk_prob", false}}, WNA16_SOFTMAX, false},
          {"qwen2_moe", silent, WNA16_SOFTMAX, false},
          {"qwen3_moe", {{"norm_topk_prob", true}}, WNA16_SOFTMAX, true},
          {"qwen3_moe", {{"norm_topk_prob", false}}, WNA16_SOFTMAX, false},
          {"qwen3_next", silent, WNA16_SOFTMAX, true},
          {"qwen3_5_moe", silent, WNA16_SOFTMAX, true},
          {"mixtral", silent, WNA16_SOFTMAX, true},
          {"olmoe", silent, WNA16_SOFTMAX, false},
          {"jamba", silent, WNA16_SOFTMAX, false},
          {"dbrx", silent, WNA16_SOFTMAX, true},
          {"minimax_m2", silent, WNA16_SIGMOID, true},
          {"minimax_m1", silent, WNA16_SOFTMAX, true},
          {"ernie4_5_moe", silent, WNA16_SOFTMAX, true},
          {"hunyuan_v1_moe", silent, WNA16_SOFTMAX, true},
          {"bailing_moe", {{"norm_topk_prob", true}}, WNA16_SOFTMAX, true},
          {"glm4_moe", {{"norm_topk_prob", true}}, WNA16_SIGMOID, true},
          v3,
          v2,
          lite,
          kimi,
          gptOss,
          granite,
          llama,
          nemotron,
          phi,
          phiSilent,
          gelu};
}

CheckpointBuilder builderFor(const Expected &expected) {
  ModelStyle style;
  style.modelType = expected.modelType;
  style.count = 8;
  CheckpointBuilder builder(style, LinearStyle{});
  if (expected.scoring == WNA16_SIGMOID && !expected.onInput)
    builder.addTensor(builder.block(0) + "gate.e_score_correction_bias",
                      ScalarType::F32, {8});
  for (const auto &[key, value] : expected.keys.items()) {
    if (value.is_null())
      builder.config.erase(key);
    else
      builder.config[key] = value;
  }
  return builder;
}

TEST(Routing, OfEveryArchitecture) {
  for (const Expected &expected : expectations()) {
    Result<Checkpoint> checkpoint = open(builderFor(expected));
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    const MoELayer &layer = checkpoint->layers()[0];
    const RouterSource &router = layer.router;
    SCOPED_TRACE(expected.modelType);
    EXPECT_EQ(router.scoring, expected.scoring);
    EXPECT_EQ(router.renormalize, expected.renormalize);
    EXPECT_EQ(router.softmaxAfterTopK, expected.afterTopK);
    EXPECT_EQ(layer.weightOnInput, expected.onInput);
    EXPECT_EQ(router.groups, expected.groups);
    EXPECT_EQ(router.topGroups, expected.topGroups);
    EXPECT_EQ(router.scaling, expected.scaling);
    EXPECT_EQ(router.jitter, expected.jitter);
    EXPECT_EQ(layer.activation.kind, expected.activation);
  }
}

TEST(Routing, ActivationParameters) {
  ModelStyle style;
  style.modelType = "gpt_oss";
  CheckpointBuilder builder(style, LinearStyle{});
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  ActivationSource activation = checkpoint->layers()[0].activation;
  EXPECT_EQ(activation.alpha, 1.702);
  EXPECT_EQ(activation.beta, 1.0);
  EXPECT_EQ(activation.limit, 7.0);
  builder.config["swiglu_limit"] = 5.0;
  checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].activation.limit, 5.0);
  for (auto [text, kind] :
       std::vector<std::pair<const char *, wna16_activation>>{
           {"silu", WNA16_SILU},
           {"gelu", WNA16_GELU},
           {"gelu_new", WNA16_GELU_TANH},
           {"relu2", WNA16_RELU2}}) {
    CheckpointBuilder other(ModelStyle{}, LinearStyle{});
    other.config["hidden_act"] = text;
    checkpoint = open(other);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->layers()[0].activation.kind, kind);
    EXPECT_EQ(checkpoint->layers()[0].activation.limit, 0.0);
  }
}

TEST(Routing, RefusesByName) {
  struct Case {
    const char *modelType;
    Config keys;
    const char *message;
  };
  const Config groups = {{"n_group", 4}, {"topk_group", 2}};
  for (const Case &c : std::vector<Case>{
           {"phimoe",
            {{"num_experts_per_tok", 3}},
            "expected num_experts_per_tok to be 2 for the sparse mixer"},
           {"phimoe",
            {{"router_jitter_noise", -0.5}},
            "expected router_jitter_noise to be 0 or more, got -0.5"},
           {"qwen3_moe", {{"scoring_func", "sqrtsoftplus"}}, "sqrtsoftplus"},
           {"deepseek_v3", groups, "correction bias"},
           {"deepseek_v2",
            {{"norm_topk_prob", true}, {"routed_scaling_factor", 2.0}},
            "2.0"},
           {"deepseek_v2", {{"n_group", 3}, {"topk_group", 1}}, "3 groups"},
           {"deepseek_v2",
            {{"n_group", 4}, {"topk_group", 5}},
            "of which 5 are kept"},
           {"deepseek_v2",
            {{"n_group", 8}, {"topk_group", 1}},
            "the groups kept have 1"},
           {"deepseek_v2",
            {{"topk_method", "banana"}},
            "topk_method \"banana\" is not supported; greedy, "
            "group_limited_greedy and noaux_tc are"},
           {"deepseek_v2",
            {{"routed_scaling_factor", 1e300}},
            "expected routed_scaling_factor to be positive and finite, got "
            "1e+300"},
           {"deepseek_v2",
            {{"routed_scaling_factor", -1.0}},
            "routed_scaling_factor to be positive and finite, got -1"},
           {"qwen3_moe",
            {{"swiglu_limit", 0.0}},
            "expected swiglu_limit to be positive and finite, got 0"},
           {"gpt_oss",
            {{"swiglu_limit", 1e-300}},
            "expected swiglu_limit to be positive and finite, got 1e-300"}}) {
    Expected expected = {c.modelType, c.keys, WNA16_SOFTMAX, false};
    EXPECT_CONTAINS(refusal(builderFor(expected)), c.message);
  }
}

} // namespace
