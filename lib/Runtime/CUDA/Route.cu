//===- Route.cu - Router logits to weights and expert ids ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp routes a token: rounds of finding the highest among its lanes. Ties go
// to the lowest index, as on the CPU.
//
//===----------------------------------------------------------------------===//

#include "../Plans.h"
#include "Device.h"
#include "Kernels.cuh"
#include "Runtime/wna16_cuda.h"

#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "route";
/// Scores, choices and groups of one token fit into shared memory.
static constexpr int64_t kMaxExperts = 4096;

namespace {

struct RouteParameters {
  wna16_route_plan plan;
  const void *logits;
  ScalarType type;
  const void *correction;
  ScalarType correctionType;
  const void *expertScale;
  ScalarType expertScaleType;
  float *weights;
  int32_t *ids;
};

struct Best {
  float value;
  int index; ///< -1: none
};

__device__ Best better(Best a, Best b) {
  const bool second =
      b.index >= 0 && (a.index < 0 || b.value > a.value ||
                       (b.value == a.value && b.index < a.index));
  return second ? b : a;
}

/// The highest entry, the first of equals, marked as taken with NaN.
__device__ int takeBest(float *values, int count) {
  Best best = {0, -1};
  for (int i = threadIdx.x; i < count; i += 32)
    if (!isnan(values[i]))
      best = better(best, {values[i], i});
  for (int distance = 16; distance; distance /= 2)
    best = better(best, {__shfl_xor_sync(~0u, best.value, distance),
                         __shfl_xor_sync(~0u, best.index, distance)});
  // All lanes have read.
  __syncwarp();
  if (threadIdx.x == 0 && best.index >= 0)
    values[best.index] = nanf("");
  __syncwarp();
  return best.index;
}

__device__ float sumOverWarp(float value) {
  for (int distance = 16; distance; distance /= 2)
    value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

__device__ void softmax(float *values, int count) {
  float highest = -INFINITY;
  for (int i = threadIdx.x; i < count; i += 32)
    highest = fmaxf(highest, values[i]);
  for (int distance = 16; distance; distance /= 2)
    highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, distance));
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += 32) {
    values[i] = expf(values[i] - highest);
    sum += values[i];
  }
  sum = sumOverWarp(sum);
  for (int i = threadIdx.x; i < count; i += 32)
    values[i] /= sum;
  __syncwarp();
}

/// The best member or, with a correction, the sum of the best two.
__device__ float groupScore(const float *choice, int count, bool sumOfTwo) {
  float first = -INFINITY, second = first;
  for (int i = 0; i < count; ++i) {
    if (choice[i] > first) {
      second = first;
      first = choice[i];
    } else if (choice[i] > second) {
      second = choice[i];
    }
  }
  return sumOfTwo && count > 1 ? first + second : first;
}

/// Drops the experts of all but the best groups.
__device__ void dropGroups(const RouteParameters &p, float *choice,
                           float *group) {
  const auto groups = static_cast<int>(p.plan.groups);
  const int size = static_cast<int>(p.plan.experts) / groups;
  for (int g = threadIdx.x; g < groups; g += 32) {
    const float score =
        groupScore(choice + g * size, size, p.correction != nullptr);
    group[g] = isnan(score) ? -INFINITY : score;
  }
  __syncwarp();
  for (int64_t i = 0; i < p.plan.top_groups; ++i)
    takeBest(group, groups);
  for (int e = threadIdx.x; e < p.plan.experts; e += 32)
    if (!isnan(group[e / size]))
      choice[e] = nanf("");
  __syncwarp();
}

/// A sparse mixer's weight of the expert taken last: its part of a softmax over
/// those left, and near enough.
__device__ float mixedWeight(const RouteParameters &p, const float *score,
                             const float *choice, int best) {
  const float highest = score[best];
  const auto reach = static_cast<float>(2 * p.plan.jitter);
  float sum = 0;
  for (int e = threadIdx.x; e < p.plan.experts; e += 32) {
    const bool isLeft = e == best || !isnan(choice[e]);
    const float distance =
        (highest - score[e]) / fmaxf(fabsf(score[e]), highest);
    // No number (of 0 from 0, of an infinity) is near.
    if (isLeft && !(distance > reach))
      sum += expf(score[e] - highest);
  }
  return 1.0f / sumOverWarp(sum);
}

} // namespace

