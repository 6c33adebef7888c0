//===- WNA16Enums.td - Enumerations -----------------------------------*- tableg
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16ENUMS_TD
#define WNA16_DIALECT_WNA16ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "Dialect/WNA16/IR/WNA16Dialect.td"

class WNA16_Enum<string name, string summary, list<I64EnumAttrCase> cases>
    : I64EnumAttr<name, summary, cases> {
  let cppNamespace = "::wna16";
  let genSpecializedAttr = 0;
}

// The values are those of wna16_activation and wna16_scoring in
// Runtime/wna16.h.
def WNA16_Activation : WNA16_Enum<"Activation", "activation between the GEMMs", [
    I64EnumAttrCase<"silu", 0>, I64EnumAttrCase<"gelu", 1>,
    I64EnumAttrCase<"gelu_tanh", 2>, I64EnumAttrCase<"relu2", 3>,
    I64EnumAttrCase<"swigluoai", 4>, I64EnumAttrCase<"swiglustep", 5>]>;
def WNA16_ActivationAttr
    : EnumAttr<WNA16_Dialect, WNA16_Activation, "activation">;

def WNA16_Scoring : WNA16_Enum<"Scoring", "score of a router logit", [
    I64EnumAttrCase<"softmax", 0>, I64EnumAttrCase<"sigmoid", 1>,
    I64EnumAttrCase<"sparsemixer", 2>]>;
def WNA16_ScoringAttr : EnumAttr<WNA16_Dialect, WNA16_Scoring, "scoring">;

def WNA16_ActivationType
    : WNA16_Enum<"ActivationType", "element type the GEMMs read", [
    I64EnumAttrCase<"a16", 0>, I64EnumAttrCase<"int8", 1>,
    I64EnumAttrCase<"fp8", 2>]>;
def WNA16_ActivationTypeAttr
    : EnumAttr<WNA16_Dialect, WNA16_ActivationType, "activation_type">;

def WNA16_TargetKind : WNA16_Enum<"TargetKind", "kind of machine", [
    I64EnumAttrCase<"cpu", 0>, I64EnumAttrCase<"cuda", 1>,
    I64EnumAttrCase<"xpu", 2>]>;
def WNA16_TargetKindAttr
    : EnumAttr<WNA16_Dialect, WNA16_TargetKind, "target_kind">;

// The values are those of ShardAxis in Layout/Shard.h.
def WNA16_SharedAxis : WNA16_Enum<"SharedAxis", "axis that ranks share", [
    I64EnumAttrCase<"input", 0>, I64EnumAttrCase<"output", 1>]>;
def WNA16_SharedAxisAttr
    : EnumAttr<WNA16_Dialect, WNA16_SharedAxis, "shared_axis">;

#endif // WNA16_DIALECT_WNA16ENUMS_TD
