//===- Needs.h - What our kernels ask of a layer ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One record says what a kernel family takes, one list of checks reads it. A
// backend's native constraints are that list bound to its record, so that a
// backend's file holds data and a new question is asked of all of them.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_BACKEND_NEEDS_H
#define WNA16_LIB_BACKEND_NEEDS_H

#include "Backend/Backend.h"

namespace wna16 {

using Verdict = std::optional<Constraint::Verdict>;

/// A set of small enumerators that constant tables can hold.
template <typename E>
class EnumSet {
public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> values) {
    for (E value : values)
      bits |= uint64_t(1) << static_cast<uint64_t>(value);
  }
  constexpr bool has(E value) const {
    return bits >> static_cast<uint64_t>(value) & 1;
  }

private:
  uint64_t bits = 0;
};

/// How a backend wants a weight; see Backend::prepared.
using Prepare = WeightSpec (*)(const LayerInfo &layer, const WeightSpec &source,
                               Projection which);

/// What one kernel family takes. Zero in a number means no bound.
struct Needs {
  bool anyTarget = false;
  TargetKind kind = TargetKind::cpu;
  /// Compute capabilities [min, max]; of a machine that does not say its own,
  /// only a `min` is taken for granted.
  int64_t minCapability = 0;
  int64_t maxCapability = 0;
  llvm::StringRef library;

  EnumSet<CodeType> codes;
  EnumSet<CodeType> zeroPoints; ///< codes that may have a zero-point tensor
  EnumSet<ScalarType> dense;    ///< elements of weights that are not packed
  bool actOrder = false;
  int64_t onlyGroup = 0;     ///< the one group size there is
  int64_t groupMultiple = 0; ///< of group sizes other than -1
  bool wholeGroups = false;  ///< the group divides w13's input
  EnumSet<ScalarType> scales;
  EnumSet<ScalarType> elements; ///< of the activations

  EnumSet<Activation> gated;
  EnumSet<Activation> ungated;
  bool limit = true; ///< clamps where a limit is given
  EnumSet<ActivationType> activationTypes{ActivationType::a16};

  bool bias = true;
  bool expertMap = true;
  bool standardTokens = true;
  bool batchedTokens = false;
  bool routerWeightOnInput = true;
  bool routesInside = false; ///< the kernel does the layer's routing itself
  bool batchInvariant = true;

  int64_t hiddenMultiple = 0;
  /// What the intermediate size must be a multiple of where it cannot be padded
  /// (act-order).
  int64_t intermediateMultiple = 0;
  int64_t maxExperts = 0;
  int64_t maxTopK = 0;

  Prepare prepare = nullptr;
};

/// What kernels start from that take every weight, activation and layout of
/// tokens there is.
constexpr Needs anyWeightNeeds() {
  Needs needs;
  needs.codes = {CodeType::U4, CodeType::U4B8,   CodeType::S4,
                 CodeType::U8, CodeType::U8B128, CodeType::S8};
  needs.zeroPoints = {CodeType::U4, CodeType::U8};
  needs.dense = {ScalarType::F16, ScalarType::BF16, ScalarType::F32};
  needs.actOrder = true;
  needs.scales = {ScalarType::F16, ScalarType::BF16, ScalarType::F32};
  needs.elements = {ScalarType::F16, ScalarType::BF16, ScalarType::F32};
  needs.gated = {Activation::silu,      Activation::gelu,
                 Activation::gelu_tanh, Activation::relu2,
                 Activation::swigluoai, Activation::swiglustep};
  needs.ungated = {Activation::silu, Activation::gelu, Activation::gelu_tanh,
                   Activation::relu2};
  needs.batchedTokens = true;
  return needs;
}

/// The questions, in the order of docs/Selection.md.
Verdict checkWeights(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkTargetKind(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkTargetCapability(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkTargetLibrary(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkDenseWeight(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkWeightBits(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkWeightCode(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkZeroPoints(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkGroupSize(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkGroupDivides(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkActOrder(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkScaleType(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkElementType(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkGate(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkActivation(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkActivationLimit(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkActivationType(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkBias(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkExpertMap(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkTokenLayout(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkWeightOnInput(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkRouting(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkRouterLogits(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkBatchInvariant(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkHidden(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkIntermediate(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkExperts(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkTopK(const Needs &, const LayerInfo &, TargetAttr);
Verdict checkStorage(const Needs &, const LayerInfo &, TargetAttr);

/// Whether all extents and groups are usable numbers; what `checkWeights` asks,
/// and what preparation relies on.
bool isSound(const LayerInfo &layer);

/// A check with its record, as the plain function that a Constraint holds.
template <typename Record, const Record &R,
          Verdict (*Check)(const Record &, const LayerInfo &, TargetAttr)>
Verdict bound(const LayerInfo &layer, TargetAttr target) {
  return Check(R, layer, target);
}

template <const Needs &N>
llvm::ArrayRef<Constraint> nativeConstraints() {
  static const Constraint table[] = {
      {"weights", bound<Needs, N, checkWeights>},
      {"target-kind", bound<Needs, N, checkTargetKind>},
      {"target-capability", bound<Needs, N, checkTargetCapability>},
      {"target-library", bound<Needs, N, checkTargetLibrary>},
      {"dense-weight", bound<Needs, N, checkDenseWeight>},
      {"weight-bits", bound<Needs, N, checkWeightBits>},
      {"weight-code", bound<Needs, N, checkWeightCode>},
      {"zero-points", bound<Needs, N, checkZeroPoints>},
      {"group-size", bound<Needs, N, checkGroupSize>},
      {"group-divides", bound<Needs, N, checkGroupDivides>},
      {"act-order", bound<Needs, N, checkActOrder>},
      {"scale-type", bound<Needs, N, checkScaleType>},
      {"element-type", bound<Needs, N, checkElementType>},
      {"gate", bound<Needs, N, checkGate>},
      {"activation", bound<Needs, N, checkActivation>},
      {"activation-limit", bound<Needs, N, checkActivationLimit>},
      {"activation-type", bound<Needs, N, checkActivationType>},
      {"bias", bound<Needs, N, checkBias>},
      {"expert-map", bound<Needs, N, checkExpertMap>},
      {"token-layout", bound<Needs, N, checkTokenLayout>},
      {"router-weight-on-input", bound<Needs, N, checkWeightOnInput>},
      {"routing", bound<Needs, N, checkRouting>},
      {"router-logits", bound<Needs, N, checkRouterLogits>},
      {"batch-invariant", bound<Needs, N, checkBatchInvariant>},
      {"hidden-multiple", bound<Needs, N, checkHidden>},
      {"intermediate-multiple", bound<Needs, N, checkIntermediate>},
      {"experts", bound<Needs, N, checkExperts>},
      {"top-k", bound<Needs, N, checkTopK>},
      {"storage", bound<Needs, N, checkStorage>},
  };
  return table;
}

} // namespace wna16

#endif // WNA16_LIB_BACKEND_NEEDS_H
