// RUN: wna16-opt %s | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --emit-bytecode | wna16-opt | FileCheck %s
// RUN: wna16-opt %s -canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK: #wna16.packed<u4b8, group = 128, layout = gptq, act_order = index, groups = 4>

#g128 = #wna16.packed<u4, group = 128, layout = gptq, zeros = plain>
#g64 = #wna16.packed<u4, group = 64, layout = gptq, zeros = plain>
#marlin = #wna16.packed<u4, group = 64, layout = marlin, zeros = plain>
#index = #wna16.packed<u4b8, group = 128, layout = gptq, act_order = index>
#kept = #wna16.packed<u4b8, group = 128, layout = gptq, act_order = index, groups = 4>

// A group that straddles two shares is repeated at gcd(128, 192).
// CHECK-LABEL: func.func @input
// CHECK: wna16.shard %{{.*}} input rank 1 of 4 : tensor<2x768x64xbf16, #{{.*}}> to tensor<2x192x64xbf16, #{{.*}}>
func.func @input(%w: tensor<2x768x64xbf16, #g128>) -> tensor<2x192x64xbf16, #g64> {
  %0 = wna16.shard %w input rank 1 of 4 : tensor<2x768x64xbf16, #g128> to tensor<2x192x64xbf16, #g64>
  return %0 : tensor<2x192x64xbf16, #g64>
}

// Outputs of each half.
// CHECK-LABEL: func.func @output
// CHECK: wna16.shard %{{.*}} output rank 3 of 4 : tensor<2x128x2x768xbf16, #{{.*}}> to tensor<2x128x2x192xbf16, #{{.*}}>
func.func @output(%w: tensor<2x128x2x768xbf16, #g128>) -> tensor<2x128x2x192xbf16, #g128> {
  %0 = wna16.shard %w output rank 3 of 4 : tensor<2x128x2x768xbf16, #g128> to tensor<2x128x2x192xbf16, #g128>
  return %0 : tensor<2x128x2x192xbf16, #g128>
}

// Case B23: rows that belong to groups by index keep all groups.
// CHECK-LABEL: func.func @B23
// CHECK: to tensor<2x256x64xbf16, #{{.*}}>
// CHECK: wna16.disassemble %{{.*}} : tensor<2x256x64xbf16
func.func @B23(%w: tensor<2x512x64xbf16, #index>) -> (tensor<2x4x64xf16>, tensor<2x256xi32>) {
  %0 = wna16.shard %w input rank 1 of 2 : tensor<2x512x64xbf16, #index> to tensor<2x256x64xbf16, #kept>
  %c, %s, %i = wna16.disassemble %0 : tensor<2x256x64xbf16, #kept>
  return %s, %i : tensor<2x4x64xf16>, tensor<2x256xi32>
}

// CHECK-LABEL: func.func @dense_and_biases
func.func @dense_and_biases(%w: tensor<2x100x64xbf16, #wna16.dense>, %b: tensor<2x2x768xf32>,
                            %t: tensor<2x2x768xf32, #wna16.bias<layout = interleaved>>) {
  // CHECK: tensor<2x100x64xbf16, #wna16.dense> to tensor<2x50x64xbf16, #wna16.dense>
  %0 = wna16.shard %w input rank 1 of 2 : tensor<2x100x64xbf16, #wna16.dense> to tensor<2x50x64xbf16, #wna16.dense>
  %1 = wna16.shard %b output rank 0 of 8 : tensor<2x2x768xf32> to tensor<2x2x96xf32>
  %2 = wna16.shard %t output rank 0 of 8 : tensor<2x2x768xf32, #wna16.bias<layout = interleaved>> to tensor<2x2x96xf32, #wna16.bias<layout = interleaved>>
  return
}

// One rank of one takes all.
// FOLD-LABEL: func.func @whole
// FOLD-NEXT: return %{{.*}} : tensor<2x768x64xbf16
func.func @whole(%w: tensor<2x768x64xbf16, #g128>) -> tensor<2x768x64xbf16, #g128> {
  %0 = wna16.shard %w input rank 0 of 1 : tensor<2x768x64xbf16, #g128> to tensor<2x768x64xbf16, #g128>
  return %0 : tensor<2x768x64xbf16, #g128>
}

// FOLD-LABEL: func.func @merges
// FOLD-NEXT: %[[R:.*]] = wna16.convert %{{.*}} window [192, 192, 0, 64] : tensor<2x768x64xbf16, #{{.*}}> to tensor<2x256x64xbf16, #{{.*}}>
// FOLD-NEXT: return %[[R]]
func.func @merges(%w: tensor<2x768x64xbf16, #g128>) -> tensor<2x256x64xbf16, #marlin> {
  %0 = wna16.shard %w input rank 1 of 4 : tensor<2x768x64xbf16, #g128> to tensor<2x192x64xbf16, #g64>
  %1 = wna16.convert %0 : tensor<2x192x64xbf16, #g64> to tensor<2x256x64xbf16, #g64>
  %2 = wna16.convert %1 : tensor<2x256x64xbf16, #g64> to tensor<2x256x64xbf16, #marlin>
  return %2 : tensor<2x256x64xbf16, #marlin>
}

// What takes a part of what was made before stays a step of its own.
// FOLD-LABEL: func.func @stays
// FOLD-COUNT-2: wna16.convert
func.func @stays(%w: tensor<2x768x64xbf16, #g128>) -> tensor<2x192x64xbf16, #g64> {
  %0 = wna16.convert %w : tensor<2x768x64xbf16, #g128> to tensor<2x768x64xbf16, #g64>
  %1 = wna16.convert %0 window [192, 192, 0, 64] : tensor<2x768x64xbf16, #g64> to tensor<2x192x64xbf16, #g64>
  return %1 : tensor<2x192x64xbf16, #g64>
}

// A window of all that is padded again is not the identity.
// FOLD-LABEL: func.func @window_is_no_identity
// FOLD-NEXT: wna16.convert
func.func @window_is_no_identity(%w: tensor<2x128x64xbf16, #g128>) -> tensor<2x128x64xbf16, #g128> {
  %0 = wna16.convert %w window [0, 128, 0, 32] : tensor<2x128x64xbf16, #g128> to tensor<2x128x64xbf16, #g128>
  return %0 : tensor<2x128x64xbf16, #g128>
}
