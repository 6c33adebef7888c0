//===- Move.h - From any layout to any other --------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One engine brings a stored weight into another specification: layout, padded
// extents, finer groups, code type, zero-point convention, scale type, sorted
// rows. Every layout's address is a sum of one term per axis, so a move is two
// index tables and one loop; each code is read once and written once.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_MOVE_H
#define WNA16_LAYOUT_MOVE_H

#include "Layout/Catalogue.h"

namespace wna16 {

/// Experts [begin, end) of a call; the buffers always hold all experts.
struct ExpertRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The part of each expert of a source that a move takes: inputs [input, input
/// + inputs) and of each half outputs [output, output + outputs). The target
/// sees it as a weight of its own. -1: all from the first on.
struct Window {
  int64_t input = 0;
  int64_t inputs = -1;
  int64_t output = 0;
  int64_t outputs = -1;
};

/// The window with its extents filled in, once it lies within the source.
Result<Window> resolve(const WeightSpec &source, Window window);

/// Whether `moveWeight` can bring `source` into `target`, and if not, why, with
/// the numbers. Allowed: any pair of layouts; target extents >= the window's
/// (new inputs of an old group get the code that decodes to 0; other padding
/// is zero bits: code 0, scale 0, zero point 0);
/// target group dividing the source group and the window's first input; code
/// types of one width as far as
/// their ranges agree (u4b8/s4/u4/u4fp8, u8b128/s8/u8; to a code type with
/// implied zero only when the source's zero is that implied one); zero-point
/// conventions; scale type (rounded to nearest even once; I16 folds the scales
/// and produces GlobalScale) and factor (`scaleFactor` of the code type);
/// act-order Index -> Sorted. Act-order rows keep group and input; those of a
/// window of the inputs stay Index and keep all groups (`keptGroups`).
Failure checkMove(const WeightSpec &source, const WeightSpec &target,
                  Window window = {});

/// Brings experts `range` of `from` into `to`, every byte of the target's parts
/// written. Returns a failure when the data forbid it (a group index out of
/// range, groups of unequal size to be sorted, a scale that overflows, ...),
/// naming the expert.
Failure moveWeight(const WeightSpec &source, const WeightBuffers &from,
                   const WeightSpec &target, const WeightBuffers &to,
                   ExpertRange range, Window window = {});

/// The same in steps, for threads: all of `moveSides` in any order, then all of
/// `moveCodes`. A large expert is several steps.
class WeightMove {
public:
  /// Fails where `moveWeight` does before it has seen an expert.
  static Result<WeightMove> plan(const WeightSpec &source,
                                 const WeightBuffers &from,
                                 const WeightSpec &target,
                                 const WeightBuffers &to, ExpertRange range,
                                 Window window = {});
  WeightMove(WeightMove &&);
  WeightMove &operator=(WeightMove &&);
  ~WeightMove();

  int64_t steps() const;
  Failure moveSides(int64_t step) const;
  Failure moveCodes(int64_t step) const;

private:
  struct State;
  explicit WeightMove(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// Rejects a weight that cannot be dequantised: sorted act-order rows are not
/// in the order of the inputs any more.
Failure checkDequantize(const WeightSpec &source);

/// Writes dense values [experts of range, rows, input], output axis first, in
/// `type`: (Q - z) * s computed in f32 and rounded once; with `scaleFirst`,
/// upstream's rnd(rnd(Q - z) * rnd(s)). `out` is the address of expert 0.
/// Sorted act-order rows come as they are stored.
Failure dequantizeWeight(const WeightSpec &source, const WeightBuffers &from,
                         ScalarType type, bool scaleFirst, void *out,
                         ExpertRange range);

/// Quantises dense values [experts, rows, input] of `type` into `target`, round
/// to nearest even, min-max ranges per group that always include 0.
Failure quantizeWeight(ScalarType type, const void *in,
                       const WeightSpec &target, const WeightBuffers &to,
                       ExpertRange range);

/// Reads one weight row by row, whatever its layout: the decoder that the
/// portable kernels use. Made once per call, holds no storage of its own
/// beyond the index tables it is given.
class RowDecoder {
public:
  /// Bytes of table that `init` needs for this spec.
  static int64_t tableBytes(const WeightSpec &spec);

  /// Prepares to read `spec` from `buffers`; `table` has tableBytes(spec) bytes
  /// and is aligned to 8.
  Failure init(const WeightSpec &spec, const WeightBuffers &buffers,
               void *table);

  /// Writes input elements [0, input) of row r of an expert as f32 values
  /// (Q - z) * s, in the model's input order unless rows are Sorted; then in
  /// storage order, to be matched with activations gathered by perm.
  void decode(int64_t expert, int64_t row, float *out) const;

private:
  /// One stored part: expert 0, bytes between experts, offsets of its axes.
  struct Stored {
    const uint8_t *data = nullptr;
    int64_t expertBytes = 0;
    const int64_t *inner = nullptr; ///< by input (codes) or group (sides)
    const int64_t *row = nullptr;
  };

  float valueOf(uint32_t code, int zero) const;
  void decodeGroup(const uint8_t *data, int64_t base, int64_t first,
                   int64_t last, int zero, float scale, float *out) const;

  WeightSpec spec;
  Stored codes, scales, zeros;
  bool paired = false;                 ///< inputs 2i and 2i + 1 share a byte
  const uint8_t *groupIndex = nullptr; ///< i32, not aligned
  float scaleUnit = 1.0f;              ///< of stored scales
};

/// Moves a bias (or any [experts, rows] tensor of 16- or 32-bit elements)
/// between the bias orders of two layouts and pads each half with zeros. Of the
/// window the outputs count.
Failure moveBias(const WeightSpec &source, const void *from,
                 const WeightSpec &target, void *to, ScalarType type,
                 Window window = {});

} // namespace wna16

#endif // WNA16_LAYOUT_MOVE_H
