// RUN: wna16-opt %s '-wna16-select-backend=rules=vllm deployment=flashinfer-int4' \
// RUN:   | FileCheck %s --check-prefix=INT4
// RUN: wna16-opt %s '-wna16-select-pipeline=rules=vllm deployment=flashinfer-int4,eplb' \
// RUN:   | FileCheck %s --check-prefix=EPLB
// RUN: wna16-opt %s -o /dev/null '-wna16-select-backend=rules=vllm explain=- deployment=flashinfer-int4,all2all=flashinfer_nvlink_two_sided' \
// RUN:   | FileCheck %s --check-prefix=TWOSIDED
// RUN: wna16-opt %s '-wna16-select-backend=rules=vllm deployment=flashinfer-int4,all2all=allgather_reducescatter' \
// RUN:   | FileCheck %s --check-prefix=INT4
// RUN: not wna16-opt %s '-wna16-select-backend=rules=vllm deployment=epl' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// RUN: not wna16-opt %s '-wna16-select-backend=rules=vllm deployment=lora=1' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FLAG
// RUN: not wna16-opt %s '-wna16-select-backend=rules=vllm deployment=all2all' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NAME

// What the reference system's rules ask of a deployment and no module says.

// INT4: backend = "flashinfer_trtllm"

// Load balancing leaves Marlin.
// EPLB: backend = "marlin"

// TWOSIDED: rejected: flashinfer_trtllm  parallel-config: {{.*}} <all2all=flashinfer_nvlink_two_sided, eplb=False>
// TWOSIDED: rejected: marlin  parallel-config: {{.*}} <all2all=flashinfer_nvlink_two_sided, eplb=False>

// UNKNOWN: error: deployment: expected eplb, lora, flashinfer-int4, all2all=NAME, humming-gemm=NAME; got 'epl'
// FLAG: error: deployment: expected {{.*}}; got 'lora=1'
// NAME: error: deployment: expected {{.*}}; got 'all2all'

#ct32 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>

module attributes {wna16.target = #wna16.target<cuda, capability = 100, libraries = ["flashinfer"]>} {
func.func @forward(%x: tensor<?x256xbf16>, %logits: tensor<?x8xbf16>,
    %w13: tensor<8x256x2x256xbf16, #ct32>, %w2: tensor<8x256x256xbf16, #ct32>,
    %w: tensor<?x2xf32>, %i: tensor<?x2xi32>, %init: tensor<?x256xbf16>) -> tensor<?x256xbf16> {
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x8xbf16>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  %y = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x256xbf16, #ct32>)
      w2(%w2 : tensor<8x256x256xbf16, #ct32>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  return %y : tensor<?x256xbf16>
}
}
