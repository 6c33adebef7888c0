// RUN: wna16-opt %s -wna16-select-backend -split-input-file \
// RUN:   -remarks-filter='wna16.*' -remark-format=emitRemark -verify-diagnostics=only-expected

// One layer for each backend and each constraint of rules=native that can be
// unmet in verified IR; the remark has the constraint, the numbers and the
// remedy. The constraints `weights` and `storage` repeat what the type verifier
// asks, so that IR meets them; unittests/Backend asks them of other layers.

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#folded = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
#asym8 = #wna16.packed<u8, group = 32, layout = gptq, zeros = plain>
#g24 = #wna16.packed<u4b8, group = 24, layout = gptq>
#g96 = #wna16.packed<u4b8, group = 96, layout = gptq>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#f32s = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
#bits8 = #wna16.packed<u8b128, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w2_dense = tensor<8x128x256xbf16, #wna16.dense>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w2_folded = tensor<8x128x256xbf16, #folded>
!w13_asym8 = tensor<8x256x2x128xbf16, #asym8>
!w2_asym8 = tensor<8x128x256xbf16, #asym8>
!w13_g24 = tensor<8x256x2x128xbf16, #g24>
!w2_g24 = tensor<8x128x256xbf16, #g24>
!w13_g96 = tensor<8x256x2x128xbf16, #g96>
!w2_g96 = tensor<8x128x256xbf16, #g96>
!w13_sorted = tensor<8x256x2x128xbf16, #sorted>
!w2_sorted = tensor<8x128x256xbf16, #sorted>
!w13_f32s = tensor<8x256x2x128xbf16, #f32s>
!w2_f32s = tensor<8x128x256xbf16, #f32s>
!x_f32 = tensor<?x256xf32>
!w13_g32_f32 = tensor<8x256x2x128xf32, #g32>
!w2_g32_f32 = tensor<8x128x256xf32, #g32>
!w13_bits8 = tensor<8x256x2x128xbf16, #bits8>
!w2_bits8 = tensor<8x128x256xbf16, #bits8>
!x_batched = tensor<8x?x256xbf16>
!x_k272 = tensor<?x272xbf16>
!w13_g32_k272 = tensor<8x272x2x128xbf16, #g32>
!w2_g32_k272 = tensor<8x128x272xbf16, #g32>
!w13_sorted_n96 = tensor<8x256x2x96xbf16, #sorted>
!w2_sorted_n96 = tensor<8x96x256xbf16, #sorted>

