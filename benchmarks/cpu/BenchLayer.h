//===- BenchLayer.h - A layer of random experts to run ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_BENCHLAYER_H
#define WNA16_BENCHMARKS_CPU_BENCHLAYER_H

#include "LayerPlan.h"
#include "Memory.h"

#include <memory>

namespace wna16 {

/// Random weights in their stored form, and calls of fused experts on them.
class BenchLayer {
public:
  static Result<std::unique_ptr<BenchLayer>>
  create(const BenchOptions &options);

  int threads() const { return wna16_get_num_threads(); }
  double flops(int64_t tokens) const { return layer.flops(tokens); }
  /// Random tokens and routings, and the workspace.
  Failure setTokens(int64_t tokens);
  const char *kernelName() const;
  /// Calls differ in routing and, where a layer fits into caches, in weights.
  Failure call(int64_t index);
  double touchedBytes(int64_t index) const;
  /// Of the call made last, against f64 on the weights as they are stored.
  double errorOfToken(int64_t token) const;

private:
  /// By part.
  using WeightMemory = std::vector<PageMemory>;
  struct Copy {
    WeightMemory w13, w2;
  };

  BenchLayer(const BenchOptions &options, LayerPlan plan)
      : options(options), layer(std::move(plan)) {}
  WeightMemory makeWeight(const BenchWeight &weight);
  static WeightBuffers buffersOf(const BenchWeight &weight,
                                 const WeightMemory &memory);
  const Copy &copy(int64_t index) const {
    return copies[index % copies.size()];
  }
  const BenchRouting &routing(int64_t index) const {
    return routings[index % routings.size()];
  }
  std::vector<double> referenceOf(int64_t token) const;

  const BenchOptions options;
  const LayerPlan layer;
  std::mt19937_64 random{1};
  std::vector<Copy> copies;
  int64_t tokens = 0;
  int64_t last = 0; ///< the call made last
  std::vector<BenchRouting> routings;
  std::vector<uint8_t> x, y;
  std::unique_ptr<PageMemory> workspace;
  int64_t workspaceBytes = 0;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_BENCHLAYER_H
