// RUN: wna16-opt %s -wna16-emulate -canonicalize -cse | FileCheck %s
// RUN: wna16-opt %s -wna16-emulate -wna16-verify-disassembled -o /dev/null

#u4b8 = #wna16.packed<u4b8, group = 32, layout = gptq>
#s4 = #wna16.packed<s4, group = 32, layout = gptq>
#v1 = #wna16.packed<u4, group = 32, layout = gptq, zeros = minus_one>
#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
#g16 = #wna16.packed<u4b8, group = 16, layout = gptq>
#fp8 = #wna16.packed<u4fp8, group = 32, layout = gptq>

// Cases B85 and B86: codes are zero-extended, and the zero point is subtracted.
// CHECK-LABEL: func.func @dequantize(
// CHECK-SAME: %[[CODES:.*]]: tensor<2x8x16xi32>, %[[SCALES:.*]]: tensor<2x2x16xf16>) -> tensor<2x16x64xf32>
// CHECK-NOT: extsi
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[FLAT:.*]] = tensor.collapse_shape %[[CODES]]
// CHECK-DAG: %[[FLAT_SCALES:.*]] = tensor.collapse_shape %[[SCALES]]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]
// CHECK: %[[WORD:.*]] = tensor.extract %[[FLAT]]
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[WORD]]
// CHECK: %[[CODE:.*]] = arith.andi %[[SHIFTED]], %c15_i32
// CHECK: %[[DIFFERENCE:.*]] = arith.subi %[[CODE]], %[[EIGHT]] : i32
// CHECK: %[[STORED:.*]] = tensor.extract %[[FLAT_SCALES]]
// CHECK: %[[SCALE:.*]] = arith.extf %[[STORED]] : f16 to f32
// CHECK: %[[FLOAT:.*]] = arith.sitofp %[[DIFFERENCE]] : i32 to f32
// CHECK: %[[VALUE:.*]] = arith.mulf %[[FLOAT]], %[[SCALE]] : f32
// CHECK: linalg.yield %[[VALUE]] : f32
func.func @dequantize(%w: tensor<2x64x16xbf16, #u4b8>) -> tensor<2x64x16xf32, #wna16.dense> {
  %0 = wna16.dequantize %w : tensor<2x64x16xbf16, #u4b8>
      to tensor<2x64x16xf32, #wna16.dense>
  return %0 : tensor<2x64x16xf32, #wna16.dense>
}

// Stored zero points get 1 added in their own field before the subtraction.
// CHECK-LABEL: func.func @stored_zero_points(
// CHECK-SAME: %{{.*}}: tensor<2x8x16xi32>, %{{.*}}: tensor<2x2x16xf16>, %[[ZEROS:.*]]: tensor<2x2x2xi32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[ZEROS]]
// CHECK: linalg.generic
// CHECK: tensor.extract %[[FLAT]]
// CHECK: %[[STORED:.*]] = arith.andi %{{.*}}, %c15_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[STORED]], %c1_i32
// CHECK: %[[ZERO:.*]] = arith.andi %[[NEXT]], %c15_i32
// CHECK: arith.subi %{{.*}}, %[[ZERO]] : i32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @stored_zero_points(%w: tensor<2x64x16xbf16, #v1>) -> tensor<2x64x16xbf16, #wna16.dense> {
  %0 = wna16.dequantize %w : tensor<2x64x16xbf16, #v1>
      to tensor<2x64x16xbf16, #wna16.dense>
  return %0 : tensor<2x64x16xbf16, #wna16.dense>
}

// Two's complement: the top bit is inverted, then 8 subtracted.
// CHECK-LABEL: func.func @signed_codes(
// CHECK-NOT: extsi
// CHECK: %[[CODE:.*]] = arith.andi %{{.*}}, %c15_i32
// CHECK: %[[UNSIGNED:.*]] = arith.xori %[[CODE]], %c8_i32
// CHECK: arith.subi %[[UNSIGNED]], %c8_i32
func.func @signed_codes(%w: tensor<64x16xf32, #s4>) -> tensor<64x16xf32, #wna16.dense> {
  %0 = wna16.dequantize %w : tensor<64x16xf32, #s4> to tensor<64x16xf32, #wna16.dense>
  return %0 : tensor<64x16xf32, #wna16.dense>
}

