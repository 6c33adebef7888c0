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

// expected-error @below {{expected the name @prepare to be free for its preparation}}
func.func @forward() -> tensor<4xf32> {
  %0 = wna16.parameter "a" : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-note @below {{it is taken here}}
func.func @prepare() {
  return
}

// -----

// A load that is no whole tensor stays, and nothing else is touched.
ml_program.global private @w(#ml_program.extern<tensor<?xf32>>) : tensor<?xf32>
func.func @dynamic() -> tensor<?xf32> {
  %0 = ml_program.global_load_const @w : tensor<?xf32>
  return %0 : tensor<?xf32>
}
