//===- Registry.cpp - Backends by name ------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backends.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace wna16;

Backend::~Backend() = default;

std::vector<Rejection> Backend::reject(const LayerInfo &layer,
                                       TargetAttr target, Rules rules) const {
  LayerInfo asked = layer;
  asked.capability = target.getCapability();
  std::vector<Rejection> rejections;
  for (const Constraint &constraint : constraints(rules)) {
    std::optional<Constraint::Verdict> verdict =
        constraint.check(asked, target);
    if (!verdict)
      continue;
    rejections.push_back(
        {constraint.name.str(), verdict->reason, verdict->remedy});
    if (rules == Rules::VLLM)
      break;
  }
  return rejections;
}

BackendRegistry &BackendRegistry::get() {
  static BackendRegistry registry;
  return registry;
}

BackendRegistry::BackendRegistry() {
  for (auto create : {createFlashInferTRTLLM, createMarlin, createBatchedMarlin,
                      createHumming, createCUDA, createCPU, createXPU,
                      createEmulation, createEmulationOnTheFly})
    add(create());
}

bool BackendRegistry::add(std::unique_ptr<Backend> backend) {
  if (!backend || find(backend->name()))
    return false;
  backends.push_back(std::move(backend));
  return true;
}

const Backend *BackendRegistry::find(llvm::StringRef name) const {
  for (const std::unique_ptr<Backend> &backend : backends)
    if (backend->name() == name)
      return backend.get();
  return nullptr;
}

std::vector<const Backend *> BackendRegistry::all() const {
  std::vector<const Backend *> result;
  for (const std::unique_ptr<Backend> &backend : backends)
    result.push_back(backend.get());
  return result;
}

Failure wna16::checkLibraries(TargetAttr target) {
  llvm::SmallVector<llvm::StringRef> known;
  for (const Backend *backend : BackendRegistry::get().all())
    if (!backend->library().empty())
      known.push_back(backend->library());
  for (mlir::StringAttr library : target.getLibraries())
    if (!llvm::is_contained(known, library.getValue()))
      return fail("expected libraries that a backend asks for (" +
                  llvm::join(known, ", ") + "), got '" + library.str() + "'");
  return ok();
}

std::string wna16::runtimeSymbol(TargetAttr target, llvm::StringRef operation) {
  return ("wna16_" + stringifyTargetKind(target.getKind()) + "_" + operation)
      .str();
}
