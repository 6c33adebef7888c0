//===- Norm.cu - Root-mean-square normalisation -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block normalises a row: one pass over it for its size, one for the result.
//
//===----------------------------------------------------------------------===//

#include "../Plans.h"
#include "Device.h"
#include "Kernels.cuh"
#include "Runtime/wna16_cuda.h"

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "rms_norm";
static constexpr int kThreads = 256;

namespace {

struct NormParameters {
  const void *x;
  const void *weight;
  const void *addend; ///< or null
  void *y;
  ScalarType xType, weightType, addendType, yType;
  int64_t hidden;
  float epsilon, scale;
};

/// The sum over a block, in every thread; in one order.
__device__ float sumOverBlock(float value) {
  __shared__ float partial[kThreads / 32];
  for (int distance = 16; distance; distance /= 2)
    value += __shfl_xor_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (float part : partial)
    sum += part;
  return sum;
}

} // namespace

__global__ void __launch_bounds__(kThreads)
    normKernel(const __grid_constant__ NormParameters p) {
  const int64_t begin = int64_t(blockIdx.x) * p.hidden;
  float squares = 0;
  for (int64_t k = threadIdx.x; k < p.hidden; k += kThreads) {
    const float value = loadElement(p.xType, p.x, begin + k);
    squares += value * value;
  }
  const float mean = sumOverBlock(squares) / static_cast<float>(p.hidden);
  const float inverse = 1.0f / sqrtf(mean + p.epsilon);
  for (int64_t k = threadIdx.x; k < p.hidden; k += kThreads) {
    const float value = loadElement(p.xType, p.x, begin + k) * inverse;
    const float weight = loadElement(p.weightType, p.weight, k) * p.scale;
    const float addend =
        p.addend ? loadElement(p.addendType, p.addend, begin + k) : 0.0f;
    storeElement(p.yType, p.y, begin + k, value * weight + addend);
  }
}

int64_t wna16_cuda_rms_norm_workspace(const void *plan, int64_t tokens) {
  wna16_status_clear();
  wna16_rms_norm_plan norm;
  return readNormPlan(plan, norm) &&
                 checkRange(kKernel, "tokens", tokens, 0, INT64_MAX)
             ? 0
             : -1;
}

wna16_status wna16_cuda_rms_norm(const void *plan, const wna16_tensor *tensors,
                                 int64_t count, void *, int64_t, void *stream) {
  wna16_rms_norm_plan norm;
  NormTensors all;
  if (!readNormPlan(plan, norm) ||
      !readNormTensors(norm, tensors, count, /*device=*/2, all) ||
      !checkRange(kKernel, "tokens", all.tokens, 0, INT32_MAX) ||
      !currentDevice(kKernel) || all.tokens == 0)
    return wna16_status_get();
  NormParameters p = {all.x.data,
                      all.weight.data,
                      all.addend.data,
                      all.y.data,
                      all.x.type,
                      all.weight.type,
                      all.addend.type,
                      all.y.type,
                      norm.hidden,
                      static_cast<float>(norm.epsilon),
                      static_cast<float>(norm.scale)};
  Launch how;
  how.grid = static_cast<unsigned>(all.tokens);
  how.block = kThreads;
  how.stream = static_cast<cudaStream_t>(stream);
  launch(kKernel, normKernel, how, p);
  return wna16_status_get();
}
