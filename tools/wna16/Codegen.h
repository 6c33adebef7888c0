//===- Codegen.h - From a module to machine code ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `run` and `compile` share one road to an object file, so that both give the
// same bits: `run` links the object into its own process, `compile` into a
// shared library.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_CODEGEN_H
#define WNA16_TOOLS_WNA16_CODEGEN_H

#include "CommandLine.h"

#include "Dialect/WNA16/IR/WNA16.h"
#include "Module/Module.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

namespace wna16 {

struct CompileOptions {
  std::string target; ///< empty: the module's own
  std::string backend = "auto";
  std::string rules = "native";
  bool prepareOnly = false; ///< leave what prepares weights, for this machine
};

/// A context with the dialects that the pipeline needs.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Whether a path names a module and not a checkpoint.
bool isModuleFile(llvm::StringRef path);

/// Imports a directory, or parses an .mlir or .mlirbc file; with `--layer` and
/// `--tp`.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
loadModule(mlir::MLIRContext *context, const cli::Arguments &arguments);

/// Reads a target as people write it. Its libraries must be some backend's, and
/// its features those that LLVM knows for this machine's architecture.
Result<TargetAttr> readTarget(mlir::MLIRContext *context, llvm::StringRef text);

/// Checks a target and a request for backends, before any work.
Failure checkChoice(mlir::MLIRContext *context, llvm::StringRef target,
                    llvm::StringRef backends);

/// Runs wna16-pipeline on the module and compiles the result to a relocatable
/// object. Errors of passes are printed; the failure is then `reported()`.
Result<std::unique_ptr<llvm::MemoryBuffer>>
compileToObject(mlir::ModuleOp module, const CompileOptions &options);

/// By the functions of a lowered module that give the size of a workspace: the
/// plan of their fused experts in the runtime. Emulated ones have none.
using ExpertsPlans = std::map<std::string, std::vector<int64_t>>;
ExpertsPlans findExpertsPlans(mlir::ModuleOp lowered);

/// Links an object into this process. The lookup owns the code.
Result<SymbolLookup> linkInProcess(std::unique_ptr<llvm::MemoryBuffer> object);

/// Links an object and the runtime into a shared library with the system's C
/// compiler.
Failure linkLibrary(const llvm::MemoryBuffer &object, const std::string &file);

} // namespace wna16

#endif // WNA16_TOOLS_WNA16_CODEGEN_H
