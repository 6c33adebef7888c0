//===- Linear.cu - x times one weight -----------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Router logits and other small products: f32 throughout, any layout.
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "Experts.h"
#include "Kernels.cuh"
#include "Runtime/wna16_cuda.h"

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "linear";
static constexpr int kTokens = 32;
static constexpr int kRows = 32;
static constexpr int kInputs = 32;
static constexpr int kThreads = 256;

namespace {

struct LinearParameters {
  DeviceWeight weight;
  const void *x;
  const void *bias; ///< or null
  void *y;
  ScalarType xType, biasType, yType;
  int64_t tokens;
};

} // namespace

__global__ void __launch_bounds__(kThreads)
    linearKernel(const __grid_constant__ LinearParameters p) {
  __shared__ float x[kTokens][kInputs + 1], w[kRows][kInputs + 1];
  const int64_t token = int64_t(blockIdx.x) * kTokens;
  const int64_t row = int64_t(blockIdx.y) * kRows;
  const int r = threadIdx.x % kRows, t = threadIdx.x / kRows;
  constexpr int kEach = kTokens * kRows / kThreads;
  float sum[kEach] = {};
  for (int64_t k = 0; k < p.weight.input; k += kInputs) {
    __syncthreads();
    for (int i = threadIdx.x; i < kTokens * kInputs; i += kThreads) {
      const int64_t at = token + i / kInputs, column = k + i % kInputs;
      const bool inside = at < p.tokens && column < p.weight.input;
      x[i / kInputs][i % kInputs] =
          inside ? loadElement(p.xType, p.x,
                               at * p.weight.input +
                                   sourceInput(p.weight, 0, column))
                 : 0.0f;
    }
    for (int i = threadIdx.x; i < kRows * kInputs; i += kThreads) {
      const int64_t at = row + i / kInputs, column = k + i % kInputs;
      const bool inside = at < p.weight.rows && column < p.weight.input;
      w[i / kInputs][i % kInputs] =
          inside ? weightAt(p.weight, 0, column, at) : 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < kInputs; ++i)
      for (int j = 0; j < kEach; ++j)
        sum[j] += x[t * kEach + j][i] * w[r][i];
  }
  if (row + r >= p.weight.rows)
    return;
  const float bias = p.bias ? loadElement(p.biasType, p.bias, row + r) : 0.0f;
  for (int j = 0; j < kEach; ++j)
    if (const int64_t at = token + t * kEach + j; at < p.tokens)
      storeElement(p.yType, p.y, at * p.weight.rows + row + r, sum[j] + bias);
}

static bool readPlan(const void *address, wna16_linear_plan &plan,
                     WeightSpec &weight) {
  if (!startCall(kKernel, address))
    return false;
  plan = *static_cast<const wna16_linear_plan *>(address);
  return checkRange(kKernel, "batch_invariant", plan.batch_invariant, 0, 1) &&
         readWeight(kKernel, "weight", plan.weight, weight) &&
         checkRange(kKernel, "weight.experts", weight.experts, 1, 1);
}

int64_t wna16_cuda_linear_workspace(const void *plan, int64_t tokens) {
  wna16_status_clear();
  wna16_linear_plan linear;
  WeightSpec weight;
  return readPlan(plan, linear, weight) &&
                 checkRange(kKernel, "tokens", tokens, 0, INT64_MAX)
             ? 0
             : -1;
}

wna16_status wna16_cuda_linear(const void *plan, const wna16_tensor *tensors,
                               int64_t count, void *, int64_t, void *stream) {
  wna16_linear_plan linear;
  WeightSpec weight;
  if (!readPlan(plan, linear, weight))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 3 + WNA16_WEIGHT_TENSORS, 2);
  const Tensor x = reader.take("x", kFloatTypes, {-1, weight.input});
  const WeightBuffers buffers = reader.takeWeight("weight", linear.weight);
  const Tensor bias = reader.takeOptional("bias", kFloatTypes, {weight.rows()});
  const int64_t tokens = reader.good() ? x.shape[0] : 0;
  const Tensor y = reader.take("y", kFloatTypes, {tokens, weight.rows()});
  constexpr int64_t kMaxRows = int64_t(65535) * kRows;
  if (!reader.good() || !checkRange(kKernel, "tokens", tokens, 0, INT32_MAX) ||
      !checkRange(kKernel, "rows", weight.rows(), 1, kMaxRows) ||
      !currentDevice(kKernel) || tokens == 0)
    return wna16_status_get();
  LinearParameters p = {describe(weight, buffers),
                        x.data,
                        bias.data,
                        y.data,
                        x.type,
                        bias.type,
                        y.type,
                        tokens};
  Launch how;
  how.grid = dim3(static_cast<unsigned>((tokens + kTokens - 1) / kTokens),
                  static_cast<unsigned>((weight.rows() + kRows - 1) / kRows));
  how.block = kThreads;
  how.stream = static_cast<cudaStream_t>(stream);
  launch(kKernel, linearKernel, how, p);
  return wna16_status_get();
}
