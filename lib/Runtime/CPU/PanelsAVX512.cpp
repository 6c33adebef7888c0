//===- PanelsAVX512.cpp - Products of panels with AVX-512 VNNI ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fixed point: within a block, an activation is 256 * high + low times a power
// of two, high and low being signed bytes. vpdpbusd multiplies codes, which are
// unsigned bytes, by four inputs of either at once; zero points enter through
// the sum of a block's activations. Sums of a block are exact.
//
//===----------------------------------------------------------------------===//

#include "PanelSteps.h"

#include <cstddef>
#include <immintrin.h>

using namespace wna16;

namespace {

struct Vector {
  static constexpr int64_t kLanes = 16;
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
  Vector timesPowerOfTwo(Vector power) const {
    return {_mm512_scalef_ps(lanes, power.lanes)};
  }
};

using Steps = PanelSteps<Vector>;

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))

/// One item for each token of a pass. Without arrays and loops, so that the
/// compiler keeps the items in registers.
template <int kCount, typename Item>
struct Each {
  Item item;
  Each<kCount - 1, Item> rest;

  template <typename Function>
  INLINE void forEach(const Function &function, int index = 0) {
    function(item, index);
    rest.forEach(function, index + 1);
  }
  INLINE Item &at(int index) {
    if constexpr (kCount > 1)
      return index == 0 ? item : rest.at(index - 1);
    return item;
  }
};
template <typename Item>
struct Each<0, Item> {
  template <typename Function>
  INLINE void forEach(const Function &, int) {}
};

/// Rows of a panel in the order in which their codes lie: the first register
/// holds rows 0 .. 7 and 16 .. 23, the second one the others.
struct Pair {
  __m512 first, second;
};
struct IntPair {
  __m512i first, second;
};

} // namespace

//===----------------------------------------------------------------------===//
// Scales and zero points
//===----------------------------------------------------------------------===//

static Pair interleave(Vector low, Vector high) {
  return {_mm512_shuffle_f32x4(low.lanes, high.lanes, 0x44),
          _mm512_shuffle_f32x4(low.lanes, high.lanes, 0xee)};
}

static Pair loadScales(ScalarType type, const uint8_t *at) {
  return interleave(Steps::load(type, at, 0), Steps::load(type, at, 16));
}

static IntPair loadZeros(const PanelShape &shape, const uint8_t *at) {
  if (!at)
    return {_mm512_set1_epi32(shape.zero), _mm512_set1_epi32(shape.zero)};
  auto *bytes = reinterpret_cast<const __m128i *>(at);
  const __m512i low = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
  const __m512i high = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes + 1));
  return {_mm512_shuffle_i32x4(low, high, 0x44),
          _mm512_shuffle_i32x4(low, high, 0xee)};
}

/// Stores in the order of rows.
static void storeRows(const Pair &sum, float *out) {
  _mm512_storeu_ps(out, _mm512_shuffle_f32x4(sum.first, sum.second, 0x44));
  _mm512_storeu_ps(out + 16, _mm512_shuffle_f32x4(sum.first, sum.second, 0xee));
}

static const uint8_t *groupScales(const PanelShape &shape, const Panel &panel,
                                  int64_t group) {
  const int64_t size = shape.scale == ScalarType::F32 ? 4 : 2;
  return panel.scales + group * kPanelRows * size;
}

static const uint8_t *groupZeros(const Panel &panel, int64_t group) {
  return panel.zeros ? panel.zeros + group * kPanelRows : nullptr;
}

//===----------------------------------------------------------------------===//
// Which lines to fetch ahead
//===----------------------------------------------------------------------===//

namespace {

/// Bytes from the codes in use to those being fetched: what memory delivers
/// within its latency, and some more.
constexpr int64_t kFetchAhead = 8192;

/// Codes are read from memory once, in the pass over a panel for its first
/// tokens. A panel with a single pass fetches a little ahead of itself; one
/// with several fetches a part of the next panel in each.
class Fetcher {
public:
  Fetcher(const PanelShape &shape, const Panel &panel, const Panel &next,
          int64_t pass, int64_t passes)
      : shape(shape), panel(panel), next(next), pass(pass), passes(passes) {}

  /// Where to fetch from during a block: as many bytes as the block has.
  const uint8_t *codes(int64_t block) const {
    const int64_t offset = block * shape.blockBytes;
    if (passes > 1)
      return (block % passes == pass ? next.codes : panel.codes) + offset;
    const int64_t ahead = offset + kFetchAhead - shape.codeBytes();
    return ahead < 0 ? panel.codes + offset + kFetchAhead
                     : next.codes + (ahead < offset ? ahead : offset);
  }

