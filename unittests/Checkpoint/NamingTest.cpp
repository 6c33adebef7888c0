//===- NamingTest.cpp - Names of model families -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace wna16;
using namespace wna16::test;

namespace {

/// A family's names, as its releases have them.
struct Family {
  const char *modelType;
  const char *prefix;
  const char *block;
  const char *experts;
  const char *gate;
  const char *up;
  const char *down;
  const char *router;
  const char *shared; ///< within the block; empty: none
};

class Families : public testing::TestWithParam<Family> {};

TEST_P(Families, AreRead) {
  Family f = GetParam();
  ModelStyle style;
  style.modelType = f.modelType;
  style.prefix = f.prefix;
  style.block = f.block;
  style.experts = f.experts;
  style.gate = f.gate;
  style.up = f.up;
  style.down = f.down;
  style.router = f.router;
  CheckpointBuilder builder(style, LinearStyle{});
  if (*f.shared)
    builder.addExpert(builder.block(0) + f.shared, LinearStyle(), LinearStyle(),
                      1);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  const MoELayer &layer = checkpoint->layers()[0];
  EXPECT_EQ(layer.index, 0);
  EXPECT_EQ(layer.prefix + ".", builder.block(0));
  EXPECT_EQ(layer.hidden, 64);
  EXPECT_EQ(layer.intermediate, 32);
  EXPECT_EQ(layer.experts.w13.spec.halves, *f.gate ? 2 : 1);
  EXPECT_EQ(layer.shared.has_value(), *f.shared != '\0');
}

#define PROJECTIONS "gate_proj", "up_proj", "down_proj"
const Family kFamilies[] = {
    {"qwen2_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate",
     "shared_expert."},
    {"qwen3_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate", ""},
    {"qwen3_next", "model.", "mlp.", "experts.", PROJECTIONS, "gate",
     "shared_expert."},
    {"qwen3_5_moe", "model.language_model.", "mlp.", "experts.", PROJECTIONS,
     "gate", "shared_expert."},
    {"kimi_k2", "language_model.model.", "mlp.", "experts.", PROJECTIONS,
     "gate", "shared_experts."},
    {"glm4_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate",
     "shared_experts."},
    {"mixtral", "model.", "block_sparse_moe.", "experts.", "w1", "w3", "w2",
     "gate", ""},
    {"mixtral", "model.", "block_sparse_moe.", "experts.", PROJECTIONS, "gate",
     ""},
    {"phimoe", "model.", "block_sparse_moe.", "experts.", "w1", "w3", "w2",
     "gate", ""},
    {"minimax_m2", "model.", "block_sparse_moe.", "experts.", "w1", "w3", "w2",
     "gate", ""},
    {"jamba", "model.", "feed_forward.", "experts.", PROJECTIONS, "router", ""},
    {"dbrx", "transformer.", "ffn.", "experts.mlp.", "w1", "v1", "w2",
     "router.layer", ""},
    {"granitemoe", "model.", "block_sparse_moe.", "experts.", PROJECTIONS,
     "router.layer", ""},
    {"llama4_text", "language_model.model.", "feed_forward.", "experts.",
     PROJECTIONS, "router", "shared_expert."},
    {"gpt_oss", "model.", "mlp.", "experts.", PROJECTIONS, "router", ""},
    {"gpt_oss", "model.", "mlp.", "experts.experts.", PROJECTIONS, "router",
     ""},
    {"ernie4_5_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate",
     "shared_experts."},
    {"hunyuan_v1_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate.wg",
     "shared_mlp."},
    {"bailing_moe", "model.", "mlp.", "experts.", PROJECTIONS, "gate",
     "shared_experts."},
    {"nemotron_h", "backbone.", "mixer.", "experts.", "", "up_proj",
     "down_proj", "gate", "shared_experts."},
    {"kimi_linear", "model.", "block_sparse_moe.", "experts.", "w1", "w3", "w2",
     "gate", "shared_experts."},
    {"mixtral", "", "", "experts.", "w1", "w3", "w2", "gate", ""},
};

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(kFamilies));

TEST(Naming, CorrectionBiasByItsNames) {
  for (const char *name :
       {"gate.e_score_correction_bias", "e_score_correction_bias",
        "moe_statics.e_score_correction_bias", "gate.expert_bias"}) {
    CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
    builder.addTensor(builder.block(0) + name, ScalarType::F32, {4});
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    const RouterSource &router = checkpoint->layers()[0].router;
    ASSERT_TRUE(router.correction) << name;
    EXPECT_EQ(router.correction->shape, (std::vector<int64_t>{4}));
    float values[4];
    EXPECT_FALSE(checkpoint->read(*router.correction, values));
  }
}

