// RUN: wna16-opt %s -wna16-disassemble -split-input-file -verify-diagnostics

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// expected-error @below {{expected a target: the option target=cpu, target=cuda:sm_90 or target=xpu, the module attribute wna16.target, or that entry of a dlti device}}
module {
  func.func @no_target(%w: tensor<2x64x64xf16, #gptq>) -> tensor<2x128x64xf16, #gptq> {
    %0 = wna16.pad %w : tensor<2x64x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
    return %0 : tensor<2x128x64xf16, #gptq>
  }
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @axis(%w: tensor<2x64x64xf16, #gptq>, %i: index) -> index {
  // expected-error @+2 {{expected a constant axis of the encoded tensor, below 3}}
  // expected-error @+1 {{failed to legalize operation 'tensor.dim'}}
  %0 = tensor.dim %w, %i : tensor<2x64x64xf16, #gptq>
  return %0 : index
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @cast(%w: tensor<2x64x64xf16, #gptq>) -> tensor<2x64x64xf16> {
  // expected-error @below {{failed to legalize operation 'tensor.cast'}}
  %0 = tensor.cast %w : tensor<2x64x64xf16, #gptq> to tensor<2x64x64xf16>
  return %0 : tensor<2x64x64xf16>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @unselected(%x: tensor<?x64xf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                        %w13: tensor<2x64x2x64xf16, #gptq>, %w2: tensor<2x64x64xf16, #gptq>) {
    // expected-error @+2 {{expected a backend, chosen by wna16-select-backend, got ''}}
    // expected-error @+1 {{failed to legalize operation 'wna16.fused_experts'}}
    wna16.fused_experts silu x(%x : tensor<?x64xf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<2x64x2x64xf16, #gptq>) w2(%w2 : tensor<2x64x64xf16, #gptq>)
        outs(%x : tensor<?x64xf16>) -> tensor<?x64xf16>
    return
  }
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @emulated(%x: tensor<?x64xf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                      %w13: tensor<2x64x2x64xf16, #gptq>, %w2: tensor<2x64x64xf16, #gptq>) {
    // expected-error @+2 {{expected wna16-emulate before: backend emulation has no runtime kernel}}
    // expected-error @+1 {{failed to legalize operation 'wna16.fused_experts'}}
    wna16.fused_experts silu x(%x : tensor<?x64xf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<2x64x2x64xf16, #gptq>) w2(%w2 : tensor<2x64x64xf16, #gptq>)
        outs(%x : tensor<?x64xf16>) {backend = "emulation"} -> tensor<?x64xf16>
    return
  }
}
