//===- LayerPlan.h - A layer of experts to be measured ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_LAYER_LAYERPLAN_H
#define WNA16_BENCHMARKS_LAYER_LAYERPLAN_H

#include "Report.h"
#include "Runtime/wna16.h"

#include <random>

namespace wna16 {

/// A weight of the layer, in its stored form.
struct BenchWeight {
  WeightSpec spec;
  std::vector<StoredPart> stored;

  static Result<BenchWeight> create(const BenchOptions &options, int64_t input,
                                    int64_t halves, int64_t output);
  int64_t bytes() const;
};

/// What a call is given besides tensors.
struct LayerPlan {
  BenchWeight w13, w2;
  wna16_experts_plan plan = {};

  static Result<LayerPlan> create(const BenchOptions &options);
  int64_t bytes() const { return w13.bytes() + w2.bytes(); }
  double expertBytes() const {
    return static_cast<double>(bytes()) / static_cast<double>(w13.spec.experts);
  }
  /// Of the products of a call.
  double flops(int64_t tokens) const;
};

/// Distinct experts for each token.
struct BenchRouting {
  std::vector<int32_t> ids;
  std::vector<float> weights; ///< of a token: 1 in all
  int64_t touched = 0;        ///< experts

  BenchRouting(const BenchOptions &options, int64_t tokens,
               std::mt19937_64 &random);
};

/// The tensors of a call, with their shapes.
class BenchTensors {
public:
  explicit BenchTensors(int32_t deviceType) : deviceType(deviceType) {}

  void add(const void *data, ScalarType type, std::vector<int64_t> shape);
  void add(const BenchWeight &weight, const WeightBuffers &buffers);
  void addAbsent(int64_t count) { resize(shapes.size() + count); }
  const wna16_tensor *get();
  int64_t count() const { return static_cast<int64_t>(tensors.size()); }

private:
  void resize(size_t count);
  void set(size_t index, const void *data, ScalarType type,
           std::vector<int64_t> shape);

  const int32_t deviceType;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<wna16_tensor> tensors;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_LAYER_LAYERPLAN_H
