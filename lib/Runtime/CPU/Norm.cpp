//===- Norm.cpp - Root-mean-square normalisation --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Plans.h"
#include "../Status.h"
#include "Elements.h"
#include "Threads.h"

#include <algorithm>
#include <cmath>

using namespace wna16;

static constexpr const char *kKernel = "rms_norm";
/// Elements that are f32 at a time, so that a call needs no workspace.
static constexpr int64_t kChunk = 512;

/// 1 / sqrt(mean of the squares + epsilon) of one row.
static float inverseSize(const wna16_rms_norm_plan &plan, const Tensor &x,
                         int64_t row) {
  double squares = 0;
  float values[kChunk];
  for (int64_t k = 0; k < plan.hidden; k += kChunk) {
    const int64_t count = std::min(kChunk, plan.hidden - k);
    loadElements(x.type, x.data, row * plan.hidden + k, count, values);
    for (int64_t i = 0; i < count; ++i)
      squares += static_cast<double>(values[i]) * values[i];
  }
  const double mean = squares / static_cast<double>(plan.hidden);
  return static_cast<float>(1 / std::sqrt(mean + plan.epsilon));
}

static void normalizeRow(const wna16_rms_norm_plan &plan,
                         const NormTensors &tensors, int64_t row) {
  const float inverse = inverseSize(plan, tensors.x, row);
  const auto scale = static_cast<float>(plan.scale);
  float values[kChunk], weight[kChunk], addend[kChunk] = {};
  for (int64_t k = 0; k < plan.hidden; k += kChunk) {
    const int64_t count = std::min(kChunk, plan.hidden - k);
    const int64_t at = row * plan.hidden + k;
    loadElements(tensors.x.type, tensors.x.data, at, count, values);
    loadElements(tensors.weight.type, tensors.weight.data, k, count, weight);
    if (tensors.addend.present)
      loadElements(tensors.addend.type, tensors.addend.data, at, count, addend);
    for (int64_t i = 0; i < count; ++i)
      values[i] = values[i] * inverse * (weight[i] * scale) + addend[i];
    storeElements(tensors.y.type, values, count, tensors.y.data, at);
  }
}

int64_t wna16_cpu_rms_norm_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  wna16_rms_norm_plan norm;
  return readNormPlan(plan, norm) &&
                 checkRange(kKernel, "tokens", tokens, 0, INT64_MAX)
             ? 0
             : -1;
}

wna16_status wna16_cpu_rms_norm(const void *plan, const wna16_tensor *tensors,
                                int64_t count, void *, int64_t, void *) {
  wna16_rms_norm_plan norm;
  NormTensors all;
  if (!readNormPlan(plan, norm) ||
      !readNormTensors(norm, tensors, count, /*device=*/1, all))
    return wna16_status_get();
  parallelFor(threadCount(), all.tokens,
              [&](int64_t row, Worker) { normalizeRow(norm, all, row); });
  return WNA16_OK;
}