TEST(Naming, RouterBiasAndSharedGate) {
  ModelStyle style;
  style.modelType = "qwen2_moe";
  CheckpointBuilder builder(style, LinearStyle{});
  LinearStyle dense;
  dense.stored = Stored::Dense;
  builder.addExpert(builder.block(0) + "shared_expert.", dense, dense, 1);
  builder.addLinear(builder.block(0) + "shared_expert_gate", 64, 1, dense);
  builder.addTensor(builder.block(0) + "gate.bias", ScalarType::BF16, {4});
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_TRUE(checkpoint->layers()[0].router.bias);
  ASSERT_TRUE(checkpoint->layers()[0].sharedGate);
  EXPECT_EQ(checkpoint->layers()[0].sharedGate->spec.output, 1);
  expectExact(*checkpoint, builder);
}

//===----------------------------------------------------------------------===//
// Accounting
//===----------------------------------------------------------------------===//

TEST(Naming, B49_UnusedTensorsAreListed) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  builder.addTensor(builder.block(0) + "experts.activation_fn.input_scale",
                    ScalarType::F32, {1});
  std::string message = refusal(builder);
  EXPECT_CONTAINS(message, "1 tensors");
  EXPECT_CONTAINS(message, "experts.activation_fn.input_scale");
}

TEST(Naming, B49_FusedExpertsAreRead) {
  ModelStyle style;
  style.count = 2;
  style.modelType = "qwen3_5_moe";
  LinearStyle dense;
  dense.stored = Stored::Dense;
  CheckpointBuilder builder(style, dense);
  for (int64_t e = 0; e < 2; ++e)
    for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
      builder.removeModule(builder.expert(0, e) + leaf);
  builder.addTensor(builder.block(0) + "experts.gate_up_proj", ScalarType::BF16,
                    {2, 64, 64});
  builder.addTensor(builder.block(0) + "experts.down_proj", ScalarType::BF16,
                    {2, 64, 32});
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const ExpertsSource &experts = checkpoint->layers()[0].experts;
  EXPECT_EQ(experts.w13.spec.experts, 2);
  EXPECT_EQ(experts.w13.spec.output, 32);
  EXPECT_EQ(experts.w2.spec.input, 32);
  std::vector<uint8_t> all(2 * 64 * 64 * 2);
  ASSERT_FALSE(checkpoint->read(experts.w13.parts[0], all.data()));
  EXPECT_EQ(
      all, builder.tensors.at(builder.block(0) + "experts.gate_up_proj").bytes);
}

TEST(Naming, B49_NamesOfNoFamilyAreListed) {
  ModelStyle style;
  style.up = "upwards_proj";
  CheckpointBuilder builder(style, LinearStyle{});
  EXPECT_CONTAINS(refusal(builder), "upwards_proj");
}

TEST(Naming, GraniteFusesExpertsAndSharedExperts) {
  ModelStyle style;
  style.count = 2;
  style.modelType = "granitemoehybrid";
  style.block = "block_sparse_moe.";
  style.router = "router.layer";
  LinearStyle dense;
  dense.stored = Stored::Dense;
  CheckpointBuilder builder(style, dense);
  for (int64_t e = 0; e < 2; ++e)
    for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
      builder.removeModule(builder.expert(0, e) + leaf);
  builder.addTensor(builder.block(0) + "input_linear.weight", ScalarType::BF16,
                    {2, 64, 64});
  builder.addTensor(builder.block(0) + "output_linear.weight", ScalarType::BF16,
                    {2, 64, 32});
  builder.addTensor("model.layers.0.shared_mlp.input_linear.weight",
                    ScalarType::BF16, {96, 64});
  builder.addTensor("model.layers.0.shared_mlp.output_linear.weight",
                    ScalarType::BF16, {64, 48});
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const MoELayer &layer = checkpoint->layers()[0];
  EXPECT_EQ(layer.experts.w13.spec.experts, 2);
  ASSERT_TRUE(layer.shared);
  EXPECT_EQ(layer.shared->w13.spec.halves, 2);
  EXPECT_EQ(layer.shared->w13.spec.output, 48);
  EXPECT_EQ(layer.shared->w13.parts[0].shape,
            (std::vector<int64_t>{1, 96, 64}));
  dequantised(*checkpoint, layer.shared->w13);
  builder.addTensor("model.layers.0.shared_mlp.output_linear.weight",
                    ScalarType::BF16, {64, 40});
  EXPECT_CONTAINS(refusal(builder), "shared experts do not fit");
}

