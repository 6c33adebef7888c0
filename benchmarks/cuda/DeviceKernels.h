//===- DeviceKernels.h - Kernels that measuring on a device needs *- C++
//-*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CUDA_DEVICEKERNELS_H
#define WNA16_BENCHMARKS_CUDA_DEVICEKERNELS_H

#include "Layout/WeightSpec.h"
#include "Report.h"

#include <cuda_runtime_api.h>

namespace wna16 {

/// Random bits in device memory of a multiple of 8 bytes.
cudaError_t fillBits(void *to, int64_t bytes, uint64_t seed);
/// Uniform in [low, high), of a 16-bit type.
cudaError_t fillValues(ScalarType type, void *to, int64_t count, uint64_t seed,
                       float low, float high);

/// A weight of 16 x 64 tiles in device memory: layouts marlin, humming_mma and
/// humming_wgmma.
struct TiledMatrix {
  const uint8_t *codes;
  const uint16_t *scales;
  const uint32_t *zeros; ///< or null
  int64_t input, rows, group, groups;
  int bits;
  bool wgmma, humming, bf16;

  TiledMatrix(const WeightSpec &spec, const WeightBuffers &buffers);
};

/// Experts of some tokens in float64, by the formulas of the format.
struct ReferenceCall {
  TiledMatrix w13, w2;
  const void *x;
  const int32_t *ids;
  const float *weights;
  const int32_t *sample; ///< tokens, in device memory
  int count, topK;
  int64_t hidden, width;
  double *middle; ///< [count, topK, width]
  double *out;    ///< [count, hidden]
};
cudaError_t runReference(const ReferenceCall &call);

/// What the current device can do at most. Takes some 50 ms.
Result<Ceilings> measureDeviceCeilings();

} // namespace wna16

#endif // WNA16_BENCHMARKS_CUDA_DEVICEKERNELS_H
