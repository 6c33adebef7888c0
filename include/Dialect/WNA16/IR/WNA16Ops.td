//===- WNA16Ops.td - All operations --------------------------------*- tablegen 
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16OPS_TD
#define WNA16_DIALECT_WNA16OPS_TD

include "Dialect/WNA16/IR/WNA16WeightOps.td"
include "Dialect/WNA16/IR/WNA16MoEOps.td"
include "Dialect/WNA16/IR/WNA16RuntimeOps.td"

#endif // WNA16_DIALECT_WNA16OPS_TD
