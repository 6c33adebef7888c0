//===- Needs.cpp - What our kernels ask of a layer ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Needs.h"
#include "Preparation.h"
#include "Reference.h"

#include "Layout/Move.h"

#include "llvm/Support/FormatVariadic.h"

using namespace wna16;
using llvm::formatv;

namespace {

constexpr ScalarType kScalars[] = {ScalarType::F16, ScalarType::BF16,
                                   ScalarType::F32};

Verdict reject(std::string reason, std::string remedy = {}) {
  return Constraint::Verdict{std::move(reason), std::move(remedy)};
}

llvm::StringRef text(std::string_view view) {
  return {view.data(), view.size()};
}

/// "f16, bf16" of the values of `all` that are in `set`.
template <typename E, size_t Size>
std::string spelled(const EnumSet<E> &set, const E (&all)[Size]) {
  std::string result;
  for (E value : all)
    if (set.has(value))
      result += (result.empty() ? "" : ", ") + std::string(name(value));
  return result;
}

/// The first rejection of the packed weights, w13 before w2.
template <typename Ask>
Verdict ofPacked(const LayerInfo &layer, Ask ask) {
  for (auto [spec, label] : {std::pair(&layer.w13, llvm::StringRef("w13")),
                             std::pair(&layer.w2, llvm::StringRef("w2"))})
    if (spec->code != CodeType::Dense)
      if (Verdict verdict = ask(*spec, label))
        return verdict;
  return std::nullopt;
}

bool soundWeight(const WeightSpec &weight) {
  return weight.layout && weight.experts > 0 && weight.input > 0 &&
         weight.output > 0 && (weight.halves == 1 || weight.halves == 2) &&
         (weight.code == CodeType::Dense || weight.group == -1 ||
          weight.group > 0);
}

bool takesBits(const Needs &needs, int bits) {
  if (bits == 4)
    return needs.codes.has(CodeType::U4) || needs.codes.has(CodeType::U4B8) ||
           needs.codes.has(CodeType::S4);
  return bits == 8 &&
         (needs.codes.has(CodeType::U8) || needs.codes.has(CodeType::U8B128));
}

Verdict multipleOf(llvm::StringRef what, int64_t value, int64_t multiple) {
  if (multiple == 0 || value % multiple == 0)
    return std::nullopt;
  return reject(formatv("expected {0} ({1}) to be a multiple of {2}", what,
                        value, multiple),
                formatv("pad to {0}", roundUp(value, multiple)));
}

} // namespace

bool wna16::isSound(const LayerInfo &layer) {
  return soundWeight(layer.w13) && soundWeight(layer.w2) &&
         layer.w13.experts == layer.w2.experts &&
         layer.w13.output == layer.w2.input;
}

Verdict wna16::checkWeights(const Needs &, const LayerInfo &layer, TargetAttr) {
  if (isSound(layer))
    return std::nullopt;
  return reject(
      formatv("expected w13 [{0}, {1}, {2}, {3}] with group {4} and w2 [{5}, "
              "{6}, {7}] with group {8} to have a layout, positive extents and "
              "groups, and the same experts and intermediate size",
              layer.w13.experts, layer.w13.input, layer.w13.halves,
              layer.w13.output, layer.w13.group, layer.w2.experts,
              layer.w2.input, layer.w2.output, layer.w2.group),
      "give -1 as the group of channel scales");
}

Verdict wna16::checkTargetKind(const Needs &needs, const LayerInfo &,
                               TargetAttr target) {
  if (needs.anyTarget || target.getKind() == needs.kind)
    return std::nullopt;
  return reject(formatv("expected a {0} target, got {1}",
                        stringifyTargetKind(needs.kind),
                        stringifyTargetKind(target.getKind())),
                formatv("compile for {0}", stringifyTargetKind(needs.kind)));
}

