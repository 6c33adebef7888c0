//===- ConfigTest.cpp - config.json in all its spellings --------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "Json.h"

using namespace wna16;
using namespace wna16::test;
using Config = nlohmann::ordered_json;

namespace {

/// Opens after a change to the configuration.
template <typename Change>
Result<Checkpoint> openChanged(Change change) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  change(builder.config);
  return open(builder);
}

/// Opens with a second file beside config.json.
Result<Checkpoint> openBeside(const CheckpointBuilder &builder,
                              const std::string &name, const Config &json) {
  TemporaryDirectory directory;
  builder.write(directory.path());
  directory.write(name, json.dump());
  return Checkpoint::open(directory.path());
}

void rename(Config &config, const char *from, const char *to) {
  Config value = config[from];
  config.erase(from);
  config[to] = value;
}

TEST(Config, BothGenerationsOfTransformers) {
  Result<Checkpoint> four = openChanged(
      [](Config &config) { rename(config, "dtype", "torch_dtype"); });
  Result<Checkpoint> five = openChanged([](Config &config) {
    rename(config, "num_experts", "num_local_experts");
  });
  ASSERT_TRUE(four) << four.message();
  ASSERT_TRUE(five) << five.message();
  EXPECT_EQ(four->dtype(), ScalarType::BF16);
  EXPECT_EQ(five->dtype(), ScalarType::BF16);
  EXPECT_EQ(four->layers()[0].router.topK, five->layers()[0].router.topK);
  EXPECT_EQ(four->layers()[0].experts.w13.spec,
            five->layers()[0].experts.w13.spec);
}

TEST(Config, NamesOfTheExpertCountAndTopK) {
  for (const char *experts : {"num_experts", "num_local_experts",
                              "n_routed_experts", "moe_num_experts"})
    for (const char *topK : {"num_experts_per_tok", "num_experts_per_token",
                             "moe_topk", "moe_k", "moe_top_k"}) {
      Result<Checkpoint> checkpoint = openChanged([&](Config &config) {
        rename(config, "num_experts", experts);
        rename(config, "num_experts_per_tok", topK);
      });
      ASSERT_TRUE(checkpoint) << checkpoint.message();
      EXPECT_EQ(checkpoint->layers()[0].router.topK, 2);
      Result<Checkpoint> wrong = openChanged([&](Config &config) {
        config.erase("num_experts");
        config[experts] = 5;
      });
      EXPECT_FALSE(wrong) << experts;
    }
}

TEST(Config, TwoNamesMustAgree) {
  Result<Checkpoint> checkpoint =
      openChanged([](Config &config) { config["num_local_experts"] = 5; });
  ASSERT_FALSE(checkpoint);
  EXPECT_CONTAINS(checkpoint.message(),
                  "num_experts is 4 but num_local_experts is 5");
}

TEST(Config, NestedTextConfig) {
  Result<Checkpoint> checkpoint = openChanged([](Config &config) {
    Config text = config;
    Config quantization = text["quantization_config"];
    text.erase("quantization_config");
    config = {{"model_type", "some_wrapper"},
              {"text_config", text},
              {"hidden_size", 999},
              {"quantization_config", quantization}};
  });
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->modelType(), "qwen3_moe");
  EXPECT_EQ(checkpoint->layers()[0].hidden, 64);
}

TEST(Config, PerLayerLists) {
  ModelStyle style;
  style.modelType = "hunyuan_v1_moe";
  style.layers = 2;
  CheckpointBuilder builder(style, LinearStyle{});
  builder.config["num_experts"] = {4, 4};
  rename(builder.config, "num_experts_per_tok", "moe_topk");
  builder.config["moe_topk"] = {1, 3};
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].router.topK, 1);
  EXPECT_EQ(checkpoint->layers()[1].router.topK, 3);
  builder.config["moe_topk"] = {1};
  EXPECT_CONTAINS(refusal(builder), "moe_topk has 1 entries, none for layer 1");
}

