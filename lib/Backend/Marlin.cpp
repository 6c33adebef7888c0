//===- Marlin.cpp - MARLIN and BATCHED_MARLIN -----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

using namespace wna16;

/// Scales become int16 with a factor where there are several groups.
static bool foldsScales(const LayerInfo &layer, const WeightSpec &weight) {
  return layer.activationType == ActivationType::int8 && weight.groups() > 1;
}

static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection which) {
  WeightSpec extents = padded(layer, source, which, {64, 1, 1}, false);
  if (source.code == CodeType::Dense)
    return extents;
  bool a16 = layer.activationType == ActivationType::a16;
  WeightSpec wanted = inLayout(extents, a16 ? "marlin" : "marlin_a8");
  wanted.scale = foldsScales(layer, wanted) ? ScalarType::I16 : layer.element;
  if (layer.activationType == ActivationType::fp8 && wanted.bits() == 4)
    wanted.code = CodeType::U4FP8;
  if (source.actOrder == ActOrder::Index)
    wanted.actOrder = ActOrder::Sorted;
  return wanted;
}

static constexpr Needs marlinNeeds(bool batched) {
  Needs needs = anyWeightNeeds();
  needs.kind = TargetKind::cuda;
  needs.minCapability = 80;
  needs.zeroPoints = {CodeType::U4};
  needs.dense = {};
  needs.groupMultiple = 16;
  needs.wholeGroups = true;
  needs.scales = {ScalarType::F16, ScalarType::BF16};
  needs.elements = {ScalarType::F16, ScalarType::BF16};
  needs.activationTypes = {ActivationType::a16, ActivationType::int8,
                           ActivationType::fp8};
  needs.standardTokens = !batched;
  needs.batchedTokens = batched;
  needs.hiddenMultiple = 64;
  needs.intermediateMultiple = 64;
  needs.prepare = prepare;
  return needs;
}

static constexpr ReferenceClass marlinClass(bool batched) {
  ReferenceClass c;
  c.minCapability = 75;
  c.activations = kMarlinActivations;
  c.keys = {WeightKey::I4, WeightKey::I4g32, WeightKey::I4asym,
            WeightKey::I4g32asym, WeightKey::I8};
  c.allToAll = AllToAllRule::NotTwoSided;
  c.standard = !batched;
  c.batched = batched;
  c.lora = !batched;
  return c;
}

static constexpr Needs kMarlin = marlinNeeds(false);
static constexpr Needs kBatchedMarlin = marlinNeeds(true);
static constexpr ReferenceClass kMarlinClass = marlinClass(false);
static constexpr ReferenceClass kBatchedMarlinClass = marlinClass(true);

static Description describe() {
  Description d;
  d.prepare = prepare;
  d.biasLayout = findLayout("marlin");
  d.roundings = {/*weights=*/true, /*slots=*/true};
  return d;
}

std::unique_ptr<Backend> wna16::createMarlin() {
  Description d = describe();
  d.name = "marlin";
  d.summary = "Marlin kernels on NVIDIA GPUs";
  d.kernel = "wna16_cuda_marlin_fused_experts";
  d.native = nativeConstraints<kMarlin>();
  d.reference = referenceConstraints<kMarlinClass>();
  return std::make_unique<DescribedBackend>(d);
}

std::unique_ptr<Backend> wna16::createBatchedMarlin() {
  Description d = describe();
  d.name = "batched_marlin";
  d.summary = "Marlin kernels on NVIDIA GPUs, tokens batched by expert";
  d.kernel = "wna16_cuda_batched_marlin_fused_experts";
  d.native = nativeConstraints<kBatchedMarlin>();
  d.reference = referenceConstraints<kBatchedMarlinClass>();
  return std::make_unique<DescribedBackend>(d);
}