// Scales of fp8 codes are stored times 512, in their own type.
// CHECK-LABEL: func.func @fp8_scales(
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant 5.120000e+02 : f32
// CHECK-DAG: %[[UNIT:.*]] = arith.constant 0.001953125 : f32
// CHECK: %[[S:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[TIMES:.*]] = arith.mulf %[[S]], %[[FACTOR]] : f32
// CHECK: arith.truncf %[[TIMES]] : f32 to f16
// CHECK: %[[STORED:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf %[[STORED]], %[[UNIT]] : f32
func.func @fp8_scales(%a: tensor<2x64x16xbf16, #u4b8>, %b: tensor<2x64x16xbf16, #fp8>)
    -> (tensor<2x64x16xbf16, #fp8>, tensor<2x64x16xf32, #wna16.dense>) {
  %0 = wna16.recode %a : tensor<2x64x16xbf16, #u4b8> to tensor<2x64x16xbf16, #fp8>
  %1 = wna16.dequantize %b : tensor<2x64x16xbf16, #fp8>
      to tensor<2x64x16xf32, #wna16.dense>
  return %0, %1 : tensor<2x64x16xbf16, #fp8>, tensor<2x64x16xf32, #wna16.dense>
}

// rnd(rnd(Q - z) * rnd(s))
// CHECK-LABEL: func.func @scale_first(
// CHECK: %[[Q:.*]] = arith.sitofp {{.*}} : i32 to bf16
// CHECK: %[[DIFFERENCE:.*]] = arith.extf %[[Q]] : bf16 to f32
// CHECK: %[[S:.*]] = arith.truncf {{.*}} : f32 to bf16
// CHECK: %[[SCALE:.*]] = arith.extf %[[S]] : bf16 to f32
// CHECK: %[[VALUE:.*]] = arith.mulf %[[DIFFERENCE]], %[[SCALE]] : f32
// CHECK: arith.truncf %[[VALUE]] : f32 to bf16
func.func @scale_first(%w: tensor<2x64x16xbf16, #u4b8>) -> tensor<2x64x16xbf16, #wna16.dense> {
  %0 = wna16.dequantize %w scale_first : tensor<2x64x16xbf16, #u4b8>
      to tensor<2x64x16xbf16, #wna16.dense>
  return %0 : tensor<2x64x16xbf16, #wna16.dense>
}

// The group of a row is looked up, and never out of range.
// CHECK-LABEL: func.func @act_order(
// CHECK-SAME: %[[INDEX:[a-z0-9]+]]: tensor<2x64xi32>)
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[INDEX]]
// CHECK: %[[GROUP:.*]] = tensor.extract %[[FLAT]]
// CHECK: %[[CAST:.*]] = arith.index_cast %[[GROUP]] : i32 to index
// CHECK: arith.minui %[[CAST]], %c1 : index
func.func @act_order(%w: tensor<2x64x16xbf16, #index>) -> tensor<2x64x16xbf16, #wna16.dense> {
  %0 = wna16.dequantize %w : tensor<2x64x16xbf16, #index>
      to tensor<2x64x16xbf16, #wna16.dense>
  return %0 : tensor<2x64x16xbf16, #wna16.dense>
}