TEST(Naming, PredictionLayersComeLast) {
  ModelStyle style;
  style.layers = 2;
  CheckpointBuilder builder(style, LinearStyle{});
  ModelStyle extra;
  extra.prefix = "mtp.";
  CheckpointBuilder prediction(extra, LinearStyle{});
  builder.tensors.insert(prediction.tensors.begin(), prediction.tensors.end());
  builder.config.erase("num_hidden_layers");
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  ASSERT_EQ(checkpoint->layers().size(), 3u);
  EXPECT_EQ(checkpoint->layers()[2].index, 2);
  EXPECT_EQ(checkpoint->layers()[2].prefix, "mtp.layers.0.mlp");
}

/// A layer of Gemma-4: experts beside a dense part, and norms of the layer.
CheckpointBuilder gemma4(const char *experts, const LinearStyle &linear) {
  ModelStyle style;
  style.modelType = "gemma4_text";
  style.prefix = "model.language_model.";
  style.block = "";
  style.experts = experts;
  style.router = "router.proj";
  CheckpointBuilder builder(style, linear);
  std::string layer = builder.block(0);
  builder.addLinear(layer + "mlp.gate_proj", 64, 48, linear);
  builder.addLinear(layer + "mlp.up_proj", 64, 48, linear);
  builder.addLinear(layer + "mlp.down_proj", 48, 64, linear);
  for (const char *norm :
       {"pre_feedforward_layernorm.weight",
        "pre_feedforward_layernorm_2.weight",
        "post_feedforward_layernorm.weight",
        "post_feedforward_layernorm_1.weight",
        "post_feedforward_layernorm_2.weight", "router.scale"})
    builder.addTensor(layer + norm, ScalarType::BF16, {64});
  builder.addTensor(layer + "router.per_expert_scale", ScalarType::BF16, {4});
  // Of the layer, but not of the block.
  builder.addTensor(layer + "input_layernorm.weight", ScalarType::BF16, {64});
  builder.addTensor(layer + "layer_scalar", ScalarType::BF16, {1});
  for (const char *key : {"num_experts_per_tok", "hidden_act"})
    builder.config.erase(key);
  builder.config["top_k_experts"] = 3;
  builder.config["hidden_activation"] = "gelu_pytorch_tanh";
  builder.config["intermediate_size"] = 48;
  builder.config["rms_norm_eps"] = 1e-5;
  return builder;
}

TEST(Naming, Gemma4HasNormsAndADensePart) {
  LinearStyle dense;
  dense.stored = Stored::Dense;
  for (const char *names : {"experts.", "moe.experts."})
    for (const LinearStyle &linear : {LinearStyle{}, dense}) {
      CheckpointBuilder builder = gemma4(names, linear);
      if (linear.stored == Stored::Dense)
        builder.fuseExperts(0, FusedStyle{});
      Result<Checkpoint> checkpoint = open(builder);
      ASSERT_TRUE(checkpoint) << checkpoint.message();
      expectExact(*checkpoint, builder);
      const MoELayer &layer = checkpoint->layers()[0];
      EXPECT_EQ(layer.router.topK, 3);
      EXPECT_TRUE(layer.router.renormalize);
      EXPECT_EQ(layer.activation.kind, WNA16_GELU_TANH);
      const std::string prefix = builder.block(0);
      ASSERT_TRUE(layer.router.expertScale);
      EXPECT_EQ(layer.router.expertScale->pattern,
                prefix + "router.per_expert_scale");
      ASSERT_TRUE(layer.shared);
      EXPECT_EQ(
          layer.shared->w2.parts[0].pattern.find(prefix + "mlp.down_proj"), 0u);
      ASSERT_TRUE(layer.norms);
      const std::pair<const NormSource *, const char *> norms[] = {
          {&layer.norms->router, "router.scale"},
          {&layer.norms->experts, "pre_feedforward_layernorm_2.weight"},
          {&layer.norms->shared, "pre_feedforward_layernorm.weight"},
          {&layer.norms->expertsOut, "post_feedforward_layernorm_2.weight"},
          {&layer.norms->sharedOut, "post_feedforward_layernorm_1.weight"},
          {&layer.norms->out, "post_feedforward_layernorm.weight"}};
      for (const auto &[norm, name] : norms) {
        EXPECT_EQ(norm->weight.pattern, prefix + name);
        EXPECT_EQ(norm->epsilon, 1e-5);
        EXPECT_EQ(norm->scale, norm == norms[0].first ? 0.125 : 1.0);
      }
    }
}

