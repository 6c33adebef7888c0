// RUN: wna16-opt %s -wna16-materialize-layouts -o %t.once
// RUN: FileCheck %s --input-file=%t.once
// Nothing is left to do the second time.
// RUN: wna16-opt %t.once -wna16-materialize-layouts -o %t.twice
// RUN: diff %t.once %t.twice

// CHECK-DAG: #[[GPTQ:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq>
// CHECK-DAG: #[[GPTQ_BF16:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16>
// CHECK-DAG: #[[MARLIN:.*]] = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>
// CHECK-DAG: #[[INDEX:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
// CHECK-DAG: #[[SORTED:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
// CHECK-DAG: #[[MARLIN_SORTED:.*]] = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16, act_order = sorted>
// CHECK-DAG: #[[SORTED_BF16:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16, act_order = sorted>
// CHECK-DAG: #[[FOLDED:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
// CHECK-DAG: #[[MARLIN_INT8:.*]] = #wna16.packed<u4b8, group = 32, layout = marlin_a8, scale = i16>
// CHECK-DAG: #[[AWQ_FP8:.*]] = #wna16.packed<u4fp8, group = 32, layout = awq, scale = bf16, zeros = plain>
// CHECK-DAG: #[[MARLIN_FP8:.*]] = #wna16.packed<u4fp8, group = 32, layout = marlin_a8, scale = bf16, zeros = plain>
// CHECK-DAG: #[[CT:.*]] = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
// CHECK-DAG: #[[S4:.*]] = #wna16.packed<s4, group = 32, layout = compressed_tensors, scale = bf16>
// CHECK-DAG: #[[TRTLLM:.*]] = #wna16.packed<s4, group = 32, layout = trtllm, scale = bf16>
// CHECK-DAG: #[[HUMMING:.*]] = #wna16.packed<u4b8, group = 32, layout = humming_wgmma, scale = bf16>
// CHECK-DAG: #[[PANELS:.*]] = #wna16.packed<u4, group = 32, layout = cpu_panels, zeros = plain>
// CHECK-DAG: #[[PANELS8:.*]] = #wna16.packed<u8b128, group = 32, layout = cpu_panels>
// CHECK-DAG: #[[U4B8:.*]] = #wna16.packed<u4b8, group = 32, layout = compressed_tensors, scale = bf16>
// CHECK-DAG: #[[XPU:.*]] = #wna16.packed<u4b8, group = 32, layout = xpu, scale = bf16>
// CHECK-DAG: #[[PLAIN:.*]] = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
// CHECK-DAG: #[[OTF:.*]] = #wna16.packed<u4, group = 32, layout = otf, zeros = plain>

#awq = #wna16.packed<u4, group = 32, layout = awq, zeros = plain>
#s4 = #wna16.packed<s4, group = 32, layout = compressed_tensors>
#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#v1 = #wna16.packed<u4, group = 32, layout = gptq, zeros = minus_one>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#ct32 = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#bits8 = #wna16.packed<u8b128, group = 32, layout = gptq>
!x = tensor<?x256xbf16>
!w = tensor<?x2xf32>
!i = tensor<?x2xi32>
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
// N is padded to lcm(64, 32); scales get the type of the activations; biases are
// permuted.
// CHECK-LABEL: func.func @marlin(
// CHECK: %[[W13_0:.*]] = wna16.pad %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[GPTQ]]>
// CHECK: %[[W13_1:.*]] = wna16.recode %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[GPTQ_BF16]]>
// CHECK: %[[W13_2:.*]] = wna16.repack %[[W13_1]] : {{.*}} to tensor<8x256x2x128xbf16, #[[MARLIN]]>
// CHECK: %[[W2_0:.*]] = wna16.pad %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[GPTQ]]>
// CHECK: %[[W2_1:.*]] = wna16.recode %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[GPTQ_BF16]]>
// CHECK: %[[W2_2:.*]] = wna16.repack %[[W2_1]] : {{.*}} to tensor<8x128x256xbf16, #[[MARLIN]]>
// CHECK: %[[B13:.*]] = wna16.convert_bias %arg5 : tensor<8x2x96xbf16> to tensor<8x2x128xbf16, #wna16.bias<layout = marlin>>
// CHECK: %[[B2:.*]] = wna16.convert_bias %arg6 : tensor<8x256xbf16> to tensor<8x256xbf16, #wna16.bias<layout = marlin>>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_2]] : {{.*}} w2(%[[W2_2]] : {{.*}} bias13(%[[B13]] : {{.*}} bias2(%[[B2]] : 
func.func @marlin(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x96xbf16, #gptq>, %w2: tensor<8x96x256xbf16, #gptq>, %b13: tensor<8x2x96xbf16>, %b2: tensor<8x256xbf16>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x96xbf16, #gptq>) w2(%w2 : tensor<8x96x256xbf16, #gptq>)
      bias13(%b13 : tensor<8x2x96xbf16>) bias2(%b2 : tensor<8x256xbf16>) outs(%x : !x) {backend = "marlin"} -> !x
  return %0 : !x
}

