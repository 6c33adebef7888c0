//===- HoistPrepare.cpp - What depends on weights alone -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/Move.h"
#include "Transforms/Names.h"
#include "Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace wna16 {
#define GEN_PASS_DEF_HOISTPREPARE
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

bool isStep(Operation *op) {
  return isa<PadOp, RegroupOp, RepackOp, RecodeOp, SortGroupsOp, ConvertOp>(op);
}

/// Splits one function into what runs once and what runs on tokens.
class Splitter {
public:
  explicit Splitter(func::FuncOp forward) : forward(forward) {}

  void run() {
    findWeightOnly();
    findBoundary();
    nameBoundary();
    if (!boundary.empty())
      buildPrepare();
    rewriteForward();
  }

private:
  /// Operations whose results depend on parameters and constants alone.
  void findWeightOnly() {
    forward.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == forward || op->getNumRegions() || !isMemoryEffectFree(op))
        return;
      bool source =
          isa<ParameterOp>(op) || op->hasTrait<OpTrait::ConstantLike>();
      bool derived =
          op->getNumOperands() && llvm::all_of(op->getOperands(), [&](Value v) {
            Operation *def = v.getDefiningOp();
            return def && weightOnly.contains(def);
          });
      // Scalars and shapes stay where they are used.
      bool tensors = llvm::all_of(op->getResultTypes(), [](Type type) {
        return isa<RankedTensorType>(type);
      });
      if ((source || derived) && tensors)
        weightOnly.insert(op);
    });
  }

  /// Whether a value is as it lies in the file: a parameter, or one put
  /// together from parameters.
  static bool isUnprepared(Value value) {
    Operation *def = value.getDefiningOp();
    if (isa<ParameterOp>(def) || def->hasTrait<OpTrait::ConstantLike>())
      return true;
    return isa<AssembleOp>(def) &&
           llvm::all_of(def->getOperands(), isUnprepared);
  }

  void findBoundary() {
    for (Operation *op : weightOnly)
      for (OpResult result : op->getResults())
        if (!isUnprepared(result) &&
            llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !weightOnly.contains(user);
            }))
          boundary.insert({result, std::string()});
  }

  /// Names a prepared weight after the operand that it is, "w13", with a number
  /// where a function has several.
  void nameBoundary() {
    llvm::StringSet<> taken;
    for (auto &[value, name] : boundary) {
      std::string base = operandName(value);
      name = base;
      for (int i = 1; !taken.insert(name).second; ++i)
        name = base + "_" + std::to_string(i);
    }
  }

  std::string operandName(Value value) {
    for (OpOperand &use : value.getUses()) {
      if (weightOnly.contains(use.getOwner()))
        continue;
      if (auto experts = dyn_cast<FusedExpertsOp>(use.getOwner())) {
        if (value == experts.getW13())
          return "w13";
        if (value == experts.getW2())
          return "w2";
        if (value == experts.getBias13())
          return "bias13";
        if (value == experts.getBias2())
          return "bias2";
      }
      if (isa<LinearOp>(use.getOwner()))
        return "weight";
    }
    return "weight";
  }

  void buildPrepare() {
    OpBuilder builder(forward);
    SmallVector<Type> results;
    for (auto &[value, name] : boundary)
      results.push_back(value.getType());
    // What the prepared values need, in program order.
    llvm::SetVector<Operation *> needed;
    for (auto &[value, name] : boundary)
      collect(value.getDefiningOp(), needed);
    SmallVector<ParameterOp> parameters;
    for (Operation *op : weightOnly)
      if (auto parameter = dyn_cast<ParameterOp>(op);
          parameter && needed.contains(op))
        parameters.push_back(parameter);

    SmallVector<Type> inputs;
    for (ParameterOp parameter : parameters)
      inputs.push_back(parameter.getType());
    auto prepare = func::FuncOp::create(
        builder, forward.getLoc(), companionName(forward.getName(), "prepare"),
        builder.getFunctionType(inputs, results));
    prepare->setAttr(kPrepareAttrName, builder.getUnitAttr());
    builder.setInsertionPointToStart(prepare.addEntryBlock());
    IRMapping mapping;
    for (auto [i, parameter] : llvm::enumerate(parameters)) {
      prepare.setArgAttrs(i, parameterAttrs(parameter));
      mapping.map(parameter.getResult(), prepare.getArgument(i));
    }
    for (Operation *op : weightOnly)
      if (needed.contains(op) && !isa<ParameterOp>(op))
        builder.clone(*op, mapping);
    SmallVector<Value> returned;
    for (auto [i, entry] : llvm::enumerate(boundary)) {
      returned.push_back(fuseSteps(builder, mapping.lookup(entry.first)));
      prepare.setResultAttr(i, kPreparedAttrName,
                            builder.getStringAttr(entry.second));
    }
    func::ReturnOp::create(builder, forward.getLoc(), returned);
    eraseDead(prepare);
  }

  void collect(Operation *op, llvm::SetVector<Operation *> &needed) {
    if (!needed.insert(op))
      return;
    for (Value operand : op->getOperands())
      collect(operand.getDefiningOp(), needed);
  }

  /// The steps that lead to a value as one convert.
  static Value fuseSteps(OpBuilder &builder, Value value) {
    Value root = value;
    int length = 0;
    for (Operation *def = root.getDefiningOp(); def && isStep(def);
         def = root.getDefiningOp(), ++length)
      root = def->getOperand(0);
    if (length < 2 || checkMove(*getWeightSpec(root.getType()),
                                *getWeightSpec(value.getType())))
      return value;
    return ConvertOp::create(builder, value.getLoc(), value.getType(), root);
  }

  static void eraseDead(func::FuncOp function) {
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  static DictionaryAttr parameterAttrs(ParameterOp parameter) {
    Builder builder(parameter.getContext());
    NamedAttrList reference;
    reference.set("pattern", parameter.getPatternAttr());
    if (parameter.getConcat())
      reference.set("concat", parameter.getConcatAttr());
    NamedAttrList attrs;
    attrs.set(kParameterAttrName,
              reference.getDictionary(parameter.getContext()));
    attrs.set(kWritableAttrName, builder.getBoolAttr(false));
    return attrs.getDictionary(parameter.getContext());
  }

  /// Prepared weights and the parameters that are left become arguments.
  void rewriteForward() {
    Builder builder(forward.getContext());
    for (auto &[value, name] : boundary) {
      NamedAttrList attrs;
      attrs.set(kPreparedAttrName, builder.getStringAttr(name));
      attrs.set(kWritableAttrName, builder.getBoolAttr(false));
      Value argument =
          addArgument(value, attrs.getDictionary(forward.getContext()));
      value.replaceUsesWithIf(argument, [&](OpOperand &use) {
        return !weightOnly.contains(use.getOwner());
      });
    }
    for (Operation *op : llvm::reverse(weightOnly.getArrayRef()))
      if (isOpTriviallyDead(op))
        op->erase();
    forward.walk([&](ParameterOp parameter) {
      Value argument =
          addArgument(parameter.getResult(), parameterAttrs(parameter));
      parameter.getResult().replaceAllUsesWith(argument);
      parameter.erase();
    });
  }

  Value addArgument(Value like, DictionaryAttr attrs) {
    unsigned index = forward.getNumArguments();
    LogicalResult inserted =
        forward.insertArgument(index, like.getType(), attrs, like.getLoc());
    assert(succeeded(inserted) && "the last position is always free");
    (void)inserted;
    return forward.getArgument(index);
  }

  func::FuncOp forward;
  llvm::SetVector<Operation *> weightOnly; // in program order
  llvm::MapVector<Value, std::string> boundary;
};

