//===- Disassemble.cpp - Encoded tensors to parts, operations to kernels --===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Dialect/WNA16/IR/KernelPlan.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Transforms/Disassembly.h"
#include "Transforms/Passes.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace wna16 {
#define GEN_PASS_DEF_DISASSEMBLE
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// Collects the operands of one kernel call under their roles.
class KernelCall {
public:
  KernelCall(ConversionPatternRewriter &rewriter, Location loc, StringRef kind)
      : rewriter(rewriter), loc(loc), kind(*findPlanKind(kind)) {}

  void input(StringRef role, Value value) {
    if (!value)
      return;
    inputs.push_back(value);
    inputRoles.push_back(rewriter.getStringAttr(role));
  }

  void input(StringRef role, ValueRange values) {
    if (!values.empty())
      input(role, values.front());
  }

  /// The parts of an encoded operand, as "role.codes" and so on where the kind
  /// has these roles.
  void weight(StringRef role, Type type, ValueRange parts) {
    if (!hasParts(role))
      return input(role, parts);
    for (auto [part, value] :
         llvm::zip(getPartNames(cast<RankedTensorType>(type)), parts))
      input((role + "." + part).str(), value);
  }

  void output(StringRef role, Value init) {
    outputs.push_back(init);
    outputRoles.push_back(rewriter.getStringAttr(role));
  }

  /// New tensors for the parts of a weight, or for a bias.
  void weightOutput(StringRef role, RankedTensorType type) {
    if (!isWeight(type))
      return output(role, empty(type));
    for (auto [part, storage] :
         llvm::zip(getPartNames(type), getStorageTypes(type)))
      output(hasParts(role) ? (role + "." + part).str() : role.str(),
             empty(storage));
  }

  void field(StringRef name, Attribute value) { fields.set(name, value); }
  void field(StringRef name, int64_t value) {
    field(name, rewriter.getI64IntegerAttr(value));
  }
  void field(StringRef name, Type type) { field(name, TypeAttr::get(type)); }
  void keyword(StringRef name, StringRef value) {
    field(name, rewriter.getStringAttr(value));
  }
  void flag(StringRef name, bool value) {
    if (value)
      field(name, rewriter.getUnitAttr());
  }
  void number(StringRef name, FloatAttr value) {
    if (value)
      field(name, value);
  }

  /// The results of the call.
  ValueRange emit(StringRef symbol) {
    auto plan = KernelPlanOp::create(
        rewriter, loc, PlanType::get(rewriter.getContext()),
        rewriter.getStringAttr(kind.name),
        FlatSymbolRefAttr::get(rewriter.getContext(), symbol),
        fields.getDictionary(rewriter.getContext()));
    SmallVector<Attribute> roles(inputRoles);
    roles.append(outputRoles);
    return KernelRunOp::create(rewriter, loc, TypeRange(ValueRange(outputs)),
                               plan, inputs, outputs, /*workspace=*/Value(),
                               /*stream=*/Value(), rewriter.getArrayAttr(roles))
        .getResults();
  }

private:
  bool hasParts(StringRef role) const {
    return llvm::is_contained(kind.roles, (role + "*").str());
  }

  Value empty(RankedTensorType type) {
    return tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                   type.getElementType());
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  const PlanKind &kind;
  SmallVector<Value> inputs, outputs;
  SmallVector<Attribute> inputRoles, outputRoles;
  NamedAttrList fields;
};

