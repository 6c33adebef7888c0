//===- OffloadLoops.cpp - Loops between kernels as kernels ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace wna16 {
#define GEN_PASS_DEF_OFFLOADLOOPS
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// Whether kernels can address a buffer: an array, row after row.
bool isPlain(Value buffer) {
  auto type = dyn_cast<MemRefType>(buffer.getType());
  return type && type.getLayout().isIdentity() && type.getRank() >= 1 &&
         type.getRank() <= 3;
}

bool isFloat(Value buffer) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  return element.isF16() || element.isBF16() || element.isF32();
}

/// A pattern whose result is one call of a kernel of the target.
template <typename OpT>
struct OffloadPattern : OpRewritePattern<OpT> {
  OffloadPattern(MLIRContext *context, TargetAttr target)
      : OpRewritePattern<OpT>(context), target(target) {}

protected:
  void replaceByCall(PatternRewriter &rewriter, Operation *op, StringRef kind,
                     ArrayRef<NamedAttribute> fields, ValueRange inputs,
                     Value output, ArrayRef<StringRef> roles) const {
    auto plan = KernelPlanOp::create(
        rewriter, op->getLoc(), PlanType::get(op->getContext()),
        rewriter.getStringAttr(kind),
        FlatSymbolRefAttr::get(op->getContext(), runtimeSymbol(target, kind)),
        rewriter.getDictionaryAttr(fields));
    KernelRunOp::create(rewriter, op->getLoc(), TypeRange(), plan, inputs,
                        output, /*workspace=*/Value(), /*stream=*/Value(),
                        rewriter.getStrArrayAttr(roles));
    rewriter.eraseOp(op);
  }

  TargetAttr target;
};

struct OffloadFill : OffloadPattern<linalg::FillOp> {
  using OffloadPattern::OffloadPattern;

  LogicalResult matchAndRewrite(linalg::FillOp op,
                                PatternRewriter &rewriter) const override {
    Value output = op.getDpsInits()[0];
    Attribute value;
    if (!isPlain(output) ||
        !matchPattern(op.getInputs()[0], m_Constant(&value)))
      return rewriter.notifyMatchFailure(op,
                                         "expected a constant and an array");
    double number;
    if (auto real = dyn_cast<FloatAttr>(value); real && isFloat(output))
      number = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(value);
             integer && integer.getType().isInteger(32))
      number = static_cast<double>(integer.getInt());
    else
      return rewriter.notifyMatchFailure(op, "expected f16, bf16, f32 or i32");
    replaceByCall(
        rewriter, op, "fill",
        rewriter.getNamedAttr("value", rewriter.getF64FloatAttr(number)), {},
        output, {"y"});
    return success();
  }
};

struct OffloadCopy : OffloadPattern<memref::CopyOp> {
  using OffloadPattern::OffloadPattern;

  LogicalResult matchAndRewrite(memref::CopyOp op,
                                PatternRewriter &rewriter) const override {
    Type element =
        cast<BaseMemRefType>(op.getSource().getType()).getElementType();
    if (!isPlain(op.getSource()) || !isPlain(op.getTarget()) ||
        !getScalarType(element))
      return rewriter.notifyMatchFailure(op, "expected arrays");
    replaceByCall(rewriter, op, "copy", {}, op.getSource(), op.getTarget(),
                  {"source", "target"});
    return success();
  }
};

/// y = round(a) or round(a + b), element by element, in f32.
struct OffloadSum : OffloadPattern<linalg::GenericOp> {
  using OffloadPattern::OffloadPattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(op))
      return rewriter.notifyMatchFailure(
          op, "expected one output and one or two inputs, elementwise");
    Block &body = *op.getBody();
    Value value = cast<linalg::YieldOp>(body.getTerminator()).getOperand(0);
    if (auto round = value.getDefiningOp<arith::TruncFOp>();
        round && !round.getRoundingmodeAttr())
      value = round.getIn();
    SmallVector<Value> terms;
    if (auto sum = value.getDefiningOp<arith::AddFOp>())
      terms = {sum.getLhs(), sum.getRhs()};
    else
      terms = {value};
    SmallVector<Value> inputs;
    for (Value term : terms) {
      Value input = inputOf(op, term);
      if (!input || !value.getType().isF32())
        return rewriter.notifyMatchFailure(op, "expected a sum in f32");
      inputs.push_back(input);
    }
    SmallVector<StringRef> roles = {"a", "b", "y"};
    if (inputs.size() == 1)
      roles.erase(&roles[1]);
    replaceByCall(rewriter, op, "sum", {}, inputs, op.getDpsInits()[0], roles);
    return success();
  }

private:
  static bool isElementwise(linalg::GenericOp op) {
    return op.getNumDpsInits() == 1 && op.getNumDpsInputs() >= 1 &&
           op.getNumDpsInputs() <= 2 &&
           op.getNumParallelLoops() == op.getNumLoops() &&
           llvm::all_of(op.getIndexingMapsArray(),
                        [](AffineMap map) { return map.isIdentity(); }) &&
           llvm::all_of(op->getOperands(), [](Value operand) {
             return isPlain(operand) && isFloat(operand);
           });
  }

  /// The input that a value of the body is an element of, widened to f32 or
  /// not; null when it is something else.
  static Value inputOf(linalg::GenericOp op, Value term) {
    if (auto widen = term.getDefiningOp<arith::ExtFOp>())
      term = widen.getIn();
    auto argument = dyn_cast<BlockArgument>(term);
    if (!argument || argument.getOwner() != op.getBody() ||
        argument.getArgNumber() >= op.getNumDpsInputs())
      return {};
    return op.getDpsInputs()[argument.getArgNumber()];
  }
};

struct OffloadLoops : wna16::impl::OffloadLoopsBase<OffloadLoops> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(kTargetAttrName);
    if (!target || target.getKind() == TargetKind::cpu)
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<OffloadFill, OffloadCopy, OffloadSum>(&getContext(), target);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
