//===- HoistPrepare.cpp - What depends on weights alone -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/Move.h"
#include "Layout/TensorNames.h"
#include "Transforms/Names.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
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
  if (isa<ShardOp>(op))
    return isPacked(op->getResultTypes().front());
  return isa<PadOp, RegroupOp, RepackOp, RecodeOp, SortGroupsOp, ConvertOp>(op);
}

//===----------------------------------------------------------------------===//
// One expert
//===----------------------------------------------------------------------===//

/// The type of one expert of `experts`; null for a tensor that has no axis of
/// experts, or one of whose parts belongs to all of them (a global scale).
RankedTensorType oneExpert(Type type, int64_t experts) {
  auto whole = cast<RankedTensorType>(type);
  bool hasExperts = isWeight(whole) ? whole.getRank() >= 3
                                    : isBias(whole) && whole.getRank() >= 1;
  if (!hasExperts || whole.getDimSize(0) != experts)
    return {};
  SmallVector<int64_t> shape(whole.getShape());
  shape[0] = 1;
  auto one = whole.clone(shape);
  if (!isEncoded(whole))
    return one;
  SmallVector<RankedTensorType> parts = getStorageTypes(whole);
  SmallVector<RankedTensorType> slices = getStorageTypes(one);
  if (parts.size() != slices.size())
    return {};
  for (auto [part, slice] : llvm::zip(parts, slices))
    if (part.getDimSize(0) != experts || slice.getDimSize(0) != 1 ||
        part.getShape().drop_front() != slice.getShape().drop_front())
      return {};
  return one;
}

/// What computes one or several prepared values. They share parameters, so that
/// each is read once.
struct Chain {
  std::string function;                     ///< that will compute them
  SmallVector<Value> values;                ///< in order of their names
  llvm::SmallSetVector<Operation *, 8> ops; ///< all that they need
  /// How many experts there are when it can be computed one by one, else 1.
  int64_t experts = 1;

  bool sharesWith(const Chain &other) const {
    return llvm::any_of(ops, [&](Operation *op) {
      return !op->hasTrait<OpTrait::ConstantLike>() && other.ops.contains(op);
    });
  }

  /// Sets `experts`.
  void findExperts() {
    auto type = cast<RankedTensorType>(values.front().getType());
    int64_t leading = type.getRank() ? type.getDimSize(0) : 1;
    if (llvm::all_of(ops,
                     [&](Operation *op) { return isPerExpert(op, leading); }))
      experts = leading;
  }

private:
  static bool isPerExpert(Operation *op, int64_t experts) {
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      // Halves in two files of all experts would have to be cut and joined.
      if (parameter.getConcat() &&
          !parameter.getPattern().contains(kExpertMark))
        return false;
    } else if (!isStep(op) &&
               !isa<AssembleOp, DisassembleOp, ShardOp, DequantizeOp,
                    QuantizeOp, ConvertBiasOp>(op)) {
      return false;
    }
    return llvm::all_of(op->getResultTypes(), [&](Type type) {
      return static_cast<bool>(oneExpert(type, experts));
    });
  }
};

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// Splits one function into what runs once and what runs on tokens.
class Splitter {
public:
  explicit Splitter(func::FuncOp forward) : forward(forward) {}