  /// Fetches what belongs to a group of the next panel.
  void fetchSides(int64_t group) const {
    if (pass)
      return;
    const uint8_t *scales = groupScales(shape, next, group);
    _mm_prefetch(scales, _MM_HINT_T0);
    if (shape.scale == ScalarType::F32)
      _mm_prefetch(scales + 64, _MM_HINT_T0);
    if (next.zeros)
      _mm_prefetch(groupZeros(next, group), _MM_HINT_T0);
  }

private:
  const PanelShape &shape;
  const Panel &panel;
  const Panel &next;
  int64_t pass, passes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Fixed point
//===----------------------------------------------------------------------===//

// A prepared row: for each four inputs their high bytes and their low bytes;
// then for each block its unit and the sum of its activations in units.

namespace {
struct BlockSide {
  float unit;
  int32_t sum;
};
} // namespace

static int64_t fixedRowBytes(const PanelShape &shape) {
  return (2 * shape.input + shape.blocks * int64_t(sizeof(BlockSide)) + 63) &
         ~int64_t(63);
}

/// The largest magnitude of a block as bits; those of NaN exceed infinity's.
static uint32_t largestBits(const float *values, int64_t count) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t k = 0; k < count; k += 16)
    largest = _mm512_max_epu32(largest,
                               _mm512_and_si512(_mm512_loadu_si512(values + k),
                                                _mm512_set1_epi32(0x7fffffff)));
  return _mm512_reduce_max_epu32(largest);
}

namespace {
struct Unit {
  float unit, inverse;
};
} // namespace

/// The power of two in which a block's values are at most 32639, the most that
/// two signed bytes hold.
static Unit unitOf(uint32_t largest) {
  if (largest >= 0x7f800000)
    return {__builtin_nanf(""), 0.0f};
  float value;
  __builtin_memcpy(&value, &largest, 4);
  value *= 32768.0f / 32639.0f;
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  int exponent = static_cast<int>(bits >> 23) - 127 + 1 - 15;
  // Both powers stay normal.
  exponent = exponent < -120 ? -120 : exponent;
  const uint32_t power = static_cast<uint32_t>(exponent + 127) << 23;
  const uint32_t inversePower = static_cast<uint32_t>(127 - exponent) << 23;
  Unit unit;
  __builtin_memcpy(&unit.unit, &power, 4);
  __builtin_memcpy(&unit.inverse, &inversePower, 4);
  return unit;
}

/// Splits 16 values; returns their sum.
static __m512i splitValues(__m512 values, uint8_t *out) {
  const __m512i fixed = _mm512_cvtps_epi32(values);
  const __m512i high =
      _mm512_srai_epi32(_mm512_add_epi32(fixed, _mm512_set1_epi32(128)), 8);
  // Pairs of bytes: high in the upper half of 32 bits, low in the lower one.
  const __m128i highs = _mm512_cvtepi32_epi8(high);
  const __m128i lows = _mm512_cvtepi32_epi8(fixed);
  auto *at = reinterpret_cast<__m128i *>(out);
  _mm_storeu_si128(at, _mm_unpacklo_epi32(highs, lows));
  _mm_storeu_si128(at + 1, _mm_unpackhi_epi32(highs, lows));
  return fixed;
}

static BlockSide splitBlock(const float *values, int64_t count, uint8_t *out) {
  const Unit unit = unitOf(largestBits(values, count));
  __m512i sum = _mm512_setzero_si512();
  for (int64_t k = 0; k < count; k += 16)
    sum = _mm512_add_epi32(
        sum, splitValues(_mm512_mul_ps(_mm512_loadu_ps(values + k),
                                       _mm512_set1_ps(unit.inverse)),
                         out + 2 * k));
  return {unit.unit, _mm512_reduce_add_epi32(sum)};
}

static void prepareFixed(const PanelShape &shape, ScalarType type,
                         const void *source, int64_t count, float factor,
                         uint8_t *row) {
  uint8_t *side = row + 2 * shape.input;
  for (int64_t b = 0; b < shape.blocks; ++b, side += sizeof(BlockSide)) {
    alignas(64) float values[128];
    const int64_t begin = b * shape.block;
    for (int64_t k = 0; k < shape.block; k += 16) {
      const int64_t left = count - begin - k;
      const Vector value = left > 0
                               ? Steps::loadSome(type, source, begin + k, left)
                               : Vector::splat(0.0f);
      (value * Vector::splat(factor)).store(values + k);
    }
    const BlockSide made = splitBlock(values, shape.block, row + 2 * begin);
    __builtin_memcpy(side, &made, sizeof made);
  }
}

