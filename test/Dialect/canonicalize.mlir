// Folds and merges of preparation steps.
// RUN: wna16-opt %s --canonicalize | FileCheck %s

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#gptq64 = #wna16.packed<u4b8, group = 64, layout = gptq>
#gptq128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
#ct = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#s4 = #wna16.packed<s4, group = 32, layout = compressed_tensors>
#minus = #wna16.packed<u4, group = 32, layout = gptq, zeros = minus_one>
#plain = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>

// CHECK-LABEL: func.func @same_type
// CHECK-SAME: %[[W:[a-z0-9]*]]: {{[^%]*}}, %[[B:.*]]: tensor<2x64xf16>
// CHECK-NEXT: return %[[W]], %[[W]], %[[W]], %[[W]], %[[W]], %[[B]]
func.func @same_type(%w: tensor<2x128x64xf16, #gptq>, %b: tensor<2x64xf16>)
    -> (tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>,
        tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>, tensor<2x64xf16>) {
  %0 = wna16.pad %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  %1 = wna16.regroup %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  %2 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  %3 = wna16.recode %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  %4 = wna16.convert %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  %5 = wna16.convert_bias %b : tensor<2x64xf16> to tensor<2x64xf16>
  return %0, %1, %2, %3, %4, %5 : tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>,
      tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>, tensor<2x128x64xf16, #gptq>, tensor<2x64xf16>
}

// CHECK-LABEL: func.func @repack_repack
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: %[[R:.*]] = wna16.repack %[[W]] : tensor<2x128x64xf16, #gptq{{[0-9]*}}> to tensor<2x128x64xf16, #compressed_tensors{{[0-9]*}}>
// CHECK-NEXT: return %[[R]]
func.func @repack_repack(%w: tensor<2x128x64xf16, #gptq>) -> tensor<2x128x64xf16, #ct> {
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
  %1 = wna16.repack %0 : tensor<2x128x64xf16, #marlin> to tensor<2x128x64xf16, #ct>
  return %1 : tensor<2x128x64xf16, #ct>
}

// There and back again.
// CHECK-LABEL: func.func @repack_back
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: return %[[W]]
func.func @repack_back(%w: tensor<2x128x64xf16, #gptq>) -> tensor<2x128x64xf16, #gptq> {
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
  %1 = wna16.repack %0 : tensor<2x128x64xf16, #marlin> to tensor<2x128x64xf16, #gptq>
  return %1 : tensor<2x128x64xf16, #gptq>
}

// The first of two steps stays where somebody else reads it.
// CHECK-LABEL: func.func @two_users
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-DAG: %[[A:.*]] = wna16.repack %[[W]] : {{.*}} to tensor<2x128x64xf16, #marlin>
// CHECK-DAG: %[[B:.*]] = wna16.repack %[[W]] : {{.*}} to tensor<2x128x64xf16, #compressed_tensors{{[0-9]*}}>
// CHECK: return %[[A]], %[[B]]
func.func @two_users(%w: tensor<2x128x64xf16, #gptq>)
    -> (tensor<2x128x64xf16, #marlin>, tensor<2x128x64xf16, #ct>) {
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
  %1 = wna16.repack %0 : tensor<2x128x64xf16, #marlin> to tensor<2x128x64xf16, #ct>
  return %0, %1 : tensor<2x128x64xf16, #marlin>, tensor<2x128x64xf16, #ct>
}

// CHECK-LABEL: func.func @pad_pad
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: %[[P:.*]] = wna16.pad %[[W]] : tensor<2x96x2x64xf16, #{{.*}}> to tensor<2x128x2x128xf16, #{{.*}}>
// CHECK-NEXT: return %[[P]]
func.func @pad_pad(%w: tensor<2x96x2x64xf16, #gptq>) -> tensor<2x128x2x128xf16, #gptq> {
  %0 = wna16.pad %w : tensor<2x96x2x64xf16, #gptq> to tensor<2x96x2x128xf16, #gptq>
  %1 = wna16.pad %0 : tensor<2x96x2x128xf16, #gptq> to tensor<2x128x2x128xf16, #gptq>
  return %1 : tensor<2x128x2x128xf16, #gptq>
}

// CHECK-LABEL: func.func @regroup_regroup
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: wna16.regroup %[[W]]
// CHECK-NEXT: return
func.func @regroup_regroup(%w: tensor<2x128x64xf16, #gptq128>) -> tensor<2x128x64xf16, #gptq> {
  %0 = wna16.regroup %w : tensor<2x128x64xf16, #gptq128> to tensor<2x128x64xf16, #gptq64>
  %1 = wna16.regroup %0 : tensor<2x128x64xf16, #gptq64> to tensor<2x128x64xf16, #gptq>
  return %1 : tensor<2x128x64xf16, #gptq>
}

// CHECK-LABEL: func.func @recode_recode
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: return %[[W]]
func.func @recode_recode(%w: tensor<2x128x64xf16, #ct>) -> tensor<2x128x64xf16, #ct> {
  %0 = wna16.recode %w : tensor<2x128x64xf16, #ct> to tensor<2x128x64xf16, #s4>
  %1 = wna16.recode %0 : tensor<2x128x64xf16, #s4> to tensor<2x128x64xf16, #ct>
  return %1 : tensor<2x128x64xf16, #ct>
}

// CHECK-LABEL: func.func @convert_convert
// CHECK-SAME: %[[W:.*]]: tensor
// CHECK-NEXT: wna16.convert %[[W]] : tensor<2x128x2x96xf16, #{{.*}}> to tensor<2x128x2x128xf16, #marlin>
// CHECK-NEXT: return
func.func @convert_convert(%w: tensor<2x128x2x96xf16, #gptq>) -> tensor<2x128x2x128xf16, #marlin> {
  %0 = wna16.convert %w : tensor<2x128x2x96xf16, #gptq> to tensor<2x128x2x128xf16, #gptq>
  %1 = wna16.convert %0 : tensor<2x128x2x128xf16, #gptq> to tensor<2x128x2x128xf16, #marlin>
  return %1 : tensor<2x128x2x128xf16, #marlin>
}

// CHECK-LABEL: func.func @disassemble_assemble
// CHECK-SAME: %[[C:.*]]: tensor<8x32x256xi32>, %[[S:.*]]: tensor<8x2x256xf16>
// CHECK-NEXT: return %[[C]], %[[S]]
func.func @disassemble_assemble(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x256xf16>)
    -> (tensor<8x32x256xi32>, tensor<8x2x256xf16>) {
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<8x32x256xi32>, tensor<8x2x256xf16> -> tensor<8x256x2x128xbf16, #gptq128>
  %c, %s = wna16.disassemble %w : tensor<8x256x2x128xbf16, #gptq128>
  return %c, %s : tensor<8x32x256xi32>, tensor<8x2x256xf16>
}

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

// Steps of different kinds are one convert only where the weights are hoisted.
// CHECK-LABEL: func.func @mixed_kinds
// CHECK-NEXT: wna16.pad
// CHECK-NEXT: wna16.repack
// CHECK-NEXT: wna16.pad
// CHECK-NEXT: return
func.func @mixed_kinds(%w: tensor<2x128x64xf16, #gptq>) -> tensor<2x256x128xf16, #marlin> {
  %0 = wna16.pad %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x128xf16, #gptq>
  %1 = wna16.repack %0 : tensor<2x128x128xf16, #gptq> to tensor<2x128x128xf16, #marlin>
  %2 = wna16.pad %1 : tensor<2x128x128xf16, #marlin> to tensor<2x256x128xf16, #marlin>
  return %2 : tensor<2x256x128xf16, #marlin>
}

// bf16 keeps fewer bits of a scale than f16: the detour is not the identity.
#half = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16>
// CHECK-LABEL: func.func @narrow_scales
// CHECK-NEXT: wna16.recode
// CHECK-NEXT: wna16.recode
// CHECK-NEXT: return
func.func @narrow_scales(%w: tensor<2x128x64xf16, #gptq>) -> tensor<2x128x64xf16, #gptq> {
  %0 = wna16.recode %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #half>
  %1 = wna16.recode %0 : tensor<2x128x64xf16, #half> to tensor<2x128x64xf16, #gptq>
  return %1 : tensor<2x128x64xf16, #gptq>
}

// Nobody knows what an argument was assembled from.
// CHECK-LABEL: func.func @disassemble_argument
// CHECK-NEXT: wna16.disassemble
// CHECK-NEXT: return
func.func @disassemble_argument(%w: tensor<8x256x2x128xbf16, #gptq128>)
    -> (tensor<8x32x256xi32>, tensor<8x2x256xf16>) {
  %c, %s = wna16.disassemble %w : tensor<8x256x2x128xbf16, #gptq128>
  return %c, %s : tensor<8x32x256xi32>, tensor<8x2x256xf16>
}

// Another convention of the zero points is another storage.
// CHECK-LABEL: func.func @zeros
// CHECK-NEXT: wna16.recode
// CHECK-NEXT: return
func.func @zeros(%w: tensor<2x128x64xf16, #minus>) -> tensor<2x128x64xf16, #plain> {
  %0 = wna16.recode %w : tensor<2x128x64xf16, #minus> to tensor<2x128x64xf16, #plain>
  return %0 : tensor<2x128x64xf16, #plain>
}
