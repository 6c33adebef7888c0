// RUN: wna16-opt %s -wna16-select-backend -split-input-file \
// RUN:   -remarks-filter='wna16.*' -remark-format=emitRemark -verify-diagnostics=only-expected

// One layer for each backend and each constraint of rules=native that can be
// unmet in verified IR; the remark has the constraint, the numbers and the
// remedy. The constraints `weights` and `storage` repeat what the type verifier
// asks, so that IR meets them; unittests/Backend asks them of other layers.

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @cpu(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w13_fp8code: !w13_fp8code) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:cpu | Function=cpu | Remark="kernels of the runtime for any CPU}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cpu"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:cpu | Function=cpu | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cpu"} -> !x
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:cpu | Function=cpu | Reason="expected 16-bit activations, got int8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cpu", activation_type = #wna16<activation_type int8>} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#bits8 = #wna16.packed<u8b128, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#asym = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#f32s = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
#ct = #wna16.packed<u4b8, group = -1, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w2_dense = tensor<8x128x256xf32, #wna16.dense>
!w13_bits8 = tensor<8x256x2x128xbf16, #bits8>
!w2_bits8 = tensor<8x128x256xbf16, #bits8>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w13_asym = tensor<8x256x2x128xbf16, #asym>
!w2_asym = tensor<8x128x256xbf16, #asym>
!w13_sorted = tensor<8x256x2x128xbf16, #sorted>
!w2_sorted = tensor<8x128x256xbf16, #sorted>
!w13_f32s = tensor<8x256x2x128xbf16, #f32s>
!w2_f32s = tensor<8x128x256xbf16, #f32s>
!x_f32 = tensor<?x256xf32>
!w13_g32_f32 = tensor<8x256x2x128xf32, #g32>
!w2_g32_f32 = tensor<8x128x256xf32, #g32>
!w13_g32_ungated = tensor<8x256x1x128xbf16, #g32>
!x_batched = tensor<8x?x256xbf16>
!x_k257 = tensor<?x257xbf16>
!w13_ct_k257 = tensor<8x257x2x128xbf16, #ct>
!w2_ct_k257 = tensor<8x128x257xbf16, #ct>

