//===- Selection.cpp - Choose a backend, and say why ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace wna16;
using llvm::formatv;
using llvm::StringRef;

/// The order of a platform; a backend that none of them lists comes last.
/// Emulation becomes loops of the host, which cannot read a device's buffers,
/// so that there it has to be asked for by name.
static std::vector<const Backend *> automaticOrder(TargetKind kind) {
  struct Order {
    TargetKind kind;
    std::vector<StringRef> names;
  };
  static const Order orders[] = {
      {TargetKind::cuda,
       {"flashinfer_trtllm", "marlin", "batched_marlin", "humming", "cuda"}},
      {TargetKind::cpu, {"cpu", "emulation", "emulation_otf"}},
      {TargetKind::xpu, {"xpu"}},
  };
  std::vector<const Backend *> result;
  const BackendRegistry &registry = BackendRegistry::get();
  for (const Order &order : orders)
    if (order.kind == kind)
      for (StringRef name : order.names)
        if (const Backend *backend = registry.find(name))
          result.push_back(backend);
  for (const Backend *backend : registry.all())
    if (llvm::none_of(orders, [&](const Order &order) {
          return llvm::is_contained(order.names, backend->name());
        }))
      result.push_back(backend);
  return result;
}

static std::string namesOfAll() {
  std::string names;
  for (const Backend *backend : BackendRegistry::get().all())
    names += (names.empty() ? "" : ", ") + backend->name().str();
  return names;
}

static std::string describe(const Selection::Candidate &candidate) {
  std::string text;
  for (const Rejection &rejection : candidate.rejections) {
    text += (text.empty() ? "" : "; ") + rejection.constraint + ": " +
            rejection.reason;
    if (!rejection.remedy.empty())
      text += " (" + rejection.remedy + ")";
  }
  return text;
}

/// The backends of "name" or "name,name", in that order; empty, with a message,
/// when one is unknown.
static std::vector<const Backend *> namedOrder(StringRef request,
                                               std::string &message) {
  std::vector<const Backend *> order;
  for (StringRef name : llvm::split(request, ',')) {
    const Backend *backend = BackendRegistry::get().find(name);
    if (!backend) {
      message = formatv("expected auto, or one or several of {0}, got backend "
                        "'{1}'",
                        namesOfAll(), name);
      return {};
    }
    order.push_back(backend);
  }
  return order;
}

Failure wna16::checkBackends(StringRef request) {
  std::string message;
  return request == "auto" || !namedOrder(request, message).empty()
             ? ok()
             : fail(message);
}

/// The first of `order` that takes the layer.
static Selection selectFirst(const LayerInfo &layer, TargetAttr target,
                             const std::vector<const Backend *> &order) {
  Selection selection;
  for (const Backend *backend : order) {
    selection.candidates.push_back(
        {backend, backend->reject(layer, target, Rules::Native)});
    // The others are asked as well, for those who want to know.
    Selection::Candidate &candidate = selection.candidates.back();
    candidate.reached = !selection.chosen;
    if (candidate.reached && candidate.rejections.empty())
      selection.chosen = backend;
  }
  return selection;
}

static std::string explainFailure(const Selection &selection, TargetAttr target,
                                  StringRef request) {
  if (request != "auto" && selection.candidates.size() == 1)
    return formatv("backend '{0}' does not take the layer: {1}", request,
                   describe(selection.candidates.front()));
  std::string text =
      request == "auto"
          ? formatv("no backend takes the layer on {0}",
                    stringifyTargetKind(target.getKind()))
                .str()
          : formatv("none of '{0}' takes the layer", request).str();
  for (const Selection::Candidate &candidate : selection.candidates)
    text += formatv("; {0}: {1}", candidate.backend->name(),
                    candidate.rejections.front().reason);
  return text;
}

Selection wna16::selectBackend(const LayerInfo &layer, TargetAttr target,
                               StringRef request, Rules rules) {
  if (!target) {
    Selection selection;
    selection.message = "expected a target to select for";
    return selection;
  }
  if (rules == Rules::VLLM)
    return selectByReference(layer, target, request);
  if (request.empty())
    request = "auto";
  std::string message;
  std::vector<const Backend *> order = request == "auto"
                                           ? automaticOrder(target.getKind())
                                           : namedOrder(request, message);
  Selection selection = selectFirst(layer, target, order);
  if (!selection.chosen)
    selection.message =
        order.empty() ? message : explainFailure(selection, target, request);
  return selection;
}
