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

// -----

// The caller's buffer is [M, K], the result [K, M].
// expected-error @below {{expected axis 0 of result 0 ('tensor<?x?xf32>') to be that axis of an argument of rank 2, since the caller allocates the result; make the extent static}}
func.func @transposed(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %k = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%k, %m) : tensor<?x?xf32>
  %r = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
  return %r : tensor<?x?xf32>
}

// -----

// expected-error @below {{expected axis 0 of result 1 ('tensor<?x8xf32>') to be that axis of an argument of rank 2}}
func.func @computed(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant 7.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %n = arith.addi %m, %c64 : index
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = linalg.fill ins(%z : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %x, %r : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// expected-error @below {{expected axis 0 of result 0 ('tensor<?xf32>') to be that axis of an argument of rank 1}}
func.func @other_rank(%x: tensor<?x8xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

func.func private @again(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @again(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// expected-error @below {{expected axis 0 of result 0 ('tensor<?xf32>')}}
func.func @endless(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @again(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-error @below {{expected axis 0 of result 0 ('tensor<?xf32>')}}
func.func @branches(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = scf.if %c -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// -----

// A loop that grows what it carries.
// expected-error @below {{expected axis 0 of result 0 ('tensor<?xf32>')}}
func.func @grows(%n: index, %x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %m = tensor.dim %a, %c0 : tensor<?xf32>
    %more = arith.addi %m, %c1 : index
    %e = tensor.empty(%more) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
