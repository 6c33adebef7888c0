func.func @normed(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %a: tensor<?x8xf32>, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>) add(%a : tensor<?x8xf32>)
      outs(%init : tensor<?x8xf32>) {epsilon = 1.0e-6, scale = 0.5} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @scaled(%logits: tensor<?x8xf32>, %s: tensor<8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route softmax logits(%logits : tensor<?x8xf32>) expert_scale(%s : tensor<8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
func.func @mixed(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = 0.01} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
