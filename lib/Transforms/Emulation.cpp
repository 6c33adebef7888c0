//===- Emulation.cpp - Scalar code inside linalg.generic ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value Emitter::integer(int64_t value, int bits) {
  return arith::ConstantIntOp::create(*this, value, bits);
}

Value Emitter::f32(double value) {
  return arith::ConstantOp::create(*this, getF32FloatAttr(value));
}

Value Emitter::add(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return arith::AddIOp::create(*this, a, b);
}

Value Emitter::times(Value a, int64_t factor) {
  if (!a || factor == 1)
    return a;
  return arith::MulIOp::create(*this, a, index(factor));
}

Value Emitter::quotient(Value a, int64_t factor) {
  if (factor == 1)
    return a;
  if (llvm::isPowerOf2_64(factor))
    return arith::ShRUIOp::create(*this, a, index(llvm::Log2_64(factor)));
  return arith::DivUIOp::create(*this, a, index(factor));
}

Value Emitter::remainder(Value a, int64_t factor) {
  if (llvm::isPowerOf2_64(factor))
    return arith::AndIOp::create(*this, a, index(factor - 1));
  return arith::RemUIOp::create(*this, a, index(factor));
}

Value Emitter::field(Value a, int from, int count, int to) {
  a = quotient(a, int64_t(1) << from);
  a = remainder(a, int64_t(1) << count);
  return to ? arith::ShLIOp::create(*this, a, index(to)) : a;
}

Value Emitter::clampedIndex(Value a, int64_t extent) {
  // A negative value is a huge unsigned one.
  Value value = arith::IndexCastOp::create(*this, getIndexType(), a);
  return arith::MinUIOp::create(*this, value, index(extent - 1));
}

Value Emitter::scaled(Value value, double factor) {
  if (factor == 1)
    return value;
  return arith::MulFOp::create(*this, value, f32(factor));
}

Value Emitter::toF32(Value value) {
  if (value.getType().isF32())
    return value;
  if (isa<IntegerType>(value.getType()))
    return arith::SIToFPOp::create(*this, getF32Type(), value);
  if (value.getType().isF64())
    return arith::TruncFOp::create(*this, getF32Type(), value);
  return arith::ExtFOp::create(*this, getF32Type(), value);
}

Value Emitter::round(Value value, Type type) {
  if (type == value.getType())
    return value;
  if (type.isF64())
    return arith::ExtFOp::create(*this, type, value);
  return arith::TruncFOp::create(*this, type, value);
}

Value Emitter::read(Value tensor, ValueRange indices) {
  return tensor::ExtractOp::create(*this, tensor, indices);
}

Value Emitter::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(*this, condition, yes, no);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value> Emitter::loop(Value from, Value to, int64_t step,
                                 ValueRange state, LoopBody body) {
  auto loop = scf::ForOp::create(*this, from, to, index(step), state);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(*this,
                       body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return llvm::to_vector(ValueRange(loop.getResults()));
}

Value Emitter::when(Value condition, Value otherwise,
                    function_ref<Value()> then) {
  auto branch = scf::IfOp::create(*this, otherwise.getType(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(*this, then());
  setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(*this, otherwise);
  return branch.getResult(0);
}

Value Emitter::sum(int64_t length, function_ref<Value(Value)> term) {
  constexpr int64_t kBlock = 32;
  Value zero = f32(0), end = index(length), block = index(kBlock);
  auto addTerm = [&](Value k, ValueRange state) -> SmallVector<Value> {
    return {arith::AddFOp::create(*this, state.front(), term(k))};
  };
  if (length <= kBlock)
    return loop(index(0), end, 1, zero, addTerm).front();
  auto addBlock = [&](Value begin, ValueRange state) -> SmallVector<Value> {
    Value limit = arith::AddIOp::create(*this, begin, block);
    if (length % kBlock)
      limit = arith::MinUIOp::create(*this, limit, end);
    Value part = loop(begin, limit, 1, zero, addTerm).front();
    return {arith::AddFOp::create(*this, state.front(), part)};
  };
  return loop(index(0), end, kBlock, zero, addBlock).front();
}

Value Emitter::generate(Value init, function_ref<Value(ValueRange)> body) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<AffineMap> maps{getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto loops = linalg::GenericOp::create(
      *this, type, /*inputs=*/ValueRange(), init, maps, iterators,
      [&](OpBuilder &, Location, ValueRange) {});
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loops.getBody());
  SmallVector<Value> indices;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    indices.push_back(linalg::IndexOp::create(*this, axis));
  linalg::YieldOp::create(*this, body(indices));
  return loops.getResult(0);
}

Value Emitter::generate(ArrayRef<int64_t> shape, Type element, Value like,
                        function_ref<Value(ValueRange)> body) {
  SmallVector<Value> extents;
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (ShapedType::isDynamic(extent))
      extents.push_back(tensor::DimOp::create(*this, like, axis));
  return generate(tensor::EmptyOp::create(*this, shape, element, extents),
                  body);
}
