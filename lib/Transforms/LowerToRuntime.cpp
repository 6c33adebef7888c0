//===- LowerToRuntime.cpp - Plans and runs as calls of the C runtime ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// NOTE: the layout of the plan structs and of wna16_tensor, and the order of a
// call's tensors, are those of Runtime/wna16.h.
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/KernelPlan.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Transforms/Passes.h"
#include "Transforms/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace wna16 {
#define GEN_PASS_DEF_LOWERTORUNTIME
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

class RunLowering {
public:
  explicit RunLowering(ModuleOp module) : module(module), calls(module) {}

  /// The address of a constant with the plan's words; equal plans share one.
  Value lowerPlan(KernelPlanOp op) {
    SmallVector<int64_t> words;
    if (Failure why = buildPlan(op.getKind(), op.getFields(), &words)) {
      op.emitOpError() << why.message;
      return {};
    }
    OpBuilder builder(op);
    return calls.constantWords(builder, op.getLoc(), "wna16_plan", words);
  }

  LogicalResult lowerRun(KernelRunOp op, KernelPlanOp plan, Value planAddress) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    std::vector<std::string> roles = getAbiRoles(*findPlanKind(plan.getKind()));
    SmallVector<Value> buffers;
    if (failed(orderByRole(op, roles, buffers)))
      return failure();
    Value tensors = calls.tensorArray(builder, loc, op, buffers);
    if (!tensors)
      return op.emitOpError() << "expected memrefs with identity layout and "
                                 "elements of the runtime";
    Value workspace = calls.null(builder, loc),
          bytes = calls.i64(builder, loc, 0);
    if (op.getWorkspace()) {
      workspace = calls.address(builder, loc, op.getWorkspace());
      bytes = calls.extent(builder, loc, op.getWorkspace(), 0);
    }
    Value stream = op.getStream() ? op.getStream() : calls.null(builder, loc);
    calls.call(builder, loc, plan.getKernel(), builder.getI32Type(),
               {planAddress, tensors, calls.i64(builder, loc, roles.size()),
                workspace, bytes, stream});
    op.erase();
    return success();
  }

  void lowerWorkspace(KernelWorkspaceOp op, KernelPlanOp plan,
                      Value planAddress) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Value tokens = arith::IndexCastOp::create(
        builder, loc, builder.getI64Type(), op.getTokens());
    Value bytes =
        calls.call(builder, loc, plan.getKernel().str() + "_workspace",
                   builder.getI64Type(), {planAddress, tokens});
    op.replaceAllUsesWith(
        arith::IndexCastOp::create(builder, loc, builder.getIndexType(), bytes)
            .getResult());
    op.erase();
  }

private:
  /// The operands in ABI order; null where an optional one is absent.
  LogicalResult orderByRole(KernelRunOp op, ArrayRef<std::string> roles,
                            SmallVectorImpl<Value> &buffers) {
    buffers.assign(roles.size(), Value());
    SmallVector<Value> operands(op.getInputs());
    llvm::append_range(operands, op.getOutputs());
    for (auto [attr, operand] : llvm::zip(op.getRoles(), operands)) {
      StringRef role = cast<StringAttr>(attr).getValue();
      const std::string *slot = llvm::find(roles, role);
      if (slot == roles.end())
        return op.emitOpError()
               << "expected a role of its plan, got '" << role << "'";
      if (!isa<MemRefType>(operand.getType()))
        return op.emitOpError() << "expected memrefs; bufferize first, got "
                                << role << " : " << operand.getType();
      buffers[slot - roles.begin()] = operand;
    }
    return success();
  }

  ModuleOp module;
  RuntimeCalls calls;
};

struct LowerToRuntime : wna16::impl::LowerToRuntimeBase<LowerToRuntime> {
  void runOnOperation() override {
    RunLowering lowering(getOperation());
    SmallVector<KernelPlanOp> plans;
    getOperation().walk([&](KernelPlanOp plan) { plans.push_back(plan); });
    for (KernelPlanOp plan : plans) {
      Value address = lowering.lowerPlan(plan);
      if (!address)
        return signalPassFailure();
      for (Operation *user : llvm::make_early_inc_range(plan->getUsers())) {
        if (auto run = dyn_cast<KernelRunOp>(user)) {
          if (failed(lowering.lowerRun(run, plan, address)))
            return signalPassFailure();
        } else if (auto size = dyn_cast<KernelWorkspaceOp>(user)) {
          lowering.lowerWorkspace(size, plan, address);
        } else {
          user->emitOpError() << "cannot carry a !wna16.plan to the runtime";
          return signalPassFailure();
        }
      }
      plan.erase();
    }
    WalkResult left = getOperation().walk([](Operation *op) {
      if (!isa<KernelRunOp, KernelWorkspaceOp>(op))
        return WalkResult::advance();
      op->emitOpError() << "expected a plan of wna16.kernel_plan";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      return signalPassFailure();
    lowerStridedCopies();
  }

private:
  /// Copies of parts of a buffer become loops: upstream would call a function
  /// of its own runtime. Whole buffers are copied at once.
  void lowerStridedCopies() {
    getOperation().walk([](memref::CopyOp copy) {
      auto isWhole = [](Value buffer) {
        auto type = dyn_cast<MemRefType>(buffer.getType());
        return !type || type.getLayout().isIdentity();
      };
      if (isWhole(copy.getSource()) && isWhole(copy.getTarget()))
        return;
      OpBuilder builder(copy);
      linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(),
                               copy.getTarget());
      copy.erase();
    });
  }
};

} // namespace
