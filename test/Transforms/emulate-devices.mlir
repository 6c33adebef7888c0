// Emulation is IR for every target; beside kernels it is one of the CPU alone.
// RUN: wna16-opt %s -wna16-emulate | FileCheck %s
// CHECK: linalg.generic
// RUN: wna16-opt %s -wna16-emulate=all=false -split-input-file -verify-diagnostics

!x = tensor<?x64xbf16>
!w13 = tensor<2x64x2x32xbf16, #wna16.dense>
!w2 = tensor<2x32x64xbf16, #wna16.dense>
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @forward(%x: !x, %w: tensor<?x1xf32>, %i: tensor<?x1xi32>, %w13: !w13, %w2: !w2) -> !x {
    // expected-error @below {{of layer forward: backend emulation becomes loops of the host, which cannot reach the memory of a cuda target; take a backend that has a kernel (auto), compile for cpu, or stop at wna16-emulate}}
    %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>)
        w13(%w13 : !w13) w2(%w2 : !w2) outs(%x : !x) {backend = "emulation"} -> !x
    return %0 : !x
  }
}
