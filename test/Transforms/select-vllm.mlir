// RUN: wna16-opt %s -wna16-select-backend=rules=vllm -split-input-file \
// RUN:   -remarks-filter='wna16.*' -remark-format=emitRemark -verify-diagnostics=only-expected

// The reference system's rules: for each backend the first unmet test in the
// reference's words. What only a deployment knows (all-to-all, load balancing,
// LoRA, environment variables) comes from an option: select-deployment.mlir.

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
#sorted128 = #wna16.packed<u4b8, group = 128, layout = gptq, act_order = index>
#awq = #wna16.packed<u4b8, group = 128, layout = awq>
#gptqasym = #wna16.packed<u4, group = 128, layout = gptq, zeros = plain>
#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
#gptq64 = #wna16.packed<u4b8, group = 64, layout = gptq>
#gptq16 = #wna16.packed<u4b8, group = 16, layout = gptq>
!x = tensor<?x256xbf16>
!w13_ct128 = tensor<8x256x2x128xbf16, #ct128>
!w2_ct128 = tensor<8x128x256xbf16, #ct128>
!x_batched = tensor<8x?x256xbf16>
!w13_ct128_ungated = tensor<8x256x1x128xbf16, #ct128>
!w13_sorted128 = tensor<8x256x2x128xbf16, #sorted128>
!w2_sorted128 = tensor<8x128x256xbf16, #sorted128>
!w13_awq = tensor<8x256x2x128xbf16, #awq>
!w2_awq = tensor<8x128x256xbf16, #awq>
!w13_gptqasym = tensor<8x256x2x128xbf16, #gptqasym>
!w2_gptqasym = tensor<8x128x256xbf16, #gptqasym>
!w13_gptq = tensor<8x256x2x128xbf16, #gptq>
!x_k320 = tensor<?x320xbf16>
!w13_gptq64_k320 = tensor<8x320x2x128xbf16, #gptq64>
!w2_gptq64_k320 = tensor<8x128x320xbf16, #gptq64>
!w13_gptq64_n96 = tensor<8x256x2x96xbf16, #gptq64>
!w2_gptq64_n96 = tensor<8x96x256xbf16, #gptq64>
!w13_gptq16 = tensor<8x256x2x128xbf16, #gptq16>
!w2_gptq16 = tensor<8x128x256xbf16, #gptq16>
!w2_gptq = tensor<8x128x256xbf16, #gptq>
!w13_sorted128_n64 = tensor<8x256x2x64xbf16, #sorted128>
!w2_sorted128_n64 = tensor<8x64x256xbf16, #sorted128>

