// One test for each constraint (Cn) of the operations on weights.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// parameter
//===----------------------------------------------------------------------===//

func.func @parameter_c1_missing() {
  // expected-error @+1 {{(C1) expected concat exactly when the pattern has alternatives (2)}}
  %0 = wna16.parameter "w.{expert}.{a,b}" : tensor<8x32x256xi32>
  return
}

// -----

func.func @parameter_c1_surplus() {
  // expected-error @+1 {{(C1) expected concat exactly when the pattern has alternatives (0)}}
  %0 = wna16.parameter "w.{expert}.a" concat(1) : tensor<8x32x256xi32>
  return
}

// -----

func.func @parameter_c2() {
  // expected-error @+1 {{(C2) expected concat to be one of 2 axes, got 2}}
  %0 = wna16.parameter "w.{expert}.{a,b}" concat(2) : tensor<8x32x256xi32>
  return
}

// -----

func.func @parameter_c2_negative() {
  // expected-error @+1 {{(C2) expected concat to be one of 2 axes, got -1}}
  %0 = wna16.parameter "w.{expert}.{a,b}" concat(-1) : tensor<8x32x256xi32>
  return
}

// -----

// The greatest axis does not wrap around.
func.func @parameter_c2_overflow() {
  // expected-error @+1 {{(C2) expected concat to be one of 2 axes, got 9223372036854775807}}
  %0 = wna16.parameter "w.{expert}.{a,b}" concat(9223372036854775807) : tensor<8x32x256xi32>
  return
}

// -----

func.func @parameter_c2_scalar() {
  // expected-error @+1 {{(C2) expected concat to be one of 0 axes, got 0}}
  %0 = wna16.parameter "{a,b}" concat(0) : tensor<f32>
  return
}

// -----

func.func @parameter_c3() {
  // expected-error @+1 {{(C3) expected a static shape, with an axis for {expert}, got 'tensor<?x256xf32>'}}
  %0 = wna16.parameter "w" : tensor<?x256xf32>
  return
}

// -----

func.func @parameter_c4() {
  // expected-error @+1 {{(C4) expected the joined extent (256) to be a multiple of the alternatives (3)}}
  %0 = wna16.parameter "w.{expert}.{a,b,c}" concat(1) : tensor<8x32x256xi32>
  return
}

// -----

func.func @parameter_c3_scalar() {
  // expected-error @+1 {{(C3) expected a static shape, with an axis for {expert}, got 'tensor<f32>'}}
  %0 = wna16.parameter "w.{expert}" : tensor<f32>
  return
}

// -----