// Act-order: rows are sorted by group first.
// CHECK-LABEL: func.func @sorted(
// CHECK: %[[W13_0:.*]] = wna16.sort_groups %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[SORTED]]>
// CHECK: %[[W13_1:.*]] = wna16.recode %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[SORTED_BF16]]>
// CHECK: %[[W13_2:.*]] = wna16.repack %[[W13_1]] : {{.*}} to tensor<8x256x2x128xbf16, #[[MARLIN_SORTED]]>
// CHECK: %[[W2_0:.*]] = wna16.sort_groups %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[SORTED]]>
// CHECK: %[[W2_1:.*]] = wna16.recode %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[SORTED_BF16]]>
// CHECK: %[[W2_2:.*]] = wna16.repack %[[W2_1]] : {{.*}} to tensor<8x128x256xbf16, #[[MARLIN_SORTED]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_2]] : {{.*}} w2(%[[W2_2]] : 
func.func @sorted(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #sorted>, %w2: tensor<8x128x256xbf16, #sorted>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #sorted>) w2(%w2 : tensor<8x128x256xbf16, #sorted>) outs(%x : !x) {backend = "marlin"} -> !x
  return %0 : !x
}

// int8 activations: scales of several groups are folded to i16 with one factor.
// CHECK-LABEL: func.func @int8(
// CHECK: %[[W13_0:.*]] = wna16.recode %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[FOLDED]]>
// CHECK: %[[W13_1:.*]] = wna16.repack %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[MARLIN_INT8]]>
// CHECK: %[[W2_0:.*]] = wna16.recode %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[FOLDED]]>
// CHECK: %[[W2_1:.*]] = wna16.repack %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[MARLIN_INT8]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_1]] : {{.*}} w2(%[[W2_1]] : 
func.func @int8(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #gptq>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #gptq>) outs(%x : !x) {backend = "marlin", activation_type = #wna16<activation_type int8>} -> !x
  return %0 : !x
}

// fp8 activations: codes become sign and magnitude around their zero point.
// CHECK-LABEL: func.func @fp8(
// CHECK: %[[W13_0:.*]] = wna16.recode %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[AWQ_FP8]]>
// CHECK: %[[W13_1:.*]] = wna16.repack %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[MARLIN_FP8]]>
// CHECK: %[[W2_0:.*]] = wna16.recode %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[AWQ_FP8]]>
// CHECK: %[[W2_1:.*]] = wna16.repack %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[MARLIN_FP8]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_1]] : {{.*}} w2(%[[W2_1]] : 
func.func @fp8(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #awq>, %w2: tensor<8x128x256xbf16, #awq>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #awq>) w2(%w2 : tensor<8x128x256xbf16, #awq>) outs(%x : !x) {backend = "marlin", activation_type = #wna16<activation_type fp8>} -> !x
  return %0 : !x
}

