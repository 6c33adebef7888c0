//===- XPU.cpp - XPU ------------------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

using namespace wna16;

static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection) {
  if (source.code == CodeType::Dense)
    return source;
  WeightSpec wanted = inLayout(source, "xpu");
  wanted.scale = layer.element;
  return wanted;
}

static constexpr Needs xpuNeeds() {
  Needs needs;
  needs.kind = TargetKind::xpu;
  needs.codes = {CodeType::U4, CodeType::U4B8, CodeType::S4};
  needs.dense = {ScalarType::F16, ScalarType::BF16};
  needs.scales = {ScalarType::F16, ScalarType::BF16};
  needs.elements = {ScalarType::F16, ScalarType::BF16};
  needs.gated = {Activation::silu, Activation::gelu, Activation::gelu_tanh,
                 Activation::swigluoai};
  needs.ungated = {Activation::relu2};
  needs.prepare = prepare;
  return needs;
}

static constexpr llvm::StringLiteral kActivations[] = {
    "silu", "gelu", "gelu_tanh", "swigluoai", "relu2_no_mul"};

static constexpr ReferenceClass xpuClass() {
  ReferenceClass c;
  c.kind = TargetKind::xpu;
  c.activations = kActivations;
  c.keys = {WeightKey::I4, WeightKey::I4g32};
  c.batchInvariant = false;
  c.lora = false;
  return c;
}

static constexpr Needs kNeeds = xpuNeeds();
static constexpr ReferenceClass kClass = xpuClass();

std::unique_ptr<Backend> wna16::createXPU() {
  Description d;
  d.name = "xpu";
  d.summary = "OpenCL kernels on Intel GPUs";
  d.kernel = "wna16_xpu_fused_experts";
  d.native = nativeConstraints<kNeeds>();
  d.reference = referenceConstraints<kClass>();
  d.prepare = prepare;
  return std::make_unique<DescribedBackend>(d);
}
