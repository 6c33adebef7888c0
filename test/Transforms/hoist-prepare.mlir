// RUN: wna16-opt %s -wna16-hoist-prepare -o %t.once
// RUN: FileCheck %s --input-file=%t.once
// RUN: wna16-opt %t.once -wna16-hoist-prepare -o %t.twice
// RUN: diff %t.once %t.twice

// CHECK-DAG: #[[GPTQ:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq>
// CHECK-DAG: #[[BF16:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16>
// CHECK-DAG: #[[MARLIN:.*]] = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#bf16 = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>
!x = tensor<?x64xbf16>

// A function for each weight takes and gives one expert. The steps of a weight
// become one convert, a single step stays itself, and a parameter that needs
// none stays with @forward. Nothing of it is writable.
// CHECK-LABEL: func.func @prepare_w13(
// CHECK-SAME: %[[Q13:.*]]: tensor<1x8x64xi32> {bufferization.writable = false, wna16.parameter = {concat = 1 : i64, pattern = "e.{expert}.{gate,up}.qweight"}},
// CHECK-SAME: %[[S13:.*]]: tensor<1x2x64xf16> {bufferization.writable = false, wna16.parameter = {concat = 1 : i64, pattern = "e.{expert}.{gate,up}.scales"}})
// CHECK-SAME: -> (tensor<1x64x2x64xbf16, #[[MARLIN]]> {wna16.prepared = "w13"}) attributes {wna16.experts = 2 : i64, wna16.prepare = "forward"}
// CHECK-NEXT: %[[W13:.*]] = wna16.assemble codes = %[[Q13]], scales = %[[S13]] : {{.*}} -> tensor<1x64x2x32xbf16, #[[GPTQ]]>
// CHECK-NEXT: %[[R13:.*]] = wna16.convert %[[W13]] : tensor<1x64x2x32xbf16, #[[GPTQ]]> to tensor<1x64x2x64xbf16, #[[MARLIN]]>
// CHECK-NEXT: return %[[R13]]
// CHECK-LABEL: func.func @prepare_w2(
// CHECK-SAME: %[[Q2:.*]]: tensor<1x8x64xi32> {bufferization.writable = false, wna16.parameter = {pattern = "e.{expert}.down.qweight"}},
// CHECK-SAME: %[[S2:.*]]: tensor<1x2x64xbf16> {bufferization.writable = false, wna16.parameter = {pattern = "e.{expert}.down.scales"}})
// CHECK-SAME: -> (tensor<1x64x64xbf16, #[[MARLIN]]> {wna16.prepared = "w2"}) attributes {wna16.experts = 2 : i64, wna16.prepare = "forward"}
// CHECK: wna16.repack
// CHECK-LABEL: func.func @prepare_bias2(
// CHECK-SAME: %[[B2:.*]]: tensor<1x64xbf16> {bufferization.writable = false, wna16.parameter = {pattern = "e.{expert}.down.bias"}})
// CHECK-SAME: -> (tensor<1x64xbf16, #wna16.bias<layout = marlin>> {wna16.prepared = "bias2"}) attributes {wna16.experts = 2 : i64, wna16.prepare = "forward"}
// CHECK-NEXT: %[[RB:.*]] = wna16.convert_bias %[[B2]]
// CHECK-NEXT: return %[[RB]]
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<?x64xbf16> {wna16.name = "x"},
// CHECK-SAME: %[[W13:[a-z0-9]+]]: tensor<2x64x2x64xbf16, #[[MARLIN]]> {bufferization.writable = false, wna16.encoding = "tensor<2x64x2x64xbf16, #wna16.packed<u4b8, group = 32, layout = marlin, scale = bf16>>", wna16.prepared = "w13"},
// CHECK-SAME: %[[W2:[a-z0-9]+]]: tensor<2x64x64xbf16, #[[MARLIN]]> {bufferization.writable = false, wna16.encoding = "{{.*}}", wna16.prepared = "w2"},
// CHECK-SAME: %[[B2:[a-z0-9]+]]: tensor<2x64xbf16, #wna16.bias<layout = marlin>> {bufferization.writable = false, wna16.encoding = "tensor<2x64xbf16, #wna16.bias<layout = marlin>>", wna16.prepared = "bias2"},
// CHECK-SAME: %[[B13:[a-z0-9]+]]: tensor<2x2x64xbf16> {bufferization.writable = false, wna16.parameter = {pattern = "e.{expert}.up.bias"}})
// CHECK-SAME: -> (tensor<?x64xbf16> {wna16.name = "out"}) attributes {wna16.backends = ["marlin"]}
// CHECK-NEXT: wna16.fused_experts {{.*}} w13(%[[W13]] : {{.*}} w2(%[[W2]] : {{.*}} bias13(%[[B13]] : {{.*}} bias2(%[[B2]] :
func.func @forward(%x: !x {wna16.name = "x"}, %w: tensor<?x1xf32>, %i: tensor<?x1xi32>) -> (!x {wna16.name = "out"}) {
  %q13 = wna16.parameter "e.{expert}.{gate,up}.qweight" concat(1) : tensor<2x8x64xi32>
  %s13 = wna16.parameter "e.{expert}.{gate,up}.scales" concat(1) : tensor<2x2x64xf16>
  %w13 = wna16.assemble codes = %q13, scales = %s13 : tensor<2x8x64xi32>, tensor<2x2x64xf16>
      -> tensor<2x64x2x32xbf16, #gptq>
  %0 = wna16.pad %w13 : tensor<2x64x2x32xbf16, #gptq> to tensor<2x64x2x64xbf16, #gptq>
  %1 = wna16.recode %0 : tensor<2x64x2x64xbf16, #gptq> to tensor<2x64x2x64xbf16, #bf16>
  %2 = wna16.repack %1 : tensor<2x64x2x64xbf16, #bf16> to tensor<2x64x2x64xbf16, #marlin>
  %q2 = wna16.parameter "e.{expert}.down.qweight" : tensor<2x8x64xi32>
  %s2 = wna16.parameter "e.{expert}.down.scales" : tensor<2x2x64xbf16>
  %w2 = wna16.assemble codes = %q2, scales = %s2 : tensor<2x8x64xi32>, tensor<2x2x64xbf16> -> tensor<2x64x64xbf16, #bf16>
  %3 = wna16.repack %w2 : tensor<2x64x64xbf16, #bf16> to tensor<2x64x64xbf16, #marlin>
  %b2 = wna16.parameter "e.{expert}.down.bias" : tensor<2x64xbf16>
  %4 = wna16.convert_bias %b2 : tensor<2x64xbf16> to tensor<2x64xbf16, #wna16.bias<layout = marlin>>
  %b13 = wna16.parameter "e.{expert}.up.bias" : tensor<2x2x64xbf16>
  %y = wna16.fused_experts silu x(%x : !x) routing(%w, %i : tensor<?x1xf32>, tensor<?x1xi32>)
      w13(%2 : tensor<2x64x2x64xbf16, #marlin>) w2(%3 : tensor<2x64x64xbf16, #marlin>)
      bias13(%b13 : tensor<2x2x64xbf16>) bias2(%4 : tensor<2x64xbf16, #wna16.bias<layout = marlin>>) 
      outs(%x : !x) {backend = "marlin"} -> !x
  return %y : !x
}

// Nothing to prepare: no @prepare_7_weight.
// CHECK-NOT: func.func @prepare_7
// CHECK-LABEL: func.func @forward_7(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<4x64xbf16> {bufferization.writable = false, wna16.parameter = {pattern = "gate.weight"}})
// CHECK-NEXT: wna16.assemble codes = %[[Q]]
func.func @forward_7(%x: !x, %i: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %q = wna16.parameter "gate.weight" : tensor<4x64xbf16>
  %r = wna16.assemble codes = %q : tensor<4x64xbf16> -> tensor<64x4xbf16, #wna16.dense>
  %0 = wna16.linear x(%x : !x) weight(%r : tensor<64x4xbf16, #wna16.dense>) outs(%i : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// Two uses of one weight have two names and are prepared together, so that it
// is read once.
// CHECK-LABEL: func.func @two_prepare_weight(
// CHECK-SAME: -> (tensor<64x64xbf16, #[[BF16]]> {wna16.prepared = "weight"}, tensor<64x64xf32, #wna16.dense> {wna16.prepared = "weight_1"})
// CHECK: wna16.assemble
// CHECK-NOT: wna16.assemble
// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<64x64xbf16, #[[BF16]]> {bufferization.writable = false, wna16.encoding = "{{.*}}", wna16.prepared = "weight"}, %[[B:[a-z0-9]+]]: tensor<64x64xf32, #wna16.dense> {bufferization.writable = false, wna16.encoding = "{{.*}}", wna16.prepared = "weight_1"})
// CHECK: weight(%[[A]] :
// CHECK: weight(%[[B]] :
func.func @two(%x: !x, %i: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %q2 = wna16.parameter "a.qweight" : tensor<8x64xi32>
  %s2 = wna16.parameter "a.scales" : tensor<2x64xf16>
  %w2 = wna16.assemble codes = %q2, scales = %s2 : tensor<8x64xi32>, tensor<2x64xf16> -> tensor<64x64xbf16, #gptq>
  %a = wna16.recode %w2 : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #bf16>
  %b = wna16.dequantize %w2 : tensor<64x64xbf16, #gptq> to tensor<64x64xf32, #wna16.dense>
  %0 = wna16.linear x(%x : !x) weight(%a : tensor<64x64xbf16, #bf16>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = wna16.linear x(%x : !x) weight(%b : tensor<64x64xf32, #wna16.dense>) outs(%0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// Constants go where they are needed.
// CHECK-LABEL: func.func @constants_prepare_weight()
// CHECK-SAME: -> (tensor<64x64xbf16, #[[BF16]]> {wna16.prepared = "weight"})
// CHECK-DAG: %[[Q:.*]] = arith.constant dense_resource<codes>
// CHECK-DAG: %[[S:.*]] = arith.constant dense_resource<scales>
// CHECK: wna16.assemble codes = %[[Q]], scales = %[[S]]
// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<64x64xbf16, #[[BF16]]> {bufferization.writable = false, wna16.encoding = "{{.*}}", wna16.prepared = "weight"})
// CHECK-NEXT: wna16.linear {{.*}} weight(%[[W]] :
func.func @constants(%x: !x, %i: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %q = arith.constant dense_resource<codes> : tensor<8x64xi32>
  %s = arith.constant dense_resource<scales> : tensor<2x64xf16>
  %w = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xf16> -> tensor<64x64xbf16, #gptq>
  %a = wna16.recode %w : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #bf16>
  %0 = wna16.linear x(%x : !x) weight(%a : tensor<64x64xbf16, #bf16>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
ml_program.global private @codes(#ml_program.extern<tensor<8x64xi32>>) : tensor<8x64xi32>
ml_program.global private @scales(#ml_program.extern<tensor<2x64xf16>>) : tensor<2x64xf16>

// A global with an external value is a parameter with the symbol's name.
// CHECK-NOT: ml_program
// CHECK-LABEL: func.func @globals_prepare_weight(
// CHECK-SAME: %[[Q:.*]]: tensor<8x64xi32> {bufferization.writable = false, wna16.parameter = {pattern = "codes"}}, %[[S:.*]]: tensor<2x64xf16> {bufferization.writable = false, wna16.parameter = {pattern = "scales"}})
// CHECK: wna16.assemble codes = %[[Q]], scales = %[[S]]
// CHECK-LABEL: func.func @globals(
// CHECK-NOT: ml_program
func.func @globals(%x: !x, %i: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %q = ml_program.global_load_const @codes : tensor<8x64xi32>
  %s = ml_program.global_load_const @scales : tensor<2x64xf16>
  %w = wna16.assemble codes = %q, scales = %s : tensor<8x64xi32>, tensor<2x64xf16> -> tensor<64x64xbf16, #gptq>
  %a = wna16.recode %w : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #bf16>
  %0 = wna16.linear x(%x : !x) weight(%a : tensor<64x64xbf16, #bf16>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Without weights of its own a function stays as it is.
// CHECK-NOT: @untouched_prepare
// CHECK-LABEL: func.func @untouched(
// CHECK-NEXT: wna16.recode %arg1
func.func @untouched(%x: !x, %w: tensor<64x64xbf16, #gptq>) -> tensor<64x64xbf16, #bf16> {
  %a = wna16.recode %w : tensor<64x64xbf16, #gptq> to tensor<64x64xbf16, #bf16>
  return %a : tensor<64x64xbf16, #bf16>
}

func.func private @external(!x)

{-# dialect_resources: { builtin: { codes: "0x0400000000000000", scales: "0x0400000000000000" } } #-}