module attributes {wna16.target = #wna16.target<cuda, capability = 80>} {
func.func @marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w2_dense: !w2_dense, %w13_fp8code: !w13_fp8code, %w2_folded: !w2_folded,
    %w13_asym8: !w13_asym8, %w2_asym8: !w2_asym8, %w13_g24: !w13_g24, %w2_g24: !w2_g24,
    %w13_g96: !w13_g96, %w2_g96: !w2_g96, %w13_sorted: !w13_sorted, %w2_sorted: !w2_sorted,
    %w13_f32s: !w13_f32s, %w2_f32s: !w2_f32s, %x_f32: !x_f32, %w13_g32_f32: !w13_g32_f32,
    %w2_g32_f32: !w2_g32_f32, %w13_bits8: !w13_bits8, %w2_bits8: !w2_bits8, %x_batched: !x_batched,
    %tokens: tensor<8xi32>, %x_k272: !x_k272, %w13_g32_k272: !w13_g32_k272,
    %w2_g32_k272: !w2_g32_k272, %w13_sorted_n96: !w13_sorted_n96, %w2_sorted_n96: !w2_sorted_n96) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:marlin | Function=marlin | Remark="Marlin}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:marlin | Function=marlin | Reason="expected packed weights, got w2 of dense bf16", Suggestion="quantise it"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:marlin | Function=marlin | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:marlin | Function=marlin | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w2, got u4b8 with scales folded to i16", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_folded : !w2_folded) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] zero-points | Category:wna16.backend:marlin | Function=marlin | Reason="expected w13 without zero points, got bits=8, group=32 with zero points (plain)", Suggestion="quantise symmetrically"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_asym8 : !w13_asym8) w2(%w2_asym8 : !w2_asym8) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] group-size | Category:wna16.backend:marlin | Function=marlin | Reason="expected group (24) of w13 to be -1 or a multiple of 16", Suggestion="quantise with group 32"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g24 : !w13_g24) w2(%w2_g24 : !w2_g24) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] group-divides | Category:wna16.backend:marlin | Function=marlin | Reason="expected w13's input (256) to be a multiple of its group 96", Suggestion="pad to 288, or take a group that divides 256"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g96 : !w13_g96) w2(%w2_g96 : !w2_g96) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] act-order | Category:wna16.backend:marlin | Function=marlin | Reason="expected 16-bit activations with act-order of w13, got int8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted : !w13_sorted) w2(%w2_sorted : !w2_sorted) outs(%x : !x) {backend = "marlin", activation_type = #wna16<activation_type int8>} -> !x
  // expected-remark @below {{[Missed] scale-type | Category:wna16.backend:marlin | Function=marlin | Reason="expected scales f16, bf16, got f32 scales of w13 with bf16 activations", Suggestion="convert the scales to bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_f32s : !w13_f32s) w2(%w2_f32s : !w2_f32s) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:marlin | Function=marlin | Reason="expected activations f16, bf16, got f32 activations with f16 scales", Suggestion="run the layer in f16, bf16"}}
  wna16.fused_experts silu x(%x_f32 : !x_f32) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_f32 : !w13_g32_f32) w2(%w2_g32_f32 : !w2_g32_f32) outs(%x_f32 : !x_f32) {backend = "marlin"} -> !x_f32
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:marlin | Function=marlin | Reason="expected 4-bit weights with fp8 activations, got bits=8 of w13", Suggestion="use activation_type a16 or int8"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_bits8 : !w13_bits8) w2(%w2_bits8 : !w2_bits8) outs(%x : !x) {backend = "marlin", activation_type = #wna16<activation_type fp8>} -> !x
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:marlin | Function=marlin | Reason="expected at least sm_89, got sm_80", Suggestion="compile for cuda:sm_89"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "marlin", activation_type = #wna16<activation_type fp8>} -> !x
  // expected-remark @below {{[Missed] token-layout | Category:wna16.backend:marlin | Function=marlin | Reason="expected tokens [M, K], got batched ones [E, T, K]", Suggestion="use a batched backend"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x_batched : !x_batched) {backend = "marlin", batched} -> !x_batched
  // expected-remark @below {{[Missed] hidden-multiple | Category:wna16.backend:marlin | Function=marlin | Reason="expected hidden size (272) to be a multiple of 64", Suggestion="pad to 320"}}
  wna16.fused_experts silu x(%x_k272 : !x_k272) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_k272 : !w13_g32_k272) w2(%w2_g32_k272 : !w2_g32_k272) outs(%x_k272 : !x_k272) {backend = "marlin"} -> !x_k272
  // expected-remark @below {{[Missed] intermediate-multiple | Category:wna16.backend:marlin | Function=marlin | Reason="expected intermediate size with act-order (96) to be a multiple of 64", Suggestion="pad to 128"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted_n96 : !w13_sorted_n96) w2(%w2_sorted_n96 : !w2_sorted_n96) outs(%x : !x) {backend = "marlin"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#folded = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
