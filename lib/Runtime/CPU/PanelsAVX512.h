//===- PanelsAVX512.h - Panels in registers of AVX-512 ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For files that are compiled for AVX-512 alone.
//
// Fixed point: within a block, an activation is 256 * high + low times a power
// of two, high and low being signed bytes. vpdpbusd multiplies codes, which are
// unsigned bytes, by four inputs of either at once; zero points enter through
// the sum of a block's activations. Sums of a block are exact.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELSAVX512_H
#define WNA16_LIB_RUNTIME_CPU_PANELSAVX512_H

#include "PanelPasses.h"

#include <cstddef>
#include <immintrin.h>

namespace wna16::avx512 {

struct Vector {
  static constexpr int64_t kLanes = 16;
  static constexpr int kRegisters = 32;
  __m512 lanes;

  static Vector load(const void *at) { return {_mm512_loadu_ps(at)}; }
  static Vector splat(float value) { return {_mm512_set1_ps(value)}; }
  static Vector loadF16(const void *at) {
    return {
        _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i *>(at)))};
  }
  static Vector loadBF16(const void *at) {
    const __m512i wide = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(static_cast<const __m256i *>(at)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  void store(void *at) const { _mm512_storeu_ps(at, lanes); }
  void storeF16(void *at) const {
    _mm256_storeu_si256(
        static_cast<__m256i *>(at),
        _mm512_cvtps_ph(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void storeBF16(void *at) const {
    const __m512i bits = _mm512_castps_si512(lanes);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(
        bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 isNaN = _mm512_cmp_ps_mask(lanes, lanes, _CMP_UNORD_Q);
    rounded =
        _mm512_mask_or_epi32(rounded, isNaN, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(static_cast<__m256i *>(at),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }

  Vector operator+(Vector o) const { return {_mm512_add_ps(lanes, o.lanes)}; }
  Vector operator-(Vector o) const { return {_mm512_sub_ps(lanes, o.lanes)}; }
  Vector operator*(Vector o) const { return {_mm512_mul_ps(lanes, o.lanes)}; }
  Vector operator/(Vector o) const { return {_mm512_div_ps(lanes, o.lanes)}; }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  }
  /// NaN in b stays.
  static Vector min(Vector a, Vector b) {
    return {_mm512_min_ps(a.lanes, b.lanes)};
  }
  static Vector max(Vector a, Vector b) {
    return {_mm512_max_ps(a.lanes, b.lanes)};
  }
  Vector round() const {
    return {_mm512_roundscale_ps(lanes, _MM_FROUND_TO_NEAREST_INT |
                                            _MM_FROUND_NO_EXC)};
  }
  /// By the sign of x.
  static Vector ifNegative(Vector x, Vector negative, Vector other) {
    return {
        _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x.lanes)),
                             other.lanes, negative.lanes)};
  }
  float sum() const { return _mm512_reduce_add_ps(lanes); }
  Vector timesPowerOfTwo(Vector power) const {
    return {_mm512_scalef_ps(lanes, power.lanes)};
  }
};

/// 32 rows in the order in which their codes lie: the first register holds rows
/// 0 .. 7 and 16 .. 23, the second one the others.
struct Pair {
  __m512 first, second;
};
struct IntPair {
  __m512i first, second;
};

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Codes of four inputs as they are stored, those of 4 bits twice.
template <int kBits>
IntPair loadBits(const uint8_t *at) {
  return {_mm512_loadu_si512(at),
          _mm512_loadu_si512(kBits == 4 ? at : at + 64)};
}

/// Codes of four inputs, one in each byte.
template <int kBits>
IntPair loadCodes(const uint8_t *at) {
  const IntPair bits = loadBits<kBits>(at);
  if constexpr (kBits == 8)
    return bits;
  const __m512i mask = _mm512_set1_epi8(15);
  return {_mm512_and_si512(bits.first, mask),
          _mm512_and_si512(_mm512_srli_epi16(bits.second, 4), mask)};
}

template <int kBits>
WNA16_INLINE void fetch(const uint8_t *at) {
  for (int64_t line = 0; line < 16 * kBits; line += 64)
    _mm_prefetch(at + line, _MM_HINT_T0);
}

/// The power of two in which the bit at a position counts 1: a code whose bits
/// are put there is added to it.
constexpr float baseAt(int position) {
  return static_cast<float>(1 << (23 - position));
}

/// The code at a position of each lane, plus baseAt(position).
template <int kBits, int kPosition>
__m512 codeOnBase(__m512i bits) {
  constexpr int kAndOr = 0xea;
  const __m512i mask = _mm512_set1_epi32(((1 << kBits) - 1) << kPosition);
  const __m512i base = _mm512_castps_si512(_mm512_set1_ps(baseAt(kPosition)));
  return _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(bits, mask, base, kAndOr));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Written as an instruction because GCC 12 gives the intrinsic's result
/// another register and a copy on the stack, which halves the speed.
WNA16_INLINE void addDots(__m512i &sum, __m512i codes, __m512i values) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(values));
}

struct Machine {
  using Vector = avx512::Vector;
  using Steps = PanelSteps<Vector>;
  using Sums = Pair;

  static Sums noSums() { return {_mm512_setzero_ps(), _mm512_setzero_ps()}; }

  static Pair loadScales(ScalarType type, const uint8_t *at) {
    const __m512 low = Steps::load(type, at, 0).lanes;
    const __m512 high = Steps::load(type, at, 16).lanes;
    return {_mm512_shuffle_f32x4(low, high, 0x44),
            _mm512_shuffle_f32x4(low, high, 0xee)};
  }

  /// Stored zero points, or the one that all codes imply.
  static IntPair loadZeros(int zero, const uint8_t *at) {
    if (!at)
      return {_mm512_set1_epi32(zero), _mm512_set1_epi32(zero)};
    auto *bytes = reinterpret_cast<const __m128i *>(at);
    const __m512i low = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
    const __m512i high = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes + 1));
    return {_mm512_shuffle_i32x4(low, high, 0x44),
            _mm512_shuffle_i32x4(low, high, 0xee)};
  }

  /// Stores in the order of rows.
  static void store(const Sums &sum, float *out) {
    _mm512_storeu_ps(out, _mm512_shuffle_f32x4(sum.first, sum.second, 0x44));
    _mm512_storeu_ps(out + 16,
                     _mm512_shuffle_f32x4(sum.first, sum.second, 0xee));
  }

  //===--------------------------------------------------------------------===//
  // Fixed point
  //===--------------------------------------------------------------------===//

  static uint32_t largestBits(const float *values, int64_t count) {
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512i largest = _mm512_setzero_si512();
    for (int64_t k = 0; k < count; k += 16)
      largest = _mm512_max_epu32(
          largest, _mm512_and_si512(_mm512_loadu_si512(values + k), magnitude));
    return _mm512_reduce_max_epu32(largest);
  }

  /// Four inputs' high bytes, then their low bytes; returns the sum.
  static int32_t toFixed(const float *values, int64_t count, float inverse,
                         uint8_t *out) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < count; k += 16) {
      const __m512i fixed = _mm512_cvtps_epi32(
          _mm512_mul_ps(_mm512_loadu_ps(values + k), _mm512_set1_ps(inverse)));
      sum = _mm512_add_epi32(sum, fixed);
      const __m512i high =
          _mm512_srai_epi32(_mm512_add_epi32(fixed, _mm512_set1_epi32(128)), 8);
      const __m128i highs = _mm512_cvtepi32_epi8(high);
      const __m128i lows = _mm512_cvtepi32_epi8(fixed);
      auto *at = reinterpret_cast<__m128i *>(out + 2 * k);
      _mm_storeu_si128(at, _mm_unpacklo_epi32(highs, lows));
      _mm_storeu_si128(at + 1, _mm_unpackhi_epi32(highs, lows));
    }
    return _mm512_reduce_add_epi32(sum);
  }

  struct Fixed {
    /// Tokens that a pass serves at most: their sums fill the registers.
    static constexpr int kTile = 6;

    /// One block of `kTokens` tokens: adds to `sums`.
    template <int kBits, int kTokens>
    static WNA16_INLINE void
    addBlock(const PanelShape &shape, const uint8_t *codes,
             const uint8_t *ahead, const uint8_t *const *rows, int64_t block,
             const Pair &scales, const IntPair &zeros,
             Each<kTokens, Sums> &sums) {
      struct Token {
        const uint8_t *at;
        IntPair high, low;
      };
      const int64_t side = FixedRows<Machine>::sideOffset(shape, block);
      Each<kTokens, Token> tokens;
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        token.at = rows[t] + 2 * block * shape.block;
        const __m512i minus = _mm512_set1_epi32(
            -loadInt(rows[t] + side + offsetof(BlockSide, sum)));
        token.low = {_mm512_mullo_epi32(zeros.first, minus),
                     _mm512_mullo_epi32(zeros.second, minus)};
        token.high = {_mm512_setzero_si512(), _mm512_setzero_si512()};
      });
      for (int64_t k = 0; k < shape.block; k += 4) {
        const IntPair code = loadCodes<kBits>(codes);
        fetch<kBits>(ahead);
        codes += 16 * kBits;
        ahead += 16 * kBits;
        tokens.forEach([&](Token &token, int) WNA16_INLINE_LAMBDA {
          const __m512i highs = _mm512_set1_epi32(loadInt(token.at + 2 * k));
          addDots(token.high.first, code.first, highs);
          addDots(token.high.second, code.second, highs);
          const __m512i lows = _mm512_set1_epi32(loadInt(token.at + 2 * k + 4));
          addDots(token.low.first, code.first, lows);
          addDots(token.low.second, code.second, lows);
        });
      }
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        const __m512 unit = _mm512_castsi512_ps(_mm512_set1_epi32(
            loadInt(rows[t] + side + offsetof(BlockSide, unit))));
        auto value = [](__m512i highs, __m512i lows) {
          return _mm512_cvtepi32_ps(
              _mm512_add_epi32(_mm512_slli_epi32(highs, 8), lows));
        };
        Pair &sum = sums.at(t);
        sum = {_mm512_fmadd_ps(value(token.high.first, token.low.first),
                               _mm512_mul_ps(scales.first, unit), sum.first),
               _mm512_fmadd_ps(value(token.high.second, token.low.second),
                               _mm512_mul_ps(scales.second, unit), sum.second)};
      });
    }
  };

  //===--------------------------------------------------------------------===//
  // f32
  //===--------------------------------------------------------------------===//

  struct Exact {
    static constexpr int kTile = 6;

    /// Adds codes times the activation of their input.
    static WNA16_INLINE void addProducts(Pair &sum, const Pair &codes,
                                         const uint8_t *activation) {
      const __m512 x =
          _mm512_castsi512_ps(_mm512_set1_epi32(loadInt(activation)));
      sum = {_mm512_fmadd_ps(codes.first, x, sum.first),
             _mm512_fmadd_ps(codes.second, x, sum.second)};
    }

    template <int kBits, int kTokens>
    static WNA16_INLINE void
    addBlock(const PanelShape &shape, const uint8_t *codes,
             const uint8_t *ahead, const uint8_t *const *rows, int64_t block,
             const Pair &scales, const IntPair &zeros,
             Each<kTokens, Sums> &sums) {
      struct Token {
        const uint8_t *at;
        Pair even, odd; // inputs
      };
      // Bits from a code of the first register to that of the second.
      constexpr int kSecond = kBits == 4 ? 4 : 0;
      auto zerosOnBase = [](__m512i zeros, int position) {
        return _mm512_add_ps(_mm512_cvtepi32_ps(zeros),
                             _mm512_set1_ps(baseAt(position)));
      };
      const Pair evenZeros = {zerosOnBase(zeros.first, 0),
                              zerosOnBase(zeros.second, kSecond)};
      const Pair oddZeros = {zerosOnBase(zeros.first, 8),
                             zerosOnBase(zeros.second, 8 + kSecond)};
      Each<kTokens, Token> tokens;
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        token.at = rows[t] + 4 * block * shape.block;
        token.even = token.odd = noSums();
      });
      for (int64_t k = 0; k < shape.block; k += 4) {
        IntPair bits = loadBits<kBits>(codes);
        fetch<kBits>(ahead);
        codes += 16 * kBits;
        ahead += 16 * kBits;
#pragma GCC unroll 2
        for (int input = 0; input < 4; input += 2) {
          const Pair even = {
              _mm512_sub_ps(codeOnBase<kBits, 0>(bits.first), evenZeros.first),
              _mm512_sub_ps(codeOnBase<kBits, kSecond>(bits.second),
                            evenZeros.second)};
          const Pair odd = {
              _mm512_sub_ps(codeOnBase<kBits, 8>(bits.first), oddZeros.first),
              _mm512_sub_ps(codeOnBase<kBits, 8 + kSecond>(bits.second),
                            oddZeros.second)};
          tokens.forEach([&](Token &token, int) WNA16_INLINE_LAMBDA {
            addProducts(token.even, even, token.at + 4 * (k + input));
            addProducts(token.odd, odd, token.at + 4 * (k + input + 1));
          });
          bits = {_mm512_srli_epi32(bits.first, 16),
                  _mm512_srli_epi32(bits.second, 16)};
        }
      }
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        Pair &sum = sums.at(t);
        sum = {
            _mm512_fmadd_ps(_mm512_add_ps(token.even.first, token.odd.first),
                            scales.first, sum.first),
            _mm512_fmadd_ps(_mm512_add_ps(token.even.second, token.odd.second),
                            scales.second, sum.second)};
      });
    }
  };
};

/// PanelProduct::multiply of fixed point with tiles of AMX (PanelsAMX.cpp).
void multiplyTiles(const PanelShape &shape, const Panel &panel,
                   const Panel &next, const uint8_t *const *rows, int64_t count,
                   float *out, int64_t stride);

} // namespace wna16::avx512

#endif // WNA16_LIB_RUNTIME_CPU_PANELSAVX512_H
