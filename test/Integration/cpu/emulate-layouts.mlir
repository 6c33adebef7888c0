// RUN: wna16-opt %s -wna16-emulate | %run-stock | FileCheck %s

// Into every layout and back to numbers: no element changes. Below, one code in
// Marlin's order by hand.

#source = #wna16.packed<u4b8, group = 32, layout = gptq>
#awq = #wna16.packed<u4b8, group = 32, layout = awq>
#compressed_tensors = #wna16.packed<u4b8, group = 32, layout = compressed_tensors>
#marlin = #wna16.packed<u4b8, group = 32, layout = marlin>
#marlin_a8 = #wna16.packed<u4b8, group = 32, layout = marlin_a8>
#marlin_fp8 = #wna16.packed<u4fp8, group = 32, layout = marlin_a8>
#humming_mma = #wna16.packed<u4b8, group = 32, layout = humming_mma>
#humming_wgmma = #wna16.packed<u4b8, group = 32, layout = humming_wgmma>
#cpu_blocked = #wna16.packed<u4, group = 32, layout = cpu_blocked, scale = f32, zeros = plain>
#trtllm = #wna16.packed<s4, group = 32, layout = trtllm, scale = bf16>
#xpu = #wna16.packed<s4, group = 32, layout = xpu>
#otf = #wna16.packed<u4b8, group = 16, layout = otf>
#stored_zeros = #wna16.packed<u4, group = 32, layout = marlin, zeros = plain>
#minus_one = #wna16.packed<u4, group = 32, layout = gptq, zeros = minus_one>
!source = tensor<2x256x2x64xf32, #source>
!dense = tensor<2x256x2x64xf32, #wna16.dense>
!stored = tensor<2x128x256xf32>

func.func private @printMemrefI32(tensor<*xi32>)
func.func private @printMemrefF32(tensor<*xf32>)

// Codes without a pattern, scales that every type holds.
func.func @source() -> !source {
  %c0 = tensor.empty() : tensor<2x32x128xi32>
  %codes = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%c0 : tensor<2x32x128xi32>) {
  ^bb0(%out: i32):
    %e = linalg.index 0 : index
    %k = linalg.index 1 : index
    %n = linalg.index 2 : index
    %c4096 = arith.constant 4096 : index
    %c128 = arith.constant 128 : index
    %0 = arith.muli %e, %c4096 : index
    %1 = arith.muli %k, %c128 : index
    %2 = arith.addi %0, %1 : index
    %3 = arith.addi %2, %n : index
    %4 = arith.index_cast %3 : index to i32
    %5 = arith.constant 0x9E3779B1 : i32
    %6 = arith.muli %4, %5 : i32
    %7 = arith.constant 15 : i32
    %8 = arith.shrui %6, %7 : i32
    %9 = arith.xori %6, %8 : i32
    linalg.yield %9 : i32
  } -> tensor<2x32x128xi32>
  %s0 = tensor.empty() : tensor<2x8x128xf16>
  %scales = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%s0 : tensor<2x8x128xf16>) {
  ^bb0(%out: f16):
    %e = linalg.index 0 : index
    %g = linalg.index 1 : index
    %n = linalg.index 2 : index
    %c3 = arith.constant 3 : index
    %c7 = arith.constant 7 : index
    %c1 = arith.constant 1 : index
    %0 = arith.muli %n, %c3 : index
    %1 = arith.addi %0, %g : index
    %2 = arith.addi %1, %e : index
    %3 = arith.andi %2, %c7 : index
    %4 = arith.addi %3, %c1 : index
    %5 = arith.index_cast %4 : index to i32
    %6 = arith.sitofp %5 : i32 to f16
    linalg.yield %6 : f16
  } -> tensor<2x8x128xf16>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<2x32x128xi32>, tensor<2x8x128xf16> -> !source
  return %w : !source
}

func.func @differences(%a: !dense, %b: !dense) -> i32 {
  %x = wna16.disassemble %a : !dense
  %y = wna16.disassemble %b : !dense
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0 : i32
  %count = scf.for %e = %c0 to %c2 step %c1 iter_args(%s0 = %zero) -> i32 {
    %1 = scf.for %r = %c0 to %c128 step %c1 iter_args(%s1 = %s0) -> i32 {
      %2 = scf.for %k = %c0 to %c256 step %c1 iter_args(%s2 = %s1) -> i32 {
        %p = tensor.extract %x[%e, %r, %k] : !stored
        %q = tensor.extract %y[%e, %r, %k] : !stored
        %differs = arith.cmpf une, %p, %q : f32
        %one = arith.extui %differs : i1 to i32
        %next = arith.addi %s2, %one : i32
        scf.yield %next : i32
      }
      scf.yield %2 : i32
    }
    scf.yield %1 : i32
  }
  return %count : i32
}

