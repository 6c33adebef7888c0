//===- FlashInferTRTLLM.cpp - FLASHINFER_TRTLLM ---------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

using namespace wna16;

static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection which) {
  WeightSpec extents = padded(layer, source, which, {256, 1, 1}, false);
  if (source.code == CodeType::Dense)
    return extents;
  WeightSpec wanted = inLayout(extents, "trtllm");
  wanted.code = CodeType::S4;
  wanted.scale = ScalarType::BF16;
  return wanted;
}

static constexpr Needs trtllmNeeds() {
  Needs needs;
  needs.kind = TargetKind::cuda;
  needs.minCapability = 100;
  needs.maxCapability = 109;
  needs.library = "flashinfer";
  needs.codes = {CodeType::U4, CodeType::U4B8, CodeType::S4};
  needs.onlyGroup = 32;
  needs.wholeGroups = true;
  needs.scales = {ScalarType::F16, ScalarType::BF16};
  needs.elements = {ScalarType::BF16};
  // It takes swigluoai by name and computes silu, so that is not asked for.
  needs.gated = {Activation::silu};
  needs.limit = false;
  needs.bias = false;
  needs.expertMap = false;
  needs.routerWeightOnInput = false;
  needs.routesInside = true;
  needs.batchInvariant = false;
  needs.hiddenMultiple = 256;
  needs.maxExperts = 512;
  needs.maxTopK = 8;
  needs.prepare = prepare;
  return needs;
}

static constexpr llvm::StringLiteral kActivations[] = {"silu", "swigluoai"};

static constexpr ReferenceClass trtllmClass() {
  ReferenceClass c;
  c.minCapability = 100;
  c.maxCapability = 109;
  c.library = "flashinfer";
  c.needsFlashInferInt4 = true;
  c.nonGated = false;
  c.activations = kActivations;
  c.keys = {WeightKey::I4g32};
  c.allToAll = AllToAllRule::LocalOrGather;
  c.loadBalancing = false;
  c.anyRouting = false;
  c.routing = {RoutingMethod::Renormalize, RoutingMethod::RenormalizeNaive,
               RoutingMethod::DeepSeekV3, RoutingMethod::Llama4};
  c.restrictsLogits = true;
  c.batchInvariant = false;
  c.lora = false;
  return c;
}

static constexpr Needs kNeeds = trtllmNeeds();
static constexpr ReferenceClass kClass = trtllmClass();

std::unique_ptr<Backend> wna16::createFlashInferTRTLLM() {
  Description d;
  d.name = "flashinfer_trtllm";
  d.summary = "FlashInfer's TRT-LLM MXINT4 kernels on NVIDIA Blackwell";
  d.kernel = "wna16_cuda_trtllm_fused_experts";
  d.native = nativeConstraints<kNeeds>();
  d.reference = referenceConstraints<kClass>();
  d.prepare = prepare;
  d.library = kNeeds.library;
  d.roundings = {/*weights=*/true, /*slots=*/true};
  return std::make_unique<DescribedBackend>(d);
}
