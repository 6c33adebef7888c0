//===- WNA16MoEOps.cpp - Routing and experts ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace wna16;

/// Extents that may be equal: dynamic ones are checked at run time.
static bool agree(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

static bool agree(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto extents) {
           return agree(std::get<0>(extents), std::get<1>(extents));
         });
}

/// Whether `type` is [extents] of `element`; a null element allows any float of
/// 16 or 32 bits.
static bool isTensor(RankedTensorType type, ArrayRef<int64_t> extents,
                     Type element = {}) {
  Type actual = type.getElementType();
  bool fits = element ? actual == element
                      : actual.isF16() || actual.isBF16() || actual.isF32();
  return fits && agree(type.getShape(), extents);
}

/// Results of destination-style operations have the shape of their inits.
static LogicalResult reifyInits(DestinationStyleOpInterface op,
                                OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  for (Value init : op.getDpsInits())
    shapes.push_back(tensor::getMixedSizes(builder, op.getLoc(), init));
  return success();
}

//===----------------------------------------------------------------------===//
// LinearOp
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  RankedTensorType x = getX().getType(), weight = getWeight().getType(),
                   init = getInit().getType();
  if (x.getRank() != 2 || weight.getRank() != 2 || init.getRank() != 2)
    return emitOpError() << "(C1) expected x, weight and init of rank 2, got "
                         << x << ", " << weight << " and " << init;
  if (x.getDimSize(1) != weight.getDimSize(0))
    return emitOpError() << "(C2) expected x to have the weight's input ("
                         << weight.getDimSize(0) << ") as columns, got "
                         << (x.isDynamicDim(1)
                                 ? std::string("dynamic ones")
                                 : std::to_string(x.getDimSize(1)));
  if (!isTensor(init, {x.getDimSize(0), weight.getDimSize(1)}))
    return emitOpError() << "(C3) expected init to be [M, "
                         << weight.getDimSize(1)
                         << "] of f16, bf16 or f32, got " << init;
  if (getBias() && !isTensor(getBias().getType(), {weight.getDimSize(1)}))
    return emitOpError() << "(C4) expected the bias to be ["
                         << weight.getDimSize(1) << "], got "
                         << getBias().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// RmsNormOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  RankedTensorType x = getX().getType();
  if (!isTensor(x, {ShapedType::kDynamic, ShapedType::kDynamic}) ||
      x.isDynamicDim(1) || x.getDimSize(1) < 1)
    return emitOpError() << "(C1) expected x [M, K] of f16, bf16 or f32 with a "
                            "static K of 1 or more, got "
                         << x;
  if (!isTensor(getWeight().getType(), {x.getDimSize(1)}))
    return emitOpError() << "(C2) expected a weight [" << x.getDimSize(1)
                         << "] of f16, bf16 or f32, got "
                         << getWeight().getType();
  for (Value other : {Value(getAddend()), Value(getInit())})
    if (other &&
        !isTensor(cast<RankedTensorType>(other.getType()), x.getShape()))
      return emitOpError() << "(C3) expected addend and init to be floats of "
                              "the shape of x, got "
                           << other.getType() << " for x " << x;
  double epsilon = getEpsilon().convertToDouble();
  double scale = getScale().convertToDouble();
  if (!std::isfinite(epsilon) || epsilon < 0 || !std::isfinite(scale))
    return emitOpError() << "(C4) expected an epsilon of 0 or more and a "
                            "finite scale, got "
                         << epsilon << " and " << scale;
  return success();
}

//===----------------------------------------------------------------------===//
// RouteOp
//===----------------------------------------------------------------------===//

MutableOperandRange RouteOp::getDpsInitsMutable() {
  // The two inits are neighbours.
  unsigned first = getWeightsInitMutable().getOperandNumber();
  return MutableOperandRange(*this, first, 2);
}

