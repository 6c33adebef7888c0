// RUN: wna16-opt %s -wna16-hoist-prepare | FileCheck %s

// What is prepared expert by expert, and what is not. The type of a function
// for one expert has a leading 1.

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
#a8 = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
!x = tensor<?x64xbf16>
!w = tensor<?x1xf32>
!i = tensor<?x1xi32>

// A tensor of all experts is cut, and so are values that emulation dequantises.
// CHECK-LABEL: func.func @fused_prepare_w13(
// CHECK-SAME: tensor<1x128x64xf16> {{{.*}}pattern = "all.gate_up"}})
// CHECK-SAME: -> (tensor<1x64x2x64xbf16, #{{.*}}> {wna16.prepared = "w13"}) attributes {wna16.experts = 2 : i64, wna16.prepare = "fused"}
// CHECK-NEXT: assemble
// CHECK-NEXT: quantize
// CHECK-LABEL: func.func @fused_prepare_w2(
// CHECK-SAME: -> (tensor<1x64x64xf32, #wna16.dense> {wna16.prepared = "w2"}) attributes {wna16.experts = 2 : i64
// CHECK: dequantize {{.*}} : tensor<1x64x64xbf16, #{{.*}}> to tensor<1x64x64xf32, #wna16.dense>
func.func @fused(%x: !x, %w: !w, %i: !i) -> !x {
  %c13 = wna16.parameter "all.gate_up" : tensor<2x128x64xf16>
  %d13 = wna16.assemble codes = %c13 : tensor<2x128x64xf16> -> tensor<2x64x2x64xf16, #wna16.dense>
  %w13 = wna16.quantize %d13 : tensor<2x64x2x64xf16, #wna16.dense> to tensor<2x64x2x64xbf16, #gptq>
  %q2 = wna16.parameter "e.{expert}.down.qweight" : tensor<2x8x64xi32>
  %s2 = wna16.parameter "e.{expert}.down.scales" : tensor<2x2x64xf16>
  %p2 = wna16.assemble codes = %q2, scales = %s2 : tensor<2x8x64xi32>, tensor<2x2x64xf16> -> tensor<2x64x64xbf16, #gptq>
  %w2 = wna16.dequantize %p2 : tensor<2x64x64xbf16, #gptq> to tensor<2x64x64xf32, #wna16.dense>
  %y = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<2x64x2x64xbf16, #gptq>) w2(%w2 : tensor<2x64x64xf32, #wna16.dense>) outs(%x : !x) -> !x
  return %y : !x
}

// One global scale stands for all experts; halves in two files of all experts
// would have to be cut and joined; a shared expert is one.
// CHECK-LABEL: func.func @whole_prepare_w13(
// CHECK-SAME: tensor<2x8x128xi32>
// CHECK-SAME: -> (tensor<2x64x2x64xbf16, #{{.*}}> {wna16.prepared = "w13"}) attributes {wna16.prepare = "whole"}
// CHECK-LABEL: func.func @whole_prepare_w2(
// CHECK-SAME: -> (tensor<2x64x64xbf16, #{{.*}}> {wna16.prepared = "w2"}) attributes {wna16.prepare = "whole"}
// CHECK-LABEL: func.func @whole_prepare_w13_1(
// CHECK-SAME: tensor<1x8x128xi32>
// CHECK-SAME: -> (tensor<1x64x2x64xbf16, #{{.*}}> {wna16.prepared = "w13_1"}) attributes {wna16.prepare = "whole"}
func.func @whole(%x: !x, %w: !w, %i: !i) -> !x {
  %q13 = wna16.parameter "all.{gate,up}.qweight" concat(1) : tensor<2x8x128xi32>
  %s13 = wna16.parameter "all.{gate,up}.scales" concat(1) : tensor<2x2x128xf16>
  %p13 = wna16.assemble codes = %q13, scales = %s13 : tensor<2x8x128xi32>, tensor<2x2x128xf16> -> tensor<2x64x2x64xbf16, #gptq>
  %w13 = wna16.repack %p13 : tensor<2x64x2x64xbf16, #gptq> to tensor<2x64x2x64xbf16, #marlin>
  %q2 = wna16.parameter "e.{expert}.down.qweight" : tensor<2x8x64xi32>
  %s2 = wna16.parameter "e.{expert}.down.scales" : tensor<2x2x64xf16>
  %p2 = wna16.assemble codes = %q2, scales = %s2 : tensor<2x8x64xi32>, tensor<2x2x64xf16> -> tensor<2x64x64xbf16, #gptq>
  %w2 = wna16.recode %p2 : tensor<2x64x64xbf16, #gptq> to tensor<2x64x64xbf16, #a8>
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<2x64x2x64xbf16, #marlin>) w2(%w2 : tensor<2x64x64xbf16, #a8>) outs(%x : !x) -> !x
  %qs = wna16.parameter "shared.{gate,up}.qweight" concat(1) : tensor<1x8x128xi32>
  %ss = wna16.parameter "shared.{gate,up}.scales" concat(1) : tensor<1x2x128xf16>
  %ps = wna16.assemble codes = %qs, scales = %ss : tensor<1x8x128xi32>, tensor<1x2x128xf16> -> tensor<1x64x2x64xbf16, #gptq>
  %ws = wna16.repack %ps : tensor<1x64x2x64xbf16, #gptq> to tensor<1x64x2x64xbf16, #marlin>
  %cs = wna16.parameter "shared.down" : tensor<1x64x64xbf16>
  %ds = wna16.assemble codes = %cs : tensor<1x64x64xbf16> -> tensor<1x64x64xbf16, #wna16.dense>
  %1 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%ws : tensor<1x64x2x64xbf16, #marlin>) w2(%ds : tensor<1x64x64xbf16, #wna16.dense>) outs(%0 : !x) -> !x
  return %1 : !x
}

// A matrix without experts is not cut along its inputs, whatever their number,
// and an operation of another dialect may do anything.
// CHECK-LABEL: func.func @others_prepare_weight(
// CHECK-SAME: tensor<8x64xi32>
// CHECK-SAME: attributes {wna16.prepare = "others"}
// CHECK-LABEL: func.func @others_prepare_weight_1(
// CHECK-SAME: tensor<2x64xf32>
// CHECK-SAME: attributes {wna16.prepare = "others"}
// CHECK: arith.addf
func.func @others(%x: !x, %init: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<2x64xf32>) {
  %q = wna16.parameter "a.qweight" : tensor<8x64xi32>
  %s = wna16.parameter "a.scales" : tensor<2x64xf16>
  %p = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xf16> -> tensor<64x64xbf16, #gptq>
  %m = wna16.repack %p : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #marlin>
  %0 = wna16.linear x(%x : !x) weight(%m : tensor<64x64xbf16, #marlin>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  %b = wna16.parameter "e.{expert}.bias" : tensor<2x64xf32>
  %1 = arith.addf %b, %b : tensor<2x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<2x64xf32>
}
