// RUN: wna16-opt %s -wna16-emulate | mlir-opt -one-shot-bufferize='bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map' -convert-linalg-to-loops -canonicalize | FileCheck %s

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// The activated rows are the only buffer; the result goes into the init, weights
// are read where they lie, and no loop allocates.
// CHECK-LABEL: func.func @experts(
// CHECK-NOT: scf.for
// CHECK: memref.alloc(%{{.*}}) {{.*}} : memref<?x2x16xbf16>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: return
func.func @experts(%x: tensor<?x64xbf16>, %w: tensor<?x2xf32>, %ids: tensor<?x2xi32>,
                   %w13: tensor<4x64x2x16xbf16, #gptq>,
                   %w2: tensor<4x16x64xf32, #wna16.dense>,
                   %init: tensor<?x64xbf16> {bufferization.writable = true})
    -> tensor<?x64xbf16> {
  %0 = wna16.fused_experts silu x(%x : tensor<?x64xbf16>)
      routing(%w, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<4x64x2x16xbf16, #gptq>)
      w2(%w2 : tensor<4x16x64xf32, #wna16.dense>)
      outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}
