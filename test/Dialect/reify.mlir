// RUN: wna16-opt %s -resolve-ranked-shaped-type-result-dims | FileCheck %s

// The extents of a result are those of its init.

// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<?x8xf32>)
// CHECK: %[[M:.*]] = tensor.dim %[[INIT]], %c0
// CHECK: return %[[M]]
func.func @linear(%x: tensor<?x64xf32>, %w: tensor<64x8xf32, #wna16.dense>, %init: tensor<?x8xf32>) -> index {
  %c0 = arith.constant 0 : index
  %0 = wna16.linear x(%x : tensor<?x64xf32>) weight(%w : tensor<64x8xf32, #wna16.dense>) outs(%init : tensor<?x8xf32>)
      -> tensor<?x8xf32>
  %m = tensor.dim %0, %c0 : tensor<?x8xf32>
  return %m : index
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<?x8xf16>)
// CHECK: %[[M:.*]] = tensor.dim %[[INIT]], %c0
// CHECK: return %[[M]]
func.func @rms_norm(%x: tensor<?x8xf16>, %w: tensor<8xf16>, %init: tensor<?x8xf16>) -> index {
  %c0 = arith.constant 0 : index
  %0 = wna16.rms_norm x(%x : tensor<?x8xf16>) weight(%w : tensor<8xf16>) outs(%init : tensor<?x8xf16>)
      {epsilon = 1.0e-6} -> tensor<?x8xf16>
  %m = tensor.dim %0, %c0 : tensor<?x8xf16>
  return %m : index
}

// CHECK-LABEL: func.func @route(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<?x2xf32>, %[[I:[a-z0-9]+]]: tensor<?x2xi32>)
// CHECK-DAG: %[[MW:.*]] = tensor.dim %[[W]], %c0
// CHECK-DAG: %[[MI:.*]] = tensor.dim %[[I]], %c0
// CHECK: return %[[MW]], %[[MI]]
func.func @route(%l: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %0:2 = wna16.route softmax logits(%l : tensor<?x8xf32>) outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      -> tensor<?x2xf32>, tensor<?x2xi32>
  %mw = tensor.dim %0#0, %c0 : tensor<?x2xf32>
  %mi = tensor.dim %0#1, %c0 : tensor<?x2xi32>
  return %mw, %mi : index, index
}

// CHECK-LABEL: func.func @fused_experts(
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<2x?x64xf32>)
// CHECK: %[[T:.*]] = tensor.dim %[[INIT]], %c1
// CHECK: return %[[T]]
func.func @fused_experts(%x: tensor<2x?x64xf32>, %n: tensor<2xi32>, %w13: tensor<2x64x2x32xf32, #wna16.dense>,
                         %w2: tensor<2x32x64xf32, #wna16.dense>, %init: tensor<2x?x64xf32>) -> index {
  %c1 = arith.constant 1 : index
  %0 = wna16.fused_experts silu x(%x : tensor<2x?x64xf32>) routing(%n : tensor<2xi32>)
      w13(%w13 : tensor<2x64x2x32xf32, #wna16.dense>) w2(%w2 : tensor<2x32x64xf32, #wna16.dense>)
      outs(%init : tensor<2x?x64xf32>) {batched} -> tensor<2x?x64xf32>
  %t = tensor.dim %0, %c1 : tensor<2x?x64xf32>
  return %t : index
}
