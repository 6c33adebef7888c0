//===- PanelsAVX2.cpp - Products of panels with AVX2 and FMA --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fixed point: within a block, an activation is a 16-bit integer times a power
// of two. vpmaddwd multiplies it by codes, which are widened to 16 bits by
// shifts and masks alone: of the four inputs that share a lane, the first and
// the third one become a pair, and the other two. Zero points enter through the
// sum of a block's activations. Sums of a block are exact.
//
//===----------------------------------------------------------------------===//

#include "PanelDense.h"
#include "RouteSteps.h"

#include <cstddef>
#include <immintrin.h>

using namespace wna16;

namespace {

struct Vector {
  static constexpr int64_t kLanes = 8;
  static constexpr int kRegisters = 16;
  __m256 lanes;

  static Vector load(const void *at) {
    return {_mm256_loadu_ps(static_cast<const float *>(at))};
  }
  static Vector splat(float value) { return {_mm256_set1_ps(value)}; }
  static Vector loadF16(const void *at) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i *>(at)))};
  }
  static Vector loadBF16(const void *at) {
    const __m256i wide = _mm256_cvtepu16_epi32(
        _mm_loadu_si128(static_cast<const __m128i *>(at)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  void store(void *at) const {
    _mm256_storeu_ps(static_cast<float *>(at), lanes);
  }
  void storeF16(void *at) const {
    _mm_storeu_si128(
        static_cast<__m128i *>(at),
        _mm256_cvtps_ph(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void storeBF16(void *at) const {
    const __m256i bits = _mm256_castps_si256(lanes);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(
        bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i chosen = _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet),
        _mm256_cmp_ps(lanes, lanes, _CMP_UNORD_Q)));
    const __m256i upper = _mm256_srli_epi32(chosen, 16);
    _mm_storeu_si128(static_cast<__m128i *>(at),
                     _mm_packus_epi32(_mm256_castsi256_si128(upper),
                                      _mm256_extracti128_si256(upper, 1)));
  }

  Vector operator+(Vector o) const { return {_mm256_add_ps(lanes, o.lanes)}; }
  Vector operator-(Vector o) const { return {_mm256_sub_ps(lanes, o.lanes)}; }
  Vector operator*(Vector o) const { return {_mm256_mul_ps(lanes, o.lanes)}; }
  Vector operator/(Vector o) const { return {_mm256_div_ps(lanes, o.lanes)}; }
  static Vector fma(Vector a, Vector b, Vector c) {
    return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
  }
  /// NaN in b stays.
  static Vector min(Vector a, Vector b) {
    return {_mm256_min_ps(a.lanes, b.lanes)};
  }
  static Vector max(Vector a, Vector b) {
    return {_mm256_max_ps(a.lanes, b.lanes)};
  }
  Vector round() const {
    return {
        _mm256_round_ps(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  /// By the sign of x.
  static Vector ifNegative(Vector x, Vector negative, Vector other) {
    return {_mm256_blendv_ps(other.lanes, negative.lanes, x.lanes)};
  }
  float sum() const {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes),
                                   _mm256_extractf128_ps(lanes, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// For results that are normal numbers.
  Vector timesPowerOfTwo(Vector power) const {
    const __m256i exponent =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(power.lanes),
                                           _mm256_set1_epi32(127)),
                          23);
    return {_mm256_mul_ps(lanes, _mm256_castsi256_ps(exponent))};
  }
};

/// 32 rows, eight a register: in order, which is also that of their codes.
struct Rows {
  __m256 part[4];
};
struct IntRows {
  __m256i part[4];
};

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Codes of four inputs of eight rows, a byte (or, of 4 bits, the nibble at bit
/// `shift`) in each fourth of a lane.
struct CodeLanes {
  __m256i bits;
  int shift;
};

/// Where the codes of rows 8 * part .. of four inputs lie in memory.
template <int kBits>
WNA16_INLINE CodeLanes loadCodes(const uint8_t *at, int part) {
  auto *lines = reinterpret_cast<const __m256i *>(at);
  if constexpr (kBits == 4)
    return {_mm256_loadu_si256(lines + part / 2), part % 2 * 4};
  // Rows 0 .. 7, 16 .. 23, 8 .. 15, 24 .. 31.
  return {_mm256_loadu_si256(lines + (part % 2 * 2 + part / 2)), 0};
}

template <int kBits>
WNA16_INLINE void fetch(const uint8_t *at) {
  for (int64_t line = 0; line < 16 * kBits; line += 64)
    _mm_prefetch(at + line, _MM_HINT_T0);
}

/// The first and third input's codes as pairs of 16 bits, or (`odd`) the
/// second and fourth one's.
template <int kBits>
WNA16_INLINE __m256i codePairs(const CodeLanes &codes, bool odd) {
  constexpr int kOne = (1 << kBits) - 1;
  return _mm256_and_si256(
      _mm256_srli_epi32(codes.bits, codes.shift + (odd ? 8 : 0)),
      _mm256_set1_epi32(kOne << 16 | kOne));
}

template <int kBits>
WNA16_INLINE __m256 codeValues(const CodeLanes &codes, int input,
                               __m256i zeros) {
  const __m256i code =
      _mm256_and_si256(_mm256_srli_epi32(codes.bits, codes.shift + 8 * input),
                       _mm256_set1_epi32((1 << kBits) - 1));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(code, zeros));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

struct Machine {
  using Vector = ::Vector;
  using Steps = PanelSteps<Vector>;
  using Sums = Rows;

  static Rows noSums() {
    const __m256 none = _mm256_setzero_ps();
    return {{none, none, none, none}};
  }

  static Rows loadScales(ScalarType type, const uint8_t *at) {
    return {{Steps::load(type, at, 0).lanes, Steps::load(type, at, 8).lanes,
             Steps::load(type, at, 16).lanes, Steps::load(type, at, 24).lanes}};
  }

  /// Stored zero points, or the one that all codes imply.
  static IntRows loadZeros(int zero, const uint8_t *at) {
    auto part = [&](int index) {
      return at ? _mm256_cvtepu8_epi32(_mm_loadl_epi64(
                      reinterpret_cast<const __m128i *>(at + 8 * index)))
                : _mm256_set1_epi32(zero);
    };
    return {{part(0), part(1), part(2), part(3)}};
  }

  static void store(const Sums &sum, float *out) {
    for (int part = 0; part < 4; ++part)
      _mm256_storeu_ps(out + 8 * part, sum.part[part]);
  }

  static uint32_t largestBits(const float *values, int64_t count) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
    for (int64_t k = 0; k < count; k += 8)
      largest = _mm256_max_epu32(
          largest,
          _mm256_and_si256(
              _mm256_loadu_si256(reinterpret_cast<const __m256i *>(values + k)),
              magnitude));
    alignas(32) uint32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), largest);
    for (uint32_t lane : lanes)
      lanes[0] = lane > lanes[0] ? lane : lanes[0];
    return lanes[0];
  }

  /// Of four inputs, the first, third, second and fourth one; returns the sum.
  static int32_t toFixed(const float *values, int64_t count, float inverse,
                         uint8_t *out) {
    __m256i sum = _mm256_setzero_si256();
    for (int64_t k = 0; k < count; k += 8) {
      const __m256i fixed = _mm256_cvtps_epi32(
          _mm256_mul_ps(_mm256_loadu_ps(values + k), _mm256_set1_ps(inverse)));
      sum = _mm256_add_epi32(sum, fixed);
      const __m256i swapped = _mm256_shuffle_epi32(fixed, 0xd8);
      _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 2 * k),
                       _mm_packs_epi32(_mm256_castsi256_si128(swapped),
                                       _mm256_extracti128_si256(swapped, 1)));
    }
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), sum);
    int32_t total = 0;
    for (int32_t lane : lanes)
      total += lane;
    return total;
  }

  struct Fixed {
    /// Tokens that a pass serves at most: their sums fill the registers.
    static constexpr int kTile = 3;

    /// One block of `kTokens` tokens: adds to `sums`.
    template <int kBits, int kTokens>
    static WNA16_INLINE void
    addBlock(const PanelShape &shape, const uint8_t *codes,
             const uint8_t *ahead, const uint8_t *const *rows, int64_t block,
             const Rows &scales, const IntRows &zeros,
             Each<kTokens, Sums> &sums) {
      struct Token {
        const uint8_t *at;
        __m256i a, b, c, d; // of eight rows each
      };
      const int64_t side = FixedRows<Machine>::sideOffset(shape, block);
      Each<kTokens, Token> tokens;
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        token.at = rows[t] + 2 * block * shape.block;
        const __m256i minus = _mm256_set1_epi32(
            -loadInt(rows[t] + side + offsetof(BlockSide, sum)));
        token.a = _mm256_mullo_epi32(zeros.part[0], minus);
        token.b = _mm256_mullo_epi32(zeros.part[1], minus);
        token.c = _mm256_mullo_epi32(zeros.part[2], minus);
        token.d = _mm256_mullo_epi32(zeros.part[3], minus);
      });
      for (int64_t k = 0; k < shape.block; k += 4) {
        fetch<kBits>(ahead);
        ahead += 16 * kBits;
        addPairs<kBits>(tokens, codes, 2 * k, false);
        addPairs<kBits>(tokens, codes, 2 * k + 4, true);
        codes += 16 * kBits;
      }
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        const __m256 unit = _mm256_castsi256_ps(_mm256_set1_epi32(
            loadInt(rows[t] + side + offsetof(BlockSide, unit))));
        Rows &sum = sums.at(t);
        auto add = [&](int part, __m256i value) WNA16_INLINE_LAMBDA {
          sum.part[part] = _mm256_fmadd_ps(
              _mm256_cvtepi32_ps(value), _mm256_mul_ps(scales.part[part], unit),
              sum.part[part]);
        };
        add(0, token.a);
        add(1, token.b);
        add(2, token.c);
        add(3, token.d);
      });
    }

    /// Two of four inputs.
    template <int kBits, typename Tokens>
    static WNA16_INLINE void addPairs(Tokens &tokens, const uint8_t *codes,
                                      int64_t offset, bool odd) {
      const __m256i a = codePairs<kBits>(loadCodes<kBits>(codes, 0), odd);
      const __m256i b = codePairs<kBits>(loadCodes<kBits>(codes, 1), odd);
      const __m256i c = codePairs<kBits>(loadCodes<kBits>(codes, 2), odd);
      const __m256i d = codePairs<kBits>(loadCodes<kBits>(codes, 3), odd);
      tokens.forEach([&](auto &token, int) WNA16_INLINE_LAMBDA {
        const __m256i x = _mm256_set1_epi32(loadInt(token.at + offset));
        token.a = _mm256_add_epi32(token.a, _mm256_madd_epi16(a, x));
        token.b = _mm256_add_epi32(token.b, _mm256_madd_epi16(b, x));
        token.c = _mm256_add_epi32(token.c, _mm256_madd_epi16(c, x));
        token.d = _mm256_add_epi32(token.d, _mm256_madd_epi16(d, x));
      });
    }
  };

  struct Exact {
    static constexpr int kTile = 3;

    template <int kBits, int kTokens>
    static WNA16_INLINE void
    addBlock(const PanelShape &shape, const uint8_t *codes,
             const uint8_t *ahead, const uint8_t *const *rows, int64_t block,
             const Rows &scales, const IntRows &zeros,
             Each<kTokens, Sums> &sums) {
      struct Token {
        const uint8_t *at;
        __m256 a, b, c, d;
      };
      Each<kTokens, Token> tokens;
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        token.at = rows[t] + 4 * block * shape.block;
        token.a = token.b = token.c = token.d = _mm256_setzero_ps();
      });
      for (int64_t k = 0; k < shape.block; k += 4) {
        fetch<kBits>(ahead);
        ahead += 16 * kBits;
#pragma GCC unroll 4
        for (int input = 0; input < 4; ++input) {
          auto value = [&](int part) WNA16_INLINE_LAMBDA {
            return codeValues<kBits>(loadCodes<kBits>(codes, part), input,
                                     zeros.part[part]);
          };
          const __m256 a = value(0), b = value(1), c = value(2), d = value(3);
          tokens.forEach([&](Token &token, int) WNA16_INLINE_LAMBDA {
            const __m256 x = _mm256_castsi256_ps(
                _mm256_set1_epi32(loadInt(token.at + 4 * (k + input))));
            token.a = _mm256_fmadd_ps(a, x, token.a);
            token.b = _mm256_fmadd_ps(b, x, token.b);
            token.c = _mm256_fmadd_ps(c, x, token.c);
            token.d = _mm256_fmadd_ps(d, x, token.d);
          });
        }
        codes += 16 * kBits;
      }
      tokens.forEach([&](Token &token, int t) WNA16_INLINE_LAMBDA {
        Rows &sum = sums.at(t);
        auto add = [&](int part, __m256 value) WNA16_INLINE_LAMBDA {
          sum.part[part] =
              _mm256_fmadd_ps(value, scales.part[part], sum.part[part]);
        };
        add(0, token.a);
        add(1, token.b);
        add(2, token.c);
        add(3, token.d);
      });
    }
  };
};

} // namespace

// Constant expressions, so that none of this file's code runs at load.
constexpr PanelKernels wna16::avx2Panels = panelKernels<Machine>();
constexpr RouteKernels wna16::avx2Route = routeKernels<Vector>();
