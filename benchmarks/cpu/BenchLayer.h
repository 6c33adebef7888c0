//===- BenchLayer.h - A layer of random experts to run ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_BENCHLAYER_H
#define WNA16_BENCHMARKS_CPU_BENCHLAYER_H

#include "LayerBench.h"
#include "Memory.h"
#include "Runtime/wna16.h"

#include <memory>
#include <random>

namespace wna16 {

/// Random weights in their stored form, and calls of fused experts on them.
class BenchLayer {
public:
  static Result<std::unique_ptr<BenchLayer>>
  create(const BenchOptions &options);

  int threads() const { return wna16_get_num_threads(); }
  double flops(int64_t tokens) const {
    return 6.0 * static_cast<double>(tokens * options.topK) *
           static_cast<double>(options.hidden * options.width);
  }
  /// Random tokens and routings, and the workspace.
  Failure setTokens(int64_t tokens);
  const char *kernelName() const;
  /// Calls differ in routing and, where a layer fits into caches, in weights.
  Failure call(int64_t index);
  double touchedBytes(int64_t index) const;
  /// Of the call made last, against f64 on the weights as they are stored.
  double errorOfToken(int64_t token) const;

private:
  struct Weight {
    WeightSpec spec;
    wna16_weight plan = {};
    std::vector<StoredPart> stored;
    double expertBytes = 0;
    /// By copy.
    std::vector<std::vector<PageMemory>> parts;

    Failure init(const BenchOptions &options, int64_t input, int64_t halves,
                 int64_t output);
    void addCopy(std::mt19937_64 &random);
    WeightBuffers buffers(int64_t copy) const;
    void appendTensors(int64_t copy, std::vector<wna16_tensor> &tensors) const;
    int64_t bytes() const;
  };
  struct Routing {
    std::vector<int32_t> ids;
    std::vector<float> weights;
    int64_t touched; ///< experts
  };

  explicit BenchLayer(const BenchOptions &options) : options(options) {}
  int64_t copies() const { return static_cast<int64_t>(w13.parts.size()); }
  const Routing &routing(int64_t index) const {
    return routings[index % routings.size()];
  }
  std::vector<double> referenceOf(int64_t token) const;

  BenchOptions options;
  Weight w13, w2;
  wna16_experts_plan plan = {};
  std::mt19937_64 random{1};
  int64_t tokens = 0;
  int64_t last = 0; ///< the call made last
  std::vector<Routing> routings;
  std::vector<uint8_t> x, y;
  std::unique_ptr<PageMemory> workspace;
  int64_t workspaceBytes = 0;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_BENCHLAYER_H
