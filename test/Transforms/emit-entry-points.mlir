// RUN: wna16-opt %s -wna16-emit-entry-points -canonicalize -cse | FileCheck %s

// The description is JSON, and a C string.
// CHECK: llvm.mlir.global external constant @wna16_module_description("{\22abi\22:3,\22functions\22:[{\22arguments\22:[
// CHECK-SAME: {\22name\22:\22x\22,\22role\22:\22input\22,\22shape\22:[-1,64],\22type\22:\22bf16\22},
// CHECK-SAME: {\22name\22:\22w13.codes\22,\22role\22:\22prepared\22,\22shape\22:[4,64],\22type\22:\22i32\22},
// CHECK-SAME: {\22concat\22:0,\22pattern\22:\22gate.weight\22,\22role\22:\22parameter\22,\22shape\22:[4,64],\22type\22:\22bf16\22},
// CHECK-SAME: {\22name\22:\22out\22,\22role\22:\22output\22,\22shape\22:[-1,64],\22type\22:\22bf16\22}],
// CHECK-SAME: \22name\22:\22forward\22,\22workspace\22:\22workspace_size\22}
// CHECK-SAME: \22name\22:\22plain\22}
// CHECK-SAME: }]}\00")
// The cpu, four tensors, and the type, rank and extents of each; -18 is the
// symbol of the first axis of matrices.
// CHECK: llvm.mlir.global internal constant @wna16_signature(dense<[1, 4, 1, 2, -18, 64, 7, 2, 4, 64, 1, 2, 4, 64, 1, 2, -18, 64]>

// CHECK: func.func @workspace_size(
func.func @workspace_size(%m: index) -> index attributes {wna16.extents = [[0, 0]]} {
  return %m : index
}

// CHECK-LABEL: llvm.func @forward(
// CHECK-SAME: %[[TENSORS:.*]]: !llvm.ptr, %[[COUNT:.*]]: i64, %[[SPACE:.*]]: !llvm.ptr, %[[BYTES:.*]]: i64, %[[STREAM:.*]]: !llvm.ptr) -> i32
// CHECK-DAG: %[[OK:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[SIGNATURE:.*]] = llvm.mlir.addressof @wna16_signature
// CHECK: %[[CHECKED:.*]] = llvm.call @wna16_check_arguments(%[[SIGNATURE]], %[[TENSORS]], %[[COUNT]])
// CHECK: %[[FINE:.*]] = llvm.icmp "eq" %[[CHECKED]], %[[OK]]
// CHECK: llvm.cond_br %[[FINE]], ^[[NEXT:.*]], ^[[BAD:.*]](%[[CHECKED]] : i32)
// CHECK: ^[[BAD]](%[[STATUS:.*]]: i32):
// CHECK: llvm.return %[[STATUS]]
// The workspace is checked against the size for these tokens: the first extent of x.
// CHECK: ^[[NEXT]]:
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[TENSORS]][0, 7]
// CHECK: %[[SHAPE:.*]] = llvm.load %[[FIELD]]
// CHECK: %[[EXTENT:.*]] = llvm.load %[[SHAPE]] : !llvm.ptr -> i64
// CHECK: %[[LARGEST:.*]] = arith.maxsi %[[EXTENT]], %{{.*}} : i64
// CHECK: %[[TOKENS:.*]] = arith.index_cast %[[LARGEST]] : i64 to index
// CHECK: %[[SIZE:.*]] = func.call @workspace_size(%[[TOKENS]])
// CHECK: %[[NEEDED:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK: llvm.call @wna16_check_workspace(%[[NEEDED]], %[[SPACE]], %[[BYTES]])
// CHECK: func.call @wna16_impl_forward(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[STREAM]])
// CHECK: %[[RESULT:.*]] = llvm.call @wna16_status_get()
// CHECK: llvm.return %[[RESULT]]
// CHECK: func.func private @wna16_impl_forward(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
func.func @forward(%x: memref<?x64xbf16> {wna16.name = "x"}, %w: memref<4x64xi32> {wna16.prepared = "w13.codes"},
                   %r: memref<4x64xbf16> {wna16.parameter = {pattern = "gate.weight", concat = 0 : i64}},
                   %y: memref<?x64xbf16> {wna16.name = "out", wna16.output}, %space: memref<?xi8>, %s: !llvm.ptr)
    attributes {wna16.workspace = @workspace_size} {
  return
}

// Without workspace there is nothing to check.
// CHECK-LABEL: llvm.func @plain(
// CHECK-NOT: wna16_check_workspace
// CHECK: func.call @wna16_impl_plain(
func.func @plain(%x: memref<8xf32>) {
  return
}

// Functions of the module go on calling the one on memrefs.
// CHECK-LABEL: func.func private @wna16_impl_caller(
// CHECK: call @wna16_impl_plain(%{{.*}}) : (memref<8xf32>) -> ()
func.func @caller(%x: memref<8xf32>) {
  call @plain(%x) : (memref<8xf32>) -> ()
  return
}

// CHECK: func.func private @hidden(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
func.func private @hidden(%x: memref<8xf32>) {
  return
}

// What is no function on tensors stays.
// CHECK: func.func @scalar(%{{.*}}: f32) -> f32
func.func @scalar(%x: f32) -> f32 {
  return %x : f32
}
