//===- Explain.cpp - wna16 explain ----------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Explain.h"
#include "Codegen.h"
#include "Commands.h"

#include "mlir/IR/Location.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::cli;

static std::string nameOf(FusedExpertsOp op) {
  auto location = op.getLoc()->findInstanceOf<NameLoc>();
  return location ? location.getName().str() : "experts";
}

static Result<int> run(const Arguments &arguments) {
  std::unique_ptr<MLIRContext> context = makeContext();
  Result<TargetAttr> read =
      readTarget(context.get(), arguments.get("--target"));
  if (!read)
    return read.takeFailure();
  TargetAttr target = *read;
  Rules rules =
      arguments.get("--rules") == "vllm" ? Rules::VLLM : Rules::Native;
  std::string request = arguments.get("--backend", "auto");
  // The other system's backends have names of their own.
  if (Failure failure = rules == Rules::Native ? checkBackends(request) : ok())
    return usage("--backend: " + failure.message);
  Result<LayerInfo::Deployment> deployment =
      parseDeployment(arguments.all("--deployment"));
  if (!deployment)
    return usage(deployment.message());
  Result<OwningOpRef<ModuleOp>> module = loadModule(context.get(), arguments);
  if (!module)
    return module.takeFailure();

  std::vector<ExplainedLayer> explained;
  bool complete = true;
  (*module)->walk([&](FusedExpertsOp op) {
    LayerInfo layer = describeLayer(op);
    layer.deployment = *deployment;
    Selection selection = selectBackend(layer, target, request, rules);
    complete &= selection.chosen != nullptr;
    explained.push_back({nameOf(op), layer, selection});
  });
  if (arguments.has("--json"))
    explainAsJson(explained, target, llvm::outs());
  else
    explainAsText(explained, target, llvm::outs());
  return complete ? 0 : 1;
}

static constexpr Option kOptions[] = {
    {"--target", "T", "cpu[:features], cuda:sm_NN or xpu", "", true},
    {"--backend", "B", "first of B,B that takes a layer (default: auto)"},
    {"--rules", "RULES",
     "native: what our kernels need (default); vllm: that system's rules",
     "native|vllm"},
    {"--deployment", "WORD...",
     "what vllm's rules cannot see in a layer: eplb, lora, flashinfer-int4, "
     "all2all=NAME or humming-gemm=NAME"},
    {"--layer", "L...", "only the MoE layer with this index"},
    kRankOption,
    {"--json", "", "print JSON"},
};

const Command cli::explainCommand = {
    "explain",
    "DIR",
    "show which backend each MoE layer gets, and why not the others",
    "DIR is a Hugging Face directory, or an .mlir file. For every layer: the\n"
    "chosen backend and each rejected one with the constraint, the numbers "
    "and\n"
    "what would satisfy it. The status is 1 when a layer gets no backend.\n",
    kOptions,
    run,
};
