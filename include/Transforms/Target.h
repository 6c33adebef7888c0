//===- Target.h - The target of a module ------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_TARGET_H
#define WNA16_TRANSFORMS_TARGET_H

#include "Dialect/WNA16/IR/AttrNames.h"
#include "Dialect/WNA16/IR/WNA16.h"

namespace wna16 {

/// The target of the module around `op`: its `wna16.target`, or that entry of a
/// device of its `dlti.target_system_spec`. Null, with an error on `op`, when
/// there is none.
TargetAttr getTarget(mlir::Operation *op);

} // namespace wna16

#endif // WNA16_TRANSFORMS_TARGET_H
