// RUN: wna16-opt %s -wna16-select-backend -split-input-file -verify-diagnostics
// RUN: not wna16-opt %s -wna16-select-backend=target=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not wna16-opt %s -wna16-select-backend=target=cuda:sm_90,cutlass -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not wna16-opt %s -wna16-select-backend=target=cuda:90 -o /dev/null 2>&1 | FileCheck %s --check-prefix=CAPABILITY
// RUN: not wna16-opt %s -wna16-select-backend="target=cpu rules=best" -o /dev/null 2>&1 | FileCheck %s --check-prefix=RULES
// RUN: not wna16-opt %s -wna16-select-backend="target=cpu explain=%t.none/table" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FILE
// LIBRARY: error: expected libraries that a backend asks for (flashinfer, humming), got 'cutlass'
// TARGET: error: expected a target cpu[:features], cuda:sm_NN[,libraries] or xpu, got 'tpu'
// CAPABILITY: error: expected a compute capability, as in cuda:sm_90, got 'cuda:90'
// RULES: error: expected rules native or vllm, got 'best'
// FILE: error: cannot write {{.*}}.none/table: No such file or directory

// expected-error @below {{expected a target: the option target=cpu, target=cuda:sm_90 or target=xpu, the module attribute wna16.target, or that entry of a dlti device}}
module {
}

// -----

#sorted = #wna16.packed<u8b128, group = 32, layout = gptq, act_order = index>
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @refused(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                     %w13: tensor<8x256x2x128xbf16, #sorted>, %w2: tensor<8x128x256xbf16, #sorted>) {
    // expected-error @+4 {{backend 'xpu' does not take the layer}}
    // expected-note @+3 {{xpu: target-kind: expected a xpu target, got cpu; compile for xpu}}
    // expected-note @+2 {{xpu: weight-bits: expected 4-bit weights, got bits=8 of w13; quantise to 4 bits}}
    // expected-note @+1 {{xpu: act-order: expected w13 without act-order, got index; quantise with desc_act = false}}
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #sorted>) w2(%w2 : tensor<8x128x256xbf16, #sorted>)
        outs(%x : tensor<?x256xbf16>) {backend = "xpu"} -> tensor<?x256xbf16>
    // Each layer has its own error.
    // expected-error @+1 {{expected auto, or one or several of flashinfer_trtllm, marlin, batched_marlin, humming, cuda, cpu, xpu, emulation, emulation_otf, got backend 'machete'}}
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #sorted>) w2(%w2 : tensor<8x128x256xbf16, #sorted>)
        outs(%x : tensor<?x256xbf16>) {backend = "machete"} -> tensor<?x256xbf16>
    return
  }
}

// -----

// int8 activations have no backend on a CPU.
#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @nobody(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                    %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) {
    // expected-error @+4 {{no backend takes the layer on cpu; cpu: expected 16-bit activations, got int8; emulation: expected 16-bit activations, got int8; emulation_otf: expected 16-bit activations, got int8}}
    // expected-note @+3 {{cpu: activation-type}}
    // expected-note @+2 {{emulation: activation-type}}
    // expected-note @+1 {{emulation_otf: activation-type}}
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
        outs(%x : tensor<?x256xbf16>) {activation_type = #wna16<activation_type int8>} -> tensor<?x256xbf16>
    return
  }
}

// -----

#plain = #wna16.packed<u4b8, group = 32, layout = gptq>
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @lists(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                   %w13: tensor<8x256x2x128xbf16, #plain>, %w2: tensor<8x128x256xbf16, #plain>) {
    // expected-error @+3 {{none of 'humming,xpu' takes the layer; humming: expected a cuda target, got cpu; xpu: expected a xpu target, got cpu}}
    // expected-note @+2 {{humming: target-kind}}
    // expected-note @+1 {{xpu: target-kind}}
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #plain>) w2(%w2 : tensor<8x128x256xbf16, #plain>)
        outs(%x : tensor<?x256xbf16>) {backend = "humming,xpu"} -> tensor<?x256xbf16>
    // expected-error @+1 {{emulation_otf, got backend ''}}
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #plain>) w2(%w2 : tensor<8x128x256xbf16, #plain>)
        outs(%x : tensor<?x256xbf16>) {backend = "cpu,"} -> tensor<?x256xbf16>
    return
  }
}
