// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

#zeros = #wna16.packed<u4, group = 8, layout = gptq, scale = f32, zeros = plain>
#v1 = #wna16.packed<u4, group = 8, layout = gptq, scale = f32, zeros = minus_one>
#symmetric = #wna16.packed<s4, group = 4, layout = xpu, scale = f32>

func.func private @printMemrefF32(tensor<*xf32> {bufferization.access = "read"})
func.func private @printMemrefI32(tensor<*xi32> {bufferization.access = "read"})

// Case B22: ranges include 0, so that the scale of these is 15 / 15 and not
// 4 / 15; 10.5 and 11.5 are ties and go to the even code.
// CHECK: data =
// CHECK-NEXT: [1]
// CHECK: data =
// CHECK-NEXT: [0]
// CHECK: data =
// CHECK-NEXT: [10, 11, 12, 12, 12, 13, 14, 15]
func.func @all_positive() {
  %values = arith.constant dense<[[10.5, 11., 11.5, 12., 12.5, 13., 13.5, 15.]]>
      : tensor<1x8xf32>
  %w = wna16.assemble codes = %values : tensor<1x8xf32> -> tensor<8x1xf32, #wna16.dense>
  %0 = wna16.quantize %w : tensor<8x1xf32, #wna16.dense> to tensor<8x1xf32, #zeros>
  %1:3 = wna16.disassemble %0 : tensor<8x1xf32, #zeros>
  %scale = tensor.cast %1#1 : tensor<1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%scale) : (tensor<*xf32>) -> ()
  %zero = tensor.cast %1#2 : tensor<1x1xi32> to tensor<*xi32>
  call @printMemrefI32(%zero) : (tensor<*xi32>) -> ()
  %2 = wna16.dequantize %0 : tensor<8x1xf32, #zeros> to tensor<8x1xf32, #wna16.dense>
  %3 = wna16.disassemble %2 : tensor<8x1xf32, #wna16.dense>
  %out = tensor.cast %3 : tensor<1x8xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// z = 5 with scale 2, stored as 4.
// CHECK: data =
// CHECK-NEXT: [4]
// CHECK: data =
// CHECK-NEXT: [-10, 20, 0, 2, 4, -2, 18, -8]
func.func @both_signs() {
  %values = arith.constant dense<[[-10., 20., 0., 2.5, 3.5, -2., 18., -8.]]>
      : tensor<1x8xf32>
  %w = wna16.assemble codes = %values : tensor<1x8xf32> -> tensor<8x1xf32, #wna16.dense>
  %0 = wna16.quantize %w : tensor<8x1xf32, #wna16.dense> to tensor<8x1xf32, #v1>
  %1:3 = wna16.disassemble %0 : tensor<8x1xf32, #v1>
  %zero = tensor.cast %1#2 : tensor<1x1xi32> to tensor<*xi32>
  call @printMemrefI32(%zero) : (tensor<*xi32>) -> ()
  %2 = wna16.dequantize %0 : tensor<8x1xf32, #v1> to tensor<8x1xf32, #wna16.dense>
  %3 = wna16.disassemble %2 : tensor<8x1xf32, #wna16.dense>
  %out = tensor.cast %3 : tensor<1x8xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Two groups: -8 .. 7 exactly, and nothing but zeros.
// CHECK: data =
// CHECK-NEXT: [-8, 7, 3, -1, 0, 0, 0, 0]
func.func @two_groups() {
  %values = arith.constant dense<[[-8., 7., 3., -1., 0., 0., 0., 0.]]>
      : tensor<1x8xf32>
  %w = wna16.assemble codes = %values : tensor<1x8xf32> -> tensor<8x1xf32, #wna16.dense>
  %0 = wna16.quantize %w : tensor<8x1xf32, #wna16.dense> to tensor<8x1xf32, #symmetric>
  %1 = wna16.dequantize %0 : tensor<8x1xf32, #symmetric> to tensor<8x1xf32, #wna16.dense>
  %2 = wna16.disassemble %1 : tensor<8x1xf32, #wna16.dense>
  %out = tensor.cast %2 : tensor<1x8xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  call @all_positive() : () -> ()
  call @both_signs() : () -> ()
  call @two_groups() : () -> ()
  return
}
