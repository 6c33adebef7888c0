//===- Reference.cpp - The reference system's rules -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Layout/Catalogue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace wna16;
using llvm::formatv;
using llvm::StringLiteral;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

StringRef wna16::name(RoutingMethod method) {
  static constexpr StringLiteral names[] = {"Default",          "Renormalize",
                                            "RenormalizeNaive", "DeepSeekV3",
                                            "Llama4",           "Unspecified"};
  return names[static_cast<int>(method)];
}

StringRef wna16::name(WeightKey key) {
  static constexpr StringLiteral names[] = {"I4", "I4g32", "I4asym",
                                            "I4g32asym", "I8"};
  return names[static_cast<int>(key)];
}

StringRef wna16::name(Method method) {
  static constexpr StringLiteral names[] = {"AutoGPTQ", "AutoAWQ",
                                            "compressed-tensors", "moe_wna16"};
  return names[static_cast<int>(method)];
}

RoutingMethod wna16::routingMethod(const LayerInfo &layer) {
  if (!layer.routing)
    return RoutingMethod::Unspecified;
  const LayerInfo::Routing &routing = *layer.routing;
  if (routing.scoring == Scoring::sparsemixer || routing.expertScale)
    return RoutingMethod::Unspecified;
  bool sigmoid = routing.scoring == Scoring::sigmoid;
  if (routing.correction)
    return sigmoid && routing.groups > 1 ? RoutingMethod::DeepSeekV3
                                         : RoutingMethod::Unspecified;
  if (sigmoid)
    return layer.topK == 1 ? RoutingMethod::Llama4 : RoutingMethod::Unspecified;
  return routing.renormalize || routing.softmaxAfterTopK
             ? RoutingMethod::Renormalize
             : RoutingMethod::Default;
}

/// Its interleaved swigluoai has fixed constants; any other one is split.
std::string wna16::referenceActivation(const LayerInfo &layer) {
  std::string base = stringifyActivation(layer.activation).str();
  if (!layer.gated)
    return base + "_no_mul";
  if (layer.activation != Activation::swigluoai)
    return base;
  bool fixed = std::abs(layer.alpha - 1.702) < 1e-6 && layer.beta == 1.0 &&
               layer.limit == 7.0;
  bool interleaved =
      layer.w13.layout && layer.w13.layout->name == "interleaved";
  return fixed && interleaved ? base : base + "_uninterleave";
}

//===----------------------------------------------------------------------===//
// The method and its key
//===----------------------------------------------------------------------===//

static bool isSymmetric(const WeightSpec &weight) {
  return weight.zeros == ZeroPoints::None;
}

static std::optional<Method> methodOf(const WeightSpec &weight) {
  if (!weight.layout || weight.code == CodeType::Dense)
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Method>>(weight.layout->name)
      .Case("gptq", Method::AutoGPTQ)
      .Case("awq", Method::AutoAWQ)
      .Case("compressed_tensors", Method::CompressedTensors)
      .Case("otf", Method::MoeWNA16)
      .Default(std::nullopt);
}

static WeightKey keyOf(Method method, const WeightSpec &weight) {
  if (weight.bits() == 8)
    return WeightKey::I8;
  bool small = weight.group == 32;
  switch (method) {
  case Method::AutoGPTQ:
  case Method::AutoAWQ:
    return WeightKey::I4;
  case Method::MoeWNA16:
    return small ? WeightKey::I4g32 : WeightKey::I4;
  case Method::CompressedTensors:
    break;
  }
  if (isSymmetric(weight))
    return small ? WeightKey::I4g32 : WeightKey::I4;
  return small ? WeightKey::I4g32asym : WeightKey::I4asym;
}

/// Whether desc_act has an effect; with a single group it has none.
static bool isSorted(Method method, const LayerInfo &layer) {
  return method == Method::AutoGPTQ && layer.w13.group != -1 &&
         (layer.w13.actOrder != ActOrder::None ||
          layer.w2.actOrder != ActOrder::None);
}