func.func @parameter_c5_empty() {
  // expected-error @+1 {{(C5) pattern "": expected the name of a tensor}}
  %0 = wna16.parameter "" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_open() {
  // expected-error @+1 {{(C5) pattern "a{expert": expected braces in pairs, without nesting}}
  %0 = wna16.parameter "a{expert" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_close() {
  // expected-error @+1 {{(C5) pattern "a}b{expert}": expected braces in pairs, without nesting}}
  %0 = wna16.parameter "a}b{expert}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_nested() {
  // expected-error @+1 {{(C5) pattern "{a,{expert}}": expected braces in pairs, without nesting}}
  %0 = wna16.parameter "{a,{expert}}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_twice() {
  // expected-error @+1 {{(C5) pattern "{expert}.{expert}": expected {expert} once}}
  %0 = wna16.parameter "{expert}.{expert}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_lists() {
  // expected-error @+1 {{(C5) pattern "{a,b}.{c,d}": expected one list {a,b}}}
  %0 = wna16.parameter "{a,b}.{c,d}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_nameless() {
  // expected-error @+1 {{(C5) pattern "{,}": expected {expert} or different names {a,b}, got {,}}}
  %0 = wna16.parameter "{,}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_single() {
  // expected-error @+1 {{(C5) pattern "{experts}": expected {expert} or different names {a,b}, got {experts}}}
  %0 = wna16.parameter "{experts}" : tensor<8x8xf32>
  return
}

// -----

func.func @parameter_c5_equal() {
  // expected-error @+1 {{(C5) pattern "{a,a}": expected {expert} or different names {a,b}, got {a,a}}}
  %0 = wna16.parameter "{a,a}" : tensor<8x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// assemble, disassemble
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @assemble_c1(%codes: tensor<8x32x256xi32>) {
  // expected-error @+1 {{(C1) expected 2 parts for this encoding, got 1}}
  %0 = wna16.assemble codes = %codes : tensor<8x32x256xi32>
      -> tensor<8x256x2x128xbf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @assemble_c2(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x128xf16>) {
  // expected-error @+1 {{(C2) expected scales of type 'tensor<8x2x256xf16>', got 'tensor<8x2x128xf16>'}}
  %0 = wna16.assemble codes = %codes, scales = %scales
      : tensor<8x32x256xi32>, tensor<8x2x128xf16>
      -> tensor<8x256x2x128xbf16, #gptq>
  return
}

// -----

func.func @assemble_plain(%codes: tensor<8x32x256xi32>) {
  // expected-error @+1 {{expected an encoded result, got 'tensor<8x32x256xi32>'}}
  %0 = "wna16.assemble"(%codes) : (tensor<8x32x256xi32>) -> tensor<8x32x256xi32>
  return
}

// -----

func.func @disassemble_plain(%w: tensor<8x32x256xi32>) {
  // expected-error @+1 {{expected an encoded tensor, got 'tensor<8x32x256xi32>'}}
  %0 = wna16.disassemble %w : tensor<8x32x256xi32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

func.func @pad_plain(%w: tensor<128x64xf16>) {
  // expected-error @+1 {{operand #0 must be tensor with a packed encoding, but got 'tensor<128x64xf16>'}}
  %0 = wna16.pad %w : tensor<128x64xf16> to tensor<128x64xf16>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @pad_c1(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C1) expected equal ranks, experts and halves, got [2, 128, 64] and [3, 128, 64]}}
  %0 = wna16.pad %w : tensor<2x128x64xf16, #gptq> to tensor<3x128x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @pad_c2(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected no extent to shrink, got [2, 128, 64] and [2, 96, 64]}}
  %0 = wna16.pad %w : tensor<2x128x64xf16, #gptq> to tensor<2x96x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#gptq64 = #wna16.packed<u4b8, group = 64, layout = gptq>
func.func @pad_c3(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C3) expected encodings with one group, got #wna16.packed<u4b8, group = 32, layout = gptq> and #wna16.packed<u4b8, group = 64, layout = gptq>}}
  %0 = wna16.pad %w : tensor<2x128x64xf16, #gptq> to tensor<2x256x64xf16, #gptq64>
  return
}

// -----

#channel = #wna16.packed<u4b8, group = -1, layout = gptq>
func.func @pad_c4(%w: tensor<2x128x64xf16, #channel>) {
  // expected-error @+1 {{(C4) expected one element type, got 'f16' and 'bf16'}}
  %0 = wna16.pad %w : tensor<2x128x64xf16, #channel> to tensor<2x128x96xbf16, #channel>
  return
}

// -----

//===----------------------------------------------------------------------===//
// regroup
//===----------------------------------------------------------------------===//

#g128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#g64 = #wna16.packed<u4b8, group = 64, layout = gptq>
func.func @regroup_c1(%w: tensor<2x128x64xf16, #g128>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [2, 128, 96]}}
  %0 = wna16.regroup %w : tensor<2x128x64xf16, #g128> to tensor<2x128x96xf16, #g64>
  return
}

// -----

#g128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#g64 = #wna16.packed<u4b8, group = 64, layout = marlin>
func.func @regroup_c2(%w: tensor<2x128x64xf16, #g128>) {
  // expected-error @+1 {{(C2) expected encodings with one layout, got #wna16.packed<u4b8, group = 128, layout = gptq> and #wna16.packed<u4b8, group = 64, layout = marlin>}}
  %0 = wna16.regroup %w : tensor<2x128x64xf16, #g128> to tensor<2x128x64xf16, #g64>
  return
}

// -----

#g32 = #wna16.packed<u4b8, group = 32, layout = gptq>
#g64 = #wna16.packed<u4b8, group = 64, layout = gptq>
func.func @regroup_c3(%w: tensor<2x128x64xf16, #g32>) {
  // expected-error @+1 {{(C3) expected the new group (64) to divide the old one (32)}}
  %0 = wna16.regroup %w : tensor<2x128x64xf16, #g32> to tensor<2x128x64xf16, #g64>
  return
}

// -----

#g128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#g64 = #wna16.packed<u4b8, group = 64, layout = gptq>
func.func @regroup_c4(%w: tensor<2x128x64xf16, #g128>) {
  // expected-error @+1 {{(C4) expected one element type, got 'f16' and 'bf16'}}
  %0 = wna16.regroup %w : tensor<2x128x64xf16, #g128> to tensor<2x128x64xbf16, #g64>
  return
}

// -----

//===----------------------------------------------------------------------===//
// repack
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
func.func @repack_c1(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [2, 128, 128]}}
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x128xf16, #marlin>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 64, layout = marlin>
func.func @repack_c2(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected encodings with one group, got #wna16.packed<u4b8, group = 32, layout = gptq> and #wna16.packed<u4b8, group = 64, layout = marlin>}}
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
func.func @repack_c3(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C3) expected one element type, got 'f16' and 'bf16'}}
  %0 = wna16.repack %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xbf16, #marlin>
  return
}

