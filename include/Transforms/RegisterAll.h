//===- RegisterAll.h - What our tools register ------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_REGISTERALL_H
#define WNA16_TRANSFORMS_REGISTERALL_H

#include "mlir/IR/DialectRegistry.h"

namespace wna16 {

/// The dialect, the upstream dialects that its passes read and write, and
/// their bufferization and translation interfaces.
void registerDialects(mlir::DialectRegistry &registry);

/// Our passes and pipelines, and the upstream passes that they are made of.
void registerAllPasses();

} // namespace wna16

#endif // WNA16_TRANSFORMS_REGISTERALL_H
