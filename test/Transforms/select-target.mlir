// RUN: wna16-opt %s -wna16-select-backend -split-input-file | FileCheck %s
// The option wins over the module.
// RUN: wna16-opt %s -wna16-select-backend=target=cpu:avx2 -split-input-file | FileCheck %s --check-prefix=OPTION

// CHECK: module attributes {{.*}}wna16.target = #wna16.target<xpu>
// CHECK: {backend = "xpu"}
// OPTION: wna16.target = #wna16.target<cpu, features = ["avx2"]>
// OPTION: {backend = "cpu"}
#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
module attributes {wna16.target = #wna16.target<xpu>} {
  func.func @attribute(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                       %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) {
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
        outs(%x : tensor<?x256xbf16>) -> tensor<?x256xbf16>
    return
  }
}

// -----

// From the second device of a dlti system.
// CHECK: wna16.target = #wna16.target<cuda, capability = 90>
// CHECK: {backend = "marlin"}
// OPTION: {backend = "cpu"}
#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
    "CPU" = #dlti.target_device_spec<"vector_width" = 512 : i32>,
    "GPU" = #dlti.target_device_spec<"wna16.target" = #wna16.target<cuda, capability = 90>>>} {
  func.func @dlti(%x: tensor<?x256xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
                  %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) {
    wna16.fused_experts silu x(%x : tensor<?x256xbf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>)
        outs(%x : tensor<?x256xbf16>) -> tensor<?x256xbf16>
    return
  }
}