// -----

//===----------------------------------------------------------------------===//
// recode
//===----------------------------------------------------------------------===//

#u4b8 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#s4 = #wna16.packed<s4, group = 32, layout = compressed_tensors>
func.func @recode_c1(%w: tensor<2x128x64xf16, #u4b8>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [2, 64, 64]}}
  %0 = wna16.recode %w : tensor<2x128x64xf16, #u4b8> to tensor<2x64x64xf16, #s4>
  return
}

// -----

#u4b8 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#s4 = #wna16.packed<s4, group = 64, layout = compressed_tensors>
func.func @recode_c2(%w: tensor<2x128x64xf16, #u4b8>) {
  // expected-error @+1 {{(C2) expected encodings with one group, got #wna16.packed<u4b8, group = 32, layout = compressed_tensors> and #wna16.packed<s4, group = 64, layout = compressed_tensors>}}
  %0 = wna16.recode %w : tensor<2x128x64xf16, #u4b8> to tensor<2x128x64xf16, #s4>
  return
}

// -----

#u4b8 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#s8 = #wna16.packed<s8, group = 32, layout = compressed_tensors>
func.func @recode_c3_width(%w: tensor<2x128x64xf16, #u4b8>) {
  // expected-error @+1 {{(C3) expected codes of one width, got 4 and 8 bits}}
  %0 = wna16.recode %w : tensor<2x128x64xf16, #u4b8> to tensor<2x128x64xf16, #s8>
  return
}

// -----

#u4 = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
#u4b8 = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @recode_c3_zeros(%w: tensor<2x128x64xf16, #u4>) {
  // expected-error @+1 {{(C3) expected zero points to be kept, got zeros = plain and none}}
  %0 = wna16.recode %w : tensor<2x128x64xf16, #u4> to tensor<2x128x64xf16, #u4b8>
  return
}

// -----

#u4b8 = #wna16.packed<u4b8, group = 32, layout = gptq>
#s4 = #wna16.packed<s4, group = 32, layout = gptq>
func.func @recode_c4(%w: tensor<2x128x64xf16, #u4b8>) {
  // expected-error @+1 {{(C4) expected one element type, got 'f16' and 'bf16'}}
  %0 = wna16.recode %w : tensor<2x128x64xf16, #u4b8> to tensor<2x128x64xbf16, #s4>
  return
}

// -----

//===----------------------------------------------------------------------===//
// sort_groups
//===----------------------------------------------------------------------===//

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
func.func @sort_groups_c1(%w: tensor<2x128x64xf16, #index>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [2, 128, 96]}}
  %0 = wna16.sort_groups %w : tensor<2x128x64xf16, #index> to tensor<2x128x96xf16, #sorted>
  return
}

