//===- CUDA.cpp - CUDA ----------------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels for dense weights: shared experts that are not quantised, layers
// of which one weight is not, and whatever no packed kernel takes.
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

using namespace wna16;

static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection) {
  return dequantized(source, layer.element);
}

static constexpr Needs cudaNeeds() {
  Needs needs = anyWeightNeeds();
  needs.kind = TargetKind::cuda;
  needs.minCapability = 80;
  needs.dense = {ScalarType::F16, ScalarType::BF16};
  needs.elements = {ScalarType::F16, ScalarType::BF16};
  needs.prepare = prepare;
  return needs;
}

static constexpr Needs kNeeds = cudaNeeds();

std::unique_ptr<Backend> wna16::createCUDA() {
  Description d;
  d.name = "cuda";
  d.summary = "dense kernels of the runtime on NVIDIA GPUs; packed weights are "
              "dequantised ahead of time";
  d.kernel = "wna16_cuda_fused_experts";
  d.native = nativeConstraints<kNeeds>();
  d.reference = absentFromReference();
  d.prepare = prepare;
  d.roundings = {/*weights=*/true, /*slots=*/false};
  return std::make_unique<DescribedBackend>(d);
}
