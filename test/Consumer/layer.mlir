// One layer for the backend of acme-opt.cpp.

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @forward(%x: tensor<?x64xbf16>, %ids: tensor<?x2xi32>, %weights: tensor<?x2xf32>)
    -> tensor<?x64xbf16> {
  %codes13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.qweight" concat(1) : tensor<4x8x64xi32>
  %scales13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.scales" concat(1) : tensor<4x2x64xf16>
  %w13 = wna16.assemble codes = %codes13, scales = %scales13
      : tensor<4x8x64xi32>, tensor<4x2x64xf16> -> tensor<4x64x2x32xbf16, #gptq>
  %codes2 = wna16.parameter "experts.{expert}.down_proj.qweight" : tensor<4x4x64xi32>
  %scales2 = wna16.parameter "experts.{expert}.down_proj.scales" : tensor<4x1x64xf16>
  %w2 = wna16.assemble codes = %codes2, scales = %scales2
      : tensor<4x4x64xi32>, tensor<4x1x64xf16> -> tensor<4x32x64xbf16, #gptq>
  %c0 = arith.constant 0 : index
  %tokens = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %init = tensor.empty(%tokens) : tensor<?x64xbf16>
  %y = wna16.fused_experts silu x(%x : tensor<?x64xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<4x64x2x32xbf16, #gptq>) w2(%w2 : tensor<4x32x64xbf16, #gptq>)
      outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
}
