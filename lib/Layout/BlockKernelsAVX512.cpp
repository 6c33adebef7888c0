//===- BlockKernelsAVX512.cpp - Block programs with AVX-512 VBMI ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include <immintrin.h>

namespace {

/// 64 bytes.
struct Vector {
  __m512i bits;

  static Vector load(const uint8_t *at) { return {_mm512_loadu_si512(at)}; }
  static Vector splat(uint8_t byte) {
    return {_mm512_set1_epi8(static_cast<char>(byte))};
  }
  void store(uint8_t *at) const { _mm512_storeu_si512(at, bits); }
  void stream(uint8_t *at) const {
    _mm512_stream_si512(reinterpret_cast<__m512i *>(at), bits);
  }
  Vector shuffle(Vector table) const {
    return {_mm512_permutexvar_epi8(table.bits, bits)};
  }
  Vector operator^(Vector other) const {
    return {_mm512_xor_si512(bits, other.bits)};
  }
  /// The low nibbles of a below those of b.
  static Vector lowNibbles(Vector a, Vector b) {
    return {select(a.bits, _mm512_slli_epi16(b.bits, 4))};
  }
  static Vector highNibbles(Vector a, Vector b) {
    return {select(_mm512_srli_epi16(a.bits, 4), b.bits)};
  }

private:
  /// Low nibbles of one operand, high nibbles of the other.
  static __m512i select(__m512i low, __m512i high) {
    constexpr int kSelect = 0xca; // mask ? low : high
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8(15), low, high, kSelect);
  }
};

/// Byte picks from two registers do an exchange and both shuffles at once.
struct Exchange {
  Vector first, second;

  explicit Exchange(const wna16::BlockStep &step)
      : first(Vector::load(step.table[0])),
        second(Vector::load(step.table[1])) {}
  void apply(Vector &a, Vector &b) const {
    Vector x{_mm512_permutex2var_epi8(a.bits, first.bits, b.bits)};
    b.bits = _mm512_permutex2var_epi8(a.bits, second.bits, b.bits);
    a = x;
  }
};

} // namespace

#include "BlockSteps.h"

/// 16 sums, of inputs less zero points.
static void storeSums(__m512i sums, __m128i zeros,
                      const wna16::CodeBlock &block, uint8_t *to) {
  __m512i less = _mm512_mullo_epi32(_mm512_cvtepu8_epi32(zeros),
                                    _mm512_set1_epi32(block.inputs));
  Vector result{_mm512_sub_epi32(sums, less)};
  if (block.streams)
    result.stream(to);
  else
    result.store(to);
}

/// A register holds inputs k0 k1 of outputs n0 n1 n2 n4, output n3 in the high
/// nibble.
static void addBlock(const wna16::CodeBlock &block, uint8_t *sums) {
  const __m512i ones = _mm512_set1_epi8(1), mask = _mm512_set1_epi8(15);
  // Several sums at once, as one waits for its last addition; high nibbles are
  // what whole bytes have more than low ones.
  constexpr int64_t kSums = 4, kStep = 64 * kSums;
  __m512i lows[kSums] = {}, bytes[kSums] = {};
  auto add = [&](int64_t at, int64_t sum) {
    __m512i codes = _mm512_loadu_si512(block.codes + at);
    lows[sum] =
        _mm512_dpbusd_epi32(lows[sum], _mm512_and_si512(codes, mask), ones);
    bytes[sum] = _mm512_dpbusd_epi32(bytes[sum], codes, ones);
  };
  int64_t at = 0;
  for (; at + kStep <= block.bytes; at += kStep)
#pragma GCC unroll 4
    for (int64_t sum = 0; sum < kSums; ++sum)
      add(at + 64 * sum, sum);
  for (; at < block.bytes; at += 64)
    add(at, 0);
  auto total = [](const __m512i *sums) {
    return _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]),
                            _mm512_add_epi32(sums[2], sums[3]));
  };
  __m512i low = total(lows);
  __m512i high = _mm512_srli_epi32(_mm512_sub_epi32(total(bytes), low), 4);
  // Lanes count n0 n1 n2 n4; memory n0 n1 n2 n3 n4.
  auto zeros = [&](int n) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(block.zeros + n));
  };
  constexpr int kLowHalves = 0x44, kHighHalves = 0xee;
  storeSums(_mm512_shuffle_i64x2(low, high, kLowHalves), zeros(0), block, sums);
  storeSums(_mm512_shuffle_i64x2(low, high, kHighHalves), zeros(16), block,
            sums + 64);
}

const wna16::BlockKernels wna16::kBlockKernelsAVX512 = {
    {/*laneBits=*/6, /*halves=*/false, /*fused=*/true, /*heldBits=*/4},
    runBlocks,
    addBlock};
