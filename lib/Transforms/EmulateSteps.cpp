//===- EmulateSteps.cpp - Preparation steps as linalg
//-----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// pad, regroup, repack, recode, sort_groups and convert are one move: each
// element of the target's storage finds its coordinates, reads the source there
// and writes what it says in the target's code.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "Layout/Move.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

namespace {

/// Emits the parts of a move's target.
class MoveEmitter {
public:
  MoveEmitter(Emitter &emitter, RankedTensorType source, ValueRange parts,
              RankedTensorType target)
      : e(emitter), reader(emitter, source, parts), from(reader.getSpec()),
        to(*getWeightSpec(target)), parts(parts), targetType(target) {}

  SmallVector<Value> emit() {
    if (to.actOrder == ActOrder::Sorted && from.actOrder == ActOrder::Index)
      permutation = sortRows();
    SmallVector<Value> results;
    Result<std::vector<StoredPart>> stored = storageOf(to);
    for (auto [part, type] : llvm::zip(*stored, getStorageTypes(targetType)))
      results.push_back(emitPart(part.part, type));
    return results;
  }

private:
  Value emitPart(Part part, RankedTensorType type);
  Value emitCodes(RankedTensorType type);
  Value emitZeros(RankedTensorType type);
  Value emitScales(RankedTensorType type);
  Value sortRows();

  /// A storage tensor whose units, `bits` wide, `body` computes in i32 from
  /// expert and address.
  Value generateUnits(RankedTensorType type, int bits,
                      function_ref<Value(Value, Value)> body);
  Value codeAt(Value expert, Coordinates at);
  Value differenceAt(Value expert, Coordinates at);
  Value blockSumAt(Value expert, const AddressMap &map, Value address);
  /// `body(group of the source)` for a group of the target, else `otherwise`.
  Value inGroup(Coordinates at, Value otherwise,
                function_ref<Value(Coordinates)> body);

  Value expertOf(ValueRange at) const {
    return hasExperts() ? at.front() : Value();
  }
  /// The index of a storage element within its expert.
  Value offsetOf(RankedTensorType type, ValueRange at);
  bool hasExperts() const { return targetType.getRank() > 2; }
  Value both(Value a, Value b) { return arith::AndIOp::create(e, a, b); }
  Value below(Value at, int64_t extent) {
    return arith::CmpIOp::create(e, arith::CmpIPredicate::ult, at,
                                 e.index(extent));
  }
  /// The group of the source that row k belongs to, k counted by the target.
  Value groupOfRow(Value expert, Value k) {
    if (from.groups() == 1)
      return {};
    return permutation ? e.quotient(k, from.group) : reader.groupOf(expert, k);
  }
  /// A part that the target takes over as it is.
  Value sourcePart(Part which) {
    Result<std::vector<StoredPart>> stored = storageOf(from);
    for (auto [part, value] : llvm::zip(*stored, parts))
      if (part.part == which)
        return value;
    llvm_unreachable("the move is checked");
  }

