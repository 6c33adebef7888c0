//===- Dot.h - The dot product of the portable kernels ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_DOT_H
#define WNA16_LIB_RUNTIME_CPU_DOT_H

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace wna16 {

/// Four floats in a register of the baseline machine.
using Float4 = float __attribute__((vector_size(16)));

inline Float4 load4(const float *address) {
  Float4 value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

/// Sum of a[i] * b[i] in f32. The order of the additions is fixed: 16 running
/// sums over blocks of 256, the blocks' sums added up, then a tree; a short end
/// counts as padded with zeros. Results therefore do not depend on threads, on
/// other tokens or on padding, and rounding errors stay near those of a few
/// dozen additions for any length.
inline float dot(const float *a, const float *b, int64_t count) {
  Float4 total[4] = {};
  for (int64_t block = 0; block < count; block += 256) {
    const int64_t end = std::min(block + 256, count);
    Float4 sum[4] = {};
    int64_t i = block;
    for (; i + 16 <= end; i += 16)
      for (int lane = 0; lane < 4; ++lane)
        sum[lane] += load4(a + i + 4 * lane) * load4(b + i + 4 * lane);
    if (i < end) {
      float restA[16] = {}, restB[16] = {};
      std::copy(a + i, a + end, restA);
      std::copy(b + i, b + end, restB);
      for (int lane = 0; lane < 4; ++lane)
        sum[lane] += load4(restA + 4 * lane) * load4(restB + 4 * lane);
    }
    for (int lane = 0; lane < 4; ++lane)
      total[lane] += sum[lane];
  }
  const Float4 all = (total[0] + total[1]) + (total[2] + total[3]);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_DOT_H
