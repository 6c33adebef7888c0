// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

// Case B43: activations of gate g = x0 and up l = x1, with one expert whose
// output is h. Tokens: (1, 2), (-1, 3) and (9, -9).

!w13 = tensor<1x2x2x1xf32, #wna16.dense>
!w2 = tensor<1x1x2xf32, #wna16.dense>

func.func private @printMemrefF32(tensor<*xf32>)

func.func @show(%y: tensor<3x2xf32>) {
  %h = tensor.extract_slice %y[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3xf32>
  %0 = tensor.empty() : tensor<3xf32>
  %1 = linalg.copy ins(%h : tensor<3xf32>) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
  %out = tensor.cast %1 : tensor<3xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[1., 2.], [-1., 3.], [9., -9.]]> : tensor<3x2xf32>
  %w = arith.constant dense<1.> : tensor<3x1xf32>
  %ids = arith.constant dense<0> : tensor<3x1xi32>
  %s13 = arith.constant dense<[[[1., 0.], [0., 1.]]]> : tensor<1x2x2xf32>
  %w13 = wna16.assemble codes = %s13 : tensor<1x2x2xf32> -> !w13
  %s2 = arith.constant dense<[[[1.], [0.]]]> : tensor<1x2x1xf32>
  %w2 = wna16.assemble codes = %s2 : tensor<1x2x1xf32> -> !w2
  %init = tensor.empty() : tensor<3x2xf32>

// Expected values come from the formulas in double precision.

  // CHECK: data =
  // CHECK-NEXT: [1.46212, -0.806824, -80.99]
  %0 = wna16.fused_experts silu x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  call @show(%0) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [1.46212, -0.806824, -48.9554]
  %1 = wna16.fused_experts silu x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) {limit = 7.0 : f64} -> tensor<3x2xf32>
  call @show(%1) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [1.68269, -0.475966, -81]
  %2 = wna16.fused_experts gelu x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  call @show(%2) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [1.68238, -0.476424, -81]
  %3 = wna16.fused_experts gelu_tanh x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  call @show(%3) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [2, 0, -729]
  %4 = wna16.fused_experts relu2 x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  call @show(%4) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [2.53739, -0.616817, -41.9997]
  %5 = wna16.fused_experts swigluoai x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) {alpha = 1.702 : f64, beta = 1.0 : f64, limit = 7.0 : f64} -> tensor<3x2xf32>
  call @show(%5) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [1.46212, -0.806824, -80.99]
  %6 = wna16.fused_experts swigluoai x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) -> tensor<3x2xf32>
  call @show(%6) : (tensor<3x2xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [1.46212, -0.806824, -49]
  %7 = wna16.fused_experts swiglustep x(%x : tensor<3x2xf32>)
      routing(%w, %ids : tensor<3x1xf32>, tensor<3x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<3x2xf32>) {limit = 7.0 : f64} -> tensor<3x2xf32>
  call @show(%7) : (tensor<3x2xf32>) -> ()
  return
}