#asym8 = #wna16.packed<u8, group = 32, layout = gptq, zeros = plain>
#g24 = #wna16.packed<u4b8, group = 24, layout = gptq>
#g96 = #wna16.packed<u4b8, group = 96, layout = gptq>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#f32s = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
#bits8 = #wna16.packed<u8b128, group = 32, layout = gptq>
!x = tensor<8x?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w2_dense = tensor<8x128x256xbf16, #wna16.dense>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w2_folded = tensor<8x128x256xbf16, #folded>
!w13_asym8 = tensor<8x256x2x128xbf16, #asym8>
!w2_asym8 = tensor<8x128x256xbf16, #asym8>
!w13_g24 = tensor<8x256x2x128xbf16, #g24>
!w2_g24 = tensor<8x128x256xbf16, #g24>
!w13_g96 = tensor<8x256x2x128xbf16, #g96>
!w2_g96 = tensor<8x128x256xbf16, #g96>
!w13_sorted = tensor<8x256x2x128xbf16, #sorted>
!w2_sorted = tensor<8x128x256xbf16, #sorted>
!w13_f32s = tensor<8x256x2x128xbf16, #f32s>
!w2_f32s = tensor<8x128x256xbf16, #f32s>
!x_f32 = tensor<8x?x256xf32>
!w13_g32_f32 = tensor<8x256x2x128xf32, #g32>
!w2_g32_f32 = tensor<8x128x256xf32, #g32>
!w13_bits8 = tensor<8x256x2x128xbf16, #bits8>
!w2_bits8 = tensor<8x128x256xbf16, #bits8>
!x_batched = tensor<?x256xbf16>
!x_k272 = tensor<8x?x272xbf16>
!w13_g32_k272 = tensor<8x272x2x128xbf16, #g32>
!w2_g32_k272 = tensor<8x128x272xbf16, #g32>
!w13_sorted_n96 = tensor<8x256x2x96xbf16, #sorted>
!w2_sorted_n96 = tensor<8x96x256xbf16, #sorted>

module attributes {wna16.target = #wna16.target<cuda, capability = 80>} {
func.func @batched_marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %tokens: tensor<8xi32>,
    %w2_dense: !w2_dense, %w13_fp8code: !w13_fp8code, %w2_folded: !w2_folded,
    %w13_asym8: !w13_asym8, %w2_asym8: !w2_asym8, %w13_g24: !w13_g24, %w2_g24: !w2_g24,
    %w13_g96: !w13_g96, %w2_g96: !w2_g96, %w13_sorted: !w13_sorted, %w2_sorted: !w2_sorted,
    %w13_f32s: !w13_f32s, %w2_f32s: !w2_f32s, %x_f32: !x_f32, %w13_g32_f32: !w13_g32_f32,
    %w2_g32_f32: !w2_g32_f32, %w13_bits8: !w13_bits8, %w2_bits8: !w2_bits8, %x_batched: !x_batched,
    %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>, %x_k272: !x_k272,
    %w13_g32_k272: !w13_g32_k272, %w2_g32_k272: !w2_g32_k272, %w13_sorted_n96: !w13_sorted_n96,
    %w2_sorted_n96: !w2_sorted_n96) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:batched_marlin | Function=batched_marlin | Remark="Marlin}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected packed weights, got w2 of dense bf16", Suggestion="quantise it"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w2, got u4b8 with scales folded to i16", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_folded : !w2_folded) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] zero-points | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected w13 without zero points, got bits=8, group=32 with zero points (plain)", Suggestion="quantise symmetrically"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_asym8 : !w13_asym8) w2(%w2_asym8 : !w2_asym8) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] group-size | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected group (24) of w13 to be -1 or a multiple of 16", Suggestion="quantise with group 32"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g24 : !w13_g24) w2(%w2_g24 : !w2_g24) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] group-divides | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected w13's input (256) to be a multiple of its group 96", Suggestion="pad to 288, or take a group that divides 256"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g96 : !w13_g96) w2(%w2_g96 : !w2_g96) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] act-order | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected 16-bit activations with act-order of w13, got int8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_sorted : !w13_sorted) w2(%w2_sorted : !w2_sorted) outs(%x : !x) {backend = "batched_marlin", activation_type = #wna16<activation_type int8>, batched} -> !x
  // expected-remark @below {{[Missed] scale-type | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected scales f16, bf16, got f32 scales of w13 with bf16 activations", Suggestion="convert the scales to bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_f32s : !w13_f32s) w2(%w2_f32s : !w2_f32s) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected activations f16, bf16, got f32 activations with f16 scales", Suggestion="run the layer in f16, bf16"}}
  wna16.fused_experts silu x(%x_f32 : !x_f32) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32_f32 : !w13_g32_f32) w2(%w2_g32_f32 : !w2_g32_f32) outs(%x_f32 : !x_f32) {backend = "batched_marlin", batched} -> !x_f32
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected 4-bit weights with fp8 activations, got bits=8 of w13", Suggestion="use activation_type a16 or int8"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_bits8 : !w13_bits8) w2(%w2_bits8 : !w2_bits8) outs(%x : !x) {backend = "batched_marlin", activation_type = #wna16<activation_type fp8>, batched} -> !x
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected at least sm_89, got sm_80", Suggestion="compile for cuda:sm_89"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "batched_marlin", activation_type = #wna16<activation_type fp8>, batched} -> !x
  // expected-remark @below {{[Missed] token-layout | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected batched tokens [E, T, K], got [M, K]", Suggestion="use a backend of the standard layout"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x_batched : !x_batched) {backend = "batched_marlin"} -> !x_batched
  // expected-remark @below {{[Missed] hidden-multiple | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected hidden size (272) to be a multiple of 64", Suggestion="pad to 320"}}
  wna16.fused_experts silu x(%x_k272 : !x_k272) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32_k272 : !w13_g32_k272) w2(%w2_g32_k272 : !w2_g32_k272) outs(%x_k272 : !x_k272) {backend = "batched_marlin", batched} -> !x_k272
  // expected-remark @below {{[Missed] intermediate-multiple | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected intermediate size with act-order (96) to be a multiple of 64", Suggestion="pad to 128"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_sorted_n96 : !w13_sorted_n96) w2(%w2_sorted_n96 : !w2_sorted_n96) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#g24 = #wna16.packed<u4b8, group = 24, layout = gptq>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#f32s = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w2_dense = tensor<8x128x256xbf16, #wna16.dense>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w13_g24 = tensor<8x256x2x128xbf16, #g24>
