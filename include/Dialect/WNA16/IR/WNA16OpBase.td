//===- WNA16OpBase.td - What all operations share ------------------*- tablegen 
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16OPBASE_TD
#define WNA16_DIALECT_WNA16OPBASE_TD

include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Dialect/WNA16/IR/WNA16Types.td"

class WNA16_Op<string mnemonic, list<Trait> traits = []>
    : Op<WNA16_Dialect, mnemonic, traits>;

#endif // WNA16_DIALECT_WNA16OPBASE_TD
