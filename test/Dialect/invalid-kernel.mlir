// One test for each constraint (Cn) of kernel_plan and kernel_run.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// kernel_plan, kernel_run
//===----------------------------------------------------------------------===//

func.func @kernel_plan_c1() {
  // expected-error-re @+1 {{(C1) expected a plan kind (experts, linear, route, rms_norm, convert, convert_bias, dequantize, quantize{{.*}}), got 'gemm'}}
  %0 = wna16.kernel_plan gemm @f {}
  return
}

// -----

func.func @kernel_plan_c2_unknown() {
  // expected-error @+1 {{(C2) expected fields of linear, got 'bias'}}
  %0 = wna16.kernel_plan linear @f {weight = tensor<64x8xf32, #wna16.dense>, bias}
  return
}

// -----

func.func @kernel_plan_c2_missing() {
  // expected-error @+1 {{(C2) expected field 'weight' to be an encoded tensor type, got none}}
  %0 = wna16.kernel_plan linear @f {}
  return
}

// -----

func.func @kernel_plan_c2_plain() {
  // expected-error @+1 {{(C2) expected field 'weight' to be an encoded tensor type, got tensor<64x8xf32>}}
  %0 = wna16.kernel_plan linear @f {weight = tensor<64x8xf32>}
  return
}

// -----

func.func @kernel_plan_c2_bias() {
  // expected-error @+1 {{(C2) expected field 'source' to be a bias type, got tensor<f32>}}
  %0 = wna16.kernel_plan convert_bias @f {source = tensor<f32>, target = tensor<2x64xf32>}
  return
}

// -----

func.func @kernel_run_c1(%p: !wna16.plan, %x: memref<?x64xf32>, %y: memref<?x8xf32>) {
  // expected-error @+1 {{(C1) expected one role for each of 2 operands, got 1}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32>) outs(%y : memref<?x8xf32>) roles ["x"]
  return
}

// -----

func.func @kernel_run_c2(%p: !wna16.plan, %x: memref<?x64xf32>, %y: memref<?x8xf32>) {
  // expected-error @+1 {{(C2) expected distinct roles, got "x" twice}}
  wna16.kernel_run %p ins(%x : memref<?x64xf32>) outs(%y : memref<?x8xf32>) roles ["x", "x"]
  return
}

// -----

func.func @kernel_run_c3_missing(%p: !wna16.plan, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C3) expected results of the types of the tensor outs ('tensor<?x8xf32>'), got ()}}
  wna16.kernel_run %p outs(%y : tensor<?x8xf32>) roles ["y"]
  return
}

// -----

func.func @kernel_run_c3_type(%p: !wna16.plan, %y: tensor<?x8xf32>) {
  // expected-error @+1 {{(C3) expected results of the types of the tensor outs ('tensor<?x8xf32>'), got ('tensor<?x4xf32>')}}
  %0 = wna16.kernel_run %p outs(%y : tensor<?x8xf32>) roles ["y"] -> tensor<?x4xf32>
  return
}
