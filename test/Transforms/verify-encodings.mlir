// RUN: wna16-opt %s -wna16-verify-encodings -split-input-file -verify-diagnostics -allow-unregistered-dialect

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
!w = tensor<2x64x64xf16, #gptq>

func.func private @external(!w) -> !w

func.func @fine(%c: i1, %n: index, %a: !w, %b: !w) -> !w {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = arith.select %c, %a, %b : !w
  %1 = scf.if %c -> !w {
    scf.yield %0 : !w
  } else {
    scf.yield %b : !w
  }
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %1) -> (!w) {
    %r = func.call @external(%v) : (!w) -> !w
    scf.yield %r : !w
  }
  %d = tensor.dim %2, %c1 : !w
  %e = tensor.empty() : !w
  cf.cond_br %c, ^bb1(%2 : !w), ^bb2
^bb1(%3: !w):
  return %3 : !w
^bb2:
  cf.br ^bb1(%e : !w)
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @dropped(%w: tensor<2x64x64xf16, #gptq>) -> tensor<2x64x64xf16> {
  // expected-error @below {{'tensor.cast' does not respect encodings, got 'tensor<2x64x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>'; take the tensor apart with wna16.disassemble}}
  %0 = tensor.cast %w : tensor<2x64x64xf16, #gptq> to tensor<2x64x64xf16>
  return %0 : tensor<2x64x64xf16>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @gained(%w: tensor<2x64x64xf16>) -> tensor<2x64x64xf16, #gptq> {
  // expected-error @below {{'tensor.cast' does not respect encodings}}
  %0 = tensor.cast %w : tensor<2x64x64xf16> to tensor<2x64x64xf16, #gptq>
  return %0 : tensor<2x64x64xf16, #gptq>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @extracted(%w: tensor<2x64x64xf16, #gptq>, %i: index) -> f16 {
  // expected-error @below {{'tensor.extract' does not respect encodings}}
  %0 = tensor.extract %w[%i, %i, %i] : tensor<2x64x64xf16, #gptq>
  return %0 : f16
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @added(%w: tensor<2x64x64xf16, #gptq>) -> tensor<2x64x64xf16, #gptq> {
  // expected-error @below {{'arith.addf' does not respect encodings}}
  %0 = arith.addf %w, %w : tensor<2x64x64xf16, #gptq>
  return %0 : tensor<2x64x64xf16, #gptq>
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @unknown(%w: tensor<2x64x64xf16, #gptq>) {
  // expected-error @below {{'other.use' does not respect encodings}}
  "other.use"(%w) : (tensor<2x64x64xf16, #gptq>) -> ()
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @switch(%i: i32, %w: tensor<2x64x64xf16, #gptq>) -> tensor<2x64x64xf16, #gptq> {
  // expected-error @below {{'cf.switch' does not respect encodings}}
  cf.switch %i : i32, [
    default: ^bb1(%w : tensor<2x64x64xf16, #gptq>)
  ]
^bb1(%0: tensor<2x64x64xf16, #gptq>):
  return %0 : tensor<2x64x64xf16, #gptq>
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
