//===- Explain.cpp - Selection tables for people and programs -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Explain.h"

#include "Layout/Catalogue.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace wna16;
using llvm::formatv;
using llvm::StringRef;

namespace {

StringRef view(std::string_view text) { return {text.data(), text.size()}; }

/// "u4b8 group 128 marlin [8, 256, 2, 128]".
std::string describe(const WeightSpec &spec) {
  std::string text =
      spec.code == CodeType::Dense
          ? view(name(spec.element)).str()
          : formatv("{0} group {1}", view(name(spec.code)), spec.group).str();
  if (spec.zeros != ZeroPoints::None)
    text += " with zero points";
  if (spec.actOrder != ActOrder::None)
    text += formatv(" act-order {0}", view(name(spec.actOrder)));
  if (spec.layout)
    text += formatv(" {0}", view(spec.layout->name));
  return text + formatv(" [{0}, {1}, {2}, {3}]", spec.experts, spec.input,
                        spec.halves, spec.output)
                    .str();
}

std::string describe(Roundings roundings) {
  if (!roundings.weights && !roundings.slots)
    return "none";
  if (roundings.weights && roundings.slots)
    return "weights, slots";
  return roundings.weights ? "weights" : "slots";
}

std::string targetText(TargetAttr target) {
  std::string text = stringifyTargetKind(target.getKind()).str();
  if (target.getCapability())
    text += formatv(":sm_{0}", target.getCapability());
  return text;
}

/// What the chosen backend makes of a layer's weights.
struct Prepared {
  WeightSpec w13, w2;
  Prepared(const ExplainedLayer &entry, TargetAttr target) {
    LayerInfo layer = entry.layer;
    layer.capability = target.getCapability();
    const Backend &backend = *entry.selection.chosen;
    w13 = backend.prepared(layer, layer.w13, Projection::W13);
    w2 = backend.prepared(layer, layer.w2, Projection::W2);
  }
};

void explainChosen(const ExplainedLayer &entry, TargetAttr target,
                   llvm::raw_ostream &os) {
  const Backend *chosen = entry.selection.chosen;
  if (!chosen) {
    os << "  chosen: none\n";
    return;
  }
  Prepared prepared(entry, target);
  os << "  chosen: " << chosen->name() << " (" << chosen->summary() << ")\n"
     << "    w13: " << describe(entry.layer.w13) << " -> "
     << describe(prepared.w13) << "\n"
     << "    w2:  " << describe(entry.layer.w2) << " -> "
     << describe(prepared.w2) << "\n"
     << "    extra roundings: " << describe(chosen->roundings()) << "\n";
}

/// A line for each unmet constraint, and for a backend that would do.
void explainCandidate(const Selection::Candidate &candidate,
                      llvm::raw_ostream &os) {
  StringRef name = candidate.backend->name();
  if (!candidate.reached && candidate.rejections.empty())
    os << "  not reached: " << name << "  takes the layer too\n";
  for (const Rejection &rejection : candidate.rejections) {
    os << (candidate.reached ? "  rejected: " : "  not reached: ") << name
       << "  " << rejection.constraint << ": " << rejection.reason;
    if (!rejection.remedy.empty())
      os << "; " << rejection.remedy;
    os << "\n";
  }
}

} // namespace

void wna16::explainAsText(llvm::ArrayRef<ExplainedLayer> layers,
                          TargetAttr target, llvm::raw_ostream &os) {
  for (const ExplainedLayer &entry : layers) {
    os << entry.name << " on " << targetText(target) << "\n";
    explainChosen(entry, target, os);
    if (!entry.selection.message.empty())
      os << "  note: " << entry.selection.message << "\n";
    for (const Selection::Candidate &candidate : entry.selection.candidates)
      explainCandidate(candidate, os);
  }
}

static void writeCandidates(const Selection &selection,
                            llvm::json::OStream &json) {
  for (const Selection::Candidate &candidate : selection.candidates)
    json.object([&] {
      json.attribute("backend", candidate.backend->name());
      json.attribute("reached", candidate.reached);
      json.attributeArray("rejections", [&] {
        for (const Rejection &rejection : candidate.rejections)
          json.object([&] {
            json.attribute("constraint", rejection.constraint);
            json.attribute("reason", rejection.reason);
            json.attribute("remedy", rejection.remedy);
          });
      });
    });
}

static void writeLayer(const ExplainedLayer &entry, TargetAttr target,
                       llvm::json::OStream &json) {
  const Backend *chosen = entry.selection.chosen;
  json.attribute("name", entry.name);
  json.attributeBegin("backend");
  if (chosen)
    json.value(chosen->name());
  else
    json.value(nullptr);
  json.attributeEnd();
  if (chosen) {
    Prepared prepared(entry, target);
    json.attribute("w13", describe(prepared.w13));
    json.attribute("w2", describe(prepared.w2));
    json.attribute("rounds", describe(chosen->roundings()));
  }
  if (!entry.selection.message.empty())
    json.attribute("message", entry.selection.message);
  json.attributeArray("candidates",
                      [&] { writeCandidates(entry.selection, json); });
}

void wna16::explainAsJson(llvm::ArrayRef<ExplainedLayer> layers,
                          TargetAttr target, llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("target", targetText(target));
    json.attributeArray("layers", [&] {
      for (const ExplainedLayer &entry : layers)
        json.object([&] { writeLayer(entry, target, json); });
    });
  });
  os << "\n";
}
