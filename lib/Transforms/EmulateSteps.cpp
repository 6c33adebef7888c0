//===- EmulateSteps.cpp - Preparation steps as linalg ---------------------===//
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

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

namespace {

/// Writes storage tensors of one weight.
class StorageEmitter {
public:
  StorageEmitter(Emitter &emitter, RankedTensorType target)
      : e(emitter), to(*getWeightSpec(target)), targetType(target) {}

protected:
  /// A storage tensor whose units, `bits` wide, `body` computes in i32 from
  /// expert and address.
  Value generateUnits(RankedTensorType type, int bits,
                      function_ref<Value(Value, Value)> body);
  /// z as the target's convention stores it.
  Value storedZero(Value zero);
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

  Emitter &e;
  WeightSpec to;
  RankedTensorType targetType;
};

/// Emits the parts of a move's target.
class MoveEmitter : StorageEmitter {
public:
  MoveEmitter(Emitter &emitter, RankedTensorType source, ValueRange parts,
              RankedTensorType target, Window part)
      : StorageEmitter(emitter, target), reader(emitter, source, parts),
        from(reader.getSpec()), window(*resolve(from, part)), parts(parts) {}

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
  Value emitElements(RankedTensorType type);
  Value emitZeros(RankedTensorType type);
  Value emitScales(RankedTensorType type);
  Value emitGroupIndex(RankedTensorType type);
  Value sortRows();

  Value codeAt(Value expert, Coordinates at);
  Value differenceAt(Value expert, Coordinates at);
  Value blockSumAt(Value expert, const AddressMap &map, Value address);
  /// `body(group of the source)` for a group of the target, else `otherwise`.
  Value inGroup(Coordinates at, Value otherwise,
                function_ref<Value(Coordinates)> body);

  Value plus(Value at, int64_t offset) {
    return offset ? e.add(at, e.index(offset)) : at;
  }
  /// Whether a coordinate of the target is one of the window's.
  Value insideWindow(Value input, Value output) {
    return both(below(input, window.inputs), below(output, window.outputs));
  }
  Value sourceOutput(Value output) { return plus(output, window.output); }

  /// The group of the source that row k belongs to, k counted by the target.
  Value groupOfRow(Value expert, Value k) {
    if (from.groups() == 1)
      return {};
    return permutation ? e.quotient(k, from.group)
                       : reader.groupOf(expert, plus(k, window.input));
  }
  /// A part that the target takes over as it is.
  Value sourcePart(Part which) {
    Result<std::vector<StoredPart>> stored = storageOf(from);
    for (auto [part, value] : llvm::zip(*stored, parts))
      if (part.part == which)
        return value;
    llvm_unreachable("the move is checked");
  }

