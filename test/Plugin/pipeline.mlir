// REQUIRES: stock-mlir-opt
// The stock tool runs the whole pipeline out of the plugin, as our tool does.
// RUN: mlir-opt-22 %s --load-dialect-plugin=%wna16_plugin --load-pass-plugin=%wna16_plugin \
// RUN:   --pass-pipeline='builtin.module(wna16-pipeline{target=cpu})' -o %t.stock
// RUN: FileCheck %s --input-file=%t.stock
// RUN: wna16-opt %s --pass-pipeline='builtin.module(wna16-pipeline{target=cpu})' -o %t.own
// RUN: diff %t.stock %t.own

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// CHECK-NOT: wna16.fused_experts
// CHECK: llvm.func {{.*}}@forward
func.func @forward(%x: tensor<?x64xbf16>, %logits: tensor<?x4xf32>,
                   %w13: tensor<4x64x2x64xbf16, #gptq>,
                   %w2: tensor<4x64x64xbf16, #gptq>) -> tensor<?x64xbf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %w = tensor.empty(%m) : tensor<?x2xf32>
  %i = tensor.empty(%m) : tensor<?x2xi32>
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  %init = tensor.empty(%m) : tensor<?x64xbf16>
  %y = wna16.fused_experts silu x(%x : tensor<?x64xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<4x64x2x64xbf16, #gptq>) w2(%w2 : tensor<4x64x64xbf16, #gptq>)
      outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
