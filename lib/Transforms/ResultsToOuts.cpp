//===- ResultsToOuts.cpp - Tensor results as writable arguments
//-------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/Names.h"
#include "Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace wna16 {
#define GEN_PASS_DEF_RESULTSTOOUTS
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// The tensor.empty in which a value is computed: through the inits of
/// destination-style operations, as long as nothing else uses them.
tensor::EmptyOp findDestination(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (auto empty = dyn_cast<tensor::EmptyOp>(def))
      return empty->hasOneUse() ? empty : tensor::EmptyOp();
    auto style = dyn_cast<DestinationStyleOpInterface>(def);
    if (!style)
      return {};
    value = style.getTiedOpOperand(cast<OpResult>(value))->get();
    if (!value.hasOneUse())
      return {};
  }
  return {};
}

/// Adds an argument for result `index` and computes the result in it.
void addOut(func::FuncOp function, func::ReturnOp terminator, unsigned index) {
  Value value = terminator.getOperand(index);
  Builder attributes(function.getContext());
  NamedAttrList attrs(function.getResultAttrDict(index));
  attrs.set(kWritableAttrName, attributes.getBoolAttr(true));
  attrs.set(kOutputAttrName, attributes.getUnitAttr());
  unsigned position = function.getNumArguments();
  LogicalResult inserted = function.insertArgument(
      position, value.getType(), attrs.getDictionary(function.getContext()),
      value.getLoc());
  assert(succeeded(inserted) && "the last position is always free");
  (void)inserted;
  Value argument = function.getArgument(position);
  function.setResultAttrs(index, DictionaryAttr::get(function.getContext()));
  if (tensor::EmptyOp empty = findDestination(value);
      empty && empty.getType() == argument.getType()) {
    empty.replaceAllUsesWith(argument);
    empty.erase();
    return;
  }
  OpBuilder builder(terminator);
  auto copy = bufferization::MaterializeInDestinationOp::create(
      builder, value.getLoc(), value, argument);
  terminator.setOperand(index, copy->getResult(0));
}

struct ResultsToOuts : wna16::impl::ResultsToOutsBase<ResultsToOuts> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !function.isPublic())
        continue;
      if (!function.getBody().hasOneBlock()) {
        function.emitError() << "expected a public function of one block; "
                                "inline or structure its control flow";
        return signalPassFailure();
      }
      auto terminator =
          cast<func::ReturnOp>(function.getBody().front().getTerminator());
      for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
        if (isa<RankedTensorType>(function.getResultTypes()[i]))
          addOut(function, terminator, i);
    }
  }
};

} // namespace
