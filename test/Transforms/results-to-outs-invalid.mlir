// RUN: wna16-opt %s -wna16-results-to-outs -split-input-file -verify-diagnostics

// expected-error @below {{expected a public function of one block; inline or structure its control flow}}
func.func @blocks(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  cf.cond_br %c, ^bb1(%x : tensor<4xf32>), ^bb1(%y : tensor<4xf32>)
^bb1(%0: tensor<4xf32>):
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{expected a public function with tensor results not to be called: its signature changes}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
// expected-error @below {{expected wna16-disassemble before, got the result}}
func.func @encoded(%x: tensor<64x64xf16, #gptq>) -> tensor<64x64xf16, #gptq> {
  return %x : tensor<64x64xf16, #gptq>
}
