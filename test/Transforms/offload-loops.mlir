// RUN: wna16-opt %s -wna16-offload-loops -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @fills(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<?x1xf32>, %[[B:[a-z0-9]+]]: memref<?x1xi32>, %[[C:[a-z0-9]+]]: memref<4xbf16>)
// CHECK-DAG: %[[ONE:.*]] = wna16.kernel_plan fill @wna16_cuda_fill {value = 1.000000e+00 : f64}
// CHECK-DAG: wna16.kernel_run %[[ONE]] outs(%[[A]] : memref<?x1xf32>) roles ["y"]
// CHECK-DAG: %[[MINUS:.*]] = wna16.kernel_plan fill @wna16_cuda_fill {value = -7.000000e+00 : f64}
// CHECK-DAG: wna16.kernel_run %[[MINUS]] outs(%[[B]] : memref<?x1xi32>) roles ["y"]
// CHECK-DAG: wna16.kernel_run %{{.*}} outs(%[[C]] : memref<4xbf16>) roles ["y"]
// CHECK-NOT: linalg
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @fills(%a: memref<?x1xf32>, %b: memref<?x1xi32>, %c: memref<4xbf16>) {
    %one = arith.constant 1.0 : f32
    %minus = arith.constant -7 : i32
    %half = arith.constant 0.5 : bf16
    linalg.fill ins(%one : f32) outs(%a : memref<?x1xf32>)
    linalg.fill ins(%minus : i32) outs(%b : memref<?x1xi32>)
    linalg.fill ins(%half : bf16) outs(%c : memref<4xbf16>)
    return
  }
}

// -----

// CHECK-LABEL: func.func @sums(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<?x8xf32>, %[[B:[a-z0-9]+]]: memref<?x8xbf16>, %[[Y:[a-z0-9]+]]: memref<?x8xbf16>, %[[Z:[a-z0-9]+]]: memref<?x8xf32>)
// CHECK: %[[P:.*]] = wna16.kernel_plan sum @wna16_xpu_sum {}
// CHECK: wna16.kernel_run %[[P]] ins(%[[A]] : memref<?x8xf32>) outs(%[[Y]] : memref<?x8xbf16>) roles ["a", "y"]
// CHECK: wna16.kernel_run %{{.*}} ins(%[[A]], %[[A]] : memref<?x8xf32>, memref<?x8xf32>) outs(%[[Y]] : memref<?x8xbf16>) roles ["a", "b", "y"]
// CHECK: wna16.kernel_run %{{.*}} ins(%[[B]], %[[A]] : memref<?x8xbf16>, memref<?x8xf32>) outs(%[[Z]] : memref<?x8xf32>) roles ["a", "b", "y"]
// CHECK-NOT: linalg
#id = affine_map<(d0, d1) -> (d0, d1)>
module attributes {wna16.target = #wna16.target<xpu>} {
  func.func @sums(%a: memref<?x8xf32>, %b: memref<?x8xbf16>, %y: memref<?x8xbf16>, %z: memref<?x8xf32>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : memref<?x8xf32>) outs(%y : memref<?x8xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %0 = arith.truncf %in : f32 to bf16
      linalg.yield %0 : bf16
    }
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %a : memref<?x8xf32>, memref<?x8xf32>) outs(%y : memref<?x8xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %0 = arith.addf %in, %in_0 : f32
      %1 = arith.truncf %0 : f32 to bf16
      linalg.yield %1 : bf16
    }
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : memref<?x8xf32>, memref<?x8xbf16>) outs(%z : memref<?x8xf32>) {
    ^bb0(%in: f32, %in_0: bf16, %out: f32):
      %0 = arith.extf %in_0 : bf16 to f32
      %1 = arith.addf %0, %in : f32
      linalg.yield %1 : f32
    }
    return
  }
}

// -----

// CHECK-LABEL: func.func @copies(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<?x2xi32>, %[[B:[a-z0-9]+]]: memref<?x2xi32>)
// CHECK: %[[P:.*]] = wna16.kernel_plan copy @wna16_cuda_copy {}
// CHECK: wna16.kernel_run %[[P]] ins(%[[A]] : memref<?x2xi32>) outs(%[[B]] : memref<?x2xi32>) roles ["source", "target"]
// CHECK-NOT: memref.copy
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @copies(%a: memref<?x2xi32>, %b: memref<?x2xi32>) {
    memref.copy %a, %b : memref<?x2xi32> to memref<?x2xi32>
    return
  }
}

// -----

// What is something else stays: other arithmetic, another order of axes, sums
// in 16 bits, a value that is not known, parts of a buffer.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: wna16.kernel_run
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: linalg.generic
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic
// CHECK: arith.addf {{.*}} : bf16
// CHECK: linalg.fill
// CHECK: memref.copy
// CHECK-NOT: wna16.kernel_run
#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
module attributes {wna16.target = #wna16.target<cuda, capability = 90>} {
  func.func @others(%a: memref<8x8xf32>, %b: memref<8x8xbf16>, %y: memref<8x8xf32>, %v: f32,
                    %part: memref<4x4xf32, strided<[8, 1]>>, %small: memref<4x4xf32>) {
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %0 = arith.mulf %in, %in_0 : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %0 = arith.addf %in, %in_0 : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%b : memref<8x8xbf16>) outs(%b : memref<8x8xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %0 = arith.addf %in, %in : bf16
      linalg.yield %0 : bf16
    }
    linalg.fill ins(%v : f32) outs(%y : memref<8x8xf32>)
    memref.copy %part, %small : memref<4x4xf32, strided<[8, 1]>> to memref<4x4xf32>
    return
  }
}

// -----

// On a CPU nothing changes.
// CHECK-LABEL: func.func @host(
// CHECK: linalg.fill
// CHECK-NOT: wna16
module attributes {wna16.target = #wna16.target<cpu>} {
  func.func @host(%a: memref<?x1xf32>) {
    %one = arith.constant 1.0 : f32
    linalg.fill ins(%one : f32) outs(%a : memref<?x1xf32>)
    return
  }
}
