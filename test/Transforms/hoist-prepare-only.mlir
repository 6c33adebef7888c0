// RUN: wna16-opt %s -wna16-hoist-prepare=prepare-only | FileCheck %s --implicit-check-not='{{^  func}}'
// RUN: wna16-opt %s -wna16-hoist-prepare=prepare-only | wna16-opt -wna16-lower-pipeline | FileCheck %s --check-prefix=LLVM

// What prepares stays, for the CPU; functions keep the weights that they take.
// CHECK: module attributes {wna16.prepared_for = #wna16.target<cuda, capability = 90>, wna16.target = #wna16.target<cpu>}
// CHECK: {{^  func}}.func @prepare_w13(
// CHECK: {{^  func}}.func @prepare_w2(
// CHECK: {{^  func}}.func @forward(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<2x64x2x32xbf16, #{{.*}}> {{{.*}}wna16.prepared = "w13"},
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<2x32x64xbf16, #{{.*}}> {{{.*}}wna16.prepared = "w2"},
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<64xf32> {{{.*}}pattern = "norm"}}) attributes {wna16.backends = ["marlin"]} {
// CHECK-NEXT: return

// The description names the target that the weights are for.
// LLVM: @wna16_module_description
// LLVM-SAME: \22pattern\22:\22norm\22
// LLVM-SAME: \22backend\22:\22marlin\22,\22name\22:\22forward\22}
// LLVM-SAME: \22target\22:\22#wna16.target<cuda, capability = 90>\22
// LLVM: llvm.func @prepare_w13(
// LLVM: llvm.call @wna16_cpu_convert(
// LLVM-NOT: wna16_cuda

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
!x = tensor<?x64xbf16>
!w = tensor<?x1xf32>
!i = tensor<?x1xi32>
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @forward(%x: !x, %w: !w, %i: !i) -> !x {
    %q13 = wna16.parameter "e.{expert}.{gate,up}.qweight" concat(1) : tensor<2x8x64xi32>
    %s13 = wna16.parameter "e.{expert}.{gate,up}.scales" concat(1) : tensor<2x2x64xf16>
    %p13 = wna16.assemble codes = %q13, scales = %s13 : tensor<2x8x64xi32>, tensor<2x2x64xf16> -> tensor<2x64x2x32xbf16, #gptq>
    %w13 = wna16.repack %p13 : tensor<2x64x2x32xbf16, #gptq> to tensor<2x64x2x32xbf16, #marlin>
    %q2 = wna16.parameter "e.{expert}.down.qweight" : tensor<2x4x64xi32>
    %s2 = wna16.parameter "e.{expert}.down.scales" : tensor<2x1x64xf16>
    %p2 = wna16.assemble codes = %q2, scales = %s2 : tensor<2x4x64xi32>, tensor<2x1x64xf16> -> tensor<2x32x64xbf16, #gptq>
    %w2 = wna16.repack %p2 : tensor<2x32x64xbf16, #gptq> to tensor<2x32x64xbf16, #marlin>
    %norm = wna16.parameter "norm" : tensor<64xf32>
    cf.br ^next
  ^next:
    %0 = func.call @scale(%x, %norm) : (!x, tensor<64xf32>) -> !x
    %y = wna16.fused_experts silu x(%0 : !x) routing(%w, %i : !w, !i)
        w13(%w13 : tensor<2x64x2x32xbf16, #marlin>) w2(%w2 : tensor<2x32x64xbf16, #marlin>) outs(%x : !x) {backend = "marlin"} -> !x
    return %y : !x
  }
  func.func private @scale(%x: !x, %norm: tensor<64xf32>) -> !x {
    return %x : !x
  }
}
