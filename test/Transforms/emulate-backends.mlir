// RUN: wna16-opt %s -wna16-emulate=all=false | FileCheck %s

// Only operations whose backend has no kernel are lowered; their encoded
// operands are taken apart beside them.

// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %{{.*}}: tensor<?x8xf32>, %[[W:.*]]: tensor<8x4xf32, #wna16.dense>
// CHECK: %[[PARTS:.*]] = wna16.disassemble %[[W]]
// CHECK: wna16.linear
// CHECK: tensor.collapse_shape %[[PARTS]]
// CHECK: linalg.generic
// CHECK-NOT: wna16.linear
// CHECK: return
func.func @linear(%x: tensor<?x8xf32>, %w: tensor<8x4xf32, #wna16.dense>,
                  %init: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = wna16.linear x(%x : tensor<?x8xf32>) weight(%w : tensor<8x4xf32, #wna16.dense>)
      outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = wna16.linear x(%x : tensor<?x8xf32>) weight(%w : tensor<8x4xf32, #wna16.dense>)
      outs(%init : tensor<?x4xf32>) {backend = "emulation"} -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @others_stay(
// CHECK: wna16.parameter
// CHECK: wna16.route
// CHECK: linalg.generic
// CHECK-NOT: wna16
// CHECK: return
func.func @others_stay(%w: tensor<?x1xf32>, %i: tensor<?x1xi32>, %logits: tensor<?x4xf32>)
    -> (tensor<4xf32>, tensor<?x1xi32>, tensor<?x1xi32>) {
  %0 = wna16.parameter "bias" : tensor<4xf32>
  %1:2 = wna16.route sigmoid logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>) {backend = "cpu"}
      -> tensor<?x1xf32>, tensor<?x1xi32>
  %2:2 = wna16.route sigmoid logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>) {backend = "emulation"}
      -> tensor<?x1xf32>, tensor<?x1xi32>
  return %0, %1#1, %2#1 : tensor<4xf32>, tensor<?x1xi32>, tensor<?x1xi32>
}
