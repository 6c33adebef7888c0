//===- PanelsAMX.cpp - Products of panels with AMX-INT8 -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fixed point as with AVX-512, for experts that have many tokens: a tile of
// high or low bytes, 16 tokens by 64 inputs, times a tile of codes, 64 inputs
// by 16 rows. Sums of a block are the same integers, so results are the same
// bits.
//
//===----------------------------------------------------------------------===//

#include "PanelsAVX512.h"

using namespace wna16;
using namespace wna16::avx512;

namespace {

/// Tokens, or rows of a panel, that a tile holds.
constexpr int64_t kTileSide = 16;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kTileBytes = kTileSide * kTileRowBytes;
/// Codes of four inputs, a byte each: a row of either tile.
constexpr int64_t kCodeRowBytes = 2 * kTileRowBytes;
/// Inputs of a block.
constexpr int64_t kMostInputs = 128;
/// Tokens for which codes are unpacked once.
constexpr int64_t kMostTokens = 3 * kTileSide;
/// With fewer, vpdpbusd is expected to be as fast.
constexpr int64_t kLeastTokens = 6;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// GCC 12's intrinsics do not say that they read memory: whatever was written
/// before has to be there.
WNA16_INLINE void finishWrites() { asm volatile("" ::: "memory"); }

/// Tiles for steps of `inputs`, as long as this lives.
class Tiles {
public:
  explicit Tiles(int64_t inputs) {
    TileConfig config;
    for (int i = 0; i < 8; ++i) {
      const bool isValue = i == kHigh || i == kLow;
      const bool isCode = i == kFirst || i == kSecond;
      config.rowBytes[i] =
          static_cast<uint16_t>(isValue ? inputs : kTileRowBytes);
      config.rows[i] = static_cast<uint8_t>(isCode ? inputs / 4 : kTileSide);
    }
    auto *at = static_cast<const void *>(&config);
    asm volatile("" ::"r"(at) : "memory");
    _tile_loadconfig(at);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles &) = delete;
  Tiles &operator=(const Tiles &) = delete;

  /// `values` holds a tile of high and one of low bytes for each step, `codes`
  /// rows of both tiles; `sums` [4, 16 tokens, 16 rows] are those of high times
  /// first, high times second, low times first, low times second.
  static void multiply(const uint8_t *values, const uint8_t *codes,
                       int64_t steps, int32_t *sums) {
    finishWrites();
    // The numbers are those of the enumeration below: GCC's intrinsics paste
    // them into the names of registers.
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < steps; ++i) {
      _tile_loadd(4, values, kTileRowBytes);
      _tile_loadd(5, values + kTileBytes, kTileRowBytes);
      _tile_loadd(6, codes, kCodeRowBytes);
      _tile_loadd(7, codes + kTileRowBytes, kCodeRowBytes);
      _tile_dpbsud(0, 4, 6);
      _tile_dpbsud(1, 4, 7);
      _tile_dpbsud(2, 5, 6);
      _tile_dpbsud(3, 5, 7);
      values += 2 * kTileBytes;
      codes += kTileSide * kCodeRowBytes;
    }
    auto *out = reinterpret_cast<uint8_t *>(sums);
    _tile_stored(0, out, kTileRowBytes);
    _tile_stored(1, out + kTileBytes, kTileRowBytes);
    _tile_stored(2, out + 2 * kTileBytes, kTileRowBytes);
    _tile_stored(3, out + 3 * kTileBytes, kTileRowBytes);
  }

private:
  enum { kHigh = 4, kLow, kFirst, kSecond };
};

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// A panel times the rows of some tokens.
class TilePass {
public:
  TilePass(const PanelShape &shape, const Panel &panel)
      : shape(shape), panel(panel), inputs(inputsOf(shape)),
        steps(shape.block / inputs) {}

  /// Inputs of a step.
  static int64_t inputsOf(const PanelShape &shape) {
    return shape.block < kTileRowBytes ? shape.block : kTileRowBytes;
  }

  void run(const Fetcher<Machine> &fetcher, const uint8_t *const *rows,
           int64_t count, float *out, int64_t stride) {
    for (int64_t t = 0; t < count; ++t)
      sums[t] = Machine::noSums();
    for (int64_t group = 0, block = 0; block < shape.blocks; ++group) {
      const Pair scales =
          Machine::loadScales(shape.scale, groupScales(shape, panel, group));
      const IntPair zeros =
          Machine::loadZeros(shape.zero, groupZeros(panel, group));
      fetcher.fetchSides(group);
      for (const int64_t end = block + shape.blocksPerGroup; block < end;
           ++block) {
        const uint8_t *codes =
            codesOf(panel.codes + block * shape.blockBytes, fetcher, block);
        for (int64_t t = 0; t < count; t += kTileSide)
          addBlock(codes, rows + t,
                   count - t < kTileSide ? count - t : kTileSide, block, scales,
                   zeros, sums + t);
      }
    }
    for (int64_t t = 0; t < count; ++t)
      Machine::store(sums[t], out + t * stride);
  }

private:
  /// A block's codes as bytes: as they are, or unpacked.
  const uint8_t *codesOf(const uint8_t *at, const Fetcher<Machine> &fetcher,
                         int64_t block) {
    const uint8_t *ahead = fetcher.codes(block);
    if (shape.bits == 8) {
      for (int64_t k = 0; k < shape.block; k += 4)
        fetch<8>(ahead + 32 * k);
      return at;
    }
    for (int64_t k = 0; k < shape.block; k += 4) {
      const IntPair code = loadCodes<4>(at + 16 * k);
      fetch<4>(ahead + 16 * k);
      uint8_t *to = unpacked + k / 4 * kCodeRowBytes;
      _mm512_store_si512(to, code.first);
      _mm512_store_si512(to + kTileRowBytes, code.second);
    }
    return unpacked;
  }