TEST(Config, NestedExpertsOfDBRX) {
  ModelStyle style;
  style.modelType = "dbrx";
  style.prefix = "transformer.";
  CheckpointBuilder builder(style, LinearStyle{});
  rename(builder.config, "hidden_size", "d_model");
  builder.config.erase("num_experts");
  builder.config.erase("num_experts_per_tok");
  builder.config["ffn_config"] = {{"moe_num_experts", 4},
                                  {"moe_top_k", 3},
                                  {"moe_normalize_expert_weights", 1}};
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].router.topK, 3);
  builder.config["ffn_config"]["moe_normalize_expert_weights"] = 2;
  EXPECT_CONTAINS(refusal(builder), "moe_normalize_expert_weights");
}

TEST(Config, WhichLayersAreExpected) {
  struct Case {
    Config keys;
    std::vector<int> moe; ///< of layers 0 to 3
  };
  for (const Case &c : std::vector<Case>{
           {{{"first_k_dense_replace", 1}, {"moe_layer_freq", 1}}, {1, 2, 3}},
           {{{"first_k_dense_replace", 1}, {"moe_layer_freq", 2}}, {2}},
           {{{"decoder_sparse_step", 2}}, {1, 3}},
           {{{"interleave_moe_layer_step", 2}}, {1, 3}},
           {{{"moe_layer_start_index", 1}, {"moe_layer_interval", 1}},
            {1, 2, 3}},
           {{{"expert_layer_period", 2}, {"expert_layer_offset", 1}}, {1, 3}},
           {{{"decoder_sparse_step", 1}, {"mlp_only_layers", {0, 3}}},
            {1, 2}}}) {
    ModelStyle style;
    style.layers = 4;
    CheckpointBuilder builder(style, LinearStyle{});
    for (const auto &[key, value] : c.keys.items())
      builder.config[key] = value;
    // All four are MoE layers: what is not expected is found.
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->findings().size(), 4 - c.moe.size()) << c.keys.dump();
    for (const Finding &finding : checkpoint->findings())
      for (int layer : c.moe)
        EXPECT_NE(finding.tensor, "layers." + std::to_string(layer));
  }
}

TEST(Config, DtypeSpellings) {
  for (auto [text, type] : std::vector<std::pair<const char *, ScalarType>>{
           {"bfloat16", ScalarType::BF16},
           {"torch.float16", ScalarType::F16},
           {"float32", ScalarType::F32}}) {
    Result<Checkpoint> checkpoint = openChanged(
        [&, text = text](Config &config) { config["dtype"] = text; });
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->dtype(), type);
    EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.element, type);
  }
  Result<Checkpoint> silent =
      openChanged([](Config &config) { config.erase("dtype"); });
  ASSERT_TRUE(silent) << silent.message();
  EXPECT_EQ(silent->dtype(), ScalarType::BF16); // the router's
  EXPECT_FALSE(openChanged([](Config &config) { config["dtype"] = "int8"; }));
}

TEST(Config, WrongTypesNameTheKey) {
  struct Case {
    const char *key;
    Config value;
    const char *message;
  };
  for (const Case &c : std::vector<Case>{
           {"hidden_size", "64", "expected hidden_size to be an integer"},
           {"hidden_size", 64.5, "expected hidden_size to be an integer"},
           {"hidden_size", -64, "positive"},
           {"num_experts", true, "expected num_experts to be an integer"},
           {"num_experts_per_tok", 0, "1 to 4"},
           {"num_experts_per_tok", 5, "got 5"},
           {"num_experts_per_tok", uint64_t(1) << 63, "an integer"},
           {"norm_topk_prob", 1, "expected norm_topk_prob to be true or"},
           {"hidden_act", 1, "expected hidden_act to be a string"},
           {"hidden_act", "mish", "\"mish\""},
           {"model_type", nullptr, "missing model_type"},
           {"model_type", "mystery", "\"mystery\""},
           {"dtype", 3, "expected dtype to be a string"},
           {"quantization_config", 3, "expected an object"},
           {"quantization_config", Config::object(), "quant_method"}}) {
    Result<Checkpoint> checkpoint =
        openChanged([&](Config &config) { config[c.key] = c.value; });
    ASSERT_FALSE(checkpoint) << c.key;
    EXPECT_CONTAINS(checkpoint.message(), c.message);
  }
}

