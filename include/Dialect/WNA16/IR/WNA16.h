//===- WNA16.h - The wna16 dialect ------------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes, types and operations, and what encoded tensors say about
// themselves.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16_H
#define WNA16_DIALECT_WNA16_H

#include "Layout/Shard.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Dialect/WNA16/IR/WNA16Dialect.h.inc"
#include "Dialect/WNA16/IR/WNA16Enums.h.inc"

namespace wna16 {

/// Whether a type is a ranked tensor with an encoding of this dialect.
bool isEncoded(mlir::Type type);
bool isPacked(mlir::Type type); ///< #wna16.packed
bool isWeight(mlir::Type type); ///< #wna16.packed or #wna16.dense
bool isBias(mlir::Type type);   ///< plain, or #wna16.bias
bool isPlain(mlir::Type type);  ///< ranked tensor without any encoding

/// The weight that a packed or dense tensor is; nothing for other types.
std::optional<WeightSpec> getWeightSpec(mlir::Type type);

/// The outputs and the order of a bias [E, output] or [E, halves, output], as a
/// weight without inputs; nothing for other types.
std::optional<WeightSpec> getBiasSpec(mlir::Type type);

/// The encoded type of rank `rank` (2: one matrix, 3: w2, 4: w13) of a weight.
mlir::RankedTensorType getWeightType(mlir::MLIRContext *context,
                                     const WeightSpec &spec, int64_t rank);

/// A rank's share of a weight or bias: its type, and what it takes.
struct ShardType {
  mlir::RankedTensorType type;
  Window window;
};
Result<ShardType> getShardType(mlir::RankedTensorType source, ShardAxis axis,
                               Rank rank);

/// The part of its source that a step takes; nothing where it takes all.
std::optional<Window> getWindow(mlir::Operation *step);
/// The same as ConvertOp holds it.
mlir::DenseI64ArrayAttr getWindowAttr(mlir::MLIRContext *context,
                                      Window window);

/// Whether scales lose bits in `middle` that one step from `source` to `result`
/// would keep.
bool roundsBetween(mlir::Type source, mlir::Type middle, mlir::Type result);

/// The storage tensors of an encoded type, in Part order; empty when the
/// encoding does not fit the type (then `error` says why).
llvm::SmallVector<mlir::RankedTensorType>
getStorageTypes(mlir::RankedTensorType type, std::string *error = nullptr);

/// The names of those tensors: "codes", "scales", ...
llvm::SmallVector<llvm::StringRef> getPartNames(mlir::RankedTensorType type);

/// Storage element types: bytes and words are signless.
mlir::Type getScalarType(mlir::MLIRContext *context, ScalarType type);
std::optional<ScalarType> getScalarType(mlir::Type type);

} // namespace wna16

#define GET_ATTRDEF_CLASSES
#include "Dialect/WNA16/IR/WNA16Attrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Dialect/WNA16/IR/WNA16Types.h.inc"

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16WeightOps.h.inc"

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16MoEOps.h.inc"

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16RuntimeOps.h.inc"

#endif // WNA16_DIALECT_WNA16_H