/// A pattern that knows the target.
template <typename OpT>
struct KernelPattern : OpConversionPattern<OpT> {
  KernelPattern(const TypeConverter &converter, MLIRContext *context,
                TargetAttr target)
      : OpConversionPattern<OpT>(converter, context), target(target) {}
  TargetAttr target;
};

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// What makes one weight of another is one call; which, `weightKind` says. What
/// makes one bias of another is another.
template <typename OpT>
struct LowerStep : KernelPattern<OpT> {
  LowerStep(const TypeConverter &converter, MLIRContext *context,
            TargetAttr target, StringRef weightKind)
      : KernelPattern<OpT>(converter, context, target), weightKind(weightKind) {
  }
  using typename KernelPattern<OpT>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpT op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType source = op.getSource().getType(),
                     result = op.getResult().getType();
    StringRef kind = isWeight(source) ? weightKind : "convert_bias";
    KernelCall call(rewriter, op.getLoc(), kind);
    call.weight("source", source, adaptor.getSource());
    call.weightOutput("target", result);
    call.field("source", source);
    call.field("target", result);
    if constexpr (std::is_same_v<OpT, DequantizeOp>)
      call.flag("scale_first", op.getScaleFirst());
    if (std::optional<Window> window = getWindow(op))
      call.field("window", getWindowAttr(op.getContext(), *window));
    rewriter.replaceOpWithMultiple(
        op, {call.emit(runtimeSymbol(this->target, kind))});
    return success();
  }

  StringRef weightKind;
};

//===----------------------------------------------------------------------===//
// Routing and experts
//===----------------------------------------------------------------------===//

struct LowerLinear : KernelPattern<LinearOp> {
  using KernelPattern::KernelPattern;

  LogicalResult
  matchAndRewrite(LinearOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    KernelCall call(rewriter, op.getLoc(), "linear");
    call.input("x", adaptor.getX());
    call.weight("weight", op.getWeight().getType(), adaptor.getWeight());
    call.input("bias", adaptor.getBias());
    call.output("y", adaptor.getInit().front());
    call.field("weight", op.getWeight().getType());
    call.flag("batch_invariant", op.getBatchInvariant());
    rewriter.replaceOp(op, call.emit(runtimeSymbol(target, "linear")));
    return success();
  }
};

struct LowerRmsNorm : KernelPattern<RmsNormOp> {
  using KernelPattern::KernelPattern;

  LogicalResult
  matchAndRewrite(RmsNormOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    KernelCall call(rewriter, op.getLoc(), "rms_norm");
    call.input("x", adaptor.getX());
    call.input("weight", adaptor.getWeight());
    call.input("addend", adaptor.getAddend());
    call.output("y", adaptor.getInit().front());
    call.field("hidden", op.getHidden());
    call.number("epsilon", op.getEpsilonAttr());
    call.number("scale", op.getScaleAttr());
    rewriter.replaceOp(op, call.emit(runtimeSymbol(target, "rms_norm")));
    return success();
  }
};

struct LowerRoute : KernelPattern<RouteOp> {
  using KernelPattern::KernelPattern;

  LogicalResult
  matchAndRewrite(RouteOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    KernelCall call(rewriter, op.getLoc(), "route");
    call.input("logits", adaptor.getLogits());
    call.input("correction", adaptor.getCorrection());
    call.input("expert_scale", adaptor.getExpertScale());
    call.output("weights", adaptor.getWeightsInit().front());
    call.output("ids", adaptor.getIdsInit().front());
    call.field("experts", op.getExperts());
    call.field("top_k", op.getTopK());
    call.keyword("scoring", stringifyScoring(op.getScoring()));
    call.flag("renormalize", op.getRenormalize());
    call.field("groups", op.getGroups());
    call.field("top_groups", op.getTopGroups());
    call.flag("softmax_after_topk", op.getSoftmaxAfterTopk());
    call.number("scaling", op.getScalingAttr());
    if (op.getScoring() == Scoring::sparsemixer)
      call.number("jitter", op.getJitterAttr());
    rewriter.replaceOp(op, call.emit(runtimeSymbol(target, "route")));
    return success();
  }
};

struct LowerFusedExperts : KernelPattern<FusedExpertsOp> {
  using KernelPattern::KernelPattern;

