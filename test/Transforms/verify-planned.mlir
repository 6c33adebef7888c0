// RUN: wna16-opt %s -wna16-verify-planned -split-input-file -verify-diagnostics

// On a CPU loops may touch buffers, and stack frames may hold them.
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @fine(%x: memref<?x8xf32>, %y: memref<?x8xf32>) {
    %s = memref.alloca() : memref<4xf32>
    linalg.exp ins(%x : memref<?x8xf32>) outs(%y : memref<?x8xf32>)
    return
  }
}

// -----

// A kernel and sizes are all that a device's function has.
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @fine(%x: memref<?x64xf32>, %w: memref<8x64xf32>, %y: memref<?x8xf32>, %space: memref<?xi8>) {
    %c0 = arith.constant 0 : index
    %m = memref.dim %x, %c0 : memref<?x64xf32>
    %v = memref.view %space[%c0][%m] : memref<?xi8> to memref<?x8xf32>
    %p = wna16.kernel_plan linear @wna16_cuda_linear {weight = tensor<64x8xf32, #wna16.dense>}
    wna16.kernel_run %p ins(%x, %w : memref<?x64xf32>, memref<8x64xf32>) outs(%v : memref<?x8xf32>)
        roles ["x", "weight.codes", "y"]
    return
  }
}

// -----

func.func @loop(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x8xf32>
  scf.for %i = %c0 to %m step %c1 {
    // expected-error @below {{expected no allocation in a call, got 'memref.alloc' of layer loop; only those of public functions, outside loops, become part of the workspace}}
    %n = memref.alloc() : memref<4xf32>
  }
  return
}

// -----

// Callees count as well.
func.func private @callee() {
  // expected-error @below {{expected no allocation in a call, got 'memref.alloc' of layer callee}}
  %n = memref.alloc() : memref<4xf32>
  return
}

// -----

module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @sum(%x: memref<?x8xf32>, %y: memref<?x8xf32>) {
    // expected-error @below {{'linalg.exp' of layer sum would run on the host, which cannot reach the memory of a cuda target; only kernels of the runtime can, so compute it outside or compile for cpu}}
    linalg.exp ins(%x : memref<?x8xf32>) outs(%y : memref<?x8xf32>)
    return
  }
}

// -----

module attributes {wna16.target = #wna16.target<xpu>} {
  func.func @copied(%x: memref<?x8xf32>, %y: memref<?x8xf32>) {
    // expected-error @below {{'memref.copy' of layer copied would run on the host, which cannot reach the memory of a xpu target}}
    memref.copy %x, %y : memref<?x8xf32> to memref<?x8xf32>
    return
  }
}

// -----

module attributes {wna16.target = #wna16.target<xpu>} {
  func.func @scalar(%x: memref<8xf32>) -> f32 {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.load' of layer scalar would run on the host, which cannot reach the memory of a xpu target}}
    %0 = memref.load %x[%c0] : memref<8xf32>
    return %0 : f32
  }
}

// -----

module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  memref.global "private" constant @map : memref<4xi32> = dense<[0, 1, -1, 2]>
  func.func @constant(%x: memref<4xi32>) {
    // expected-error @below {{'memref.get_global' of layer constant would run on the host, which cannot reach the memory of a cuda target}}
    %0 = memref.get_global @map : memref<4xi32>
    return
  }
}
