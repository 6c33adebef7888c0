//===- EmulateWeights.cpp - Read stored weights, whatever their layout ----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every address is a sum of shifted bit fields of the coordinates, and its
// inverse gathers the same fields. Both are emitted from the layout's address
// map; no layout has code of its own.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

namespace {

/// Neighbouring bits of a coordinate that are neighbours in the address too.
struct Field {
  int bit;     ///< lowest bit in the coordinate
  int address; ///< lowest bit in the address
  int count;
  bool inverted;
};

/// The fields of an axis within a tile, as few as possible.
SmallVector<Field> fieldsOf(const AddressMap &map, Axis axis) {
  auto terms = llvm::to_vector(map.bits(axis));
  llvm::sort(terms, [](const auto &a, const auto &b) { return a.bit < b.bit; });
  SmallVector<Field> fields;
  for (const AddressMap::Term &term : terms) {
    int address = llvm::Log2_64(term.weight);
    if (!fields.empty()) {
      Field &last = fields.back();
      if (last.inverted == term.inverted &&
          last.address + last.count == address) {
        ++last.count;
        continue;
      }
    }
    fields.push_back({term.bit, address, 1, term.inverted});
  }
  return fields;
}

/// Flips a field of a coordinate that counts downwards in the address.
Value invertField(Emitter &e, Value at, Field field) {
  if (!field.inverted)
    return at;
  int64_t mask = ((int64_t(1) << field.count) - 1) << field.bit;
  return arith::XOrIOp::create(e, at, e.index(mask));
}

/// The part of the address that one coordinate decides.
Value axisAddress(Emitter &e, const AddressMap &map, Axis axis, Value at) {
  Value address;
  for (Field field : fieldsOf(map, axis)) {
    Value source = invertField(e, at ? at : e.index(0), field);
    address =
        e.add(address, e.field(source, field.bit, field.count, field.address));
  }
  int64_t stride = map.tileStride(axis);
  if (!stride || !at)
    return address;
  Value tile = e.quotient(at, int64_t(1) << map.bits(axis).size());
  return e.add(address, e.times(tile, stride));
}

/// One coordinate of an address: the inverse of `axisAddress`.
Value axisCoordinate(Emitter &e, const AddressMap &map, Axis axis,
                     Value address) {
  Value at;
  Value inTile = e.remainder(address, map.tile());
  for (Field field : fieldsOf(map, axis)) {
    Value bits = e.field(inTile, field.address, field.count, field.bit);
    at = e.add(at, invertField(e, bits, field));
  }
  int64_t stride = map.tileStride(axis);
  if (!stride)
    return at;
  Value tile = e.quotient(address, stride);
  if (stride * map.tiles(axis) < map.size())
    tile = e.remainder(tile, map.tiles(axis));
  return e.add(at, e.times(tile, int64_t(1) << map.bits(axis).size()));
}

} // namespace

Value emulation::emitAddress(Emitter &e, const AddressMap &map, Axis inner,
                             int64_t outputs, Coordinates at) {
  Value address = axisAddress(e, map, inner, at.inner);
  if (map.hasHalves())
    address = e.add(address, axisAddress(e, map, Axis::Half, at.half));
  else // The output axis counts rows.
    at.output = e.add(e.times(at.half, outputs), at.output);
  address = e.add(address, axisAddress(e, map, Axis::Output, at.output));
  return address ? address : e.index(0);
}

Coordinates emulation::emitCoordinates(Emitter &e, const AddressMap &map,
                                       Axis inner, int64_t halves,
                                       int64_t outputs, Value address) {
  Coordinates at;
  at.inner = axisCoordinate(e, map, inner, address);
  at.output = axisCoordinate(e, map, Axis::Output, address);
  if (map.hasHalves()) {
    at.half = axisCoordinate(e, map, Axis::Half, address);
  } else if (halves > 1) {
    // Rows of padding are outputs beyond the last half's.
    at.half = arith::MinUIOp::create(e, e.quotient(at.output, outputs),
                                     e.index(halves - 1));
    at.output = arith::SubIOp::create(e, at.output, e.times(at.half, outputs));
  }
  return at;
}

//===----------------------------------------------------------------------===//
// WeightReader
//===----------------------------------------------------------------------===//

Value emulation::encode(Emitter &e, CodeType code, Value unsignedCode,
                        Value zero) {
  switch (code) {
  case CodeType::S4:
  case CodeType::S8:
    return arith::XOrIOp::create(e, unsignedCode, e.integer(impliedZero(code)));
  case CodeType::U4FP8: {
    Value positive =
        arith::CmpIOp::create(e, arith::CmpIPredicate::uge, unsignedCode, zero);
    return e.select(positive, arith::SubIOp::create(e, unsignedCode, zero),
                    arith::SubIOp::create(e, e.integer(15), unsignedCode));
  }
  default:
    return unsignedCode;
  }
}

/// A one-dimensional view of all elements.
static Value flatten(Emitter &e, Value tensor) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  if (rank == 1)
    return tensor;
  auto all = llvm::to_vector<2>(llvm::seq<int64_t>(0, rank));
  return tensor::CollapseShapeOp::create(e, tensor,
                                         ArrayRef<ReassociationIndices>(all));
}

