// The whole pipeline gives the LLVM dialect alone for every target.
// DEFINE: %{check-llvm} = FileCheck %s --check-prefix=LLVM \
// DEFINE:   --implicit-check-not='{{(= |^ +)(func|memref|arith|math|scf|cf|linalg|wna16|bufferization|tensor|builtin)[.]}}'
// RUN: wna16-opt %s -wna16-pipeline=target=cpu -o %t.cpu -mlir-print-ir-after=wna16-plan-workspace 2>%t.plan
// RUN: FileCheck %s --check-prefixes=PLAN,CPU --input-file=%t.plan
// RUN: %{check-llvm} --input-file=%t.cpu
// RUN: wna16-opt %s -wna16-pipeline=target=cuda:sm_90 -o %t.cuda -mlir-print-ir-after=wna16-plan-workspace 2>%t.plan
// RUN: FileCheck %s --check-prefixes=PLAN,CUDA --input-file=%t.plan
// RUN: %{check-llvm} --input-file=%t.cuda
// RUN: wna16-opt %s -wna16-pipeline="target=cuda:sm_90 backend=humming" -o %t.humming -mlir-print-ir-after=wna16-plan-workspace 2>%t.plan
// RUN: FileCheck %s --check-prefixes=PLAN,HUMMING --input-file=%t.plan
// RUN: %{check-llvm} --input-file=%t.humming
// RUN: wna16-opt %s -wna16-pipeline=target=xpu -o %t.xpu -mlir-print-ir-after=wna16-plan-workspace 2>%t.plan
// RUN: FileCheck %s --check-prefixes=PLAN,XPU --input-file=%t.plan
// RUN: %{check-llvm} --input-file=%t.xpu
// RUN: wna16-opt %s -wna16-pipeline="target=cpu backend=emulation" -o %t.emulation -mlir-print-ir-after=wna16-plan-workspace 2>%t.plan
// RUN: FileCheck %s --check-prefixes=PLAN,EMULATION --input-file=%t.plan
// RUN: %{check-llvm} --input-file=%t.emulation
// The two halves are the whole.
// RUN: wna16-opt %s -wna16-select-pipeline=target=cpu | wna16-opt -wna16-lower-pipeline -o %t.halves
// RUN: diff %t.cpu %t.halves

// Neither function allocates or copies; weights have identity layout and the
// number of tokens is dynamic.
// PLAN-LABEL: func.func @prepare_w13(
// PLAN-NOT: strided<
// PLAN-NOT: memref.alloc
// PLAN-NOT: memref.copy
// CPU: wna16.kernel_plan convert @wna16_cpu_convert
// CUDA: wna16.kernel_plan convert @wna16_cuda_convert
// HUMMING: wna16.kernel_plan convert @wna16_cuda_convert
// XPU: wna16.kernel_plan convert @wna16_xpu_convert
// EMULATION: wna16.kernel_plan dequantize @wna16_cpu_dequantize
// PLAN-NOT: memref.alloc
// PLAN-NOT: memref.copy
// PLAN: return
// PLAN-LABEL: func.func @workspace_size(
// PLAN-SAME: attributes {wna16.extents = {{\[\[}}0, 0]]}
// PLAN-LABEL: func.func @forward(
// PLAN-SAME: %[[X:[a-z0-9]+]]: memref<?x64xbf16> {wna16.name = "x"},
// CPU-SAME: %[[W13:[a-z0-9]+]]: memref<4x2x16x64xi8> {wna16.encoding = "{{.*}}", wna16.prepared = "w13.codes"}
// CUDA-SAME: %[[W13:[a-z0-9]+]]: memref<4x4x256xi32> {wna16.encoding = "{{.*}}", wna16.prepared = "w13.codes"}
// HUMMING-SAME: %[[W13:[a-z0-9]+]]: memref<4x8x512xi32> {wna16.encoding = "{{.*}}", wna16.prepared = "w13.codes"}
// XPU-SAME: %[[W13:[a-z0-9]+]]: memref<4x64x32xi8> {wna16.encoding = "{{.*}}", wna16.prepared = "w13.codes"}
// EMULATION-SAME: %[[W13:[a-z0-9]+]]: memref<4x64x64xf32> {wna16.encoding = "{{.*}}", wna16.prepared = "w13.codes"}
// PLAN-SAME: %[[OUT:[a-z0-9]+]]: memref<?x64xbf16> {wna16.name = "out", wna16.output}, %{{[a-z0-9]+}}: memref<?xi8>, %{{[a-z0-9]+}}: !llvm.ptr)
// PLAN-SAME: attributes {wna16.backends = [{{.*}}], wna16.workspace = @workspace_size}
// PLAN-NOT: memref.alloc
// PLAN-NOT: memref.copy
// CPU: wna16.kernel_plan experts @wna16_cpu_fused_experts
// CUDA: wna16.kernel_plan experts @wna16_cuda_marlin_fused_experts
// HUMMING: wna16.kernel_plan experts @wna16_cuda_humming_fused_experts
// XPU: wna16.kernel_plan experts @wna16_xpu_fused_experts
// EMULATION-NOT: wna16.kernel
// PLAN-NOT: memref.alloc
// PLAN-NOT: memref.copy
// CPU: outs(%[[OUT]] : memref<?x64xbf16>) workspace({{.*}}) stream({{.*}})
// CUDA: outs(%[[OUT]] : memref<?x64xbf16>) workspace({{.*}}) stream({{.*}})
// HUMMING: outs(%[[OUT]] : memref<?x64xbf16>) workspace({{.*}}) stream({{.*}})
// XPU: outs(%[[OUT]] : memref<?x64xbf16>) workspace({{.*}}) stream({{.*}})
// EMULATION: outs(%[[OUT]] : memref<?x64xbf16>)
// PLAN-NOT: memref.alloc
// PLAN-NOT: memref.copy
// PLAN: return

