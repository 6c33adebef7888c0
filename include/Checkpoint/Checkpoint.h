//===- Checkpoint.h - Quantised MoE layers of a Hugging Face directory ----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens config.json and the safetensors of a directory and describes its MoE
// layers: which tensors hold which weight in which format, and how tokens are
// routed. Files are mapped; no weight is copied before `read` is asked to.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_CHECKPOINT_H
#define WNA16_CHECKPOINT_CHECKPOINT_H

#include "Checkpoint/SafeTensors.h"
#include "Layout/WeightSpec.h"
#include "Runtime/wna16.h"

#include <optional>
#include <string>
#include <vector>

namespace wna16 {

/// One stacked tensor and the file tensors it is made of. In `pattern`,
/// "{expert}" stands for 0 .. experts-1 and becomes a new leading dimension;
/// "{a,b}" stands for two names whose tensors are joined along `concat` (an
/// axis of the file tensor). Without braces it is one tensor as it lies. Where
/// `storageOf` has a leading extent of experts, `shape` has it too: 1 for what
/// is not per expert, whose file tensor lacks it.
struct TensorPattern {
  std::string pattern;
  int64_t experts = 0; ///< 0: the pattern has no "{expert}"
  int64_t concat = -1; ///< -1: the pattern has no alternatives
  ScalarType type = ScalarType::F16;
  std::vector<int64_t> shape; ///< of the stacked tensor

  /// The file tensors, expert by expert, alternatives in order.
  std::vector<std::string> names() const;
};

/// A weight: its specification in the checkpoint's own layout, and for each
/// part that `storageOf(spec)` lists the tensors that hold it, in that order.
struct WeightSource {
  WeightSpec spec;
  std::vector<TensorPattern> parts;
  /// The convention in words ("gptq v1, symmetric"), for reports.
  std::string format;
};

/// Gated (w13.spec.halves == 2) or plain two-layer experts.
struct ExpertsSource {
  WeightSource w13;
  WeightSource w2;
  /// [E, halves * N] in the order of w13's rows: gate then up, or in turn where
  /// w13's layout interleaves them.
  std::optional<TensorPattern> bias13;
  std::optional<TensorPattern> bias2; ///< [E, K]
};

struct RouterSource {
  WeightSource weight;                      ///< input K, output E
  std::optional<TensorPattern> bias;        ///< [E], added to the logits
  std::optional<TensorPattern> correction;  ///< [E], added for the choice only
  std::optional<TensorPattern> expertScale; ///< [E], times the weights
  wna16_scoring scoring = WNA16_SOFTMAX;
  int64_t topK = 1;
  bool renormalize = false;
  int64_t groups = 1;
  int64_t topGroups = 1;
  bool softmaxAfterTopK = false;
  double scaling = 1.0;
  double jitter = 0.0; ///< of a sparse mixer
};

struct ActivationSource {
  wna16_activation kind = WNA16_SILU;
  double alpha = 1.0;
  double beta = 0.0;
  double limit = 0.0; ///< 0: none
};

/// y = x / sqrt(mean(x^2) + epsilon) * weight * scale.
struct NormSource {
  TensorPattern weight; ///< [K]
  double epsilon = 0.0;
  double scale = 1.0;
};

/// Norms within a block. Its input is that of router, experts and shared; its
/// result is out of the sum of expertsOut and sharedOut.
struct BlockNorms {
  NormSource router;
  NormSource experts;
  NormSource shared;
  NormSource expertsOut;
  NormSource sharedOut;
  NormSource out;
};

/// One MoE block.
struct MoELayer {
  int64_t index = 0;
  std::string prefix; ///< "model.layers.1.mlp"
  int64_t hidden = 0;
  int64_t intermediate = 0;
  RouterSource router;
  ExpertsSource experts;
  std::optional<ExpertsSource> shared;    ///< experts == 1
  std::optional<WeightSource> sharedGate; ///< K -> 1, through a sigmoid
  std::optional<BlockNorms> norms; ///< with these there is a shared expert
  ActivationSource activation;
  bool weightOnInput = false; ///< routing weight multiplies the experts' input
};

/// A finding of the audit.
struct Finding {
  bool fault = true; ///< false: worth knowing, not wrong
  std::string tensor;
  std::string text; ///< what, with the numbers, and what would work
};

struct OpenOptions {
  /// Read every float, zero point and group index, as `wna16 check` does;
  /// otherwise only headers and what decides a convention are read.
  bool audit = false;
};

class Checkpoint {
public:
  /// Opens a directory. Fails on anything that would make wrong numbers, naming
  /// the tensor or configuration key.
  static Result<Checkpoint> open(const std::string &directory,
                                 const OpenOptions &options = {});

  const std::string &directory() const { return path; }
  /// "qwen3_moe", ...
  const std::string &modelType() const { return type; }
  /// The model's dtype: F16, BF16 or F32.
  ScalarType dtype() const { return modelDtype; }
  /// "gptq", "awq", "compressed-tensors" or "none".
  const std::string &method() const { return quantMethod; }
  const std::vector<MoELayer> &layers() const { return moeLayers; }
  /// The layer with this index; null when there is none.
  const MoELayer *layer(int64_t index) const;
  const std::vector<Finding> &findings() const { return audited; }
  const SafeTensors &tensors() const { return files; }
  /// Tells checkpoints apart without reading their weights: SHA-256 of the
  /// headers and sizes of their files and of config.json, in hexadecimal.
  Result<std::string> identity() const;

  /// Fills `out` with the stacked tensor (shape and type of `pattern`), leading
  /// extents [begin, end) only; `out` is the address of the first of all.
  Failure read(const TensorPattern &pattern, void *out, int64_t begin,
               int64_t end) const;
  /// All of it.
  Failure read(const TensorPattern &pattern, void *out) const;

private:
  friend class CheckpointReader;
  Failure readStacked(const TensorPattern &pattern,
                      const std::vector<std::string> &names, int64_t stride,
                      uint8_t *out, int64_t begin, int64_t end) const;

  std::string path;
  std::string type;
  std::string quantMethod;
  ScalarType modelDtype = ScalarType::BF16;
  std::vector<MoELayer> moeLayers;
  std::vector<Finding> audited;
  SafeTensors files;
};

} // namespace wna16

#endif // WNA16_CHECKPOINT_CHECKPOINT_H
