// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

#gptq = #wna16.packed<u4b8, group = 8, layout = gptq, scale = f32>
#gptq8 = #wna16.packed<u8b128, group = 4, layout = gptq, scale = f32>
#awq = #wna16.packed<u4, group = 8, layout = awq, scale = f32, zeros = plain>
#v1 = #wna16.packed<u4, group = 8, layout = gptq, scale = f32, zeros = minus_one>
#index = #wna16.packed<u4b8, group = 4, layout = gptq, scale = f32, act_order = index>

func.func private @printMemrefF32(tensor<*xf32>)

// Case B85: the byte 0x9F, low nibble first, is 15 and 9, and with zero 8 it is
// 7 and 1.
// CHECK: data =
// CHECK-NEXT: [7, -16]
// CHECK-NEXT: [1, -16]
func.func @unsigned_nibbles() {
  %x = arith.constant dense<[[1., 0., 0., 0., 0., 0., 0., 0.],
                             [0., 1., 0., 0., 0., 0., 0., 0.]]> : tensor<2x8xf32>
  %codes = arith.constant dense<[[0x9F, 0]]> : tensor<1x2xi32>
  %scales = arith.constant dense<[[1., 2.]]> : tensor<1x2xf32>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<1x2xi32>, tensor<1x2xf32> -> tensor<8x2xf32, #gptq>
  %init = tensor.empty() : tensor<2x2xf32>
  %y = wna16.linear x(%x : tensor<2x8xf32>) weight(%w : tensor<8x2xf32, #gptq>)
      outs(%init : tensor<2x2xf32>) -> tensor<2x2xf32>
  %out = tensor.cast %y : tensor<2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// 8 bits, two groups: (0xFF - 128) * 0.5, (0x80 - 128) * 0.5, then (0 - 128) * 2
// in the second group; the bias is added once.
// CHECK: data =
// CHECK-NEXT: [64.5]
// CHECK-NEXT: [1]
// CHECK-NEXT: [-255]
func.func @bytes() {
  %x = arith.constant dense<[[1., 0., 0., 0., 0., 0., 0., 0.],
                             [0., 1., 0., 0., 0., 0., 0., 0.],
                             [0., 0., 0., 0., 1., 0., 0., 0.]]> : tensor<3x8xf32>
  %codes = arith.constant dense<[[0x80FF], [0]]> : tensor<2x1xi32>
  %scales = arith.constant dense<[[0.5], [2.]]> : tensor<2x1xf32>
  %bias = arith.constant dense<[1.]> : tensor<1xf32>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<2x1xi32>, tensor<2x1xf32> -> tensor<8x1xf32, #gptq8>
  %init = tensor.empty() : tensor<3x1xf32>
  %y = wna16.linear x(%x : tensor<3x8xf32>) weight(%w : tensor<8x1xf32, #gptq8>)
      bias(%bias : tensor<1xf32>)
      outs(%init : tensor<3x1xf32>) -> tensor<3x1xf32>
  %out = tensor.cast %y : tensor<3x1xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// AWQ: field p of a word holds output [0, 2, 4, 6, 1, 3, 5, 7][p]. The codes of
// row 0 are 0 .. 7 in the order of outputs, its zero points are all 2.
// CHECK: data =
// CHECK-NEXT: [-2, -1, 0, 1, 2, 3, 4, 5]
func.func @awq() {
  %x = arith.constant dense<[[1., 0., 0., 0., 0., 0., 0., 0.]]> : tensor<1x8xf32>
  %codes = arith.constant dense<[[0x75316420], [0], [0], [0], [0], [0], [0], [0]]>
      : tensor<8x1xi32>
  %scales = arith.constant dense<1.> : tensor<1x8xf32>
  %zeros = arith.constant dense<0x22222222> : tensor<1x1xi32>
  %w = wna16.assemble codes = %codes, scales = %scales, zeros = %zeros
      : tensor<8x1xi32>, tensor<1x8xf32>, tensor<1x1xi32>
      -> tensor<8x8xf32, #awq>
  %init = tensor.empty() : tensor<1x8xf32>
  %y = wna16.linear x(%x : tensor<1x8xf32>) weight(%w : tensor<8x8xf32, #awq>)
      outs(%init : tensor<1x8xf32>) -> tensor<1x8xf32>
  %out = tensor.cast %y : tensor<1x8xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Case B16: GPTQ v1 stores z - 1; a stored 15 is zero point 0, and the
// neighbouring field does not notice.
// CHECK: data =
// CHECK-NEXT: [5, 4, 5, 5, 5, 5, 5, 5]
func.func @zeros_minus_one() {
  %x = arith.constant dense<[[1., 0., 0., 0., 0., 0., 0., 0.]]> : tensor<1x8xf32>
  %codes = arith.constant dense<5> : tensor<1x8xi32>
  %scales = arith.constant dense<1.> : tensor<1x8xf32>
  // z - 1: 15 for output 0, 0 for output 1, 15 for all others.
  %zeros = arith.constant dense<0xFFFFFF0F> : tensor<1x1xi32>
  %w = wna16.assemble codes = %codes, scales = %scales, zeros = %zeros
      : tensor<1x8xi32>, tensor<1x8xf32>, tensor<1x1xi32>
      -> tensor<8x8xf32, #v1>
  %init = tensor.empty() : tensor<1x8xf32>
  %y = wna16.linear x(%x : tensor<1x8xf32>) weight(%w : tensor<8x8xf32, #v1>)
      outs(%init : tensor<1x8xf32>) -> tensor<1x8xf32>
  %out = tensor.cast %y : tensor<1x8xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Act-order: rows 0 .. 7 belong to groups 1 0 1 0 0 0 1 1; all codes are 9.
// CHECK: data =
// CHECK-NEXT: [100]
// CHECK-NEXT: [1]
func.func @act_order() {
  %x = arith.constant dense<[[1., 0., 0., 0., 0., 0., 0., 0.],
                             [0., 1., 0., 0., 0., 0., 0., 0.]]> : tensor<2x8xf32>
  %codes = arith.constant dense<0x99999999> : tensor<1x1xi32>
  %scales = arith.constant dense<[[1.], [100.]]> : tensor<2x1xf32>
  %index = arith.constant dense<[1, 0, 1, 0, 0, 0, 1, 1]> : tensor<8xi32>
  %w = wna16.assemble codes = %codes, scales = %scales, group_index = %index
      : tensor<1x1xi32>, tensor<2x1xf32>, tensor<8xi32>
      -> tensor<8x1xf32, #index>
  %init = tensor.empty() : tensor<2x1xf32>
  %y = wna16.linear x(%x : tensor<2x8xf32>) weight(%w : tensor<8x1xf32, #index>)
      outs(%init : tensor<2x1xf32>) -> tensor<2x1xf32>
  %out = tensor.cast %y : tensor<2x1xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Dense weights are [output, input]; bf16 in, one rounding to bf16 out:
// 1 + 2^-8 is a tie and goes to the even 1, 3 + 3 * 2^-8 goes up to 3 + 2^-6.
// CHECK: data =
// CHECK-NEXT: [1, 3.01562]
func.func @dense_rounds_once() {
  %x = arith.constant dense<[[1., 0.00390625]]> : tensor<1x2xbf16>
  %stored = arith.constant dense<[[1., 1.], [3., 3.]]> : tensor<2x2xbf16>
  %w = wna16.assemble codes = %stored
      : tensor<2x2xbf16> -> tensor<2x2xbf16, #wna16.dense>
  %init = tensor.empty() : tensor<1x2xbf16>
  %y = wna16.linear x(%x : tensor<1x2xbf16>)
      weight(%w : tensor<2x2xbf16, #wna16.dense>)
      outs(%init : tensor<1x2xbf16>) -> tensor<1x2xbf16>
  %wide = arith.extf %y : tensor<1x2xbf16> to tensor<1x2xf32>
  %out = tensor.cast %wide : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  call @unsigned_nibbles() : () -> ()
  call @bytes() : () -> ()
  call @awq() : () -> ()
  call @zeros_minus_one() : () -> ()
  call @act_order() : () -> ()
  call @dense_rounds_once() : () -> ()
  return
}