!w2_g24 = tensor<8x128x256xbf16, #g24>
!w13_sorted = tensor<8x256x2x128xbf16, #sorted>
!w2_sorted = tensor<8x128x256xbf16, #sorted>
!w13_f32s = tensor<8x256x2x128xbf16, #f32s>
!w2_f32s = tensor<8x128x256xbf16, #f32s>
!x_f32 = tensor<?x256xf32>
!w13_g32_f32 = tensor<8x256x2x128xf32, #g32>
!w2_g32_f32 = tensor<8x128x256xf32, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
func.func @humming(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w2_dense: !w2_dense, %w13_fp8code: !w13_fp8code, %w13_g24: !w13_g24,
    %w2_g24: !w2_g24, %w13_sorted: !w13_sorted, %w2_sorted: !w2_sorted, %w13_f32s: !w13_f32s,
    %w2_f32s: !w2_f32s, %x_f32: !x_f32, %w13_g32_f32: !w13_g32_f32, %w2_g32_f32: !w2_g32_f32,
    %weights1: tensor<?x1xf32>, %ids1: tensor<?x1xi32>) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:humming | Function=humming | Remark="Humming}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:humming | Function=humming | Reason="expected packed weights, got w2 of dense bf16", Suggestion="quantise it"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:humming | Function=humming | Reason="expected codes u4, u4b8, s4, u8, u8b128, s8 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] group-size | Category:wna16.backend:humming | Function=humming | Reason="expected group (24) of w13 to be -1 or a multiple of 16", Suggestion="quantise with group 32"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g24 : !w13_g24) w2(%w2_g24 : !w2_g24) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] act-order | Category:wna16.backend:humming | Function=humming | Reason="expected w13 without act-order, got index", Suggestion="quantise with desc_act = false"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted : !w13_sorted) w2(%w2_sorted : !w2_sorted) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] scale-type | Category:wna16.backend:humming | Function=humming | Reason="expected scales f16, bf16, got f32 scales of w13 with bf16 activations", Suggestion="convert the scales to bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_f32s : !w13_f32s) w2(%w2_f32s : !w2_f32s) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:humming | Function=humming | Reason="expected activations f16, bf16, got f32 activations with f16 scales", Suggestion="run the layer in f16, bf16"}}
  wna16.fused_experts silu x(%x_f32 : !x_f32) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_f32 : !w13_g32_f32) w2(%w2_g32_f32 : !w2_g32_f32) outs(%x_f32 : !x_f32) {backend = "humming"} -> !x_f32
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:humming | Function=humming | Reason="expected 16-bit activations, got int8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming", activation_type = #wna16<activation_type int8>} -> !x
  // expected-remark @below {{[Missed] router-weight-on-input | Category:wna16.backend:humming | Function=humming | Reason="expected the routing weight on the output, got router_weight_on_input"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights1, %ids1 : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming", router_weight_on_input} -> !x
  // expected-remark @below {{[Missed] batch-invariant | Category:wna16.backend:humming | Function=humming | Reason="the order of summation depends on the batch, got batch_invariant"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming", batch_invariant} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#bits8 = #wna16.packed<u8b128, group = 32, layout = gptq>
