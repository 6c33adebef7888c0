//===- CheckpointBuilder.h - Small checkpoints of real formats --*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Writes directories as quantisers do, from the formulas of the formats alone:
// nothing of the libraries under test is used but the safetensors writer.
// Tests change tensors and configuration before they write.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_SUPPORT_CHECKPOINTBUILDER_H
#define WNA16_UNITTESTS_SUPPORT_CHECKPOINTBUILDER_H

#include "Checkpoint/SafeTensors.h"

#include <nlohmann/json.hpp>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace wna16::test {

/// A directory that is removed with its files.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  const std::string &path() const { return directory; }
  std::string file(const std::string &name) const {
    return directory + "/" + name;
  }
  void write(const std::string &name, const std::string &text) const;

private:
  std::string directory;
};

/// How linears are stored.
enum class Stored { Dense, GPTQ, GPTQv2, AWQ, CompressedTensors };

struct LinearStyle {
  Stored stored = Stored::GPTQ;
  int bits = 4;
  int64_t group = 32; ///< -1: one group
  bool symmetric = true;
  bool actOrder = false;
  ScalarType element = ScalarType::BF16; ///< of dense weights
  ScalarType scale = ScalarType::F16;
};

/// What the MoE blocks are.
struct ModelStyle {
  std::string modelType = "qwen3_moe";
  std::string prefix = "model.";
  std::string block = "mlp.";
  std::string experts = "experts.";
  std::string gate = "gate_proj"; ///< empty: not gated
  std::string up = "up_proj";
  std::string down = "down_proj";
  std::string router = "gate";
  int64_t layers = 1;
  int64_t count = 4; ///< of experts
  int64_t hidden = 64;
  int64_t intermediate = 32;
  int64_t topK = 2;
  LinearStyle w13;
  LinearStyle w2;
  uint64_t seed = 1;
};

/// How all experts lie in one tensor.
struct FusedStyle {
  std::string w13 = "gate_up_proj";
  std::string w2 = "down_proj";
  bool nested = false;      ///< "w13.weight_packed", not "w13_packed"
  bool transposed = false;  ///< floats as [E, in, out]
  bool interleaved = false; ///< rows of gate and up in turn
};

struct OwnedTensor {
  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

class CheckpointBuilder {
public:
  /// A model whose linears are all stored in one style.
  CheckpointBuilder(ModelStyle model, LinearStyle style);
  /// As `model.w13` and `model.w2` say.
  explicit CheckpointBuilder(ModelStyle model);

  /// Adds a linear with random weights; with act-order, equal `orderSeed`s give
  /// equal group indices.
  void addLinear(const std::string &module, int64_t input, int64_t output,
                 const LinearStyle &style, uint64_t orderSeed = 0);
  void addTensor(const std::string &name, ScalarType type,
                 std::vector<int64_t> shape);
  /// Adds gate, up and down under `base`.
  void addExpert(const std::string &base, const LinearStyle &w13,
                 const LinearStyle &w2, uint64_t orderSeed);
  /// Removes a linear's tensors.
  void removeModule(const std::string &module);

  /// Replaces the experts of a layer, dense or compressed-tensors, by fused
  /// tensors of the same values.
  void fuseExperts(int64_t layer, const FusedStyle &style);

  /// "model.layers.0.mlp."
  std::string block(int64_t layer) const;
  std::string expert(int64_t layer, int64_t index) const;

  void write(const std::string &directory) const;

  ModelStyle model;
  std::map<std::string, OwnedTensor> tensors;
  nlohmann::ordered_json config;
  /// Dequantised weights [out, in] of every linear, [experts, out, in] of fused
  /// ones: (q - z) * s. Rows of gate come before those of up.
  std::map<std::string, std::vector<float>> dense;

private:
  void addLayer(int64_t layer);
  void fuse(int64_t layer, const std::string &module,
            const std::vector<std::string> &leaves, const LinearStyle &linear,
            const FusedStyle &style);
  OwnedTensor fuseRows(const std::vector<std::string> &modules, size_t leaves,
                       const std::string &suffix, bool interleaved) const;
  std::mt19937_64 random;
};

/// The quantization_config that a quantiser writes for a style.
nlohmann::ordered_json quantizationConfig(const LinearStyle &style);

} // namespace wna16::test

#endif // WNA16_UNITTESTS_SUPPORT_CHECKPOINTBUILDER_H
