//===- Importer.cpp - From a checkpoint to a module -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/Catalogue.h"
#include "Transforms/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace wna16;

namespace {

/// A result of a layer's function.
struct NamedResult {
  StringRef name;
  Value value;
};

/// Builds the function of one layer.
class LayerImporter {
public:
  LayerImporter(const MoELayer &layer, ScalarType dtype,
                const ImportOptions &options, ModuleOp module)
      : layer(layer), dtype(dtype), options(options), module(module),
        context(module.getContext()),
        loc(NameLoc::get(StringAttr::get(context, layer.prefix))),
        builder(context) {}

  Failure run(StringRef name) {
    Type element = getScalarType(context, dtype);
    f32 = builder.getF32Type();
    auto rows =
        RankedTensorType::get({ShapedType::kDynamic, layer.hidden}, element);
    builder.setInsertionPointToEnd(module.getBody());
    auto function = func::FuncOp::create(builder, loc, name,
                                         builder.getFunctionType(rows, {}));
    function.setArgAttr(0, kNameAttrName, builder.getStringAttr("x"));
    builder.setInsertionPointToStart(function.addEntryBlock());
    x = function.getArgument(0);
    // The sum over ranks would have to be known within.
    if (layer.norms && options.rank.size > 1)
      return fail(layer.prefix + ": norms follow its experts, so that shares "
                                 "of them do not add up; import it whole");

    buildRouting();
    buildExperts();
    finish(function);
    return std::move(failure);
  }

private:
  //===--------------------------------------------------------------------===//
  // Weights
  //===--------------------------------------------------------------------===//

  Value parameter(const TensorPattern &pattern, ArrayRef<int64_t> shape) {
    auto type =
        RankedTensorType::get(shape, getScalarType(context, pattern.type));
    IntegerAttr concat;
    if (pattern.concat >= 0)
      concat = builder.getI64IntegerAttr(pattern.concat);
    return ParameterOp::create(builder, loc, type,
                               builder.getStringAttr(pattern.pattern), concat);
  }

  /// A weight from its file tensors; rank as in `getWeightType`.
  Value weight(const WeightSource &source, int64_t rank) {
    WeightSpec spec = source.spec;
    if (spec.code != CodeType::Dense)
      spec.element = dtype;
    SmallVector<Value> parts;
    for (const TensorPattern &pattern : source.parts) {
      ArrayRef<int64_t> shape = pattern.shape;
      // One matrix has no expert axis.
      if (rank == 2)
        shape = shape.drop_front();
      parts.push_back(parameter(pattern, shape));
    }
    return AssembleOp::create(builder, loc, getWeightType(context, spec, rank),
                              parts);
  }

  /// This rank's share of a weight or bias.
  Value share(Value whole, ShardAxis axis) {
    if (!whole || options.rank.size == 1)
      return whole;
    Result<ShardType> type = getShardType(
        cast<RankedTensorType>(whole.getType()), axis, options.rank);
    if (!type) {
      if (!failure)
        failure = fail(layer.prefix + ": " + type.message());
      return whole;
    }
    return ShardOp::create(builder, loc, type->type, whole,
                           static_cast<SharedAxis>(axis), options.rank.rank,
                           options.rank.size);
  }

  Value vector(const std::optional<TensorPattern> &pattern) {
    return pattern ? parameter(*pattern, pattern->shape) : Value();
  }