Verdict wna16::checkTargetCapability(const Needs &needs, const LayerInfo &layer,
                                     TargetAttr target) {
  if (target.getKind() != TargetKind::cuda)
    return std::nullopt;
  int64_t capability = target.getCapability();
  // fp8 operands came with sm_89.
  int64_t least = layer.activationType == ActivationType::fp8 &&
                          needs.activationTypes.has(ActivationType::fp8)
                      ? 89
                      : needs.minCapability;
  int64_t most = needs.maxCapability;
  if (most ? capability >= least && capability <= most
           : capability >= least || capability == 0)
    return std::nullopt;
  std::string found = capability ? formatv("sm_{0}", capability).str()
                                 : std::string("an unknown capability");
  if (most)
    return reject(
        formatv("expected sm_{0} to sm_{1}, got {2}", least, most, found),
        formatv("compile for cuda:sm_{0}", least));
  return reject(formatv("expected at least sm_{0}, got {1}", least, found),
                formatv("compile for cuda:sm_{0}", least));
}

Verdict wna16::checkTargetLibrary(const Needs &needs, const LayerInfo &,
                                  TargetAttr target) {
  if (needs.library.empty() || target.hasLibrary(needs.library))
    return std::nullopt;
  return reject(
      formatv("expected the library {0} on the target", needs.library),
      formatv("add libraries = [\"{0}\"] to the target", needs.library));
}

Verdict wna16::checkDenseWeight(const Needs &needs, const LayerInfo &layer,
                                TargetAttr) {
  std::string known = spelled(needs.dense, kScalars);
  for (auto [spec, label] :
       {std::pair(&layer.w13, "w13"), std::pair(&layer.w2, "w2")}) {
    if (spec->code != CodeType::Dense || needs.dense.has(spec->element))
      continue;
    llvm::StringRef found = text(name(spec->element));
    if (known.empty())
      return reject(formatv("expected packed weights, got {0} of dense {1}",
                            label, found),
                    "quantise it");
    return reject(formatv("expected dense weights of {0}, got {1} of dense {2}",
                          known, label, found),
                  "convert it to " + known);
  }
  return std::nullopt;
}

Verdict wna16::checkWeightBits(const Needs &needs, const LayerInfo &layer,
                               TargetAttr) {
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    if (takesBits(needs, w.bits()))
      return Verdict();
    return reject(
        formatv("expected 4-bit weights, got bits={0} of {1}", w.bits(), label),
        "quantise to 4 bits");
  });
}

Verdict wna16::checkWeightCode(const Needs &needs, const LayerInfo &layer,
                               TargetAttr) {
  static constexpr CodeType all[] = {CodeType::U4,     CodeType::U4B8,
                                     CodeType::S4,     CodeType::U8,
                                     CodeType::U8B128, CodeType::S8};
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    bool scalesMatch = w.scale != ScalarType::I16;
    if (!takesBits(needs, w.bits()) || (needs.codes.has(w.code) && scalesMatch))
      return Verdict();
    return reject(formatv("expected codes {0} of {1}, got {2}{3}",
                          spelled(needs.codes, all), label, text(name(w.code)),
                          scalesMatch ? "" : " with scales folded to i16"),
                  "start from the checkpoint's weights");
  });
}

Verdict wna16::checkZeroPoints(const Needs &needs, const LayerInfo &layer,
                               TargetAttr) {
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    // A refused code says enough.
    if (w.zeros == ZeroPoints::None || !needs.codes.has(unsignedCode(w.code)) ||
        needs.zeroPoints.has(w.code))
      return Verdict();
    return reject(formatv("expected {0} without zero points, got bits={1}, "
                          "group={2} with zero points ({3})",
                          label, w.bits(), w.group, text(name(w.zeros))),
                  "quantise symmetrically");
  });
}