#fp8code = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#asym = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
#g96 = #wna16.packed<u4b8, group = 96, layout = gptq>
#g24 = #wna16.packed<u4b8, group = 24, layout = gptq>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#f32s = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>
!w2_dense = tensor<8x128x256xbf16, #wna16.dense>
!w13_bits8 = tensor<8x256x2x128xbf16, #bits8>
!w2_bits8 = tensor<8x128x256xbf16, #bits8>
!w13_fp8code = tensor<8x256x2x128xbf16, #fp8code>
!w13_asym = tensor<8x256x2x128xbf16, #asym>
!w2_asym = tensor<8x128x256xbf16, #asym>
!w13_g96 = tensor<8x256x2x128xbf16, #g96>
!w2_g96 = tensor<8x128x256xbf16, #g96>
!w13_g24 = tensor<8x256x2x128xbf16, #g24>
!w2_g24 = tensor<8x128x256xbf16, #g24>
!x_k272 = tensor<?x272xbf16>
!w13_g32_k272 = tensor<8x272x2x128xbf16, #g32>
!w2_g32_k272 = tensor<8x128x272xbf16, #g32>
!w13_sorted = tensor<8x256x2x128xbf16, #sorted>
!w2_sorted = tensor<8x128x256xbf16, #sorted>
!w13_f32s = tensor<8x256x2x128xbf16, #f32s>
!w2_f32s = tensor<8x128x256xbf16, #f32s>
!x_f16 = tensor<?x256xf16>
!w13_g32_f16 = tensor<8x256x2x128xf16, #g32>
!w2_g32_f16 = tensor<8x128x256xf16, #g32>
!w13_g32_ungated = tensor<8x256x1x128xbf16, #g32>
!x_batched = tensor<8x?x256xbf16>

