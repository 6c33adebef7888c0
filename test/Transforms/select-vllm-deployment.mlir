// DEFINE: %{vllm} = not wna16-opt %s -o /dev/null -split-input-file -remarks-filter='wna16.*' -remark-format=emitRemark
// RUN: %{vllm} -wna16-select-backend='rules=vllm deployment=flashinfer-int4' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=MODULE
// RUN: %{vllm} -wna16-select-backend='rules=vllm deployment=flashinfer-int4,lora' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LORA
// RUN: %{vllm} -wna16-select-backend='rules=vllm deployment=flashinfer-int4,all2all=flashinfer_nvlink_two_sided' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWOSIDED
// RUN: %{vllm} -wna16-select-backend='rules=vllm deployment=flashinfer-int4,all2all=flashinfer_nvlink_one_sided,eplb' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ONESIDED

// What each class refuses of a deployment, and of a module on a machine where
// the first class of the order is there. Batched, CPU and XPU classes cannot be
// asked for by name.

// MODULE: [Missed] act-and-mul | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_ungated | Reason="kernel does not support no act_and_mul MLP layer"
// MODULE: [Missed] activation | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_gelu | Reason="kernel does not support gelu activation"
// MODULE: [Missed] quantization-scheme | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_g128 | Reason="kernel does not support quantization scheme I4xnone"
// MODULE: [Missed] routing-method | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_unnormalised | Reason="kernel does not support routing method Default"
// MODULE: [Missed] router-logits | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_f32 | Reason="kernel does not support router logits dtype f32"
// MODULE: [Missed] batch-invariance | Category:wna16.backend:flashinfer_trtllm | Function=trtllm_invariant | Reason="kernel does not support batch invariance"

// LORA: [Missed] lora | Category:wna16.backend:flashinfer_trtllm | Function=trtllm | Reason="kernel does not support LoRA"
// LORA: [Missed] lora | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="kernel does not support LoRA"
// LORA: [Missed] lora | Category:wna16.backend:humming | Function=humming | Reason="kernel does not support LoRA"
// LORA: [Missed] lora | Category:wna16.backend:cpu | Function=cpu | Reason="kernel does not support LoRA"
// LORA: [Missed] lora | Category:wna16.backend:xpu | Function=xpu | Reason="kernel does not support LoRA"

// TWOSIDED: [Missed] parallel-config | Category:wna16.backend:flashinfer_trtllm | Function=trtllm | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_two_sided, eplb=False>"
// TWOSIDED: [Missed] parallel-config | Category:wna16.backend:marlin | Function=marlin | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_two_sided, eplb=False>"
// TWOSIDED: [Missed] parallel-config | Category:wna16.backend:batched_marlin | Function=batched_marlin | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_two_sided, eplb=False>"
// TWOSIDED: [Missed] parallel-config | Category:wna16.backend:humming | Function=humming | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_two_sided, eplb=False>"
// TWOSIDED: [Missed] parallel-config | Category:wna16.backend:emulation | Function=emulation | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_two_sided, eplb=False>"

// ONESIDED: [Missed] parallel-config | Category:wna16.backend:flashinfer_trtllm | Function=trtllm | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_one_sided, eplb=True>"
// ONESIDED: [Missed] parallel-config | Category:wna16.backend:humming | Function=humming | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_one_sided, eplb=True>"
// ONESIDED: [Missed] parallel-config | Category:wna16.backend:emulation | Function=emulation | Reason="kernel does not support parallel config <all2all=flashinfer_nvlink_one_sided, eplb=True>"

#ct32 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!xb = tensor<8x?x256xbf16>
!w = tensor<?x2xf32>
!i = tensor<?x2xi32>

module attributes {wna16.target = #wna16.target<cuda, capability = 100, libraries = ["flashinfer", "humming"]>} {
func.func @trtllm(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @marlin(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "marlin"} -> !x
  return
}
func.func @batched_marlin(%x: !xb, %t: tensor<8xi32>, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  wna16.fused_experts silu x(%x : !xb) routing(%t : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !xb) {batched} -> !xb
  return
}
func.func @humming(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "humming"} -> !x
  return
}
// The class that dequantises on the fly takes gated experts only.
func.func @emulation(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x1x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x1x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "emulation"} -> !x
  return
}
func.func @trtllm_ungated(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x1x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x1x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @trtllm_gelu(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts gelu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @trtllm_g128(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct128>, %w2: tensor<8x256x256xbf16, #ct128>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct128>) w2(%w2 : tensor<8x256x256xbf16, #ct128>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @trtllm_unnormalised(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @trtllm_f32(%x: !x, %l: tensor<?x8xf32>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xf32>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return
}
func.func @trtllm_batched(%x: !xb, %t: tensor<8xi32>, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  wna16.fused_experts silu x(%x : !xb) routing(%t : tensor<8xi32>)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !xb) {backend = "flashinfer_trtllm", batched} -> !xb
  return
}
func.func @trtllm_invariant(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) {backend = "flashinfer_trtllm", batch_invariant} -> !x
  return
}
}

// -----

#ct128 = #wna16.packed<u4b8, group = 128, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w = tensor<?x2xf32>
!i = tensor<?x2xi32>

module attributes {wna16.target = #wna16.target<cpu, features = ["amx-tile"]>} {
func.func @cpu(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct128>, %w2: tensor<8x256x256xbf16, #ct128>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct128>) w2(%w2 : tensor<8x256x256xbf16, #ct128>)
      outs(%x : !x) -> !x
  return
}
}

// -----

#ct32 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
!x = tensor<?x256xbf16>
!w = tensor<?x2xf32>
!i = tensor<?x2xi32>

module attributes {wna16.target = #wna16.target<xpu>} {
func.func @xpu(%x: !x, %l: tensor<?x8xbf16>, %w: !w, %i: !i, %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xbf16>) outs(%w, %i : !w, !i) {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>) w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%x : !x) -> !x
  return
}
}
