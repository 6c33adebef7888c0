//===- RuntimeCalls.cpp - Building calls of the C ABI ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/RuntimeCalls.h"

#include "Dialect/WNA16/IR/WNA16.h"
#include "Runtime/DType.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace wna16;

static_assert(sizeof(wna16_tensor) == 48, "the struct below mirrors it");

LLVM::LLVMStructType RuntimeCalls::tensorType(MLIRContext *context) {
  Builder b(context);
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i32 = b.getI32Type();
  return LLVM::LLVMStructType::getLiteral(
      context, {/*data=*/pointer, /*device_type=*/i32, /*device_id=*/i32,
                /*ndim=*/i32, /*code=*/b.getI8Type(), /*bits=*/b.getI8Type(),
                /*lanes=*/b.getI16Type(), /*shape=*/pointer,
                /*strides=*/pointer, /*byte_offset=*/b.getI64Type()});
}

Value RuntimeCalls::constantWords(OpBuilder &builder, Location loc,
                                  StringRef prefix, ArrayRef<int64_t> words) {
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), words.size());
  auto value = DenseElementsAttr::get(
      RankedTensorType::get({static_cast<int64_t>(words.size())},
                            builder.getI64Type()),
      words);
  LLVM::GlobalOp &global = constants[{builder.getStringAttr(prefix), value}];
  if (!global) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    global = LLVM::GlobalOp::create(top, loc, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, prefix, value);
    symbols.insert(global);
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

int64_t RuntimeCalls::deviceType() {
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
  if (!target)
    return 1;
  switch (target.getKind()) {
  case TargetKind::cpu:
    return 1;
  case TargetKind::cuda:
    return 2;
  case TargetKind::xpu:
    return 14;
  }
  llvm_unreachable("every kind has a device type");
}

Value RuntimeCalls::tensor(OpBuilder &builder, Location loc, Value buffer,
                           Value shape) {
  Value fields =
      LLVM::ZeroOp::create(builder, loc, tensorType(builder.getContext()));
  if (!buffer)
    return fields;
  auto type = cast<MemRefType>(buffer.getType());
  wna16_dtype dtype = dtypeOf(*getScalarType(type.getElementType()));
  auto constant = [&](Type field, int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, field, value);
  };
  std::pair<int64_t, Value> values[] = {
      {0, address(builder, loc, buffer)},
      {1, i32(builder, loc, deviceType())},
      {3, i32(builder, loc, type.getRank())},
      {4, constant(builder.getI8Type(), dtype.code)},
      {5, constant(builder.getI8Type(), dtype.bits)},
      {6, constant(builder.getI16Type(), dtype.lanes)},
      {7, shape}};
  for (auto [position, value] : values)
    fields = LLVM::InsertValueOp::create(builder, loc, fields, value, position);
  return fields;
}

Value RuntimeCalls::tensorArray(OpBuilder &builder, Location loc,
                                Operation *user, ArrayRef<Value> buffers) {
  int64_t extents = 0;
  for (Value buffer : buffers) {
    if (!buffer)
      continue;
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.getLayout().isIdentity() || !getScalarType(type.getElementType()))
      return {};
    extents += type.getRank();
  }
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type word = builder.getI64Type(), record = tensorType(builder.getContext());
  // On the stack once per function, not once per iteration of a loop.
  Operation *function = user;
  while (!isa<ModuleOp>(function->getParentOp()))
    function = function->getParentOp();
  OpBuilder entry = OpBuilder::atBlockBegin(&function->getRegion(0).front());
  Value array = LLVM::AllocaOp::create(entry, loc, pointer, record,
                                       i64(entry, loc, buffers.size()));
  Value shapes =
      LLVM::AllocaOp::create(entry, loc, pointer, word,
                             i64(entry, loc, std::max<int64_t>(extents, 1)));
  auto elementOf = [&](Value base, Type type, int64_t index) {
    return LLVM::GEPOp::create(builder, loc, pointer, type, base,
                               LLVM::GEPArg(static_cast<int32_t>(index)));
  };
  int64_t nextExtent = 0;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    Value shape;
    int64_t rank = 0;
    if (buffer) {
      shape = elementOf(shapes, word, nextExtent);
      rank = cast<MemRefType>(buffer.getType()).getRank();
    }
    Value fields = tensor(builder, loc, buffer, shape);
    for (int64_t axis = 0; axis < rank; ++axis, ++nextExtent)
      LLVM::StoreOp::create(builder, loc, extent(builder, loc, buffer, axis),
                            elementOf(shapes, word, nextExtent));
    LLVM::StoreOp::create(builder, loc, fields, elementOf(array, record, i));
  }
  return array;
}

Value RuntimeCalls::call(OpBuilder &builder, Location loc, StringRef symbol,
                         Type result, ValueRange operands) {
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
  if (!callee) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    callee = LLVM::LLVMFuncOp::create(
        top, loc, symbol,
        LLVM::LLVMFunctionType::get(result,
                                    llvm::to_vector(operands.getTypes())));
  }
  return LLVM::CallOp::create(builder, loc, callee, operands).getResult();
}

Value RuntimeCalls::null(OpBuilder &builder, Location loc) {
  return LLVM::ZeroOp::create(builder, loc,
                              LLVM::LLVMPointerType::get(builder.getContext()));
}

Value RuntimeCalls::i64(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), value);
}

Value RuntimeCalls::i32(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value);
}

Value RuntimeCalls::address(OpBuilder &builder, Location loc, Value memref) {
  Value index =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  Value integer =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
  return LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), integer);
}

Value RuntimeCalls::extent(OpBuilder &builder, Location loc, Value memref,
                           int64_t axis) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(axis))
    return i64(builder, loc, type.getDimSize(axis));
  Value index = memref::DimOp::create(builder, loc, memref, axis);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
}