module attributes {wna16.target = #wna16.target<cuda, capability = 90, libraries = ["humming"]>} {
func.func @cuda(%x: !x, %w13_ct128: !w13_ct128, %w2_ct128: !w2_ct128, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %x_batched: !x_batched, %tokens: tensor<8xi32>,
    %w13_ct128_ungated: !w13_ct128_ungated, %map993: tensor<993xi32>, %map992: tensor<992xi32>,
    %w13_sorted128: !w13_sorted128, %w2_sorted128: !w2_sorted128, %w13_awq: !w13_awq,
    %w2_awq: !w2_awq, %w13_gptqasym: !w13_gptqasym, %w2_gptqasym: !w2_gptqasym,
    %w13_gptq: !w13_gptq, %x_k320: !x_k320, %w13_gptq64_k320: !w13_gptq64_k320,
    %w2_gptq64_k320: !w2_gptq64_k320, %w13_gptq64_n96: !w13_gptq64_n96,
    %w2_gptq64_n96: !w2_gptq64_n96, %w13_gptq16: !w13_gptq16, %w2_gptq16: !w2_gptq16,
    %w2_gptq: !w2_gptq, %weights1: tensor<?x1xf32>, %ids1: tensor<?x1xi32>,
    %w13_sorted128_n64: !w13_sorted128_n64, %w2_sorted128_n64: !w2_sorted128_n64) {
  // The order of a CUDA machine.
  // expected-remark @below {{[Missed] device | Category:wna16.backend:flashinfer_trtllm | Function=cuda | Reason="kernel does not support current device cuda"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:marlin | Function=cuda | Remark="Marlin kernels on NVIDIA GPUs; MARLIN (MarlinExperts)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // Batched tokens.
  // expected-remark @below {{[Missed] activation-format | Category:wna16.backend:marlin | Function=cuda | Reason="kernel does not support Batched activation format"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:batched_marlin | Function=cuda | Remark="Marlin kernels on NVIDIA GPUs, tokens batched by expert; BATCHED_MARLIN (BatchedMarlinExperts)"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x_batched : !x_batched) {batched} -> !x_batched
  // An activation that no class has.
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:marlin | Function=cuda | Reason="kernel does not support relu2 activation"}}
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:batched_marlin | Function=cuda | Reason="kernel does not support relu2 activation"}}
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:humming | Function=cuda | Reason="kernel does not support relu2 activation"}}
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel does not support relu2 activation"}}
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:emulation | Function=cuda | Reason="kernel does not support relu2 activation"}}
  // expected-error @below {{NotImplementedError: no backend supports the deployment configuration}}
  wna16.fused_experts relu2 x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // An explicit backend is refused, not replaced.
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:humming | Function=cuda | Reason="kernel does not support swigluoai_uninterleave activation"}}
  // expected-error @below {{ValueError: requested backend 'humming' does not support the quantization configuration; use auto; WNA16 MoE backend 'HUMMING' does not support the deployment configuration since kernel does not support swigluoai_uninterleave activation.}}
  wna16.fused_experts swigluoai x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "humming"} -> !x
  // Emulation names two classes, on the fly first.
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel does not support swigluoai_uninterleave activation"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation | Function=cuda | Remark="linalg on weights that are dequantised ahead of time; EMULATION (Int4EmulationTriton)"}}
  wna16.fused_experts swigluoai x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel does not support swiglustep activation"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation | Function=cuda | Remark="linalg on weights that are dequantised ahead of time; EMULATION (Int4EmulationTriton)"}}
  wna16.fused_experts swiglustep x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "emulation", limit = 7.0 : f64} -> !x
  // Without a gate.
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel does not support silu_no_mul activation"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation | Function=cuda | Remark="linalg on weights that are dequantised ahead of time; EMULATION (Int4EmulationTriton)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128_ungated : !w13_ct128_ungated) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Missed] activation-format | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel does not support Batched activation format"}}
  // expected-remark @below {{[Missed] activation-format | Category:wna16.backend:emulation | Function=cuda | Reason="kernel does not support Batched activation format"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x_batched : !x_batched) {backend = "emulation", batched} -> !x_batched
  // 993 experts are padded to 1024.
  // expected-remark @below {{[Missed] padded-experts | Category:wna16.backend:emulation_otf | Function=cuda | Reason="kernel's moe_align_block_size requires fewer than 1024 padded experts"}}
  // expected-remark @below {{[Missed] padded-experts | Category:wna16.backend:emulation | Function=cuda | Reason="kernel's moe_align_block_size requires fewer than 1024 padded experts"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) expert_map(%map993 : tensor<993xi32>) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) expert_map(%map992 : tensor<992xi32>) outs(%x : !x) {backend = "emulation"} -> !x
  // expected-remark @below {{[Missed] batch-invariance | Category:wna16.backend:humming | Function=cuda | Reason="kernel does not support batch invariance"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "humming", batch_invariant} -> !x
  // Selection lets it through, conversion refuses.
  // expected-remark @below {{[Missed] conversion | Category:wna16.backend:humming | Function=cuda | Reason="TypeError: HUMMING converts AutoGPTQ and AutoAWQ, got compressed-tensors"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] conversion | Category:wna16.backend:humming | Function=cuda | Reason="AssertionError: HUMMING takes GPTQ without desc_act"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted128 : !w13_sorted128) w2(%w2_sorted128 : !w2_sorted128) outs(%x : !x) {backend = "humming"} -> !x
  // expected-remark @below {{[Missed] conversion | Category:wna16.backend:marlin | Function=cuda | Reason="ValueError: MARLIN needs the qzeros of both AWQ weights"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_awq : !w13_awq) w2(%w2_awq : !w2_awq) outs(%x : !x) {backend = "marlin"} -> !x
  // Names that cannot be asked for.
  // expected-error @below {{ValueError: expected marlin, humming, flashinfer_trtllm, emulation or auto, got 'cpu'}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "cpu"} -> !x
  // Methods.
  // expected-error @below {{ValueError: AutoGPTQ takes bits 4 or 8 with sym=True, got bits=4, sym=False}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_gptqasym : !w13_gptqasym) w2(%w2_gptqasym : !w2_gptqasym) outs(%x : !x) -> !x
  // expected-error @below {{expected w13 and w2 of one checkpoint layout (gptq, awq, compressed_tensors, otf) and width}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_gptq : !w13_gptq) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // What Marlin cannot hold is turned over to moe_wna16.
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; AutoGPTQ falls back to moe_wna16 since hidden size 320 is not a multiple of 128; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x_k320 : !x_k320) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_gptq64_k320 : !w13_gptq64_k320) w2(%w2_gptq64_k320 : !w2_gptq64_k320) outs(%x_k320 : !x_k320) -> !x_k320
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; AutoGPTQ falls back to moe_wna16 since intermediate size 96 is not a multiple of group 64; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_gptq64_n96 : !w13_gptq64_n96) w2(%w2_gptq64_n96 : !w2_gptq64_n96) outs(%x : !x) -> !x
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; AutoGPTQ falls back to moe_wna16 since group 16 is none of -1, 32, 64, 128; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_gptq16 : !w13_gptq16) w2(%w2_gptq16 : !w2_gptq16) outs(%x : !x) -> !x
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; AutoGPTQ falls back to moe_wna16 since the router weight is applied on the input; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights1, %ids1 : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13_gptq : !w13_gptq) w2(%w2_gptq : !w2_gptq) outs(%x : !x) {router_weight_on_input} -> !x
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=cuda | Remark="linalg that dequantises where a weight is used; AutoGPTQ falls back to moe_wna16 since intermediate size 64 is not a multiple of 128 and act-order forbids padding; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted128_n64 : !w13_sorted128_n64) w2(%w2_sorted128_n64 : !w2_sorted128_n64) outs(%x : !x) -> !x
  return
}
}

