// RUN: wna16-opt %s -wna16-disassemble | FileCheck %s
// RUN: wna16-opt %s -wna16-disassemble -wna16-verify-disassembled -o /dev/null

// CHECK-DAG: #[[GPTQ:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq>
// CHECK-DAG: #[[ASYM:.*]] = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
// CHECK-DAG: #[[INDEX:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
// CHECK-DAG: #[[SORTED:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
// CHECK-DAG: #[[FOLDED:.*]] = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
// CHECK-DAG: #[[MARLIN:.*]] = #wna16.packed<u4b8, group = 32, layout = marlin>

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
#asym = #wna16.packed<u4, group = 32, layout = gptq, zeros = plain>
#index = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index>
#sorted = #wna16.packed<u4b8, group = 32, layout = gptq, act_order = sorted>
#folded = #wna16.packed<u4b8, group = 32, layout = gptq, scale = i16>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
!w = tensor<2x64x64xf16, #gptq>
!m = tensor<2x64x64xf16, #marlin>
module attributes {wna16.target = #wna16.target<cpu>} {

// Attributes go to each part, the prepared name with the part's.
// CHECK-LABEL: func.func @id(
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x64xi32> {bufferization.writable = false, wna16.prepared = "w2.codes"}, %[[S:.*]]: tensor<2x2x64xf16> {bufferization.writable = false, wna16.prepared = "w2.scales"})
// CHECK-SAME: -> (tensor<2x8x64xi32> {wna16.prepared = "w2.codes"}, tensor<2x2x64xf16> {wna16.prepared = "w2.scales"})
// CHECK: return %[[Q]], %[[S]]
func.func @id(%w: !w {wna16.prepared = "w2", bufferization.writable = false}) -> (!w {wna16.prepared = "w2"}) {
  return %w : !w
}

// CHECK: func.func private @ext(tensor<2x8x64xi32>, tensor<2x2x64xf16>) -> (tensor<2x8x64xi32>, tensor<2x2x64xf16>)
func.func private @ext(!w) -> !w

// CHECK-LABEL: func.func @call(
// CHECK: %[[R:.*]]:2 = call @ext(%arg0, %arg1) : (tensor<2x8x64xi32>, tensor<2x2x64xf16>) -> (tensor<2x8x64xi32>, tensor<2x2x64xf16>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @call(%w: !w) -> !w { %0 = call @ext(%w) : (!w) -> !w
  return %0 : !w
}

// CHECK-LABEL: func.func @branch(
// CHECK: cf.cond_br %arg0, ^[[B1:.*]](%arg1, %arg2 : tensor<2x8x64xi32>, tensor<2x2x64xf16>), ^[[B2:.*]](%arg3, %arg4 : tensor<2x8x64xi32>, tensor<2x2x64xf16>)
// CHECK: ^[[B1]](%[[A:.*]]: tensor<2x8x64xi32>, %[[B:.*]]: tensor<2x2x64xf16>):
// CHECK: cf.br ^[[B2]](%[[A]], %[[B]] : tensor<2x8x64xi32>, tensor<2x2x64xf16>)
// CHECK: ^[[B2]](%[[A:.*]]: tensor<2x8x64xi32>, %[[B:.*]]: tensor<2x2x64xf16>):
// CHECK: return %[[A]], %[[B]]
func.func @branch(%c: i1, %a: !w, %b: !w) -> !w {
  cf.cond_br %c, ^bb1(%a : !w), ^bb2(%b : !w)
^bb1(%0: !w):
  cf.br ^bb2(%0 : !w)
^bb2(%1: !w):
  return %1 : !w
}

// CHECK-LABEL: func.func @scf_if(
// CHECK: %[[R:.*]]:2 = scf.if %arg0 -> (tensor<2x8x64xi32>, tensor<2x2x64xf16>)
// CHECK: scf.yield %arg1, %arg2
// CHECK: scf.yield %arg3, %arg4
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @scf_if(%c: i1, %a: !w, %b: !w) -> !w {
  %0 = scf.if %c -> !w {
    scf.yield %a : !w
  } else {
    scf.yield %b : !w
  }
  return %0 : !w
}

// CHECK-LABEL: func.func @scf_for(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %arg1, %[[B:.*]] = %arg2) -> (tensor<2x8x64xi32>, tensor<2x2x64xf16>)
// CHECK: %[[C:.*]]:2 = func.call @ext(%[[A]], %[[B]])
// CHECK: scf.yield %[[C]]#0, %[[C]]#1
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @scf_for(%n: index, %a: !w, %b: !w) -> !w {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %a) -> (!w) {
    %r = func.call @ext(%v) : (!w) -> !w
    scf.yield %r : !w
  }
  return %0 : !w
}

