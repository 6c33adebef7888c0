//===- ResultsToOuts.cpp - Tensor results as writable arguments -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

/// Adds a buffer argument for result `index` and computes the result in it.
void addOut(func::FuncOp function, func::ReturnOp terminator, unsigned index) {
  Value value = terminator.getOperand(index);
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  OpBuilder builder(terminator);
  NamedAttrList attrs(function.getResultAttrDict(index));
  attrs.set(kOutputAttrName, builder.getUnitAttr());
  unsigned position = function.getNumArguments();
  LogicalResult inserted = function.insertArgument(
      position, MemRefType::get(type.getShape(), type.getElementType()),
      attrs.getDictionary(function.getContext()), loc);
  assert(succeeded(inserted) && "the last position is always free");
  (void)inserted;
  Value buffer = function.getArgument(position);
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
