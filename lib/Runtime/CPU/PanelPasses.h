//===- PanelPasses.h - Passes over a panel, for any vector ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the products of all instruction sets have in common. Each set defines,
// in a namespace of its own, a Machine: how 32 rows of sums, scales and zero
// points lie in its registers, and how to add up one block.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELPASSES_H
#define WNA16_LIB_RUNTIME_CPU_PANELPASSES_H

#include "PanelSteps.h"

#define WNA16_INLINE inline __attribute__((always_inline))
#define WNA16_INLINE_LAMBDA __attribute__((always_inline))

namespace wna16 {

/// One item for each token of a pass. Without arrays and loops, so that the
/// compiler keeps the items in registers.
template <int kCount, typename Item>
struct Each {
  Item item;
  Each<kCount - 1, Item> rest;

  template <typename Function>
  WNA16_INLINE void forEach(const Function &function, int index = 0) {
    function(item, index);
    rest.forEach(function, index + 1);
  }
  WNA16_INLINE Item &at(int index) {
    if constexpr (kCount > 1)
      return index == 0 ? item : rest.at(index - 1);
    return item;
  }
};
template <typename Item>
struct Each<0, Item> {
  template <typename Function>
  WNA16_INLINE void forEach(const Function &, int) {}
};

static inline int32_t loadInt(const uint8_t *at) {
  int32_t value;
  __builtin_memcpy(&value, at, 4);
  return value;
}

static inline const uint8_t *groupScales(const PanelShape &shape,
                                         const Panel &panel, int64_t group) {
  const int64_t size = shape.scale == ScalarType::F32 ? 4 : 2;
  return panel.scales + group * kPanelRows * size;
}

static inline const uint8_t *groupZeros(const Panel &panel, int64_t group) {
  return panel.zeros ? panel.zeros + group * kPanelRows : nullptr;
}

//===----------------------------------------------------------------------===//
// Which lines to fetch ahead
//===----------------------------------------------------------------------===//

/// Bytes from the codes in use to those being fetched: what memory delivers
/// within its latency, and some more.
constexpr int64_t kFetchAhead = 5120;

/// Codes are read from memory once, in the pass over a panel for its first
/// tokens. A panel with a single pass fetches a little ahead of itself; one
/// with several fetches a part of the next panel in each.
template <typename Machine>
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
    const int64_t ahead =
        offset + kFetchAhead - shape.blocks * shape.blockBytes;
    return ahead < 0 ? panel.codes + offset + kFetchAhead
                     : next.codes + (ahead < offset ? ahead : offset);
  }

  /// Fetches what belongs to a group of the next panel.
  void fetchSides(int64_t group) const {
    if (pass)
      return;
    const uint8_t *scales = groupScales(shape, next, group);
    __builtin_prefetch(scales);
    if (shape.scale == ScalarType::F32)
      __builtin_prefetch(scales + 64);
    if (next.zeros)
      __builtin_prefetch(groupZeros(next, group));
  }

private:
  const PanelShape &shape;
  const Panel &panel;
  const Panel &next;
  int64_t pass, passes;
};

//===----------------------------------------------------------------------===//
// Rows in fixed point
//===----------------------------------------------------------------------===//

/// What a prepared row holds for a block, after the values of all blocks: two
/// bytes an input, in the order in which Machine multiplies them.
struct BlockSide {
  float unit;  ///< a power of two
  int32_t sum; ///< of the block's activations, in units
};

template <typename Machine>
struct FixedRows {
  using Vector = typename Machine::Vector;
  using Steps = PanelSteps<Vector>;

  static int64_t rowBytes(const PanelShape &shape) {
    return (2 * shape.input + shape.blocks * int64_t(sizeof(BlockSide)) + 63) &
           ~int64_t(63);
  }

  static int64_t sideOffset(const PanelShape &shape, int64_t block) {
    return 2 * shape.input + block * int64_t(sizeof(BlockSide));
  }

  struct Unit {
    float unit, inverse;
  };