// The sum is f32, in blocks of 32, and rounded once after the bias.
// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xbf16>, %[[W:.*]]: tensor<16x64xbf16>, %[[BIAS:.*]]: tensor<16xf16>, %[[INIT:.*]]: tensor<?x16xbf16>)
// CHECK: linalg.generic {{.*}} outs(%[[INIT]] : tensor<?x16xbf16>)
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (f32)
// CHECK:   %[[BLOCK:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (f32)
// CHECK:     %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:     arith.addf %[[ACC]], %[[PRODUCT]] : f32
// CHECK: %[[STORED:.*]] = tensor.extract %[[BIAS]]
// CHECK: %[[B:.*]] = arith.extf %[[STORED]] : f16 to f32
// CHECK: %[[Y:.*]] = arith.addf %[[SUM]], %[[B]] : f32
// CHECK: arith.truncf %[[Y]] : f32 to bf16
func.func @linear(%x: tensor<?x64xbf16>, %w: tensor<64x16xbf16, #wna16.dense>,
                  %bias: tensor<16xf16>, %init: tensor<?x16xbf16>) -> tensor<?x16xbf16> {
  %0 = wna16.linear x(%x : tensor<?x64xbf16>)
      weight(%w : tensor<64x16xbf16, #wna16.dense>) bias(%bias : tensor<16xf16>)
      outs(%init : tensor<?x16xbf16>) -> tensor<?x16xbf16>
  return %0 : tensor<?x16xbf16>
}

// Sorted rows multiply the inputs that they came from.
// CHECK-LABEL: func.func @sorted_rows(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %{{.*}}, %[[PERMUTATION:[a-z0-9]+]]: tensor<64xi32>, %{{.*}}: tensor<?x16xf32>)
// CHECK: %[[FROM:.*]] = tensor.extract %[[PERMUTATION]]
// CHECK: %[[CAST:.*]] = arith.index_cast %[[FROM]] : i32 to index
// CHECK: %[[INPUT:.*]] = arith.minui %[[CAST]], %c63
// CHECK: tensor.extract %[[X]][%{{.*}}, %[[INPUT]]]
func.func @sorted_rows(%x: tensor<?x64xf32>, %w: tensor<64x16xf32, #sorted>,
                       %init: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0 = wna16.linear x(%x : tensor<?x64xf32>) weight(%w : tensor<64x16xf32, #sorted>)
      outs(%init : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// One value a row, then the elements.
// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME: %{{.*}}: tensor<?x8xbf16>, %[[WEIGHT:[a-z0-9]+]]: tensor<8xbf16>, %[[ADDEND:[a-z0-9]+]]: tensor<?x8xf32>, %[[Y:[a-z0-9]+]]: tensor<?x8xbf16>)
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf32>)
// CHECK: math.sqrt
// CHECK: %[[OUT:.*]] = linalg.generic {{.*}} outs(%[[Y]] : tensor<?x8xbf16>)
// CHECK-DAG: tensor.extract %[[ROWS]]
// CHECK-DAG: tensor.extract %[[WEIGHT]]
// CHECK-DAG: tensor.extract %[[ADDEND]]
// CHECK: arith.truncf
// CHECK: return %[[OUT]]
func.func @rms_norm(%x: tensor<?x8xbf16>, %w: tensor<8xbf16>, %a: tensor<?x8xf32>, %y: tensor<?x8xbf16>) -> tensor<?x8xbf16> {
  %0 = wna16.rms_norm x(%x : tensor<?x8xbf16>) weight(%w : tensor<8xbf16>) add(%a : tensor<?x8xf32>)
      outs(%y : tensor<?x8xbf16>) {epsilon = 1.0e-6, scale = 0.5} -> tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}

// Scores, ranks, ids, weights; results go into the inits.
// CHECK-LABEL: func.func @route(
// CHECK-SAME: %{{.*}}: tensor<?x8xf32>, %[[W:.*]]: tensor<?x2xf32>, %[[I:.*]]: tensor<?x2xi32>)
// CHECK: math.exp
// CHECK: %[[RANKS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x8xi32>)
// CHECK: arith.cmpf ord
// CHECK: arith.cmpf ogt
// CHECK: %[[IDS:.*]] = linalg.generic {{.*}} outs(%[[I]] : tensor<?x2xi32>)
// CHECK: tensor.extract %[[RANKS]]
// CHECK: %[[WEIGHTS:.*]] = linalg.generic {{.*}} outs(%[[W]] : tensor<?x2xf32>)
// CHECK: return %[[WEIGHTS]], %[[IDS]]
func.func @route(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>)
    -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route softmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize}
      -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}

// Experts left and near are added up; what is no number is near.
// CHECK-LABEL: func.func @sparsemixer(
// CHECK-SAME: %{{.*}}: tensor<?x8xf32>, %[[S:.*]]: tensor<8xbf16>, %[[W:[a-z0-9]+]]: tensor<?x2xf32>
// CHECK-DAG: %[[REACH:.*]] = arith.constant 2.000000e-02 : f32
// CHECK: linalg.generic {{.*}} outs(%[[W]] : tensor<?x2xf32>)
// CHECK: arith.cmpf ule, %{{.*}}, %[[REACH]]
// CHECK: arith.cmpi sge
// CHECK: math.exp
// CHECK: tensor.extract %[[S]]
func.func @sparsemixer(%logits: tensor<?x8xf32>, %scale: tensor<8xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>)
    -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route sparsemixer logits(%logits : tensor<?x8xf32>) expert_scale(%scale : tensor<8xbf16>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = 0.01} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}

