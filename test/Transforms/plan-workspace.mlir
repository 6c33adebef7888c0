// RUN: wna16-opt %s -wna16-plan-workspace -canonicalize -cse -o %t.once
// RUN: FileCheck %s --input-file=%t.once
// RUN: wna16-opt %t.once -wna16-plan-workspace -canonicalize -cse -o %t.twice
// RUN: diff %t.once %t.twice

// 32 bytes a token, rounded up to 64, then 64 for 3 bytes, then the scratch.
// Everything saturates: an overflow, or a kernel's -1, is 2^63 - 1 at the end.
// CHECK-LABEL: func.func @workspace_size(
// CHECK-SAME: %[[M:.*]]: index) -> index attributes {wna16.extents = {{\[\[}}0, 0]]}
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[C63:.*]] = arith.constant 63 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[TOP:.*]] = arith.constant -1 : index
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 9223372036854775807 : index
// CHECK: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %[[M]], %[[C32]]
// CHECK: %[[WIDE:.*]] = arith.cmpi ne, %[[HIGH]], %[[C0]]
// CHECK: %[[BYTES:.*]] = arith.select %[[WIDE]], %[[TOP]], %[[LOW]]
// CHECK: %[[MORE:.*]] = arith.addi %[[BYTES]], %[[C63]]
// CHECK: %[[LESS:.*]] = arith.cmpi ult, %[[MORE]], %[[BYTES]]
// CHECK: %[[PADDED:.*]] = arith.select %[[LESS]], %[[TOP]], %[[MORE]]
// CHECK: %[[UNITS:.*]] = arith.divui %[[PADDED]], %[[C64]]
// CHECK: %[[A:.*]] = arith.muli %[[UNITS]], %[[C64]]
// CHECK: %[[SUM:.*]] = arith.addi %[[A]], %[[C64]]
// CHECK: arith.cmpi ult, %[[SUM]], %[[A]]
// CHECK: %[[B:.*]] = arith.select {{.*}}, %[[TOP]], %[[SUM]]
// CHECK: %[[P:.*]] = wna16.kernel_plan linear @wna16_cpu_linear
// CHECK: %[[S:.*]] = wna16.kernel_workspace %[[P]] tokens(%[[M]])
// CHECK: %[[SUM:.*]] = arith.addi %[[B]], %[[S]]
// CHECK: arith.cmpi ult, %[[SUM]], %[[B]]
// CHECK: %[[ALL:.*]] = arith.select {{.*}}, %[[TOP]], %[[SUM]]
// CHECK: %[[SIZE:.*]] = arith.minui %[[ALL]], %[[LARGEST]]
// CHECK: return %[[SIZE]]

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xf32>, %[[W:[a-z0-9]+]]: memref<8x64xf32>, %[[Y:[a-z0-9]+]]: memref<?x8xf32>,
// CHECK-SAME: %[[SPACE:[a-z0-9]+]]: memref<?xi8>, %[[STREAM:[a-z0-9]+]]: !llvm.ptr) attributes {wna16.workspace = @workspace_size}
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK: %[[M:.*]] = memref.dim %[[X]], %[[C0]]
// CHECK: %[[B:.*]] = arith.muli %{{.*}}, %[[C64]]
// CHECK: %[[SUM:.*]] = arith.addi %[[B]], %[[C64]]
// CHECK: %[[REST:.*]] = arith.select {{.*}}, %[[SUM]]
// CHECK: %[[ALL:.*]] = memref.dim %[[SPACE]], %[[C0]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[ALL]], %[[REST]]
// CHECK: %[[SCRATCH:.*]] = memref.view %[[SPACE]][%[[REST]]][%[[LEFT]]] : memref<?xi8> to memref<?xi8>
// CHECK: %[[A:.*]] = memref.view %[[SPACE]][%[[C0]]][%[[M]]] : memref<?xi8> to memref<?x8xf32>
// CHECK: %[[BYTES:.*]] = memref.view %[[SPACE]][%[[B]]][] : memref<?xi8> to memref<3xi8>
// CHECK: wna16.kernel_run {{.*}} outs(%[[A]] : memref<?x8xf32>) workspace(%[[SCRATCH]] : memref<?xi8>) stream(%[[STREAM]] : !llvm.ptr)
// CHECK: linalg.exp ins(%[[A]] : memref<?x8xf32>) outs(%[[Y]] : memref<?x8xf32>)
// A buffer of a loop is not planned; wna16-verify-planned refuses it.
// CHECK: scf.for
// CHECK: memref.alloc() : memref<4xf32>
// CHECK-NOT: memref.dealloc %[[A]]
// CHECK: return
func.func @forward(%x: memref<?x64xf32>, %w: memref<8x64xf32>, %y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : i8
  %m = memref.dim %x, %c0 : memref<?x64xf32>
  %a = memref.alloc(%m) : memref<?x8xf32>
  %b = memref.alloc() : memref<3xi8>
  memref.store %c3, %b[%c0] : memref<3xi8>
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  wna16.kernel_run %p ins(%x, %w : memref<?x64xf32>, memref<8x64xf32>) outs(%a : memref<?x8xf32>)
      roles ["x", "weight.codes", "y"]
  linalg.exp ins(%a : memref<?x8xf32>) outs(%y : memref<?x8xf32>)
  scf.for %i = %c0 to %m step %c1 {
    %n = memref.alloc() : memref<4xf32>
    linalg.exp ins(%n : memref<4xf32>) outs(%n : memref<4xf32>)
    memref.dealloc %n : memref<4xf32>
  }
  memref.dealloc %a : memref<?x8xf32>
  return
}

