//===- FusedTest.cpp - All experts in one tensor ----------------*- C++ -*-===//
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

/// A model with fused experts.
CheckpointBuilder fused(const char *modelType, LinearStyle linear,
                        const FusedStyle &style, int64_t hidden = 64,
                        int64_t intermediate = 32) {
  ModelStyle model;
  model.modelType = modelType;
  model.count = 3;
  model.hidden = hidden;
  model.intermediate = intermediate;
  model.topK = 1;
  CheckpointBuilder builder(model, linear);
  builder.fuseExperts(0, style);
  return builder;
}

LinearStyle packed(int bits = 4, int64_t group = 32, bool symmetric = true) {
  return style(Stored::CompressedTensors, bits, group, symmetric);
}

LinearStyle dense() { return style(Stored::Dense, 4, 32, true); }

std::string_view layoutOf(const WeightSource &weight) {
  return weight.spec.layout->name;
}

//===----------------------------------------------------------------------===//
// Packed
//===----------------------------------------------------------------------===//

TEST(Fused, B49_PackedInEverySpelling) {
  for (bool nested : {false, true})
    for (int bits : {4, 8})
      for (int64_t group : {32, -1})
        for (bool symmetric : {true, false}) {
          FusedStyle how;
          how.nested = nested;
          CheckpointBuilder builder =
              fused("qwen3_5_moe", packed(bits, group, symmetric), how);
          Result<Checkpoint> checkpoint = open(builder, true);
          ASSERT_TRUE(checkpoint) << checkpoint.message();
          expectExact(*checkpoint, builder);
          EXPECT_TRUE(checkpoint->findings().empty());
          const WeightSource &w13 = checkpoint->layers()[0].experts.w13;
          EXPECT_EQ(layoutOf(w13), "compressed_tensors");
          EXPECT_EQ(w13.spec.experts, 3);
          EXPECT_EQ(w13.spec.halves, 2);
          EXPECT_EQ(w13.spec.output, 32);
          EXPECT_EQ(w13.parts[0].pattern,
                    builder.block(0) + "experts.gate_up_proj" +
                        (nested ? ".weight_packed" : "_packed"));
        }
}

TEST(Fused, PackedWithoutShapeAndWithTails) {
  CheckpointBuilder builder = fused("qwen3_5_moe", packed(), {}, 96, 40);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  builder.tensors.erase(builder.block(0) + "experts.gate_up_proj_shape");
  checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  // 36 inputs: the last word is half full, as only the shape tells.
  CheckpointBuilder narrow = fused("qwen3_5_moe", packed(), {}, 64, 36);
  checkpoint = open(narrow);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, narrow);
  EXPECT_EQ(checkpoint->layers()[0].experts.w2.spec.input, 36);
}

TEST(Fused, PackedRowsInTurn) {
  FusedStyle how;
  how.interleaved = true;
  CheckpointBuilder builder = fused("gpt_oss", packed(), how, 96);
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  EXPECT_EQ(layoutOf(checkpoint->layers()[0].experts.w13), "interleaved");
  EXPECT_EQ(layoutOf(checkpoint->layers()[0].experts.w2), "compressed_tensors");
  EXPECT_CONTAINS(refusal(fused("gpt_oss", packed(4, 32, false), how, 96)),
                  "no zero points");
}

