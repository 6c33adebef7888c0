//===- PanelDense.h - Products of dense rows, for any vector ----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of floats, as a router's, a shared expert's or an expert's that was not
// quantised, times rows of f32. A result is one sum for each lane over blocks
// of inputs, the blocks added up, then the lanes: whatever the number of tokens
// and rows.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELDENSE_H
#define WNA16_LIB_RUNTIME_CPU_PANELDENSE_H

#include "PanelPasses.h"

namespace wna16 {

template <typename Vector>
struct DensePasses {
  using Steps = PanelSteps<Vector>;
  static constexpr int64_t kLanes = Vector::kLanes;
  /// Sums that a tile holds: they and one column of operands fill the
  /// registers.
  static constexpr int kRowTile = 4;
  static constexpr int kTokenTile = Vector::kRegisters == 32 ? 4 : 2;
  /// Inputs whose products are added up without a break.
  static constexpr int64_t kBlock = 512;

  template <int kTokens>
  using Sums = Each<kTokens, Vector>;

  /// Adds the products of inputs [begin, end): whole vectors, or less than one.
  template <ScalarType kType, bool kWhole, int kRows, int kTokens>
  static WNA16_INLINE void addInputs(const uint8_t *weights, int64_t rowBytes,
                                     const uint8_t *const *rows, int64_t begin,
                                     int64_t end,
                                     Each<kRows, Sums<kTokens>> &sums) {
    for (int64_t k = begin; k < end; k += kLanes) {
      Each<kTokens, Vector> x;
      x.forEach([&](Vector &value, int t) WNA16_INLINE_LAMBDA {
        value = Vector::load(rows[t] + 4 * k);
      });
      sums.forEach([&](Sums<kTokens> &row, int r) WNA16_INLINE_LAMBDA {
        const uint8_t *at = weights + r * rowBytes;
        const Vector weight = kWhole ? Steps::load(kType, at, k)
                                     : Steps::loadSome(kType, at, k, end - k);
        row.forEach([&](Vector &sum, int t) WNA16_INLINE_LAMBDA {
          sum = Vector::fma(weight, x.at(t), sum);
        });
      });
    }
  }

  template <ScalarType kType, int kRows, int kTokens>
  static void tile(const PanelShape &shape, const uint8_t *weights,
                   const uint8_t *const *rows, float *out, int64_t stride) {
    const int64_t rowBytes = shape.input * (kType == ScalarType::F32 ? 4 : 2);
    Each<kRows, Sums<kTokens>> totals;
    forAll(totals, [](Vector &total, int, int) { total = Vector::splat(0); });
    for (int64_t begin = 0; begin < shape.input; begin += kBlock) {
      const int64_t left = shape.input - begin;
      const int64_t end = begin + (left < kBlock ? left : kBlock);
      const int64_t whole = begin + (end - begin) / kLanes * kLanes;
      Each<kRows, Sums<kTokens>> sums;
      forAll(sums, [](Vector &sum, int, int) { sum = Vector::splat(0); });
      addInputs<kType, true>(weights, rowBytes, rows, begin, whole, sums);
      addInputs<kType, false>(weights, rowBytes, rows, whole, end, sums);
      forAll(totals, [&](Vector &total, int r, int t) WNA16_INLINE_LAMBDA {
        total = total + sums.at(r).at(t);
      });
    }
    forAll(totals, [&](Vector &total, int r, int t) WNA16_INLINE_LAMBDA {
      out[t * stride + r] = total.sum();
    });
  }

  template <int kRows, int kTokens, typename Function>
  static WNA16_INLINE void forAll(Each<kRows, Sums<kTokens>> &sums,
                                  const Function &function) {
    sums.forEach([&](Sums<kTokens> &row, int r) WNA16_INLINE_LAMBDA {
      row.forEach([&](Vector &sum, int t)
                      WNA16_INLINE_LAMBDA { function(sum, r, t); });
    });
  }

  using Tile = void (*)(const PanelShape &, const uint8_t *,
                        const uint8_t *const *, float *, int64_t);

  /// Tiles of `kRows` rows by number of tokens, from one on.
  template <ScalarType kType, int kRows>
  static const Tile *tiles() {
    static constexpr Tile table[] = {tile<kType, kRows, 1>,
                                     tile<kType, kRows, 2>,
                                     tile < kType,
                                     kRows,
                                     kTokenTile < 3 ? 2 : 3 >,
                                     tile<kType, kRows, kTokenTile>};
    return table;
  }

  template <ScalarType kType>
  static void multiplyType(const PanelShape &shape, const Panel &panel,
                           const uint8_t *const *rows, int64_t count,
                           float *out, int64_t stride) {
    const int64_t rowBytes = shape.input * (kType == ScalarType::F32 ? 4 : 2);
    for (int64_t r = 0; r < panel.rows;) {
      const bool isWhole = r + kRowTile <= panel.rows;
      const Tile *table =
          isWhole ? tiles<kType, kRowTile>() : tiles<kType, 1>();
      for (int64_t t = 0; t < count; t += kTokenTile) {
        const int64_t tokens = count - t < kTokenTile ? count - t : kTokenTile;
        table[tokens - 1](shape, panel.codes + r * rowBytes, rows + t,
                          out + t * stride + r, stride);
      }
      r += isWhole ? kRowTile : 1;
    }
  }

  /// As PanelProduct::multiply; memory is fetched ahead by the machine itself.
  static void multiply(const PanelShape &shape, const Panel &panel,
                       const Panel &, const uint8_t *const *rows, int64_t count,
                       float *out, int64_t stride) {
    switch (shape.scale) {
    case ScalarType::F16:
      return multiplyType<ScalarType::F16>(shape, panel, rows, count, out,
                                           stride);
    case ScalarType::BF16:
      return multiplyType<ScalarType::BF16>(shape, panel, rows, count, out,
                                            stride);
    default:
      return multiplyType<ScalarType::F32>(shape, panel, rows, count, out,
                                           stride);
    }
  }
};

/// A machine's row of the table of kernels.
template <typename Machine>
constexpr PanelKernels panelKernels() {
  using Vector = typename Machine::Vector;
  using Fixed = FixedRows<Machine>;
  using Steps = PanelSteps<Vector>;
  return {{Fixed::rowBytes, Fixed::prepare,
           Passes<Machine, typename Machine::Fixed>::multiply},
          {Steps::exactRowBytes, Steps::prepareExact,
           Passes<Machine, typename Machine::Exact>::multiply},
          {Steps::exactRowBytes, Steps::prepareExact,
           DensePasses<Vector>::multiply},
          Steps::activate,
          Steps::finish,
          Steps::sum};
}

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_PANELDENSE_H
