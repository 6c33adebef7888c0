// RUN: wna16-opt %s -split-input-file -verify-diagnostics

// Steps that the layout engine cannot do: rows that belong to groups by index.

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
func.func @pad_c5(%w: tensor<2x128x64xf16, #index>) {
  // expected-error @+1 {{(C5) expected act-order rows to keep group, groups and input, got group 32 to 32, groups 4 to 5 and input 128 to 160}}
  %0 = wna16.pad %w : tensor<2x128x64xf16, #index> to tensor<2x160x64xf16, #index>
  return
}

// -----

#folded = #wna16.packed<u4b8, group = 32, layout = marlin_a8, scale = i16>
#scaled = #wna16.packed<u4b8, group = 32, layout = marlin_a8, scale = bf16>
func.func @repack_c4(%w: tensor<2x128x64xbf16, #folded>) {
  // expected-error @+1 {{(C4) expected folded scales to stay folded, got i16 and bf16}}
  %0 = wna16.repack %w : tensor<2x128x64xbf16, #folded> to tensor<2x128x64xbf16, #scaled>
  return
}

// -----

#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
func.func @dequantize_c3(%w: tensor<2x128x64xf16, #sorted>) {
  // expected-error @+1 {{(C3) expected inputs in their order (act_order none or index), got sorted; dequantise before the rows are sorted}}
  %0 = wna16.dequantize %w : tensor<2x128x64xf16, #sorted> to tensor<2x128x64xf32, #wna16.dense>
  return
}
