// Stock operations off the list of the dialect's documentation would drop,
// change or misread an encoding. What the list allows passes: encoded-flow.mlir.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics --wna16-verify-encodings

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @drop(%w: tensor<64x32xf16, #gptq>) -> tensor<64x32xf16> {
  // expected-error @+1 {{'tensor.cast' does not respect encodings, got 'tensor<64x32xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>'; take the tensor apart with wna16.disassemble}}
  %0 = tensor.cast %w : tensor<64x32xf16, #gptq> to tensor<64x32xf16>
  return %0 : tensor<64x32xf16>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @add(%w: tensor<64x32xf16>) -> tensor<64x32xf16, #gptq> {
  // expected-error @+1 {{'tensor.cast' does not respect encodings}}
  %0 = tensor.cast %w : tensor<64x32xf16> to tensor<64x32xf16, #gptq>
  return %0 : tensor<64x32xf16, #gptq>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#awq = #wna16.packed<u4b8, group = 32, layout = marlin>
func.func @change(%w: tensor<64x64xf16, #gptq>) -> tensor<64x64xf16, #awq> {
  // expected-error @+1 {{'tensor.cast' does not respect encodings}}
  %0 = tensor.cast %w : tensor<64x64xf16, #gptq> to tensor<64x64xf16, #awq>
  return %0 : tensor<64x64xf16, #awq>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @extract(%w: tensor<64x32xf16, #gptq>, %i: index) -> f16 {
  // expected-error @+1 {{'tensor.extract' does not respect encodings}}
  %0 = tensor.extract %w[%i, %i] : tensor<64x32xf16, #gptq>
  return %0 : f16
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @elementwise(%w: tensor<64x32xf16, #gptq>) -> tensor<64x32xf16, #gptq> {
  // expected-error @+1 {{'arith.addf' does not respect encodings}}
  %0 = arith.addf %w, %w : tensor<64x32xf16, #gptq>
  return %0 : tensor<64x32xf16, #gptq>
}

// -----

func.func @dense(%w: tensor<64x32xf16, #wna16.dense>) -> tensor<64x32xf16, #wna16.dense> {
  // expected-error @+1 {{'arith.negf' does not respect encodings, got 'tensor<64x32xf16, #wna16.dense>'}}
  %0 = arith.negf %w : tensor<64x32xf16, #wna16.dense>
  return %0 : tensor<64x32xf16, #wna16.dense>
}

// -----

func.func @bias(%b: tensor<2x64xf16, #wna16.bias<layout = marlin>>) -> tensor<2x64xf16> {
  // expected-error @+1 {{'tensor.cast' does not respect encodings}}
  %0 = tensor.cast %b : tensor<2x64xf16, #wna16.bias<layout = marlin>> to tensor<2x64xf16>
  return %0 : tensor<2x64xf16>
}