module attributes {wna16.target = #wna16.target<cuda, capability = 100, libraries = ["flashinfer"]>} {
func.func @flashinfer_trtllm(%logits_bf16: tensor<?x8xbf16>, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %logits_f32: tensor<?x8xf32>, %x: !x, %w13_g32: !w13_g32,
    %w2_g32: !w2_g32, %w2_dense: !w2_dense, %w13_bits8: !w13_bits8, %w2_bits8: !w2_bits8,
    %w13_fp8code: !w13_fp8code, %w13_asym: !w13_asym, %w2_asym: !w2_asym, %w13_g96: !w13_g96,
    %w2_g96: !w2_g96, %w13_g24: !w13_g24, %w2_g24: !w2_g24, %x_k272: !x_k272,
    %w13_g32_k272: !w13_g32_k272, %w2_g32_k272: !w2_g32_k272, %w13_sorted: !w13_sorted,
    %w2_sorted: !w2_sorted, %w13_f32s: !w13_f32s, %w2_f32s: !w2_f32s, %x_f16: !x_f16,
    %w13_g32_f16: !w13_g32_f16, %w2_g32_f16: !w2_g32_f16, %w13_g32_ungated: !w13_g32_ungated,
    %bias: tensor<8x256xbf16>, %map16: tensor<16xi32>, %x_batched: !x_batched,
    %tokens: tensor<8xi32>, %weights1: tensor<?x1xf32>, %ids1: tensor<?x1xi32>,
    %map513: tensor<513xi32>, %weights9: tensor<?x9xf32>, %ids9: tensor<?x9xi32>) {
  %renormalize_w, %renormalize_i = wna16.route softmax logits(%logits_bf16 : tensor<?x8xbf16>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  %default_w, %default_i = wna16.route softmax logits(%logits_bf16 : tensor<?x8xbf16>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  %grouped_w, %grouped_i = wna16.route softmax logits(%logits_bf16 : tensor<?x8xbf16>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize, groups = 4 : i64, top_groups = 2 : i64} -> tensor<?x2xf32>, tensor<?x2xi32>
  %scaled_w, %scaled_i = wna16.route softmax logits(%logits_bf16 : tensor<?x8xbf16>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize, scaling = 2.5 : f64} -> tensor<?x2xf32>, tensor<?x2xi32>
  %single_w, %single_i = wna16.route softmax logits(%logits_f32 : tensor<?x8xf32>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Remark="FlashInfer}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] dense-weight | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected packed weights, got w2 of dense bf16", Suggestion="quantise it"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_dense : !w2_dense) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] weight-bits | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected 4-bit weights, got bits=8 of w13", Suggestion="quantise to 4 bits"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_bits8 : !w13_bits8) w2(%w2_bits8 : !w2_bits8) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] weight-code | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected codes u4, u4b8, s4 of w13, got u4fp8", Suggestion="start from the checkpoint's weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_fp8code : !w13_fp8code) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] zero-points | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected w13 without zero points, got bits=4, group=32 with zero points (plain)", Suggestion="quantise symmetrically"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_asym : !w13_asym) w2(%w2_asym : !w2_asym) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] group-size | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected group 32 of w13, got 96", Suggestion="regroup to 32"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g96 : !w13_g96) w2(%w2_g96 : !w2_g96) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] group-size | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected group 32 of w13, got 24", Suggestion="quantise with group 32"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g24 : !w13_g24) w2(%w2_g24 : !w2_g24) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] group-divides | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected w13's input (272) to be a multiple of its group 32", Suggestion="pad to 288, or take a group that divides 272"}}
  wna16.fused_experts silu x(%x_k272 : !x_k272) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_k272 : !w13_g32_k272) w2(%w2_g32_k272 : !w2_g32_k272) outs(%x_k272 : !x_k272) {backend = "flashinfer_trtllm"} -> !x_k272
  // expected-remark @below {{[Missed] act-order | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected w13 without act-order, got index", Suggestion="quantise with desc_act = false"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted : !w13_sorted) w2(%w2_sorted : !w2_sorted) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] scale-type | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected scales f16, bf16, got f32 scales of w13 with bf16 activations", Suggestion="convert the scales to bf16"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_f32s : !w13_f32s) w2(%w2_f32s : !w2_f32s) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] element-type | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected activations bf16, got f16 activations with f16 scales", Suggestion="run the layer in bf16"}}
  wna16.fused_experts silu x(%x_f16 : !x_f16) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_f16 : !w13_g32_f16) w2(%w2_g32_f16 : !w2_g32_f16) outs(%x_f16 : !x_f16) {backend = "flashinfer_trtllm"} -> !x_f16
  // expected-remark @below {{[Missed] gate | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected gated experts, got w13 of 1 half"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_ungated : !w13_g32_ungated) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected activation silu, got gelu"}}
  wna16.fused_experts gelu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] activation-limit | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected no limit of the activation, got 7.00"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm", limit = 7.0 : f64} -> !x
  // expected-remark @below {{[Missed] activation-type | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected 16-bit activations, got fp8", Suggestion="use activation_type a16"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm", activation_type = #wna16<activation_type fp8>} -> !x
  // expected-remark @below {{[Missed] bias | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected experts without bias"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) bias2(%bias : tensor<8x256xbf16>) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] expert-map | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected no expert map, got 8 of 16 experts here", Suggestion="keep all experts on the device"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) expert_map(%map16 : tensor<16xi32>) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] token-layout | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected tokens [M, K], got batched ones [E, T, K]", Suggestion="use a batched backend"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x_batched : !x_batched) {backend = "flashinfer_trtllm", batched} -> !x_batched
  // expected-remark @below {{[Missed] router-weight-on-input | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected the routing weight on the output, got router_weight_on_input"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights1, %ids1 : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm", router_weight_on_input} -> !x
  // expected-remark @below {{[Missed] routing | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="the kernel routes by Renormalize, DeepSeekV3 or Llama4, got routing method Default"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] routing | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="the kernel routes by Renormalize, DeepSeekV3 or Llama4, got routing method Unspecified"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] routing | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="the kernel routes by Renormalize, DeepSeekV3 or Llama4, got routing method Renormalize with 4 groups"}}
  wna16.fused_experts silu x(%x : !x) routing(%grouped_w, %grouped_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] routing | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="the kernel routes by Renormalize, DeepSeekV3 or Llama4 without scaling, got routing method Renormalize with scaling 2.50"}}
  wna16.fused_experts silu x(%x : !x) routing(%scaled_w, %scaled_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] router-logits | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected router logits f16 or bf16 with routing method Renormalize, got f32", Suggestion="compute the logits in 16 bits"}}
  wna16.fused_experts silu x(%x : !x) routing(%single_w, %single_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] batch-invariant | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="the order of summation depends on the batch, got batch_invariant"}}
  wna16.fused_experts silu x(%x : !x) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm", batch_invariant} -> !x
  // expected-remark @below {{[Missed] hidden-multiple | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected hidden size (272) to be a multiple of 256", Suggestion="pad to 512"}}
  wna16.fused_experts silu x(%x_k272 : !x_k272) routing(%renormalize_w, %renormalize_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32_k272 : !w13_g32_k272) w2(%w2_g32_k272 : !w2_g32_k272) outs(%x_k272 : !x_k272) {backend = "flashinfer_trtllm"} -> !x_k272
  // expected-remark @below {{[Missed] experts | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected at most 512 experts, got 513"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) expert_map(%map513 : tensor<513xi32>) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] top-k | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected at most 8 experts a token, got 9"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights9, %ids9 : tensor<?x9xf32>, tensor<?x9xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:marlin | Function=marlin | Reason="expected a cuda target, got cpu", Suggestion="compile for cuda"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "marlin"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<8x?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @batched_marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %tokens: tensor<8xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected a cuda target, got cpu", Suggestion="compile for cuda"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @humming(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:humming | Function=humming | Reason="expected a cuda target, got cpu", Suggestion="compile for cuda"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @flashinfer_trtllm(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32,
    %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-kind | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected a cuda target, got cpu", Suggestion="compile for cuda"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 75>} {