Verdict wna16::checkGroupSize(const Needs &needs, const LayerInfo &layer,
                              TargetAttr) {
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    if (needs.onlyGroup && w.group != needs.onlyGroup)
      return reject(
          formatv("expected group {0} of {1}, got {2}", needs.onlyGroup, label,
                  w.group),
          w.group > 0 && w.group % needs.onlyGroup == 0
              ? formatv("regroup to {0}", needs.onlyGroup).str()
              : formatv("quantise with group {0}", needs.onlyGroup).str());
    if (needs.groupMultiple && w.group != -1 &&
        w.group % needs.groupMultiple != 0)
      return reject(formatv("expected group ({0}) of {1} to be -1 or a "
                            "multiple of {2}",
                            w.group, label, needs.groupMultiple),
                    formatv("quantise with group {0}",
                            roundUp(w.group, needs.groupMultiple)));
    return Verdict();
  });
}

Verdict wna16::checkGroupDivides(const Needs &needs, const LayerInfo &layer,
                                 TargetAttr) {
  const WeightSpec &w = layer.w13;
  if (!needs.wholeGroups || w.code == CodeType::Dense || w.group <= 0 ||
      w.input % w.group == 0)
    return std::nullopt;
  return reject(formatv("expected w13's input ({0}) to be a multiple of its "
                        "group {1}",
                        w.input, w.group),
                formatv("pad to {0}, or take a group that divides {1}",
                        roundUp(w.input, w.group), w.input));
}

Verdict wna16::checkActOrder(const Needs &needs, const LayerInfo &layer,
                             TargetAttr) {
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    if (w.actOrder == ActOrder::None)
      return Verdict();
    if (!needs.actOrder)
      return reject(formatv("expected {0} without act-order, got {1}", label,
                            text(name(w.actOrder))),
                    "quantise with desc_act = false");
    if (layer.activationType != ActivationType::a16)
      return reject(
          formatv("expected 16-bit activations with act-order of {0}, got {1}",
                  label, stringifyActivationType(layer.activationType)),
          "use activation_type a16");
    auto which = label == "w13" ? Projection::W13 : Projection::W2;
    if (w.keptGroups && isSound(layer) &&
        needs.prepare(layer, w, which).actOrder == ActOrder::Sorted)
      return reject(
          formatv("expected whole act-order groups of {0} to sort by, got {1} "
                  "inputs of {2} groups of {3}",
                  label, w.input, w.groups(), w.group),
          "keep all inputs on one rank");
    return Verdict();
  });
}

Verdict wna16::checkScaleType(const Needs &needs, const LayerInfo &layer,
                              TargetAttr) {
  return ofPacked(layer, [&](const WeightSpec &w, llvm::StringRef label) {
    // Folded scales are a matter of the code.
    if (needs.scales.has(w.scale) || w.scale == ScalarType::I16)
      return Verdict();
    return reject(
        formatv("expected scales {0}, got {1} scales of {2} with {3} "
                "activations",
                spelled(needs.scales, kScalars), text(name(w.scale)), label,
                text(name(layer.element))),
        formatv("convert the scales to {0}", needs.scales.has(layer.element)
                                                 ? text(name(layer.element))
                                                 : llvm::StringRef("bf16")));
  });
}

Verdict wna16::checkElementType(const Needs &needs, const LayerInfo &layer,
                                TargetAttr) {
  if (needs.elements.has(layer.element))
    return std::nullopt;
  const WeightSpec &packed =
      layer.w13.code != CodeType::Dense ? layer.w13 : layer.w2;
  std::string known = spelled(needs.elements, kScalars);
  return reject(formatv("expected activations {0}, got {1} activations with "
                        "{2} scales",
                        known, text(name(layer.element)),
                        text(name(packed.scale))),
                "run the layer in " + known);
}

Verdict wna16::checkGate(const Needs &needs, const LayerInfo &layer,
                         TargetAttr) {
  static constexpr Activation all[] = {Activation::silu, Activation::gelu,
                                       Activation::gelu_tanh,
                                       Activation::relu2};
  if (layer.gated ||
      llvm::any_of(all, [&](Activation a) { return needs.ungated.has(a); }))
    return std::nullopt;
  return reject("expected gated experts, got w13 of 1 half");
}

