// One test for each constraint (Cn) of fused_experts.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// fused_experts
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c1_x(%x: tensor<?x?xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C1) expected x of rank 2 with static columns, w13 of rank 4 and w2 of rank 3, got 'tensor<?x?xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x?xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c1_batched(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C1) expected x of rank 3 with static columns, w13 of rank 4 and w2 of rank 3, got 'tensor<?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {batched} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c1_w13(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C1) expected x of rank 2 with static columns, w13 of rank 4 and w2 of rank 3, got 'tensor<?x256xbf16>', 'tensor<8x256x128xbf16, #wna16.packed<u4b8, group = 128, layout = gptq>>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c2_experts(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<4x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C2) expected w13 and w2 to agree in experts (8 and 4) and in N (128 and 128)}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<4x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c2_n(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x256x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C2) expected w13 and w2 to agree in experts (8 and 8) and in N (128 and 256)}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x256x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c3_w13(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x128x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C3) expected w13's input (128) and w2's output (256) to be at least the columns of x (256)}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x128x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c3_w2(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x128xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C3) expected w13's input (256) and w2's output (128) to be at least the columns of x (256)}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x128xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_weights(%x: tensor<?x256xbf16>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected f32 weights beside the ids 'tensor<?x2xi32>', or `batched`}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%ids : tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_k(%x: tensor<?x256xbf16>,
    %weights: tensor<?x4xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected f32 weights [M, k] and i32 ids [M, k] with x's tokens and a static k of at least 1, got 'tensor<?x4xf32>' and 'tensor<?x2xi32>' for x 'tensor<?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x4xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_none(%x: tensor<?x256xbf16>,
    %weights: tensor<?x0xf32>,
    %ids: tensor<?x0xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected f32 weights [M, k] and i32 ids [M, k] with x's tokens and a static k of at least 1, got 'tensor<?x0xf32>' and 'tensor<?x0xi32>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x0xf32>, tensor<?x0xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_tokens(%x: tensor<7x256xbf16>,
    %weights: tensor<8x2xf32>,
    %ids: tensor<8x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected f32 weights [M, k] and i32 ids [M, k] with x's tokens and a static k of at least 1, got 'tensor<8x2xf32>' and 'tensor<8x2xi32>' for x 'tensor<7x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<7x256xbf16>)
      routing(%weights, %ids : tensor<8x2xf32>, tensor<8x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_element(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xbf16>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected f32 weights [M, k] and i32 ids [M, k] with x's tokens and a static k of at least 1, got 'tensor<?x2xbf16>' and 'tensor<?x2xi32>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xbf16>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c4_map(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %expert_map: tensor<16xi64>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C4) expected an expert_map of i32 [global experts], got 'tensor<16xi64>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      expert_map(%expert_map : tensor<16xi64>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c5_ids(%x: tensor<8x?x256xbf16>,
    %ids: tensor<4xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C5) expected batched experts without weights and expert_map, i32 ids [8] and x [8, T, K], got ids 'tensor<4xi32>' and x 'tensor<8x?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<8x?x256xbf16>)
      routing(%ids : tensor<4xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<8x?x256xbf16>) {batched} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c5_x(%x: tensor<4x?x256xbf16>,
    %ids: tensor<8xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C5) expected batched experts without weights and expert_map, i32 ids [8] and x [8, T, K], got ids 'tensor<8xi32>' and x 'tensor<4x?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<4x?x256xbf16>)
      routing(%ids : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<8x?x256xbf16>) {batched} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c5_dynamic(%x: tensor<?x?x256xbf16>,
    %ids: tensor<8xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C5) expected batched experts without weights and expert_map, i32 ids [8] and x [8, T, K], got ids 'tensor<8xi32>' and x 'tensor<?x?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x?x256xbf16>)
      routing(%ids : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<8x?x256xbf16>) {batched} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c5_weights(%x: tensor<8x?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<8xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C5) expected batched experts without weights and expert_map}}
  %0 = wna16.fused_experts silu x(%x : tensor<8x?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<8x?x256xbf16>) {batched} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c5_map(%x: tensor<8x?x256xbf16>,
    %ids: tensor<8xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %expert_map: tensor<16xi32>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C5) expected batched experts without weights and expert_map}}
  %0 = wna16.fused_experts silu x(%x : tensor<8x?x256xbf16>)
      routing(%ids : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      expert_map(%expert_map : tensor<16xi32>)
      outs(%init : tensor<8x?x256xbf16>) {batched} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c6_bias13(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %bias13: tensor<8x256xbf16>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C6) expected bias13 [8, 2, 128], got 'tensor<8x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      bias13(%bias13 : tensor<8x256xbf16>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c6_bias2(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %bias2: tensor<8x128xbf16>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C6) expected bias2 [8, 256], got 'tensor<8x128xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      bias2(%bias2 : tensor<8x128xbf16>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c7(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x1x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C7) expected w13 to have 2 halves for swigluoai, got 1}}
  %0 = wna16.fused_experts swigluoai x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x1x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c7_step(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x1x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C7) expected w13 to have 2 halves for swiglustep, got 1}}
  %0 = wna16.fused_experts swiglustep x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x1x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {limit = 7.0} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c8(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C8) expected a positive limit, got -1}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {limit = -1.0} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c8_nan(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C8) expected a finite limit, got nan}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {limit = 0x7FF8000000000000 : f64} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c8_alpha(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C8) expected a finite alpha, got INF}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {alpha = 0x7FF0000000000000 : f64} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c8_beta(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C8) expected a finite beta, got -INF}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {beta = 0xFFF0000000000000 : f64} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c8_missing(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C8) expected a limit for swiglustep}}
  %0 = wna16.fused_experts swiglustep x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c9(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C9) expected k = 1 and no batched layout with router_weight_on_input, got k = 2}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) {router_weight_on_input} -> tensor<?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c9_batched(%x: tensor<8x?x256xbf16>,
    %ids: tensor<8xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<8x?x256xbf16>) {
  // expected-error @+1 {{(C9) expected k = 1 and no batched layout with router_weight_on_input, got k = 1 and batched}}
  %0 = wna16.fused_experts silu x(%x : tensor<8x?x256xbf16>)
      routing(%ids : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<8x?x256xbf16>) {batched, router_weight_on_input} -> tensor<8x?x256xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c10_shape(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x128xbf16>) {
  // expected-error @+1 {{(C10) expected init of x's shape, in x's type or f32, got 'tensor<?x128xbf16>' for x 'tensor<?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x128xbf16>) -> tensor<?x128xbf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c10_element(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xbf16, #gptq>,
    %init: tensor<?x256xf16>) {
  // expected-error @+1 {{(C10) expected init of x's shape, in x's type or f32, got 'tensor<?x256xf16>' for x 'tensor<?x256xbf16>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
      outs(%init : tensor<?x256xf16>) -> tensor<?x256xf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @experts_c11(%x: tensor<?x256xbf16>,
    %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>,
    %w13: tensor<8x256x2x128xbf16, #gptq>,
    %w2: tensor<8x128x256xf16, #gptq>,
    %init: tensor<?x256xbf16>) {
  // expected-error @+1 {{(C11) expected packed weights of x's element type ('bf16'), got 'f16'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xf16, #gptq>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return
}
