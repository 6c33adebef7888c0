//===- ConvertValues.cuh - Scales of one type as another ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_CONVERTVALUES_CUH
#define WNA16_LIB_RUNTIME_CUDA_CONVERTVALUES_CUH

#include "BlockWork.h"
#include "Kernels.cuh"

namespace wna16::cuda {

__device__ inline uint32_t bitsOfElement(ScalarType type, float value) {
  if (type == ScalarType::F16)
    return __half_as_ushort(__float2half_rn(value));
  if (type == ScalarType::BF16)
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  return __float_as_uint(value);
}

/// For int8 activations: every step in the scale's own type.
__device__ inline uint32_t foldScale(const ScaleChange &change, float value) {
  const float ratio = roundElement(change.from, value / *change.global);
  const float folded = rintf(roundElement(change.from, ratio * 4096.0f));
  const float clamped = fminf(fmaxf(folded, -32768.0f), 32767.0f);
  return static_cast<uint16_t>(
      static_cast<int16_t>(isnan(folded) ? 0.0f : clamped));
}

/// The bits of a stored scale's new form.
__device__ inline uint32_t convertScale(const ScaleChange &change,
                                        float stored) {
  return change.global ? foldScale(change, stored * change.unit)
                       : bitsOfElement(change.to, stored * change.factor);
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_CONVERTVALUES_CUH
