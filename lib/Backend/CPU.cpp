//===- CPU.cpp - CPU ------------------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

#include <algorithm>

using namespace wna16;

/// Inputs of one block: a power of two up to 128 that a group consists of.
static int64_t blockOf(const WeightSpec &weight) {
  if (weight.group > 0)
    return std::min<int64_t>(128, weight.group);
  int64_t block = 4;
  while (block < 128 && block < weight.input)
    block *= 2;
  return block;
}

static WeightSpec paneled(const LayerInfo &layer, const WeightSpec &source,
                          Projection which) {
  Units units{leastMultiple(32, blockOf(layer.w2)), blockOf(layer.w13), 32};
  WeightSpec wanted = padded(layer, source, which, units, true);
  if (source.code == CodeType::Dense) {
    wanted.input = which == Projection::W13 ? source.input : wanted.input;
    wanted.output = which == Projection::W2 ? source.output : wanted.output;
    return wanted;
  }
  return inLayout(wanted, "cpu_panels");
}

/// Panels pad the axis that both weights share, so that both packed weights
/// consist of panels or none.
static bool fitsPanels(const LayerInfo &layer) {
  if (layer.w13.code == CodeType::Dense && layer.w2.code == CodeType::Dense)
    return false;
  for (auto [spec, which] : {std::pair(&layer.w13, Projection::W13),
                             std::pair(&layer.w2, Projection::W2)})
    if (spec->code != CodeType::Dense &&
        (spec->actOrder != ActOrder::None ||
         !storageOf(paneled(layer, *spec, which))))
      return false;
  return true;
}

static WeightSpec prepare(const LayerInfo &layer, const WeightSpec &source,
                          Projection which) {
  if (fitsPanels(layer))
    return paneled(layer, source, which);
  if (source.code == CodeType::Dense)
    return source;
  // Rows in the order in which they are read; where that does not fit, the
  // portable kernel reads the checkpoint's own layout.
  WeightSpec rows = inLayout(source, "compressed_tensors");
  return storageOf(rows) ? rows : source;
}

static constexpr Needs cpuNeeds() {
  Needs needs = anyWeightNeeds();
  needs.kind = TargetKind::cpu;
  needs.prepare = prepare;
  return needs;
}

static constexpr llvm::StringLiteral kActivations[] = {"silu"};

static constexpr ReferenceClass cpuClass() {
  ReferenceClass c;
  c.kind = TargetKind::cpu;
  c.needsAmx = true;
  c.nonGated = false;
  c.activations = kActivations;
  c.keys = {WeightKey::I4};
  c.anyRouting = false;
  c.routing = {RoutingMethod::Default, RoutingMethod::Renormalize,
               RoutingMethod::RenormalizeNaive};
  c.batchInvariant = false;
  c.lora = false;
  return c;
}

static constexpr Needs kNeeds = cpuNeeds();
static constexpr ReferenceClass kClass = cpuClass();

std::unique_ptr<Backend> wna16::createCPU() {
  Description d;
  d.name = "cpu";
  d.summary = "kernels of the runtime for any CPU";
  d.kernel = "wna16_cpu_fused_experts";
  d.native = nativeConstraints<kNeeds>();
  d.reference = referenceConstraints<kClass>();
  d.prepare = prepare;
  return std::make_unique<DescribedBackend>(d);
}
