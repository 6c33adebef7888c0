// RUN: wna16-opt %s -wna16-lower-to-runtime -split-input-file -verify-diagnostics

func.func @role(%x: memref<?x64xf32>, %y: memref<?x8xf32>) {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  // expected-error @below {{expected a role of its plan, got 'z'}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32>) outs(%y : memref<?x8xf32>) roles ["z", "y"]
  return
}

// -----

func.func @tensors(%x: tensor<?x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  // expected-error @below {{expected memrefs; bufferize first, got x : 'tensor<?x64xf32>'}}
  %0 = wna16.kernel_run %p ins(%x : tensor<?x64xf32>) outs(%y : tensor<?x8xf32>) roles ["x", "y"] -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @strided(%x: memref<?x64xf32, strided<[128, 1]>>, %y: memref<?x8xf32>) {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  // expected-error @below {{expected memrefs with identity layout and elements of the runtime}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32, strided<[128, 1]>>) outs(%y : memref<?x8xf32>) roles ["x", "y"]
  return
}

// -----

func.func @foreign_plan(%p: !wna16.plan, %x: memref<?x64xf32>, %y: memref<?x8xf32>) {
  // expected-error @below {{expected a plan of wna16.kernel_plan}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32>) outs(%y : memref<?x8xf32>) roles ["x", "y"]
  return
}

// -----

func.func private @take(!wna16.plan)
func.func @escape() {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  // expected-error @below {{cannot carry a !wna16.plan to the runtime}}
  call @take(%p) : (!wna16.plan) -> ()
  return
}
