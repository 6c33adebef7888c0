// Every operation survives printing and parsing, in the custom and the generic
// form and as bytecode.
// RUN: wna16-opt %s | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --mlir-print-op-generic | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --emit-bytecode | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#gptq128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
#ct = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#s4 = #wna16.packed<s4, group = 32, layout = compressed_tensors>
#awq = #wna16.packed<u4, group = 64, layout = awq, zeros = plain>
#v1 = #wna16.packed<u4, group = 128, layout = gptq, zeros = minus_one>

// GENERIC-LABEL: sym_name = "parameters"
// GENERIC: "wna16.parameter"() <{concat = 1 : i64, pattern = "
// GENERIC-LABEL: sym_name = "linear"
// GENERIC: "wna16.linear"(
// GENERIC-LABEL: sym_name = "batched"
// GENERIC: "wna16.fused_experts"({{.*}}) <{activation = #wna16<activation relu2>, activation_type = #wna16<activation_type a16>, batched, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1, 0, 0, 0, 1>}>

// CHECK-LABEL: func.func @parameters
func.func @parameters() {
  // CHECK: wna16.parameter "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.qweight" concat(1) : tensor<8x32x256xi32>
  %0 = wna16.parameter "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.qweight"
      concat(1) : tensor<8x32x256xi32>
  // CHECK: wna16.parameter "model.layers.0.mlp.gate.weight" : tensor<8x256xbf16>
  %1 = wna16.parameter "model.layers.0.mlp.gate.weight" : tensor<8x256xbf16>
  return
}

// CHECK-LABEL: func.func @assemble
// CHECK-SAME: %[[CODES:.*]]: tensor<8x32x256xi32>, %[[SCALES:.*]]: tensor<8x2x256xf16>
func.func @assemble(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x256xf16>)
    -> (tensor<8x32x256xi32>, tensor<8x2x256xf16>) {
  // CHECK: %[[W:.*]] = wna16.assemble codes = %[[CODES]], scales = %[[SCALES]] : tensor<8x32x256xi32>, tensor<8x2x256xf16> -> tensor<8x256x2x128xbf16, #gptq{{[0-9]*}}>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<8x32x256xi32>, tensor<8x2x256xf16>
      -> tensor<8x256x2x128xbf16, #gptq128>
  // CHECK: wna16.disassemble %[[W]] : tensor<8x256x2x128xbf16, #gptq{{[0-9]*}}>
  %c, %s = wna16.disassemble %w : tensor<8x256x2x128xbf16, #gptq128>
  return %c, %s : tensor<8x32x256xi32>, tensor<8x2x256xf16>
}

// CHECK-LABEL: func.func @disassemble_zeros
func.func @disassemble_zeros(%w: tensor<8x256x128xbf16, #awq>) {
  // CHECK: %{{.*}}:3 = wna16.disassemble
  %c, %s, %z = wna16.disassemble %w : tensor<8x256x128xbf16, #awq>
  return
}

