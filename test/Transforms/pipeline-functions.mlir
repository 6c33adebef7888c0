// RUN: wna16-opt %s -wna16-select-pipeline=target=cpu | FileCheck %s
// RUN: wna16-opt %s -wna16-pipeline=target=cpu | FileCheck %s --check-prefix=LLVM
// RUN: wna16-opt %s -wna16-pipeline=target=cuda:sm_90 | FileCheck %s --check-prefix=LLVM

// Private functions become part of those that call them, so that their layers
// have a backend, prepared weights and buffers in the workspace.

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// CHECK-NOT: @layer
// CHECK-LABEL: func.func @prepare_w13(
// CHECK-LABEL: func.func @prepare_w2(
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: wna16.prepared = "w13"
// CHECK-SAME: wna16.prepared = "w2"
// CHECK: %[[Y:.*]] = wna16.fused_experts silu x(%{{.*}} : tensor<?x64xbf16>)
// CHECK: wna16.fused_experts silu x(%[[Y]] : tensor<?x64xbf16>)
// CHECK-NOT: call
// LLVM-DAG: llvm.func @forward(
// LLVM-DAG: llvm.func @workspace_size(
func.func private @layer(%x: tensor<?x64xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> tensor<?x64xbf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %q13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.qweight" concat(1) : tensor<4x8x64xi32>
  %s13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.scales" concat(1) : tensor<4x2x64xf16>
  %w13 = wna16.assemble codes = %q13, scales = %s13 : tensor<4x8x64xi32>, tensor<4x2x64xf16>
      -> tensor<4x64x2x32xbf16, #gptq>
  %q2 = wna16.parameter "experts.{expert}.down_proj.qweight" : tensor<4x4x64xi32>
  %s2 = wna16.parameter "experts.{expert}.down_proj.scales" : tensor<4x1x64xf16>
  %w2 = wna16.assemble codes = %q2, scales = %s2 : tensor<4x4x64xi32>, tensor<4x1x64xf16>
      -> tensor<4x32x64xbf16, #gptq>
  %init = tensor.empty(%m) : tensor<?x64xbf16>
  %y = wna16.fused_experts silu x(%x : tensor<?x64xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<4x64x2x32xbf16, #gptq>) w2(%w2 : tensor<4x32x64xbf16, #gptq>)
      outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

func.func @forward(%x: tensor<?x64xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> tensor<?x64xbf16> {
  %y = call @layer(%x, %w, %i) : (tensor<?x64xbf16>, tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x64xbf16>
  %z = call @layer(%y, %w, %i) : (tensor<?x64xbf16>, tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x64xbf16>
  return %z : tensor<?x64xbf16>
}