func.func @awq(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #awq>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #awq> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @compressed_tensors(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #compressed_tensors>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #compressed_tensors> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @marlin(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #marlin>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #marlin> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @marlin_a8(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #marlin_a8>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #marlin_a8> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @marlin_fp8(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #marlin_fp8>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #marlin_fp8> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @humming_mma(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #humming_mma>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #humming_mma> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @humming_wgmma(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #humming_wgmma>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #humming_wgmma> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @cpu_blocked(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #cpu_blocked>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #cpu_blocked> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @trtllm(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #trtllm>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #trtllm> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @xpu(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #xpu>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #xpu> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @otf(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #otf>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #otf> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @stored_zeros(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #stored_zeros>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #stored_zeros> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

func.func @minus_one(%w: !source, %expected: !dense) -> i32 {
  %0 = wna16.convert %w : !source to tensor<2x256x2x64xf32, #minus_one>
  %1 = wna16.dequantize %0 : tensor<2x256x2x64xf32, #minus_one> to !dense
  %2 = call @differences(%1, %expected) : (!dense, !dense) -> i32
  return %2 : i32
}

// Code 15 at k = 3, n = 9 among zeros (8): word 4 * 5 + 0, field 6.
func.func @marlin_by_hand() {
  %codes = arith.constant dense<0x88888888> : tensor<2x64xi32>
  %word = arith.constant 0x8888F888 : i32
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %changed = tensor.insert %word into %codes[%c0, %c9] : tensor<2x64xi32>
  %scales = arith.constant dense<1.> : tensor<1x64xf16>
  %w = wna16.assemble codes = %changed, scales = %scales
      : tensor<2x64xi32>, tensor<1x64xf16>
      -> tensor<16x64xf16, #wna16.packed<u4b8, group = -1, layout = gptq>>
  %0 = wna16.repack %w : tensor<16x64xf16, #wna16.packed<u4b8, group = -1, layout = gptq>>
      to tensor<16x64xf16, #wna16.packed<u4b8, group = -1, layout = marlin>>
  %1:2 = wna16.disassemble %0
      : tensor<16x64xf16, #wna16.packed<u4b8, group = -1, layout = marlin>>
  %2 = tensor.extract_slice %1#0[0, 19] [1, 3] [1, 1] : tensor<1x128xi32> to tensor<3xi32>
  %3 = tensor.empty() : tensor<3xi32>
  %4 = linalg.copy ins(%2 : tensor<3xi32>) outs(%3 : tensor<3xi32>) -> tensor<3xi32>
  %out = tensor.cast %4 : tensor<3xi32> to tensor<*xi32>
  call @printMemrefI32(%out) : (tensor<*xi32>) -> ()
  return
}

// One group: the scales of a row-major layout are the outputs' alone.
func.func @one_group() {
  %codes = arith.constant dense<0> : tensor<1x4xi32>
  %scales = arith.constant dense<[[1., 2., 3., 4.]]> : tensor<1x4xf32>
  %w = wna16.assemble codes = %codes, scales = %scales
      : tensor<1x4xi32>, tensor<1x4xf32>
      -> tensor<8x4xf32, #wna16.packed<u4b8, group = -1, layout = gptq, scale = f32>>
  %0 = wna16.repack %w : tensor<8x4xf32, #wna16.packed<u4b8, group = -1, layout = gptq, scale = f32>>
      to tensor<8x4xf32, #wna16.packed<u4b8, group = -1, layout = otf, scale = f32>>
  %1:2 = wna16.disassemble %0
      : tensor<8x4xf32, #wna16.packed<u4b8, group = -1, layout = otf, scale = f32>>
  %out = tensor.cast %1#1 : tensor<4x1xf32> to tensor<*xf32>
  call @printMemrefF32(%out) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %w = call @source() : () -> !source
  %expected = wna16.dequantize %w : !source to !dense
  %0 = call @awq(%w, %expected) : (!source, !dense) -> i32
  %1 = call @compressed_tensors(%w, %expected) : (!source, !dense) -> i32
  %2 = call @marlin(%w, %expected) : (!source, !dense) -> i32
  %3 = call @marlin_a8(%w, %expected) : (!source, !dense) -> i32
  %4 = call @marlin_fp8(%w, %expected) : (!source, !dense) -> i32
  %5 = call @humming_mma(%w, %expected) : (!source, !dense) -> i32
  %6 = call @humming_wgmma(%w, %expected) : (!source, !dense) -> i32
  %7 = call @cpu_blocked(%w, %expected) : (!source, !dense) -> i32
  %8 = call @trtllm(%w, %expected) : (!source, !dense) -> i32
  %9 = call @xpu(%w, %expected) : (!source, !dense) -> i32
  %10 = call @otf(%w, %expected) : (!source, !dense) -> i32
  %11 = call @stored_zeros(%w, %expected) : (!source, !dense) -> i32
  %12 = call @minus_one(%w, %expected) : (!source, !dense) -> i32
  // The codes are no constant.
  %one = arith.constant dense<1.> : !stored
  %ones = wna16.assemble codes = %one : !stored -> !dense
  %13 = call @differences(%ones, %expected) : (!dense, !dense) -> i32
  %c60000 = arith.constant 60000 : i32
  %many = arith.cmpi ugt, %13, %c60000 : i32
  %differ = arith.extui %many : i1 to i32
  %all = tensor.from_elements %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %differ : tensor<14xi32>
  %out = tensor.cast %all : tensor<14xi32> to tensor<*xi32>
  // CHECK: data =
  // CHECK-NEXT: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
  call @printMemrefI32(%out) : (tensor<*xi32>) -> ()
  // CHECK: data =
  // CHECK-NEXT: [-2004318072, -1886877560, -2004318072]
  call @marlin_by_hand() : () -> ()
  // CHECK: data =
  // CHECK-NEXT: [1],
  // CHECK-NEXT: [2],
  // CHECK-NEXT: [3],
  // CHECK-NEXT: [4]
  call @one_group() : () -> ()
  return
}