/// What check_moe_marlin_supports_layer finds wrong; empty: nothing.
static std::string preFilter(Method method, const LayerInfo &layer) {
  int64_t group = layer.w13.group;
  if (layer.hidden % 128 != 0)
    return formatv("hidden size {0} is not a multiple of 128", layer.hidden);
  bool sorted = isSorted(method, layer);
  if (sorted && layer.intermediate % std::max<int64_t>(64, group) != 0)
    return formatv("intermediate size {0} is not a multiple of {1} and "
                   "act-order forbids padding",
                   layer.intermediate, std::max<int64_t>(64, group));
  if (!sorted && group > 0 && layer.intermediate % group != 0)
    return formatv("intermediate size {0} is not a multiple of group {1}",
                   layer.intermediate, group);
  if (!llvm::is_contained({-1, 32, 64, 128}, group))
    return formatv("group {0} is none of -1, 32, 64, 128", group);
  if (layer.routerWeightOnInput)
    return "the router weight is applied on the input";
  return {};
}

static std::string methodError(Method method, const WeightSpec &weight) {
  int bits = weight.bits();
  bool symmetric = isSymmetric(weight);
  if (method == Method::AutoGPTQ && (!symmetric || (bits != 4 && bits != 8)))
    return formatv("ValueError: AutoGPTQ takes bits 4 or 8 with sym=True, got "
                   "bits={0}, sym={1}",
                   bits, symmetric ? "True" : "False");
  if (method == Method::AutoAWQ && bits != 4)
    return formatv("ValueError: AutoAWQ takes bits 4, got bits={0}", bits);
  if (bits != 4 && bits != 8)
    return formatv("ValueError: {0} takes bits 4 or 8, got bits={1}",
                   name(method), bits);
  return {};
}

ReferenceView wna16::referenceView(const LayerInfo &layer) {
  ReferenceView view;
  std::optional<Method> method = methodOf(layer.w13);
  if (!method || methodOf(layer.w2) != method ||
      layer.w13.bits() != layer.w2.bits()) {
    view.error = "expected w13 and w2 of one checkpoint layout (gptq, awq, "
                 "compressed_tensors, otf) and width";
    return view;
  }
  view.method = *method;
  view.error = methodError(*method, layer.w13);
  if (view.error.empty() &&
      (*method == Method::AutoGPTQ || *method == Method::AutoAWQ)) {
    std::string failed = preFilter(*method, layer);
    if (!failed.empty()) {
      view.method = Method::MoeWNA16;
      view.warning = formatv("{0} falls back to moe_wna16 since {1}",
                             name(*method), failed);
    }
  }
  view.key = keyOf(view.method, layer.w13);
  return view;
}

//===----------------------------------------------------------------------===//
// The tests
//===----------------------------------------------------------------------===//

static Verdict unsupported(const std::string &what) {
  return Constraint::Verdict{"kernel does not support " + what, ""};
}

Verdict wna16::askDevice(const ReferenceClass &c, const LayerInfo &layer,
                         TargetAttr target) {
  int64_t capability = target.getCapability();
  bool known = target.getKind() == c.kind;
  if (c.kind == TargetKind::cuda && c.maxCapability)
    known &= capability >= c.minCapability && capability <= c.maxCapability;
  else if (c.kind == TargetKind::cuda)
    known &= capability >= c.minCapability || capability == 0;
  if (!c.library.empty())
    known &= target.hasLibrary(c.library);
  if (c.needsFlashInferInt4)
    known &= layer.deployment.flashinferInt4;
  if (c.needsAmx)
    known &= target.hasFeature("amx-tile") || target.hasFeature("amx_tile");
  if (known)
    return std::nullopt;
  return unsupported(
      formatv("current device {0}", stringifyTargetKind(target.getKind())));
}

Verdict wna16::askGated(const ReferenceClass &c, const LayerInfo &layer,
                        TargetAttr) {
  if (layer.gated || c.nonGated)
    return std::nullopt;
  return unsupported("no act_and_mul MLP layer");
}

