// RUN: wna16-opt %s -wna16-emit-entry-points -split-input-file -verify-diagnostics

// expected-error @below {{expected a name that neither C's libraries nor wna16's runtime have, got 'memcpy'; rename the function}}
func.func @memcpy(%x: memref<8xf32>) {
  return
}

// -----

// Not called by its name, but found by it.
// expected-error @below {{got 'expf'}}
func.func private @expf(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error @below {{got 'wna16_status_get'}}
func.func @wna16_status_get(%n: index) -> index {
  return %n : index
}

// -----

// expected-error @below {{got '_init'}}
func.func @_init(%x: memref<8xf32>) {
  return
}

// -----

// A declaration is of C's libraries.
func.func private @sinf(%x: f32) -> f32
func.func @wna16(%x: memref<8xf32>) {
  return
}

// -----

// expected-error @below {{expected results as arguments; run wna16-results-to-outs before bufferization}}
func.func @result(%x: memref<8xf32>) -> memref<8xf32> {
  return %x : memref<8xf32>
}

// -----

// expected-error @below {{expected argument 0 with identity layout and elements of the runtime, got 'memref<8xf32, strided<[2]>>'}}
func.func @strided(%x: memref<8xf32, strided<[2]>>) {
  return
}

// -----

// expected-error @below {{expected argument 1 with identity layout and elements of the runtime, got 'memref<8xi3>'}}
func.func @element(%x: memref<8xf32>, %y: memref<8xi3>) {
  return
}

// -----

// expected-error @below {{expected 'memref<?xi8>' and !llvm.ptr as last arguments of a function with wna16.workspace}}
func.func @no_workspace(%x: memref<8xf32>) attributes {wna16.workspace = @size} {
  return
}

// -----

// expected-error @below {{expected wna16.workspace to name a function (index) -> index with wna16.extents = [[argument, axis], ...], got @missing}}
func.func @no_size(%x: memref<?xf32>, %workspace: memref<?xi8>, %stream: !llvm.ptr)
    attributes {wna16.workspace = @missing} {
  return
}

// -----

// expected-error @below {{with wna16.extents = [[argument, axis], ...], got @size}}
func.func @no_axis(%x: memref<?xf32>, %workspace: memref<?xi8>, %stream: !llvm.ptr)
    attributes {wna16.workspace = @size} {
  return
}
func.func @size(%n: index) -> index attributes {wna16.extents = [[0, 1]]} {
  return %n : index
}

// -----

// expected-error @below {{expected tensors as arguments of a public function, got 'f32' as argument 1; make it a tensor of rank 0, or the function private}}
func.func @scalar(%x: memref<8xf32>, %f: f32) {
  return
}

// -----

// expected-error @below {{expected wna16.extents on a size function (index) -> index, got '(memref<4xf32>) -> ()'}}
func.func @sized(%x: memref<4xf32>) attributes {wna16.extents = [[0, 0]]} {
  return
}
