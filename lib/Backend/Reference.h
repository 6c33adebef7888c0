//===- Reference.h - The reference system's rules ---------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `rules=vllm`: which quantisation method and weight key a layer would have in
// the reference system, and its table of kernel classes. docs/Selection.md
// lists the rows.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_BACKEND_REFERENCE_H
#define WNA16_LIB_BACKEND_REFERENCE_H

#include "Needs.h"

namespace wna16 {

enum class RoutingMethod {
  Default,
  Renormalize,
  RenormalizeNaive,
  DeepSeekV3,
  Llama4,
  Unspecified,
};
llvm::StringRef name(RoutingMethod method);
/// The method that the reference system derives from a layer's routing.
RoutingMethod routingMethod(const LayerInfo &layer);

enum class WeightKey { I4, I4g32, I4asym, I4g32asym, I8 };
llvm::StringRef name(WeightKey key);

/// What quantises the layer, read off the layout of its weights.
enum class Method { AutoGPTQ, AutoAWQ, CompressedTensors, MoeWNA16 };
llvm::StringRef name(Method method);

/// A layer as the reference system's selection sees it.
struct ReferenceView {
  Method method = Method::AutoGPTQ;
  WeightKey key = WeightKey::I4;
  std::string error;   ///< the method refuses the layer
  std::string warning; ///< the pre-filter turned it over to moe_wna16
};
ReferenceView referenceView(const LayerInfo &layer);

/// "silu", "gelu_no_mul", "swigluoai_uninterleave", ...
std::string referenceActivation(const LayerInfo &layer);

enum class AllToAllRule { Any, LocalOrGather, NotTwoSided, NoFlashInfer };

/// What the classes of one backend accept; they differ in nothing else.
struct ReferenceClass {
  TargetKind kind = TargetKind::cuda;
  int64_t minCapability = 0;
  int64_t maxCapability = 0;
  llvm::StringRef library;
  bool needsFlashInferInt4 = false;
  bool needsAmx = false;
  bool nonGated = true;
  llvm::ArrayRef<llvm::StringLiteral> activations;
  EnumSet<WeightKey> keys;
  AllToAllRule allToAll = AllToAllRule::Any;
  bool loadBalancing = true;
  bool anyRouting = true;
  EnumSet<RoutingMethod> routing;
  bool restrictsLogits = false;
  bool standard = true;
  bool batched = false;
  bool batchInvariant = true;
  bool lora = true;
  bool blockAlign = false; ///< Triton: fewer than 1024 padded experts
};

inline constexpr llvm::StringLiteral kMarlinActivations[] = {
    "silu", "gelu", "gelu_tanh", "swigluoai", "swiglustep", "silu_no_mul",
    "gelu_no_mul", "gelu_tanh_no_mul", "relu2_no_mul",
    // Last, so that Humming's list is this one without it.
    "swigluoai_uninterleave"};

Verdict askDevice(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askGated(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askActivation(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askScheme(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askParallel(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askRouting(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askLogits(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askFormat(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askInvariance(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askLoRA(const ReferenceClass &, const LayerInfo &, TargetAttr);
Verdict askBlockAlign(const ReferenceClass &, const LayerInfo &, TargetAttr);

/// The tests in the reference system's order; the one of the hidden size is
/// absent since no class of the table restricts it.
template <const ReferenceClass &C>
llvm::ArrayRef<Constraint> referenceConstraints() {
  static const Constraint table[] = {
      {"device", bound<ReferenceClass, C, askDevice>},
      {"act-and-mul", bound<ReferenceClass, C, askGated>},
      {"activation", bound<ReferenceClass, C, askActivation>},
      {"quantization-scheme", bound<ReferenceClass, C, askScheme>},
      {"parallel-config", bound<ReferenceClass, C, askParallel>},
      {"routing-method", bound<ReferenceClass, C, askRouting>},
      {"router-logits", bound<ReferenceClass, C, askLogits>},
      {"activation-format", bound<ReferenceClass, C, askFormat>},
      {"batch-invariance", bound<ReferenceClass, C, askInvariance>},
      {"lora", bound<ReferenceClass, C, askLoRA>},
      {"padded-experts", bound<ReferenceClass, C, askBlockAlign>},
  };
  return table;
}

/// For backends that the reference system does not have.
llvm::ArrayRef<Constraint> absentFromReference();

/// The backend's name there ("MARLIN") and the class that would run the layer.
llvm::StringRef referenceBackend(llvm::StringRef backend);
llvm::StringRef referenceClassName(llvm::StringRef backend,
                                   const LayerInfo &layer);

/// Why conversion of the chosen backend would raise; empty: it does not.
std::string refusedConversion(llvm::StringRef backend, const LayerInfo &layer);

/// The reference system's selection, after the method's own tests.
Selection selectByReference(const LayerInfo &layer, TargetAttr target,
                            llvm::StringRef request);

} // namespace wna16

#endif // WNA16_LIB_BACKEND_REFERENCE_H
