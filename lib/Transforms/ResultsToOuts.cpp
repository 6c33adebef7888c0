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
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Follows dynamic extents through inits, empty tensors, casts, loops,
/// conditionals and calls to an argument.
class ExtentFinder {
public:
  std::optional<Extent> find(Value value, int64_t axis) {
    // An extent that depends on itself stays unknown.
    auto [entry, isNew] = known.try_emplace({value, axis}, std::nullopt);
    if (!isNew)
      return entry->second;
    std::optional<Extent> extent = follow(value, axis);
    known[{value, axis}] = extent;
    return extent;
  }

private:
  std::optional<Extent> follow(Value value, int64_t axis) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return followArgument(argument, axis);
    auto result = cast<OpResult>(value);
    Operation *def = result.getOwner();
    unsigned number = result.getResultNumber();
    if (auto style = dyn_cast<DestinationStyleOpInterface>(def))
      return find(style.getTiedOpOperand(result)->get(), axis);
    if (auto cast = dyn_cast<tensor::CastOp>(def))
      return find(cast.getSource(), axis);
    if (auto loop = dyn_cast<scf::ForOp>(def))
      return same(loop.getInitArgs()[number], loop.getYieldedValues()[number],
                  axis);
    if (auto branch = dyn_cast<scf::IfOp>(def))
      return same(branch.thenYield().getOperand(number),
                  branch.elseYield().getOperand(number), axis);
    if (auto call = dyn_cast<func::CallOp>(def))
      return followCall(call, number, axis);
    auto empty = dyn_cast<tensor::EmptyOp>(def);
    auto dim = empty && empty.getType().isDynamicDim(axis)
                   ? empty.getDynamicSize(axis).getDefiningOp<tensor::DimOp>()
                   : tensor::DimOp();
    std::optional<int64_t> index = dim ? dim.getConstantIndex() : std::nullopt;
    return index ? find(dim.getSource(), *index) : std::nullopt;
  }

  /// What a loop carries has the extents of its init, if its results do.
  std::optional<Extent> followArgument(BlockArgument argument, int64_t axis) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (isa<func::FuncOp>(parent))
      return Extent{argument, axis};
    auto loop = dyn_cast<scf::ForOp>(parent);
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    return init ? find(init->get(), axis) : std::nullopt;
  }

  std::optional<Extent> followCall(func::CallOp call, unsigned number,
                                   int64_t axis) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
      return std::nullopt;
    Operation *terminator = callee.getBody().front().getTerminator();
    std::optional<Extent> inner = find(terminator->getOperand(number), axis);
    if (!inner)
      return std::nullopt;
    return find(call.getOperand(inner->argument.getArgNumber()), inner->axis);
  }

  std::optional<Extent> same(Value a, Value b, int64_t axis) {
    std::optional<Extent> first = find(a, axis), second = find(b, axis);
    return first && second && first->argument == second->argument &&
                   first->axis == second->axis
               ? first
               : std::nullopt;
  }

  llvm::DenseMap<std::pair<Value, int64_t>, std::optional<Extent>> known;
};

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
      std::optional<Extent> extent = ExtentFinder().find(result.get(), axis);
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

  /// What a caller hands over stays as it is, unless the function says that it
  /// may be written.
  static void keepInputs(func::FuncOp function) {
    Builder builder(function.getContext());
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      if (isa<RankedTensorType>(function.getArgumentTypes()[i]) &&
          !function.getArgAttr(i, kWritableAttrName))
        function.setArgAttr(i, kWritableAttrName, builder.getBoolAttr(false));
  }

  static void rewrite(func::FuncOp function) {
    keepInputs(function);
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