/// What version 1 wrote, in its order; then what came after.
void RouteOp::writeProperties(DialectBytecodeWriter &writer) {
  Properties &properties = getProperties();
  writer.writeOptionalAttribute(properties.backend);
  writer.writeOptionalAttribute(properties.groups);
  writer.writeOptionalAttribute(properties.renormalize);
  writer.writeOptionalAttribute(properties.scaling);
  writer.writeAttribute(properties.scoring);
  writer.writeOptionalAttribute(properties.softmax_after_topk);
  writer.writeOptionalAttribute(properties.top_groups);
  writer.writeOptionalAttribute(properties.jitter);
  writer.writeSparseArray(ArrayRef<int32_t>(properties.operandSegmentSizes));
}

LogicalResult RouteOp::readProperties(DialectBytecodeReader &reader,
                                      OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readOptionalAttribute(properties.backend)) ||
      failed(reader.readOptionalAttribute(properties.groups)) ||
      failed(reader.readOptionalAttribute(properties.renormalize)) ||
      failed(reader.readOptionalAttribute(properties.scaling)) ||
      failed(reader.readAttribute(properties.scoring)) ||
      failed(reader.readOptionalAttribute(properties.softmax_after_topk)) ||
      failed(reader.readOptionalAttribute(properties.top_groups)))
    return failure();
  FailureOr<const DialectVersion *> version =
      reader.getDialectVersion<WNA16Dialect>();
  if (failed(version) ||
      static_cast<const WNA16Dialect::Version *>(*version)->number < 2)
    // The optional operand is found once the operation is there.
    return success();
  return failure(failed(reader.readOptionalAttribute(properties.jitter)) ||
                 failed(reader.readSparseArray(MutableArrayRef<int32_t>(
                     properties.operandSegmentSizes))));
}

void RouteOp::upgradeOperands() {
  // logits, correction or not, two inits.
  getProperties().operandSegmentSizes = {1, getNumOperands() > 3 ? 1 : 0, 0, 1,
                                         1};
}

/// (C6), (C7): what goes with sparse mixing.
static LogicalResult verifyMixing(RouteOp op) {
  bool mixes = op.getScoring() == Scoring::sparsemixer;
  if (mixes &&
      (op.getCorrection() || op.getGroups() > 1 || op.getRenormalize()))
    return op.emitOpError() << "(C6) expected sparsemixer without correction, "
                               "groups and renormalize, got "
                            << (op.getCorrection()    ? "a correction"
                                : op.getRenormalize() ? "renormalize"
                                                      : "groups");
  double jitter = op.getJitter().convertToDouble();
  if (!std::isfinite(jitter) || jitter < 0 || (!mixes && jitter != 0))
    return op.emitOpError() << "(C7) expected a jitter of "
                            << (mixes ? "0 or more" : "0 without sparsemixer")
                            << ", got " << jitter;
  return success();
}

LogicalResult RouteOp::verify() {
  RankedTensorType logits = getLogits().getType();
  if (!isTensor(logits, {ShapedType::kDynamic, ShapedType::kDynamic}) ||
      logits.isDynamicDim(1))
    return emitOpError() << "(C1) expected logits [M, E] of f16, bf16 or f32 "
                            "with a static E, got "
                         << logits;
  Builder builder(getContext());
  int64_t experts = logits.getDimSize(1);
  for (auto [name, vector] : {std::pair("correction", getCorrection()),
                              std::pair("expert_scale", getExpertScale())})
    if (vector &&
        !isTensor(cast<RankedTensorType>(vector.getType()), {experts}))
      return emitOpError() << "(C1) expected " << name << " [" << experts
                           << "] of f16, bf16 or f32, got " << vector.getType();
  RankedTensorType weights = getWeightsInit().getType(),
                   ids = getIdsInit().getType();
  int64_t tokens = logits.getDimSize(0);
  if (!isTensor(weights, {tokens, ShapedType::kDynamic},
                builder.getF32Type()) ||
      weights.isDynamicDim(1) ||
      !isTensor(ids, {tokens, weights.getDimSize(1)}, builder.getI32Type()))
    return emitOpError()
           << "(C2) expected inits f32 [M, k] and i32 [M, k], got " << weights
           << " and " << ids;
  int64_t topK = weights.getDimSize(1);
  int64_t groups = getGroups(), topGroups = getTopGroups();
  if (topK < 1 || topK > experts)
    return emitOpError() << "(C3) expected k (" << topK << ") in 1.." << experts
                         << ", the experts";
  if (groups < 1 || experts % groups || topGroups < 1 || topGroups > groups ||
      topK > experts / groups * topGroups)
    return emitOpError() << "(C4) expected groups (" << groups
                         << ") to divide the experts (" << experts
                         << ") and top_groups (" << topGroups
                         << ") of them to hold k (" << topK << ") experts";
  if (getSoftmaxAfterTopk() && getScoring() != Scoring::softmax)
    return emitOpError() << "(C5) expected softmax scoring with "
                            "softmax_after_topk, got "
                         << stringifyScoring(getScoring());
  return verifyMixing(*this);
}

