// RUN: wna16-opt %s -wna16-hoist-prepare -split-input-file -verify-diagnostics

// expected-error @below {{expected a function with weights not to be called: its signature changes}}
func.func @forward() -> tensor<4xf32> {
  %0 = wna16.parameter "a" : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @caller() -> tensor<4xf32> {
  %0 = call @forward() : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#marlin = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>
// expected-error @below {{expected the name @prepare_bias2 to be free for its preparation}}
func.func @forward(%x: tensor<?x64xbf16>, %w: tensor<?x1xf32>, %i: tensor<?x1xi32>, %w13: tensor<2x64x2x64xbf16, #marlin>, %w2: tensor<2x64x64xbf16, #marlin>) -> tensor<?x64xbf16> {
  %b = wna16.parameter "bias" : tensor<2x64xbf16>
  %0 = wna16.convert_bias %b : tensor<2x64xbf16> to tensor<2x64xbf16, #wna16.bias<layout = marlin>>
  %y = wna16.fused_experts silu x(%x : tensor<?x64xbf16>) routing(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13 : tensor<2x64x2x64xbf16, #marlin>) w2(%w2 : tensor<2x64x64xbf16, #marlin>)
      bias2(%0 : tensor<2x64xbf16, #wna16.bias<layout = marlin>>) outs(%x : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
// expected-note @below {{it is taken here}}
func.func @prepare_bias2() {
  return
}

// -----

// A load that is no whole tensor stays, and nothing else is touched.
ml_program.global private @w(#ml_program.extern<tensor<?xf32>>) : tensor<?xf32>
func.func @dynamic() -> tensor<?xf32> {
  %0 = ml_program.global_load_const @w : tensor<?xf32>
  return %0 : tensor<?xf32>
}