// Signed codes, N padded to 256.
// CHECK-LABEL: func.func @trtllm(
// CHECK: %[[W13_0:.*]] = wna16.pad %arg3 : {{.*}} to tensor<8x256x2x256xbf16, #[[CT]]>
// CHECK: %[[W13_1:.*]] = wna16.recode %[[W13_0]] : {{.*}} to tensor<8x256x2x256xbf16, #[[S4]]>
// CHECK: %[[W13_2:.*]] = wna16.repack %[[W13_1]] : {{.*}} to tensor<8x256x2x256xbf16, #[[TRTLLM]]>
// CHECK: %[[W2_0:.*]] = wna16.pad %arg4 : {{.*}} to tensor<8x256x256xbf16, #[[CT]]>
// CHECK: %[[W2_1:.*]] = wna16.recode %[[W2_0]] : {{.*}} to tensor<8x256x256xbf16, #[[S4]]>
// CHECK: %[[W2_2:.*]] = wna16.repack %[[W2_1]] : {{.*}} to tensor<8x256x256xbf16, #[[TRTLLM]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_2]] : {{.*}} w2(%[[W2_2]] : 
func.func @trtllm(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #ct32>, %w2: tensor<8x128x256xbf16, #ct32>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #ct32>) w2(%w2 : tensor<8x128x256xbf16, #ct32>) outs(%x : !x) {backend = "flashinfer_trtllm"} -> !x
  return %0 : !x
}

// Outputs are padded to 256, inputs to 128.
// CHECK-LABEL: func.func @humming(
// CHECK: %[[W13_0:.*]] = wna16.pad %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[GPTQ]]>
// CHECK: %[[W13_1:.*]] = wna16.recode %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[GPTQ_BF16]]>
// CHECK: %[[W13_2:.*]] = wna16.repack %[[W13_1]] : {{.*}} to tensor<8x256x2x128xbf16, #[[HUMMING]]>
// CHECK: %[[W2_0:.*]] = wna16.pad %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[GPTQ]]>
// CHECK: %[[W2_1:.*]] = wna16.recode %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[GPTQ_BF16]]>
// CHECK: %[[W2_2:.*]] = wna16.repack %[[W2_1]] : {{.*}} to tensor<8x128x256xbf16, #[[HUMMING]]>
// CHECK: %[[B13:.*]] = wna16.convert_bias %arg5 : tensor<8x2x96xbf16> to tensor<8x2x128xbf16, #wna16.bias<layout = humming_mma>>
// CHECK: %[[B2:.*]] = wna16.convert_bias %arg6 : tensor<8x256xbf16> to tensor<8x256xbf16, #wna16.bias<layout = humming_mma>>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_2]] : {{.*}} w2(%[[W2_2]] : {{.*}} bias13(%[[B13]] : {{.*}} bias2(%[[B2]] : 
func.func @humming(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x96xbf16, #gptq>, %w2: tensor<8x96x256xbf16, #gptq>, %b13: tensor<8x2x96xbf16>, %b2: tensor<8x256xbf16>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x96xbf16, #gptq>) w2(%w2 : tensor<8x96x256xbf16, #gptq>)
      bias13(%b13 : tensor<8x2x96xbf16>) bias2(%b2 : tensor<8x256xbf16>) outs(%x : !x) {backend = "humming"} -> !x
  return %0 : !x
}

