// REQUIRES: stock-mlir-opt
// The stock tool reads the dialect out of the plugin and prints it back.
// RUN: mlir-opt-22 %s --load-dialect-plugin=%wna16_plugin | wna16-opt | FileCheck %s

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// CHECK: func.func @same(%[[W:.*]]: tensor<2x128x64xf16, #gptq>)
// CHECK: wna16.disassemble %[[W]] : tensor<2x128x64xf16, #gptq>
func.func @same(%w: tensor<2x128x64xf16, #gptq>) -> tensor<2x16x64xi32> {
  %c, %s = wna16.disassemble %w : tensor<2x128x64xf16, #gptq>
  return %c : tensor<2x16x64xi32>
}
