// RUN: wna16-opt %s -wna16-lower-to-runtime -canonicalize -cse -split-input-file | FileCheck %s

#marlin = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>

// The plan is a constant and shared; 19 tensors in ABI order, absent ones zero.
// CHECK-DAG: llvm.func @wna16_cuda_marlin_fused_experts(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr) -> i32
// CHECK-DAG: llvm.func @wna16_cuda_marlin_fused_experts_workspace(!llvm.ptr, i64) -> i64
// CHECK-DAG: llvm.mlir.global internal constant @wna16_plan(dense<{{.*}}> : tensor<37xi64>)
// CHECK-NOT: @wna16_plan_0
// CHECK-LABEL: func.func @experts(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xbf16>,
// CHECK-SAME: %[[SPACE:[a-z0-9]+]]: memref<?xi8>, %[[STREAM:[a-z0-9]+]]: !llvm.ptr)
// CHECK-DAG: %[[COUNT:.*]] = llvm.mlir.constant(19 : i64)
// CHECK-DAG: %[[CUDA:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[BFLOAT:.*]] = llvm.mlir.constant(4 : i8)
// CHECK-DAG: %[[SIXTEEN:.*]] = llvm.mlir.constant(16 : i8)
// CHECK-DAG: %[[ABSENT:.*]] = llvm.mlir.zero : !llvm.struct<
// CHECK-DAG: %[[PLAN:.*]] = llvm.mlir.addressof @wna16_plan
// CHECK: %[[TENSORS:.*]] = llvm.alloca %[[COUNT]] x !llvm.struct<
// CHECK: %[[INDEX:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[INTEGER:.*]] = arith.index_cast %[[INDEX]] : index to i64
// CHECK: %[[DATA:.*]] = llvm.inttoptr %[[INTEGER]]
// CHECK: %[[T0:.*]] = llvm.insertvalue %[[DATA]], %[[ABSENT]][0]
// CHECK: %[[T1:.*]] = llvm.insertvalue %[[CUDA]], %[[T0]][1]
// CHECK: %[[T2:.*]] = llvm.insertvalue %[[CUDA]], %[[T1]][3]
// CHECK: %[[T3:.*]] = llvm.insertvalue %[[BFLOAT]], %[[T2]][4]
// CHECK: llvm.insertvalue %[[SIXTEEN]], %[[T3]][5]
// CHECK: memref.dim %[[X]]
// w13.zeros is the sixth tensor, and absent.
// CHECK: %[[ZEROS:.*]] = llvm.getelementptr %[[TENSORS]][5]
// CHECK: llvm.store %[[ABSENT]], %[[ZEROS]]
// CHECK: %[[Y:.*]] = llvm.getelementptr %[[TENSORS]][18]
// CHECK: llvm.store %{{.*}}, %[[Y]]
// CHECK: memref.extract_aligned_pointer_as_index %[[SPACE]]
// CHECK: %[[WORKSPACE:.*]] = llvm.inttoptr
// CHECK: %[[DIM:.*]] = memref.dim %[[SPACE]]
// CHECK: %[[BYTES:.*]] = arith.index_cast %[[DIM]] : index to i64
// CHECK: llvm.call @wna16_cuda_marlin_fused_experts(%[[PLAN]], %[[TENSORS]], %[[COUNT]], %[[WORKSPACE]], %[[BYTES]], %[[STREAM]])
// CHECK-LABEL: func.func @size(
// CHECK: %[[PLAN:.*]] = llvm.mlir.addressof @wna16_plan
// CHECK: llvm.call @wna16_cuda_marlin_fused_experts_workspace(%[[PLAN]], %{{.*}}) : (!llvm.ptr, i64) -> i64
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @experts(%x: memref<?x64xbf16>, %w: memref<?x2xf32>, %i: memref<?x2xi32>,
                     %q13: memref<4x4x256xi32>, %s13: memref<4x2x128xbf16>, %q2: memref<4x4x128xi32>,
                     %s2: memref<4x2x64xbf16>, %y: memref<?x64xbf16>, %space: memref<?xi8>, %s: !llvm.ptr) {
    %p = wna16.kernel_plan experts @wna16_cuda_marlin_fused_experts {activation = "silu", element = bf16,
        hidden = 64 : i64, top_k = 2 : i64, w13 = tensor<4x64x2x64xbf16, #marlin>, w2 = tensor<4x64x64xbf16, #marlin>}
    wna16.kernel_run %p ins(%x, %w, %i, %q13, %s13, %q2, %s2 : memref<?x64xbf16>, memref<?x2xf32>, memref<?x2xi32>,
        memref<4x4x256xi32>, memref<4x2x128xbf16>, memref<4x4x128xi32>, memref<4x2x64xbf16>)
        outs(%y : memref<?x64xbf16>) workspace(%space : memref<?xi8>) stream(%s : !llvm.ptr)
        roles ["x", "weights", "ids", "w13.codes", "w13.scales", "w2.codes", "w2.scales", "y"]
    return
  }
  func.func @size(%m: index) -> index {
    %p = wna16.kernel_plan experts @wna16_cuda_marlin_fused_experts {activation = "silu", element = bf16,
        hidden = 64 : i64, top_k = 2 : i64, w13 = tensor<4x64x2x64xbf16, #marlin>, w2 = tensor<4x64x64xbf16, #marlin>}
    %b = wna16.kernel_workspace %p tokens(%m)
    return %b : index
  }
}

// -----

// On a CPU the device type is 1; without workspace and stream these are null.
// CHECK-LABEL: func.func @linear(
// CHECK-DAG: %[[CPU:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64)
// CHECK: llvm.insertvalue %[[CPU]], %{{.*}}[1]
// CHECK: llvm.call @wna16_cpu_linear(%{{.*}}, %{{.*}}, %{{.*}}, %[[NULL]], %[[ZERO]], %[[NULL]])
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @linear(%x: memref<?x64xf32>, %w: memref<8x64xf32>, %y: memref<?x8xf32>) {
    %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
    wna16.kernel_run %p ins(%x, %w : memref<?x64xf32>, memref<8x64xf32>) outs(%y : memref<?x8xf32>)
        roles ["x", "weight.codes", "y"]
    return
  }
}

// -----

// An Intel GPU is 14; the descriptors are on the stack once, not once per iteration.
// CHECK-LABEL: func.func @loop(
// CHECK-DAG: %[[XPU:.*]] = llvm.mlir.constant(14 : i32)
// CHECK-COUNT-2: llvm.alloca
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: llvm.insertvalue %[[XPU]], %{{.*}}[1]
// CHECK: llvm.call @wna16_xpu_linear(
module attributes {wna16.target = #wna16.target<xpu>} {
  func.func @loop(%n: index, %x: memref<?x64xf32>, %w: memref<8x64xf32>, %y: memref<?x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %p = wna16.kernel_plan linear @wna16_xpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
      wna16.kernel_run %p ins(%x, %w : memref<?x64xf32>, memref<8x64xf32>) outs(%y : memref<?x8xf32>)
          roles ["x", "weight.codes", "y"]
    }
    return
  }
}
