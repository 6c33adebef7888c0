//===- Preparation.h - Specifications that backends want --------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_BACKEND_PREPARATION_H
#define WNA16_LIB_BACKEND_PREPARATION_H

#include "Backend/Backend.h"

namespace wna16 {

/// The least multiple of `multiple` that is at least `value`; `value` itself
/// where there is none in 63 bits.
int64_t roundUp(int64_t value, int64_t multiple);
/// Least common multiple of positive numbers; `a` on overflow.
int64_t leastMultiple(int64_t a, int64_t b);

/// What extents must be multiples of: w13's outputs of one half together with
/// w2's input; w13's input; w2's output.
struct Units {
  int64_t intermediate = 1;
  int64_t input = 1;
  int64_t output = 1;
};

/// `source` padded to whole units, and w2's input (w13's, with `padInput`) to
/// whole groups. Both weights get the same intermediate size, dense ones too.
WeightSpec padded(const LayerInfo &layer, const WeightSpec &source,
                  Projection which, Units units, bool padInput);

/// The code with an unsigned offset that holds the same values: s4 -> u4b8.
CodeType unsignedCode(CodeType code);

/// `source` with floats in place of codes; a dense weight as it is.
WeightSpec dequantized(const WeightSpec &source, ScalarType element);

/// `source` in another layout with unsigned codes and true zero points.
WeightSpec inLayout(const WeightSpec &source, std::string_view layout);

} // namespace wna16

#endif // WNA16_LIB_BACKEND_PREPARATION_H