Verdict wna16::checkActivation(const Needs &needs, const LayerInfo &layer,
                               TargetAttr target) {
  if (checkGate(needs, layer, target))
    return std::nullopt;
  const EnumSet<Activation> &set = layer.gated ? needs.gated : needs.ungated;
  if (set.has(layer.activation))
    return std::nullopt;
  std::string known;
  for (uint64_t i = 0; i <= getMaxEnumValForActivation(); ++i)
    if (set.has(static_cast<Activation>(i)))
      known += (known.empty() ? "" : ", ") +
               stringifyActivation(static_cast<Activation>(i)).str();
  return reject(formatv("expected activation {0}, got {1}{2}", known,
                        stringifyActivation(layer.activation),
                        layer.gated ? "" : " without a gate"));
}

Verdict wna16::checkActivationLimit(const Needs &needs, const LayerInfo &layer,
                                    TargetAttr) {
  if (needs.limit || !layer.limit)
    return std::nullopt;
  return reject(
      formatv("expected no limit of the activation, got {0}", *layer.limit));
}

Verdict wna16::checkActivationType(const Needs &needs, const LayerInfo &layer,
                                   TargetAttr) {
  if (!needs.activationTypes.has(layer.activationType))
    return reject(formatv("expected 16-bit activations, got {0}",
                          stringifyActivationType(layer.activationType)),
                  "use activation_type a16");
  if (layer.activationType != ActivationType::fp8)
    return std::nullopt;
  return ofPacked(layer, [](const WeightSpec &w, llvm::StringRef label) {
    if (w.bits() == 4)
      return Verdict();
    return reject(formatv("expected 4-bit weights with fp8 activations, got "
                          "bits={0} of {1}",
                          w.bits(), label),
                  "use activation_type a16 or int8");
  });
}

Verdict wna16::checkBias(const Needs &needs, const LayerInfo &layer,
                         TargetAttr) {
  if (needs.bias || !layer.hasBias)
    return std::nullopt;
  return reject("expected experts without bias");
}

Verdict wna16::checkExpertMap(const Needs &needs, const LayerInfo &layer,
                              TargetAttr) {
  if (needs.expertMap || !layer.hasExpertMap)
    return std::nullopt;
  return reject(formatv("expected no expert map, got {0} of {1} experts here",
                        layer.experts, layer.globalExperts),
                "keep all experts on the device");
}

Verdict wna16::checkTokenLayout(const Needs &needs, const LayerInfo &layer,
                                TargetAttr) {
  if (layer.batched ? needs.batchedTokens : needs.standardTokens)
    return std::nullopt;
  return layer.batched ? reject("expected tokens [M, K], got batched ones "
                                "[E, T, K]",
                                "use a batched backend")
                       : reject("expected batched tokens [E, T, K], got [M, K]",
                                "use a backend of the standard layout");
}

Verdict wna16::checkWeightOnInput(const Needs &needs, const LayerInfo &layer,
                                  TargetAttr) {
  if (needs.routerWeightOnInput || !layer.routerWeightOnInput)
    return std::nullopt;
  return reject("expected the routing weight on the output, got "
                "router_weight_on_input");
}

/// Kernels that route know some methods, and nothing that comes on top.
Verdict wna16::checkRouting(const Needs &needs, const LayerInfo &layer,
                            TargetAttr) {
  if (!needs.routesInside)
    return std::nullopt;
  RoutingMethod method = routingMethod(layer);
  std::string known = "the kernel routes by Renormalize, DeepSeekV3 or Llama4";
  if (method == RoutingMethod::Unspecified || method == RoutingMethod::Default)
    return reject(formatv("{0}, got routing method {1}", known, name(method)));
  if (layer.routing->groups > 1 && method != RoutingMethod::DeepSeekV3)
    return reject(formatv("{0}, got routing method {1} with {2} groups", known,
                          name(method), layer.routing->groups));
  if (layer.routing->scaling != 1.0)
    return reject(formatv("{0} without scaling, got routing method {1} with "
                          "scaling {2}",
                          known, name(method), layer.routing->scaling));
  return std::nullopt;
}