// -----

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w13_ct128 = tensor<8x256x2x128xbf16, #ct128>
!w2_ct128 = tensor<8x128x256xbf16, #ct128>

module attributes {wna16.target = #wna16.target<cuda, capability = 70, libraries = ["humming"]>} {
func.func @old_cuda(%x: !x, %w13_ct128: !w13_ct128, %w2_ct128: !w2_ct128, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>) {
  // expected-remark @below {{[Missed] device | Category:wna16.backend:flashinfer_trtllm | Function=old_cuda | Reason="kernel does not support current device cuda"}}
  // expected-remark @below {{[Missed] device | Category:wna16.backend:marlin | Function=old_cuda | Reason="kernel does not support current device cuda"}}
  // expected-remark @below {{[Missed] device | Category:wna16.backend:batched_marlin | Function=old_cuda | Reason="kernel does not support current device cuda"}}
  // expected-remark @below {{[Missed] device | Category:wna16.backend:humming | Function=old_cuda | Reason="kernel does not support current device cuda"}}
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:emulation_otf | Function=old_cuda | Remark="linalg that dequantises where a weight is used; EMULATION (TritonWNA16OTF)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  return
}
}

// -----

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
#ctasym = #wna16.packed<u4, group = 128, layout = compressed_tensors, zeros = plain>
#ct32 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#ctasym32 = #wna16.packed<u4, group = 32, layout = compressed_tensors, zeros = plain>
#ct8 = #wna16.packed<u8b128, group = 128, layout = compressed_tensors>
#sorted128 = #wna16.packed<u4b8, group = 128, layout = gptq, act_order = index>
!x = tensor<?x256xbf16>
!w13_ct128 = tensor<8x256x2x128xbf16, #ct128>
!w2_ct128 = tensor<8x128x256xbf16, #ct128>
!w13_ct128_ungated = tensor<8x256x1x128xbf16, #ct128>
!w13_ctasym = tensor<8x256x2x128xbf16, #ctasym>
!w2_ctasym = tensor<8x128x256xbf16, #ctasym>
!w13_ct32 = tensor<8x256x2x128xbf16, #ct32>
!w2_ct32 = tensor<8x128x256xbf16, #ct32>
!w13_ctasym32 = tensor<8x256x2x128xbf16, #ctasym32>
!w2_ctasym32 = tensor<8x128x256xbf16, #ctasym32>
!w13_ct8 = tensor<8x256x2x128xbf16, #ct8>
!w2_ct8 = tensor<8x128x256xbf16, #ct8>
!w13_sorted128 = tensor<8x256x2x128xbf16, #sorted128>
!w2_sorted128 = tensor<8x128x256xbf16, #sorted128>

