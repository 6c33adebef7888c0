//===- Pipelines.cpp - The passes in order --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace wna16;

/// Public functions get entry points and memory of their callers; what private
/// ones do becomes part of them. Nothing else of the code changes.
static void addInliner(OpPassManager &pm) {
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
}

void wna16::buildSelectPipeline(OpPassManager &pm,
                                const PipelineOptions &options) {
  pm.addPass(createVerifyEncodings());
  addInliner(pm);
  SelectBackendOptions select;
  select.target = options.target;
  select.backend = options.backend;
  select.rules = options.rules;
  llvm::append_range(select.deployment, options.deployment);
  select.explain = options.explain;
  pm.addPass(createSelectBackend(select));
  pm.addPass(createMaterializeLayouts());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  HoistPrepareOptions hoist;
  hoist.prepareOnly = options.prepareOnly;
  pm.addPass(createHoistPrepare(hoist));
  pm.addPass(createVerifyEncodings());
}

void wna16::buildLowerPipeline(OpPassManager &pm) {
  addInliner(pm);
  EmulateOptions emulate;
  emulate.all = false;
  pm.addPass(createEmulate(emulate));
  pm.addPass(createDisassemble());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyDisassembled());
  pm.addPass(createConvertElementwiseToLinalgPass());
  pm.addPass(createResultsToOuts());

  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());

  pm.addPass(createOffloadLoops());
  pm.addPass(createPlanWorkspace());
  pm.addPass(createVerifyPlanned());
  pm.addPass(createLowerToRuntime());
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  pm.addPass(createEmitEntryPoints());

  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  // Rounding to bf16 has no instruction on a plain x86-64 and no function in
  // libgcc.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void wna16::buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  buildSelectPipeline(pm, options);
  buildLowerPipeline(pm);
}

void wna16::registerPasses() {
  registerWNA16Passes();
  PassPipelineRegistration<PipelineOptions>(
      "wna16-select-pipeline",
      "choose backends, bring weights into their layouts and hoist that into "
      "@prepare",
      buildSelectPipeline);
  PassPipelineRegistration<>(
      "wna16-lower-pipeline",
      "from there to runtime calls and entry points in the LLVM dialect",
      buildLowerPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "wna16-pipeline", "wna16-select-pipeline and wna16-lower-pipeline",
      buildPipeline);
}