// CHECK-LABEL: func.func @disassemble_dense
func.func @disassemble_dense(%w: tensor<256x8xbf16, #wna16.dense>,
                             %b: tensor<2x2x96xf16, #wna16.bias<layout = marlin>>)
    -> (tensor<8x256xbf16>, tensor<2x2x96xf16>) {
  // CHECK: wna16.disassemble %{{.*}} : tensor<256x8xbf16, #wna16.dense>
  %c = wna16.disassemble %w : tensor<256x8xbf16, #wna16.dense>
  // CHECK: wna16.disassemble %{{.*}} : tensor<2x2x96xf16, #wna16.bias<layout = marlin>>
  %d = wna16.disassemble %b : tensor<2x2x96xf16, #wna16.bias<layout = marlin>>
  return %c, %d : tensor<8x256xbf16>, tensor<2x2x96xf16>
}

// CHECK-LABEL: func.func @steps
func.func @steps(%0: tensor<2x128x2x96xf16, #gptq>,
                 %1: tensor<2x128x64xf16, #gptq128>,
                 %2: tensor<2x128x64xf16, #gptq>,
                 %3: tensor<2x128x64xf16, #ct>,
                 %4: tensor<2x128x64xf16, #index>,
                 %5: tensor<2x2x96xf16>) {
  // CHECK: wna16.pad %{{.*}} : tensor<2x128x2x96xf16, #gptq{{[0-9]*}}> to tensor<2x128x2x128xf16, #gptq{{[0-9]*}}>
  %a = wna16.pad %0 : tensor<2x128x2x96xf16, #gptq> to tensor<2x128x2x128xf16, #gptq>
  // CHECK: wna16.regroup %{{.*}} : tensor<2x128x64xf16, #gptq{{[0-9]*}}> to tensor<2x128x64xf16, #gptq{{[0-9]*}}>
  %b = wna16.regroup %1 : tensor<2x128x64xf16, #gptq128> to tensor<2x128x64xf16, #gptq>
  // CHECK: wna16.repack %{{.*}} : tensor<2x128x64xf16, #gptq{{[0-9]*}}> to tensor<2x128x64xf16, #marlin>
  %c = wna16.repack %2 : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
  // CHECK: wna16.recode %{{.*}} : tensor<2x128x64xf16, #compressed_tensors{{[0-9]*}}> to tensor<2x128x64xf16, #compressed_tensors{{[0-9]*}}>
  %d = wna16.recode %3 : tensor<2x128x64xf16, #ct> to tensor<2x128x64xf16, #s4>
  // CHECK: wna16.sort_groups %{{.*}} : tensor<2x128x64xf16, #gptq{{[0-9]*}}> to tensor<2x128x64xf16, #gptq{{[0-9]*}}>
  %e = wna16.sort_groups %4 : tensor<2x128x64xf16, #index> to tensor<2x128x64xf16, #sorted>
  // CHECK: wna16.convert %{{.*}} : tensor<2x128x2x96xf16, #gptq{{[0-9]*}}> to tensor<2x128x2x128xf16, #marlin>
  %f = wna16.convert %0 : tensor<2x128x2x96xf16, #gptq> to tensor<2x128x2x128xf16, #marlin>
  // CHECK: wna16.convert_bias %{{.*}} : tensor<2x2x96xf16> to tensor<2x2x128xf16, #wna16.bias<layout = marlin>>
  %g = wna16.convert_bias %5 : tensor<2x2x96xf16> to tensor<2x2x128xf16, #wna16.bias<layout = marlin>>
  return
}

// CHECK-LABEL: func.func @values
func.func @values(%0: tensor<2x128x64xbf16, #gptq>,
                  %1: tensor<2x128x64xf32, #wna16.dense>) {
  // CHECK: wna16.dequantize %{{.*}} : tensor<2x128x64xbf16, #gptq{{[0-9]*}}> to tensor<2x128x64xf32, #wna16.dense>
  %a = wna16.dequantize %0 : tensor<2x128x64xbf16, #gptq> to tensor<2x128x64xf32, #wna16.dense>
  // CHECK: wna16.dequantize %{{.*}} scale_first : tensor<2x128x64xbf16, #gptq{{[0-9]*}}> to tensor<2x128x64xbf16, #wna16.dense>
  %b = wna16.dequantize %0 scale_first : tensor<2x128x64xbf16, #gptq> to tensor<2x128x64xbf16, #wna16.dense>
  // CHECK: wna16.quantize %{{.*}} : tensor<2x128x64xf32, #wna16.dense> to tensor<2x128x64xf32, #gptq{{[0-9]*}}>
  %c = wna16.quantize %1 : tensor<2x128x64xf32, #wna16.dense> to tensor<2x128x64xf32, #gptq>
  return
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<?x256xbf16>, %w: tensor<256x8xbf16, #wna16.dense>,
                  %bias: tensor<8xf32>, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: wna16.linear x(%{{.*}} : tensor<?x256xbf16>) weight(%{{.*}} : tensor<256x8xbf16, #wna16.dense>) outs(%{{.*}} : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = wna16.linear x(%x : tensor<?x256xbf16>)
      weight(%w : tensor<256x8xbf16, #wna16.dense>)
      outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: wna16.linear x({{.*}}) weight({{.*}}) bias(%{{.*}} : tensor<8xf32>) outs({{.*}}) {backend = "cpu", batch_invariant} -> tensor<?x8xf32>
  %1 = wna16.linear x(%x : tensor<?x256xbf16>)
      weight(%w : tensor<256x8xbf16, #wna16.dense>) bias(%bias : tensor<8xf32>)
      outs(%0 : tensor<?x8xf32>) {backend = "cpu", batch_invariant} -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<?x8xbf16>, %w: tensor<8xbf16>, %a: tensor<?x8xf32>, %y: tensor<?x8xf32>) {
  // CHECK: wna16.rms_norm x(%{{.*}} : tensor<?x8xbf16>) weight(%{{.*}} : tensor<8xbf16>) outs(%{{.*}} : tensor<?x8xf32>) {epsilon = 9.9999999999999995E-7 : f64} -> tensor<?x8xf32>
  %0 = wna16.rms_norm x(%x : tensor<?x8xbf16>) weight(%w : tensor<8xbf16>)
      outs(%y : tensor<?x8xf32>) {epsilon = 1.0e-6} -> tensor<?x8xf32>
  // CHECK: wna16.rms_norm {{.*}} add(%{{.*}} : tensor<?x8xf32>) outs({{.*}}) {epsilon = 0.000000e+00 : f64, scale = 5.000000e-01 : f64}
  %1 = wna16.rms_norm x(%0 : tensor<?x8xf32>) weight(%w : tensor<8xbf16>) add(%a : tensor<?x8xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = 0.0, scale = 0.5} -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @route
func.func @route(%logits: tensor<?x8xf32>, %correction: tensor<8xf32>, %scale: tensor<8xbf16>,
                 %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // CHECK: wna16.route softmax logits(%{{.*}} : tensor<?x8xf32>) outs(%{{.*}}, %{{.*}} : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  %0, %1 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize}
      -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: wna16.route sigmoid logits({{.*}}) correction(%{{.*}} : tensor<8xf32>) outs({{.*}}) {groups = 4 : i64, scaling = 2.500000e+00 : f64, top_groups = 2 : i64}
  %2, %3 = wna16.route sigmoid logits(%logits : tensor<?x8xf32>)
      correction(%correction : tensor<8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {groups = 4, top_groups = 2, scaling = 2.5}
      -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: wna16.route softmax logits({{.*}}) expert_scale(%{{.*}} : tensor<8xbf16>) outs(
  %4, %5 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      expert_scale(%scale : tensor<8xbf16>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: wna16.route sparsemixer logits({{.*}}) outs({{.*}}) {jitter = 1.000000e-02 : f64}
  %6, %7 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = 0.01} -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<?x256xbf16>, %weights: tensor<?x2xf32>,
                   %ids: tensor<?x2xi32>, %w13: tensor<8x256x2x128xbf16, #gptq128>,
                   %w2: tensor<8x128x256xbf16, #gptq128>,
                   %bias13: tensor<8x2x128xf32>, %bias2: tensor<8x256xbf16>,
                   %map: tensor<16xi32>,
                   %init: tensor<?x256xbf16>) -> tensor<?x256xbf16> {
  // CHECK: wna16.fused_experts silu x(%{{.*}} : tensor<?x256xbf16>) routing(%{{.*}}, %{{.*}} : tensor<?x2xf32>, tensor<?x2xi32>) w13(%{{.*}} : tensor<8x256x2x128xbf16, #gptq{{[0-9]*}}>) w2(%{{.*}} : tensor<8x128x256xbf16, #gptq{{[0-9]*}}>) outs(%{{.*}} : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  %0 = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq128>)
      w2(%w2 : tensor<8x128x256xbf16, #gptq128>)
      outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  // CHECK: wna16.fused_experts swigluoai
  // CHECK-SAME: bias13(%{{.*}} : tensor<8x2x128xf32>) bias2(%{{.*}} : tensor<8x256xbf16>) expert_map(%{{.*}} : tensor<16xi32>)
  // CHECK-SAME: {activation_type = #wna16<activation_type int8>, alpha = 1.702000e+00 : f64, beta = 1.000000e+00 : f64, limit = 7.000000e+00 : f64}
  %1 = wna16.fused_experts swigluoai x(%x : tensor<?x256xbf16>)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<8x256x2x128xbf16, #gptq128>)
      w2(%w2 : tensor<8x128x256xbf16, #gptq128>)
      bias13(%bias13 : tensor<8x2x128xf32>) bias2(%bias2 : tensor<8x256xbf16>)
      expert_map(%map : tensor<16xi32>) outs(%0 : tensor<?x256xbf16>)
      {alpha = 1.702, beta = 1.0, limit = 7.0,
       activation_type = #wna16<activation_type int8>} -> tensor<?x256xbf16>
  return %1 : tensor<?x256xbf16>
}

// CHECK-LABEL: func.func @batched
func.func @batched(%x: tensor<8x?x256xf16>, %ids: tensor<8xi32>,
                   %w13: tensor<8x256x1x128xf16, #awq>,
                   %w2: tensor<8x128x256xf16, #wna16.dense>,
                   %init: tensor<8x?x256xf16>) -> tensor<8x?x256xf16> {
  // CHECK: wna16.fused_experts relu2 x({{.*}}) routing(%{{.*}} : tensor<8xi32>) w13(%{{.*}} : tensor<8x256x1x128xf16, #awq>) w2(%{{.*}} : tensor<8x128x256xf16, #wna16.dense>) outs({{.*}}) {batched} -> tensor<8x?x256xf16>
  %0 = wna16.fused_experts relu2 x(%x : tensor<8x?x256xf16>)
      routing(%ids : tensor<8xi32>) w13(%w13 : tensor<8x256x1x128xf16, #awq>)
      w2(%w2 : tensor<8x128x256xf16, #wna16.dense>)
      outs(%init : tensor<8x?x256xf16>) {batched} -> tensor<8x?x256xf16>
  return %0 : tensor<8x?x256xf16>
}
