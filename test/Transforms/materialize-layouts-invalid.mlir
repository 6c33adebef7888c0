// RUN: wna16-opt %s -wna16-materialize-layouts -split-input-file -verify-diagnostics

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @unselected(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                      %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) {
  // expected-error @below {{expected a backend, chosen by wna16-select-backend, got ''}}
  wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%x : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

func.func @unknown(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                   %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) {
  // expected-error @below {{expected a backend, chosen by wna16-select-backend, got 'machete'}}
  wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%x : tensor<?x256xbf16>) {backend = "machete"} -> tensor<?x256xbf16>
  return
}

// -----

// A backend that was not chosen by its constraints.
#odd = #wna16.packed<u4b8, group = -1, layout = compressed_tensors>

func.func @unfit(%x: tensor<?x257xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                 %w13: tensor<8x257x2x128xbf16, #odd>, %w2: tensor<8x128x257xbf16, #odd>) {
  // expected-error @below {{cannot be stored for backend xpu: expected input (257) to be a multiple of 2 for layout xpu; pad to 258}}
  wna16.fused_experts silu x(%x : tensor<?x257xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x257x2x128xbf16, #odd>) w2(%w2 : tensor<8x128x257xbf16, #odd>)
      outs(%x : tensor<?x257xbf16>) {backend = "xpu"} -> tensor<?x257xbf16>
  return
}

// -----

// Its layout holds no act-order.
#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>

func.func @act_order(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                     %w13: tensor<8x256x2x128xbf16, #index>, %w2: tensor<8x128x256xbf16, #index>) {
  // expected-error @below {{cannot be stored for backend xpu}}
  wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #index>) w2(%w2 : tensor<8x128x256xbf16, #index>)
      outs(%x : tensor<?x256xbf16>) {backend = "xpu"} -> tensor<?x256xbf16>
  return
}
