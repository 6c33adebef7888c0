// Each error of the parsers of attributes and operations.
// RUN: wna16-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a code type (u4, u4b8, s4, u8, u8b128, s8, u4fp8), got 'u5'}}
#a = #wna16.packed<u5, group = 128, layout = gptq>

// -----

// Dense is no code of a packed weight.
// expected-error @+1 {{expected a code type (u4, u4b8, s4, u8, u8b128, s8, u4fp8), got 'dense'}}
#a = #wna16.packed<dense, group = 128, layout = gptq>

// -----

// expected-error-re @+1 {{expected a layout (dense, interleaved, gptq, {{.*}}), got 'gguf'}}
#a = #wna16.packed<u4, group = 128, layout = gguf>

// -----

// expected-error @+1 {{expected a layout (dense, interleaved, gptq,}}
#a = #wna16.dense<layout = row_major>

// -----

// expected-error @+1 {{expected a layout (dense, interleaved, gptq,}}
#a = #wna16.bias<layout = natural>

// -----

// expected-error @+1 {{expected 'group'}}
#a = #wna16.packed<u4b8, layout = gptq>

// -----

// expected-error @+1 {{expected integer value}}
#a = #wna16.packed<u4b8, group = all, layout = gptq>

// -----

// expected-error @+1 {{expected 'layout'}}
#a = #wna16.packed<u4b8, group = 128, scale = f16>

// -----

// expected-error @+1 {{expected a scale type (f16, bf16, f32, i16), got 'f8'}}
#a = #wna16.packed<u4b8, group = 128, layout = gptq, scale = f8>

// -----

// expected-error @+1 {{expected plain or minus_one, got 'plus_one'}}
#a = #wna16.packed<u4, group = 128, layout = gptq, zeros = plus_one>

// -----

// What is the default has no spelling of its own.
// expected-error @+1 {{expected plain or minus_one, got 'none'}}
#a = #wna16.packed<u4, group = 128, layout = gptq, zeros = none>

// -----

// expected-error @+1 {{expected index or sorted, got 'random'}}
#a = #wna16.packed<u4, group = 128, layout = gptq, act_order = random>

// -----

// expected-error @+1 {{expected scale, zeros, act_order or groups, got 'bits'}}
#a = #wna16.packed<u4, group = 128, layout = gptq, bits = 4>

// -----

// expected-error @+1 {{expected '>'}}
#a = #wna16.packed<u4b8, group = 128, layout = gptq : scale = f16>

// -----

// expected-error-re @+1 {{expected {{.*}}cpu{{.*}}cuda{{.*}}xpu}}
#a = #wna16.target<tpu>

// -----

// expected-error @+1 {{expected capability, features, memory or libraries, got 'cores'}}
#a = #wna16.target<cpu, cores = 2>

// -----

// expected-error @+1 {{expected integer value}}
#a = #wna16.target<cuda, capability = "sm_90">

// -----

// expected-error @+1 {{expected string}}
#a = #wna16.target<cpu, features = [avx2]>

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @part(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x256xf16>) {
  // expected-error @+1 {{expected part 'scales', got 'zeros'}}
  %w = wna16.assemble codes = %codes, zeros = %scales
      : tensor<8x32x256xi32>, tensor<8x2x256xf16> -> tensor<8x256x2x128xbf16, #gptq>
  return
}

// -----

#gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
func.func @part_order(%codes: tensor<8x32x256xi32>, %scales: tensor<8x2x256xf16>) {
  // expected-error @+1 {{expected part 'codes', got 'scales'}}
  %w = wna16.assemble scales = %scales, codes = %codes
      : tensor<8x2x256xf16>, tensor<8x32x256xi32> -> tensor<8x256x2x128xbf16, #gptq>
  return
}

// -----

func.func @scoring(%logits: tensor<?x8xf32>, %w: tensor<?x2xf32>, %i: tensor<?x2xi32>) {
  // expected-error-re @+2 {{expected {{.*}}softmax{{.*}}sigmoid}}
  // expected-error @+1 {{failed to parse WNA16_ScoringAttr parameter}}
  %0, %1 = wna16.route hardmax logits(%logits : tensor<?x8xf32>)
      outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @activation(%x: tensor<?x8xf32>) {
  // expected-error-re @+2 {{expected {{.*}}silu, gelu, gelu_tanh, relu2, swigluoai, swiglustep}}
  // expected-error @+1 {{failed to parse WNA16_ActivationAttr parameter}}
  %0 = wna16.fused_experts swish x(%x : tensor<?x8xf32>)
  return
}
