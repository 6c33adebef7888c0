//===- Emulation.cpp - EMULATION, ahead of time and on the fly ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

using namespace wna16;

static WeightSpec prepareDense(const LayerInfo &, const WeightSpec &source,
                               Projection) {
  return dequantized(source, ScalarType::F32);
}

/// What the bytes cannot hold (act-order, an odd input) is read as it comes.
static WeightSpec prepareBytes(const LayerInfo &, const WeightSpec &source,
                               Projection) {
  if (source.code == CodeType::Dense)
    return source;
  WeightSpec wanted = inLayout(source, "otf");
  return storageOf(wanted) ? wanted : source;
}

static constexpr Needs emulationNeeds(Prepare prepare) {
  Needs needs = anyWeightNeeds();
  needs.anyTarget = true;
  needs.prepare = prepare;
  return needs;
}

static constexpr llvm::StringLiteral kOnTheFlyActivations[] = {
    "silu", "gelu", "gelu_tanh", "swigluoai"};

static constexpr ReferenceClass emulationClass(bool onTheFly) {
  ReferenceClass c;
  c.activations =
      onTheFly ? llvm::ArrayRef<llvm::StringLiteral>(kOnTheFlyActivations)
               : llvm::ArrayRef<llvm::StringLiteral>(kMarlinActivations);
  c.keys = {WeightKey::I4, WeightKey::I4g32, WeightKey::I4asym,
            WeightKey::I4g32asym, WeightKey::I8};
  c.allToAll = onTheFly ? AllToAllRule::Any : AllToAllRule::NoFlashInfer;
  c.blockAlign = true;
  return c;
}

static constexpr Needs kEmulation = emulationNeeds(prepareDense);
static constexpr Needs kOnTheFly = emulationNeeds(prepareBytes);
static constexpr ReferenceClass kEmulationClass = emulationClass(false);
static constexpr ReferenceClass kOnTheFlyClass = emulationClass(true);

std::unique_ptr<Backend> wna16::createEmulation() {
  Description d;
  d.name = "emulation";
  d.summary = "linalg on weights that are dequantised ahead of time";
  d.native = nativeConstraints<kEmulation>();
  d.reference = referenceConstraints<kEmulationClass>();
  d.prepare = prepareDense;
  d.dequantizes = true;
  return std::make_unique<DescribedBackend>(d);
}

std::unique_ptr<Backend> wna16::createEmulationOnTheFly() {
  Description d;
  d.name = "emulation_otf";
  d.summary = "linalg that dequantises where a weight is used";
  d.native = nativeConstraints<kOnTheFly>();
  d.reference = referenceConstraints<kOnTheFlyClass>();
  d.prepare = prepareBytes;
  return std::make_unique<DescribedBackend>(d);
}
