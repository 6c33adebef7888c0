// RUN: wna16-opt %s -wna16-results-to-outs | FileCheck %s
// Nothing is allocated or copied for a result that is computed in place.
// RUN: wna16-opt %s -wna16-results-to-outs \
// RUN:   -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   -canonicalize | FileCheck %s --check-prefix=MEMREF

// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32> {bufferization.writable = false, wna16.name = "x"}, %[[OUT:.*]]: memref<?x8xf32> {wna16.name = "out", wna16.output}) {
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[Y:.*]] = linalg.exp ins(%[[X]] : tensor<?x8xf32>) outs(%[[T]] : tensor<?x8xf32>)
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
// CHECK: return{{$}}
// MEMREF-LABEL: func.func @in_place(
// MEMREF-SAME: %[[X:.*]]: memref<?x8xf32> {wna16.name = "x"}, %[[OUT:.*]]: memref<?x8xf32> {wna16.name = "out", wna16.output}) {
// MEMREF-NEXT: linalg.exp ins(%[[X]] : memref<?x8xf32>) outs(%[[OUT]] : memref<?x8xf32>)
// MEMREF-NEXT: return
func.func @in_place(%x: tensor<?x8xf32> {wna16.name = "x"}) -> (tensor<?x8xf32> {wna16.name = "out"}) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %0 = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// Through the destinations of several operations.
// MEMREF-LABEL: func.func @chain(
// MEMREF-SAME: %[[X:.*]]: memref<8xf32>, %[[F:.*]]: f32, %[[OUT:.*]]: memref<8xf32> {wna16.output})
// MEMREF-NEXT: linalg.fill ins(%[[F]] : f32) outs(%[[OUT]] : memref<8xf32>)
// MEMREF-NEXT: linalg.exp ins(%[[X]] : memref<8xf32>) outs(%[[OUT]] : memref<8xf32>)
// MEMREF-NEXT: return
func.func @chain(%x: tensor<8xf32>, %f: f32) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%f : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.exp ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Equal empty tensors, as CSE leaves them, are two destinations.
// MEMREF-LABEL: func.func @shared(
// MEMREF-SAME: %[[X:.*]]: memref<8xf32>, %[[A:.*]]: memref<8xf32> {wna16.output}, %[[B:.*]]: memref<8xf32> {wna16.output})
// MEMREF-NEXT: linalg.exp ins(%[[X]] : memref<8xf32>) outs(%[[A]] : memref<8xf32>)
// MEMREF-NEXT: linalg.sqrt ins(%[[X]] : memref<8xf32>) outs(%[[B]] : memref<8xf32>)
// MEMREF-NEXT: return
func.func @shared(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.sqrt ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// What is not computed is copied; scalars are still returned.
// CHECK-LABEL: func.func @copied(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32> {bufferization.writable = false}, %[[A:.*]]: memref<8xf32> {wna16.output}, %[[B:.*]]: memref<8xf32> {wna16.output}) -> index
// CHECK: materialize_in_destination %[[X]] in restrict writable %[[A]]
// CHECK: materialize_in_destination %{{.*}} in restrict writable %[[B]]
// CHECK: return %{{.*}} : index
func.func @copied(%x: tensor<8xf32>) -> (tensor<8xf32>, index, tensor<8xf32>) {
  %c = arith.constant 3 : index
  %e = tensor.empty() : tensor<8xf32>
  %1 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %x, %c, %1 : tensor<8xf32>, index, tensor<8xf32>
}

// The caller's input is copied before it is written, unless it may be.
// MEMREF-LABEL: func.func @kept(
// MEMREF-SAME: %[[X:.*]]: memref<8xf32>, %[[F:.*]]: memref<8xf32> {wna16.output})
// MEMREF: %[[COPY:.*]] = memref.alloc
// MEMREF: linalg.exp ins(%[[X]] : memref<8xf32>) outs(%[[COPY]] : memref<8xf32>)
// MEMREF-LABEL: func.func @written(
// MEMREF-SAME: %[[X:.*]]: memref<8xf32>,
// MEMREF-NEXT: linalg.exp ins(%[[X]] : memref<8xf32>) outs(%[[X]] : memref<8xf32>)
func.func @kept(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @written(%x: tensor<8xf32> {bufferization.writable = true}) -> tensor<8xf32> {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Extents are known through loops and conditionals.
// CHECK-LABEL: func.func @structured(
// CHECK-SAME: %{{.*}}: memref<?x8xf32> {wna16.output}, %{{.*}}: memref<?x8xf32> {wna16.output})
func.func @structured(%c: i1, %n: index, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?x8xf32> {
    %y = linalg.exp ins(%x : tensor<?x8xf32>) outs(%a : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %y : tensor<?x8xf32>
  }
  %1 = scf.if %c -> tensor<?x8xf32> {
    %y = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %y : tensor<?x8xf32>
  } else {
    scf.yield %0 : tensor<?x8xf32>
  }
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK: func.func private @hidden(%{{.*}}: tensor<8xf32>) -> tensor<8xf32>
func.func private @hidden(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// CHECK: func.func private @external(tensor<8xf32>) -> tensor<8xf32>
func.func private @external(tensor<8xf32>) -> tensor<8xf32>

// CHECK-LABEL: func.func @blocks(
func.func @blocks(%c: i1) {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  cf.br ^bb2
^bb2:
  return
}

// -----

// A dynamic extent is followed through calls, casts and inits.

// CHECK-LABEL: func.func @through
// CHECK-SAME: %{{.*}}: memref<?x8xf32> {wna16.output}
func.func private @helper(%a: tensor<4xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %r = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
func.func @through(%a: tensor<4xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = call @helper(%a, %x) : (tensor<4xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = tensor.cast %0 : tensor<?x8xf32> to tensor<?x?xf32>
  %2 = tensor.cast %1 : tensor<?x?xf32> to tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