// CHECK-LABEL: func.func @select(
// CHECK: %[[A:.*]] = arith.select %arg0, %arg1, %arg3 : tensor<2x8x64xi32>
// CHECK: %[[B:.*]] = arith.select %arg0, %arg2, %arg4 : tensor<2x2x64xf16>
// CHECK: return %[[A]], %[[B]]
func.func @select(%c: i1, %a: !w, %b: !w) -> !w {
  %0 = arith.select %c, %a, %b : !w
  return %0 : !w
}

// The extents are those of the logical tensor, empty ones those of storage.
// CHECK-LABEL: func.func @dim(
// CHECK-DAG: %[[D:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[A:.*]] = tensor.empty() : tensor<2x8x64xi32>
// CHECK-DAG: %[[B:.*]] = tensor.empty() : tensor<2x2x64xf16>
// CHECK: return %[[D]], %[[A]], %[[B]]
func.func @dim(%a: !w) -> (index, !w) {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %a, %c1 : !w
  %e = tensor.empty() : !w
  return %d, %e : index, !w
}

// CHECK-LABEL: func.func @parts(
// CHECK-NEXT: return %arg1
func.func @parts(%q: tensor<2x8x64xi32>, %s: tensor<2x2x64xf16>) -> tensor<2x2x64xf16> {
  %w = wna16.assemble codes = %q, scales = %s : tensor<2x8x64xi32>, tensor<2x2x64xf16> -> !w
  %a, %b = wna16.disassemble %w : !w
  return %b : tensor<2x2x64xf16>
}

