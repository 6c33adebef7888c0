func.func @corrected(%logits: tensor<?x8xf32>, %c: tensor<8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route sigmoid logits(%logits : tensor<?x8xf32>) correction(%c : tensor<8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
