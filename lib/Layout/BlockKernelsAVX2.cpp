//===- BlockKernelsAVX2.cpp - Block programs with AVX2 --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include <immintrin.h>

namespace {

/// 32 bytes; shuffles stay within each 16.
struct Vector {
  __m256i bits;

  static Vector load(const uint8_t *at) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(at))};
  }
  static Vector splat(uint8_t byte) {
    return {_mm256_set1_epi8(static_cast<char>(byte))};
  }
  void store(uint8_t *at) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), bits);
  }
  void stream(uint8_t *at) const {
    _mm256_stream_si256(reinterpret_cast<__m256i *>(at), bits);
  }
  Vector shuffle(Vector table) const {
    return {_mm256_shuffle_epi8(bits, table.bits)};
  }
  Vector operator^(Vector other) const {
    return {_mm256_xor_si256(bits, other.bits)};
  }
  /// The low nibbles of a below those of b.
  static Vector lowNibbles(Vector a, Vector b) {
    return {select(a.bits, _mm256_slli_epi16(b.bits, 4))};
  }
  static Vector highNibbles(Vector a, Vector b) {
    return {select(_mm256_srli_epi16(a.bits, 4), b.bits)};
  }

private:
  /// Low nibbles of one operand, high nibbles of the other.
  static __m256i select(__m256i low, __m256i high) {
    const __m256i mask = _mm256_set1_epi8(15);
    return _mm256_or_si256(_mm256_and_si256(low, mask),
                           _mm256_andnot_si256(mask, high));
  }
};

struct Exchange {
  Vector before;
  bool swapsHalves;

  explicit Exchange(const wna16::BlockStep &step)
      : before(Vector::load(step.table[0])),
        swapsHalves(step.kind == wna16::BlockStep::Kind::HalfExchange) {}
  void apply(Vector &a, Vector &b) const {
    if (swapsHalves) {
      __m256i low = _mm256_permute2x128_si256(a.bits, b.bits, 0x20);
      b.bits = _mm256_permute2x128_si256(a.bits, b.bits, 0x31);
      a.bits = low;
      return;
    }
    __m256i x = a.shuffle(before).bits, y = b.shuffle(before).bits;
    a.bits = _mm256_unpacklo_epi64(x, y);
    b.bits = _mm256_unpackhi_epi64(x, y);
  }
};

} // namespace

#include "BlockSteps.h"

/// 32 bytes hold inputs k0 k1 of outputs n0 n1 n2, output n3 in the high
/// nibble; n4 tells one 32 bytes from the next.
static void addBlock(const wna16::CodeBlock &block, uint8_t *sums) {
  const __m256i ones = _mm256_set1_epi8(1), mask = _mm256_set1_epi8(15);
  const __m256i pairs = _mm256_set1_epi16(1);
  const __m256i inputs = _mm256_set1_epi32(block.inputs);
  for (int half = 0; half < 2; ++half) {
    __m256i low = _mm256_setzero_si256(), high = low;
    auto add = [&](__m256i &sum, __m256i codes) {
      __m256i products =
          _mm256_maddubs_epi16(_mm256_and_si256(codes, mask), ones);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, pairs));
    };
    for (int64_t at = 32 * half; at < block.bytes; at += 64) {
      __m256i codes = Vector::load(block.codes + at).bits;
      add(low, codes);
      add(high, _mm256_srli_epi16(codes, 4));
    }
    auto store = [&](__m256i sum, int n) {
      __m256i zeros = _mm256_cvtepu8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i *>(block.zeros + n)));
      Vector result{_mm256_sub_epi32(sum, _mm256_mullo_epi32(zeros, inputs))};
      if (block.streams)
        result.stream(sums + 4 * n);
      else
        result.store(sums + 4 * n);
    };
    store(low, 16 * half);
    store(high, 16 * half + 8);
  }
}

const wna16::BlockKernels wna16::kBlockKernelsAVX2 = {
    {/*laneBits=*/4, /*halves=*/true, /*fused=*/false, /*heldBits=*/3},
    runBlocks,
    addBlock};