module attributes {wna16.target = #wna16.target<cpu, features = ["amx-tile"]>} {
func.func @cpu(%logits_f32: tensor<?x8xf32>, %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>,
    %weights1: tensor<?x1xf32>, %ids1: tensor<?x1xi32>, %x: !x, %w13_ct128: !w13_ct128,
    %w2_ct128: !w2_ct128, %w13_ct128_ungated: !w13_ct128_ungated, %w13_ctasym: !w13_ctasym,
    %w2_ctasym: !w2_ctasym, %w13_ct32: !w13_ct32, %w2_ct32: !w2_ct32, %w13_ctasym32: !w13_ctasym32,
    %w2_ctasym32: !w2_ctasym32, %w13_ct8: !w13_ct8, %w2_ct8: !w2_ct8,
    %w13_sorted128: !w13_sorted128, %w2_sorted128: !w2_sorted128) {
  %default_w, %default_i = wna16.route softmax logits(%logits_f32 : tensor<?x8xf32>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  %sigmoid_w, %sigmoid_i = wna16.route sigmoid logits(%logits_f32 : tensor<?x8xf32>)
      outs(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  %llama_w, %llama_i = wna16.route sigmoid logits(%logits_f32 : tensor<?x8xf32>)
      outs(%weights1, %ids1 : tensor<?x1xf32>, tensor<?x1xi32>) -> tensor<?x1xf32>, tensor<?x1xi32>
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:cpu | Function=cpu | Remark="kernels of the runtime for any CPU; CPU (CPUExpertsInt4)"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // A name of another platform.
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:cpu | Function=cpu | Remark="kernels of the runtime for any CPU; 'marlin' is not supported on this platform; falling back to auto; CPU (CPUExpertsInt4)"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {backend = "marlin"} -> !x
  // expected-remark @below {{[Missed] act-and-mul | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support no act_and_mul MLP layer"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128_ungated : !w13_ct128_ungated) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support gelu activation"}}
  wna16.fused_experts gelu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support quantization scheme I4asymxnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ctasym : !w13_ctasym) w2(%w2_ctasym : !w2_ctasym) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support quantization scheme I4g32xnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct32 : !w13_ct32) w2(%w2_ct32 : !w2_ct32) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support quantization scheme I4g32asymxnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ctasym32 : !w13_ctasym32) w2(%w2_ctasym32 : !w2_ctasym32) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support quantization scheme I8xnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct8 : !w13_ct8) w2(%w2_ct8 : !w2_ct8) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] routing-method | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support routing method Unspecified"}}
  wna16.fused_experts silu x(%x : !x) routing(%sigmoid_w, %sigmoid_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] routing-method | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support routing method Llama4"}}
  wna16.fused_experts silu x(%x : !x) routing(%llama_w, %llama_i : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] batch-invariance | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support batch invariance"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {batch_invariant} -> !x
  // expected-remark @below {{[Missed] conversion | Category:wna16.backend:cpu | Function=cpu | Reason="NotImplementedError: CPU takes GPTQ without desc_act"}}
  wna16.fused_experts silu x(%x : !x) routing(%default_w, %default_i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_sorted128 : !w13_sorted128) w2(%w2_sorted128 : !w2_sorted128) outs(%x : !x) -> !x
  return
}
}

