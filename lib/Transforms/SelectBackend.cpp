//===- SelectBackend.cpp - Choose a backend for each layer ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Explain.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/FileSystem.h"

namespace wna16 {
#define GEN_PASS_DEF_SELECTBACKEND
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

struct SelectBackend : wna16::impl::SelectBackendBase<SelectBackend> {
  using SelectBackendBase::SelectBackendBase;

  void runOnOperation() override {
    TargetAttr machine = resolveTarget();
    std::optional<Rules> ruleSet = resolveRules();
    Result<LayerInfo::Deployment> around = parseDeployment(deployment);
    if (!around)
      getOperation()->emitError() << around.message();
    if (!machine || !ruleSet || !around)
      return signalPassFailure();
    std::vector<ExplainedLayer> explained;
    // A layer without a backend does not keep the others from being explained.
    bool all = true;
    getOperation()->walk([&](FusedExpertsOp op) {
      LayerInfo layer = describeLayer(op);
      layer.deployment = *around;
      all &= select(op, layer, machine, *ruleSet, explained);
    });
    if (failed(writeTable(explained, machine)) || !all)
      return signalPassFailure();
    setSimpleOps();
  }

private:
  /// The option wins over the module's target; the later passes find either as
  /// the module's attribute.
  TargetAttr resolveTarget() {
    TargetAttr machine;
    if (target.empty()) {
      machine = getTarget(getOperation());
    } else {
      std::string error;
      machine = TargetAttr::parse(&getContext(), target, error);
      if (!machine)
        getOperation()->emitError() << error;
    }
    if (!machine)
      return {};
    if (Failure failure = checkLibraries(machine)) {
      getOperation()->emitError() << failure.message;
      return {};
    }
    getOperation()->setAttr(kTargetAttrName, machine);
    return machine;
  }

  std::optional<Rules> resolveRules() {
    if (rules == "native")
      return Rules::Native;
    if (rules == "vllm")
      return Rules::VLLM;
    getOperation()->emitError()
        << "expected rules native or vllm, got '" << rules << "'";
    return std::nullopt;
  }

  bool select(FusedExpertsOp op, const LayerInfo &layer, TargetAttr machine,
              Rules ruleSet, std::vector<ExplainedLayer> &explained) {
    StringRef request = op.getBackend().value_or(backend);
    Selection selection = selectBackend(layer, machine, request, ruleSet);
    explained.push_back({layerName(op), layer, selection});
    emitRemarks(op, selection);
    if (!selection.chosen) {
      InFlightDiagnostic error = op.emitOpError() << selection.message;
      for (const Selection::Candidate &candidate : selection.candidates)
        for (const Rejection &rejection : candidate.rejections)
          error.attachNote() << describe(*candidate.backend, rejection);
      return false;
    }
    op.setBackend(selection.chosen->name());
    return true;
  }

  static std::string describe(const Backend &backend,
                              const Rejection &rejection) {
    std::string text =
        (backend.name() + ": " + rejection.constraint + ": " + rejection.reason)
            .str();
    return rejection.remedy.empty() ? text : text + "; " + rejection.remedy;
  }

  /// One remark for each unmet constraint, one for the backend that is taken.
  static void emitRemarks(FusedExpertsOp op, const Selection &selection) {
    std::string function;
    if (auto parent = op->getParentOfType<FunctionOpInterface>())
      function = parent.getName().str();
    for (const Selection::Candidate &candidate : selection.candidates) {
      if (!candidate.reached)
        break;
      for (const Rejection &rejection : candidate.rejections)
        remarkRejection(op, function, candidate.backend->name(), rejection);
    }
    if (selection.chosen)
      remark::passed(op.getLoc(), remark::RemarkOpts::name("chosen")
                                      .category("wna16.backend")
                                      .subCategory(selection.chosen->name())
                                      .function(function))
          << (selection.chosen->summary() +
              (selection.message.empty() ? "" : "; ") + selection.message)
                 .str();
  }

  static void remarkRejection(FusedExpertsOp op, StringRef function,
                              StringRef backend, const Rejection &rejection) {
    auto missed = remark::missed(op.getLoc(),
                                 remark::RemarkOpts::name(rejection.constraint)
                                     .category("wna16.backend")
                                     .subCategory(backend)
                                     .function(function));
    missed << remark::reason("{0}", rejection.reason);
    if (!rejection.remedy.empty())
      missed << remark::suggest("{0}", rejection.remedy);
  }

  LogicalResult writeTable(ArrayRef<ExplainedLayer> layers,
                           TargetAttr machine) {
    if (explain.empty())
      return success();
    std::error_code code;
    llvm::raw_fd_ostream os(explain, code);
    if (code)
      return getOperation()->emitError()
             << "cannot write " << explain << ": " << code.message();
    if (StringRef(explain).ends_with(".json"))
      explainAsJson(layers, machine, os);
    else
      explainAsText(layers, machine, os);
    os.flush();
    code = os.error();
    // An error that nobody cleared ends the process.
    os.clear_error();
    if (code)
      return getOperation()->emitError()
             << "cannot write " << explain << ": " << code.message();
    return success();
  }

  /// linear and route are emulated where all experts around them are, so that
  /// emulation needs no runtime at all.
  void setSimpleOps() {
    getOperation()->walk([](FunctionOpInterface function) {
      StringRef emulated;
      WalkResult other = function.walk([&](FusedExpertsOp op) {
        const Backend *backend =
            BackendRegistry::get().find(op.getBackend().value_or(""));
        if (!backend || !backend->kernel().empty())
          return WalkResult::interrupt();
        emulated = backend->name();
        return WalkResult::advance();
      });
      if (other.wasInterrupted() || emulated.empty())
        return;
      function.walk([&](LinearOp op) { op.setBackend(emulated); });
      function.walk([&](RmsNormOp op) { op.setBackend(emulated); });
      function.walk([&](RouteOp op) { op.setBackend(emulated); });
    });
  }
};

} // namespace