//===----------------------------------------------------------------------===//
// FusedExpertsOp
//===----------------------------------------------------------------------===//

/// `%weights, %ids : type, type`, or `%ids : type` when batched.
static ParseResult parseRouting(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &weights,
    Type &weightsType, OpAsmParser::UnresolvedOperand &ids, Type &idsType) {
  if (parser.parseOperand(ids))
    return failure();
  if (succeeded(parser.parseOptionalComma())) {
    weights = ids;
    if (parser.parseOperand(ids))
      return failure();
  }
  if (parser.parseColon())
    return failure();
  if (weights && (parser.parseType(weightsType) || parser.parseComma()))
    return failure();
  return parser.parseType(idsType);
}

static void printRouting(OpAsmPrinter &printer, FusedExpertsOp, Value weights,
                         Type weightsType, Value ids, Type idsType) {
  if (weights)
    printer << weights << ", ";
  printer << ids << " : ";
  if (weights)
    printer << weightsType << ", ";
  printer << idsType;
}

/// (C1) - (C3), (C11): shapes of x and the weights.
static LogicalResult verifyWeights(FusedExpertsOp op) {
  RankedTensorType x = op.getX().getType(), w13 = op.getW13().getType(),
                   w2 = op.getW2().getType();
  int64_t rank = op.getBatched() ? 3 : 2;
  if (x.getRank() != rank || w13.getRank() != 4 || w2.getRank() != 3 ||
      x.isDynamicDim(rank - 1))
    return op.emitOpError()
           << "(C1) expected x of rank " << rank
           << " with static columns, w13 of rank 4 and w2 of rank 3, got " << x
           << ", " << w13 << " and " << w2;
  if (w13.getDimSize(0) != w2.getDimSize(0) ||
      w13.getDimSize(3) != w2.getDimSize(1))
    return op.emitOpError()
           << "(C2) expected w13 and w2 to agree in experts ("
           << w13.getDimSize(0) << " and " << w2.getDimSize(0) << ") and in N ("
           << w13.getDimSize(3) << " and " << w2.getDimSize(1) << ")";
  int64_t hidden = op.getHidden();
  if (w13.getDimSize(1) < hidden || w2.getDimSize(2) < hidden)
    return op.emitOpError()
           << "(C3) expected w13's input (" << w13.getDimSize(1)
           << ") and w2's output (" << w2.getDimSize(2)
           << ") to be at least the columns of x (" << hidden << ")";
  for (RankedTensorType weight : {w13, w2})
    if (isPacked(weight) && weight.getElementType() != x.getElementType())
      return op.emitOpError()
             << "(C11) expected packed weights of x's element type ("
             << x.getElementType() << "), got " << weight.getElementType();
  return success();
}

/// (C4), (C5): routing operands.
static LogicalResult verifyRouting(FusedExpertsOp op) {
  Builder builder(op.getContext());
  RankedTensorType x = op.getX().getType(), ids = op.getIds().getType();
  if (op.getBatched()) {
    if (op.getWeights() || op.getExpertMap() ||
        !isTensor(ids, {op.getExperts()}, builder.getI32Type()) ||
        x.getDimSize(0) != op.getExperts() || ids.isDynamicDim(0))
      return op.emitOpError()
             << "(C5) expected batched experts without weights and expert_map, "
                "i32 ids ["
             << op.getExperts() << "] and x [" << op.getExperts()
             << ", T, K], got ids " << ids << " and x " << x;
    return success();
  }
  if (!op.getWeights())
    return op.emitOpError() << "(C4) expected f32 weights beside the ids "
                            << ids << ", or `batched`";
  if (!isTensor(ids, {x.getDimSize(0), ShapedType::kDynamic},
                builder.getI32Type()) ||
      ids.isDynamicDim(1) || ids.getDimSize(1) < 1 ||
      !isTensor(op.getWeights().getType(), ids.getShape(),
                builder.getF32Type()))
    return op.emitOpError()
           << "(C4) expected f32 weights [M, k] and i32 ids [M,"
              " k] with x's tokens and a static k of at least 1, got "
           << op.getWeights().getType() << " and " << ids << " for x " << x;
  if (op.getExpertMap() &&
      !isTensor(op.getExpertMap().getType(), {ShapedType::kDynamic},
                builder.getI32Type()))
    return op.emitOpError() << "(C4) expected an expert_map of i32 [global "
                               "experts], got "
                            << op.getExpertMap().getType();
  return success();
}