// LLVM: @wna16_module_description
// LLVM: llvm.func @prepare_w13(
// LLVM: llvm.func @forward(

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>
func.func @forward(%x: tensor<?x64xbf16> {wna16.name = "x"}) -> (tensor<?x64xbf16> {wna16.name = "out"}) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %rw = wna16.parameter "model.layers.0.mlp.gate.weight" : tensor<4x64xbf16>
  %router = wna16.assemble codes = %rw : tensor<4x64xbf16> -> tensor<64x4xbf16, #wna16.dense>
  %q13 = wna16.parameter "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.qweight" concat(1) : tensor<4x8x64xi32>
  %s13 = wna16.parameter "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.scales" concat(1) : tensor<4x2x64xf16>
  %w13 = wna16.assemble codes = %q13, scales = %s13 : tensor<4x8x64xi32>, tensor<4x2x64xf16> -> tensor<4x64x2x32xbf16, #gptq>
  %q2 = wna16.parameter "model.layers.0.mlp.experts.{expert}.down_proj.qweight" : tensor<4x4x64xi32>
  %s2 = wna16.parameter "model.layers.0.mlp.experts.{expert}.down_proj.scales" : tensor<4x1x64xf16>
  %w2 = wna16.assemble codes = %q2, scales = %s2 : tensor<4x4x64xi32>, tensor<4x1x64xf16> -> tensor<4x32x64xbf16, #gptq>
  %li = tensor.empty(%m) : tensor<?x4xf32>
  %logits = wna16.linear x(%x : tensor<?x64xbf16>) weight(%router : tensor<64x4xbf16, #wna16.dense>) outs(%li : tensor<?x4xf32>) -> tensor<?x4xf32>
  %wi = tensor.empty(%m) : tensor<?x2xf32>
  %ii = tensor.empty(%m) : tensor<?x2xi32>
  %weights, %ids = wna16.route softmax logits(%logits : tensor<?x4xf32>) outs(%wi, %ii : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize} -> tensor<?x2xf32>, tensor<?x2xi32>
  %yi = tensor.empty(%m) : tensor<?x64xbf16>
  %y = wna16.fused_experts silu x(%x : tensor<?x64xbf16>) routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
     w13(%w13 : tensor<4x64x2x32xbf16, #gptq>) w2(%w2 : tensor<4x32x64xbf16, #gptq>) outs(%yi : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