TEST(Naming, Gemma4LacksNothing) {
  CheckpointBuilder whole = gemma4("experts.", LinearStyle{});
  const std::string layer = whole.block(0);
  for (const char *tensor : {"router.scale", "router.per_expert_scale",
                             "post_feedforward_layernorm_1.weight"}) {
    CheckpointBuilder builder = whole;
    builder.tensors.erase(layer + tensor);
    EXPECT_CONTAINS(refusal(builder), layer + tensor);
  }
  CheckpointBuilder builder = whole;
  for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
    builder.removeModule(layer + "mlp." + leaf);
  EXPECT_CONTAINS(refusal(builder),
                  "missing the dense part beside the experts");
  builder = whole;
  builder.addTensor(layer + "post_feedforward_layernorm_3.weight",
                    ScalarType::BF16, {64});
  EXPECT_CONTAINS(refusal(builder), "not understood: " + layer +
                                        "post_feedforward_layernorm_3.weight");
  builder = whole;
  builder.config["intermediate_size"] = 96;
  EXPECT_CONTAINS(refusal(builder), "intermediate_size is 96");
  builder = whole;
  builder.config["rms_norm_eps"] = -1.0;
  EXPECT_CONTAINS(refusal(builder), "expected rms_norm_eps to be 0 or more");
  builder = whole;
  builder.config["model_type"] = "gemma5";
  EXPECT_CONTAINS(refusal(builder), "model_type \"gemma5\" is not known");
}

TEST(Naming, Mxfp4ExpertsAreRefused) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  for (int64_t e = 0; e < 4; ++e)
    for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
      builder.removeModule(builder.expert(0, e) + leaf);
  for (const char *leaf : {"gate_up_proj_blocks", "gate_up_proj_scales",
                           "down_proj_blocks", "down_proj_scales"})
    builder.addTensor(builder.block(0) + "experts." + leaf, ScalarType::F32,
                      {4, 1});
  EXPECT_CONTAINS(refusal(builder), "mxfp4");
}

TEST(Naming, B50_PrefixesOfWrappers) {
  for (const char *prefix :
       {"model.", "model.language_model.", "language_model.model."}) {
    ModelStyle style;
    style.prefix = prefix;
    CheckpointBuilder builder(style, LinearStyle{});
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->layers()[0].index, 0);
    expectExact(*checkpoint, builder);
  }
  ModelStyle style;
  style.prefix = "model.language_model.language_model.";
  CheckpointBuilder repeated(style, LinearStyle{});
  EXPECT_CONTAINS(refusal(repeated), "model.language_model.language_model.");
}

TEST(Naming, B50_PrefixesAreNotMixed) {
  ModelStyle style;
  CheckpointBuilder builder(style, LinearStyle{});
  builder.addExpert("language_model.model.layers.1.mlp.experts.0.",
                    LinearStyle(), LinearStyle(), 1);
  EXPECT_CONTAINS(refusal(builder), "\"language_model.model.\"");
}

TEST(Naming, B62_ExpertCountsMustAgree) {
  ModelStyle style;
  style.count = 8;
  CheckpointBuilder builder(style, LinearStyle{});
  builder.removeModule(builder.expert(0, 7) + "down_proj");
  std::string message = refusal(builder);
  EXPECT_CONTAINS(message,
                  "8 of model.layers.0.mlp.experts.{expert}.gate_proj");
  EXPECT_CONTAINS(message,
                  "7 of model.layers.0.mlp.experts.{expert}.down_proj");

  CheckpointBuilder router(style, LinearStyle{});
  LinearStyle dense;
  dense.stored = Stored::Dense;
  router.addLinear("model.layers.0.mlp.gate", 64, 7, dense);
  message = refusal(router);
  EXPECT_CONTAINS(message, "model.layers.0.mlp.gate.weight has 7 experts");
  EXPECT_CONTAINS(message, "has 8");

  CheckpointBuilder config(style, LinearStyle{});
  config.config["num_experts"] = 6;
  EXPECT_CONTAINS(refusal(config), "the configuration has 6 experts, the "
                                   "file 8");
}

TEST(Naming, B62_AHoleInTheExpertsIsNamed) {
  ModelStyle style;
  style.count = 8;
  CheckpointBuilder builder(style, LinearStyle{});
  for (const char *leaf : {"gate_proj", "up_proj", "down_proj"}) {
    builder.removeModule(builder.expert(0, 3) + leaf);
    builder.addLinear(builder.expert(0, 8) + leaf, 64, 32, LinearStyle());
  }
  EXPECT_CONTAINS(refusal(builder),
                  "missing tensors of model.layers.0.mlp.experts.3.");
}

