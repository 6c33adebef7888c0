// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

func.func private @printMemrefF32(tensor<*xf32>)
func.func private @printMemrefI32(tensor<*xi32>)

func.func @show(%weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>) {
  %w = tensor.cast %weights : tensor<?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%w) : (tensor<*xf32>) -> ()
  %i = tensor.cast %ids : tensor<?x2xi32> to tensor<*xi32>
  call @printMemrefI32(%i) : (tensor<*xi32>) -> ()
  return
}

func.func @inits(%logits: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %logits, %c0 : tensor<?x4xf32>
  %w = tensor.empty(%m) : tensor<?x2xf32>
  %i = tensor.empty(%m) : tensor<?x2xi32>
  return %w, %i : tensor<?x2xf32>, tensor<?x2xi32>
}

func.func @softmax(%logits: tensor<?x4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @renormalized(%logits: tensor<?x4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {renormalize, scaling = 3.0 : f64} -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @after_topk(%logits: tensor<?x4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {softmax_after_topk} -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @sigmoid(%logits: tensor<?x4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route sigmoid logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @corrected(%logits: tensor<?x4xf32>, %correction: tensor<4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route sigmoid logits(%logits : tensor<?x4xf32>)
      correction(%correction : tensor<4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @grouped(%logits: tensor<?x4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {groups = 2 : i64, top_groups = 1 : i64, renormalize}
      -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @grouped_corrected(%logits: tensor<?x4xf32>, %correction: tensor<4xf32>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route sigmoid logits(%logits : tensor<?x4xf32>)
      correction(%correction : tensor<4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {groups = 2 : i64, top_groups = 1 : i64}
      -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @sparsemixer(%logits: tensor<?x4xf32>, %scale: tensor<4xbf16>) {
  %w, %i = call @inits(%logits) : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %weights, %ids = wna16.route sparsemixer logits(%logits : tensor<?x4xf32>)
      expert_scale(%scale : tensor<4xbf16>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {jitter = 0.25} -> tensor<?x2xf32>, tensor<?x2xi32>
  call @show(%weights, %ids) : (tensor<?x2xf32>, tensor<?x2xi32>) -> ()
  return
}

func.func @main() {
  // Logarithms of 1, 2, 4, 1; all equal; NaN, the ids of which are in range.
  %l = arith.constant dense<[[0., 0.6931471805599453, 1.3862943611198906, 0.],
                             [-3., -3., -3., -3.],
                             [0x7FC00000, 1., 2., 3.]]> : tensor<3x4xf32>
  %logs = tensor.cast %l : tensor<3x4xf32> to tensor<?x4xf32>

  // CHECK: data =
  // CHECK-NEXT: [0.5, 0.25]
  // CHECK-NEXT: [0.25, 0.25]
  // CHECK: data =
  // CHECK-NEXT: [2, 1]
  // CHECK-NEXT: [0, 1]
  // CHECK-NEXT: [0, 1]
  call @softmax(%logs) : (tensor<?x4xf32>) -> ()

  // Case B64: the factor comes after the division by the sum.
  // CHECK: data =
  // CHECK-NEXT: [2, 1]
  // CHECK-NEXT: [1.5, 1.5]
  // CHECK: data =
  // CHECK-NEXT: [2, 1]
  // CHECK-NEXT: [0, 1]
  call @renormalized(%logs) : (tensor<?x4xf32>) -> ()

  // CHECK: data =
  // CHECK-NEXT: [0.666667, 0.333333]
  // CHECK-NEXT: [0.5, 0.5]
  // CHECK: data =
  // CHECK-NEXT: [2, 1]
  call @after_topk(%logs) : (tensor<?x4xf32>) -> ()

  // Scores so small that they are 0 do not become NaN.
  // CHECK: data =
  // CHECK-NEXT: [0, 0]
  // CHECK-NEXT: [0.5, 0.5]
  // CHECK: data =
  // CHECK-NEXT: [0, 1]
  // CHECK-NEXT: [1, 3]
  %s = arith.constant dense<[[-200., -200., -200., -200.],
                             [-200., -18., -19., -18.]]> : tensor<2x4xf32>
  %small = tensor.cast %s : tensor<2x4xf32> to tensor<?x4xf32>
  call @sigmoid(%small) : (tensor<?x4xf32>) -> ()

  // Case B65: chosen with the correction, weighed without.
  // CHECK: data =
  // CHECK-NEXT: [0.5, 0.5]
  // CHECK: data =
  // CHECK-NEXT: [1, 3]
  %z = arith.constant dense<0.> : tensor<1x4xf32>
  %zero = tensor.cast %z : tensor<1x4xf32> to tensor<?x4xf32>
  %c = arith.constant dense<[0., 3., 1., 2.]> : tensor<4xf32>
  call @corrected(%zero, %c) : (tensor<?x4xf32>, tensor<4xf32>) -> ()

  // The group of the best expert; its other member comes along.
  // CHECK: data =
  // CHECK-NEXT: [0.8, 0.2]
  // CHECK: data =
  // CHECK-NEXT: [0, 1]
  %g = arith.constant dense<[[1.3862943611198906, 0., 1., 1.]]> : tensor<1x4xf32>
  %group = tensor.cast %g : tensor<1x4xf32> to tensor<?x4xf32>
  call @grouped(%group) : (tensor<?x4xf32>) -> ()

  // With a correction, the group with the best two: 4 against 5.
  // CHECK: data =
  // CHECK-NEXT: [0.5, 0.5]
  // CHECK: data =
  // CHECK-NEXT: [2, 3]
  %d = arith.constant dense<[3., 0., 2., 2.]> : tensor<4xf32>
  call @grouped_corrected(%zero, %d) : (tensor<?x4xf32>, tensor<4xf32>) -> ()

  // 1 is just near to 2, and 0.9 to 1 but not to 2; those of 0 are near; what
  // NaN is near to has no weight.
  // CHECK: data =
  // CHECK-NEXT: [1.46212, 2.09992]
  // CHECK-NEXT: [0.25, 0.666667]
  // CHECK-NEXT: [{{.?}}nan, {{.?}}nan]
  // CHECK-NEXT: [1, 4]
  // CHECK: data =
  // CHECK-NEXT: [1, 2]
  // CHECK-NEXT: [0, 1]
  // CHECK-NEXT: [3, 2]
  // CHECK-NEXT: [0, 2]
  %p = arith.constant dense<[[0.9, 2., 1., -5.], [0., 0., 0., 0.],
                             [0x7FC00000, 1., 2., 3.],
                             [5., 0xFF800000, 1., 0.]]> : tensor<4x4xf32>
  %mix = tensor.cast %p : tensor<4x4xf32> to tensor<?x4xf32>
  %e = arith.constant dense<[1., 2., 4., 1.]> : tensor<4xbf16>
  call @sparsemixer(%mix, %e) : (tensor<?x4xf32>, tensor<4xbf16>) -> ()

  // No tokens.
  // CHECK: Unranked Memref {{.*}} sizes = [0, 2]
  // CHECK: Unranked Memref {{.*}} sizes = [0, 2]
  %c0 = arith.constant 0 : index
  %n = tensor.empty(%c0) : tensor<?x4xf32>
  call @softmax(%n) : (tensor<?x4xf32>) -> ()
  return
}
