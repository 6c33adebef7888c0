// RUN: wna16-opt %s -wna16-hoist-prepare -remarks-filter='wna16.*' -remark-format=emitRemark \
// RUN:   -verify-diagnostics=only-expected

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16>
#g16 = #wna16.packed<u4b8, group = 16, layout = gptq, scale = bf16>
#marlin = #wna16.packed<u4b8, group = 16, layout = marlin, scale = bf16>

func.func @argument(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16, #gptq>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-remark @below {{[Missed] repeated | Category:wna16.prepare | Function=argument | Reason="the weight is prepared in every call, being made of more than parameters and constants", Suggestion="give it as wna16.parameter, or in the layout of the backend"}}
  %0 = wna16.regroup %w : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #g16>
  %1 = wna16.repack %0 : tensor<64x64xbf16, #g16> to tensor<64x64xbf16, #marlin>
  %y = wna16.linear x(%x : tensor<?x64xbf16>) weight(%1 : tensor<64x64xbf16, #marlin>) outs(%init : tensor<?x64xf32>)
      -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Once is once.
func.func @parameter(%x: tensor<?x64xbf16>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %q = wna16.parameter "w.qweight" : tensor<8x64xi32>
  %s = wna16.parameter "w.scales" : tensor<2x64xbf16>
  %w = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xbf16> -> tensor<64x64xbf16, #gptq>
  %0 = wna16.regroup %w : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #g16>
  %1 = wna16.repack %0 : tensor<64x64xbf16, #g16> to tensor<64x64xbf16, #marlin>
  %y = wna16.linear x(%x : tensor<?x64xbf16>) weight(%1 : tensor<64x64xbf16, #marlin>) outs(%init : tensor<?x64xf32>)
      -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