TEST(Naming, ExtentsMustFit) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  builder.config["hidden_size"] = 128;
  EXPECT_CONTAINS(refusal(builder), "hidden_size is 128");
  CheckpointBuilder narrow(ModelStyle{}, LinearStyle{});
  for (int64_t e = 0; e < 4; ++e)
    narrow.addLinear(narrow.expert(0, e) + "down_proj", 64, 64, LinearStyle());
  EXPECT_CONTAINS(refusal(narrow), "4 of 64 to 32");
}

TEST(Naming, IntermediateSizesMustAgree) {
  struct Case {
    const char *modelType;
    nlohmann::ordered_json keys;
    const char *message; ///< empty: accepted
  };
  const nlohmann::ordered_json dbrx = {{"ffn_hidden_size", 48}};
  for (const Case &c : std::vector<Case>{
           {"qwen3_moe",
            {{"moe_intermediate_size", 64}},
            "moe_intermediate_size is 64, but "
            "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.qweight "
            "holds 32"},
           // The width of dense layers.
           {"qwen3_moe", {{"intermediate_size", 512}}, ""},
           {"mixtral", {{"intermediate_size", 16}}, "intermediate_size is 16"},
           {"mixtral", {{"moe_intermediate_size", 16}}, ""},
           {"hunyuan_v1_moe",
            {{"moe_intermediate_size", {40, 32}}},
            "moe_intermediate_size is 40"},
           {"dbrx", {{"ffn_config", dbrx}}, "ffn_hidden_size is 48"},
           {"qwen2_moe",
            {{"shared_expert_intermediate_size", 96}},
            "shared_expert_intermediate_size is 96, but "
            "model.layers.0.mlp.shared_expert.{gate_proj,up_proj}.qweight "
            "holds 32"},
           {"deepseek_v2", {{"n_shared_experts", 1}}, ""},
           {"deepseek_v2",
            {{"n_shared_experts", 2}},
            "n_shared_experts times moe_intermediate_size is 64"},
           {"deepseek_v2",
            {{"n_shared_experts", INT64_MAX}},
            "does not fit 63 bits"}}) {
    ModelStyle style;
    style.modelType = c.modelType;
    CheckpointBuilder builder(style, LinearStyle{});
    builder.addExpert(builder.block(0) + "shared_expert.", LinearStyle(),
                      LinearStyle(), 1);
    builder.config.update(c.keys);
    SCOPED_TRACE(c.modelType);
    if (*c.message)
      EXPECT_CONTAINS(refusal(builder), c.message);
    else
      EXPECT_TRUE(open(builder)) << open(builder).message();
  }
}

TEST(Naming, PaddedNumbersAreNoNames) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  std::string from = builder.expert(0, 1), to = from;
  to.replace(to.size() - 2, 1, "01");
  for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
    for (const char *part : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
      auto node = builder.tensors.extract(from + leaf + part);
      node.key() = to + leaf + part;
      builder.tensors.insert(std::move(node));
    }
  EXPECT_CONTAINS(refusal(builder), "missing tensors");
}

TEST(Naming, DenseLayersAreNotMoELayers) {
  ModelStyle style;
  style.modelType = "qwen2_moe";
  style.layers = 3;
  CheckpointBuilder builder(style, LinearStyle{});
  for (int64_t e = 0; e < 4; ++e)
    for (const char *leaf : {"gate_proj", "up_proj", "down_proj"})
      builder.removeModule(builder.expert(1, e) + leaf);
  builder.removeModule(builder.block(1) + "gate");
  builder.addExpert(builder.block(1), LinearStyle(), LinearStyle(), 1);
  builder.config["mlp_only_layers"] = {1};
  builder.config["decoder_sparse_step"] = 1;
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  ASSERT_EQ(checkpoint->layers().size(), 2u);
  EXPECT_EQ(checkpoint->layers()[1].index, 2);
  EXPECT_EQ(checkpoint->layer(1), nullptr);
  EXPECT_TRUE(checkpoint->findings().empty());
  builder.config["mlp_only_layers"] = nlohmann::ordered_json::array();
  Result<Checkpoint> odd = open(builder);
  ASSERT_TRUE(odd) << odd.message();
  ASSERT_EQ(odd->findings().size(), 1u);
  EXPECT_EQ(odd->findings()[0].tensor, "layers.1");
}

} // namespace