namespace {

template <int kBits>
IntPair loadCodes(const uint8_t *at) {
  const __m512i line = _mm512_loadu_si512(at);
  if constexpr (kBits == 8)
    return {line, _mm512_loadu_si512(at + 64)};
  const __m512i mask = _mm512_set1_epi8(15);
  return {_mm512_and_si512(line, mask),
          _mm512_and_si512(_mm512_srli_epi16(line, 4), mask)};
}

/// Written as an instruction because GCC 12 gives the intrinsic's result
/// another register and a copy on the stack, which halves the speed.
INLINE void addDots(__m512i &sum, __m512i codes, __m512i values) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(values));
}

int32_t loadInt(const uint8_t *at) {
  int32_t value;
  __builtin_memcpy(&value, at, 4);
  return value;
}

/// One block of `kTokens` tokens: adds to `sums`.
template <int kBits, int kTokens>
INLINE void addFixed(const PanelShape &shape, const uint8_t *codes,
                     const uint8_t *fetch, const uint8_t *const *rows,
                     int64_t block, const Pair &scales, const IntPair &zeros,
                     Each<kTokens, Pair> &sums) {
  constexpr int64_t kStep = 16 * kBits; // bytes of four inputs
  struct Token {
    const uint8_t *at;
    IntPair high, low;
  };
  const int64_t sideAt = 2 * shape.input + block * int64_t(sizeof(BlockSide));
  Each<kTokens, Token> tokens;
  tokens.forEach([&](Token &token, int t) INLINE_LAMBDA {
    token.at = rows[t] + 2 * block * shape.block;
    const __m512i minus = _mm512_set1_epi32(
        -loadInt(rows[t] + sideAt + offsetof(BlockSide, sum)));
    token.low = {_mm512_mullo_epi32(zeros.first, minus),
                 _mm512_mullo_epi32(zeros.second, minus)};
    token.high = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  });
  for (int64_t k = 0; k < shape.block; k += 4) {
    const IntPair code = loadCodes<kBits>(codes);
    for (int64_t line = 0; line < kStep; line += 64)
      _mm_prefetch(fetch + line, _MM_HINT_T0);
    codes += kStep;
    fetch += kStep;
    tokens.forEach([&](Token &token, int) INLINE_LAMBDA {
      const __m512i highs = _mm512_set1_epi32(loadInt(token.at + 2 * k));
      addDots(token.high.first, code.first, highs);
      addDots(token.high.second, code.second, highs);
      const __m512i lows = _mm512_set1_epi32(loadInt(token.at + 2 * k + 4));
      addDots(token.low.first, code.first, lows);
      addDots(token.low.second, code.second, lows);
    });
  }
  tokens.forEach([&](Token &token, int t) INLINE_LAMBDA {
    const __m512 unit = _mm512_castsi512_ps(_mm512_set1_epi32(
        loadInt(rows[t] + sideAt + offsetof(BlockSide, unit))));
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

} // namespace

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

namespace {

/// Codes of one of four inputs, less their zero points.
template <int kBits>
Pair codeValues(const IntPair &line, int input, const IntPair &zeros) {
  const __m512i mask = _mm512_set1_epi32((1 << kBits) - 1);
  const __m128i shift = _mm_cvtsi32_si128(8 * input);
  auto value = [&](__m512i bits, __m512i zero) {
    const __m512i code = _mm512_and_si512(_mm512_srl_epi32(bits, shift), mask);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(code, zero));
  };
  return {value(line.first, zeros.first), value(line.second, zeros.second)};
}

template <int kBits, int kTokens>
INLINE void addExact(const PanelShape &shape, const uint8_t *codes,
                     const uint8_t *fetch, const uint8_t *const *rows,
                     int64_t block, const Pair &scales, const IntPair &zeros,
                     Each<kTokens, Pair> &sums) {
  constexpr int64_t kStep = 16 * kBits;
  struct Token {
    const uint8_t *at;
    Pair even, odd; // inputs
  };
  Each<kTokens, Token> tokens;
  tokens.forEach([&](Token &token, int t) INLINE_LAMBDA {
    token.at = rows[t] + 4 * block * shape.block;
    token.even = token.odd = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  });
  for (int64_t k = 0; k < shape.block; k += 4) {
    const IntPair line = loadCodes<kBits>(codes);
    for (int64_t part = 0; part < kStep; part += 64)
      _mm_prefetch(fetch + part, _MM_HINT_T0);
    codes += kStep;
    fetch += kStep;
#pragma GCC unroll 4
    for (int input = 0; input < 4; ++input) {
      const Pair value = codeValues<kBits>(line, input, zeros);
      tokens.forEach([&](Token &token, int) INLINE_LAMBDA {
        const __m512 x = _mm512_castsi512_ps(
            _mm512_set1_epi32(loadInt(token.at + 4 * (k + input))));
        Pair &sum = input % 2 ? token.odd : token.even;
        sum = {_mm512_fmadd_ps(value.first, x, sum.first),
               _mm512_fmadd_ps(value.second, x, sum.second)};
      });
    }
  }
  tokens.forEach([&](Token &token, int t) INLINE_LAMBDA {
    Pair &sum = sums.at(t);
    sum = {_mm512_fmadd_ps(_mm512_add_ps(token.even.first, token.odd.first),
                           scales.first, sum.first),
           _mm512_fmadd_ps(_mm512_add_ps(token.even.second, token.odd.second),
                           scales.second, sum.second)};
  });
}

} // namespace

//===----------------------------------------------------------------------===//
// Passes over a panel
//===----------------------------------------------------------------------===//

namespace {

/// The products by their ways to add up a block.
struct Fixed {
  template <int kBits, int kTokens, typename... Arguments>
  static INLINE void add(Arguments &&...arguments) {
    addFixed<kBits, kTokens>(arguments...);
  }
};
struct Exact {
  template <int kBits, int kTokens, typename... Arguments>
  static INLINE void add(Arguments &&...arguments) {
    addExact<kBits, kTokens>(arguments...);
  }
};

template <typename Product, int kBits, int kTokens>
void runPass(const PanelShape &shape, const Panel &panel,
             const Fetcher &fetcher, const uint8_t *const *rows, float *out,
             int64_t stride) {
  Each<kTokens, Pair> sums;
  sums.forEach(
      [](Pair &sum, int) { sum = {_mm512_setzero_ps(), _mm512_setzero_ps()}; });
  for (int64_t group = 0, block = 0; block < shape.blocks; ++group) {
    const Pair scales =
        loadScales(shape.scale, groupScales(shape, panel, group));
    const IntPair zeros = loadZeros(shape, groupZeros(panel, group));
    fetcher.fetchSides(group);
    for (const int64_t end = block + shape.blocksPerGroup; block < end; ++block)
      Product::template add<kBits, kTokens>(
          shape, panel.codes + block * shape.blockBytes, fetcher.codes(block),
          rows, block, scales, zeros, sums);
  }
  sums.forEach([&](Pair &sum, int t) { storeRows(sum, out + t * stride); });
}

/// Tokens that a pass serves at most: their sums fill the registers.
constexpr int kTile = 6;

using Pass = void (*)(const PanelShape &, const Panel &, const Fetcher &,
                      const uint8_t *const *, float *, int64_t);

template <typename Product, int kBits>
constexpr Pass kPasses[kTile] = {
    runPass<Product, kBits, 1>, runPass<Product, kBits, 2>,
    runPass<Product, kBits, 3>, runPass<Product, kBits, 4>,
    runPass<Product, kBits, 5>, runPass<Product, kBits, 6>};

/// Passes of nearly equal numbers of tokens.
template <typename Product>
void multiply(const PanelShape &shape, const Panel &panel, const Panel &next,
              const uint8_t *const *rows, int64_t count, float *out,
              int64_t stride) {
  const Pass *passes =
      shape.bits == 4 ? kPasses<Product, 4> : kPasses<Product, 8>;
  const int64_t number = (count + kTile - 1) / kTile;
  for (int64_t pass = 0, done = 0; pass < number; ++pass) {
    const int64_t tokens = (count - done) / (number - pass);
    passes[tokens - 1](shape, panel, Fetcher(shape, panel, next, pass, number),
                       rows + done, out + done * stride, stride);
    done += tokens;
  }
}

} // namespace

const PanelKernels wna16::avx512Panels = {
    {fixedRowBytes, prepareFixed, multiply<Fixed>},
    {Steps::exactRowBytes, Steps::prepareExact, multiply<Exact>},
    Steps::activate,
    Steps::finish,
    Steps::sum};
