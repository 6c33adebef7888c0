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
}