/// (C6): biases.
static LogicalResult verifyBiases(FusedExpertsOp op) {
  RankedTensorType w13 = op.getW13().getType(), w2 = op.getW2().getType();
  if (op.getBias13() &&
      !isTensor(op.getBias13().getType(),
                {w13.getDimSize(0), w13.getDimSize(2), w13.getDimSize(3)}))
    return op.emitOpError()
           << "(C6) expected bias13 [" << w13.getDimSize(0) << ", "
           << w13.getDimSize(2) << ", " << w13.getDimSize(3) << "], got "
           << op.getBias13().getType();
  if (op.getBias2() &&
      !isTensor(op.getBias2().getType(), {w2.getDimSize(0), w2.getDimSize(2)}))
    return op.emitOpError()
           << "(C6) expected bias2 [" << w2.getDimSize(0) << ", "
           << w2.getDimSize(2) << "], got " << op.getBias2().getType();
  return success();
}

/// (C7) - (C10): activation, flags, init.
static LogicalResult verifyOptions(FusedExpertsOp op) {
  int64_t halves = op.getHalves();
  Activation activation = op.getActivation();
  bool needsGate = activation == Activation::swigluoai ||
                   activation == Activation::swiglustep;
  if (halves < 1 || halves > 2 || (needsGate && halves != 2))
    return op.emitOpError()
           << "(C7) expected w13 to have " << (needsGate ? "2" : "1 or 2")
           << " halves for " << stringifyActivation(activation) << ", got "
           << halves;
  for (auto [name, value] :
       {std::pair("alpha", op.getAlpha()), std::pair("beta", op.getBeta()),
        std::pair("limit", op.getLimit())})
    if (value && !value->isFinite())
      return op.emitOpError() << "(C8) expected a finite " << name << ", got "
                              << value->convertToDouble();
  std::optional<APFloat> limit = op.getLimit();
  if (limit && !(limit->convertToDouble() > 0))
    return op.emitOpError() << "(C8) expected a positive limit, got "
                            << limit->convertToDouble();
  if (!limit && activation == Activation::swiglustep)
    return op.emitOpError() << "(C8) expected a limit for swiglustep";
  if (op.getRouterWeightOnInput() && (op.getBatched() || op.getTopK() != 1))
    return op.emitOpError()
           << "(C9) expected k = 1 and no batched layout with "
              "router_weight_on_input, got k = "
           << op.getTopK() << (op.getBatched() ? " and batched" : "");
  RankedTensorType x = op.getX().getType(), init = op.getInit().getType();
  if (!agree(x.getShape(), init.getShape()) ||
      (init.getElementType() != x.getElementType() &&
       !init.getElementType().isF32()))
    return op.emitOpError()
           << "(C10) expected init of x's shape, in x's type or f32, got "
           << init << " for x " << x;
  return success();
}

LogicalResult FusedExpertsOp::verify() {
  if (failed(verifyWeights(*this)) || failed(verifyRouting(*this)) ||
      failed(verifyBiases(*this)) || failed(verifyOptions(*this)))
    return failure();
  return success();
}

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16MoEOps.cpp.inc"

void WNA16Dialect::registerMoEOps() {
  addOperations<
#define GET_OP_LIST
#include "Dialect/WNA16/IR/WNA16MoEOps.cpp.inc"
      >();
}