  LogicalResult run() {
    findWeightOnly();
    findBoundary();
    nameBoundary();
    findChains();
    if (failed(checkNames()))
      return failure();
    recordBackends();
    for (const Chain &chain : chains)
      buildPrepare(chain);
    rewriteForward();
    return success();
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

  /// Boundary values that need the same parameters form one chain.
  void findChains() {
    for (auto &[value, name] : boundary) {
      Chain chain;
      chain.values.push_back(value);
      collect(value.getDefiningOp(), chain);
      for (Chain &other : chains)
        if (other.sharesWith(chain)) {
          chain.values.insert(chain.values.begin(), other.values.begin(),
                              other.values.end());
          chain.ops.insert_range(other.ops);
          other.values.clear();
        }
      llvm::erase_if(chains, [](Chain &each) { return each.values.empty(); });
      chains.push_back(std::move(chain));
    }
    for (Chain &chain : chains) {
      chain.function = companionName(forward.getName(), "prepare") + "_" +
                       boundary.lookup(chain.values.front());
      chain.findExperts();
    }
  }

  void collect(Operation *op, Chain &chain) {
    if (!chain.ops.insert(op))
      return;
    for (Value operand : op->getOperands())
      collect(operand.getDefiningOp(), chain);
  }

  LogicalResult checkNames() {
    auto module = forward->getParentOfType<ModuleOp>();
    for (const Chain &chain : chains)
      if (Operation *taken = module.lookupSymbol(chain.function)) {
        InFlightDiagnostic error = forward.emitError()
                                   << "expected the name @" << chain.function
                                   << " to be free for its preparation";
        error.attachNote(taken->getLoc()) << "it is taken here";
        return error;
      }
    return success();
  }

  /// What the layouts of the prepared weights are for.
  void recordBackends() {
    Builder builder(forward.getContext());
    llvm::SmallSetVector<Attribute, 2> backends;
    forward.walk([&](FusedExpertsOp experts) {
      if (StringAttr backend = experts.getBackendAttr())
        backends.insert(backend);
    });
    if (!backends.empty())
      forward->setAttr(kBackendsAttrName,
                       builder.getArrayAttr(backends.getArrayRef()));
  }

  void buildPrepare(const Chain &chain) {
    OpBuilder builder(forward);
    auto sliced = [&](Type type) -> Type {
      return chain.experts > 1 ? oneExpert(type, chain.experts) : type;
    };
    SmallVector<ParameterOp> parameters;
    SmallVector<Type> inputs, results;
    for (Operation *op : weightOnly) // in program order
      if (auto parameter = dyn_cast<ParameterOp>(op);
          parameter && chain.ops.contains(op)) {
        parameters.push_back(parameter);
        inputs.push_back(sliced(parameter.getType()));
      }
    for (Value value : chain.values)
      results.push_back(sliced(value.getType()));
    auto prepare =
        func::FuncOp::create(builder, forward.getLoc(), chain.function,
                             builder.getFunctionType(inputs, results));
    prepare->setAttr(kPrepareAttrName, forward.getNameAttr());
    if (chain.experts > 1)
      prepare->setAttr(kExpertsAttrName,
                       builder.getI64IntegerAttr(chain.experts));
    builder.setInsertionPointToStart(prepare.addEntryBlock());
    IRMapping mapping;
    for (auto [i, parameter] : llvm::enumerate(parameters)) {
      prepare.setArgAttrs(i, parameterAttrs(parameter));
      mapping.map(parameter.getResult(), prepare.getArgument(i));
    }
    for (Operation *op : weightOnly)
      if (chain.ops.contains(op) && !isa<ParameterOp>(op))
        for (OpResult result : builder.clone(*op, mapping)->getResults())
          result.setType(sliced(result.getType()));
    SmallVector<Value> returned;
    for (auto [i, value] : llvm::enumerate(chain.values)) {
      returned.push_back(fuseSteps(builder, mapping.lookup(value)));
      prepare.setResultAttr(i, kPreparedAttrName,
                            builder.getStringAttr(boundary.lookup(value)));
    }
    func::ReturnOp::create(builder, forward.getLoc(), returned);
    eraseDead(prepare);
  }

  /// The steps that lead to a value as one convert. One that takes a part of a
  /// weight is the first of them.
  static Value fuseSteps(OpBuilder &builder, Value value) {
    Value root = value;
    SmallVector<Value> between;
    std::optional<Window> window;
    for (Operation *def = root.getDefiningOp(); def && isStep(def) && !window;
         def = root.getDefiningOp()) {
      between.push_back(root);
      root = def->getOperand(0);
      window = getWindow(def);
    }
    bool rounds = llvm::any_of(between, [&](Value middle) {
      return roundsBetween(root.getType(), middle.getType(), value.getType());
    });
    if (between.size() < 2 || rounds ||
        checkMove(*getWeightSpec(root.getType()),
                  *getWeightSpec(value.getType()), window.value_or(Window())))
      return value;
    return ConvertOp::create(
        builder, value.getLoc(), value.getType(), root,
        window ? getWindowAttr(builder.getContext(), *window) : nullptr);
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
      attrs.set(kEncodingAttrName, encodingText(value.getType()));
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

  /// The type as a user reads it, without aliases.
  static StringAttr encodingText(Type type) {
    std::string text;
    llvm::raw_string_ostream os(text);
    type.print(os);
    return StringAttr::get(type.getContext(), text);
  }

  Value addArgument(Value like, DictionaryAttr attrs) {
    return appendArgument(forward, like.getType(), attrs, like.getLoc());
  }

  func::FuncOp forward;
  llvm::SetVector<Operation *> weightOnly; // in program order
  llvm::MapVector<Value, std::string> boundary;
  std::vector<Chain> chains;
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

/// Takes away what a function does and all arguments but its weights.
void keepWeights(func::FuncOp function) {
  function.getBody().dropAllReferences();
  function.getBody().getBlocks().clear();
  OpBuilder builder = OpBuilder::atBlockEnd(function.addEntryBlock());
  func::ReturnOp::create(builder, function.getLoc());
  BitVector others(function.getNumArguments());
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
    others[i] = !function.getArgAttr(i, kPreparedAttrName) &&
                !function.getArgAttr(i, kParameterAttrName);
  BitVector results(function.getNumResults(), true);
  LogicalResult arguments = function.eraseArguments(others);
  LogicalResult returned = function.eraseResults(results);
  assert(succeeded(arguments) && succeeded(returned) && "nothing uses them");
  (void)arguments;
  (void)returned;
}

/// What is left of a module prepares its weights, on the CPU whatever they are
/// for, and says which ones its functions take.
void keepPreparation(ModuleOp module, ArrayRef<func::FuncOp> functions) {
  for (func::FuncOp function : functions)
    keepWeights(function);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (!function->hasAttr(kPrepareAttrName) &&
        !llvm::is_contained(functions, function))
      function.erase();
  if (Attribute target = module->getAttr(kTargetAttrName))
    module->setAttr(kPreparedForAttrName, target);
  std::string error;
  module->setAttr(kTargetAttrName,
                  TargetAttr::parse(module.getContext(), "cpu", error));
}

/// Remarks on the first of the steps that stay: callers pay for them each time.
void remarkRepeated(func::FuncOp function) {
  function.walk([&](Operation *op) {
    if (!isStep(op))
      return;
    Operation *before = op->getOperand(0).getDefiningOp();
    if (before && isStep(before))
      return;
    auto missed =
        remark::missed(op->getLoc(), remark::RemarkOpts::name("repeated")
                                         .category("wna16.prepare")
                                         .function(function.getName()));
    missed << remark::reason("the weight is prepared in every call, being made "
                             "of more than parameters and constants");
    missed << remark::suggest("give it as wna16.parameter, or in the layout of "
                              "the backend");
  });
}

struct HoistPrepare : wna16::impl::HoistPrepareBase<HoistPrepare> {
  using HoistPrepareBase::HoistPrepareBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    replaceExternalGlobals(module);
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (hasWeights(function))
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(check(function)) || failed(Splitter(function).run()))
        return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function->hasAttr(kPrepareAttrName))
        remarkRepeated(function);
    if (prepareOnly)
      keepPreparation(module, functions);
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
    if (!SymbolTable::symbolKnownUseEmpty(function, getOperation()))
      return function.emitError() << "expected a function with weights not to "
                                     "be called: its signature changes";
    return success();
  }
};

} // namespace
