// One test for each constraint (Cn) of linear, rms_norm, route and
// fused_experts.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

func.func @linear_c1(%x: tensor<1x?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{(C1) expected x, weight and init of rank 2, got 'tensor<1x?x256xbf16>', 'tensor<256x8xbf16, #wna16.dense>' and 'tensor<?x8xf32>'}}
  %0 = wna16.linear x(%x : tensor<1x?x256xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_c2(%x: tensor<?x128xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{(C2) expected x to have the weight's input (256) as columns, got 128}}
  %0 = wna16.linear x(%x : tensor<?x128xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_c2_dynamic(%x: tensor<?x?xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{(C2) expected x to have the weight's input (256) as columns, got dynamic ones}}
  %0 = wna16.linear x(%x : tensor<?x?xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_c3(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x16xf32>) {
  // expected-error @+1 {{(C3) expected init to be [M, 8] of f16, bf16 or f32, got 'tensor<?x16xf32>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @linear_c3_element(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x8xi32>) {
  // expected-error @+1 {{(C3) expected init to be [M, 8] of f16, bf16 or f32, got 'tensor<?x8xi32>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xi32>) -> tensor<?x8xi32>
  return
}

// -----

func.func @linear_c4(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %b: tensor<16xf32>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{(C4) expected the bias to be [8], got 'tensor<16xf32>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>) bias(%b : tensor<16xf32>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_plain(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{operand #1 must be tensor with a packed or dense encoding, but got 'tensor<256x8xbf16>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<256x8xbf16>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_encoded_x(%x: tensor<64x256xbf16, #wna16.dense>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor without encoding, but got 'tensor<64x256xbf16, #wna16.dense>'}}
  %0 = wna16.linear x(%x : tensor<64x256xbf16, #wna16.dense>) weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// rms_norm
//===----------------------------------------------------------------------===//

func.func @rms_norm_c1(%x: tensor<?x?xf32>, %w: tensor<8xf32>, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C1) expected x [M, K] of f16, bf16 or f32 with a static K of 1 or more, got 'tensor<?x?xf32>'}}
  %0 = wna16.rms_norm x(%x : tensor<?x?xf32>) weight(%w : tensor<8xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = 1.0e-6} -> tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<?x8xf32>, %w: tensor<7xf32>, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C2) expected a weight [8] of f16, bf16 or f32, got 'tensor<7xf32>'}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<7xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = 1.0e-6} -> tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c3_addend(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %a: tensor<?x9xf32>, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C3) expected addend and init to be floats of the shape of x, got 'tensor<?x9xf32>' for x 'tensor<?x8xf32>'}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>) add(%a : tensor<?x9xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = 1.0e-6} -> tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c3_init(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %y: tensor<?x8xi32>) {
  // expected-error @+1 {{(C3) expected addend and init to be floats of the shape of x, got 'tensor<?x8xi32>' for x 'tensor<?x8xf32>'}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>)
      outs(%y : tensor<?x8xi32>) {epsilon = 1.0e-6} -> tensor<?x8xi32>
  return
}

// -----

func.func @rms_norm_c4(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C4) expected an epsilon of 0 or more and a finite scale, got -1.000000e+00 and 1.000000e+00}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = -1.0} -> tensor<?x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// route
//===----------------------------------------------------------------------===//

func.func @route_c1(%logits: tensor<?x?xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C1) expected logits [M, E] of f16, bf16 or f32 with a static E, got 'tensor<?x?xf32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x?xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c1_rank(%logits: tensor<8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C1) expected logits [M, E] of f16, bf16 or f32 with a static E, got 'tensor<8xf32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c1_correction(%logits: tensor<?x8xf32>, %c: tensor<4xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C1) expected correction [8] of f16, bf16 or f32, got 'tensor<4xf32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>) correction(%c : tensor<4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c1_expert_scale(%logits: tensor<?x8xf32>, %s: tensor<8xi32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C1) expected expert_scale [8] of f16, bf16 or f32, got 'tensor<8xi32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>) expert_scale(%s : tensor<8xi32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c2_element(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi64>) {
  // expected-error @+1 {{(C2) expected inits f32 [M, k] and i32 [M, k], got 'tensor<?x2xf32>' and 'tensor<?x2xi64>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi64>) -> tensor<?x2xf32>, tensor<?x2xi64>
  return
}

// -----

func.func @route_c2_k(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x4xi32>) {
  // expected-error @+1 {{(C2) expected inits f32 [M, k] and i32 [M, k], got 'tensor<?x2xf32>' and 'tensor<?x4xi32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x4xi32>) -> tensor<?x2xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_c2_dynamic(%logits: tensor<?x8xf32>, %w: tensor<?x?xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C2) expected inits f32 [M, k] and i32 [M, k], got 'tensor<?x?xf32>' and 'tensor<?x2xi32>'}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x?xf32>, tensor<?x2xi32>) -> tensor<?x?xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c3(%logits: tensor<?x8xf32>, %w: tensor<?x9xf32>, %i: tensor<?x9xi32>) {
  // expected-error @+1 {{(C3) expected k (9) in 1..8, the experts}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x9xf32>, tensor<?x9xi32>) -> tensor<?x9xf32>, tensor<?x9xi32>
  return
}

// -----

func.func @route_c3_zero(%logits: tensor<?x8xf32>, %w: tensor<?x0xf32>, %i: tensor<?x0xi32>) {
  // expected-error @+1 {{(C3) expected k (0) in 1..8, the experts}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x0xf32>, tensor<?x0xi32>) -> tensor<?x0xf32>, tensor<?x0xi32>
  return
}

// -----

func.func @route_c4_divide(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C4) expected groups (3) to divide the experts (8) and top_groups (1) of them to hold k (2) experts}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {groups = 3} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c4_zero(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C4) expected groups (0) to divide the experts (8)}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {groups = 0} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c4_top_groups(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C4) expected groups (4) to divide the experts (8) and top_groups (5) of them to hold k (2) experts}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {groups = 4, top_groups = 5} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c4_k(%logits: tensor<?x8xf32>, %w: tensor<?x4xf32>, %i: tensor<?x4xi32>) {
  // expected-error @+1 {{(C4) expected groups (4) to divide the experts (8) and top_groups (1) of them to hold k (4) experts}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x4xf32>, tensor<?x4xi32>) {groups = 4, top_groups = 1} -> tensor<?x4xf32>, tensor<?x4xi32>
  return
}

// -----

func.func @route_c5(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C5) expected softmax scoring with softmax_after_topk, got sigmoid}}
  %0, %1 = wna16.route sigmoid logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {softmax_after_topk} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c6_correction(%logits: tensor<?x8xf32>, %c: tensor<8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C6) expected sparsemixer without correction, groups and renormalize, got a correction}}
  %0, %1 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>) correction(%c : tensor<8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c6_renormalize(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C6) expected sparsemixer without correction, groups and renormalize, got renormalize}}
  %0, %1 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c6_groups(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C6) expected sparsemixer without correction, groups and renormalize, got groups}}
  %0, %1 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {groups = 2, top_groups = 1} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c7_negative(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C7) expected a jitter of 0 or more, got -1}}
  %0, %1 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = -1.0} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @route_c7_softmax(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error @+1 {{(C7) expected a jitter of 0 without sparsemixer, got 5.000000e-01}}
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = 0.5} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

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
  // expected-error @+1 {{(C9) expected k = 1 and no batched layout with router_weight_on_input, got k = 1}}
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