__global__ void __launch_bounds__(32)
    routeKernel(const __grid_constant__ RouteParameters p) {
  extern __shared__ float shared[];
  const auto experts = static_cast<int>(p.plan.experts);
  float *score = shared, *choice = score + experts, *group = choice + experts;
  const int64_t token = blockIdx.x;
  for (int e = threadIdx.x; e < experts; e += 32)
    score[e] = loadElement(p.type, p.logits, token * experts + e);
  __syncwarp();
  if (p.plan.scoring == WNA16_SIGMOID)
    for (int e = threadIdx.x; e < experts; e += 32)
      score[e] = 1.0f / (1.0f + expf(-score[e]));
  else if (p.plan.scoring == WNA16_SOFTMAX && !p.plan.softmax_after_topk)
    softmax(score, experts);
  for (int e = threadIdx.x; e < experts; e += 32) {
    const float value =
        p.correction ? score[e] + loadElement(p.correctionType, p.correction, e)
                     : score[e];
    // NaN means taken; one that comes from the logits is chosen last instead.
    choice[e] = isnan(value) ? -INFINITY : value;
  }
  __syncwarp();
  if (p.plan.groups > 1)
    dropGroups(p, choice, group);
  const auto topK = static_cast<int>(p.plan.top_k);
  float *weights = p.weights + token * topK;
  int32_t *ids = p.ids + token * topK;
  // Weights take the place of groups, which are chosen by now.
  float *chosen = group;
  for (int i = 0; i < topK; ++i) {
    const int best = takeBest(choice, experts);
    const float weight = p.plan.scoring == WNA16_SPARSEMIXER
                             ? mixedWeight(p, score, choice, best)
                             : score[best];
    if (threadIdx.x == 0) {
      ids[i] = best;
      chosen[i] = weight;
    }
  }
  __syncwarp();
  if (p.plan.softmax_after_topk)
    softmax(chosen, topK);
  float sum = 0;
  for (int i = 0; i < topK; ++i)
    sum += chosen[i];
  // A softmax over the chosen ones sums to one already.
  const bool divide =
      p.plan.renormalize && !p.plan.softmax_after_topk && sum != 0;
  for (int i = threadIdx.x; i < topK; i += 32) {
    const float scale =
        p.expertScale ? loadElement(p.expertScaleType, p.expertScale, ids[i])
                      : 1.0f;
    weights[i] = (divide ? chosen[i] / sum : chosen[i]) *
                 static_cast<float>(p.plan.scaling) * scale;
  }
}

int64_t wna16_cuda_route_workspace(const void *plan, int64_t tokens) {
  wna16_status_clear();
  wna16_route_plan route;
  return readRoutePlan(plan, kMaxExperts, route) &&
                 checkRange(kKernel, "tokens", tokens, 0, INT64_MAX)
             ? 0
             : -1;
}

wna16_status wna16_cuda_route(const void *plan, const wna16_tensor *tensors,
                              int64_t count, void *, int64_t, void *stream) {
  RouteParameters p = {};
  if (!readRoutePlan(plan, kMaxExperts, p.plan))
    return wna16_status_get();
  RouteTensors all;
  if (!readRouteTensors(p.plan, tensors, count, /*device=*/2, all) ||
      !checkRange(kKernel, "tokens", all.tokens, 0, INT32_MAX) ||
      !currentDevice(kKernel) || all.tokens == 0)
    return wna16_status_get();
  p.logits = all.logits.data;
  p.type = all.logits.type;
  p.correction = all.correction.data;
  p.correctionType = all.correction.type;
  p.expertScale = all.expertScale.data;
  p.expertScaleType = all.expertScale.type;
  p.weights = static_cast<float *>(all.weights.data);
  p.ids = static_cast<int32_t *>(all.ids.data);
  Launch how;
  how.grid = static_cast<unsigned>(all.tokens);
  how.block = 32;
  how.shared = static_cast<size_t>(
      (2 * p.plan.experts + std::max(p.plan.groups, p.plan.top_k)) * 4);
  how.stream = static_cast<cudaStream_t>(stream);
  launch(kKernel, routeKernel, how, p);
  return wna16_status_get();
}