Verdict wna16::checkRouterLogits(const Needs &needs, const LayerInfo &layer,
                                 TargetAttr target) {
  if (!needs.routesInside || checkRouting(needs, layer, target))
    return std::nullopt;
  RoutingMethod method = routingMethod(layer);
  bool single = layer.routing->logits == ScalarType::F32;
  if (!single || method == RoutingMethod::DeepSeekV3)
    return std::nullopt;
  return reject(formatv("expected router logits f16 or bf16 with routing "
                        "method {0}, got f32",
                        name(method)),
                "compute the logits in 16 bits");
}

Verdict wna16::checkBatchInvariant(const Needs &needs, const LayerInfo &layer,
                                   TargetAttr) {
  if (needs.batchInvariant || !layer.batchInvariant)
    return std::nullopt;
  return reject("the order of summation depends on the batch, got "
                "batch_invariant");
}

Verdict wna16::checkHidden(const Needs &needs, const LayerInfo &layer,
                           TargetAttr) {
  return multipleOf("hidden size", layer.hidden, needs.hiddenMultiple);
}

/// Sorted rows cannot be padded: their permutation names no source.
Verdict wna16::checkIntermediate(const Needs &needs, const LayerInfo &layer,
                                 TargetAttr) {
  const WeightSpec &w2 = layer.w2;
  if (!needs.intermediateMultiple || w2.actOrder == ActOrder::None)
    return std::nullopt;
  int64_t multiple =
      leastMultiple(needs.intermediateMultiple, w2.group > 0 ? w2.group : 1);
  return multipleOf("intermediate size with act-order", w2.input, multiple);
}

Verdict wna16::checkExperts(const Needs &needs, const LayerInfo &layer,
                            TargetAttr) {
  if (!needs.maxExperts || layer.globalExperts <= needs.maxExperts)
    return std::nullopt;
  return reject(formatv("expected at most {0} experts, got {1}",
                        needs.maxExperts, layer.globalExperts));
}

Verdict wna16::checkTopK(const Needs &needs, const LayerInfo &layer,
                         TargetAttr) {
  if (!needs.maxTopK || layer.topK <= needs.maxTopK)
    return std::nullopt;
  return reject(formatv("expected at most {0} experts a token, got {1}",
                        needs.maxTopK, layer.topK));
}

/// The layout's own rules, asked of what the backend would make of the weights
/// when nothing else stands in the way.
Verdict wna16::checkStorage(const Needs &needs, const LayerInfo &layer,
                            TargetAttr target) {
  static constexpr decltype(&checkStorage) earlier[] = {
      checkWeights,    checkDenseWeight, checkWeightBits,   checkWeightCode,
      checkZeroPoints, checkGroupSize,   checkGroupDivides, checkActOrder,
      checkScaleType,  checkElementType, checkHidden,       checkIntermediate};
  for (auto check : earlier)
    if (check(needs, layer, target))
      return std::nullopt;
  for (auto [spec, which, label] :
       {std::tuple(&layer.w13, Projection::W13, "w13"),
        std::tuple(&layer.w2, Projection::W2, "w2")}) {
    WeightSpec wanted = needs.prepare(layer, *spec, which);
    // Dequantisation is no move: there both sides only have to be storable.
    bool dequantized =
        spec->code != CodeType::Dense && wanted.code == CodeType::Dense;
    Failure bad = checkMove(*spec, dequantized ? *spec : wanted);
    if (!bad && dequantized)
      bad = checkDequantize(*spec);
    if (!bad && dequantized)
      if (Result<std::vector<StoredPart>> parts = storageOf(wanted); !parts)
        bad = parts.takeFailure();
    if (!bad)
      continue;
    auto [reason, remedy] = llvm::StringRef(bad.message).split("; ");
    return reject(formatv("{0}: {1}", label, reason), remedy.str());
  }
  return std::nullopt;
}