  WeightReader reader;
  WeightSpec from;
  Window window; ///< that is taken of the source
  ValueRange parts;
  Value permutation; ///< where this move sorts
};

Value MoveEmitter::emitPart(Part part, RankedTensorType type) {
  switch (part) {
  case Part::Codes:
    return to.code == CodeType::Dense ? emitElements(type) : emitCodes(type);
  case Part::Scales:
    return emitScales(type);
  case Part::Zeros:
    return emitZeros(type);
  case Part::GroupIndex:
    return emitGroupIndex(type);
  case Part::Permutation:
    return permutation ? permutation : sourcePart(part);
  case Part::GlobalScale:
    return sourcePart(part);
  }
  llvm_unreachable("unknown part");
}

Value StorageEmitter::offsetOf(RankedTensorType type, ValueRange at) {
  Value offset;
  for (auto [axis, index] : llvm::enumerate(at))
    if (axis || !hasExperts())
      offset = e.add(e.times(offset, type.getDimSize(axis)), index);
  return offset;
}

Value StorageEmitter::generateUnits(RankedTensorType type, int bits,
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

Value StorageEmitter::storedZero(Value zero) {
  if (to.zeros == ZeroPoints::Plain)
    return zero;
  zero = arith::SubIOp::create(e, zero, e.integer(1));
  return arith::AndIOp::create(e, zero, e.integer((1 << to.bits()) - 1));
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// The code at a coordinate of the target, as it stores codes. New inputs of an
/// old group decode to 0; other padding is 0, with a scale of 0.
Value MoveEmitter::codeAt(Value expert, Coordinates at) {
  bool grows = to.input > window.inputs;
  int64_t size = to.group < 0 ? to.input : to.group;
  Value first = grows ? e.times(e.quotient(at.inner, size), size) : at.inner;
  return e.when(insideWindow(first, at.output), e.integer(0), [&] {
    Value output = sourceOutput(at.output);
    Value zero =
        reader.zero(expert, {groupOfRow(expert, first), at.half, output});
    auto read = [&] {
      Coordinates row{plus(at.inner, window.input), at.half, output};
      if (permutation) {
        SmallVector<Value, 2> index{at.inner};
        if (expert)
          index.insert(index.begin(), expert);
        row.inner = e.clampedIndex(e.read(permutation, index), from.input);
      }
      return reader.code(expert, row, zero);
    };
    Value code =
        grows ? e.when(below(at.inner, window.inputs), zero, read) : read();
    return encode(e, to.code, code, zero);
  });
}

/// Q - z at a coordinate of the target, 0 in padding.
Value MoveEmitter::differenceAt(Value expert, Coordinates at) {
  return e.when(
      insideWindow(at.inner, at.output), e.integer(0), [&]() -> Value {
        Value output = sourceOutput(at.output);
        Value zero = reader.zero(
            expert, {groupOfRow(expert, at.inner), at.half, output});
        Coordinates row{plus(at.inner, window.input), at.half, output};
        return arith::SubIOp::create(e, reader.code(expert, row, zero), zero);
      });
}

Value MoveEmitter::emitElements(RankedTensorType type) {
  AddressMap map = *codeAddresses(to);
  Type element = type.getElementType();
  return e.generate(
      type.getShape(), element, Value(), [&](ValueRange index) -> Value {
        Coordinates at = emitCoordinates(e, map, Axis::Input, to.halves,
                                         to.output, offsetOf(type, index));
        Value none = arith::ConstantOp::create(e, e.getZeroAttr(element));
        return e.when(insideWindow(at.inner, at.output), none, [&] {
          return reader.dense(
              expertOf(index),
              {plus(at.inner, window.input), at.half, sourceOutput(at.output)});
        });
      });
}

/// The group index of the window's inputs.
Value MoveEmitter::emitGroupIndex(RankedTensorType type) {
  Value index = sourcePart(Part::GroupIndex);
  if (type == index.getType())
    return index;
  SmallVector<OpFoldResult> offsets, sizes;
  for (int64_t extent : type.getShape()) {
    offsets.push_back(e.getIndexAttr(0));
    sizes.push_back(e.getIndexAttr(extent));
  }
  offsets.back() = e.getIndexAttr(window.input);
  SmallVector<OpFoldResult> strides(sizes.size(), e.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(e, type, index, offsets, sizes,
                                        strides);
}

/// A unit of the i32 sums, one per output, of Q - z over a block's inputs that
/// follow the block.
Value MoveEmitter::blockSumAt(Value expert, const AddressMap &map,
                              Value address) {
  int64_t units = 32 / to.bits(), block = blockLength(to);
  Value inTile = e.remainder(address, map.tile());
  Value start = arith::SubIOp::create(e, address, inTile);
  Coordinates at =
      emitCoordinates(e, map, Axis::Input, to.halves, to.output, start);
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
      return codeAt(expert, emitCoordinates(e, map, Axis::Input, to.halves,
                                            to.output, address));
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
  // Rows that belong to groups by index may be of any group.
  bool all = to.actOrder == ActOrder::Index;
  int64_t size = to.group < 0 ? window.inputs : to.group;
  Value inside =
      all ? both(below(at.inner, to.groups()), below(at.output, window.outputs))
          : insideWindow(e.times(at.inner, size), at.output);
  return e.when(inside, otherwise, [&] {
    Value group;
    if (from.groups() > 1)
      group = all ? at.inner
                  : e.quotient(plus(at.inner, window.input / to.group),
                               from.group / to.group);
    return body({group, at.half, sourceOutput(at.output)});
  });
}

Value MoveEmitter::emitZeros(RankedTensorType type) {
  AddressMap map = *zeroAddresses(to);
  return generateUnits(type, zeroBits(to), [&](Value expert, Value address) {
    Coordinates at =
        emitCoordinates(e, map, Axis::Group, to.halves, to.output, address);
    return inGroup(at, e.integer(0), [&](Coordinates group) {
      return storedZero(reader.zero(expert, group));
    });
  });
}

Value MoveEmitter::emitScales(RankedTensorType type) {
  AddressMap map = *scaleAddresses(to);
  Type element = type.getElementType();
  return e.generate(
      type.getShape(), element, Value(), [&](ValueRange index) -> Value {
        Coordinates at = emitCoordinates(e, map, Axis::Group, to.halves,
                                         to.output, offsetOf(type, index));
        Value none = arith::ConstantOp::create(e, e.getZeroAttr(element));
        return inGroup(at, none, [&](Coordinates group) {
          Value scale = reader.scale(expertOf(index), group);
          double factor = scaleFactor(to.code) / scaleFactor(from.code);
          if (scale.getType() == element && factor == 1)
            return scale;
          return e.round(e.scaled(e.toF32(scale), factor), element);
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

//===----------------------------------------------------------------------===//
// quantize
//===----------------------------------------------------------------------===//

/// Emits the parts of a weight that is rounded to nearest, with min-max ranges
/// per group that include 0.
class QuantizeEmitter : StorageEmitter {
public:
  QuantizeEmitter(Emitter &emitter, RankedTensorType source, ValueRange parts,
                  RankedTensorType target)
      : StorageEmitter(emitter, target), reader(emitter, source, parts) {}

  SmallVector<Value> emit() {
    SmallVector<Value> results;
    Result<std::vector<StoredPart>> stored = storageOf(to);
    for (auto [part, type] : llvm::zip(*stored, getStorageTypes(targetType))) {
      if (part.part == Part::Scales)
        scaleType = type.getElementType();
    }
    for (auto [part, type] : llvm::zip(*stored, getStorageTypes(targetType)))
      results.push_back(part.part == Part::Codes    ? emitCodes(type)
                        : part.part == Part::Scales ? emitScales(type)
                                                    : emitZeros(type));
    return results;
  }

private:
  /// What a group is quantised with: the scale in f32, and z.
  struct Range {
    Value scale, zero;
  };
  Range rangeOf(Value expert, Coordinates group);
  Value storedScale(Range range) {
    return e.round(e.scaled(range.scale, scaleFactor(to.code)), scaleType);
  }
  Range symmetricRange(Value low, Value high);
  Range asymmetricRange(Value low, Value high);
  Value emitCodes(RankedTensorType type);
  Value emitScales(RankedTensorType type);
  Value emitZeros(RankedTensorType type);

  int64_t groupSize() const { return to.group < 0 ? to.input : to.group; }
  Value inside(Coordinates at, int64_t extent) {
    return both(below(at.inner, extent), below(at.output, to.output));
  }
  Value value(Value expert, Coordinates at) {
    return reader.element(expert, at.inner, at.half, at.output);
  }
  Value div(Value a, double b) { return arith::DivFOp::create(e, a, e.f32(b)); }
  Value minimum(Value a, Value b) { return arith::MinNumFOp::create(e, a, b); }
  Value maximum(Value a, Value b) { return arith::MaxNumFOp::create(e, a, b); }
  Value isPositive(Value a) {
    return arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, a, e.f32(0));
  }
  double most() const { return (1 << to.bits()) - 1; }
  double middle() const { return 1 << (to.bits() - 1); }

  WeightReader reader;
  Type scaleType;
};

QuantizeEmitter::Range QuantizeEmitter::symmetricRange(Value low, Value high) {
  Value negated = arith::NegFOp::create(e, low);
  Value scale = maximum(div(negated, middle()), div(high, middle() - 1));
  return {e.select(isPositive(scale), scale, e.f32(1)), e.f32(middle())};
}

QuantizeEmitter::Range QuantizeEmitter::asymmetricRange(Value low, Value high) {
  Value scale = div(arith::SubFOp::create(e, high, low), most());
  Value used = isPositive(scale);
  scale = e.select(used, scale, e.f32(1));
  Value zero = arith::DivFOp::create(e, arith::NegFOp::create(e, low), scale);
  zero = math::RoundEvenOp::create(e, zero);
  zero = minimum(maximum(zero, e.f32(0)), e.f32(most()));
  return {scale, e.select(used, zero, e.f32(0))};
}

QuantizeEmitter::Range QuantizeEmitter::rangeOf(Value expert,
                                                Coordinates group) {
  Value begin = e.times(group.inner, groupSize());
  Value end = arith::AddIOp::create(e, begin, e.index(groupSize()));
  end = arith::MinUIOp::create(e, end, e.index(to.input));
  Value none = e.f32(0);
  SmallVector<Value> bounds =
      e.loop(begin, end, 1, {none, none},
             [&](Value k, ValueRange state) -> SmallVector<Value> {
               Value element = value(expert, {k, group.half, group.output});
               return {minimum(state[0], element), maximum(state[1], element)};
             });
  return to.zeros == ZeroPoints::None ? symmetricRange(bounds[0], bounds[1])
                                      : asymmetricRange(bounds[0], bounds[1]);
}

Value QuantizeEmitter::emitScales(RankedTensorType type) {
  AddressMap map = *scaleAddresses(to);
  return e.generate(type.getShape(), scaleType, Value(), [&](ValueRange index) {
    Coordinates at = emitCoordinates(e, map, Axis::Group, to.halves, to.output,
                                     offsetOf(type, index));
    Value none = arith::ConstantOp::create(e, e.getZeroAttr(scaleType));
    return e.when(inside(at, to.groups()), none,
                  [&] { return storedScale(rangeOf(expertOf(index), at)); });
  });
}

Value QuantizeEmitter::emitZeros(RankedTensorType type) {
  AddressMap map = *zeroAddresses(to);
  return generateUnits(type, zeroBits(to), [&](Value expert, Value address) {
    Coordinates at =
        emitCoordinates(e, map, Axis::Group, to.halves, to.output, address);
    return e.when(inside(at, to.groups()), e.integer(0), [&] {
      return storedZero(
          arith::FPToSIOp::create(e, e.getI32Type(), rangeOf(expert, at).zero));
    });
  });
}

Value QuantizeEmitter::emitCodes(RankedTensorType type) {
  AddressMap map = *codeAddresses(to);
  return generateUnits(type, to.bits(), [&](Value expert, Value address) {
    Coordinates at =
        emitCoordinates(e, map, Axis::Input, to.halves, to.output, address);
    return e.when(inside(at, to.input), e.integer(0), [&] {
      Range range = rangeOf(
          expert, {e.quotient(at.inner, groupSize()), at.half, at.output});
      // Codes belong to the scale that is stored.
      Value scale =
          e.scaled(e.toF32(storedScale(range)), 1 / scaleFactor(to.code));
      Value code = arith::DivFOp::create(e, value(expert, at), scale);
      code = arith::AddFOp::create(e, math::RoundEvenOp::create(e, code),
                                   range.zero);
      code = minimum(maximum(code, e.f32(0)), e.f32(most()));
      return encode(e, to.code,
                    arith::FPToSIOp::create(e, e.getI32Type(), code),
                    arith::FPToSIOp::create(e, e.getI32Type(), range.zero));
    });
  });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

template <typename OpT, typename EmitterT>
struct EmulateStep : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;
  using typename OpConversionPattern<OpT>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpT op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter emitter(op.getLoc(), rewriter);
    RankedTensorType source = op.getSource().getType(),
                     result = op.getResult().getType();
    if (!isWeight(source))
      return rewriter.notifyMatchFailure(op, "a step of a bias");
    if constexpr (std::is_same_v<EmitterT, MoveEmitter>) {
      EmitterT step(emitter, source, adaptor.getSource(), result,
                    getWindow(op).value_or(Window()));
      rewriter.replaceOpWithMultiple(op, {step.emit()});
    } else {
      EmitterT step(emitter, source, adaptor.getSource(), result);
      rewriter.replaceOpWithMultiple(op, {step.emit()});
    }
    return success();
  }
};

} // namespace

LogicalResult emulation::checkStep(Operation *op) {
  if (auto quantize = dyn_cast<QuantizeOp>(op)) {
    WeightSpec to = *getWeightSpec(quantize.getResult().getType());
    if (to.scale == ScalarType::I16 || to.layout->trailerBytes)
      return op->emitOpError()
             << "cannot be emulated to layout "
             << llvm::StringRef(to.layout->name) << " with scales of "
             << llvm::StringRef(name(to.scale))
             << "; quantize to float scales and a layout without block sums, "
                "then convert";
    return success();
  }
  if (!isa<ShardOp, PadOp, RegroupOp, RepackOp, RecodeOp, SortGroupsOp,
           ConvertOp>(op) ||
      !isWeight(op->getOperand(0).getType()))
    return success();
  WeightSpec from = *getWeightSpec(op->getOperand(0).getType());
  WeightSpec to = *getWeightSpec(op->getResult(0).getType());
  if (Failure why = checkMove(from, to, getWindow(op).value_or(Window())))
    return op->emitOpError() << why.message;
  if (from.scale != ScalarType::I16 && to.scale == ScalarType::I16)
    return op->emitOpError() << "cannot be emulated: folding scales to i16 is "
                                "for backends with int8 activations";
  return success();
}

void emulation::populateStepPatterns(const DisassemblyConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<
      EmulateStep<ShardOp, MoveEmitter>, EmulateStep<PadOp, MoveEmitter>,
      EmulateStep<RegroupOp, MoveEmitter>, EmulateStep<RepackOp, MoveEmitter>,
      EmulateStep<RecodeOp, MoveEmitter>,
      EmulateStep<SortGroupsOp, MoveEmitter>,
      EmulateStep<ConvertOp, MoveEmitter>,
      EmulateStep<QuantizeOp, QuantizeEmitter>>(converter,
                                                patterns.getContext());
}