module attributes {wna16.target = #wna16.target<xpu>} {
func.func @xpu(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w2_dense: !w2_dense, %w13_bits8: !w13_bits8, %w2_bits8: !w2_bits8,
    %w13_fp8code: !w13_fp8code, %w13_asym: !w13_asym, %w2_asym: !w2_asym, %w13_sorted: !w13_sorted,
    %w2_sorted: !w2_sorted, %w13_f32s: !w13_f32s, %w2_f32s: !w2_f32s, %x_f32: !x_f32,
    %w13_g32_f32: !w13_g32_f32, %w2_g32_f32: !w2_g32_f32, %w13_g32_ungated: !w13_g32_ungated,
    %x_batched: !x_batched, %tokens: tensor<8xi32>, %x_k257: !x_k257, %w13_ct_k257: !w13_ct_k257,
    %w2_ct_k257: !w2_ct_k257) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:xpu | Function=xpu | Remark="OpenCL kernels on Intel GPUs}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:xpu | Function=xpu | Reason="expected dense weights of f16, bf16, got w2 of dense f32", Suggestion="convert it to f16, bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] weight-bits | Category:wna16.backend:xpu | Function=xpu | Reason="expected 4-bit weights, got bits=8 of w13", Suggestion="quantise to 4 bits"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_bits8 : !w13_bits8) w2(%w2_bits8 : !w2_bits8) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:xpu | Function=xpu | Reason="expected codes u4, u4b8, s4 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] zero-points | Category:wna16.backend:xpu | Function=xpu | Reason="expected w13 without zero points, got bits=4, group=32 with zero points (plain)", Suggestion="quantise symmetrically"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_asym : !w13_asym) w2(%w2_asym : !w2_asym) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] act-order | Category:wna16.backend:xpu | Function=xpu | Reason="expected w13 without act-order, got index", Suggestion="quantise with desc_act = false"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted : !w13_sorted) w2(%w2_sorted : !w2_sorted) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] scale-type | Category:wna16.backend:xpu | Function=xpu | Reason="expected scales f16, bf16, got f32 scales of w13 with bf16 activations", Suggestion="convert the scales to bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_f32s : !w13_f32s) w2(%w2_f32s : !w2_f32s) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:xpu | Function=xpu | Reason="expected activations f16, bf16, got f32 activations with f16 scales", Suggestion="run the layer in f16, bf16"}}
  wna16.fused_experts silu x(%x_f32 : !x_f32) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_f32 : !w13_g32_f32) w2(%w2_g32_f32 : !w2_g32_f32) outs(%x_f32 : !x_f32) {backend = "xpu"} -> !x_f32
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:xpu | Function=xpu | Reason="expected activation silu, gelu, gelu_tanh, swigluoai, got swiglustep"}}
  wna16.fused_experts swiglustep x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu", limit = 7.0 : f64} -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:xpu | Function=xpu | Reason="expected activation relu2, got gelu without a gate"}}
  wna16.fused_experts gelu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_ungated : !w13_g32_ungated) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu"} -> !x
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:xpu | Function=xpu | Reason="expected 16-bit activations, got fp8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu", activation_type = #wna16<activation_type fp8>} -> !x
  // expected-remark @below {{[Missed] token-layout | Category:wna16.backend:xpu | Function=xpu | Reason="expected tokens [M, K], got batched ones [E, T, K]", Suggestion="use a batched backend"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x_batched : !x_batched) {backend = "xpu", batched} -> !x_batched
  // expected-remark @below {{[Missed] storage | Category:wna16.backend:xpu | Function=xpu | Reason="w13: expected input (257) to be a multiple of 2 for layout xpu", Suggestion="pad to 258"}}
  wna16.fused_experts silu x(%x_k257 : !x_k257) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct_k257 : !w13_ct_k257) w2(%w2_ct_k257 : !w2_ct_k257) outs(%x_k257 : !x_k257) {backend = "xpu"} -> !x_k257
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @emulation(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w13_fp8code: !w13_fp8code) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation | Function=emulation | Remark="linalg}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:emulation | Function=emulation | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:emulation | Function=emulation | Reason="expected 16-bit activations, got fp8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation", activation_type = #wna16<activation_type fp8>} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @emulation_otf(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w13_fp8code: !w13_fp8code) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=emulation_otf | Remark="linalg}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation_otf"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:emulation_otf | Function=emulation_otf | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation_otf"} -> !x
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:emulation_otf | Function=emulation_otf | Reason="expected 16-bit activations, got fp8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "emulation_otf", activation_type = #wna16<activation_type fp8>} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<xpu>} {
func.func @cpu(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:cpu | Function=cpu | Reason="expected a cpu target, got xpu", Suggestion="compile for cpu"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cpu"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @xpu(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:xpu | Function=xpu | Reason="expected a xpu target, got cpu", Suggestion="compile for xpu"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "xpu"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 75>} {
func.func @cuda(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:cuda | Function=cuda | Reason="expected at least sm_80, got sm_75", Suggestion="compile for cuda:sm_80"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cuda"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w2_dense = tensor<8x128x256xf32, #wna16.dense>
!x_f32 = tensor<?x256xf32>
!w13_g32_f32 = tensor<8x256x2x128xf32, #g32>
!w2_g32_f32 = tensor<8x128x256xf32, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
func.func @cuda(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w13_fp8code: !w13_fp8code, %w2_dense: !w2_dense, %x_f32: !x_f32,
    %w13_g32_f32: !w13_g32_f32, %w2_g32_f32: !w2_g32_f32) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:cuda | Function=cuda | Remark="dense kernels of the runtime on NVIDIA GPUs; packed weights are dequantised ahead of time}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cuda"} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:cuda | Function=cuda | Reason="expected dense weights of f16, bf16, got w2 of dense f32", Suggestion="convert it to f16, bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "cuda"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:cuda | Function=cuda | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cuda"} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:cuda | Function=cuda | Reason="expected activations f16, bf16, got f32 activations with f16 scales", Suggestion="run the layer in f16, bf16"}}
  wna16.fused_experts silu x(%x_f32 : !x_f32) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_f32 : !w13_g32_f32) w2(%w2_g32_f32 : !w2_g32_f32) outs(%x_f32 : !x_f32) {backend = "cuda"} -> !x_f32
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:cuda | Function=cuda | Reason="expected 16-bit activations, got int8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cuda", activation_type = #wna16<activation_type int8>} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @cuda(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:cuda | Function=cuda | Reason="expected a cuda target, got cpu", Suggestion="compile for cuda"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "cuda"} -> !x
  return
}
}
