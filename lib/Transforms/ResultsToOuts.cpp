//===- ResultsToOuts.cpp - Tensor results as writable arguments -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "Dialect/WNA16/IR/WNA16.h"
#include "Transforms/Names.h"
#include "Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"

namespace wna16 {
#define GEN_PASS_DEF_RESULTSTOOUTS
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// The use of a tensor.empty in which a value is computed: through the inits of
/// destination-style operations, as long as nothing else uses them. The empty
/// tensor itself may have other uses, since CSE merges those of one type.
OpOperand *findDestination(Value value) {
  while (auto style = value.getDefiningOp<DestinationStyleOpInterface>()) {
    OpOperand *init = style.getTiedOpOperand(cast<OpResult>(value));
    value = init->get();
    if (value.getDefiningOp<tensor::EmptyOp>())
      return init;
    if (!value.hasOneUse())
      return nullptr;
  }
  return nullptr;
}

/// The extent of an argument that a dynamic extent is known to be.
struct Extent {
  BlockArgument argument;
  int64_t axis;
};

/// Follows a dynamic extent through inits, empty tensors, casts and `calls`
/// levels of calls to an argument.
std::optional<Extent> findExtent(Value value, int64_t axis, int calls = 8) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp())
               ? std::optional(Extent{argument, axis})
               : std::nullopt;
  Operation *def = value.getDefiningOp();
  if (auto style = dyn_cast<DestinationStyleOpInterface>(def))
    return findExtent(style.getTiedOpOperand(cast<OpResult>(value))->get(),
                      axis, calls);
  if (auto cast = dyn_cast<tensor::CastOp>(def))
    return findExtent(cast.getSource(), axis, calls);
  if (auto empty = dyn_cast<tensor::EmptyOp>(def)) {
    auto dim = empty.getType().isDynamicDim(axis)
                   ? empty.getDynamicSize(axis).getDefiningOp<tensor::DimOp>()
                   : tensor::DimOp();
    std::optional<int64_t> index = dim ? dim.getConstantIndex() : std::nullopt;
    return index ? findExtent(dim.getSource(), *index, calls) : std::nullopt;
  }
  auto call = calls > 0 ? dyn_cast<func::CallOp>(def) : func::CallOp();
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           call, call.getCalleeAttr())
                     : func::FuncOp();
  if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
    return std::nullopt;
  Value returned = callee.getBody().front().getTerminator()->getOperand(
      cast<OpResult>(value).getResultNumber());
  std::optional<Extent> inner = findExtent(returned, axis, calls - 1);
  if (!inner)
    return std::nullopt;
  return findExtent(call.getOperand(inner->argument.getArgNumber()),
                    inner->axis, calls);
}

/// Adds a buffer argument for result `index` and computes the result in it.
void addOut(func::FuncOp function, func::ReturnOp terminator, unsigned index) {
  Value value = terminator.getOperand(index);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  OpBuilder builder(terminator);
  NamedAttrList attrs(function.getResultAttrDict(index));
  attrs.set(kOutputAttrName, builder.getUnitAttr());
  Value buffer = appendArgument(
      function, MemRefType::get(type.getShape(), type.getElementType()),
      attrs.getDictionary(function.getContext()), loc);
  OpOperand *init = findDestination(value);
  if (init && init->get().getType() == type) {
    OpBuilder start = OpBuilder::atBlockBegin(&function.getBody().front());
    Operation *empty = init->get().getDefiningOp();
    init->set(bufferization::ToTensorOp::create(start, loc, type, buffer,
                                                /*restrict=*/true,
                                                /*writable=*/true));
    if (isOpTriviallyDead(empty))
      empty->erase();
  }
  bufferization::MaterializeInDestinationOp::create(
      builder, loc, /*result=*/Type(), value, buffer, /*restrict=*/true,
      /*writable=*/true);
}

struct ResultsToOuts : wna16::impl::ResultsToOutsBase<ResultsToOuts> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.isPublic() &&
          llvm::any_of(function.getResultTypes(),
                       llvm::IsaPred<RankedTensorType>))
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(check(function)))
        return signalPassFailure();
    for (func::FuncOp function : functions)
      rewrite(function);
  }

private:
  LogicalResult check(func::FuncOp function) {
    if (!function.getBody().hasOneBlock() ||
        !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
      return function.emitError() << "expected a public function of one block; "
                                     "inline or structure its control flow";
    if (!SymbolTable::symbolKnownUseEmpty(function, getOperation()))
      return function.emitError()
             << "expected a public function with tensor results not to be "
                "called: its signature changes";
    for (Type type : function.getResultTypes())
      if (isEncoded(type))
        return function.emitError()
               << "expected wna16-disassemble before, got the result " << type;
    Operation *terminator = function.getBody().front().getTerminator();
    for (OpOperand &result : terminator->getOpOperands())
      if (isa<RankedTensorType>(result.get().getType()) &&
          failed(checkExtents(function, result)))
        return failure();
    return success();
  }

  /// The caller allocates what a result is computed in, so that its dynamic
  /// extents are those of arguments: entry points check that extents of one
  /// axis agree among tensors of one rank.
  static LogicalResult checkExtents(func::FuncOp function, OpOperand &result) {
    auto type = cast<RankedTensorType>(result.get().getType());
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      std::optional<Extent> extent = findExtent(result.get(), axis);
      auto source = extent
                        ? dyn_cast<RankedTensorType>(extent->argument.getType())
                        : RankedTensorType();
      if (!source || source.getRank() != type.getRank() ||
          extent->axis != axis || !source.isDynamicDim(axis))
        return function.emitError()
               << "expected axis " << axis << " of result "
               << result.getOperandNumber() << " (" << type
               << ") to be that axis of an argument of rank " << type.getRank()
               << ", since the caller allocates the result; make the extent "
                  "static";
    }
    return success();
  }

  static void rewrite(func::FuncOp function) {
    auto terminator =
        cast<func::ReturnOp>(function.getBody().front().getTerminator());
    llvm::BitVector dropped(function.getNumResults());
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
      if (isa<RankedTensorType>(function.getResultTypes()[i])) {
        addOut(function, terminator, i);
        dropped.set(i);
      }
    terminator->eraseOperands(dropped);
    LogicalResult erased = function.eraseResults(dropped);
    assert(succeeded(erased) && "results of a func.func can be erased");
    (void)erased;
  }
};

} // namespace