// Two loop nests: activated rows, rounded once; the sum over slots in f32.
// Nothing is read for an id that is no expert.
// CHECK-LABEL: func.func @experts(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xbf16>, %[[W:.*]]: tensor<?x2xf32>, %[[IDS:.*]]: tensor<?x2xi32>,
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<?x64xbf16>) -> tensor<?x64xbf16>
// CHECK: %[[EMPTY:.*]] = tensor.empty(%{{.*}}) : tensor<?x2x16xbf16>
// CHECK: %[[H:.*]] = linalg.generic {{.*}} outs(%[[EMPTY]] : tensor<?x2x16xbf16>)
// CHECK:   %[[ID:.*]] = tensor.extract %[[IDS]]
// CHECK:   %[[E:.*]] = arith.index_cast %[[ID]] : i32 to index
// CHECK:   %[[HERE:.*]] = arith.cmpi ult, %[[E]], %c4 : index
// CHECK:   %[[ACTIVATED:.*]] = scf.if %[[HERE]] -> (f32)
// CHECK:     math.exp
// CHECK:   arith.truncf %[[ACTIVATED]] : f32 to bf16
// CHECK: linalg.generic {{.*}} outs(%[[INIT]] : tensor<?x64xbf16>)
// CHECK:   %[[Y:.*]] = scf.for {{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (f32)
// CHECK:     scf.if
// CHECK:       tensor.extract %[[H]]
// CHECK:       %[[ROUTING:.*]] = tensor.extract %[[W]]
// CHECK:       %[[SLOT:.*]] = arith.mulf %{{.*}}, %[[ROUTING]] : f32
// CHECK:       arith.addf %[[TOTAL]], %[[SLOT]] : f32
// CHECK:   arith.truncf %[[Y]] : f32 to bf16
// CHECK-NOT: wna16
func.func @experts(%x: tensor<?x64xbf16>, %w: tensor<?x2xf32>, %ids: tensor<?x2xi32>,
                   %w13: tensor<4x64x2x16xbf16, #u4b8>,
                   %w2: tensor<4x16x64xf32, #wna16.dense>,
                   %init: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %0 = wna16.fused_experts silu x(%x : tensor<?x64xbf16>)
      routing(%w, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<4x64x2x16xbf16, #u4b8>)
      w2(%w2 : tensor<4x16x64xf32, #wna16.dense>)
      outs(%init : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// Every word of the target gathers its codes from the source.
// CHECK-LABEL: func.func @repack(
// CHECK-SAME: %{{.*}}: tensor<2x8x64xi32>, %{{.*}}: tensor<2x2x64xf16>) -> (tensor<2x4x128xi32>, tensor<2x2x64xf16>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4x128xi32>)
// CHECK: scf.for {{.*}} iter_args(%[[WORD:.*]] = %{{.*}}) -> (i32)
// CHECK: arith.ori %[[WORD]], %{{.*}} : i32
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x64xf16>)
func.func @repack(%w: tensor<2x64x64xbf16, #u4b8>) -> tensor<2x64x64xbf16, #marlin> {
  %0 = wna16.repack %w : tensor<2x64x64xbf16, #u4b8> to tensor<2x64x64xbf16, #marlin>
  return %0 : tensor<2x64x64xbf16, #marlin>
}

// CHECK-LABEL: func.func @steps(
// CHECK-SAME: -> (tensor<2x8x16xi32>, tensor<2x4x16xf16>, tensor<2x8x16xi32>, tensor<2x2x16xf16>, tensor<2x64xi32>)
// CHECK-NOT: wna16
func.func @steps(%a: tensor<2x56x16xf16, #u4b8>, %b: tensor<2x64x16xf16, #index>)
    -> (tensor<2x64x16xf16, #g16>, tensor<2x64x16xf16, #sorted>) {
  %0 = wna16.pad %a : tensor<2x56x16xf16, #u4b8> to tensor<2x64x16xf16, #u4b8>
  %1 = wna16.regroup %0 : tensor<2x64x16xf16, #u4b8> to tensor<2x64x16xf16, #g16>
  %2 = wna16.sort_groups %b : tensor<2x64x16xf16, #index> to tensor<2x64x16xf16, #sorted>
  return %1, %2 : tensor<2x64x16xf16, #g16>, tensor<2x64x16xf16, #sorted>
}

// CHECK-LABEL: func.func @convert_bias(
// CHECK-SAME: %[[B:.*]]: tensor<2x2x96xf16>) -> tensor<2x2x128xf16>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x128xf16>)
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c96
// CHECK: scf.if %[[INSIDE]] -> (f16)
// CHECK: tensor.extract %[[B]]
func.func @convert_bias(%b: tensor<2x2x96xf16>)
    -> tensor<2x2x128xf16, #wna16.bias<layout = marlin>> {
  %0 = wna16.convert_bias %b : tensor<2x2x96xf16>
      to tensor<2x2x128xf16, #wna16.bias<layout = marlin>>
  return %0 : tensor<2x2x128xf16, #wna16.bias<layout = marlin>>
}
