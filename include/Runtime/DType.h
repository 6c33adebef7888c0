//===- DType.h - Element types as DLPack says them --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_RUNTIME_DTYPE_H
#define WNA16_RUNTIME_DTYPE_H

#include "Layout/WeightSpec.h"
#include "Runtime/wna16.h"

namespace wna16 {

/// Per ScalarType, in its order.
inline constexpr wna16_dtype kDTypes[] = {
    /*F16*/ {2, 16, 1}, /*BF16*/ {4, 16, 1}, /*F32*/ {2, 32, 1},
    /*F64*/ {2, 64, 1}, /*I8*/ {0, 8, 1},    /*U8*/ {1, 8, 1},
    /*I16*/ {0, 16, 1}, /*I32*/ {0, 32, 1},  /*I64*/ {0, 64, 1},
    /*Bool*/ {6, 8, 1},
};
inline constexpr int64_t kNumScalarTypes = sizeof(kDTypes) / sizeof(*kDTypes);
static_assert(static_cast<int64_t>(ScalarType::Bool) == kNumScalarTypes - 1,
              "a row for each");

constexpr wna16_dtype dtypeOf(ScalarType type) {
  return kDTypes[static_cast<int64_t>(type)];
}

} // namespace wna16

#endif // WNA16_RUNTIME_DTYPE_H
