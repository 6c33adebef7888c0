// RUN: wna16-opt %s -wna16-select-backend=target=cuda:sm_90 | FileCheck %s --check-prefix=CUDA
// RUN: wna16-opt %s -wna16-select-backend=target=cpu | FileCheck %s --check-prefix=CPU
// RUN: wna16-opt %s -wna16-select-backend="target=cpu backend=emulation" | FileCheck %s --check-prefix=EMULATION
// RUN: wna16-opt %s -wna16-select-backend="target=cuda:sm_90 explain=-" -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: wna16-opt %s -wna16-select-backend="target=cuda:sm_90 explain=%t.json" -o /dev/null
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: wna16-opt %s -wna16-select-backend=target=cuda:sm_90 -o /dev/null \
// RUN:   -remarks-filter='wna16.*' -remark-format=yaml -remarks-output-file=%t.yaml
// RUN: FileCheck %s --check-prefix=YAML --input-file=%t.yaml
// A layer without a backend does not hide the others' rows.
// RUN: not wna16-opt %s -wna16-select-backend="target=cuda:sm_90 backend=marlin explain=%t.txt" -o /dev/null
// RUN: FileCheck %s --check-prefix=REFUSED --input-file=%t.txt

// Names are an order: what the first does not take is for the next.
// RUN: wna16-opt %s -wna16-select-backend="target=cuda:sm_90 backend=humming,marlin,cuda" \
// RUN:   | FileCheck %s --check-prefix=LIST

// The target becomes the module's.
// CUDA: module attributes {wna16.target = #wna16.target<cuda, capability = 90>}
// CPU: module attributes {wna16.target = #wna16.target<cpu>}

// TEXT: layer_0 on cuda:sm_90
// TEXT-NEXT:   chosen: marlin (Marlin kernels on NVIDIA GPUs)
// TEXT-NEXT:     w13: u4b8 group 32 gptq [8, 256, 2, 96] -> u4b8 group 32 marlin [8, 256, 2, 128]
// TEXT-NEXT:     w2:  u4b8 group 32 gptq [8, 96, 1, 256] -> u4b8 group 32 marlin [8, 128, 1, 256]
// TEXT-NEXT:     extra roundings: weights, slots
// TEXT-NEXT:   rejected: flashinfer_trtllm  target-capability: expected sm_100 to sm_109, got sm_90; compile for cuda:sm_100
// TEXT:   not reached: batched_marlin  token-layout: expected batched tokens [E, T, K], got [M, K]; use a backend of the standard layout
// TEXT-NEXT:   not reached: humming  takes the layer too
// TEXT-NEXT:   not reached: cuda  takes the layer too
// TEXT: model.layers.1.mlp on cuda:sm_90
// TEXT-NEXT:   chosen: cuda
// TEXT-NEXT:     w13: u4b8 group 32 act-order index gptq [8, 256, 2, 96] -> bf16 dense [8, 256, 2, 96]
// TEXT:   rejected: marlin  intermediate-multiple: expected intermediate size with act-order (96) to be a multiple of 64; pad to 128
// TEXT:   rejected: humming  act-order: expected w13 without act-order, got index; quantise with desc_act = false

// JSON: "target": "cuda:sm_90"
// JSON: "name": "layer_0",
// JSON-NEXT: "backend": "marlin",
// JSON-NEXT: "w13": "u4b8 group 32 marlin [8, 256, 2, 128]",
// JSON-NEXT: "w2": "u4b8 group 32 marlin [8, 128, 1, 256]",
// JSON-NEXT: "rounds": "weights, slots",
// JSON: "backend": "flashinfer_trtllm",
// JSON: "constraint": "target-library",
// JSON-NEXT: "reason": "expected the library flashinfer on the target",
// JSON-NEXT: "remedy": "add libraries = [\"flashinfer\"] to the target"
// JSON: "backend": "marlin",
// JSON-NEXT: "reached": true,
// JSON-NEXT: "rejections": []
// JSON: "backend": "humming",
// JSON-NEXT: "reached": false,
// JSON: "name": "model.layers.1.mlp",
// JSON-NEXT: "backend": "cuda",

// YAML: --- !Missed
// YAML-NEXT: Pass: {{ *}}'wna16.backend:flashinfer_trtllm'
// YAML-NEXT: Name: {{ *}}target-capability
// YAML: Function: {{ *}}layer_0
// YAML: - Reason: {{ *}}expected sm_100 to sm_109, got sm_90
// YAML-NEXT: - Suggestion: {{ *}}'compile for cuda:sm_100'
// YAML: --- !Passed
// YAML-NEXT: Pass: {{ *}}'wna16.backend:marlin'
// YAML-NEXT: Name: {{ *}}chosen
// A rejection without remedy has no suggestion.
// YAML: Name: {{ *}}routing
// YAML: Function: {{ *}}layer_1
// YAML: - Reason: {{.*}}the kernel routes by
// YAML-NEXT: {{^[.][.][.]}}

// REFUSED: layer_0 on cuda:sm_90
// REFUSED-NEXT:   chosen: marlin
// REFUSED: model.layers.1.mlp on cuda:sm_90
// REFUSED-NEXT:   chosen: none
// REFUSED-NEXT:   note: backend 'marlin' does not take the layer: intermediate-multiple

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
!x = tensor<?x256xbf16>
!w = tensor<?x2xf32>
!i = tensor<?x2xi32>

// LIST-LABEL: func.func @layer_0(
// LIST: wna16.fused_experts {{.*}}backend = "humming"
// LIST-LABEL: func.func @layer_1(
// LIST: wna16.fused_experts {{.*}}backend = "cuda"

// linear and route are emulated only where every layer is.
// CUDA-LABEL: func.func @layer_0(
// CUDA: wna16.route {{.*}} {renormalize} ->
// CUDA: wna16.fused_experts {{.*}} {backend = "marlin"}
// CPU-LABEL: func.func @layer_0(
// CPU: wna16.route {{.*}} {renormalize} ->
// CPU: wna16.fused_experts {{.*}} {backend = "cpu"}
// EMULATION-LABEL: func.func @layer_0(
// EMULATION: wna16.route {{.*}} {backend = "emulation", renormalize}
// EMULATION: wna16.fused_experts {{.*}} {backend = "emulation"}
func.func @layer_0(%x: !x, %l: tensor<?x8xf32>, %w: !w, %i: !i,
                   %w13: tensor<8x256x2x96xbf16, #gptq>, %w2: tensor<8x96x256xbf16, #gptq>) {
  %weights, %ids = wna16.route softmax logits(%l : tensor<?x8xf32>) outs(%w, %i : !w, !i)
      {renormalize} -> !w, !i
  wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : !w, !i)
      w13(%w13 : tensor<8x256x2x96xbf16, #gptq>) w2(%w2 : tensor<8x96x256xbf16, #gptq>) outs(%x : !x) -> !x
  return
}

// CUDA-LABEL: func.func @layer_1(
// CUDA: wna16.fused_experts {{.*}} {backend = "cuda"}
// CPU-LABEL: func.func @layer_1(
// CPU: wna16.fused_experts {{.*}} {backend = "cpu"}
func.func @layer_1(%x: !x, %w: !w, %i: !i,
                   %w13: tensor<8x256x2x96xbf16, #sorted>, %w2: tensor<8x96x256xbf16, #sorted>) {
  wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x96xbf16, #sorted>) w2(%w2 : tensor<8x96x256xbf16, #sorted>) outs(%x : !x) -> !x
      loc("model.layers.1.mlp")
  return
}
