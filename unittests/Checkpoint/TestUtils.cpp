//===- TestUtils.cpp - What the checkpoint tests share ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "Layout/Move.h"

#include <cstring>

namespace wna16::test {

Result<Checkpoint> open(const CheckpointBuilder &builder, bool audit) {
  TemporaryDirectory directory;
  builder.write(directory.path());
  OpenOptions options;
  options.audit = audit;
  return Checkpoint::open(directory.path(), options);
}

std::string refusal(const CheckpointBuilder &builder) {
  Result<Checkpoint> checkpoint = open(builder);
  EXPECT_FALSE(checkpoint) << "expected a refusal";
  return checkpoint ? "" : checkpoint.message();
}

std::vector<float> dequantised(const Checkpoint &checkpoint,
                               const WeightSource &weight) {
  std::vector<std::vector<uint64_t>> storage; // aligned to 8
  WeightBuffers buffers;
  Result<std::vector<StoredPart>> parts = storageOf(weight.spec);
  EXPECT_TRUE(parts) << parts.message();
  if (!parts || parts->size() != weight.parts.size()) {
    ADD_FAILURE() << "the parts are not those of storageOf";
    return {};
  }
  for (size_t i = 0; i < parts->size(); ++i) {
    const StoredPart &part = (*parts)[i];
    EXPECT_EQ(part.type, weight.parts[i].type);
    EXPECT_EQ(part.shape, weight.parts[i].shape);
    storage.emplace_back(size_t(part.bytes() + 7) / 8);
    Failure failure = checkpoint.read(weight.parts[i], storage.back().data());
    EXPECT_FALSE(failure) << failure.message;
    buffers.part[size_t(part.part)] = storage.back().data();
  }
  const WeightSpec &spec = weight.spec;
  std::vector<float> values(size_t(spec.experts * spec.rows() * spec.input));
  Failure failure = dequantizeWeight(spec, buffers, ScalarType::F32, false,
                                     values.data(), {0, spec.experts});
  EXPECT_FALSE(failure) << failure.message;
  return values;
}

/// The linear that a tensor belongs to: its name goes on with a dot or, where
/// the linear is a parameter, with an underscore.
static const std::vector<float> *linearOf(const CheckpointBuilder &builder,
                                          std::string tensor) {
  for (;;) {
    if (auto found = builder.dense.find(tensor); found != builder.dense.end())
      return &found->second;
    size_t end = tensor.find_last_of("._");
    if (end == std::string::npos)
      return nullptr;
    tensor.resize(end);
  }
}

static void expectWeight(const Checkpoint &checkpoint,
                         const CheckpointBuilder &builder,
                         const WeightSource &weight) {
  std::vector<float> values = dequantised(checkpoint, weight);
  int64_t offset = 0;
  for (const std::string &tensor : weight.parts[0].names()) {
    const std::vector<float> *expected = linearOf(builder, tensor);
    ASSERT_NE(expected, nullptr) << tensor;
    size_t count = expected->size();
    ASSERT_LE(size_t(offset) + count, values.size()) << tensor;
    EXPECT_EQ(std::memcmp(&values[size_t(offset)], expected->data(),
                          count * sizeof(float)),
              0)
        << tensor << " differs";
    offset += int64_t(count);
  }
  EXPECT_EQ(size_t(offset), values.size());
}

void expectExact(const Checkpoint &checkpoint,
                 const CheckpointBuilder &builder) {
  EXPECT_EQ(int64_t(checkpoint.layers().size()), builder.model.layers);
  for (const MoELayer &layer : checkpoint.layers()) {
    expectWeight(checkpoint, builder, layer.router.weight);
    expectWeight(checkpoint, builder, layer.experts.w13);
    expectWeight(checkpoint, builder, layer.experts.w2);
    if (layer.shared) {
      expectWeight(checkpoint, builder, layer.shared->w13);
      expectWeight(checkpoint, builder, layer.shared->w2);
    }
    if (layer.sharedGate)
      expectWeight(checkpoint, builder, *layer.sharedGate);
  }
}

LinearStyle style(Stored stored, int bits, int64_t group, bool symmetric,
                  bool actOrder) {
  LinearStyle result;
  result.stored = stored;
  result.bits = bits;
  result.group = group;
  result.symmetric = symmetric;
  result.actOrder = actOrder;
  return result;
}

ModelStyle model(int64_t experts, int64_t hidden, int64_t intermediate) {
  ModelStyle result;
  result.count = experts;
  result.hidden = hidden;
  result.intermediate = intermediate;
  result.topK = 1;
  return result;
}

} // namespace wna16::test
