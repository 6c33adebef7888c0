// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

#index = #wna16.packed<u4b8, group = 4, layout = gptq, scale = f32, act_order = index>
#sorted = #wna16.packed<u4b8, group = 4, layout = gptq, scale = f32, act_order = sorted>
#g16 = #wna16.packed<u4b8, group = 16, layout = gptq, scale = f32>
#g8 = #wna16.packed<u4b8, group = 8, layout = gptq, scale = f32>

func.func private @printMemrefF32(tensor<*xf32> {bufferization.access = "read"})
func.func private @printMemrefI32(tensor<*xi32> {bufferization.access = "read"})

// Rows 0 .. 7 have codes 0 .. 7 and groups 1 0 1 0 0 0 1 1. Sorted, they are
// rows 1 3 4 5 0 2 6 7; products do not change.
// CHECK: data =
// CHECK-NEXT: [1, 3, 4, 5, 0, 2, 6, 7]
// CHECK: data =
// CHECK-NEXT: [1981830193]
// CHECK: data =
// CHECK-NEXT: [-719]
func.func @sort_groups() {
  %codes = arith.constant dense<0x76543210> : tensor<1x1xi32>
  %scales = arith.constant dense<[[1.], [100.]]> : tensor<2x1xf32>
  %index = arith.constant dense<[1, 0, 1, 0, 0, 0, 1, 1]> : tensor<8xi32>
  %w = wna16.assemble codes = %codes, scales = %scales, group_index = %index
      : tensor<1x1xi32>, tensor<2x1xf32>, tensor<8xi32> -> tensor<8x1xf32, #index>
  %0 = wna16.sort_groups %w : tensor<8x1xf32, #index> to tensor<8x1xf32, #sorted>
  %1:3 = wna16.disassemble %0 : tensor<8x1xf32, #sorted>
  %permutation = tensor.cast %1#2 : tensor<8xi32> to tensor<*xi32>
  call @printMemrefI32(%permutation) : (tensor<*xi32>) -> ()
  %word = tensor.cast %1#0 : tensor<1x1xi32> to tensor<*xi32>
  call @printMemrefI32(%word) : (tensor<*xi32>) -> ()
  // x2 * (2 - 8) * 100 + x5 * (5 - 8) * 1, and x0 is 1/8: (0 - 8) * 100 / 8.
  %x = arith.constant dense<[[0.125, 0., 1., 0., 0., 6.333333333333333, 0., 0.]]>
      : tensor<1x8xf32>
  %init = tensor.empty() : tensor<1x1xf32>
  %y = wna16.linear x(%x : tensor<1x8xf32>) weight(%0 : tensor<8x1xf32, #sorted>)
      outs(%init : tensor<1x1xf32>) -> tensor<1x1xf32>
  %out = tensor.cast %y : tensor<1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Eight codes 9 in a short group of 16, then padding that adds nothing; finer
// groups change nothing.
// CHECK: data =
// CHECK-NEXT: [16, 0]
func.func @pad_and_regroup() {
  %codes = arith.constant dense<0x99999999> : tensor<1x1xi32>
  %scales = arith.constant dense<2.> : tensor<1x1xf32>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<1x1xi32>, tensor<1x1xf32> -> tensor<8x1xf32, #g16>
  %0 = wna16.pad %w : tensor<8x1xf32, #g16> to tensor<16x2xf32, #g16>
  %1 = wna16.regroup %0 : tensor<16x2xf32, #g16> to tensor<16x2xf32, #g8>
  %x = arith.constant dense<1.> : tensor<1x16xf32>
  %init = tensor.empty() : tensor<1x2xf32>
  %y = wna16.linear x(%x : tensor<1x16xf32>) weight(%1 : tensor<16x2xf32, #g8>)
      outs(%init : tensor<1x2xf32>) -> tensor<1x2xf32>
  %out = tensor.cast %y : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Marlin's order of a bias, 24 outputs padded to 32: n = 0 1 8 9 16 17 24 25,
// then 2 3 10 11 ..
// CHECK: data =
// CHECK-NEXT: [0, 1, 8, 9, 16, 17, 0, 0, 2, 3, 10, 11, 18, 19, 0, 0, 4, 5, 12, 13, 20, 21, 0, 0, 6, 7, 14, 15, 22, 23, 0, 0]
func.func @convert_bias() {
  %b = arith.constant dense<[[0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.,
      13., 14., 15., 16., 17., 18., 19., 20., 21., 22., 23.]]> : tensor<1x24xf32>
  %0 = wna16.convert_bias %b : tensor<1x24xf32>
      to tensor<1x32xf32, #wna16.bias<layout = marlin>>
  %1 = wna16.disassemble %0 : tensor<1x32xf32, #wna16.bias<layout = marlin>>
  %out = tensor.cast %1 : tensor<1x32xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  call @sort_groups() : () -> ()
  call @pad_and_regroup() : () -> ()
  call @convert_bias() : () -> ()
  return
}
