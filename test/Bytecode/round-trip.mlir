// Bytecode read back and written again is the same, byte for byte.
// RUN: wna16-opt %s --strip-debuginfo --emit-bytecode -o %t.first
// RUN: wna16-opt %t.first --emit-bytecode -o %t.second
// RUN: cmp %t.first %t.second
// RUN: wna16-opt %t.second | FileCheck %s

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq, scale = bf16, act_order = index>
#v1 = #wna16.packed<u4, group = 32, layout = gptq, zeros = minus_one>

// CHECK: module attributes {wna16.target = #wna16.target<cpu, features = ["avx512f"], memory = 1024>}
module attributes {wna16.target = #wna16.target<cpu, features = ["avx512f"], memory = 1024>} {
  // CHECK: func.func private @types(tensor<128x64xf16, #gptq{{[0-9]*}}>, tensor<128x64xf16, #gptq{{[0-9]*}}>, tensor<128x64xf16, #wna16.dense>, tensor<2x64xf16, #wna16.bias<layout = marlin>>, !wna16.plan)
  func.func private @types(tensor<128x64xf16, #gptq>, tensor<128x64xf16, #v1>,
                           tensor<128x64xf16, #wna16.dense>,
                           tensor<2x64xf16, #wna16.bias<layout = marlin>>, !wna16.plan)
  // What version 1 did not have.
  // CHECK: wna16.route sparsemixer {{.*}} expert_scale(%{{.*}} : tensor<8xbf16>) {{.*}} {jitter = 1.000000e-02 : f64}
  func.func @route(%l: tensor<?x8xf32>, %s: tensor<8xbf16>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
    %0:2 = wna16.route sparsemixer logits(%l : tensor<?x8xf32>) expert_scale(%s : tensor<8xbf16>)
        outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {jitter = 0.01} -> tensor<?x2xf32>, tensor<?x2xi32>
    return
  }
}
