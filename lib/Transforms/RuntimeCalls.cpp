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
  LLVM::GlobalOp global;
  int number = 0;
  for (auto other : module.getOps<LLVM::GlobalOp>()) {
    if (!other.getSymName().starts_with(prefix))
      continue;
    ++number;
    if (other.getValueOrNull() == value)
      global = other;
  }
  if (!global) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    global = LLVM::GlobalOp::create(
        top, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
        prefix.str() + "_" + std::to_string(number), value);
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
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  LLVM::LLVMStructType tensor = tensorType(context);
  // On the stack once per function, not once per iteration of a loop.
  Operation *function = user;
  while (!isa<ModuleOp>(function->getParentOp()))
    function = function->getParentOp();
  OpBuilder entry = OpBuilder::atBlockBegin(&function->getRegion(0).front());
  Value array = LLVM::AllocaOp::create(entry, loc, pointer, tensor,
                                       i64(entry, loc, buffers.size()));
  Value shapes =
      LLVM::AllocaOp::create(entry, loc, pointer, entry.getI64Type(),
                             i64(entry, loc, std::max<int64_t>(extents, 1)));
  int64_t nextExtent = 0;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    Value fields = LLVM::ZeroOp::create(builder, loc, tensor);
    auto set = [&](Value value, int64_t position) {
      fields =
          LLVM::InsertValueOp::create(builder, loc, fields, value, position);
    };
    if (buffer) {
      auto type = cast<MemRefType>(buffer.getType());
      wna16_dtype dtype = dtypeOf(*getScalarType(type.getElementType()));
      Value shape =
          LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(),
                              shapes, LLVM::GEPArg(nextExtent));
      set(address(builder, loc, buffer), 0);
      set(i32(builder, loc, deviceType()), 1);
      set(i32(builder, loc, type.getRank()), 3);
      auto constant = [&](Type field, int64_t value) {
        return LLVM::ConstantOp::create(builder, loc, field, value);
      };
      set(constant(builder.getI8Type(), dtype.code), 4);
      set(constant(builder.getI8Type(), dtype.bits), 5);
      set(constant(builder.getI16Type(), dtype.lanes), 6);
      set(shape, 7);
      for (int64_t axis = 0; axis < type.getRank(); ++axis, ++nextExtent) {
        Value slot =
            LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(),
                                shapes, LLVM::GEPArg(nextExtent));
        LLVM::StoreOp::create(builder, loc, extent(builder, loc, buffer, axis),
                              slot);
      }
    }
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, tensor, array,
                                     LLVM::GEPArg(static_cast<int32_t>(i)));
    LLVM::StoreOp::create(builder, loc, fields, slot);
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