// Zero points get their true values; 96 is whole panels of 32.
// CHECK-LABEL: func.func @cpu(
// CHECK: %[[W13_0:.*]] = wna16.recode %arg3 : {{.*}} to tensor<8x256x2x96xbf16, #[[PLAIN]]>
// CHECK: %[[W13_1:.*]] = wna16.repack %[[W13_0]] : {{.*}} to tensor<8x256x2x96xbf16, #[[PANELS]]>
// CHECK: %[[W2_0:.*]] = wna16.recode %arg4 : {{.*}} to tensor<8x96x256xbf16, #[[PLAIN]]>
// CHECK: %[[W2_1:.*]] = wna16.repack %[[W2_0]] : {{.*}} to tensor<8x96x256xbf16, #[[PANELS]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_1]] : {{.*}} w2(%[[W2_1]] : 
func.func @cpu(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x96xbf16, #v1>, %w2: tensor<8x96x256xbf16, #v1>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x96xbf16, #v1>) w2(%w2 : tensor<8x96x256xbf16, #v1>) outs(%x : !x) {backend = "cpu"} -> !x
  return %0 : !x
}

// So do 8-bit codes; a dense weight stays as it is.
// CHECK-LABEL: func.func @cpu8(
// CHECK: %[[W13_0:.*]] = wna16.repack %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[PANELS8]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_0]] : {{.*}} w2(%arg4 : 
func.func @cpu8(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #bits8>, %w2: tensor<8x128x256xbf16, #wna16.dense>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #bits8>) w2(%w2 : tensor<8x128x256xbf16, #wna16.dense>) outs(%x : !x) {backend = "cpu"} -> !x
  return %0 : !x
}

// Signed codes are read as offset ones.
// CHECK-LABEL: func.func @xpu(
// CHECK: %[[W13_0:.*]] = wna16.recode %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[U4B8]]>
// CHECK: %[[W13_1:.*]] = wna16.repack %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[XPU]]>
// CHECK: %[[W2_0:.*]] = wna16.recode %arg4 : {{.*}} to tensor<8x128x256xbf16, #[[GPTQ_BF16]]>
// CHECK: %[[W2_1:.*]] = wna16.repack %[[W2_0]] : {{.*}} to tensor<8x128x256xbf16, #[[XPU]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_1]] : {{.*}} w2(%[[W2_1]] : 
func.func @xpu(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #s4>, %w2: tensor<8x128x256xbf16, #gptq>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #s4>) w2(%w2 : tensor<8x128x256xbf16, #gptq>) outs(%x : !x) {backend = "xpu"} -> !x
  return %0 : !x
}

// Emulation reads f32.
// CHECK-LABEL: func.func @emulation(
// CHECK: %[[W13_0:.*]] = wna16.dequantize %arg3 : {{.*}} to tensor<8x256x2x128xf32, #wna16.dense>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_0]] : {{.*}} w2(%arg4 : 
func.func @emulation(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #gptq>, %w2: tensor<8x128x256xbf16, #wna16.dense>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq>) w2(%w2 : tensor<8x128x256xbf16, #wna16.dense>) outs(%x : !x) {backend = "emulation"} -> !x
  return %0 : !x
}

// On the fly it reads bytes, and what these cannot hold as it comes.
// CHECK-LABEL: func.func @otf(
// CHECK: %[[W13_0:.*]] = wna16.recode %arg3 : {{.*}} to tensor<8x256x2x128xbf16, #[[PLAIN]]>
// CHECK: %[[W13_1:.*]] = wna16.repack %[[W13_0]] : {{.*}} to tensor<8x256x2x128xbf16, #[[OTF]]>
// CHECK: wna16.fused_experts {{.*}} w13(%[[W13_1]] : {{.*}} w2(%arg4 : 
func.func @otf(%x: !x, %w: !w, %i: !i,
    %w13: tensor<8x256x2x128xbf16, #v1>, %w2: tensor<8x128x256xbf16, #sorted>) -> !x {
  %0 = wna16.fused_experts silu x(%x : !x) routing(%w, %i : !w, !i)
      w13(%w13 : tensor<8x256x2x128xbf16, #v1>) w2(%w2 : tensor<8x128x256xbf16, #sorted>) outs(%x : !x) {backend = "emulation_otf"} -> !x
  return %0 : !x
}
}
