//===- DeviceLayer.h - A layer of random experts on a device ----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CUDA_DEVICELAYER_H
#define WNA16_BENCHMARKS_CUDA_DEVICELAYER_H

#include "DeviceMemory.h"
#include "LayerPlan.h"

#include <array>

namespace wna16 {

/// Random weights in their stored form on the current device, and calls of
/// fused experts on them.
class DeviceLayer {
public:
  /// Layouts marlin, humming_mma and humming_wgmma.
  static Result<std::unique_ptr<DeviceLayer>>
  create(const BenchOptions &options);
  ~DeviceLayer();

  double flops(int64_t tokens) const { return layer.flops(tokens); }
  /// Random tokens and routings, and the workspace.
  Failure setTokens(int64_t tokens);
  const char *kernelName() const;
  /// Bytes of weights that a call touches, on average.
  double touchedBytes() const;
  /// Relative error of some tokens against f64. Output and workspace are NaN
  /// before; fails when a second call gives other bits.
  Result<double> check();
  /// Seconds of a call, from graphs of many that differ in routing and, where a
  /// layer is small, in weights.
  Result<std::vector<double>> time();

private:
  struct WeightMemory {
    std::array<DeviceMemory, kNumParts> parts;
    WeightBuffers buffers() const;
  };
  struct Copy {
    WeightMemory w13, w2;
  };
  struct Routing {
    DeviceMemory ids, weights;
    int64_t touched;
  };
  struct Entry;

  DeviceLayer(const BenchOptions &options, LayerPlan plan, const Entry &entry)
      : options(options), layer(std::move(plan)), entry(entry) {}
  Failure init();
  Result<WeightMemory> makeWeight(const BenchWeight &weight);
  Result<Routing> makeRouting();
  Failure call(size_t index);
  Failure capture(size_t calls, cudaGraphExec_t &executable);
  Failure poison();
  Result<std::vector<uint16_t>> output();
  Result<std::vector<double>> reference(const std::vector<int32_t> &sample);
  float valueOf(const std::vector<uint16_t> &values, int64_t index) const;

  static const Entry kEntries[];

  const BenchOptions options;
  const LayerPlan layer;
  const Entry &entry;
  std::mt19937_64 random{1};
  cudaStream_t stream = nullptr;
  std::vector<Copy> copies;
  std::vector<Routing> routings;
  int64_t tokens = 0;
  DeviceMemory x, y, workspace;
  int64_t workspaceBytes = 0;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_CUDA_DEVICELAYER_H
