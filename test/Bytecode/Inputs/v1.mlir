#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
#awq = #wna16.packed<u4, group = 64, layout = awq, zeros = plain>
#marlin = #wna16.packed<u4b8, group = 128, layout = marlin>
module attributes {wna16.target = #wna16.target<cuda, capability = 90, libraries = ["humming"]>} {
  func.func @weights(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x256xf16>,
                     %bias: tensor<8x2x128xf16>)
      -> (tensor<8x256x2x128xf16, #marlin>, tensor<8x2x128xf16, #wna16.bias<layout = marlin>>) {
    %p = wna16.parameter "experts.{expert}.{gate,up}.qweight" concat(1) : tensor<8x32x256xi32>
    %w = wna16.assemble codes = %codes, scales = %scales
        : tensor<8x32x256xi32>, tensor<8x2x256xf16> -> tensor<8x256x2x128xf16, #gptq>
    %r = wna16.convert %w : tensor<8x256x2x128xf16, #gptq> to tensor<8x256x2x128xf16, #marlin>
    %b = wna16.convert_bias %bias : tensor<8x2x128xf16> to tensor<8x2x128xf16, #wna16.bias<layout = marlin>>
    return %r, %b : tensor<8x256x2x128xf16, #marlin>, tensor<8x2x128xf16, #wna16.bias<layout = marlin>>
  }
  func.func @moe(%x: tensor<?x256xbf16>, %gate: tensor<256x8xbf16, #wna16.dense>,
                 %w13: tensor<8x256x2x128xbf16, #awq>, %w2: tensor<8x128x256xbf16, #awq>,
                 %l: tensor<?x8xf32>, %wi: tensor<?x2xf32>, %ii: tensor<?x2xi32>,
                 %init: tensor<?x256xbf16>) -> tensor<?x256xbf16> {
    %logits = wna16.linear x(%x : tensor<?x256xbf16>) weight(%gate : tensor<256x8xbf16, #wna16.dense>)
        outs(%l : tensor<?x8xf32>) {batch_invariant} -> tensor<?x8xf32>
    %weights, %ids = wna16.route sigmoid logits(%logits : tensor<?x8xf32>)
        outs(%wi, %ii : tensor<?x2xf32>, tensor<?x2xi32>)
        {groups = 4, top_groups = 2, renormalize, scaling = 2.5} -> tensor<?x2xf32>, tensor<?x2xi32>
    %y = wna16.fused_experts swiglustep x(%x : tensor<?x256xbf16>)
        routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #awq>) w2(%w2 : tensor<8x128x256xbf16, #awq>)
        outs(%init : tensor<?x256xbf16>) {limit = 7.0, backend = "marlin"} -> tensor<?x256xbf16>
    return %y : tensor<?x256xbf16>
  }
  func.func @run(%x: memref<?x64xf32>, %c: memref<8x64xf32>, %y: memref<?x8xf32>) {
    %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
    wna16.kernel_run %p ins(%x, %c : memref<?x64xf32>, memref<8x64xf32>)
        outs(%y : memref<?x8xf32>) roles ["x", "weight.codes", "y"]
    return
  }
}