// -----

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 64, layout = gptq, act_order = sorted>
func.func @sort_groups_c2_group(%w: tensor<2x128x64xf16, #index>) {
  // expected-error @+1 {{(C2) expected encodings with one group, got #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index> and #wna16.packed<u4b8, group = 64, layout = gptq, act_order = sorted>}}
  %0 = wna16.sort_groups %w : tensor<2x128x64xf16, #index> to tensor<2x128x64xf16, #sorted>
  return
}

// -----

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
func.func @sort_groups_c2_order(%w: tensor<2x128x64xf16, #sorted>) {
  // expected-error @+1 {{(C2) expected act_order index to sorted, got #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted> and #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>}}
  %0 = wna16.sort_groups %w : tensor<2x128x64xf16, #sorted> to tensor<2x128x64xf16, #index>
  return
}

// -----

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
func.func @sort_groups_c3(%w: tensor<2x128x64xf16, #index>) {
  // expected-error @+1 {{(C3) expected one element type, got 'f16' and 'f32'}}
  %0 = wna16.sort_groups %w : tensor<2x128x64xf16, #index> to tensor<2x128x64xf32, #sorted>
  return
}

// -----

//===----------------------------------------------------------------------===//
// convert
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c1(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C1) expected equal ranks, experts and halves, got [2, 128, 64] and [128, 64]}}
  %0 = wna16.convert %w : tensor<2x128x64xf16, #gptq> to tensor<128x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c2_shrink(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected no extent to shrink, got input 128 to 64 and output 64 to 64}}
  %0 = wna16.convert %w : tensor<2x128x64xf16, #gptq> to tensor<2x64x64xf16, #gptq>
  return
}

// -----

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c2_order(%w: tensor<2x128x64xf16, #index>) {
  // expected-error @+1 {{(C2) expected act_order to stay or to go from index to sorted, got index and none}}
  %0 = wna16.convert %w : tensor<2x128x64xf16, #index> to tensor<2x128x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c3(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C3) expected a window [input, inputs, output, outputs] of at least one input and output, got [0, 64, 0]}}
  %0 = wna16.convert %w window [0, 64, 0] : tensor<2x128x64xf16, #gptq> to tensor<2x64x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c3_empty(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C3) expected a window [input, inputs, output, outputs] of at least one input and output, got [0, 64, 0, 0]}}
  %0 = wna16.convert %w window [0, 64, 0, 0] : tensor<2x128x64xf16, #gptq> to tensor<2x64x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
func.func @convert_c4(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C4) expected one element type, got 'f16' and 'bf16'}}
  %0 = wna16.convert %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xbf16, #marlin>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @convert_c2_window(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected a window within input 128, got 64 from 96 on}}
  %0 = wna16.convert %w window [96, 64, 0, 64] : tensor<2x128x64xf16, #gptq> to tensor<2x64x64xf16, #gptq>
  return
}

// -----

//===----------------------------------------------------------------------===//
// shard
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @shard_c1(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C1) input: expected a rank below the number of ranks, got rank 2 of 2}}
  %0 = wna16.shard %w input rank 2 of 2 : tensor<2x128x64xf16, #gptq> to tensor<2x64x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @shard_c1_nothing(%w: tensor<2x128x5xf16, #gptq>) {
  // expected-error @+1 {{(C1) output: expected a part of 5 for each of 4 ranks, got parts of 2 for 3; take at most 3 ranks}}
  %0 = wna16.shard %w output rank 0 of 4 : tensor<2x128x5xf16, #gptq> to tensor<2x128x2xf16, #gptq>
  return
}

// -----

#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
func.func @shard_c1_tiles(%w: tensor<2x128x64xf16, #marlin>) {
  // expected-error @+1 {{(C1) expected output (32) to be a multiple of 64 for layout marlin; pad to 64}}
  %0 = wna16.shard %w output rank 0 of 2 : tensor<2x128x64xf16, #marlin> to tensor<2x128x64xf16, #marlin>
  return
}

// -----

#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
func.func @shard_c1_sorted(%w: tensor<2x128x64xf16, #sorted>) {
  // expected-error @+1 {{(C1) expected rows in the model's order to share 128 inputs, got act_order = sorted; shard before sorting}}
  %0 = wna16.shard %w input rank 0 of 2 : tensor<2x128x64xf16, #sorted> to tensor<2x64x64xf16, #sorted>
  return
}

