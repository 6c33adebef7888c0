//===- Compile.cpp - wna16 compile ----------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Codegen.h"
#include "Commands.h"
#include "Transforms/Target.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::cli;

static Result<int> run(const Arguments &arguments) {
  if (!arguments.has("--target") && !isModuleFile(arguments.input()))
    return usage("expected --target T: cpu[:features], cuda:sm_NN or xpu; only "
                 "an .mlir file can name its own");
  std::unique_ptr<MLIRContext> context = makeContext();
  CompileOptions options;
  options.target = arguments.get("--target");
  options.backend = arguments.get("--backend", "auto");
  if (Failure failure =
          checkChoice(context.get(), options.target, options.backend))
    return failure;
  Result<OwningOpRef<ModuleOp>> module = loadModule(context.get(), arguments);
  if (!module)
    return module.takeFailure();
  Result<std::unique_ptr<llvm::MemoryBuffer>> object =
      compileToObject(**module, options);
  if (!object)
    return object.takeFailure();
  if (!SymbolTable::lookupSymbolIn(**module, "wna16_module_description"))
    return fail("the module has no public function on tensors: there would be "
                "nothing to call in its library");
  if (Failure failure = linkLibrary(**object, arguments.get("-o")))
    return failure;
  if (getTarget(**module).getKind() == TargetKind::xpu)
    llvm::WithColor::note(llvm::errs(), "wna16 compile")
        << "this version has no xpu runtime; whoever loads the library "
           "provides the wna16_xpu_* functions\n";
  return 0;
}

static constexpr Option kOptions[] = {
    {"--target", "T",
     "cpu[:features], cuda:sm_NN or xpu (default: that of an .mlir file)"},
    {"--backend", "B", "first of B,B that takes a layer (default: auto)"},
    {"--layer", "L...", "only the MoE layer with this index"},
    kRankOption,
    {"-o", "LIB.so", "the library to write", "", true},
};

const Command cli::compileCommand = {
    "compile",
    "DIR",
    "compile MoE layers into a shared library",
    "DIR is a Hugging Face directory, or an .mlir file. The library offers\n"
    "the C functions forward, workspace_size, and prepare_w13, prepare_w2 and\n"
    "so on for what is prepared at load (with _L for each layer when there\n"
    "are several), and their description in wna16_module_description. It\n"
    "needs libwna16_runtime.so alone.\n",
    kOptions,
    run,
};
