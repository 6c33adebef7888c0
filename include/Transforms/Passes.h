//===- Passes.h - The passes and pipelines ----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_PASSES_H
#define WNA16_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace wna16 {

#define GEN_PASS_DECL
#include "Transforms/Passes.h.inc"

/// Options of `wna16-pipeline`; the same names as those of the passes.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("cpu[:features], cuda:sm_NN or xpu; "
                     "empty: the module's target"),
      llvm::cl::init("")};
  Option<std::string> backend{
      *this, "backend",
      llvm::cl::desc("auto, or names of backends: the first of NAME,NAME that "
                     "takes a layer"),
      llvm::cl::init("auto")};
  Option<std::string> rules{*this, "rules", llvm::cl::desc("native or vllm"),
                            llvm::cl::init("native")};
  ListOption<std::string> deployment{
      *this, "deployment",
      llvm::cl::desc("what rules=vllm cannot see in the module")};
  Option<std::string> explain{*this, "explain",
                              llvm::cl::desc("file for the selection table"),
                              llvm::cl::init("")};
  Option<bool> prepareOnly{
      *this, "prepare-only",
      llvm::cl::desc("keep what prepares weights, to be run on the cpu"),
      llvm::cl::init(false)};
};

/// Selection and preparation: tensors with the chosen backend's encodings, and
/// `@prepare` beside `@forward`.
void buildSelectPipeline(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// From there to memrefs and runtime calls in the LLVM dialect.
void buildLowerPipeline(mlir::OpPassManager &pm);

/// Both: `wna16-pipeline`.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers passes and pipelines for command lines.
void registerPasses();

#define GEN_PASS_REGISTRATION
#include "Transforms/Passes.h.inc"

} // namespace wna16

#endif // WNA16_TRANSFORMS_PASSES_H
