//===- Import.cpp - wna16 import ------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Codegen.h"
#include "Commands.h"
#include "Importer.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::cli;

static Result<int> run(const Arguments &arguments) {
  Result<std::vector<int64_t>> layers = layerIndices(arguments);
  if (!layers)
    return layers.takeFailure();
  ImportOptions options;
  options.layers = *layers;
  Result<Rank> rank = rankOf(arguments);
  if (!rank)
    return rank.takeFailure();
  options.rank = *rank;
  options.intermediates = arguments.has("--intermediates");
  if (arguments.has("--dtype"))
    options.dtype = parseScalarType(arguments.get("--dtype"));
  Result<Checkpoint> checkpoint = Checkpoint::open(arguments.input());
  if (!checkpoint)
    return checkpoint.takeFailure();
  std::unique_ptr<MLIRContext> context = makeContext();
  Result<OwningOpRef<ModuleOp>> module =
      importCheckpoint(context.get(), *checkpoint, options);
  if (!module)
    return module.takeFailure();

  std::string file = arguments.get("-o", "-"), error;
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(file, &error);
  if (!output)
    return fail(error);
  if (llvm::StringRef(file).ends_with(".mlirbc")) {
    if (failed(writeBytecodeToFile(**module, output->os())))
      return fail("cannot write " + file + " as bytecode");
  } else {
    OpPrintingFlags flags;
    flags.enableDebugInfo(arguments.has("--locations"));
    (*module)->print(output->os(), flags);
    output->os() << "\n";
  }
  llvm::raw_fd_ostream &os = output->os();
  os.flush();
  if (os.has_error()) {
    std::string message = os.error().message();
    os.clear_error();
    return fail("cannot write " + file + ": " + message);
  }
  output->keep();
  return 0;
}

static constexpr Option kOptions[] = {
    {"--layer", "L...", "only the MoE layer with this index"},
    {"--dtype", "TYPE", "activations: bf16, f16 or f32 (default: the model's)",
     "bf16|f16|f32"},
    {"--intermediates", "", "also return logits, routing and routed experts"},
    kRankOption,
    {"--locations", "", "print locations: the names of the layers"},
    {"-o", "FILE",
     "where to write (default: standard output); .mlirbc: "
     "bytecode"},
};

const Command cli::importCommand = {
    "import",
    "DIR",
    "write the MoE layers of a checkpoint as an MLIR module",
    "DIR is a Hugging Face directory with config.json and safetensors. Each "
    "MoE\n"
    "layer becomes a function: @forward, or @forward_L in a module of "
    "several.\n"
    "Weights stay in their files and are named by wna16.parameter.\n",
    kOptions,
    run,
};