// -----

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w13_ct128 = tensor<8x256x2x128xbf16, #ct128>
!w2_ct128 = tensor<8x128x256xbf16, #ct128>

module attributes {wna16.target = #wna16.target<cpu>} {
func.func @plain_cpu(%x: !x, %w13_ct128: !w13_ct128, %w2_ct128: !w2_ct128,
    %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>) {
  // Its kernel needs AMX.
  // expected-remark @below {{[Missed] device | Category:wna16.backend:cpu | Function=plain_cpu | Reason="kernel does not support current device cpu"}}
  // expected-error @below {{NotImplementedError: no backend supports the deployment configuration; WNA16 MoE backend 'CPU' does not support the deployment configuration since kernel does not support current device cpu.}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  return
}
}

// -----

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
#ctasym = #wna16.packed<u4, group = 128, layout = compressed_tensors, zeros = plain>
#ct8 = #wna16.packed<u8b128, group = 128, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w13_ct128 = tensor<8x256x2x128xbf16, #ct128>
!w2_ct128 = tensor<8x128x256xbf16, #ct128>
!w13_ct128_ungated = tensor<8x256x1x128xbf16, #ct128>
!w13_ctasym = tensor<8x256x2x128xbf16, #ctasym>
!w2_ctasym = tensor<8x128x256xbf16, #ctasym>
!w13_ct8 = tensor<8x256x2x128xbf16, #ct8>
!w2_ct8 = tensor<8x128x256xbf16, #ct8>
!x_batched = tensor<8x?x256xbf16>

module attributes {wna16.target = #wna16.target<xpu>} {
func.func @xpu(%x: !x, %w13_ct128: !w13_ct128, %w2_ct128: !w2_ct128, %weights: tensor<?x2xf32>,
    %ids: tensor<?x2xi32>, %w13_ct128_ungated: !w13_ct128_ungated, %w13_ctasym: !w13_ctasym,
    %w2_ctasym: !w2_ctasym, %w13_ct8: !w13_ct8, %w2_ct8: !w2_ct8, %x_batched: !x_batched,
    %tokens: tensor<8xi32>) {
  // expected-remark @below {{[Passed] chosen | Category:wna16.backend:xpu | Function=xpu | Remark="OpenCL kernels on Intel GPUs; XPU (XPUExpertsWNA16)"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support relu2 activation"}}
  wna16.fused_experts relu2 x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] activation | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support silu_no_mul activation"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128_ungated : !w13_ct128_ungated) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support quantization scheme I4asymxnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ctasym : !w13_ctasym) w2(%w2_ctasym : !w2_ctasym) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] quantization-scheme | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support quantization scheme I8xnone"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct8 : !w13_ct8) w2(%w2_ct8 : !w2_ct8) outs(%x : !x) -> !x
  // expected-remark @below {{[Missed] activation-format | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support Batched activation format"}}
  wna16.fused_experts silu x(%x_batched : !x_batched) routing(%tokens : tensor<8xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x_batched : !x_batched) {batched} -> !x_batched
  // expected-remark @below {{[Missed] batch-invariance | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support batch invariance"}}
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13_ct128 : !w13_ct128) w2(%w2_ct128 : !w2_ct128) outs(%x : !x) {batch_invariant} -> !x
  return
}
}
