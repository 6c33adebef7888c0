// RUN: wna16-opt %s -wna16-pipeline=target=cpu -o /dev/null -mlir-print-ir-before=wna16-plan-workspace 2>&1 | FileCheck %s

// A loop carries its activations and the buffer that a layer computes in: both
// lie in the workspace, and the caller's input stays as it is.
// CHECK-LABEL: func.func @repeated(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x64xbf16>, %{{.*}}: memref<64x64xbf16>, %[[OUT:[a-z0-9]+]]: memref<?x64xbf16> {wna16.output})
// CHECK: memref.copy %[[X]], %[[CARRIED:.*]] :
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK: wna16.kernel_run %{{.*}} ins(%[[CARRIED]], %{{.*}}) outs(%[[Y:[a-z0-9_]+]] :
// CHECK: linalg.copy ins(%[[Y]] : memref<?x64xbf16>) outs(%[[CARRIED]] : memref<?x64xbf16>)
// CHECK: memref.copy %[[CARRIED]], %[[OUT]]
func.func @repeated(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16, #wna16.dense>) -> tensor<?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %e = tensor.empty(%m) : tensor<?x64xbf16>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %e) -> (tensor<?x64xbf16>, tensor<?x64xbf16>) {
    %y = wna16.linear x(%a : tensor<?x64xbf16>) weight(%w : tensor<64x64xbf16, #wna16.dense>)
        outs(%b : tensor<?x64xbf16>) -> tensor<?x64xbf16>
    %next = linalg.copy ins(%y : tensor<?x64xbf16>) outs(%a : tensor<?x64xbf16>) -> tensor<?x64xbf16>
    scf.yield %next, %y : tensor<?x64xbf16>, tensor<?x64xbf16>
  }
  return %r#0 : tensor<?x64xbf16>
}