  /// [E, halves * N] of the file as [E, halves, N], in the order of w13's rows.
  Value bias13(const ExpertsSource &source) {
    if (!source.bias13)
      return {};
    const WeightSpec &spec = source.w13.spec;
    Value rows = parameter(*source.bias13, source.bias13->shape);
    auto type = RankedTensorType::get(
        {spec.experts, spec.halves, spec.output},
        cast<RankedTensorType>(rows.getType()).getElementType());
    Value bias = tensor::ExpandShapeOp::create(
        builder, loc, type, rows, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
    if (spec.layout->bias == findLayout("dense")->bias)
      return bias;
    auto encoded = RankedTensorType::get(type.getShape(), type.getElementType(),
                                         BiasAttr::get(context, spec.layout));
    return AssembleOp::create(builder, loc, encoded, bias);
  }

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  Value empty(int64_t columns, Type element) {
    return tensor::EmptyOp::create(
        builder, loc, {ShapedType::kDynamic, columns}, element, tokens());
  }

  ValueRange tokens() {
    if (!tokenCount)
      tokenCount = tensor::DimOp::create(builder, loc, x, 0);
    return tokenCount;
  }

  Value filled(int64_t columns, TypedAttr value) {
    Value scalar = arith::ConstantOp::create(builder, loc, value);
    return linalg::FillOp::create(builder, loc, scalar,
                                  empty(columns, value.getType()))
        .getResult(0);
  }

  /// A norm, in `element`; with `addend`, the sum of both.
  Value normed(Value input, const NormSource &norm, Type element,
               Value addend = {}) {
    Value scale = parameter(norm.weight, norm.weight.shape);
    Value init = empty(layer.hidden, element);
    return RmsNormOp::create(builder, loc, init.getType(), input, scale, addend,
                             init, builder.getF64FloatAttr(norm.epsilon),
                             builder.getF64FloatAttr(norm.scale), StringAttr());
  }

  Value linear(Value input, const WeightSource &source,
               const std::optional<TensorPattern> &bias) {
    Value matrix = weight(source, 2);
    Value offset = vector(bias);
    Value init = empty(source.spec.rows(), f32);
    return LinearOp::create(builder, loc, init.getType(), input, matrix, offset,
                            init, StringAttr(), UnitAttr());
  }

  void buildRouting() {
    const RouterSource &router = layer.router;
    Value input = layer.norms ? normed(x, layer.norms->router, f32) : x;
    logits = linear(input, router.weight, router.bias);
    Value correction = vector(router.correction);
    Value expertScale = vector(router.expertScale);
    Value weightsInit = empty(router.topK, f32);
    Value idsInit = empty(router.topK, builder.getI32Type());
    auto route = RouteOp::create(
        builder, loc, weightsInit.getType(), idsInit.getType(),
        scoring(static_cast<Scoring>(router.scoring)), logits, correction,
        expertScale, weightsInit, idsInit, unit(router.renormalize),
        builder.getI64IntegerAttr(router.groups),
        builder.getI64IntegerAttr(router.topGroups),
        unit(router.softmaxAfterTopK), builder.getF64FloatAttr(router.scaling),
        builder.getF64FloatAttr(router.jitter), StringAttr());
    weights = route.getWeights();
    ids = route.getIds();
  }

  /// The experts' sum, in `element`.
  Value experts(Value input, const ExpertsSource &source, Value slotWeights,
                Value slotIds, Type element, bool weightOnInput) {
    Value w13 = share(weight(source.w13, 4), ShardAxis::Output);
    Value w2 = share(weight(source.w2, 3), ShardAxis::Input);
    Value firstBias = share(bias13(source), ShardAxis::Output);
    // Added once in the sum over ranks.
    Value secondBias;
    if (options.rank.rank == 0)
      secondBias = vector(source.bias2);
    Value init = empty(layer.hidden, element);
    const ActivationSource &act = layer.activation;
    bool parameterised = act.kind == WNA16_SWIGLUOAI;
    auto scalar = [&](bool given, double value) {
      return given ? builder.getF64FloatAttr(value) : FloatAttr();
    };
    return FusedExpertsOp::create(
        builder, loc, init.getType(),
        ActivationAttr::get(context, static_cast<Activation>(act.kind)), input,
        slotWeights, slotIds, w13, w2, firstBias, secondBias,
        /*expert_map=*/Value(), init, scalar(parameterised, act.alpha),
        scalar(parameterised, act.beta), scalar(act.limit > 0, act.limit),
        ActivationTypeAttr::get(context, ActivationType::a16),
        /*batched=*/UnitAttr(), unit(weightOnInput),
        /*batch_invariant=*/UnitAttr(), /*backend=*/StringAttr());
  }

  void buildExperts() {
    Type element = getScalarType(context, dtype);
    if (!layer.shared) {
      out = routed =
          experts(x, layer.experts, weights, ids, element, layer.weightOnInput);
      return;
    }
    const std::optional<BlockNorms> &norms = layer.norms;
    Value input = norms ? normed(x, norms->experts, element) : x;
    Value sum =
        experts(input, layer.experts, weights, ids, f32, layer.weightOnInput);
    Location blockLoc = loc;
    loc = NameLoc::get(builder.getStringAttr(layer.prefix + ".shared"));
    Value shared = buildShared(norms ? normed(x, norms->shared, element) : x);
    loc = blockLoc;
    if (options.intermediates)
      routed = rounded({sum}, element);
    if (!norms) {
      out = rounded({sum, shared}, element);
      return;
    }
    shared = normed(shared, norms->sharedOut, f32);
    out = normed(normed(sum, norms->expertsOut, f32, shared), norms->out,
                 element);
  }

  /// The shared expert: one expert that every token chooses, with weight 1 or
  /// the gate's.
  Value buildShared(Value input) {
    Value one, zero;
    if (layer.sharedGate) {
      Value gate = linear(input, *layer.sharedGate, std::nullopt);
      Value gateInit = empty(1, f32);
      Value idInit = empty(1, builder.getI32Type());
      auto route = RouteOp::create(
          builder, loc, gateInit.getType(), idInit.getType(),
          scoring(Scoring::sigmoid), gate, /*correction=*/Value(),
          /*expert_scale=*/Value(), gateInit, idInit, UnitAttr(),
          builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(1),
          UnitAttr(), builder.getF64FloatAttr(1.0), builder.getF64FloatAttr(0),
          StringAttr());
      one = route.getWeights();
      zero = route.getIds();
    } else {
      one = filled(1, builder.getF32FloatAttr(1.0f));
      zero = filled(1, builder.getI32IntegerAttr(0));
    }
    return experts(input, *layer.shared, one, zero, f32,
                   /*weightOnInput=*/false);
  }

  /// The sum of f32 tensors, rounded once.
  Value rounded(ArrayRef<Value> terms, Type element) {
    if (terms.size() == 1 && element.isF32())
      return terms[0];
    Value init = empty(layer.hidden, element);
    AffineMap identity = builder.getMultiDimIdentityMap(2);
    SmallVector<AffineMap> maps(terms.size() + 1, identity);
    SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
    auto body = [&](OpBuilder &nested, Location at, ValueRange arguments) {
      Value value = arguments[0];
      for (Value term : arguments.drop_front().drop_back())
        value = arith::AddFOp::create(nested, at, value, term);
      if (!element.isF32())
        value = arith::TruncFOp::create(nested, at, element, value);
      linalg::YieldOp::create(nested, at, value);
    };
    return linalg::GenericOp::create(builder, loc, init.getType(), terms, init,
                                     maps, loops, body)
        .getResult(0);
  }

  ScoringAttr scoring(Scoring kind) { return ScoringAttr::get(context, kind); }

  UnitAttr unit(bool given) {
    return given ? builder.getUnitAttr() : UnitAttr();
  }

  void finish(func::FuncOp function) {
    SmallVector<NamedResult> results;
    if (options.intermediates)
      results = {{"router_logits", logits},
                 {"topk_ids", ids},
                 {"topk_weights", weights},
                 {"experts_out", routed}};
    results.push_back({"out", out});
    SmallVector<Value> values;
    for (const NamedResult &result : results)
      values.push_back(result.value);
    func::ReturnOp::create(builder, loc, values);
    function.setType(builder.getFunctionType(function.getArgumentTypes(),
                                             ValueRange(values).getTypes()));
    for (auto [i, result] : llvm::enumerate(results))
      function.setResultAttr(i, kNameAttrName,
                             builder.getStringAttr(result.name));
  }

  const MoELayer &layer;
  ScalarType dtype;
  const ImportOptions &options;
  ModuleOp module;
  MLIRContext *context;
  Location loc;
  OpBuilder builder;
  Failure failure; ///< the first
  Type f32;
  Value x, tokenCount, logits, weights, ids, routed, out;
};

} // namespace

std::string wna16::layerFunctionName(int64_t layer, size_t layersInModule) {
  return layersInModule == 1 ? "forward" : "forward_" + std::to_string(layer);
}

Result<std::vector<const MoELayer *>>
wna16::selectLayers(const Checkpoint &checkpoint,
                    const std::vector<int64_t> &indices) {
  std::vector<const MoELayer *> layers;
  if (indices.empty())
    for (const MoELayer &layer : checkpoint.layers())
      layers.push_back(&layer);
  for (int64_t index : indices) {
    const MoELayer *layer = checkpoint.layer(index);
    if (!layer) {
      std::string known;
      for (const MoELayer &each : checkpoint.layers())
        known += (known.empty() ? "" : ", ") + std::to_string(each.index);
      return fail("layer " + std::to_string(index) +
                  " is not an MoE layer of " + checkpoint.directory() +
                  "; those are " + known);
    }
    if (!llvm::is_contained(layers, layer))
      layers.push_back(layer);
  }
  if (layers.empty())
    return fail(checkpoint.directory() + " has no MoE layer");
  return layers;
}

Result<OwningOpRef<ModuleOp>>
wna16::importCheckpoint(MLIRContext *context, const Checkpoint &checkpoint,
                        const ImportOptions &options) {
  Result<std::vector<const MoELayer *>> layers =
      selectLayers(checkpoint, options.layers);
  if (!layers)
    return layers.takeFailure();
  context->loadDialect<WNA16Dialect, arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, tensor::TensorDialect>();
  Result<std::string> source = checkpoint.identity();
  if (!source)
    return source.takeFailure();
  Builder builder(context);
  Location loc =
      NameLoc::get(builder.getStringAttr(checkpoint.modelType() + " model"));
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  (*module)->setAttr(
      kCheckpointAttrName,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("model",
                                builder.getStringAttr(checkpoint.modelType())),
           builder.getNamedAttr("method",
                                builder.getStringAttr(checkpoint.method())),
           builder.getNamedAttr("source", builder.getStringAttr(*source))}));
  if (options.rank.size > 1)
    (*module)->setAttr(
        kShareAttrName,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("rank",
                                  builder.getI64IntegerAttr(options.rank.rank)),
             builder.getNamedAttr(
                 "size", builder.getI64IntegerAttr(options.rank.size))}));
  ScalarType dtype = options.dtype.value_or(checkpoint.dtype());
  for (const MoELayer *layer : *layers)
    if (Failure failure =
            LayerImporter(*layer, dtype, options, *module)
                .run(layerFunctionName(layer->index, layers->size())))
      return failure;
  // Says what is wrong; types follow from the checkpoint, which is untrusted.
  if (failed(verify(*module)))
    return fail("the checkpoint's layers do not make a valid module");
  return module;
}