// -----

#g128 = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @shard_c2_group(%w: tensor<2x768x64xf16, #g128>) {
  // expected-error @+1 {{(C2) expected the share to be 'tensor<2x192x64xf16, #wna16.packed<u4b8, group = 64, layout = gptq>>', got 'tensor<2x192x64xf16, #wna16.packed<u4b8, group = 128, layout = gptq>>'}}
  %0 = wna16.shard %w input rank 1 of 4 : tensor<2x768x64xf16, #g128> to tensor<2x192x64xf16, #g128>
  return
}

// -----

func.func @shard_c3(%b: tensor<2x64xf16>) {
  // expected-error @+1 {{(C3) expected the output axis of a bias of rank 2 or 3 with static extents, got input of 'tensor<2x64xf16>'}}
  %0 = wna16.shard %b input rank 0 of 2 : tensor<2x64xf16> to tensor<2x32xf16>
  return
}

// -----

func.func @shard_c3_dynamic(%b: tensor<2x?xf16>) {
  // expected-error @+1 {{(C3) expected the output axis of a bias of rank 2 or 3 with static extents, got output of 'tensor<2x?xf16>'}}
  %0 = wna16.shard %b output rank 0 of 2 : tensor<2x?xf16> to tensor<2x?xf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// dequantize, quantize
//===----------------------------------------------------------------------===//

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @dequantize_c1(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [2, 128, 32]}}
  %0 = wna16.dequantize %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x32xf32, #wna16.dense>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @dequantize_c2(%w: tensor<2x128x2x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected the result to be encoded as #wna16.dense, got 'tensor<2x128x2x64xf32, #wna16.dense<layout = interleaved>>'}}
  %0 = wna16.dequantize %w : tensor<2x128x2x64xf16, #gptq> to tensor<2x128x2x64xf32, #wna16.dense<layout = interleaved>>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @quantize_c1(%w: tensor<2x128x64xf16, #wna16.dense>) {
  // expected-error @+1 {{(C1) expected equal shapes, got [2, 128, 64] and [128, 64]}}
  %0 = wna16.quantize %w : tensor<2x128x64xf16, #wna16.dense> to tensor<128x64xf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @quantize_c2(%w: tensor<2x128x64xf16, #gptq>) {
  // expected-error @+1 {{(C2) expected the source to be encoded as #wna16.dense, got 'tensor<2x128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>'}}
  %0 = wna16.quantize %w : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #gptq>
  return
}

// -----

#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
func.func @quantize_c3(%w: tensor<2x128x64xf16, #wna16.dense>) {
  // expected-error @+1 {{(C3) expected a result without act-order, got #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>}}
  %0 = wna16.quantize %w : tensor<2x128x64xf16, #wna16.dense> to tensor<2x128x64xf16, #index>
  return
}

// -----

//===----------------------------------------------------------------------===//
// convert_bias
//===----------------------------------------------------------------------===//

func.func @convert_bias_c1(%b: tensor<2x2x96xf16>) {
  // expected-error @+1 {{(C1) expected equal ranks, element types, experts and halves, got 'tensor<2x2x96xf16>' and 'tensor<2x2x128xf32, #wna16.bias<layout = marlin>>'}}
  %0 = wna16.convert_bias %b : tensor<2x2x96xf16> to tensor<2x2x128xf32, #wna16.bias<layout = marlin>>
  return
}

// -----

func.func @convert_bias_c2(%b: tensor<2x2x96xf16>) {
  // expected-error @+1 {{(C2) expected the output extent not to shrink, got 96 and 64}}
  %0 = wna16.convert_bias %b : tensor<2x2x96xf16> to tensor<2x2x64xf16, #wna16.bias<layout = marlin>>
  return
}

// -----

// A plain tensor is no bias of every rank.
func.func @convert_bias_scalar(%b: tensor<f16>) {
  // expected-error @+1 {{(C1) expected a bias of rank 2 or 3 with static extents, got 'tensor<f16>'}}
  %0 = wna16.convert_bias %b : tensor<f16> to tensor<f16>
  return
}
