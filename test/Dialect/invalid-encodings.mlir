// What an encoding asks of its tensor. The verifier runs inside the type's
// parser; its message is the error.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a weight of rank 2 [input, output], 3 [E, input, output] or 4 [E, input, halves, output], got rank 1}}
func.func private @rank(tensor<128xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected a weight of rank 2 [input, output], 3 [E, input, output] or 4 [E, input, halves, output], got rank 5}}
func.func private @rank(tensor<1x1x128x2x64xf16, #wna16.dense>)

// -----

// expected-error @+1 {{expected static extents of a weight, got 'tensor<?x64xf16>'}}
func.func private @dynamic(tensor<?x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected a weight of f16, bf16 or f32, got 'i8'}}
func.func private @element(tensor<128x64xi8, #wna16.packed<u4b8, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected a bias of rank 2 [E, output] or 3 [E, halves, output], got rank 1}}
func.func private @bias_rank(tensor<64xf16, #wna16.bias<layout = marlin>>)

// -----

// expected-error @+1 {{expected static extents of a bias, got 'tensor<?x64xf16>'}}
func.func private @bias_dynamic(tensor<?x64xf16, #wna16.bias<layout = marlin>>)

// -----

// expected-error @+1 {{expected a bias of f16, bf16 or f32, got 'i32'}}
func.func private @bias_element(tensor<2x64xi32, #wna16.bias<layout = marlin>>)

// -----

// expected-error @+1 {{expected input (100) to be a multiple of 16 for layout marlin; pad to 112}}
func.func private @divide(tensor<2x100x64xf16, #wna16.packed<u4b8, group = -1, layout = marlin>>)

// -----

// expected-error @+1 {{expected 1 or 2 halves, got 3}}
func.func private @halves(tensor<2x128x3x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected a positive group or -1, got 0}}
func.func private @group(tensor<128x64xf16, #wna16.packed<u4b8, group = 0, layout = gptq>>)

// -----

// expected-error @+1 {{expected a positive group or -1, got -2}}
func.func private @group_negative(tensor<128x64xf16, #wna16.packed<u4b8, group = -2, layout = gptq>>)

// -----

// expected-error @+1 {{expected zero points with code u4, got zeros = none}}
func.func private @zeros_missing(tensor<128x64xf16, #wna16.packed<u4, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected code u4 or u8 with zero points, got u4b8}}
func.func private @zeros_surplus(tensor<128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq, zeros = plain>>)

// -----

// expected-error @+1 {{expected scales of f16, bf16, f32 or i16, got i64}}
func.func private @scale(tensor<128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq, scale = i64>>)

// -----

// expected-error @+1 {{expected rows in group order, got act_order = index}}
func.func private @order(tensor<128x64xf16, #wna16.packed<u4, group = 32, layout = awq, zeros = plain, act_order = index>>)

// -----

// expected-error @+1 {{expected codes, got dense elements for layout marlin; use layout dense}}
func.func private @dense_layout(tensor<128x64xf16, #wna16.dense<layout = marlin>>)

// -----

// expected-error @+1 {{expected experts in 0..2147483648, got 4294967296}}
func.func private @overflow(tensor<4294967296x4294967296x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq>>)

// -----

// expected-error @+1 {{expected 4 kept groups to be those of rows with act_order = index and more than those of the input (4), got act_order = index}}
func.func private @groups_of_input(tensor<128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index, groups = 4>>)

// -----

// expected-error @+1 {{expected 8 kept groups to be those of rows with act_order = index and more than those of the input (4), got act_order = none}}
func.func private @groups_without_index(tensor<128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq, groups = 8>>)

// -----

// expected-error @+1 {{expected groups in 0..2147483648, got -1}}
func.func private @groups_negative(tensor<128x64xf16, #wna16.packed<u4b8, group = 32, layout = gptq, act_order = index, groups = -1>>)
