//===- RuntimeCalls.h - Building calls of the C ABI -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_RUNTIMECALLS_H
#define WNA16_TRANSFORMS_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace wna16 {

/// Emits what calls of Runtime/wna16.h consist of: declarations, constants and
/// tensor descriptors on the stack.
class RuntimeCalls {
public:
  explicit RuntimeCalls(mlir::ModuleOp module)
      : module(module), symbols(module) {}

  /// The DLPack device on which the module's buffers lie.
  int64_t deviceType();

  /// wna16_tensor, field by field.
  static mlir::LLVM::LLVMStructType tensorType(mlir::MLIRContext *context);

  /// The address of an internal constant of 8-byte words; equal words of one
  /// prefix share it.
  mlir::Value constantWords(mlir::OpBuilder &builder, mlir::Location loc,
                            llvm::StringRef prefix,
                            llvm::ArrayRef<int64_t> words);

  /// An array of wna16_tensor on the stack of the function around `user`, one
  /// for each memref; null ones are absent tensors. Null when a memref has a
  /// layout that is not the identity.
  mlir::Value tensorArray(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Operation *user,
                          llvm::ArrayRef<mlir::Value> buffers);

  /// Calls an external function of the runtime, declaring it where needed.
  mlir::Value call(mlir::OpBuilder &builder, mlir::Location loc,
                   llvm::StringRef symbol, mlir::Type result,
                   mlir::ValueRange operands);

  mlir::Value null(mlir::OpBuilder &builder, mlir::Location loc);
  mlir::Value i64(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
  mlir::Value i32(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
  /// Where the elements of a memref begin.
  mlir::Value address(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value memref);
  /// An extent of a memref as i64.
  mlir::Value extent(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value memref, int64_t axis);

private:
  /// One descriptor; of an absent tensor without a buffer.
  mlir::Value tensor(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value buffer, mlir::Value shape);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  /// By prefix and value.
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::Attribute>,
                 mlir::LLVM::GlobalOp>
      constants;
};

} // namespace wna16

#endif // WNA16_TRANSFORMS_RUNTIMECALLS_H
