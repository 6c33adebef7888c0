// RUN: wna16-opt %s -wna16-hoist-prepare | FileCheck %s

// Steps that would lose the rounding of scales between them stay apart.

#f32 = #wna16.packed<u4b8, group = 32, layout = gptq, scale = f32>
#f16 = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin, scale = f32>
#marlin16 = #wna16.packed<u4b8, group = 32, layout = marlin>

// CHECK-LABEL: func.func @rounds_prepare_weight
// CHECK: wna16.recode {{.*}} to tensor<64x64xf32, #[[F16:.*]]>
// CHECK-NEXT: wna16.repack
// CHECK-LABEL: func.func @rounds
func.func @rounds(%x: tensor<?x64xf32>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %q = wna16.parameter "w.qweight" : tensor<8x64xi32>
  %s = wna16.parameter "w.scales" : tensor<2x64xf32>
  %w = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xf32> -> tensor<64x64xf32, #f32>
  %w1 = wna16.recode %w : tensor<64x64xf32, #f32> to tensor<64x64xf32, #f16>
  %w2 = wna16.repack %w1 : tensor<64x64xf32, #f16> to tensor<64x64xf32, #marlin>
  %y = wna16.linear x(%x : tensor<?x64xf32>) weight(%w2 : tensor<64x64xf32, #marlin>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The last step rounds as the first one would.
// CHECK-LABEL: func.func @once_prepare_weight
// CHECK: wna16.convert
// CHECK-LABEL: func.func @once
func.func @once(%x: tensor<?x64xf32>, %init: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %q = wna16.parameter "w.qweight" : tensor<8x64xi32>
  %s = wna16.parameter "w.scales" : tensor<2x64xf32>
  %w = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xf32> -> tensor<64x64xf32, #f32>
  %w1 = wna16.recode %w : tensor<64x64xf32, #f32> to tensor<64x64xf32, #f16>
  %w2 = wna16.repack %w1 : tensor<64x64xf32, #f16> to tensor<64x64xf32, #marlin16>
  %y = wna16.linear x(%x : tensor<?x64xf32>) weight(%w2 : tensor<64x64xf32, #marlin16>) outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
