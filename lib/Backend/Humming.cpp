//===- Humming.cpp - HUMMING ----------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

#include "llvm/ADT/ArrayRef.h"

using namespace wna16;

/// Every linear is padded to 256 outputs, all halves together, and 128 inputs.
static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection which) {
  int64_t intermediate = layer.gated ? 128 : 256;
  WeightSpec extents =
      padded(layer, source, which, {intermediate, 128, 256}, true);
  if (source.code == CodeType::Dense)
    return extents;
  WeightSpec wanted = inLayout(extents, layer.capability == 90 ? "humming_wgmma"
                                                               : "humming_mma");
  wanted.scale = layer.element;
  return wanted;
}

static constexpr Needs hummingNeeds() {
  Needs needs = anyWeightNeeds();
  needs.kind = TargetKind::cuda;
  needs.minCapability = 80;
  needs.dense = {};
  needs.actOrder = false;
  needs.groupMultiple = 16;
  needs.scales = {ScalarType::F16, ScalarType::BF16};
  needs.elements = {ScalarType::F16, ScalarType::BF16};
  needs.routerWeightOnInput = false;
  needs.batchInvariant = false;
  needs.prepare = prepare;
  return needs;
}

static ReferenceClass hummingClass() {
  ReferenceClass c;
  c.minCapability = 75;
  c.library = "humming";
  c.activations =
      llvm::ArrayRef<llvm::StringLiteral>(kMarlinActivations).drop_back();
  c.keys = {WeightKey::I4, WeightKey::I4g32, WeightKey::I4asym,
            WeightKey::I4g32asym, WeightKey::I8};
  c.allToAll = AllToAllRule::NoFlashInfer;
  c.batched = true;
  c.batchInvariant = false;
  c.lora = false;
  return c;
}

static constexpr Needs kNeeds = hummingNeeds();
static const ReferenceClass kClass = hummingClass();

std::unique_ptr<Backend> wna16::createHumming() {
  Description d;
  d.name = "humming";
  d.summary = "Humming kernels on NVIDIA GPUs";
  d.kernel = "wna16_cuda_humming_fused_experts";
  d.native = nativeConstraints<kNeeds>();
  d.reference = referenceConstraints<kClass>();
  d.prepare = prepare;
  d.biasLayout = findLayout("humming_mma");
  d.library = kClass.library;
  d.roundings = {/*weights=*/true, /*slots=*/true};
  return std::make_unique<DescribedBackend>(d);
}