// The companion of forward_3; it has its parameter although nothing depends on it.
// CHECK-LABEL: func.func @workspace_size_3(
// CHECK-SAME: %{{.*}}: index) -> index attributes {wna16.extents = []}
// CHECK: %[[C64:.*]] = arith.constant 64 : index
// CHECK: return %[[C64]]
// CHECK-LABEL: func.func @forward_3(
// CHECK-SAME: %{{.*}}: memref<?xi8>, %{{.*}}: !llvm.ptr) attributes {wna16.workspace = @workspace_size_3}
func.func @forward_3(%y: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%a : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}

// The tokens of batched experts are the second axis.
// CHECK-LABEL: func.func @batched_workspace_size(
// CHECK-SAME: %[[T:.*]]: index) -> index attributes {wna16.extents = {{\[\[}}0, 1]]}
// CHECK: wna16.kernel_workspace %{{.*}} tokens(%[[T]])
func.func @batched(%x: memref<2x?x64xf32>, %i: memref<2xi32>, %w13: memref<2x2x64x64xf32>,
                   %w2: memref<2x64x64xf32>, %y: memref<2x?x64xf32>) {
  %p = wna16.kernel_plan experts @wna16_cpu_fused_experts {activation = "silu", batched, element = f32,
      hidden = 64 : i64, top_k = 1 : i64, w13 = tensor<2x64x2x64xf32, #wna16.dense>, w2 = tensor<2x64x64xf32, #wna16.dense>}
  wna16.kernel_run %p ins(%x, %i, %w13, %w2 : memref<2x?x64xf32>, memref<2xi32>, memref<2x2x64x64xf32>, memref<2x64x64xf32>)
      outs(%y : memref<2x?x64xf32>) roles ["x", "ids", "w13.codes", "w2.codes", "y"]
  return
}

// A branch that may be taken has its place.
// CHECK-LABEL: func.func @branch_workspace_size(
// CHECK: %[[C128:.*]] = arith.constant 128 : index
// CHECK: return %[[C128]]
// CHECK-LABEL: func.func @branch(
// CHECK: scf.if
// CHECK: memref.view %{{.*}}[%{{.*}}][] : memref<?xi8> to memref<8xf32>
// CHECK: else
// CHECK: memref.view %{{.*}}[%{{.*}}][] : memref<?xi8> to memref<9xf32>
func.func @branch(%c: i1, %y: memref<8xf32>) {
  scf.if %c {
    %a = memref.alloc() : memref<8xf32>
    linalg.exp ins(%a : memref<8xf32>) outs(%y : memref<8xf32>)
  } else {
    %a = memref.alloc() : memref<9xf32>
    linalg.exp ins(%a : memref<9xf32>) outs(%a : memref<9xf32>)
  }
  return
}

// CHECK-LABEL: func.func @nothing(
// CHECK-SAME: %{{[a-z0-9]+}}: memref<8xf32>) {
func.func @nothing(%y: memref<8xf32>) {
  return
}

// CHECK-LABEL: func.func private @hidden(
// CHECK-NEXT: memref.alloc
func.func private @hidden(%y: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%a : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