Verdict wna16::askActivation(const ReferenceClass &c, const LayerInfo &layer,
                             TargetAttr) {
  std::string activation = referenceActivation(layer);
  if (llvm::is_contained(c.activations, StringRef(activation)))
    return std::nullopt;
  return unsupported(activation + " activation");
}

Verdict wna16::askScheme(const ReferenceClass &c, const LayerInfo &layer,
                         TargetAttr) {
  ReferenceView view = referenceView(layer);
  if (view.error.empty() && c.keys.has(view.key))
    return std::nullopt;
  return unsupported(formatv("quantization scheme {0}xnone", name(view.key)));
}

Verdict wna16::askParallel(const ReferenceClass &c, const LayerInfo &layer,
                           TargetAttr) {
  StringRef used = layer.deployment.allToAll;
  bool gather = used.empty() || used == "allgather_reducescatter";
  bool twoSided = used == "flashinfer_nvlink_two_sided";
  bool oneSided = used == "flashinfer_nvlink_one_sided";
  bool fits = c.loadBalancing || !layer.deployment.loadBalancing;
  switch (c.allToAll) {
  case AllToAllRule::Any:
    break;
  case AllToAllRule::LocalOrGather:
    fits &= gather;
    break;
  case AllToAllRule::NotTwoSided:
    fits &= !twoSided;
    break;
  case AllToAllRule::NoFlashInfer:
    fits &= !twoSided && !oneSided;
    break;
  }
  if (fits)
    return std::nullopt;
  return unsupported(
      formatv("parallel config <all2all={0}, eplb={1}>",
              used.empty() ? StringRef("none") : used,
              layer.deployment.loadBalancing ? "True" : "False"));
}

Verdict wna16::askRouting(const ReferenceClass &c, const LayerInfo &layer,
                          TargetAttr) {
  RoutingMethod method = routingMethod(layer);
  if (c.anyRouting || c.routing.has(method))
    return std::nullopt;
  return unsupported(formatv("routing method {0}", name(method)));
}

Verdict wna16::askLogits(const ReferenceClass &c, const LayerInfo &layer,
                         TargetAttr) {
  if (!c.restrictsLogits || !layer.routing ||
      layer.routing->logits != ScalarType::F32 ||
      routingMethod(layer) == RoutingMethod::DeepSeekV3)
    return std::nullopt;
  return unsupported("router logits dtype f32");
}

Verdict wna16::askFormat(const ReferenceClass &c, const LayerInfo &layer,
                         TargetAttr) {
  if (layer.batched ? c.batched : c.standard)
    return std::nullopt;
  return unsupported(layer.batched ? "Batched activation format"
                                   : "Standard activation format");
}

Verdict wna16::askInvariance(const ReferenceClass &c, const LayerInfo &layer,
                             TargetAttr) {
  if (c.batchInvariant || !layer.batchInvariant)
    return std::nullopt;
  return unsupported("batch invariance");
}

Verdict wna16::askLoRA(const ReferenceClass &c, const LayerInfo &layer,
                       TargetAttr) {
  if (c.lora || !layer.deployment.lora)
    return std::nullopt;
  return unsupported("LoRA");
}

Verdict wna16::askBlockAlign(const ReferenceClass &c, const LayerInfo &layer,
                             TargetAttr) {
  // ceil32(experts) >= 1024, without rounding what may be any number.
  if (!c.blockAlign || layer.globalExperts <= 1024 - 32)
    return std::nullopt;
  return Constraint::Verdict{
      "kernel's moe_align_block_size requires fewer than 1024 padded experts",
      ""};
}

//===----------------------------------------------------------------------===//
// Backends and conversion
//===----------------------------------------------------------------------===//

