// RUN: wna16-opt %s -wna16-emulate -split-input-file -verify-diagnostics

func.func @parameter() -> tensor<8x8xf32> {
  // expected-error @below {{'wna16.parameter' op expected wna16-hoist-prepare before emulation: the tensor lives in a file}}
  %0 = wna16.parameter "model.layers.0.mlp.gate.weight" : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

#gptq = #wna16.packed<u4b8, group = 8, layout = gptq>

func.func @int8_activations(%x: tensor<?x8xf16>, %w: tensor<?x1xf32>, %i: tensor<?x1xi32>,
                            %w13: tensor<1x8x1x8xf16, #gptq>, %w2: tensor<1x8x8xf16, #gptq>,
                            %init: tensor<?x8xf16>) -> tensor<?x8xf16> {
  // expected-error @below {{cannot be emulated with int8 activations, expected a16}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x8xf16>)
      routing(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13 : tensor<1x8x1x8xf16, #gptq>) w2(%w2 : tensor<1x8x8xf16, #gptq>)
      outs(%init : tensor<?x8xf16>) {activation_type = #wna16<activation_type int8>}
      -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// -----

#gptq = #wna16.packed<u4b8, group = 8, layout = gptq>
#folded = #wna16.packed<u4b8, group = 8, layout = gptq, scale = i16>

func.func @folded_scales(%w: tensor<1x8x8xf16, #gptq>) -> tensor<1x8x8xf16, #folded> {
  // expected-error @below {{cannot be emulated: folding scales to i16 is for backends with int8 activations}}
  %0 = wna16.recode %w : tensor<1x8x8xf16, #gptq> to tensor<1x8x8xf16, #folded>
  return %0 : tensor<1x8x8xf16, #folded>
}

// -----

#index = #wna16.packed<u4b8, group = 8, layout = gptq, act_order = index>

func.func @padded_act_order(%w: tensor<1x8x8xf16, #index>) -> tensor<1x16x8xf16, #index> {
  // expected-error @below {{expected act-order rows to keep group, groups and input, got group 8 to 8, groups 1 to 2 and input 8 to 16}}
  %0 = wna16.pad %w : tensor<1x8x8xf16, #index> to tensor<1x16x8xf16, #index>
  return %0 : tensor<1x16x8xf16, #index>
}

// -----

#folded = #wna16.packed<u4b8, group = 8, layout = gptq, scale = i16>

func.func @quantize(%w: tensor<8x8xf32, #wna16.dense>) -> tensor<8x8xf32, #folded> {
  // expected-error @below {{cannot be emulated to layout gptq with scales of i16; quantize to float scales and a layout without block sums, then convert}}
  %0 = wna16.quantize %w : tensor<8x8xf32, #wna16.dense> to tensor<8x8xf32, #folded>
  return %0 : tensor<8x8xf32, #folded>
}

// -----

#dense = #wna16.dense

func.func @mixed_linear(%x: tensor<?x8xf16>, %w: tensor<8x4xf16, #dense>, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // expected-error @below {{cannot be emulated on a static and a dynamic number of tokens, got 'tensor<?x8xf16>' and 'tensor<3x4xf32>'; make both static or both dynamic}}
  %0 = wna16.linear x(%x : tensor<?x8xf16>) weight(%w : tensor<8x4xf16, #dense>) outs(%init : tensor<3x4xf32>)
      -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @mixed_route(%x: tensor<2x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  // expected-error @below {{cannot be emulated on a static and a dynamic number of tokens, got 'tensor<2x8xf32>' and 'tensor<?x2xf32>'}}
  %0:2 = wna16.route softmax logits(%x : tensor<2x8xf32>) outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}

// -----

func.func @mixed_norm(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %a: tensor<2x8xf32>, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{cannot be emulated on a static and a dynamic number of tokens, got 'tensor<?x8xf32>' and 'tensor<2x8xf32>'}}
  %0 = wna16.rms_norm x(%x : tensor<?x8xf32>) weight(%w : tensor<8xf32>) add(%a : tensor<2x8xf32>)
      outs(%init : tensor<?x8xf32>) {epsilon = 1.0e-6} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @mixed_experts(%x: tensor<?x8xf16>, %w: tensor<4x1xf32>, %i: tensor<4x1xi32>,
                         %w13: tensor<1x8x1x8xf16, #wna16.dense>, %w2: tensor<1x8x8xf16, #wna16.dense>,
                         %init: tensor<?x8xf16>) -> tensor<?x8xf16> {
  // expected-error @below {{cannot be emulated on a static and a dynamic number of tokens, got 'tensor<?x8xf16>' and 'tensor<4x1xi32>'}}
  %0 = wna16.fused_experts silu x(%x : tensor<?x8xf16>)
      routing(%w, %i : tensor<4x1xf32>, tensor<4x1xi32>)
      w13(%w13 : tensor<1x8x1x8xf16, #wna16.dense>) w2(%w2 : tensor<1x8x8xf16, #wna16.dense>)
      outs(%init : tensor<?x8xf16>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// -----

func.func @kernel(%x: tensor<?x64xf32>, %w: tensor<8x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'wna16.kernel_plan' op cannot be emulated: it calls the runtime}}
  %p = wna16.kernel_plan linear @wna16_cpu_linear {weight = tensor<64x8xf32, #wna16.dense>}
  %0 = wna16.kernel_run %p ins(%x, %w : tensor<?x64xf32>, tensor<8x64xf32>) outs(%y : tensor<?x8xf32>)
      roles ["x", "weight.codes", "y"] -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