  /// The power of two in which a block's values are at most 32639, the most
  /// that two signed bytes hold. `largest` are the bits of the largest
  /// magnitude; those of NaN exceed infinity's.
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
    const uint32_t inverse = static_cast<uint32_t>(127 - exponent) << 23;
    Unit unit;
    __builtin_memcpy(&unit.unit, &power, 4);
    __builtin_memcpy(&unit.inverse, &inverse, 4);
    return unit;
  }

  static void prepare(const PanelShape &shape, ScalarType type,
                      const void *source, int64_t count, float factor,
                      uint8_t *row) {
    for (int64_t b = 0; b < shape.blocks; ++b) {
      alignas(64) float values[128];
      const int64_t begin = b * shape.block;
      for (int64_t k = 0; k < shape.block; k += Vector::kLanes) {
        const int64_t left = count - begin - k;
        const Vector value =
            left > 0 ? Steps::loadSome(type, source, begin + k, left)
                     : Vector::splat(0.0f);
        (value * Vector::splat(factor)).store(values + k);
      }
      const Unit unit = unitOf(Machine::largestBits(values, shape.block));
      // The unit alone makes results not finite; there are no integers for it.
      if (unit.inverse == 0)
        for (float &value : values)
          value = 0;
      const BlockSide side = {
          unit.unit,
          Machine::toFixed(values, shape.block, unit.inverse, row + 2 * begin)};
      __builtin_memcpy(row + sideOffset(shape, b), &side, sizeof side);
    }
  }
};

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// Multiplies with one of the machine's products, Fixed or Exact.
template <typename Machine, typename Product>
struct Passes {
  using Sums = typename Machine::Sums;
  using Pass = void (*)(const PanelShape &, const Panel &,
                        const Fetcher<Machine> &, const uint8_t *const *,
                        float *, int64_t);

  template <int kBits, int kTokens>
  static void run(const PanelShape &shape, const Panel &panel,
                  const Fetcher<Machine> &fetcher, const uint8_t *const *rows,
                  float *out, int64_t stride) {
    Each<kTokens, Sums> sums;
    sums.forEach([](Sums &sum, int) { sum = Machine::noSums(); });
    for (int64_t group = 0, block = 0; block < shape.blocks; ++group) {
      const auto scales =
          Machine::loadScales(shape.scale, groupScales(shape, panel, group));
      const auto zeros =
          Machine::loadZeros(shape.zero, groupZeros(panel, group));
      fetcher.fetchSides(group);
      for (const int64_t end = block + shape.blocksPerGroup; block < end;
           ++block)
        Product::template addBlock<kBits, kTokens>(
            shape, panel.codes + block * shape.blockBytes, fetcher.codes(block),
            rows, block, scales, zeros, sums);
    }
    sums.forEach(
        [&](Sums &sum, int t) { Machine::store(sum, out + t * stride); });
  }

  template <int kBits, int... kIndices>
  static const Pass *table() {
    static constexpr Pass passes[] = {run<kBits, kIndices>...};
    return passes;
  }
  template <int kBits>
  static const Pass *passes() {
    static_assert(Product::kTile == 3 || Product::kTile == 6);
    if constexpr (Product::kTile == 3)
      return table<kBits, 1, 2, 3>();
    else
      return table<kBits, 1, 2, 3, 4, 5, 6>();
  }

  /// In passes of nearly equal numbers of tokens.
  static void multiply(const PanelShape &shape, const Panel &panel,
                       const Panel &next, const uint8_t *const *rows,
                       int64_t count, float *out, int64_t stride) {
    const Pass *pass = shape.bits == 4 ? passes<4>() : passes<8>();
    const int64_t number = (count + Product::kTile - 1) / Product::kTile;
    for (int64_t i = 0, done = 0; i < number; ++i) {
      const int64_t tokens = (count - done) / (number - i);
      pass[tokens - 1](shape, panel,
                       Fetcher<Machine>(shape, panel, next, i, number),
                       rows + done, out + done * stride, stride);
      done += tokens;
    }
  }
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_PANELPASSES_H
