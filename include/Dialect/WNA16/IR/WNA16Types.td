//===- WNA16Types.td - Types ------------------------------------------*- tableg
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16TYPES_TD
#define WNA16_DIALECT_WNA16TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "Dialect/WNA16/IR/WNA16Attrs.td"

def WNA16_PlanType : TypeDef<WNA16_Dialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "what is constant about the calls of one runtime kernel";
}

// Encoded and plain tensors, told apart for error messages and documentation.
def WNA16_WeightTensor
    : Type<CPred<"::wna16::isWeight($_self)">,
           "tensor with a packed or dense encoding", "::mlir::RankedTensorType">;
def WNA16_PackedTensor
    : Type<CPred<"::wna16::isPacked($_self)">,
           "tensor with a packed encoding", "::mlir::RankedTensorType">;
def WNA16_PlainTensor
    : Type<CPred<"::wna16::isPlain($_self)">,
           "ranked tensor without encoding", "::mlir::RankedTensorType">;
def WNA16_BiasTensor
    : Type<CPred<"::wna16::isBias($_self)">,
           "ranked tensor without encoding or with a bias encoding",
           "::mlir::RankedTensorType">;
def WNA16_WeightOrBiasTensor
    : Type<CPred<"::wna16::isWeight($_self) || ::wna16::isBias($_self)">,
           "weight or bias", "::mlir::RankedTensorType">;

#endif // WNA16_DIALECT_WNA16TYPES_TD