StringRef wna16::referenceBackend(StringRef backend) {
  return llvm::StringSwitch<StringRef>(backend)
      .Case("flashinfer_trtllm", "FLASHINFER_TRTLLM")
      .Case("marlin", "MARLIN")
      .Case("batched_marlin", "BATCHED_MARLIN")
      .Case("humming", "HUMMING")
      .Case("cpu", "CPU")
      .Case("xpu", "XPU")
      .Cases({"emulation", "emulation_otf"}, "EMULATION")
      .Default(backend);
}

static StringRef hummingClass(const LayerInfo &layer) {
  if (layer.batched)
    return "BatchedHummingGrouped";
  std::string gemm = StringRef(layer.deployment.hummingGemm).lower();
  return gemm == "grouped" || gemm == "grouped_contiguous" ? "HummingGrouped"
                                                           : "HummingIndexed";
}

StringRef wna16::referenceClassName(StringRef backend, const LayerInfo &layer) {
  if (backend == "humming")
    return hummingClass(layer);
  if (backend == "emulation")
    return referenceView(layer).key == WeightKey::I8 ? "Int8EmulationTriton"
                                                     : "Int4EmulationTriton";
  return llvm::StringSwitch<StringRef>(backend)
      .Case("flashinfer_trtllm", "TrtLlmMxint4ExpertsMonolithic")
      .Case("marlin", "MarlinExperts")
      .Case("batched_marlin", "BatchedMarlinExperts")
      .Case("cpu", "CPUExpertsInt4")
      .Case("xpu", "XPUExpertsWNA16")
      .Case("emulation_otf", "TritonWNA16OTF")
      .Default("");
}

llvm::ArrayRef<Constraint> wna16::absentFromReference() {
  static const Constraint table[] = {
      {"absent", [](const LayerInfo &, TargetAttr) -> Verdict {
         return Constraint::Verdict{"the reference system has no such backend",
                                    "use rules=native"};
       }}};
  return table;
}