// Each step is one kernel, told apart by the types.
// CHECK-LABEL: func.func @steps(
// CHECK-DAG: %[[E0:.*]] = tensor.empty() : tensor<2x16x64xi32>
// CHECK-DAG: %[[E1:.*]] = tensor.empty() : tensor<2x4x64xf16>
// CHECK: %[[P0:.*]] = wna16.kernel_plan convert @wna16_cpu_convert {source = tensor<2x64x64xf16, #[[GPTQ]]>, target = tensor<2x128x64xf16, #[[GPTQ]]>}
// CHECK: %[[R0:.*]]:2 = wna16.kernel_run %[[P0]] ins(%arg0, %arg1 : {{.*}}) outs(%[[E0]], %[[E1]] : {{.*}}) roles ["source.codes", "source.scales", "target.codes", "target.scales"] ->
// CHECK: %[[P1:.*]] = wna16.kernel_plan convert @wna16_cpu_convert {source = tensor<2x64x64xf16, #[[GPTQ]]>, target = tensor<2x64x64xf16, #[[MARLIN]]>}
// CHECK: %[[R1:.*]]:2 = wna16.kernel_run %[[P1]] ins(%arg0, %arg1 : {{.*}}) outs({{.*}} : {{.*}}) roles ["source.codes", "source.scales", "target.codes", "target.scales"] ->
// CHECK: %[[P2:.*]] = wna16.kernel_plan convert @wna16_cpu_convert {source = tensor<2x64x64xf16, #[[INDEX]]>, target = tensor<2x64x64xf16, #[[SORTED]]>}
// CHECK: %[[R2:.*]]:3 = wna16.kernel_run %[[P2]] ins(%arg2, %arg3, %arg4 : {{.*}}) outs({{.*}} : {{.*}}) roles ["source.codes", "source.scales", "source.group_index", "target.codes", "target.scales", "target.permutation"] ->
// CHECK-DAG: %[[S:.*]] = tensor.empty() : tensor<2x2x64xi16>
// CHECK-DAG: %[[G:.*]] = tensor.empty() : tensor<1xf32>
// CHECK: %[[P3:.*]] = wna16.kernel_plan convert @wna16_cpu_convert {source = tensor<2x64x64xf16, #[[GPTQ]]>, target = tensor<2x64x64xf16, #[[FOLDED]]>}
// CHECK: %[[R3:.*]]:3 = wna16.kernel_run %[[P3]] ins(%arg0, %arg1 : {{.*}}) outs(%{{.*}}, %[[S]], %[[G]] : {{.*}}) roles ["source.codes", "source.scales", "target.codes", "target.scales", "target.global_scale"] ->
// CHECK: return %[[R0]]#0, %[[R0]]#1, %[[R1]]#0, %[[R1]]#1, %[[R2]]#0, %[[R2]]#1, %[[R2]]#2, %[[R3]]#0, %[[R3]]#1, %[[R3]]#2
func.func @steps(%w: !w, %i: tensor<2x64x64xf16, #index>) -> 
    (tensor<2x128x64xf16, #gptq>, !m, tensor<2x64x64xf16, #sorted>, tensor<2x64x64xf16, #folded>) {
  %p = wna16.pad %w : !w to tensor<2x128x64xf16, #gptq>
  %0 = wna16.repack %w : !w to !m
  %1 = wna16.sort_groups %i : tensor<2x64x64xf16, #index> to tensor<2x64x64xf16, #sorted>
  %2 = wna16.recode %w : !w to tensor<2x64x64xf16, #folded>
  return %p, %0, %1, %2 : tensor<2x128x64xf16, #gptq>, !m, tensor<2x64x64xf16, #sorted>, tensor<2x64x64xf16, #folded>
}

// CHECK-LABEL: func.func @values(
// CHECK: %[[P0:.*]] = wna16.kernel_plan dequantize @wna16_cpu_dequantize {scale_first, source = tensor<2x64x64xf16, #[[ASYM]]>, target = tensor<2x64x64xf32, #wna16.dense>}
// CHECK: %[[R0:.*]] = wna16.kernel_run %[[P0]] ins(%arg0, %arg1, %arg2 : {{.*}}) outs({{.*}} : {{.*}}) roles ["source.codes", "source.scales", "source.zeros", "target"] ->
// CHECK: %[[P1:.*]] = wna16.kernel_plan quantize @wna16_cpu_quantize {source = tensor<2x64x64xf16, #wna16.dense>, target = tensor<2x64x64xf16, #[[GPTQ]]>}
// CHECK: %[[R1:.*]]:2 = wna16.kernel_run %[[P1]] ins(%arg3 : {{.*}}) outs({{.*}} : {{.*}}) roles ["source", "target.codes", "target.scales"] ->
// CHECK: %[[P2:.*]] = wna16.kernel_plan convert_bias @wna16_cpu_convert_bias {source = tensor<2x64xf16>, target = tensor<2x64xf16, #wna16.bias<layout = marlin>>}
// CHECK: %[[R2:.*]] = wna16.kernel_run %[[P2]] ins(%arg4 : {{.*}}) outs({{.*}} : {{.*}}) roles ["source", "target"] ->
// CHECK: return %[[R0]], %[[R1]]#0, %[[R1]]#1, %[[R2]] : tensor<2x64x64xf32>, tensor<2x8x64xi32>, tensor<2x2x64xf16>, tensor<2x64xf16>
func.func @values(%w: tensor<2x64x64xf16, #asym>, %d : tensor<2x64x64xf16, #wna16.dense>, %b: tensor<2x64xf16>) -> (tensor<2x64x64xf32, #wna16.dense>, !w, tensor<2x64xf16, #wna16.bias<layout = marlin>>) {
  %0 = wna16.dequantize %w scale_first : tensor<2x64x64xf16, #asym> to tensor<2x64x64xf32, #wna16.dense>
  %1 = wna16.quantize %d : tensor<2x64x64xf16, #wna16.dense> to !w
  %2 = wna16.convert_bias %b : tensor<2x64xf16> to tensor<2x64xf16, #wna16.bias<layout = marlin>>
  return %0, %1, %2 : tensor<2x64x64xf32, #wna16.dense>, !w, tensor<2x64xf16, #wna16.bias<layout = marlin>>
}

// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %arg1: tensor<8x64xf16>
// CHECK: %[[P0:.*]] = wna16.kernel_plan linear @wna16_cpu_linear {batch_invariant, weight = tensor<64x8xf16, #wna16.dense>}
// CHECK: %[[R0:.*]] = wna16.kernel_run %[[P0]] ins(%arg0, %arg1, %arg2 : {{.*}}) outs(%arg3 : {{.*}}) roles ["x", "weight.codes", "bias", "y"] ->
func.func @linear(%x: tensor<?x64xf16>, %w: tensor<64x8xf16, #wna16.dense>, %b: tensor<8xf16>, %i: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = wna16.linear x(%x : tensor<?x64xf16>) weight(%w : tensor<64x8xf16, #wna16.dense>) bias(%b : tensor<8xf16>) outs(%i : tensor<?x8xf32>) {batch_invariant} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK: %[[P0:.*]] = wna16.kernel_plan rms_norm @wna16_cpu_rms_norm {epsilon = 0.000000e+00 : f64, hidden = 8 : i64, scale = 5.000000e-01 : f64}
// CHECK: wna16.kernel_run %[[P0]] ins(%arg0, %arg1, %arg2 : {{.*}}) outs(%arg3 : {{.*}}) roles ["x", "weight", "addend", "y"] ->
func.func @rms_norm(%x: tensor<?x8xbf16>, %w: tensor<8xbf16>, %a: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = wna16.rms_norm x(%x : tensor<?x8xbf16>) weight(%w : tensor<8xbf16>) add(%a : tensor<?x8xf32>)
      outs(%y : tensor<?x8xf32>) {epsilon = 0.0, scale = 0.5} -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @route(
// CHECK: %[[P0:.*]] = wna16.kernel_plan route @wna16_cpu_route {experts = 8 : i64, groups = 4 : i64, scaling = 2.500000e+00 : f64, scoring = "sigmoid", top_groups = 2 : i64, top_k = 2 : i64}
// CHECK: %[[R0:.*]]:2 = wna16.kernel_run %[[P0]] ins(%arg0, %arg1 : {{.*}}) outs(%arg2, %arg3 : {{.*}}) roles ["logits", "correction", "weights", "ids"] ->
func.func @route(%l: tensor<?x8xf32>, %c: tensor<8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route sigmoid logits(%l : tensor<?x8xf32>) correction(%c : tensor<8xf32>) outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {groups = 4 : i64, top_groups = 2 : i64, scaling = 2.5 : f64} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}

// CHECK-LABEL: func.func @route_mixed(
// CHECK: %[[P0:.*]] = wna16.kernel_plan route @wna16_cpu_route {experts = 8 : i64, groups = 1 : i64, jitter = 1.000000e-02 : f64, scaling = 1.000000e+00 : f64, scoring = "sparsemixer", top_groups = 1 : i64, top_k = 2 : i64}
// CHECK: wna16.kernel_run %[[P0]] ins(%arg0, %arg1 : {{.*}}) outs(%arg2, %arg3 : {{.*}}) roles ["logits", "expert_scale", "weights", "ids"] ->
func.func @route_mixed(%l: tensor<?x8xf32>, %s: tensor<8xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = wna16.route sparsemixer logits(%l : tensor<?x8xf32>) expert_scale(%s : tensor<8xbf16>) outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      {jitter = 0.01 : f64} -> tensor<?x2xf32>, tensor<?x2xi32>
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}

// CHECK-LABEL: func.func @experts(
// CHECK: %[[P0:.*]] = wna16.kernel_plan experts @wna16_cpu_fused_experts {activation = "swigluoai", alpha = 1.702000e+00 : f64, batch_invariant, beta = 1.000000e+00 : f64, element = f16, hidden = 64 : i64, limit = 7.000000e+00 : f64, top_k = 2 : i64, w13 = tensor<2x64x2x64xf16, #[[GPTQ]]>, w2 = tensor<2x64x64xf16, #[[GPTQ]]>}
// CHECK: %[[R0:.*]] = wna16.kernel_run %[[P0]] ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9 : {{.*}}) outs(%arg10 : {{.*}}) roles ["x", "weights", "ids", "w13.codes", "w13.scales", "w2.codes", "w2.scales", "bias13", "bias2", "expert_map", "y"] ->
func.func @experts(%x: tensor<?x64xf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>,
    %w13: tensor<2x64x2x64xf16, #gptq>, %w2: !w, %b13: tensor<2x2x64xf16>, %b2: tensor<2x64xf16>, %m: tensor<4xi32>, %o: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = wna16.fused_experts swigluoai x(%x : tensor<?x64xf16>) routing(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>)
      w13(%w13 : tensor<2x64x2x64xf16, #gptq>) w2(%w2 : !w)
      bias13(%b13 : tensor<2x2x64xf16>) bias2(%b2 : tensor<2x64xf16>) expert_map(%m : tensor<4xi32>)
      outs(%o : tensor<?x64xf16>) {backend = "cpu", alpha = 1.702 : f64, beta = 1.0 : f64, limit = 7.0 : f64, batch_invariant} -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}

// CHECK-LABEL: func.func @batched(
// CHECK: %[[P0:.*]] = wna16.kernel_plan experts @wna16_cpu_fused_experts {activation = "silu", batched, element = f16, {{.*}}}
// CHECK: %[[R0:.*]] = wna16.kernel_run %[[P0]] ins(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5 : {{.*}}) outs(%arg6 : {{.*}}) roles ["x", "ids", "w13.codes", "w13.scales", "w2.codes", "w2.scales", "y"] ->
func.func @batched(%x: tensor<2x?x64xf16>, %i: tensor<2xi32>,
    %w13: tensor<2x64x2x64xf16, #gptq>, %w2: !w, %o: tensor<2x?x64xf16>) -> tensor<2x?x64xf16> {
  %0 = wna16.fused_experts silu x(%x : tensor<2x?x64xf16>) routing(%i : tensor<2xi32>)
      w13(%w13 : tensor<2x64x2x64xf16, #gptq>) w2(%w2 : !w) outs(%o : tensor<2x?x64xf16>) {backend = "cpu", batched} -> tensor<2x?x64xf16>
  return %0 : tensor<2x?x64xf16>
}
}
