//===- VerifyPlanned.cpp - What a call may do with memory -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace wna16 {
#define GEN_PASS_DEF_VERIFYPLANNED
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// Whether an operation takes memory that no stack frame gives back.
bool allocates(MemoryEffectOpInterface op) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  op.getEffects(effects);
  return llvm::any_of(effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Allocate>(effect.getEffect()) &&
           !isa<SideEffects::AutomaticAllocationScopeResource>(
               effect.getResource());
  });
}

/// Whether an operation itself reads or writes buffers, or makes one that lies
/// in the memory of the host.
bool touchesBuffers(Operation *op) {
  if (isa<KernelRunOp>(op))
    return false;
  if (isa<memref::GetGlobalOp>(op))
    return true;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && (effects.hasEffect<MemoryEffects::Read>() ||
                     effects.hasEffect<MemoryEffects::Write>());
}

struct VerifyPlanned : wna16::impl::VerifyPlannedBase<VerifyPlanned> {
  void runOnOperation() override {
    auto machine = getOperation()->getAttrOfType<TargetAttr>(kTargetAttrName);
    bool onDevice = machine && machine.getKind() != TargetKind::cpu;
    WalkResult result = getOperation().walk([&](Operation *op) {
      auto effects = dyn_cast<MemoryEffectOpInterface>(op);
      if (effects && allocates(effects)) {
        op->emitError() << "expected no allocation in a call, got '"
                        << op->getName() << "' of layer " << layerName(op)
                        << "; only those of public functions, outside loops, "
                           "become part of "
                           "the workspace";
        return WalkResult::interrupt();
      }
      if (!onDevice || !touchesBuffers(op))
        return WalkResult::advance();
      op->emitError() << "'" << op->getName() << "' of layer " << layerName(op)
                      << " would run on the host, which cannot reach the "
                         "memory of a "
                      << stringifyTargetKind(machine.getKind())
                      << " target; only kernels of the runtime can, so compute "
                         "it outside or compile for cpu";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