/// Globals whose value is elsewhere are parameters of that name.
void replaceExternalGlobals(ModuleOp module) {
  SmallVector<ml_program::GlobalOp> globals;
  for (auto global : module.getOps<ml_program::GlobalOp>())
    if (isa_and_nonnull<ml_program::ExternAttr>(global.getValueAttr()))
      globals.push_back(global);
  for (ml_program::GlobalOp global : globals) {
    module.walk([&](ml_program::GlobalLoadConstOp load) {
      auto type = dyn_cast<RankedTensorType>(load.getType());
      if (load.getGlobalAttr() != FlatSymbolRefAttr::get(global) || !type ||
          !type.hasStaticShape() || type.getEncoding())
        return;
      OpBuilder builder(load);
      load.replaceAllUsesWith(ParameterOp::create(builder, load.getLoc(), type,
                                                  global.getSymNameAttr(),
                                                  /*concat=*/IntegerAttr())
                                  .getResult());
      load.erase();
    });
    if (global.isPrivate() && SymbolTable::symbolKnownUseEmpty(global, module))
      global.erase();
  }
}

struct HoistPrepare : wna16::impl::HoistPrepareBase<HoistPrepare> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    replaceExternalGlobals(module);
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (hasWeights(function))
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      if (failed(check(function)))
        return signalPassFailure();
      Splitter(function).run();
    }
  }

private:
  /// Whether a function names weights, or has them as constants.
  static bool hasWeights(func::FuncOp function) {
    return function
        .walk([](Operation *op) {
          bool constant = isa<AssembleOp>(op) &&
                          llvm::all_of(op->getOperands(), [](Value part) {
                            return matchPattern(part, m_Constant());
                          });
          return constant || isa<ParameterOp>(op) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
        })
        .wasInterrupted();
  }

  LogicalResult check(func::FuncOp function) {
    ModuleOp module = getOperation();
    if (!SymbolTable::symbolKnownUseEmpty(function, module))
      return function.emitError() << "expected a function with weights not to "
                                     "be called: its signature changes";
    std::string prepare = companionName(function.getName(), "prepare");
    if (Operation *taken = module.lookupSymbol(prepare)) {
      InFlightDiagnostic error = function.emitError()
                                 << "expected the name @" << prepare
                                 << " to be free for its preparation";
      error.attachNote(taken->getLoc()) << "it is taken here";
      return error;
    }
    return success();
  }
};

} // namespace
