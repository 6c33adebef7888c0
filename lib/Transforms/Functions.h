//===- Functions.h - Changing signatures ------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_TRANSFORMS_FUNCTIONS_H
#define WNA16_LIB_TRANSFORMS_FUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace wna16 {

/// Adds an argument after all others.
inline mlir::Value appendArgument(mlir::func::FuncOp function, mlir::Type type,
                                  mlir::DictionaryAttr attrs,
                                  mlir::Location loc) {
  unsigned position = function.getNumArguments();
  mlir::LogicalResult inserted =
      function.insertArgument(position, type, attrs, loc);
  assert(mlir::succeeded(inserted) && "the last position is always free");
  (void)inserted;
  return function.getArgument(position);
}

} // namespace wna16

#endif // WNA16_LIB_TRANSFORMS_FUNCTIONS_H
