// Encodings and targets print as they parse, defaults left out.
// RUN: wna16-opt %s | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --emit-bytecode | wna16-opt | FileCheck %s

// One alias a layout, numbered where a layout occurs with several encodings.
// CHECK-DAG: #awq = #wna16.packed<u4, group = 64, layout = awq, zeros = plain>
// CHECK-DAG: #marlin = #wna16.packed<u4b8, group = 128, layout = marlin>
// CHECK-DAG: #gptq{{[0-9]*}} = #wna16.packed<u4b8, group = 128, layout = gptq>
// CHECK-DAG: #gptq{{[0-9]*}} = #wna16.packed<u4b8, group = -1, layout = gptq, scale = bf16>
// CHECK-DAG: #gptq{{[0-9]*}} = #wna16.packed<u4, group = 128, layout = gptq, zeros = minus_one>
// CHECK-DAG: #gptq{{[0-9]*}} = #wna16.packed<u8b128, group = 64, layout = gptq, act_order = index>
// CHECK-DAG: #gptq{{[0-9]*}} = #wna16.packed<u4b8, group = 64, layout = gptq, act_order = sorted>

// CHECK: func.func private @gptq(tensor<2x128x64xf16, #gptq{{[0-9]*}}>)
func.func private @gptq(tensor<2x128x64xf16, #wna16.packed<u4b8, group = 128, layout = gptq, scale = f16>>)
func.func private @channel(tensor<2x128x64xf16, #wna16.packed<u4b8, group = -1, layout = gptq, scale = bf16>>)
// The options come in any order.
func.func private @v1(tensor<2x128x64xf16, #wna16.packed<u4, group = 128, layout = gptq, zeros = minus_one, scale = f16>>)
func.func private @index(tensor<2x128x64xf16, #wna16.packed<u8b128, group = 64, layout = gptq, act_order = index>>)
func.func private @sorted(tensor<2x128x64xf16, #wna16.packed<u4b8, group = 64, layout = gptq, act_order = sorted>>)
func.func private @awq(tensor<2x128x64xf16, #wna16.packed<u4, group = 64, layout = awq, zeros = plain>>)
func.func private @marlin(tensor<2x128x2x64xf16, #wna16.packed<u4b8, group = 128, layout = marlin>>)
// CHECK: func.func private @matrix(tensor<128x64xf16, #gptq{{[0-9]*}}>)
func.func private @matrix(tensor<128x64xf16, #wna16.packed<u4b8, group = 128, layout = gptq>>)

// CHECK: func.func private @dense(tensor<8x256x2x128xbf16, #wna16.dense>)
func.func private @dense(tensor<8x256x2x128xbf16, #wna16.dense<layout = dense>>)
// CHECK: func.func private @interleaved(tensor<8x256x2x128xbf16, #wna16.dense<layout = interleaved>>)
func.func private @interleaved(tensor<8x256x2x128xbf16, #wna16.dense<layout = interleaved>>)
// CHECK: func.func private @transposed(tensor<8x256x2x128xbf16, #wna16.dense<layout = transposed_interleaved>>, tensor<8x128x256xbf16, #wna16.dense<layout = transposed>>)
func.func private @transposed(tensor<8x256x2x128xbf16, #wna16.dense<layout = transposed_interleaved>>, tensor<8x128x256xbf16, #wna16.dense<layout = transposed>>)
// CHECK: func.func private @bias(tensor<8x2x128xbf16, #wna16.bias<layout = marlin>>, tensor<8x128xf32, #wna16.bias<layout = marlin>>)
func.func private @bias(tensor<8x2x128xbf16, #wna16.bias<layout = marlin>>, tensor<8x128xf32, #wna16.bias<layout = marlin>>)
// CHECK: func.func private @plan(!wna16.plan)
func.func private @plan(!wna16.plan)

// CHECK: module @cpu attributes {wna16.target = #wna16.target<cpu>}
module @cpu attributes {wna16.target = #wna16.target<cpu>} {}
// CHECK: module @avx attributes {wna16.target = #wna16.target<cpu, features = ["avx512f", "avx512vnni"]>}
module @avx attributes {wna16.target = #wna16.target<cpu, features = ["avx512f", "avx512vnni"]>} {}
// CHECK: module @cuda attributes {wna16.target = #wna16.target<cuda, capability = 90, memory = 85899345920, libraries = ["flashinfer", "humming"]>}
module @cuda attributes {wna16.target = #wna16.target<cuda, libraries = ["flashinfer", "humming"], memory = 85899345920, capability = 90>} {}
// CHECK: module @xpu attributes {wna16.target = #wna16.target<xpu>}
module @xpu attributes {wna16.target = #wna16.target<xpu, capability = 0>} {}
