//===- Prepare.cpp - wna16 prepare ----------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Codegen.h"
#include "Commands.h"
#include "Importer.h"
#include "Interruption.h"
#include "Progress.h"

#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::cli;

/// The functions that prepare the layers' weights, for this machine.
static Result<SymbolLookup> buildPreparation(const Arguments &arguments,
                                             MLIRContext *context,
                                             const CompileOptions &compiling,
                                             const Checkpoint &checkpoint) {
  Result<std::vector<int64_t>> layers = layerIndices(arguments);
  if (!layers)
    return layers.takeFailure();
  ImportOptions importing;
  importing.layers = *layers;
  Result<Rank> rank = rankOf(arguments);
  if (!rank)
    return rank.takeFailure();
  importing.rank = *rank;
  if (arguments.has("--dtype"))
    importing.dtype = *parseScalarType(arguments.get("--dtype"));
  Result<OwningOpRef<ModuleOp>> module =
      importCheckpoint(context, checkpoint, importing);
  if (!module)
    return module.takeFailure();
  Result<std::unique_ptr<llvm::MemoryBuffer>> object =
      compileToObject(**module, compiling);
  if (!object)
    return object.takeFailure();
  return linkInProcess(std::move(*object));
}

static Result<int> run(const Arguments &arguments) {
  Result<int64_t> jobs = arguments.integer("--jobs", 0, 1);
  if (!jobs)
    return jobs.takeFailure();
  std::unique_ptr<MLIRContext> context = makeContext();
  CompileOptions compiling;
  compiling.target = arguments.get("--target");
  compiling.backend = arguments.get("--backend", "auto");
  compiling.prepareOnly = true;
  if (Failure failure =
          checkChoice(context.get(), compiling.target, compiling.backend))
    return failure;
  Result<Checkpoint> checkpoint = Checkpoint::open(arguments.input());
  if (!checkpoint)
    return checkpoint.takeFailure();
  Progress progress;
  progress.show("compiling");
  Result<SymbolLookup> lookup =
      buildPreparation(arguments, context.get(), compiling, *checkpoint);
  context.reset();
  if (!lookup)
    return lookup.takeFailure();
  LoadOptions options;
  options.jobs = static_cast<int>(std::min<int64_t>(*jobs, 1024));
  options.progress = [&](int64_t done, int64_t total) {
    progress.showBytes("preparing", done, total);
    return checkInterrupted();
  };
  Interruptible interruptible;
  if (Failure failure =
          prepareWeights(*lookup, *checkpoint, arguments.get("-o"), options))
    return failure;
  return 0;
}

static constexpr Option kOptions[] = {
    {"--target", "T", "cpu[:features], cuda:sm_NN or xpu", "", true},
    {"--backend", "B", "first of B,B that takes a layer (default: auto)"},
    {"--layer", "L...", "only the MoE layer with this index"},
    kRankOption,
    {"--dtype", "TYPE", "activations: bf16, f16 or f32 (default: the model's)",
     "bf16|f16|f32"},
    {"--jobs", "N",
     "experts that are prepared at once (default: one per core)"},
    {"-o", "FILE", "the safetensors file to write", "", true},
};

const Command cli::prepareCommand = {
    "prepare",
    "DIR",
    "write weights as the kernels of a target take them",
    "DIR is a Hugging Face directory. The file serves `wna16 run --prepared` "
    "and\n"
    "compiled libraries, which map it and do nothing else at load. Any machine "
    "can\n"
    "prepare for any target. What was begun is in FILE.partial: after an\n"
    "interruption, the same command goes on where it stopped.\n",
    kOptions,
    run,
};