  /// Sorts a block of prepared rows, in which four inputs' high bytes precede
  /// their low bytes, into tiles of either.
  void sortBytes(const uint8_t *const *rows, int64_t count, int64_t block) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                           20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    // A step has 8, 16 or 32 words.
    const auto mask = static_cast<__mmask16>(inputs < 32 ? 0xff : 0xffff);
    const auto more = static_cast<__mmask16>(inputs < 64 ? 0 : 0xffff);
    for (int64_t t = 0; t < count; ++t) {
      const uint8_t *at = rows[t] + 2 * block * shape.block;
      uint8_t *to = values + t * kTileRowBytes;
      for (int64_t step = 0; step < steps; ++step) {
        const __m512i low = _mm512_maskz_loadu_epi32(mask, at);
        const __m512i high = _mm512_maskz_loadu_epi32(more, at + 64);
        _mm512_store_si512(to, _mm512_permutex2var_epi32(low, even, high));
        _mm512_store_si512(to + kTileBytes,
                           _mm512_permutex2var_epi32(low, odd, high));
        at += 2 * inputs;
        to += 2 * kTileBytes;
      }
    }
  }

  /// One block of up to 16 tokens: adds to `sums`.
  void addBlock(const uint8_t *codes, const uint8_t *const *rows, int64_t count,
                int64_t block, const Pair &scales, const IntPair &zeros,
                Pair *sums) {
    sortBytes(rows, count, block);
    Tiles::multiply(values, codes, steps, products);
    const int64_t side = FixedRows<Machine>::sideOffset(shape, block);
    for (int64_t t = 0; t < count; ++t) {
      const uint8_t *at = rows[t] + side;
      const __m512i minus =
          _mm512_set1_epi32(-loadInt(at + offsetof(BlockSide, sum)));
      const __m512 unit = _mm512_castsi512_ps(
          _mm512_set1_epi32(loadInt(at + offsetof(BlockSide, unit))));
      auto value = [&](int half, __m512i zero) {
        const int32_t *high = products + (half * kTileSide + t) * kTileSide;
        const int32_t *low = high + 2 * kTileSide * kTileSide;
        const __m512i lows = _mm512_add_epi32(_mm512_mullo_epi32(zero, minus),
                                              _mm512_load_si512(low));
        return _mm512_cvtepi32_ps(_mm512_add_epi32(
            _mm512_slli_epi32(_mm512_load_si512(high), 8), lows));
      };
      Pair &sum = sums[t];
      sum = {_mm512_fmadd_ps(value(0, zeros.first),
                             _mm512_mul_ps(scales.first, unit), sum.first),
             _mm512_fmadd_ps(value(1, zeros.second),
                             _mm512_mul_ps(scales.second, unit), sum.second)};
    }
  }

  const PanelShape &shape;
  const Panel &panel;
  const int64_t inputs, steps;
  alignas(64) uint8_t unpacked[kMostInputs / 4 * kCodeRowBytes];
  alignas(64) uint8_t values[kMostInputs / kTileRowBytes * 2 * kTileBytes] = {};
  alignas(64) int32_t products[4 * kTileSide * kTileSide];
  Pair sums[kMostTokens];
};

} // namespace

void avx512::multiplyTiles(const PanelShape &shape, const Panel &panel,
                           const Panel &next, const uint8_t *const *rows,
                           int64_t count, float *out, int64_t stride) {
  if (count < kLeastTokens)
    return avx512Panels.fixed.multiply(shape, panel, next, rows, count, out,
                                       stride);
  const Tiles tiles(TilePass::inputsOf(shape));
  TilePass pass(shape, panel);
  const int64_t number = (count + kMostTokens - 1) / kMostTokens;
  for (int64_t i = 0, done = 0; i < number; ++i) {
    const int64_t tokens = (count - done) / (number - i);
    pass.run(Fetcher<Machine>(shape, panel, next, i, number), rows + done,
             tokens, out + done * stride, stride);
    done += tokens;
  }
}
