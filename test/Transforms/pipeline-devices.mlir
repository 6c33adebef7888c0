// Dense experts beside quantised ones: both are kernels of the device, with its
// stream and workspace.
// RUN: wna16-opt %s -wna16-select-pipeline=target=cuda:sm_90 | wna16-opt -wna16-lower-pipeline -o %t.cuda \
// RUN:   -mlir-print-ir-after=wna16-verify-planned 2>%t.plan
// RUN: FileCheck %s --check-prefixes=CHECK,CUDA --input-file=%t.plan
// RUN: FileCheck %s --check-prefix=CUDA-LLVM --input-file=%t.cuda
// RUN: wna16-opt %s -wna16-select-pipeline=target=xpu | wna16-opt -wna16-lower-pipeline -o %t.xpu \
// RUN:   -mlir-print-ir-after=wna16-verify-planned 2>%t.plan
// RUN: FileCheck %s --check-prefixes=CHECK,XPU --input-file=%t.plan
// RUN: FileCheck %s --check-prefix=XPU-LLVM --input-file=%t.xpu
// Emulation is refused there, by name.
// RUN: not wna16-opt %s -wna16-pipeline="target=cuda:sm_90 backend=emulation" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EMULATION
// RUN: not wna16-opt %s -wna16-pipeline="target=xpu backend=emulation_otf" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTF
// EMULATION: error: {{.*}}'wna16.fused_experts' op of layer model.layers.0.mlp: backend emulation becomes loops of the host, which cannot reach the memory of a cuda target
// OTF: error: {{.*}}'wna16.fused_experts' op of layer model.layers.0.mlp: backend emulation_otf becomes loops of the host, which cannot reach the memory of a xpu target

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[SPACE:[a-z0-9]+]]: memref<?xi8>, %[[STREAM:[a-z0-9]+]]: !llvm.ptr) attributes {wna16
// CUDA-DAG: %[[PACKED:.*]] = wna16.kernel_plan experts @wna16_cuda_marlin_fused_experts
// CUDA-DAG: %[[DENSE:.*]] = wna16.kernel_plan experts @wna16_cuda_fused_experts {{.*}}w13 = tensor<1x64x2x32xbf16, #wna16.dense>, w2 = tensor<1x32x64xbf16, #wna16.dense>}
// XPU-DAG: %[[PACKED:.*]] = wna16.kernel_plan experts @wna16_xpu_fused_experts {{.*}}w13 = tensor<4x64x2x32xbf16, #xpu>
// XPU-DAG: %[[DENSE:.*]] = wna16.kernel_plan experts @wna16_xpu_fused_experts {{.*}}w13 = tensor<1x64x2x32xbf16, #wna16.dense>, w2 = tensor<1x32x64xbf16, #wna16.dense>}
// CHECK-DAG: wna16.kernel_run %[[PACKED]] {{.*}} workspace(%[[SCRATCH:.*]] : memref<?xi8>) stream(%[[STREAM]] : !llvm.ptr)
// CHECK-DAG: wna16.kernel_run %[[DENSE]] {{.*}} workspace(%[[SCRATCH:.*]] : memref<?xi8>) stream(%[[STREAM]] : !llvm.ptr) roles ["x", "weights", "ids", "w13.codes", "w2.codes", "y"]
// CHECK: return

// CUDA-LLVM-DAG: llvm.call @wna16_cuda_marlin_fused_experts_workspace(
// CUDA-LLVM-DAG: llvm.call @wna16_cuda_fused_experts_workspace(
// CUDA-LLVM-DAG: llvm.call @wna16_cuda_fused_experts(
// XPU-LLVM-DAG: llvm.call @wna16_xpu_fused_experts_workspace(
// XPU-LLVM-DAG: llvm.call @wna16_xpu_fused_experts(

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
!x = tensor<?x64xbf16>
func.func @forward(%x: !x {wna16.name = "x"}, %weights: tensor<?x2xf32> {wna16.name = "weights"}, %ids: tensor<?x2xi32> {wna16.name = "ids"},
                   %one: tensor<?x1xf32> {wna16.name = "one"}, %zero: tensor<?x1xi32> {wna16.name = "zero"})
    -> (!x {wna16.name = "routed"}, !x {wna16.name = "shared"}) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : !x
  %q13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.qweight" concat(1) : tensor<4x8x64xi32>
  %s13 = wna16.parameter "experts.{expert}.{gate_proj,up_proj}.scales" concat(1) : tensor<4x2x64xf16>
  %w13 = wna16.assemble codes = %q13, scales = %s13 : tensor<4x8x64xi32>, tensor<4x2x64xf16> -> tensor<4x64x2x32xbf16, #gptq>
  %q2 = wna16.parameter "experts.{expert}.down_proj.qweight" : tensor<4x4x64xi32>
  %s2 = wna16.parameter "experts.{expert}.down_proj.scales" : tensor<4x1x64xf16>
  %w2 = wna16.assemble codes = %q2, scales = %s2 : tensor<4x4x64xi32>, tensor<4x1x64xf16> -> tensor<4x32x64xbf16, #gptq>
  %d13 = wna16.parameter "shared_expert.{gate_proj,up_proj}.weight" concat(0) : tensor<1x64x64xbf16>
  %v13 = wna16.assemble codes = %d13 : tensor<1x64x64xbf16> -> tensor<1x64x2x32xbf16, #wna16.dense>
  %d2 = wna16.parameter "shared_expert.down_proj.weight" : tensor<1x64x32xbf16>
  %v2 = wna16.assemble codes = %d2 : tensor<1x64x32xbf16> -> tensor<1x32x64xbf16, #wna16.dense>
  %yi = tensor.empty(%m) : !x
  %y = wna16.fused_experts silu x(%x : !x) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
     w13(%w13 : tensor<4x64x2x32xbf16, #gptq>) w2(%w2 : tensor<4x32x64xbf16, #gptq>) outs(%yi : !x) -> !x loc("model.layers.0.mlp")
  %z = wna16.fused_experts silu x(%x : !x) routing(%one, %zero : tensor<?x1xf32>, tensor<?x1xi32>)
     w13(%v13 : tensor<1x64x2x32xbf16, #wna16.dense>) w2(%v2 : tensor<1x32x64xbf16, #wna16.dense>) outs(%yi : !x) -> !x
  return %y, %z : !x, !x
}
