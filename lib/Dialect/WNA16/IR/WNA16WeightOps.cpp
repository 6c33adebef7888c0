//===- WNA16WeightOps.cpp - Weights and their preparation -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/Move.h"
#include "Layout/TensorNames.h"

#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace wna16;

//===----------------------------------------------------------------------===//
// ParameterOp
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  Result<TensorNames> names = TensorNames::parse(getPattern());
  if (!names)
    return emitOpError() << "(C5) " << names.message();
  auto alternatives = static_cast<int64_t>(names->alternatives());
  if ((alternatives > 0) != getConcat().has_value())
    return emitOpError() << "(C1) expected concat exactly when the pattern has "
                            "alternatives ("
                         << alternatives << ")";
  RankedTensorType type = getResult().getType();
  if (!type.hasStaticShape() || (names->isPerExpert() && !type.getRank()))
    return emitOpError() << "(C3) expected a static shape, with an axis for "
                            "{expert}, got "
                         << type;
  if (!alternatives)
    return success();
  // The expert axis is not an axis of the file tensors; neither is the leading
  // 1 of what is not per expert.
  int64_t fileAxis = *getConcat();
  int64_t leading = 0;
  if (type.getRank() > 0 && (names->isPerExpert() || type.getDimSize(0) == 1))
    leading = 1;
  if (fileAxis < 0 || fileAxis >= type.getRank() - leading)
    return emitOpError() << "(C2) expected concat to be one of "
                         << type.getRank() - leading << " axes, got "
                         << fileAxis;
  int64_t extent = type.getDimSize(fileAxis + leading);
  if (extent % alternatives)
    return emitOpError() << "(C4) expected the joined extent (" << extent
                         << ") to be a multiple of the alternatives ("
                         << alternatives << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// AssembleOp, DisassembleOp
//===----------------------------------------------------------------------===//

/// codes = %0, scales = %1 : type, type -> type
ParseResult AssembleOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<std::pair<StringRef, SMLoc>> names;
  auto parsePart = [&]() -> ParseResult {
    names.emplace_back(StringRef(), parser.getCurrentLocation());
    return failure(parser.parseKeyword(&names.back().first) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  SmallVector<Type> types;
  RankedTensorType resultType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(parsePart) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseTypeList(types) || parser.parseArrow() ||
      parser.parseType(resultType) ||
      parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  for (auto [expected, given] : llvm::zip(getPartNames(resultType), names))
    if (expected != given.first)
      return parser.emitError(given.second, "expected part '")
             << expected << "', got '" << given.first << "'";
  result.addTypes(resultType);
  return success();
}

void AssembleOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  llvm::interleaveComma(
      llvm::zip(getPartNames(getResult().getType()), getParts()), printer,
      [&](auto part) {
        printer << std::get<0>(part) << " = " << std::get<1>(part);
      });
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getParts().getTypes() << " -> " << getResult().getType();
}

LogicalResult AssembleOp::verify() {
  if (!isEncoded(getResult().getType()))
    return emitOpError() << "expected an encoded result, got "
                         << getResult().getType();
  SmallVector<RankedTensorType> expected =
      getStorageTypes(getResult().getType());
  if (expected.size() != getParts().size())
    return emitOpError() << "(C1) expected " << expected.size()
                         << " parts for this encoding, got "
                         << getParts().size();
  SmallVector<StringRef> names = getPartNames(getResult().getType());
  for (auto [name, type, part] : llvm::zip(names, expected, getParts()))
    if (part.getType() != type)
      return emitOpError() << "(C2) expected " << name << " of type " << type
                           << ", got " << part.getType();
  return success();
}

LogicalResult DisassembleOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location> loc,
                                              DisassembleOp::Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto source = dyn_cast<RankedTensorType>(adaptor.getSource().getType());
  if (!source || !isEncoded(source))
    return emitOptionalError(loc, "expected an encoded tensor, got ",
                             adaptor.getSource().getType());
  llvm::append_range(types, getStorageTypes(source));
  return success();
}

