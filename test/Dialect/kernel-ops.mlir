// The contact with the runtime: plans, runs on tensors and on memrefs.
// RUN: wna16-opt %s | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --mlir-print-op-generic | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --emit-bytecode | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --cse --canonicalize | FileCheck %s --check-prefix=CSE
// RUN: wna16-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFER

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 128, layout = marlin>

// CHECK-LABEL: func.func @plans
func.func @plans() -> (!wna16.plan, !wna16.plan, !wna16.plan, !wna16.plan, !wna16.plan) {
  // CHECK: wna16.kernel_plan convert @wna16_cpu_convert {source = tensor<2x128x64xf16, #gptq>, target = tensor<2x128x64xf16, #marlin>}
  %0 = wna16.kernel_plan convert @wna16_cpu_convert
      {source = tensor<2x128x64xf16, #gptq>, target = tensor<2x128x64xf16, #marlin>}
  // CHECK: wna16.kernel_plan linear @wna16_cpu_linear {batch_invariant, weight = tensor<64x8xf32, #wna16.dense>}
  %1 = wna16.kernel_plan linear @wna16_cpu_linear
      {batch_invariant, weight = tensor<64x8xf32, #wna16.dense>}
  // CHECK: wna16.kernel_plan route @wna16_cpu_route {experts = 8 : i64, groups = 1 : i64, renormalize, scoring = "sigmoid", top_groups = 1 : i64, top_k = 2 : i64}
  %2 = wna16.kernel_plan route @wna16_cpu_route
      {experts = 8, top_k = 2, scoring = "sigmoid", renormalize, groups = 1, top_groups = 1}
  // CHECK: wna16.kernel_plan convert_bias @wna16_cpu_convert_bias {source = tensor<2x64xf16>, target = tensor<2x64xf16, #wna16.bias<layout = marlin>>}
  %3 = wna16.kernel_plan convert_bias @wna16_cpu_convert_bias
      {source = tensor<2x64xf16>, target = tensor<2x64xf16, #wna16.bias<layout = marlin>>}
  // CHECK: wna16.kernel_plan experts @wna16_cpu_experts
  %4 = wna16.kernel_plan experts @wna16_cpu_experts
      {w13 = tensor<2x128x2x128xf16, #gptq>, w2 = tensor<2x128x128xf16, #gptq>,
       hidden = 128, element = f16, top_k = 2, activation = "silu"}
  return %0, %1, %2, %3, %4 : !wna16.plan, !wna16.plan, !wna16.plan, !wna16.plan, !wna16.plan
}

// CHECK-LABEL: func.func @buffers
// A run with memref outs stays, though nobody reads a result.
// CSE-LABEL: func.func @buffers
// CSE: wna16.kernel_run
func.func @buffers(%p: !wna16.plan, %x: memref<?x64xf32>, %c: memref<64x8xf32>,
                   %y: memref<?x8xf32>, %ws: memref<?xi8>, %s: !llvm.ptr) {
  // CHECK: wna16.kernel_run %{{.*}} ins(%{{.*}}, %{{.*}} : memref<?x64xf32>, memref<64x8xf32>) outs(%{{.*}} : memref<?x8xf32>) workspace(%{{.*}} : memref<?xi8>) stream(%{{.*}} : !llvm.ptr) roles ["x", "weight.codes", "y"]
  wna16.kernel_run %p ins(%x, %c : memref<?x64xf32>, memref<64x8xf32>)
      outs(%y : memref<?x8xf32>) workspace(%ws : memref<?xi8>) stream(%s : !llvm.ptr)
      roles ["x", "weight.codes", "y"]
  return
}

// Equal plans are one plan, a run on tensors without users is none.
// CSE-LABEL: func.func @pure
// CSE: %[[P:.*]] = wna16.kernel_plan linear
// CSE-NOT: wna16.kernel_plan
// CSE-NOT: wna16.kernel_run
// CSE: return %[[P]], %[[P]]
// CHECK-LABEL: func.func @pure
func.func @pure(%x: tensor<?x64xf32>, %c: tensor<8x64xf32>, %init: tensor<?x8xf32>)
    -> (!wna16.plan, !wna16.plan) {
  %0 = wna16.kernel_plan linear @f {weight = tensor<64x8xf32, #wna16.dense>}
  %1 = wna16.kernel_plan linear @f {weight = tensor<64x8xf32, #wna16.dense>}
  %2 = wna16.kernel_run %0 ins(%x, %c : tensor<?x64xf32>, tensor<8x64xf32>)
      outs(%init : tensor<?x8xf32>) roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  return %0, %1 : !wna16.plan, !wna16.plan
}

// Outs become the results in place: no allocation, no copy.
// BUFFER-LABEL: func.func @tensors
// BUFFER-SAME: %[[X:.*]]: memref<?x64xf32>, %[[C:.*]]: memref<8x64xf32>, %[[Y:.*]]: memref<?x8xf32>
// BUFFER-NOT: memref.alloc
// BUFFER-NOT: memref.copy
// BUFFER: wna16.kernel_run %{{.*}} ins(%[[X]], %[[C]] : memref<?x64xf32>, memref<8x64xf32>) outs(%[[Y]] : memref<?x8xf32>) roles ["x", "weight.codes", "y"]
// BUFFER: return %[[Y]]
// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<?x64xf32>, %c: tensor<8x64xf32>, %init: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %0 = wna16.kernel_plan linear @f {weight = tensor<64x8xf32, #wna16.dense>}
  // CHECK: wna16.kernel_run %{{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<8x64xf32>) outs(%{{.*}} : tensor<?x8xf32>) roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  %1 = wna16.kernel_run %0 ins(%x, %c : tensor<?x64xf32>, tensor<8x64xf32>)
      outs(%init : tensor<?x8xf32>) roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @workspace
func.func @workspace(%p: !wna16.plan, %m: index) -> index {
  // CHECK: wna16.kernel_workspace %{{.*}} tokens(%{{.*}})
  %bytes = wna16.kernel_workspace %p tokens(%m)
  return %bytes : index
}