TEST(Fused, PackedRefusesByName) {
  auto changed = [](const char *tensor, OwnedTensor with) {
    CheckpointBuilder builder = fused("qwen3_5_moe", packed(), {});
    builder.tensors[builder.block(0) + "experts." + tensor] = std::move(with);
    return refusal(builder);
  };
  auto shape = [](std::vector<int64_t> extents) {
    OwnedTensor tensor = {ScalarType::I64, {int64_t(extents.size())}, {}};
    auto *bytes = reinterpret_cast<const uint8_t *>(extents.data());
    tensor.bytes.assign(bytes, bytes + 8 * extents.size());
    return tensor;
  };
  EXPECT_CONTAINS(changed("gate_up_proj_shape", shape({3, 64, 56})),
                  "says [3, 64, 56], but");
  EXPECT_CONTAINS(changed("gate_up_proj_shape", shape({64, 64})),
                  "expected i64 [3], got i64 [2]");
  EXPECT_CONTAINS(changed("down_proj_shape", shape({3, 64, 40})),
                  "holds [3, 64, 32]");
  EXPECT_CONTAINS(
      changed("gate_up_proj_scale",
              {ScalarType::BF16, {3, 64, 1}, std::vector<uint8_t>(384)}),
      "expected bf16 [3, 64, 2], got bf16 [3, 64, 1]");
  EXPECT_CONTAINS(changed("gate_up_proj_scale",
                          {ScalarType::U8, {3}, std::vector<uint8_t>(3)}),
                  "gate_up_proj_scale: expected f16, bf16 or f32, got u8");

  CheckpointBuilder missing = fused("qwen3_5_moe", packed(4, 32, false), {});
  missing.tensors.erase(missing.block(0) + "experts.down_proj_zero_point");
  EXPECT_CONTAINS(refusal(missing), "down_proj");
  CheckpointBuilder none = fused("qwen3_5_moe", packed(), {});
  none.config.erase("quantization_config");
  EXPECT_CONTAINS(refusal(none), "there is no quantization_config");
  CheckpointBuilder gptq = fused("qwen3_5_moe", packed(), {});
  gptq.config["quantization_config"] = quantizationConfig(LinearStyle());
  EXPECT_CONTAINS(refusal(gptq), "but the configuration says gptq");
  CheckpointBuilder order = fused("qwen3_5_moe", packed(), {});
  order.config["quantization_config"]["config_groups"]["group_0"]["weights"]
              ["actorder"] = "group";
  EXPECT_CONTAINS(refusal(order), "act-order of fused experts");
}