/// The parts of an assembled weight are what it was assembled from.
LogicalResult DisassembleOp::canonicalize(DisassembleOp op,
                                          PatternRewriter &rewriter) {
  auto assemble = op.getSource().getDefiningOp<AssembleOp>();
  if (!assemble)
    return rewriter.notifyMatchFailure(op, "source is not assembled here");
  rewriter.replaceOp(op, assemble.getParts());
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The fields in which a step's encodings may differ.
struct StepFields {
  bool group = false, layout = false, scale = false, code = false,
       zeros = false, actOrder = false;
};

static LogicalResult verifySameShape(Operation *op, RankedTensorType source,
                                     RankedTensorType result) {
  if (source.getShape() != result.getShape())
    return op->emitOpError()
           << "(C1) expected equal shapes, got [" << source.getShape()
           << "] and [" << result.getShape() << "]";
  return success();
}

/// (C2) of the steps: everything but `free` is equal.
static LogicalResult verifySameFields(Operation *op, PackedAttr source,
                                      PackedAttr result, StepFields free,
                                      StringRef label = "(C2)") {
  StringRef field;
  if (!free.code && source.getCode() != result.getCode())
    field = "code";
  else if (!free.group && source.getGroup() != result.getGroup())
    field = "group";
  else if (source.getKeptGroups() != result.getKeptGroups())
    field = "number of groups";
  else if (!free.layout && source.getLayout() != result.getLayout())
    field = "layout";
  else if (!free.scale && source.getScale() != result.getScale())
    field = "scale";
  else if (!free.zeros && source.getZeros() != result.getZeros())
    field = "zeros";
  else if (!free.actOrder && source.getActOrder() != result.getActOrder())
    field = "act_order";
  else
    return success();
  return op->emitOpError() << label << " expected encodings with one " << field
                           << ", got " << source << " and " << result;
}

static LogicalResult verifySameElement(Operation *op, RankedTensorType source,
                                       RankedTensorType result,
                                       StringRef label) {
  if (source.getElementType() != result.getElementType())
    return op->emitOpError()
           << label << " expected one element type, got "
           << source.getElementType() << " and " << result.getElementType();
  return success();
}

static LogicalResult verifyMove(Operation *op, Type source, Type result,
                                StringRef label, Window window = {}) {
  if (Failure why =
          checkMove(*getWeightSpec(source), *getWeightSpec(result), window))
    return op->emitOpError() << label << " " << why.message;
  return success();
}

/// (C1), (C2) of pad and convert.
static LogicalResult verifyGrowth(Operation *op, RankedTensorType source,
                                  RankedTensorType result, bool shrinks) {
  std::optional<WeightSpec> from = getWeightSpec(source),
                            to = getWeightSpec(result);
  if (source.getRank() != result.getRank() || from->experts != to->experts ||
      from->halves != to->halves)
    return op->emitOpError()
           << "(C1) expected equal ranks, experts and halves, got ["
           << source.getShape() << "] and [" << result.getShape() << "]";
  if (!shrinks && (to->input < from->input || to->output < from->output))
    return op->emitOpError()
           << "(C2) expected no extent to shrink, got [" << source.getShape()
           << "] and [" << result.getShape() << "]";
  return success();
}

static PackedAttr packed(TypedValue<RankedTensorType> value) {
  return cast<PackedAttr>(value.getType().getEncoding());
}

LogicalResult PadOp::verify() {
  if (failed(verifyGrowth(*this, getSource().getType(), getResult().getType(),
                          /*shrinks=*/false)))
    return failure();
  if (failed(verifySameFields(*this, packed(getSource()), packed(getResult()),
                              {}, "(C3)")))
    return failure();
  if (failed(verifySameElement(*this, getSource().getType(),
                               getResult().getType(), "(C4)")))
    return failure();
  return verifyMove(*this, getSource().getType(), getResult().getType(),
                    "(C5)");
}

/// A step that leaves the shape (C1) and all fields but `free` (C2) alone; the
/// labels are those of one element type and of the move.
template <typename OpT>
static LogicalResult verifyStep(OpT op, StepFields free, StringRef element,
                                StringRef move) {
  RankedTensorType source = op.getSource().getType(),
                   result = op.getResult().getType();
  if (failed(verifySameShape(op, source, result)) ||
      failed(verifySameFields(op, packed(op.getSource()),
                              packed(op.getResult()), free)) ||
      failed(verifySameElement(op, source, result, element)))
    return failure();
  return verifyMove(op, source, result, move);
}

LogicalResult RegroupOp::verify() {
  StepFields free;
  free.group = true;
  return verifyStep(*this, free, "(C4)", "(C3)");
}

LogicalResult RepackOp::verify() {
  StepFields free;
  free.layout = free.scale = true;
  return verifyStep(*this, free, "(C3)", "(C4)");
}

LogicalResult RecodeOp::verify() {
  StepFields free;
  free.code = free.zeros = free.scale = true;
  return verifyStep(*this, free, "(C4)", "(C3)");
}

LogicalResult SortGroupsOp::verify() {
  StepFields free;
  free.actOrder = true;
  PackedAttr source = packed(getSource()), result = packed(getResult());
  if (source.getActOrder() != ActOrder::Index ||
      result.getActOrder() != ActOrder::Sorted)
    return emitOpError() << "(C2) expected act_order index to sorted, got "
                         << source << " and " << result;
  return verifyStep(*this, free, "(C3)", "(C4)");
}

LogicalResult ShardOp::verify() {
  RankedTensorType source = getSource().getType();
  auto axis = static_cast<ShardAxis>(getAxis());
  if (!isWeight(source) && (axis != ShardAxis::Output || source.getRank() < 2 ||
                            source.getRank() > 3 || !source.hasStaticShape()))
    return emitOpError() << "(C3) expected the output axis of a bias of rank 2 "
                            "or 3 with static extents, got "
                         << stringifySharedAxis(getAxis()) << " of " << source;
  auto rank = static_cast<int64_t>(getRank()),
       size = static_cast<int64_t>(getSize());
  Result<ShardType> share = getShardType(source, axis, {rank, size});
  if (!share)
    return emitOpError() << "(C1) " << share.message();
  if (share->type != getResult().getType())
    return emitOpError() << "(C2) expected the share to be " << share->type
                         << ", got " << getResult().getType();
  return success();
}

std::optional<Window> wna16::getWindow(Operation *step) {
  if (auto shard = dyn_cast<ShardOp>(step)) {
    Result<ShardType> share = getShardType(
        shard.getSource().getType(), static_cast<ShardAxis>(shard.getAxis()),
        {static_cast<int64_t>(shard.getRank()),
         static_cast<int64_t>(shard.getSize())});
    return share ? std::optional<Window>(share->window) : std::nullopt;
  }
  if (auto convert = dyn_cast<ConvertOp>(step))
    if (std::optional<ArrayRef<int64_t>> part = convert.getWindow())
      return Window{(*part)[0], (*part)[1], (*part)[2], (*part)[3]};
  return std::nullopt;
}

LogicalResult ConvertOp::verify() {
  if (std::optional<ArrayRef<int64_t>> part = getWindow())
    if (part->size() != 4 || (*part)[1] < 1 || (*part)[3] < 1)
      return emitOpError() << "(C3) expected a window [input, inputs, output, "
                              "outputs] of at least one input and output, got ["
                           << *part << "]";
  if (failed(verifyGrowth(*this, getSource().getType(), getResult().getType(),
                          /*shrinks=*/true)) ||
      failed(verifySameElement(*this, getSource().getType(),
                               getResult().getType(), "(C4)")))
    return failure();
  return verifyMove(*this, getSource().getType(), getResult().getType(), "(C2)",
                    wna16::getWindow(*this).value_or(Window()));
}

/// A step that changes nothing is its operand.
template <typename OpT>
static OpFoldResult foldStep(OpT op) {
  return op.getSource().getType() == op.getResult().getType()
             ? OpFoldResult(op.getSource())
             : OpFoldResult();
}

OpFoldResult ShardOp::fold(FoldAdaptor) { return foldStep(*this); }
OpFoldResult ConvertOp::fold(FoldAdaptor) {
  return getWindow() ? OpFoldResult() : foldStep(*this);
}
OpFoldResult ConvertBiasOp::fold(FoldAdaptor) { return foldStep(*this); }

bool wna16::roundsBetween(Type source, Type middle, Type result) {
  auto scaleOf = [](Type type) {
    return cast<PackedAttr>(cast<RankedTensorType>(type).getEncoding())
        .getScale();
  };
  ScalarType scale = scaleOf(middle);
  return scale != scaleOf(source) && scale != scaleOf(result) &&
         scale != ScalarType::F32;
}

/// Two steps of one kind are one step.
template <typename OpT>
static LogicalResult mergeSteps(OpT op, PatternRewriter &rewriter) {
  auto first = op.getSource().template getDefiningOp<OpT>();
  if (!first)
    return rewriter.notifyMatchFailure(op, "no step of the same kind before");
  if (roundsBetween(first.getSource().getType(), first.getResult().getType(),
                    op.getResult().getType()))
    return rewriter.notifyMatchFailure(op, "the first step rounds scales");
  if (checkMove(*getWeightSpec(first.getSource().getType()),
                *getWeightSpec(op.getResult().getType())))
    return rewriter.notifyMatchFailure(op, "the two steps are not one move");
  rewriter.replaceOpWithNewOp<OpT>(op, op.getResult().getType(),
                                   first.getSource());
  return success();
}

/// What takes a part, or comes after that, is one step with it.
LogicalResult ConvertOp::canonicalize(ConvertOp op, PatternRewriter &rewriter) {
  Operation *first = op.getSource().getDefiningOp();
  if (op.getWindow() || !isa_and_nonnull<ShardOp, ConvertOp>(first))
    return rewriter.notifyMatchFailure(op, "no shard or convert before");
  Value source = first->getOperand(0);
  if (!isPacked(source.getType()))
    return rewriter.notifyMatchFailure(op, "the whole is dense");
  if (roundsBetween(source.getType(), op.getSource().getType(),
                    op.getResult().getType()))
    return rewriter.notifyMatchFailure(op, "the first step rounds scales");
  std::optional<Window> window = wna16::getWindow(first);
  if (checkMove(*getWeightSpec(source.getType()),
                *getWeightSpec(op.getResult().getType()),
                window.value_or(Window())))
    return rewriter.notifyMatchFailure(op, "the two steps are not one move");
  rewriter.replaceOpWithNewOp<ConvertOp>(
      op, op.getResult().getType(), source,
      window ? wna16::getWindowAttr(op.getContext(), *window)
             : DenseI64ArrayAttr());
  return success();
}

DenseI64ArrayAttr wna16::getWindowAttr(MLIRContext *context, Window window) {
  return DenseI64ArrayAttr::get(
      context, {window.input, window.inputs, window.output, window.outputs});
}

//===----------------------------------------------------------------------===//
// DequantizeOp, QuantizeOp, ConvertBiasOp
//===----------------------------------------------------------------------===//

/// (C2) of dequantize and quantize.
static LogicalResult verifyDense(Operation *op, RankedTensorType type,
                                 StringRef which) {
  auto dense = dyn_cast<DenseAttr>(type.getEncoding());
  if (!dense || dense.getLayout() != findLayout("dense"))
    return op->emitOpError() << "(C2) expected the " << which
                             << " to be encoded as #wna16.dense, got " << type;
  return success();
}

LogicalResult DequantizeOp::verify() {
  if (failed(
          verifySameShape(*this, getSource().getType(), getResult().getType())))
    return failure();
  if (Failure why = checkDequantize(*getWeightSpec(getSource().getType())))
    return emitOpError() << "(C3) " << why.message;
  return verifyDense(*this, getResult().getType(), "result");
}

LogicalResult QuantizeOp::verify() {
  if (failed(verifySameShape(*this, getSource().getType(),
                             getResult().getType())) ||
      failed(verifyDense(*this, getSource().getType(), "source")))
    return failure();
  if (packed(getResult()).getActOrder() != ActOrder::None)
    return emitOpError() << "(C3) expected a result without act-order, got "
                         << packed(getResult());
  return success();
}

LogicalResult ConvertBiasOp::verify() {
  RankedTensorType source = getSource().getType(),
                   result = getResult().getType();
  for (RankedTensorType type : {source, result})
    if (type.getRank() < 2 || type.getRank() > 3 || !type.hasStaticShape())
      return emitOpError() << "(C1) expected a bias of rank 2 or 3 with static "
                              "extents, got "
                           << type;
  if (source.getElementType() != result.getElementType() ||
      source.getRank() != result.getRank() ||
      source.getShape().drop_back() != result.getShape().drop_back())
    return emitOpError() << "(C1) expected equal ranks, element types, experts "
                            "and halves, got "
                         << source << " and " << result;
  if (result.getShape().back() < source.getShape().back())
    return emitOpError()
           << "(C2) expected the output extent not to shrink, got "
           << source.getShape().back() << " and " << result.getShape().back();
  return success();
}

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16WeightOps.cpp.inc"

void WNA16Dialect::registerWeightOps() {
  addOperations<
#define GET_OP_LIST
#include "Dialect/WNA16/IR/WNA16WeightOps.cpp.inc"
      >();
}
