//===- VerifyEncodings.cpp - Who may carry encoded tensors ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"
#include "Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace wna16 {
#define GEN_PASS_DEF_VERIFYENCODINGS
#define GEN_PASS_DEF_VERIFYDISASSEMBLED
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// The list of the dialect's documentation.
bool respectsEncodings(Operation *op) {
  return isa<func::FuncOp, func::CallOp, func::ReturnOp, arith::SelectOp,
             tensor::EmptyOp, tensor::DimOp, cf::BranchOp, cf::CondBranchOp>(
             op) ||
         isa_and_nonnull<WNA16Dialect, scf::SCFDialect>(op->getDialect());
}

/// The first encoded type among operands and results; null without one.
Type findEncoded(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (isEncoded(type))
      return type;
  for (Type type : op->getResultTypes())
    if (isEncoded(type))
      return type;
  return {};
}

struct VerifyEncodings : wna16::impl::VerifyEncodingsBase<VerifyEncodings> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      Type encoded = findEncoded(op);
      if (!encoded || respectsEncodings(op))
        return WalkResult::advance();
      op->emitError() << "'" << op->getName()
                      << "' does not respect encodings, got " << encoded
                      << "; take the tensor apart with wna16.disassemble";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

struct VerifyDisassembled
    : wna16::impl::VerifyDisassembledBase<VerifyDisassembled> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    WalkResult result = module.walk([&](Operation *op) {
      if (Type encoded = findEncoded(op)) {
        op->emitError() << "expected no encoded tensor after disassembly, got "
                        << encoded;
        return WalkResult::interrupt();
      }
      if (!isa_and_nonnull<WNA16Dialect>(op->getDialect()))
        return WalkResult::advance();
      if (op->getParentOfType<ModuleOp>() != module) {
        op->emitError() << "expected layers and kernels in functions of the "
                           "outermost module; lower a nested one on its own";
        return WalkResult::interrupt();
      }
      if (!isa<KernelPlanOp, KernelRunOp>(op)) {
        op->emitError() << "expected '" << op->getName()
                        << "' to be a kernel or linalg after disassembly";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
