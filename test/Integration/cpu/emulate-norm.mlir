// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

func.func private @printMemrefF32(tensor<*xf32>)

func.func @norm(%x: tensor<?x4xf32>, %w: tensor<4xbf16>, %a: tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %init = tensor.empty(%m) : tensor<?x4xf32>
  %y = wna16.rms_norm x(%x : tensor<?x4xf32>) weight(%w : tensor<4xbf16>)
      outs(%init : tensor<?x4xf32>) {epsilon = 0.25} -> tensor<?x4xf32>
  %z = wna16.rms_norm x(%x : tensor<?x4xf32>) weight(%w : tensor<4xbf16>) add(%a : tensor<?x4xf32>)
      outs(%init : tensor<?x4xf32>) {epsilon = 2.25, scale = 8.0} -> tensor<?x4xf32>
  %y0 = tensor.cast %y : tensor<?x4xf32> to tensor<*xf32>
  call @printMemrefF32(%y0) : (tensor<*xf32>) -> ()
  %z0 = tensor.cast %z : tensor<?x4xf32> to tensor<*xf32>
  call @printMemrefF32(%z0) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  // Means of squares: 6 and 0, over roots of 6.25 and 0.25; of 8.25 and 2.25.
  %x = arith.constant dense<[[1., -3., 3., 2.23606797749979], [0., 0., 0., 0.]]> : tensor<2x4xf32>
  %w = arith.constant dense<[1., 2., 0.5, -1.]> : tensor<4xbf16>
  %a = arith.constant dense<[[0., 1., 0., 0.], [4., 3., 2., 1.]]> : tensor<2x4xf32>
  %xs = tensor.cast %x : tensor<2x4xf32> to tensor<?x4xf32>
  %as = tensor.cast %a : tensor<2x4xf32> to tensor<?x4xf32>
  // CHECK: data =
  // CHECK-NEXT: [0.4, -2.4, 0.6, -0.894427]
  // CHECK-NEXT: [0, 0, 0, -0]
  // CHECK: data =
  // CHECK-NEXT: [2.78524, -15.7115, 4.17786, -6.22799]
  // CHECK-NEXT: [4, 3, 2, 1]
  call @norm(%xs, %w, %as) : (tensor<?x4xf32>, tensor<4xbf16>, tensor<?x4xf32>) -> ()
  return
}