std::string wna16::refusedConversion(StringRef backend,
                                     const LayerInfo &layer) {
  struct Row {
    StringLiteral backend;
    EnumSet<Method> methods;
    StringLiteral takes;
  };
  static constexpr Row rows[] = {
      {"humming", {Method::AutoGPTQ, Method::AutoAWQ}, "AutoGPTQ and AutoAWQ"},
      {"marlin",
       {Method::AutoGPTQ, Method::AutoAWQ, Method::CompressedTensors},
       "AutoGPTQ, AutoAWQ and compressed-tensors"},
      {"batched_marlin",
       {Method::AutoGPTQ, Method::AutoAWQ, Method::CompressedTensors},
       "AutoGPTQ, AutoAWQ and compressed-tensors"},
      {"cpu",
       {Method::AutoGPTQ, Method::AutoAWQ, Method::CompressedTensors},
       "AutoGPTQ, AutoAWQ and compressed-tensors"},
  };
  Method method = referenceView(layer).method;
  for (const Row &row : rows)
    if (row.backend == backend && !row.methods.has(method))
      return formatv("TypeError: {0} converts {1}, got {2}",
                     referenceBackend(backend), row.takes, name(method));
  bool sorted = isSorted(method, layer);
  bool marlin = backend == "marlin" || backend == "batched_marlin";
  if (marlin && method == Method::AutoAWQ &&
      (isSymmetric(layer.w13) || isSymmetric(layer.w2)))
    return formatv("ValueError: {0} needs the qzeros of both AWQ weights",
                   referenceBackend(backend));
  if (backend == "humming" && sorted)
    return "AssertionError: HUMMING takes GPTQ without desc_act";
  if (backend == "humming" && layer.routerWeightOnInput)
    return "AssertionError: HUMMING applies router weights on the output";
  if (backend == "cpu" && sorted)
    return "NotImplementedError: CPU takes GPTQ without desc_act";
  if (backend == "cpu" && layer.routerWeightOnInput)
    return "NotImplementedError: CPU applies router weights on the output";
  return {};
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

using Names = std::vector<StringRef>;

/// The backends behind a name that can be asked for; empty: no such name.
static Names namedBackends(StringRef request) {
  if (request == "emulation")
    return {"emulation_otf", "emulation"};
  for (StringRef name : {"marlin", "humming", "flashinfer_trtllm"})
    if (name == request)
      return {name};
  return {};
}

static Names automaticOrder(const ReferenceView &view, TargetAttr target) {
  if (target.getKind() == TargetKind::cpu)
    return {"cpu"};
  if (target.getKind() == TargetKind::xpu)
    return {"xpu"};
  // moe_wna16 keeps bytes, which only the on-the-fly class reads.
  if (view.method == Method::MoeWNA16)
    return {"emulation_otf"};
  return {"flashinfer_trtllm", "marlin",        "batched_marlin",
          "humming",           "emulation_otf", "emulation"};
}

/// Asks one after the other; true when one takes the layer.
static bool askInTurn(const Names &names, const LayerInfo &layer,
                      TargetAttr target, Selection &selection) {
  for (StringRef name : names) {
    const Backend *backend = BackendRegistry::get().find(name);
    if (!backend)
      continue;
    selection.candidates.push_back(
        {backend, backend->reject(layer, target, Rules::VLLM)});
    if (!selection.candidates.back().rejections.empty())
      continue;
    selection.chosen = backend;
    return true;
  }
  return false;
}

static void addSentence(std::string &message, const std::string &sentence) {
  message += (message.empty() ? "" : "; ") + sentence;
}

/// The chosen backend still has to take the method's tensors.
static void convert(const LayerInfo &layer, Selection &selection) {
  StringRef name = selection.chosen->name();
  std::string refused = refusedConversion(name, layer);
  if (refused.empty()) {
    addSentence(selection.message, formatv("{0} ({1})", referenceBackend(name),
                                           referenceClassName(name, layer)));
    return;
  }
  selection.candidates.back().rejections.push_back({"conversion", refused, ""});
  selection.chosen = nullptr;
  addSentence(selection.message, refused);
}

static void explainRejections(Selection &selection) {
  for (const Selection::Candidate &candidate : selection.candidates)
    for (const Rejection &rejection : candidate.rejections)
      addSentence(selection.message,
                  formatv("WNA16 MoE backend '{0}' does not support the "
                          "deployment configuration since {1}.",
                          referenceBackend(candidate.backend->name()),
                          rejection.reason));
}

/// Whether no class behind the name runs on the device at all.
static bool lacksDevice(const Selection &selection) {
  return llvm::all_of(selection.candidates, [](const auto &candidate) {
    return !candidate.rejections.empty() &&
           candidate.rejections.front().constraint == "device";
  });
}

Selection wna16::selectByReference(const LayerInfo &layer, TargetAttr target,
                                   StringRef request) {
  Selection selection;
  ReferenceView view = referenceView(layer);
  if (!view.error.empty()) {
    selection.message = view.error;
    return selection;
  }
  selection.message = view.warning;
  if (request != "auto" && !request.empty()) {
    Names names = namedBackends(request);
    if (names.empty()) {
      selection.message =
          formatv("ValueError: expected marlin, humming, flashinfer_trtllm, "
                  "emulation or auto, got '{0}'",
                  request);
      return selection;
    }
    if (askInTurn(names, layer, target, selection)) {
      convert(layer, selection);
      return selection;
    }
    if (!lacksDevice(selection)) {
      addSentence(
          selection.message,
          formatv("ValueError: requested backend '{0}' does not support "
                  "the quantization configuration; use auto",
                  request));
      explainRejections(selection);
      return selection;
    }
    addSentence(selection.message,
                formatv("'{0}' is not supported on this platform; falling back "
                        "to auto",
                        request));
    selection.candidates.clear();
  }
  if (askInTurn(automaticOrder(view, target), layer, target, selection)) {
    convert(layer, selection);
    return selection;
  }
  addSentence(selection.message, "NotImplementedError: no backend supports the "
                                 "deployment configuration");
  explainRejections(selection);
  return selection;
}
