// RUN: wna16-opt %s -wna16-emit-entry-points -split-input-file -verify-diagnostics

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