  Emitter &e;
  WeightReader reader;
  WeightSpec from, to;
  ValueRange parts;
  RankedTensorType targetType;
  Value permutation; ///< where this move sorts
};

Value MoveEmitter::emitPart(Part part, RankedTensorType type) {
  switch (part) {
  case Part::Codes:
    return emitCodes(type);
  case Part::Scales:
    return emitScales(type);
  case Part::Zeros:
    return emitZeros(type);
  case Part::Permutation:
    return permutation ? permutation : sourcePart(part);
  case Part::GroupIndex:
  case Part::GlobalScale:
    return sourcePart(part);
  }
  llvm_unreachable("unknown part");
}

Value MoveEmitter::offsetOf(RankedTensorType type, ValueRange at) {
  Value offset;
  for (auto [axis, index] : llvm::enumerate(at))
    if (axis || !hasExperts())
      offset = e.add(e.times(offset, type.getDimSize(axis)), index);
  return offset;
}

Value MoveEmitter::generateUnits(RankedTensorType type, int bits,
                                 function_ref<Value(Value, Value)> body) {
  unsigned width = type.getElementTypeBitWidth();
  int64_t fields = width / bits;
  auto element = [&](ValueRange at) -> Value {
    Value address = e.times(offsetOf(type, at), fields);
    auto addField = [&](Value field, ValueRange word) -> SmallVector<Value> {
      Value unit = body(expertOf(at), e.add(address, field));
      Value shift =
          arith::IndexCastOp::create(e, e.getI32Type(), e.times(field, bits));
      unit = arith::ShLIOp::create(e, unit, shift);
      return {arith::OrIOp::create(e, word.front(), unit)};
    };
    Value word =
        e.loop(e.index(0), e.index(fields), 1, e.integer(0), addField).front();
    if (width == 32)
      return word;
    return arith::TruncIOp::create(e, type.getElementType(), word);
  };
  return e.generate(type.getShape(), type.getElementType(), Value(), element);
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// The code at a coordinate of the target, as it stores codes. New inputs of an
/// old group decode to 0; other padding is 0, with a scale of 0.
Value MoveEmitter::codeAt(Value expert, Coordinates at) {
  bool grows = to.input > from.input;
  int64_t size = to.group < 0 ? to.input : to.group;
  Value first = grows ? e.times(e.quotient(at.inner, size), size) : at.inner;
  Value inside = both(below(first, from.input), below(at.output, from.output));
  return e.when(inside, e.integer(0), [&] {
    Value zero =
        reader.zero(expert, {groupOfRow(expert, first), at.half, at.output});
    auto read = [&] {
      Coordinates row = at;
      if (permutation) {
        SmallVector<Value, 2> index{at.inner};
        if (expert)
          index.insert(index.begin(), expert);
        row.inner = e.clampedIndex(e.read(permutation, index), from.input);
      }
      return reader.code(expert, row, zero);
    };
    Value code =
        grows ? e.when(below(at.inner, from.input), zero, read) : read();
    return encode(e, to.code, code, zero);
  });
}

/// Q - z at a coordinate of the target, 0 in padding.
Value MoveEmitter::differenceAt(Value expert, Coordinates at) {
  Value inside =
      both(below(at.inner, from.input), below(at.output, from.output));
  return e.when(inside, e.integer(0), [&]() -> Value {
    Value zero =
        reader.zero(expert, {groupOfRow(expert, at.inner), at.half, at.output});
    return arith::SubIOp::create(e, reader.code(expert, at, zero), zero);
  });
}

/// A unit of the i32 sums, one per output, of Q - z over a block's inputs that
/// follow the block.
Value MoveEmitter::blockSumAt(Value expert, const AddressMap &map,
                              Value address) {
  int64_t units = 32 / to.bits(), block = blockLength(to);
  Value inTile = e.remainder(address, map.tile());
  Value start = arith::SubIOp::create(e, address, inTile);
  Coordinates at = emitCoordinates(e, map, Axis::Input, to.output, start);
  Value inTrailer = arith::SubIOp::create(
      e, inTile, e.index(map.tile() - to.layout->trailerBytes * 8 / to.bits()));
  at.output = e.add(at.output, e.quotient(inTrailer, units));
  Value sum = e.loop(e.index(0), e.index(block), 1, e.integer(0),
                     [&](Value i, ValueRange state) -> SmallVector<Value> {
                       Coordinates row{e.add(at.inner, i), at.half, at.output};
                       return {arith::AddIOp::create(
                           e, state.front(), differenceAt(expert, row))};
                     })
                  .front();
  Value shift = arith::IndexCastOp::create(
      e, e.getI32Type(), e.times(e.remainder(inTrailer, units), to.bits()));
  sum = arith::ShRUIOp::create(e, sum, shift);
  return arith::AndIOp::create(e, sum, e.integer((1 << to.bits()) - 1));
}

Value MoveEmitter::emitCodes(RankedTensorType type) {
  AddressMap map = *codeAddresses(to);
  int64_t trailer = to.layout->trailerBytes * 8 / to.bits();
  return generateUnits(type, to.bits(), [&](Value expert, Value address) {
    auto code = [&] {
      return codeAt(expert,
                    emitCoordinates(e, map, Axis::Input, to.output, address));
    };
    if (!trailer)
      return code();
    Value isCode =
        below(e.remainder(address, map.tile()), map.tile() - trailer);
    Value value = e.when(isCode, e.integer(0), code);
    Value isSum = arith::XOrIOp::create(e, isCode, e.integer(1, 1));
    return e.when(isSum, value,
                  [&] { return blockSumAt(expert, map, address); });
  });
}

//===----------------------------------------------------------------------===//
// Scales, zero points and the order of rows
//===----------------------------------------------------------------------===//

Value MoveEmitter::inGroup(Coordinates at, Value otherwise,
                           function_ref<Value(Coordinates)> body) {
  int64_t size = to.group < 0 ? from.input : to.group;
  Value inside = both(below(e.times(at.inner, size), from.input),
                      below(at.output, from.output));
  return e.when(inside, otherwise, [&] {
    Value group = from.groups() == 1
                      ? Value()
                      : e.quotient(at.inner, from.group / to.group);
    return body({group, at.half, at.output});
  });
}

Value MoveEmitter::emitZeros(RankedTensorType type) {
  AddressMap map = *zeroAddresses(to);
  int64_t mask = (1 << to.bits()) - 1;
  return generateUnits(type, zeroBits(to), [&](Value expert, Value address) {
    Coordinates at = emitCoordinates(e, map, Axis::Group, to.output, address);
    return inGroup(at, e.integer(0), [&](Coordinates group) -> Value {
      Value zero = reader.zero(expert, group);
      if (to.zeros == ZeroPoints::Plain)
        return zero;
      zero = arith::SubIOp::create(e, zero, e.integer(1));
      return arith::AndIOp::create(e, zero, e.integer(mask));
    });
  });
}

Value MoveEmitter::emitScales(RankedTensorType type) {
  AddressMap map = *scaleAddresses(to);
  Type element = type.getElementType();
  return e.generate(
      type.getShape(), element, Value(), [&](ValueRange index) -> Value {
        Coordinates at = emitCoordinates(e, map, Axis::Group, to.output,
                                         offsetOf(type, index));
        Value none = arith::ConstantOp::create(e, e.getZeroAttr(element));
        return inGroup(at, none, [&](Coordinates group) {
          Value scale = reader.scale(expertOf(index), group);
          return scale.getType() == element ? scale
                                            : e.round(e.toF32(scale), element);
        });
      });
}

/// i32 [E, input]: a stable sort of the rows by group, by rank.
Value MoveEmitter::sortRows() {
  Value index = sourcePart(Part::GroupIndex);
  auto type = cast<RankedTensorType>(index.getType());
  auto at = [&](ValueRange where, Value k) {
    SmallVector<Value, 2> all(where.drop_back());
    all.push_back(k);
    return all;
  };
  auto overRows = [&](function_ref<Value(ValueRange, Value, Value)> next) {
    return e.generate(
        type.getShape(), e.getI32Type(), Value(), [&](ValueRange where) {
          return e
              .loop(e.index(0), e.index(from.input), 1, e.integer(0),
                    [&](Value k, ValueRange state) -> SmallVector<Value> {
                      return {next(where, k, state.front())};
                    })
              .front();
        });
  };
  auto compare = [&](arith::CmpIPredicate how, Value a, Value b) -> Value {
    return arith::CmpIOp::create(e, how, a, b);
  };
  Value rank = overRows([&](ValueRange where, Value k, Value count) -> Value {
    Value own = e.read(index, where), other = e.read(index, at(where, k));
    Value tie = both(compare(arith::CmpIPredicate::eq, other, own),
                     compare(arith::CmpIPredicate::ult, k, where.back()));
    Value before = arith::OrIOp::create(
        e, compare(arith::CmpIPredicate::slt, other, own), tie);
    return arith::AddIOp::create(
        e, count, arith::ExtUIOp::create(e, e.getI32Type(), before));
  });
  return overRows([&](ValueRange where, Value k, Value found) {
    auto toI32 = [&](Value value) -> Value {
      return arith::IndexCastOp::create(e, e.getI32Type(), value);
    };
    Value here = compare(arith::CmpIPredicate::eq, e.read(rank, at(where, k)),
                         toI32(where.back()));
    return e.select(here, toI32(k), found);
  });
}

template <typename OpT>
struct EmulateStep : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;
  using typename OpConversionPattern<OpT>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpT op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter emitter(op.getLoc(), rewriter);
    MoveEmitter move(emitter, op.getSource().getType(), adaptor.getSource(),
                     op.getResult().getType());
    rewriter.replaceOpWithMultiple(op, {move.emit()});
    return success();
  }
};

} // namespace

LogicalResult emulation::checkStep(Operation *op) {
  if (isa<QuantizeOp>(op))
    return op->emitOpError() << "cannot be emulated; quantise ahead of time";
  if (!isa<PadOp, RegroupOp, RepackOp, RecodeOp, SortGroupsOp, ConvertOp>(op))
    return success();
  WeightSpec from = *getWeightSpec(op->getOperand(0).getType());
  WeightSpec to = *getWeightSpec(op->getResult(0).getType());
  if (Failure why = checkMove(from, to))
    return op->emitOpError() << why.message;
  if (from.scale != ScalarType::I16 && to.scale == ScalarType::I16)
    return op->emitOpError() << "cannot be emulated: folding scales to i16 is "
                                "for backends with int8 activations";
  return success();
}

void emulation::populateStepPatterns(const DisassemblyConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<EmulateStep<PadOp>, EmulateStep<RegroupOp>,
               EmulateStep<RepackOp>, EmulateStep<RecodeOp>,
               EmulateStep<SortGroupsOp>, EmulateStep<ConvertOp>>(
      converter, patterns.getContext());
}
