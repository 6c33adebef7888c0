//===- Elements.h - Tensor elements to and from f32 -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_ELEMENTS_H
#define WNA16_LIB_RUNTIME_CPU_ELEMENTS_H

#include "Layout/WeightSpec.h"

namespace wna16 {

/// Reads `count` f16, bf16 or f32 elements, from element `begin` of `data` on.
void loadElements(ScalarType type, const void *data, int64_t begin,
                  int64_t count, float *out);

/// Writes them, rounded to nearest even; f16 overflows to infinity.
void storeElements(ScalarType type, const float *in, int64_t count, void *data,
                   int64_t begin);

/// Rounds values to the precision of a type.
void roundElements(ScalarType type, float *values, int64_t count);

/// out[i] = in[index[i]].
void gatherElements(const float *in, const int32_t *index, int64_t count,
                    float *out);

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_ELEMENTS_H
