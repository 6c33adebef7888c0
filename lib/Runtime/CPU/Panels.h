//===- Panels.h - Weights as panels of 32 rows, and their kernels -*- C++ -*-=//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A panel is 32 rows of a weight over all inputs: in memory, for each four
// inputs, their codes of all rows. Both layouts that fast kernels read consist
// of panels: cpu_panels of nothing else, cpu_blocked with sums after each block
// that are skipped here.
//
// A kernel multiplies one panel by the prepared rows of any number of tokens.
// What a token's result is depends on that token's row alone: blocks are added
// up in order, whatever the number of tokens or threads.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELS_H
#define WNA16_LIB_RUNTIME_CPU_PANELS_H

#include "Activation.h"
#include "Layout/WeightSpec.h"

namespace wna16 {

constexpr int64_t kPanelRows = 32;

/// What kernels need to know of a weight.
struct PanelShape {
  int bits = 4;
  int64_t input = 0;
  int64_t block = 0;          ///< inputs that prepared rows scale together
  int64_t blocks = 0;         ///< input / block
  int64_t blockBytes = 0;     ///< from one block's codes to the next one's
  int64_t blocksPerGroup = 0; ///< blocks that share a scale
  ScalarType scale = ScalarType::F32; ///< of a dense weight: its elements
  int zero = 0; ///< where the weight stores no zero points

  int64_t codeBytes() const { return blocks * blockBytes; }
  int64_t groups() const { return blocks / blocksPerGroup; }
};

/// One panel: its codes, scales [groups, 32] and zero points u8 [groups, 32],
/// or null. Of a dense weight, some rows of elements.
struct Panel {
  const uint8_t *codes;
  const uint8_t *scales;
  const uint8_t *zeros;
  int64_t rows = kPanelRows; ///< fewer only where the weight is dense
};

/// One way to multiply.
struct PanelProduct {
  /// Bytes of a prepared row, a multiple of 64.
  int64_t (*rowBytes)(const PanelShape &shape);
  /// Prepares a row: `count` (<= input) elements, each times `factor`, then
  /// zeros. What is not finite makes the results not finite.
  void (*prepare)(const PanelShape &shape, ScalarType type, const void *source,
                  int64_t count, float factor, uint8_t *row);
  /// out[t * stride + r]: row r of the panel times the t-th prepared row.
  /// `next` is the panel that will probably be multiplied after this one.
  void (*multiply)(const PanelShape &shape, const Panel &panel,
                   const Panel &next, const uint8_t *const *rows, int64_t count,
                   float *out, int64_t stride);
};

/// The kernels of one instruction set.
struct PanelKernels {
  /// Activations as 16-bit fixed point, which holds what 16-bit floats mean.
  PanelProduct fixed;
  /// Activations as f32.
  PanelProduct exact;
  /// Activations as f32, the weight being dense.
  PanelProduct dense;
  /// Hidden values of 32 columns of one token, rounded to `type`; `up` and
  /// `upBias` are null without a gate.
  void (*activate)(const Activation &activation, const float *gate,
                   const float *gateBias, const float *up, const float *upBias,
                   ScalarType type, void *out);
  /// rows[t * width ..] = (rows + bias) * weights[t].
  void (*finish)(float *rows, int64_t count, int64_t width, const float *bias,
                 const float *weights);
  /// Sum of rows[positions[i] * width ..] in order, -1 being none, in `type`;
  /// of `count` (<= width) columns.
  void (*sum)(const float *rows, int64_t width, const int32_t *positions,
              int64_t slots, ScalarType type, int64_t count, void *out);
};

/// The kernels of the set that isa() names; none when it is portable.
const PanelKernels *panelKernels();

extern const PanelKernels avx2Panels;
extern const PanelKernels avx512Panels;
/// The same bits as avx512Panels.
extern const PanelKernels amxPanels;

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_PANELS_H
