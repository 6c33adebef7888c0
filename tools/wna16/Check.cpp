//===- Check.cpp - wna16 check --------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "Checkpoint/Checkpoint.h"
#include "Layout/Catalogue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace wna16;
using namespace wna16::cli;

namespace json = llvm::json;

namespace {

/// A projection and the name that people read.
struct Projection {
  llvm::StringRef name;
  const WeightSource *source;
};

llvm::SmallVector<Projection> projectionsOf(const MoELayer &layer) {
  llvm::SmallVector<Projection> list{{"router", &layer.router.weight},
                                     {"w13", &layer.experts.w13},
                                     {"w2", &layer.experts.w2}};
  if (layer.shared) {
    list.push_back({"shared w13", &layer.shared->w13});
    list.push_back({"shared w2", &layer.shared->w2});
  }
  if (layer.sharedGate)
    list.push_back({"shared gate", &*layer.sharedGate});
  return list;
}

llvm::StringRef ref(std::string_view text) {
  return {text.data(), text.size()};
}

/// The code of packed weights, the element type of dense ones.
llvm::StringRef storedAs(const WeightSpec &spec) {
  return ref(spec.code == CodeType::Dense ? name(spec.element)
                                          : name(spec.code));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string describeGroup(const WeightSpec &spec) {
  if (spec.code == CodeType::Dense)
    return "-";
  return spec.group < 0 ? "channel" : std::to_string(spec.group);
}

void printLayer(const MoELayer &layer, llvm::raw_ostream &os) {
  os << llvm::formatv(
      "\nlayer {0} ({1}): {2} experts, top {3}, hidden {4}, intermediate {5}\n",
      layer.index, layer.prefix, layer.experts.w13.spec.experts,
      layer.router.topK, layer.hidden, layer.intermediate);
  const char *row = "  {0,-12} {1,-8} {2,-8} {3,-10} {4,-8} {5}\n";
  os << llvm::formatv(row, "weight", "stored", "group", "zeros", "g_idx",
                      "format");
  for (const Projection &projection : projectionsOf(layer)) {
    const WeightSpec &spec = projection.source->spec;
    os << llvm::formatv(row, projection.name, storedAs(spec),
                        describeGroup(spec), ref(name(spec.zeros)),
                        ref(name(spec.actOrder)), projection.source->format);
  }
}

int printText(const Checkpoint &checkpoint, llvm::raw_ostream &os) {
  os << checkpoint.directory() << ": " << checkpoint.modelType() << ", "
     << ref(name(checkpoint.dtype())) << ", " << checkpoint.method() << "\n";
  for (const MoELayer &layer : checkpoint.layers())
    printLayer(layer, os);
  int faults = 0;
  os << "\n";
  for (const Finding &finding : checkpoint.findings()) {
    faults += finding.fault;
    os << (finding.fault ? "fault: " : "note: ") << finding.tensor << ": "
       << finding.text << "\n";
  }
  auto counted = [](size_t number, llvm::StringRef what) {
    return llvm::formatv("{0} {1}{2}", number, what, number == 1 ? "" : "s")
        .str();
  };
  os << counted(checkpoint.layers().size(), "MoE layer") << ", "
     << counted(faults, "fault") << "\n";
  return faults;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

json::Object describe(const Projection &projection) {
  const WeightSpec &spec = projection.source->spec;
  json::Array tensors;
  for (const TensorPattern &part : projection.source->parts)
    tensors.push_back(part.pattern);
  return json::Object{{"weight", projection.name},
                      {"format", projection.source->format},
                      {"stored", storedAs(spec)},
                      {"bits", spec.bits()},
                      {"group", spec.group},
                      {"zeros", ref(name(spec.zeros))},
                      {"act_order", ref(name(spec.actOrder))},
                      {"input", spec.input},
                      {"output", spec.rows()},
                      {"tensors", std::move(tensors)}};
}

int printJson(const Checkpoint &checkpoint, llvm::raw_ostream &os) {
  json::Array layers, findings;
  for (const MoELayer &layer : checkpoint.layers()) {
    json::Array weights;
    for (const Projection &projection : projectionsOf(layer))
      weights.push_back(describe(projection));
    layers.push_back(json::Object{{"index", layer.index},
                                  {"prefix", layer.prefix},
                                  {"experts", layer.experts.w13.spec.experts},
                                  {"top_k", layer.router.topK},
                                  {"hidden", layer.hidden},
                                  {"intermediate", layer.intermediate},
                                  {"weights", std::move(weights)}});
  }
  int faults = 0;
  for (const Finding &finding : checkpoint.findings()) {
    faults += finding.fault;
    findings.push_back(json::Object{{"fault", finding.fault},
                                    {"tensor", finding.tensor},
                                    {"text", finding.text}});
  }
  os << llvm::formatv("{0:2}\n", json::Value(json::Object{
                                     {"directory", checkpoint.directory()},
                                     {"model", checkpoint.modelType()},
                                     {"dtype", ref(name(checkpoint.dtype()))},
                                     {"method", checkpoint.method()},
                                     {"layers", std::move(layers)},
                                     {"findings", std::move(findings)},
                                     {"faults", faults}}));
  return faults;
}

Result<int> run(const Arguments &arguments) {
  OpenOptions options;
  options.audit = true;
  Result<Checkpoint> checkpoint = Checkpoint::open(arguments.input(), options);
  if (!checkpoint)
    return checkpoint.takeFailure();
  int faults = arguments.has("--json") ? printJson(*checkpoint, llvm::outs())
                                       : printText(*checkpoint, llvm::outs());
  return faults ? 1 : 0;
}

constexpr Option kOptions[] = {
    {"--json", "", "print JSON"},
};

} // namespace

const Command cli::checkCommand = {
    "check",
    "DIR",
    "say what a checkpoint really holds, and what is wrong with it",
    "DIR is a Hugging Face directory. For every weight of every MoE layer: "
    "how\n"
    "it is stored, its groups and its zero points, also where configuration "
    "and\n"
    "data disagree; then missing and unused tensors and bad scales. The "
    "status\n"
    "is 1 when there is a fault.\n",
    kOptions,
    run,
};