WeightReader::WeightReader(Emitter &emitter, RankedTensorType type,
                           ValueRange parts)
    : e(emitter), spec(*getWeightSpec(type)), codes(*codeAddresses(spec)) {
  // The type has storage, so all its orders parse.
  if (spec.code != CodeType::Dense)
    scales = *scaleAddresses(spec);
  if (spec.zeros != ZeroPoints::None)
    zeros = *zeroAddresses(spec);
  Result<std::vector<StoredPart>> stored = storageOf(spec);
  for (auto [part, value] : llvm::zip(*stored, parts))
    flat[static_cast<int64_t>(part.part)] = flatten(e, value);
}

Value WeightReader::readPart(Part which, Value expert, Value address) const {
  Value tensor = part(which);
  int64_t elements = cast<RankedTensorType>(tensor.getType()).getNumElements();
  int64_t perExpert = elements / std::max<int64_t>(spec.experts, 1);
  Value offset = e.times(expert, perExpert);
  return e.read(tensor, e.add(offset, address));
}

/// A field of `bits` bits, zero-extended to i32.
Value WeightReader::readCode(Part which, int bits, Value expert,
                             Value address) const {
  unsigned width =
      cast<RankedTensorType>(part(which).getType()).getElementTypeBitWidth();
  int64_t fields = width / bits;
  Value word = readPart(which, expert, e.quotient(address, fields));
  if (width < 32)
    word = arith::ExtUIOp::create(e, e.getI32Type(), word);
  if (fields > 1) {
    Value shift = arith::IndexCastOp::create(
        e, e.getI32Type(), e.times(e.remainder(address, fields), bits));
    word = arith::ShRUIOp::create(e, word, shift);
  }
  return bits == 32 ? word
                    : arith::AndIOp::create(
                          e, word, e.integer((int64_t(1) << bits) - 1));
}

Value WeightReader::code(Value expert, Coordinates at, Value zero) const {
  Value address = emitAddress(e, codes, Axis::Input, spec.output, at);
  Value stored = readCode(Part::Codes, spec.bits(), expert, address);
  switch (spec.code) {
  case CodeType::S4:
  case CodeType::S8:
    return arith::XOrIOp::create(e, stored, e.integer(impliedZero(spec.code)));
  case CodeType::U4FP8: {
    // Codes below 16 - z are Q - z, the others 15 - Q.
    Value bound = arith::SubIOp::create(e, e.integer(16), zero);
    Value positive =
        arith::CmpIOp::create(e, arith::CmpIPredicate::ult, stored, bound);
    return e.select(positive, arith::AddIOp::create(e, stored, zero),
                    arith::SubIOp::create(e, e.integer(15), stored));
  }
  default:
    return stored;
  }
}

Value WeightReader::zero(Value expert, Coordinates at) const {
  if (spec.zeros == ZeroPoints::None)
    return e.integer(impliedZero(spec.code));
  Value address = emitAddress(e, zeros, Axis::Group, spec.output, at);
  Value stored = readCode(Part::Zeros, zeroBits(spec), expert, address);
  if (spec.zeros == ZeroPoints::Plain)
    return stored;
  Value next = arith::AddIOp::create(e, stored, e.integer(1));
  return arith::AndIOp::create(e, next, e.integer((1 << spec.bits()) - 1));
}

Value WeightReader::scale(Value expert, Coordinates at) const {
  return readPart(Part::Scales, expert,
                  emitAddress(e, scales, Axis::Group, spec.output, at));
}

Value WeightReader::scaleF32(Value expert, Coordinates at) const {
  Value value =
      e.scaled(e.toF32(scale(expert, at)), 1 / scaleFactor(spec.code));
  if (!part(Part::GlobalScale))
    return value;
  return arith::MulFOp::create(e, value,
                               e.read(part(Part::GlobalScale), e.index(0)));
}

Value WeightReader::dense(Value expert, Coordinates at) const {
  return readPart(Part::Codes, expert,
                  emitAddress(e, codes, Axis::Input, spec.output, at));
}

Value WeightReader::groupOf(Value expert, Value k) const {
  if (spec.groups() == 1)
    return {};
  if (spec.actOrder != ActOrder::Index)
    return e.quotient(k, spec.group);
  return e.clampedIndex(readPart(Part::GroupIndex, expert, k), spec.groups());
}

Value WeightReader::inputOf(Value expert, Value k) const {
  if (spec.actOrder != ActOrder::Sorted)
    return k;
  return e.clampedIndex(readPart(Part::Permutation, expert, k), spec.input);
}

Value WeightReader::element(Value expert, Value k, Value half,
                            Value output) const {
  Coordinates at{k, half, output};
  if (spec.code == CodeType::Dense)
    return e.toF32(dense(expert, at));
  Coordinates group{groupOf(expert, k), half, output};
  Value zeroPoint = zero(expert, group);
  Value difference =
      arith::SubIOp::create(e, code(expert, at, zeroPoint), zeroPoint);
  return arith::MulFOp::create(e, e.toF32(difference), scaleF32(expert, group));
}

