// RUN: wna16-opt %s -wna16-verify-disassembled -split-input-file -verify-diagnostics

// Kernels and other dialects are what is left.
func.func @fine(%x: tensor<?x64xf32>, %w: tensor<8x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  %0 = wna16.kernel_run %p ins(%x, %w : tensor<?x64xf32>, tensor<8x64xf32>) outs(%y : tensor<?x8xf32>)
      roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @encoded(%q: tensor<8x64xf32>) {
  // expected-error @below {{expected no encoded tensor after disassembly, got 'tensor<64x8xf32, #wna16.dense>'}}
  %0 = wna16.assemble codes = %q : tensor<8x64xf32> -> tensor<64x8xf32, #wna16.dense>
  return
}

// -----

func.func @operation(%l: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @below {{expected 'wna16.route' to be a kernel or linalg after disassembly}}
  %0:2 = wna16.route softmax logits(%l : tensor<?x8xf32>) outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

module {
  module @inner {
    func.func @nested(%x: tensor<?x64xf32>, %w: tensor<8x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
      // expected-error @below {{expected layers and kernels in functions of the outermost module; lower a nested one on its own}}
      %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
      %0 = wna16.kernel_run %p ins(%x, %w : tensor<?x64xf32>, tensor<8x64xf32>) outs(%y : tensor<?x8xf32>)
          roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
      return %0 : tensor<?x8xf32>
    }
  }
}
