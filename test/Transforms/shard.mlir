// A share of a weight and what comes after it are one step, one expert at a time,
// and one call of the runtime.
// RUN: wna16-opt %s -wna16-hoist-prepare | FileCheck %s
// RUN: wna16-opt %s -wna16-hoist-prepare -wna16-disassemble | FileCheck %s --check-prefix=CALL
// RUN: wna16-opt %s -wna16-hoist-prepare -wna16-emulate -o - | FileCheck %s --check-prefix=EMULATE

#g128 = #wna16.packed<u4b8, group = 128, layout = gptq>
#g64 = #wna16.packed<u4b8, group = 64, layout = gptq>
#rows = #wna16.packed<u4b8, group = 64, layout = compressed_tensors>
!x = tensor<?x64xbf16>

module attributes {wna16.target = #wna16.target<cpu>} {

// CHECK-LABEL: func.func @prepare_w13(
// CHECK-SAME: -> (tensor<1x64x2x192xbf16, #{{.*}}> {wna16.prepared = "w13"}) attributes {wna16.experts = 2 : i64,
// CHECK: wna16.shard %{{.*}} output rank 1 of 4 : tensor<1x64x2x768xbf16, #{{.*}}> to tensor<1x64x2x192xbf16, #{{.*}}>
// CHECK-LABEL: func.func @prepare_w2(
// CHECK-SAME: attributes {wna16.experts = 2 : i64,
// CHECK-NOT: wna16.shard
// CHECK: wna16.convert %{{.*}} window [192, 192, 0, 64] : tensor<1x768x64xbf16, #{{.*}}> to tensor<1x192x64xbf16, #{{.*}}>
// CHECK-LABEL: func.func @prepare_bias13(
// CHECK: wna16.shard %{{.*}} output rank 1 of 4 : tensor<1x2x768xbf16> to tensor<1x2x192xbf16>

// CALL-LABEL: func.func @prepare_w13(
// CALL: wna16.kernel_plan convert @wna16_cpu_convert {{.*}}window = array<i64: 0, 64, 192, 192>
// CALL-LABEL: func.func @prepare_w2(
// CALL: wna16.kernel_plan convert @wna16_cpu_convert {{.*}}window = array<i64: 192, 192, 0, 64>
// CALL-LABEL: func.func @prepare_bias13(
// CALL: wna16.kernel_plan convert_bias @wna16_cpu_convert_bias {{.*}}window = array<i64: 0, 1, 192, 192>

// EMULATE-LABEL: func.func @prepare_w13(
// EMULATE-NOT: wna16.shard
// EMULATE: return
func.func @forward(%x: !x, %weights: tensor<?x2xf32>, %ids: tensor<?x2xi32>, %y: !x) -> !x {
  %q13 = wna16.parameter "e.{expert}.{gate,up}.qweight" concat(1) : tensor<2x8x1536xi32>
  %s13 = wna16.parameter "e.{expert}.{gate,up}.scales" concat(1) : tensor<2x1x1536xf16>
  %0 = wna16.assemble codes = %q13, scales = %s13
      : tensor<2x8x1536xi32>, tensor<2x1x1536xf16> -> tensor<2x64x2x768xbf16, #g128>
  %w13 = wna16.shard %0 output rank 1 of 4
      : tensor<2x64x2x768xbf16, #g128> to tensor<2x64x2x192xbf16, #g128>
  %q2 = wna16.parameter "e.{expert}.down.qweight" : tensor<2x96x64xi32>
  %s2 = wna16.parameter "e.{expert}.down.scales" : tensor<2x6x64xf16>
  %1 = wna16.assemble codes = %q2, scales = %s2
      : tensor<2x96x64xi32>, tensor<2x6x64xf16> -> tensor<2x768x64xbf16, #g128>
  %2 = wna16.shard %1 input rank 1 of 4
      : tensor<2x768x64xbf16, #g128> to tensor<2x192x64xbf16, #g64>
  %w2 = wna16.repack %2 : tensor<2x192x64xbf16, #g64> to tensor<2x192x64xbf16, #rows>
  %3 = wna16.parameter "e.{expert}.bias" : tensor<2x2x768xbf16>
  %b13 = wna16.shard %3 output rank 1 of 4 : tensor<2x2x768xbf16> to tensor<2x2x192xbf16>
  %r = wna16.fused_experts silu x(%x : !x)
      routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>) w13(%w13 : tensor<2x64x2x192xbf16, #g128>)
      w2(%w2 : tensor<2x192x64xbf16, #rows>) bias13(%b13 : tensor<2x2x192xbf16>)
      outs(%y : !x) {backend = "cpu"} -> !x
  return %r : !x
}

}
