//===- Emulation.h - What the emulation patterns share ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to `wna16-emulate`: a builder for scalar code inside
// `linalg.generic`, and readers that find the element of a stored weight or
// bias, whatever its layout.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_TRANSFORMS_EMULATION_H
#define WNA16_LIB_TRANSFORMS_EMULATION_H

#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/Catalogue.h"
#include "Transforms/Disassembly.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace wna16::emulation {

/// Builds scalar arithmetic, loops and reads. Neutral operands fold away.
class Emitter : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::Value index(int64_t value);
  mlir::Value integer(int64_t value, int bits = 32);
  mlir::Value f32(double value);

  /// On index values; `b` and `factor` are constants.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, int64_t factor);
  mlir::Value quotient(mlir::Value a, int64_t factor);
  mlir::Value remainder(mlir::Value a, int64_t factor);
  /// `count` bits of `a` from bit `from`, moved to bit `to`.
  mlir::Value field(mlir::Value a, int from, int count, int to);
  /// An i32 as an index that no input can bring out of [0, extent).
  mlir::Value clampedIndex(mlir::Value a, int64_t extent);

  /// An f32 value times a factor.
  mlir::Value scaled(mlir::Value value, double factor);
  /// Any float or integer as f32.
  mlir::Value toF32(mlir::Value value);
  /// f32 rounded once to a float type.
  mlir::Value round(mlir::Value value, mlir::Type type);

  mlir::Value read(mlir::Value tensor, mlir::ValueRange indices);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

  /// for i in [from, to) by step: state = body(i, state).
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to,
                                      int64_t step, mlir::ValueRange state,
                                      LoopBody body);
  /// `then()` where the condition holds, else `otherwise`.
  mlir::Value when(mlir::Value condition, mlir::Value otherwise,
                   llvm::function_ref<mlir::Value()> then);

  /// Sum of term(0) .. term(length - 1) in f32, in two levels: blocks of terms,
  /// then the blocks' sums, which keeps the rounding error of long sums small.
  mlir::Value sum(int64_t length,
                  llvm::function_ref<mlir::Value(mlir::Value)> term);

  /// A tensor whose element at each index is what `body` computes from the
  /// index: one parallel linalg.generic that writes into `init`.
  mlir::Value generate(mlir::Value init,
                       llvm::function_ref<mlir::Value(mlir::ValueRange)> body);
  /// The same into a new tensor; dynamic extents are those of `like`, axis by
  /// axis.
  mlir::Value generate(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                       mlir::Value like,
                       llvm::function_ref<mlir::Value(mlir::ValueRange)> body);
};

/// Where an element of a stored part lies: `inner` counts inputs (codes) or
/// groups (scales, zero points). Null values stand for 0.
struct Coordinates {
  mlir::Value inner, half, output;
};

/// The address of an element within its expert, in units of `map`.
mlir::Value emitAddress(Emitter &emitter, const AddressMap &map, Axis inner,
                        int64_t outputs, Coordinates at);
/// The element at an address; in padding, beyond the extents.
Coordinates emitCoordinates(Emitter &emitter, const AddressMap &map, Axis inner,
                            int64_t halves, int64_t outputs,
                            mlir::Value address);

/// Turns an unsigned code into what `code` stores for it; all i32.
mlir::Value encode(Emitter &emitter, CodeType code, mlir::Value unsignedCode,
                   mlir::Value zero);

/// Reads single elements of one stored weight. k counts as storage does: where
/// rows were sorted, `inputOf` says which input row k multiplies.
class WeightReader {
public:
  /// Makes flat views of the parts at the emitter's insertion point.
  WeightReader(Emitter &emitter, mlir::RankedTensorType type,
               mlir::ValueRange parts);

  /// (Q - z) * s in f32, or the element of a dense weight. A null expert or
  /// half stands for 0.
  mlir::Value element(mlir::Value expert, mlir::Value k, mlir::Value half,
                      mlir::Value output) const;
  mlir::Value inputOf(mlir::Value expert, mlir::Value k) const;
  mlir::Value groupOf(mlir::Value expert, mlir::Value k) const;

  /// The unsigned code Q, given its zero point, in i32.
  mlir::Value code(mlir::Value expert, Coordinates at, mlir::Value zero) const;
  /// The zero point of a group in i32.
  mlir::Value zero(mlir::Value expert, Coordinates at) const;
  /// The scale of a group as stored.
  mlir::Value scale(mlir::Value expert, Coordinates at) const;
  /// The scale of a group in f32: the stored one by its factor, times the
  /// global one.
  mlir::Value scaleF32(mlir::Value expert, Coordinates at) const;
  /// An element of a dense weight as stored.
  mlir::Value dense(mlir::Value expert, Coordinates at) const;

  const WeightSpec &getSpec() const { return spec; }

private:
  const mlir::Value &part(Part which) const {
    return flat[static_cast<int64_t>(which)];
  }
  mlir::Value readPart(Part which, mlir::Value expert,
                       mlir::Value address) const;
  mlir::Value readCode(Part which, int bits, mlir::Value expert,
                       mlir::Value address) const;

  Emitter &e;
  WeightSpec spec;
  AddressMap codes, scales, zeros;
  /// One-dimensional views of the parts.
  std::array<mlir::Value, kNumParts> flat;
};

/// Reads single elements of a bias in natural order or a layout's.
mlir::Value readBias(Emitter &emitter, mlir::RankedTensorType type,
                     mlir::Value bias, mlir::Value expert, mlir::Value half,
                     mlir::Value output);

/// An error on a preparation step that emulation does not do.
mlir::LogicalResult checkStep(mlir::Operation *op);

void populateWeightPatterns(const DisassemblyConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateStepPatterns(const DisassemblyConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateExpertsPatterns(const DisassemblyConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateRoutePatterns(const DisassemblyConverter &converter,
                           mlir::RewritePatternSet &patterns);

} // namespace wna16::emulation

#endif // WNA16_LIB_TRANSFORMS_EMULATION_H
