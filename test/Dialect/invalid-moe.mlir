// One test for each constraint (Cn) of linear, rms_norm and route.
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

func.func @linear_c1_weight(%x: tensor<?x256xbf16>, %w: tensor<2x256x8xbf16, #wna16.dense>, %init: tensor<?x8xf32>) {
  // expected-error @+1 {{(C1) expected x, weight and init of rank 2, got 'tensor<?x256xbf16>', 'tensor<2x256x8xbf16, #wna16.dense>' and 'tensor<?x8xf32>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<2x256x8xbf16, #wna16.dense>) outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_c1_init(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>, %init: tensor<8xf32>) {
  // expected-error @+1 {{(C1) expected x, weight and init of rank 2, got 'tensor<?x256xbf16>', 'tensor<256x8xbf16, #wna16.dense>' and 'tensor<8xf32>'}}
  %0 = wna16.linear x(%x : tensor<?x256xbf16>) weight(%w : tensor<256x8xbf16, #wna16.dense>) outs(%init : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @rms_norm_c4_scale(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C4) expected an epsilon of 0 or more and a finite scale, got 1.000000e-06 and INF}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>) outs(%y : tensor<?x8xf32>)
      {epsilon = 1.0e-6, scale = 0x7FF0000000000000 : f64} -> tensor<?x8xf32>
  return
}
