// RUN: wna16-opt %s -wna16-plan-workspace -split-input-file -verify-diagnostics

func.func @loaded(%n: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %m = memref.load %n[%c0] : memref<1xindex>
  // expected-error @below {{expected a size that depends on the extents of the function's arguments}}
  %a = memref.alloc(%m) : memref<?xf32>
  return
}

// -----

func.func @scalar(%m: index) {
  // expected-error @below {{expected a size that depends on the extents of the function's arguments}}
  %a = memref.alloc(%m) : memref<?xf32>
  return
}

// -----

// An argument of a block is none of the function.
func.func @block(%x: memref<?x64xf32>, %w: memref<8x64xf32>, %y: memref<?x8xf32>) {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  cf.br ^bb1(%x : memref<?x64xf32>)
^bb1(%z: memref<?x64xf32>):
  // expected-error @below {{expected memrefs with tokens that depend on the extents of the function's arguments}}
  wna16.kernel_run %p ins(%z, %w : memref<?x64xf32>, memref<8x64xf32>) outs(%y : memref<?x8xf32>)
      roles ["x", "weight.codes", "y"]
  return
}

// -----

func.func @plan(%p: !wna16.plan, %x: memref<?x64xf32>, %y: memref<?x8xf32>) {
  // expected-error @below {{expected a plan of wna16.kernel_plan}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32>) outs(%y : memref<?x8xf32>) roles ["x", "y"]
  return
}

// -----

func.func @tensors(%x: tensor<?x64xf32>, %w: tensor<8x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  // expected-error @below {{expected memrefs with tokens that depend on the extents of the function's arguments}}
  %0 = wna16.kernel_run %p ins(%x, %w : tensor<?x64xf32>, tensor<8x64xf32>) outs(%y : tensor<?x8xf32>)
      roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @huge(%y: memref<8xf32>) {
  // expected-error @below {{expected fewer than 2^63 bytes}}
  %a = memref.alloc() : memref<4611686018427387904x2xf32>
  return
}

// -----

func.func @huge_rows(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x8xf32>
  // expected-error @below {{expected fewer than 2^63 bytes}}
  %a = memref.alloc(%m) : memref<?x4611686018427387904xf32>
  return
}

// -----

// expected-note @below {{it is taken here}}
func.func private @workspace_size(index) -> index
// expected-error @below {{expected the name @workspace_size to be free for its workspace}}
func.func @forward(%y: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  return
}