TEST(Config, QuantisationBesideTheModel) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  Config quantization = builder.config["quantization_config"];
  builder.config.erase("quantization_config");
  for (const char *file :
       {"quantize_config.json", "quantization_config.json"}) {
    Result<Checkpoint> checkpoint = openBeside(builder, file, quantization);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    EXPECT_EQ(checkpoint->method(), "gptq");
    expectExact(*checkpoint, builder);
  }
  // AutoGPTQ wrote no quant_method.
  quantization.erase("quant_method");
  Result<Checkpoint> checkpoint =
      openBeside(builder, "quantize_config.json", quantization);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->method(), "gptq");
}

TEST(Config, CopiesMustAgree) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  Config quantization = builder.config["quantization_config"];
  EXPECT_TRUE(openBeside(builder, "quantize_config.json", quantization));
  for (auto [key, value] : std::vector<std::pair<const char *, Config>>{
           {"bits", 8},
           {"group_size", 64},
           {"sym", false},
           {"desc_act", true},
           {"quant_method", "awq"},
           {"checkpoint_format", "gptq_v2"}}) {
    Config other = quantization;
    other[key] = value;
    Result<Checkpoint> checkpoint =
        openBeside(builder, "quantize_config.json", other);
    ASSERT_FALSE(checkpoint) << key;
    EXPECT_CONTAINS(checkpoint.message(), "disagree");
    EXPECT_CONTAINS(checkpoint.message(), "quantize_config.json");
  }
}

TEST(Config, OneCopyMayBeSilentAboutZeroPoints) {
  LinearStyle asymmetric;
  asymmetric.symmetric = false;
  asymmetric.stored = Stored::GPTQv2;
  CheckpointBuilder builder(ModelStyle{}, asymmetric);
  Config full = builder.config["quantization_config"];
  Config silent = full;
  silent.erase("checkpoint_format");
  for (bool beside : {false, true}) {
    builder.config["quantization_config"] = beside ? full : silent;
    Result<Checkpoint> checkpoint =
        openBeside(builder, "quantize_config.json", beside ? silent : full);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    expectExact(*checkpoint, builder);
  }
}

TEST(Config, SpellingsOfBitsAndGroups) {
  Result<Checkpoint> checkpoint = openChanged([](Config &config) {
    Config &quantization = config["quantization_config"];
    quantization["bits"] = "int4";
    rename(quantization, "group_size", "groupsize");
  });
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->layers()[0].experts.w13.spec.group, 32);
  for (const char *bits : {"4", "int4"})
    EXPECT_TRUE(openChanged([&](Config &config) {
      config["quantization_config"]["bits"] = bits;
    })) << bits;
  for (const char *bits : {"", "int", "four", "16", "int40"})
    EXPECT_FALSE(openChanged([&](Config &config) {
      config["quantization_config"]["bits"] = bits;
    })) << bits;
}

TEST(Config, DenseModels) {
  LinearStyle dense;
  dense.stored = Stored::Dense;
  CheckpointBuilder builder(ModelStyle(), dense);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  EXPECT_EQ(checkpoint->method(), "none");
  expectExact(*checkpoint, builder);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

TEST(Json, RefusesWhatIsNotSafe) {
  auto message = [](const std::string &text) {
    Result<Json> json = parseConfig(text, "file");
    EXPECT_FALSE(json) << text;
    return json ? "" : json.message();
  };
  EXPECT_CONTAINS(message(""), "not valid JSON");
  EXPECT_CONTAINS(message("{\"a\":1,\"a\":2}"), "\"a\" appears twice");
  EXPECT_CONTAINS(message("{\"b\":{\"a\":1,\"a\":2}}"), "twice");
  EXPECT_CONTAINS(message("[1]"), "expected a JSON object");
  EXPECT_CONTAINS(message("{\"a\":1}x"), "byte");
  EXPECT_CONTAINS(message("{\"a\":1e999}"), "not valid JSON");
  EXPECT_CONTAINS(message("{\"a\":\"\xff\"}"), "not valid JSON");
  EXPECT_CONTAINS(message("{\"a\":" + std::string(65, '[')), "nested");
  std::string keys = "{\"k\":0";
  for (int i = 0; i < 20001; ++i)
    keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_CONTAINS(message(keys + "}"), "20000 keys");
}

} // namespace