func.func @marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:marlin | Function=marlin | Reason="expected at least sm_80, got sm_75", Suggestion="compile for cuda:sm_80"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "marlin"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<8x?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 75>} {
func.func @batched_marlin(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %tokens: tensor<8xi32>) {
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="expected at least sm_80, got sm_75", Suggestion="compile for cuda:sm_80"}}
  wna16.fused_experts silu x(%x : !x) routing(%tokens : tensor<8xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "batched_marlin", batched} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 75>} {
func.func @humming(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:humming | Function=humming | Reason="expected at least sm_80, got sm_75", Suggestion="compile for cuda:sm_80"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "humming"} -> !x
  return
}
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w13_g32 = tensor<8x256x2x128xbf16, #g32>
!w2_g32 = tensor<8x128x256xbf16, #g32>

module attributes {wna16.target = #wna16.target<cuda, capability = 75>} {
func.func @flashinfer_trtllm(%x: !x, %w13_g32: !w13_g32, %w2_g32: !w2_g32,
    %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] target-capability | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected sm_100 to sm_109, got sm_75", Suggestion="compile for cuda:sm_100"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  // expected-remark @below {{[Missed] target-library | Category:wna16.backend:flashinfer_trtllm | Function=flashinfer_trtllm | Reason="expected the library flashinfer on the target", Suggestion="add libraries = ["flashinfer"] to the target"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_g32 : !w13_g32) w2(%w2_g32 : !w2_g32) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
}