  LogicalResult
  matchAndRewrite(FusedExpertsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Backend *backend =
        BackendRegistry::get().find(op.getBackend().value_or(StringRef()));
    if (!backend)
      return op.emitOpError() << "expected a backend, chosen by "
                                 "wna16-select-backend, got '"
                              << op.getBackend().value_or("") << "'";
    if (backend->kernel().empty())
      return op.emitOpError() << "expected wna16-emulate before: backend "
                              << backend->name() << " has no runtime kernel";
    KernelCall call(rewriter, op.getLoc(), "experts");
    addOperands(call, op, adaptor);
    addFields(call, op);
    rewriter.replaceOp(op, call.emit(backend->kernel()));
    return success();
  }

private:
  static void addOperands(KernelCall &call, FusedExpertsOp op,
                          OneToNOpAdaptor adaptor) {
    call.input("x", adaptor.getX());
    call.input("weights", adaptor.getWeights());
    call.input("ids", adaptor.getIds());
    call.weight("w13", op.getW13().getType(), adaptor.getW13());
    call.weight("w2", op.getW2().getType(), adaptor.getW2());
    call.input("bias13", adaptor.getBias13());
    call.input("bias2", adaptor.getBias2());
    call.input("expert_map", adaptor.getExpertMap());
    call.output("y", adaptor.getInit().front());
  }

  static void addFields(KernelCall &call, FusedExpertsOp op) {
    call.field("w13", op.getW13().getType());
    call.field("w2", op.getW2().getType());
    call.field("hidden", op.getHidden());
    call.field("element", op.getX().getType().getElementType());
    call.field("top_k", op.getTopK());
    call.keyword("activation", stringifyActivation(op.getActivation()));
    if (op.getActivationType() != ActivationType::a16)
      call.keyword("activation_type",
                   stringifyActivationType(op.getActivationType()));
    call.flag("batched", op.getBatched());
    call.flag("weight_on_input", op.getRouterWeightOnInput());
    call.flag("batch_invariant", op.getBatchInvariant());
    for (Value bias : {op.getBias13(), op.getBias2()})
      if (bias)
        if (auto encoding = dyn_cast_or_null<BiasAttr>(
                cast<RankedTensorType>(bias.getType()).getEncoding()))
          call.keyword("bias_layout", encoding.getLayout()->name);
    call.number("alpha", op.getAlphaAttr());
    call.number("beta", op.getBetaAttr());
    call.number("limit", op.getLimitAttr());
  }
};

struct Disassemble : wna16::impl::DisassembleBase<Disassemble> {
  void runOnOperation() override {
    // A module without operations of the dialect needs no target.
    TargetAttr machine;
    WalkResult found = getOperation().walk([](Operation *op) {
      return isa_and_nonnull<WNA16Dialect>(op->getDialect()) &&
                     !isa<AssembleOp, DisassembleOp, ParameterOp, KernelPlanOp,
                          KernelRunOp>(op)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (found.wasInterrupted() && !(machine = getTarget(getOperation())))
      return signalPassFailure();

    MLIRContext *context = &getContext();
    DisassemblyConverter converter;
    ConversionTarget target(*context);
    RewritePatternSet patterns(context);
    populateDisassemblyPatterns(converter, patterns, target);
    patterns
        .add<LowerStep<ShardOp>, LowerStep<PadOp>, LowerStep<RegroupOp>,
             LowerStep<RepackOp>, LowerStep<RecodeOp>, LowerStep<SortGroupsOp>,
             LowerStep<ConvertOp>, LowerStep<ConvertBiasOp>>(
            converter, context, machine, "convert");
    patterns.add<LowerStep<DequantizeOp>>(converter, context, machine,
                                          "dequantize");
    patterns.add<LowerStep<QuantizeOp>>(converter, context, machine,
                                        "quantize");
    patterns.add<LowerLinear, LowerRmsNorm, LowerRoute, LowerFusedExperts>(
        converter, context, machine);
    target.addIllegalDialect<WNA16Dialect>();
    target.addLegalOp<KernelPlanOp, KernelRunOp, ParameterOp>();
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