TEST(Fused, PackedAlongOutputsIsRefused) {
  CheckpointBuilder builder = fused("llama4_text", packed(), {});
  // [experts, in, out / 8]: rows are the hidden size.
  std::string base = builder.block(0) + "experts.";
  builder.tensors.erase(base + "gate_up_proj_shape");
  OwnedTensor &codes = builder.tensors.at(base + "gate_up_proj_packed");
  codes.shape = {3, 64, 12};
  codes.bytes.resize(3 * 64 * 12 * 4);
  EXPECT_CONTAINS(refusal(builder), "packed along outputs");
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

TEST(Fused, FloatsWithEitherAxisFirst) {
  for (bool transposed : {false, true}) {
    FusedStyle how;
    how.transposed = transposed;
    CheckpointBuilder builder = fused("qwen3_5_moe", dense(), how, 64, 24);
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    expectExact(*checkpoint, builder);
    const ExpertsSource &experts = checkpoint->layers()[0].experts;
    EXPECT_EQ(layoutOf(experts.w13), transposed ? "transposed" : "dense");
    EXPECT_EQ(layoutOf(experts.w2), transposed ? "transposed" : "dense");
    EXPECT_EQ(experts.w13.spec.output, 24);
  }
}

// 2N = K, and N = K: the shapes fit both, the architecture decides.
TEST(Fused, ArchitectureDecidesWhereShapesFitBoth) {
  for (int64_t intermediate : {32, 64})
    for (const char *modelType : {"llama4_text", "qwen3_5_moe"}) {
      FusedStyle how;
      how.transposed = std::string(modelType) == "llama4_text";
      CheckpointBuilder builder =
          fused(modelType, dense(), how, 64, intermediate);
      Result<Checkpoint> checkpoint = open(builder);
      ASSERT_TRUE(checkpoint) << checkpoint.message();
      expectExact(*checkpoint, builder);
    }
}

TEST(Fused, B44_RowsInTurnWithBiases) {
  FusedStyle how;
  how.transposed = how.interleaved = true;
  CheckpointBuilder builder = fused("gpt_oss", dense(), how);
  std::string base = builder.block(0) + "experts.";
  builder.addTensor(base + "gate_up_proj_bias", ScalarType::BF16, {3, 64});
  builder.addTensor(base + "down_proj_bias", ScalarType::BF16, {3, 64});
  builder.addTensor(builder.block(0) + "gate.bias", ScalarType::BF16, {3});
  Result<Checkpoint> checkpoint = open(builder);
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  expectExact(*checkpoint, builder);
  const MoELayer &layer = checkpoint->layers()[0];
  EXPECT_EQ(layoutOf(layer.experts.w13), "transposed_interleaved");
  EXPECT_EQ(layoutOf(layer.experts.w2), "transposed");
  ASSERT_TRUE(layer.experts.bias13 && layer.experts.bias2);
  EXPECT_TRUE(layer.router.bias);
  std::vector<uint8_t> bytes(3 * 64 * 2);
  ASSERT_FALSE(checkpoint->read(*layer.experts.bias13, bytes.data()));
  EXPECT_EQ(bytes, builder.tensors.at(base + "gate_up_proj_bias").bytes);
  builder.addTensor(base + "down_proj_bias", ScalarType::BF16, {3, 32});
  EXPECT_CONTAINS(refusal(builder),
                  "down_proj_bias: expected bf16 [3, 64], got bf16 [3, 32]");
}

// One expert's bias may be spelled as a parameter of the experts.
TEST(Fused, BiasesOfSingleExperts) {
  for (const char *suffix : {".bias", "_bias"}) {
    ModelStyle model;
    model.modelType = "gpt_oss";
    CheckpointBuilder builder(model, packed());
    for (int64_t e = 0; e < 4; ++e)
      for (auto [leaf, size] :
           {std::pair("gate_proj", 32), {"up_proj", 32}, {"down_proj", 64}})
        builder.addTensor(builder.expert(0, e) + leaf + suffix,
                          ScalarType::BF16, {size});
    Result<Checkpoint> checkpoint = open(builder);
    ASSERT_TRUE(checkpoint) << checkpoint.message();
    const ExpertsSource &experts = checkpoint->layers()[0].experts;
    ASSERT_TRUE(experts.bias13 && experts.bias2);
    EXPECT_EQ(experts.bias13->shape, (std::vector<int64_t>{4, 64}));
    std::vector<uint8_t> all(4 * 64 * 2);
    ASSERT_FALSE(checkpoint->read(*experts.bias13, all.data()));
    const auto &up =
        builder.tensors.at(builder.expert(0, 1) + "up_proj" + suffix).bytes;
    EXPECT_TRUE(std::equal(up.begin(), up.end(), all.begin() + 3 * 64));
  }
}

TEST(Fused, FloatsRefuseByName) {
  CheckpointBuilder hidden = fused("qwen3_5_moe", dense(), {});
  hidden.config["hidden_size"] = 48;
  EXPECT_CONTAINS(refusal(hidden), "does not fit the hidden size 48");
  CheckpointBuilder odd = fused("qwen3_5_moe", dense(), {});
  odd.addTensor(odd.block(0) + "experts.gate_up_proj", ScalarType::BF16,
                {3, 63, 64});
  EXPECT_CONTAINS(refusal(odd), "rows of gate and up, got 63");
  CheckpointBuilder rank = fused("qwen3_5_moe", dense(), {});
  rank.addTensor(rank.block(0) + "experts.gate_up_proj", ScalarType::BF16,
                 {3, 1, 64, 64});
  EXPECT_CONTAINS(refusal(rank), "got bf16 [3, 1, 64, 64]");
  CheckpointBuilder none = fused("qwen3_5_moe", dense(), {});
  none.config.erase("num_experts");
  none.addTensor(none.block(0) + "experts.gate_up_proj", ScalarType::BF16,
                 {0, 64, 64});
  none.addTensor(none.block(0) + "experts.down_proj", ScalarType::BF16,
                 {0, 64, 32});
  none.addTensor(none.block(0) + "gate.weight", ScalarType::BF16, {0, 64});
  EXPECT_CONTAINS(refusal(none), "no experts");
}

} // namespace
