// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

#gptq = #wna16.packed<u4b8, group = -1, layout = gptq>
#awq = #wna16.packed<u4, group = 8, layout = awq, zeros = plain>
!w13 = tensor<2x2x2x1xf32, #wna16.dense>
!w2 = tensor<2x1x2xf32, #wna16.dense>

func.func private @printMemrefF32(tensor<*xf32>)

func.func @show(%y: tensor<?x2xf32>) {
  %out = tensor.cast %y : tensor<?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Stored output axis first: the gate of expert 0 is x0, its up x1; of expert 1
// 2 x0 and 3 x1. Outputs are h and 10 h, 2 h and 20 h.
func.func @weights() -> (!w13, !w2) {
  %s13 = arith.constant dense<[[[1., 0.], [0., 1.]], [[2., 0.], [0., 3.]]]>
      : tensor<2x2x2xf32>
  %w13 = wna16.assemble codes = %s13 : tensor<2x2x2xf32> -> !w13
  %s2 = arith.constant dense<[[[1.], [10.]], [[2.], [20.]]]> : tensor<2x2x1xf32>
  %w2 = wna16.assemble codes = %s2 : tensor<2x2x1xf32> -> !w2
  return %w13, %w2 : !w13, !w2
}

// With x = (1, 2): gate 1 and up 2 make h = 2 in expert 0, and 24 in expert 1.
func.func @sum_of_slots(%x: tensor<?x2xf32>, %w: tensor<?x2xf32>,
                        %ids: tensor<?x2xi32>, %init: tensor<?x2xf32>) {
  %w13, %w2 = call @weights() : () -> (!w13, !w2)
  %y = wna16.fused_experts relu2 x(%x : tensor<?x2xf32>)
      routing(%w, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  call @show(%y) : (tensor<?x2xf32>) -> ()
  return
}

func.func @mapped(%x: tensor<?x2xf32>, %w: tensor<?x2xf32>,
                  %ids: tensor<?x2xi32>, %init: tensor<?x2xf32>) {
  %w13, %w2 = call @weights() : () -> (!w13, !w2)
  %map = arith.constant dense<[-1, 0, 1]> : tensor<3xi32>
  %y = wna16.fused_experts relu2 x(%x : tensor<?x2xf32>)
      routing(%w, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2) expert_map(%map : tensor<3xi32>)
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  call @show(%y) : (tensor<?x2xf32>) -> ()
  return
}

func.func @biased(%x: tensor<?x2xf32>, %w: tensor<?x2xf32>,
                  %ids: tensor<?x2xi32>, %init: tensor<?x2xf32>) {
  %w13, %w2 = call @weights() : () -> (!w13, !w2)
  %b13 = arith.constant dense<[[[1.], [1.]], [[0.], [0.]]]> : tensor<2x2x1xf16>
  %b2 = arith.constant dense<[[100., 200.], [0., 0.]]> : tensor<2x2xf32>
  %y = wna16.fused_experts relu2 x(%x : tensor<?x2xf32>)
      routing(%w, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      bias13(%b13 : tensor<2x2x1xf16>) bias2(%b2 : tensor<2x2xf32>)
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  call @show(%y) : (tensor<?x2xf32>) -> ()
  return
}

// Case B67: the weight on the output, then on the input.
func.func @weight_on_input(%x: tensor<?x2xf32>, %init: tensor<?x2xf32>) {
  %w13, %w2 = call @weights() : () -> (!w13, !w2)
  %w = arith.constant dense<2.> : tensor<1x1xf32>
  %wd = tensor.cast %w : tensor<1x1xf32> to tensor<?x1xf32>
  %id = arith.constant dense<0> : tensor<1x1xi32>
  %idd = tensor.cast %id : tensor<1x1xi32> to tensor<?x1xi32>
  %0 = wna16.fused_experts relu2 x(%x : tensor<?x2xf32>)
      routing(%wd, %idd : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  call @show(%0) : (tensor<?x2xf32>) -> ()
  %1 = wna16.fused_experts relu2 x(%x : tensor<?x2xf32>)
      routing(%wd, %idd : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<?x2xf32>) {router_weight_on_input} -> tensor<?x2xf32>
  call @show(%1) : (tensor<?x2xf32>) -> ()
  return
}

func.func @batched() {
  %w13, %w2 = call @weights() : () -> (!w13, !w2)
  %x = arith.constant dense<[[[1., 2.], [0x7FC00000, 0x7FC00000]], [[1., 2.], [1., 1.]]]>
      : tensor<2x2x2xf32>
  %counts = arith.constant dense<[1, 2]> : tensor<2xi32>
  %nan = arith.constant 0x7FC00000 : f32
  %init = tensor.splat %nan : tensor<2x2x2xf32>
  %y = wna16.fused_experts relu2 x(%x : tensor<2x2x2xf32>)
      routing(%counts : tensor<2xi32>) w13(%w13 : !w13) w2(%w2 : !w2)
      outs(%init : tensor<2x2x2xf32>) {batched} -> tensor<2x2x2xf32>
  %out = tensor.cast %y : tensor<2x2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

// Packed weights, each in its own scheme, with one half, an input of 8 for a
// hidden size of 2, and 16-bit x. Every weight of w13 is 9 - 8, of w2 (9 - 7) / 2.
func.func @packed_and_padded() {
  %x = arith.constant dense<[[1., 2.]]> : tensor<1x2xbf16>
  %w = arith.constant dense<1.> : tensor<1x1xf32>
  %ids = arith.constant dense<0> : tensor<1x1xi32>
  %c13 = arith.constant dense<0x99999999> : tensor<1x1x8xi32>
  %s13 = arith.constant dense<1.> : tensor<1x1x8xf16>
  %w13 = wna16.assemble codes = %c13, scales = %s13
      : tensor<1x1x8xi32>, tensor<1x1x8xf16> -> tensor<1x8x1x8xbf16, #gptq>
  %c2 = arith.constant dense<0x99999999> : tensor<1x8x1xi32>
  %s2 = arith.constant dense<0.5> : tensor<1x1x8xf16>
  %z2 = arith.constant dense<0x77777777> : tensor<1x1x1xi32>
  %w2 = wna16.assemble codes = %c2, scales = %s2, zeros = %z2
      : tensor<1x8x1xi32>, tensor<1x1x8xf16>, tensor<1x1x1xi32>
      -> tensor<1x8x8xbf16, #awq>
  %init = tensor.empty() : tensor<1x2xf32>
  %y = wna16.fused_experts relu2 x(%x : tensor<1x2xbf16>)
      routing(%w, %ids : tensor<1x1xf32>, tensor<1x1xi32>)
      w13(%w13 : tensor<1x8x1x8xbf16, #gptq>) w2(%w2 : tensor<1x8x8xbf16, #awq>)
      outs(%init : tensor<1x2xf32>) -> tensor<1x2xf32>
  %out = tensor.cast %y : tensor<1x2xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x1 = arith.constant dense<[[1., 2.], [1., 2.], [1., 2.], [1., 2.]]> : tensor<4x2xf32>
  %x = tensor.cast %x1 : tensor<4x2xf32> to tensor<?x2xf32>
  %w1 = arith.constant dense<[[0.5, 0.25], [0.5, 0.25], [0.25, 0.75], [0.5, 0.5]]>
      : tensor<4x2xf32>
  %w = tensor.cast %w1 : tensor<4x2xf32> to tensor<?x2xf32>
  // Both; -1 adds nothing; case B68: one expert twice; ids out of range add
  // nothing.
  %i1 = arith.constant dense<[[0, 1], [0, -1], [1, 1], [2, -2147483648]]> : tensor<4x2xi32>
  %ids = tensor.cast %i1 : tensor<4x2xi32> to tensor<?x2xi32>
  %nan = arith.constant 0x7FC00000 : f32
  %poison = tensor.splat %nan : tensor<4x2xf32>
  %init = tensor.cast %poison : tensor<4x2xf32> to tensor<?x2xf32>
  // CHECK: data =
  // CHECK-NEXT: [13, 130]
  // CHECK-NEXT: [1, 10]
  // CHECK-NEXT: [48, 480]
  // CHECK-NEXT: [0, 0]
  call @sum_of_slots(%x, %w, %ids, %init)
      : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<?x2xf32>) -> ()
  // The map sends 0 away, 1 to 0 and 2 to 1.
  // CHECK: data =
  // CHECK-NEXT: [0.5, 5]
  // CHECK-NEXT: [0, 0]
  // CHECK-NEXT: [2, 20]
  // CHECK-NEXT: [24, 240]
  call @mapped(%x, %w, %ids, %init)
      : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<?x2xf32>) -> ()
  // Expert 0: (1 + 1)^2 * (2 + 1) = 12, then (12 + 100, 120 + 200) by weight.
  // CHECK: data =
  // CHECK-NEXT: [68, 280]
  // CHECK-NEXT: [56, 160]
  call @biased(%x, %w, %ids, %init)
      : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<?x2xf32>) -> ()
  %x2 = tensor.extract_slice %x1[0, 0] [1, 2] [1, 1] : tensor<4x2xf32> to tensor<1x2xf32>
  %one = tensor.cast %x2 : tensor<1x2xf32> to tensor<?x2xf32>
  %i2 = tensor.empty() : tensor<1x2xf32>
  %out = tensor.cast %i2 : tensor<1x2xf32> to tensor<?x2xf32>
  // CHECK: data =
  // CHECK-NEXT: [4, 40]
  // CHECK: data =
  // CHECK-NEXT: [16, 160]
  call @weight_on_input(%one, %out) : (tensor<?x2xf32>, tensor<?x2xf32>) -> ()
  // Rows beyond a count are zeros, whatever was there before.
  // CHECK: data =
  // CHECK-NEXT: [2, 20]
  // CHECK-NEXT: [0, 0]
  // CHECK: [48, 480]
  // CHECK-NEXT: [24, 240]
  call @batched() : () -> ()
  // h = (1 + 2)^2 = 9 eight times.
  // CHECK: data =
  // CHECK-NEXT: [72, 72]
  call @packed_and_padded() : () -> ()
  // No tokens.
  // CHECK: Unranked Memref {{.*}} sizes = [0, 2]
  %c0 = arith.constant 0 : index
  %none = tensor.empty(%c0) : tensor<?x2xf32>
  %no_ids = tensor.empty(%c0) : tensor<?x2xi32>
  call @sum_of_slots(%none, %none, %no_ids, %none)
      : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<?x2xf32>) -> ()
  return
}
