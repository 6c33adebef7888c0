//===- Emulate.cpp - Lower the dialect to linalg --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "Backend/Backend.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace wna16 {
#define GEN_PASS_DEF_EMULATE
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// Whether the backend that an operation names has no kernel for it.
bool lacksKernel(std::optional<StringRef> name) {
  const Backend *backend = BackendRegistry::get().find(name.value_or(""));
  return backend && backend->kernel().empty();
}

/// Whether an operation with a backend is to be emulated on its own.
bool isEmulatedAlone(Operation *op) {
  if (auto experts = dyn_cast<FusedExpertsOp>(op))
    return lacksKernel(experts.getBackend());
  if (auto linear = dyn_cast<LinearOp>(op))
    return lacksKernel(linear.getBackend());
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return lacksKernel(norm.getBackend());
  if (auto route = dyn_cast<RouteOp>(op))
    return lacksKernel(route.getBackend());
  return false;
}

/// Loops take the extents of one operand for those of all. A kernel compares
/// them when it runs; loops can rely only on equal static extents, and on
/// dynamic ones, which an entry point compares.
LogicalResult checkTokens(Operation *op, ValueRange operands) {
  auto first = cast<RankedTensorType>(operands.front().getType());
  for (Value operand : operands.drop_front()) {
    if (!operand)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    // The last axis is not one of tokens.
    for (int64_t axis = 0; axis + 1 < std::min(first.getRank(), type.getRank());
         ++axis)
      if (first.isDynamicDim(axis) != type.isDynamicDim(axis))
        return op->emitOpError()
               << "cannot be emulated on a static and a dynamic number of "
                  "tokens, got "
               << first << " and " << type
               << "; make both static or both dynamic";
  }
  return success();
}

LogicalResult checkTokens(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](FusedExpertsOp op) {
        return checkTokens(
            op, {op.getX(), op.getIds(), op.getWeights(), op.getInit()});
      })
      .Case([](LinearOp op) {
        return checkTokens(op, {op.getX(), op.getInit()});
      })
      .Case([](RmsNormOp op) {
        return checkTokens(op, {op.getX(), op.getAddend(), op.getInit()});
      })
      .Case([](RouteOp op) {
        SmallVector<Value> operands{op.getLogits()};
        llvm::append_range(operands, op.getDpsInits());
        return checkTokens(op, operands);
      })
      .Default(success());
}

/// Errors for what emulation does not do, before anything is rewritten.
LogicalResult checkEmulated(Operation *op) {
  if (isa<ParameterOp>(op))
    return op->emitOpError()
           << "expected wna16-hoist-prepare before emulation: the tensor lives "
              "in a file";
  if (isa<KernelPlanOp, KernelRunOp>(op))
    return op->emitOpError() << "cannot be emulated: it calls the runtime";
  if (auto experts = dyn_cast<FusedExpertsOp>(op))
    if (experts.getActivationType() != ActivationType::a16)
      return op->emitOpError()
             << "cannot be emulated with "
             << stringifyActivationType(experts.getActivationType())
             << " activations, expected a16";
  if (failed(checkTokens(op)))
    return failure();
  return emulation::checkStep(op);
}

/// Loops beside kernels run on the host, and so need its memory.
LogicalResult checkPlacement(ModuleOp module) {
  auto machine = module->getAttrOfType<TargetAttr>(kTargetAttrName);
  if (!machine || machine.getKind() == TargetKind::cpu)
    return success();
  bool fine = true;
  module.walk([&](FusedExpertsOp op) {
    if (!lacksKernel(op.getBackend()))
      return;
    fine = false;
    op.emitOpError() << "of layer " << layerName(op) << ": backend "
                     << *op.getBackend()
                     << " becomes loops of the host, which cannot reach the "
                        "memory of a "
                     << stringifyTargetKind(machine.getKind())
                     << " target; take a backend that has a kernel (auto), "
                        "compile for cpu, or stop at wna16-emulate";
  });
  return success(fine);
}

struct Emulate : wna16::impl::EmulateBase<Emulate> {
  using EmulateBase::EmulateBase;

  void runOnOperation() override {
    bool everything = all;
    if (!everything && failed(checkPlacement(getOperation())))
      return signalPassFailure();
    auto isLowered = [everything](Operation *op) {
      return isa_and_nonnull<WNA16Dialect>(op->getDialect()) &&
             (everything || isEmulatedAlone(op));
    };
    WalkResult unsupported = getOperation().walk([&](Operation *op) {
      return WalkResult(isLowered(op) ? checkEmulated(op) : success());
    });
    if (unsupported.wasInterrupted())
      return signalPassFailure();

    MLIRContext *context = &getContext();
    DisassemblyConverter converter;
    ConversionTarget target(*context);
    RewritePatternSet patterns(context);
    // Without `all`, encoded values stay and are disassembled at their uses.
    if (everything)
      populateDisassemblyPatterns(converter, patterns, target);
    else
      target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    emulation::populateWeightPatterns(converter, patterns);
    emulation::populateStepPatterns(converter, patterns);
    emulation::populateExpertsPatterns(converter, patterns);
    emulation::populateRoutePatterns(converter, patterns);
    target.addDynamicallyLegalDialect<WNA16Dialect>(
        [&](Operation *op) { return !isLowered(op); });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