//===----------------------------------------------------------------------===//
// Biases
//===----------------------------------------------------------------------===//

/// The order of a bias [E, halves, N] or [E, N]; nothing when it is natural.
static std::optional<AddressMap> biasOrder(RankedTensorType type) {
  auto encoding = dyn_cast_or_null<BiasAttr>(type.getEncoding());
  if (!encoding)
    return std::nullopt;
  WeightSpec spec;
  spec.layout = encoding.getLayout();
  spec.halves = type.getRank() > 2 ? type.getDimSize(1) : 1;
  spec.output = type.getShape().back();
  Result<AddressMap> map = biasAddresses(spec);
  return map ? std::optional<AddressMap>(*map) : std::nullopt;
}

Value emulation::readBias(Emitter &e, RankedTensorType type, Value bias,
                          Value expert, Value half, Value output) {
  int64_t outputs = type.getShape().back();
  SmallVector<Value> at{expert};
  if (type.getRank() > 2)
    at.push_back(half ? half : e.index(0));
  at.push_back(output);
  if (std::optional<AddressMap> map = biasOrder(type)) {
    Value address =
        emitAddress(e, *map, Axis::Group, outputs, {Value(), half, output});
    at.back() = address;
    if (type.getRank() > 2) {
      at[1] = e.quotient(address, outputs);
      at[2] = e.remainder(address, outputs);
    }
  }
  return e.toF32(e.read(bias, at));
}

namespace {

/// convert_bias, and shard of a bias.
template <typename OpT>
struct EmulateBias : OpConversionPattern<OpT> {
  using OpConversionPattern<OpT>::OpConversionPattern;
  using typename OpConversionPattern<OpT>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpT op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType source = op.getSource().getType(),
                     target = op.getResult().getType();
    if (!isBias(source))
      return rewriter.notifyMatchFailure(op, "a step of a weight");
    Emitter e(op.getLoc(), rewriter);
    Value bias = adaptor.getSource().front();
    Window window =
        getWindow(op).value_or(Window{0, 1, 0, source.getShape().back()});
    int64_t to = target.getShape().back();
    std::optional<AddressMap> order = biasOrder(target);
    Value result = e.generate(
        target.getShape(), target.getElementType(), bias, [&](ValueRange at) {
          Coordinates c{Value(), at.size() > 2 ? at[1] : Value(), at.back()};
          if (order) {
            Value address = e.add(e.times(c.half, to), c.output);
            int64_t halves = c.half ? target.getDimSize(1) : 1;
            c = emitCoordinates(e, *order, Axis::Group, halves, to, address);
          }
          Value zero = arith::ConstantOp::create(
              e, rewriter.getZeroAttr(target.getElementType()));
          Value inside = arith::CmpIOp::create(
              e, arith::CmpIPredicate::ult, c.output, e.index(window.outputs));
          return e.when(inside, zero, [&] {
            Value output = c.output;
            if (window.output)
              output = e.add(output, e.index(window.output));
            return e.round(readBias(e, source, bias, at[0], c.half, output),
                           target.getElementType());
          });
        });
    rewriter.replaceOpWithMultiple(op, {{result}});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// dequantize
//===----------------------------------------------------------------------===//

struct EmulateDequantize : OpConversionPattern<DequantizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DequantizeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    WeightReader weight(e, op.getSource().getType(), adaptor.getSource());
    const WeightSpec &spec = weight.getSpec();
    RankedTensorType type = getStorageTypes(op.getResult().getType()).front();
    Value result = e.generate(
        type.getShape(), type.getElementType(), Value(), [&](ValueRange at) {
          Value expert = at.size() > 2 ? at[0] : Value();
          Coordinates element{at.back(), Value(), at[at.size() - 2]};
          if (spec.halves > 1) {
            element.half = e.quotient(element.output, spec.output);
            element.output = e.remainder(element.output, spec.output);
          }
          if (op.getScaleFirst())
            return scaleFirst(e, weight, expert, element,
                              type.getElementType());
          return e.round(weight.element(expert, element.inner, element.half,
                                        element.output),
                         type.getElementType());
        });
    rewriter.replaceOpWithMultiple(op, {{result}});
    return success();
  }

private:
  /// rnd(rnd(Q - z) * rnd(s))
  static Value scaleFirst(Emitter &e, const WeightReader &weight, Value expert,
                          Coordinates at, Type type) {
    Coordinates group = at;
    group.inner = weight.groupOf(expert, at.inner);
    Value zero = weight.zero(expert, group);
    Value code = weight.code(expert, at, zero);
    auto rounded = [&](Value value) {
      return e.toF32(e.round(e.toF32(value), type));
    };
    Value difference = rounded(arith::SubIOp::create(e, code, zero));
    Value scale = rounded(weight.scaleF32(expert, group));
    return e.round(arith::MulFOp::create(e, difference, scale), type);
  }
};

} // namespace

void emulation::populateWeightPatterns(const DisassemblyConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns
      .add<EmulateBias<ConvertBiasOp>, EmulateBias<ShardOp>, EmulateDequantize>(
          converter, patterns.getContext());
}
