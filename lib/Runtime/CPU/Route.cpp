//===- Route.cpp - Router logits to weights and expert ids ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Plans.h"
#include "../Status.h"
#include "Elements.h"
#include "Layout/Isa.h"
#include "RouteSteps.h"
#include "Threads.h"
#include "Workspace.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace wna16;

static constexpr const char *kKernel = "route";

namespace {

/// What one thread needs for one token.
struct RouteScratch {
  const RouteKernels *kernels;
  // Rows are padded to whole vectors.
  float *score;      ///< [experts], without the correction
  float *choice;     ///< [experts], what is chosen by
  int32_t *rank;     ///< [experts], the same as integers
  float *groupScore; ///< [groups]
  int32_t *group;    ///< [groups], the same as integers
  float *chosen;     ///< [top_k] weights
};

} // namespace

static const RouteKernels &kernelsOfSet() {
#if defined(__x86_64__)
  if (isa() >= Isa::AVX512)
    return avx512Route;
  if (isa() >= Isa::AVX2)
    return avx2Route;
#endif
  return portableRoute;
}

static int64_t paddedCount(int64_t count) {
  return (count + kRouteLanes - 1) / kRouteLanes * kRouteLanes;
}

static RouteScratch carveScratch(const wna16_route_plan &plan, Carver &carver) {
  RouteScratch scratch;
  const int64_t experts = paddedCount(plan.experts);
  const int64_t groups = paddedCount(plan.groups);
  scratch.kernels = &kernelsOfSet();
  scratch.score = carver.take<float>(experts);
  scratch.choice = carver.take<float>(experts);
  scratch.rank = carver.take<int32_t>(experts);
  scratch.groupScore = carver.take<float>(groups);
  scratch.group = carver.take<int32_t>(groups);
  scratch.chosen = carver.take<float>(paddedCount(plan.top_k));
  return scratch;
}

/// Takes the highest entry, the first of equals, and marks it as taken. There
/// has to be one.
static int64_t takeBest(const RouteScratch &scratch, int32_t *ranks,
                        int64_t count) {
  const int64_t best = scratch.kernels->best(ranks, paddedCount(count));
  ranks[best] = kTaken;
  return best;
}

static void computeScores(const wna16_route_plan &plan,
                          const Tensor &correction,
                          const RouteScratch &scratch) {
  const RouteKernels &kernels = *scratch.kernels;
  float *score = scratch.score, *choice = scratch.choice;
  const int64_t padded = paddedCount(plan.experts);
  std::fill(score + plan.experts, score + padded,
            -std::numeric_limits<float>::infinity());
  if (plan.scoring == WNA16_SIGMOID)
    kernels.sigmoid(score, padded);
  else if (plan.scoring == WNA16_SOFTMAX && !plan.softmax_after_topk)
    kernels.softmax(score, padded);
  if (correction.present) {
    loadElements(correction.type, correction.data, 0, plan.experts, choice);
    for (int64_t e = 0; e < plan.experts; ++e)
      choice[e] += score[e];
  } else {
    std::copy_n(score, plan.experts, choice);
  }
  std::fill(choice + plan.experts, choice + padded, 0.0f);
  kernels.rank(choice, padded, scratch.rank);
  std::fill(scratch.rank + plan.experts, scratch.rank + padded, kTaken);
}

/// The best of `count` experts from `begin` or, with a correction, the sum of
/// the best two.
static float groupScore(const RouteScratch &scratch, int64_t begin,
                        int64_t count, bool sumOfTwo) {
  int64_t first = begin, second = -1;
  for (int64_t e = begin + 1; e < begin + count; ++e) {
    if (scratch.rank[e] > scratch.rank[first]) {
      second = first;
      first = e;
    } else if (second < 0 || scratch.rank[e] > scratch.rank[second]) {
      second = e;
    }
  }
  return sumOfTwo && second >= 0
             ? scratch.choice[first] + scratch.choice[second]
             : scratch.choice[first];
}

/// Drops the experts of all but the best groups.
static void dropGroups(const wna16_route_plan &plan, bool corrected,
                       const RouteScratch &scratch) {
  if (plan.groups <= 1)
    return;
  const int64_t size = plan.experts / plan.groups;
  const int64_t padded = paddedCount(plan.groups);
  for (int64_t g = 0; g < plan.groups; ++g)
    scratch.groupScore[g] = groupScore(scratch, g * size, size, corrected);
  std::fill(scratch.groupScore + plan.groups, scratch.groupScore + padded,
            0.0f);
  scratch.kernels->rank(scratch.groupScore, padded, scratch.group);
  std::fill(scratch.group + plan.groups, scratch.group + padded, kTaken);
  for (int64_t i = 0; i < plan.top_groups; ++i)
    takeBest(scratch, scratch.group, plan.groups);
  for (int64_t e = 0; e < plan.experts; ++e)
    if (scratch.group[e / size] != kTaken)
      scratch.rank[e] = kTaken;
}

/// A sparse mixer's weight of the expert taken last: its part of a softmax over
/// those left, and near enough.
static float mixedWeight(const wna16_route_plan &plan,
                         const RouteScratch &scratch, int64_t best) {
  const float highest = scratch.score[best];
  const auto reach = static_cast<float>(2 * plan.jitter);
  float sum = 0;
  for (int64_t e = 0; e < plan.experts; ++e) {
    if (e != best && scratch.rank[e] == kTaken)
      continue;
    const float logit = scratch.score[e];
    const float distance =
        (highest - logit) / std::fmax(std::fabs(logit), highest);
    // No number (of 0 from 0, of an infinity) is near.
    if (!(distance > reach))
      sum += std::exp(logit - highest);
  }
  return 1.0f / sum;
}

static void softmaxOfChosen(const wna16_route_plan &plan,
                            const RouteScratch &scratch, float *weights) {
  const int64_t padded = paddedCount(plan.top_k);
  std::copy_n(weights, plan.top_k, scratch.chosen);
  std::fill(scratch.chosen + plan.top_k, scratch.chosen + padded,
            -std::numeric_limits<float>::infinity());
  scratch.kernels->softmax(scratch.chosen, padded);
  std::copy_n(scratch.chosen, plan.top_k, weights);
}

/// Routes the token whose logits are in scratch.score.
static void routeToken(const wna16_route_plan &plan,
                       const RouteTensors &tensors, const RouteScratch &scratch,
                       float *weights, int32_t *ids) {
  computeScores(plan, tensors.correction, scratch);
  dropGroups(plan, tensors.correction.present, scratch);
  for (int64_t i = 0; i < plan.top_k; ++i) {
    int64_t best = takeBest(scratch, scratch.rank, plan.experts);
    ids[i] = static_cast<int32_t>(best);
    weights[i] = plan.scoring == WNA16_SPARSEMIXER
                     ? mixedWeight(plan, scratch, best)
                     : scratch.score[best];
  }
  if (plan.softmax_after_topk)
    softmaxOfChosen(plan, scratch, weights);
  float sum = 0;
  for (int64_t i = 0; i < plan.top_k; ++i)
    sum += weights[i];
  // A softmax over the chosen ones sums to one already.
  const bool divide = plan.renormalize && !plan.softmax_after_topk && sum != 0;
  const float scaling = static_cast<float>(plan.scaling);
  const Tensor &expertScale = tensors.expertScale;
  for (int64_t i = 0; i < plan.top_k; ++i) {
    weights[i] = (divide ? weights[i] / sum : weights[i]) * scaling;
    float scale = 1;
    if (expertScale.present)
      loadElements(expertScale.type, expertScale.data, ids[i], 1, &scale);
    weights[i] *= scale;
  }
}

static int64_t scratchBytes(const wna16_route_plan &plan) {
  Carver carver(nullptr);
  carveScratch(plan, carver);
  return carver.bytes(kKernel);
}

int64_t wna16_cpu_route_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  wna16_route_plan route;
  if (!readRoutePlan(plan, INT32_MAX, route) ||
      !checkRange(kKernel, "tokens", tokens, 0, INT64_MAX))
    return -1;
  return scratchBytes(route) * threadCount();
}

wna16_status wna16_cpu_route(const void *plan, const wna16_tensor *tensors,
                             int64_t count, void *workspace,
                             int64_t workspace_bytes, void *) {
  wna16_route_plan route;
  if (!readRoutePlan(plan, INT32_MAX, route))
    return wna16_status_get();
  RouteTensors all;
  const int threads = threadCount();
  const int64_t bytes = scratchBytes(route);
  if (!readRouteTensors(route, tensors, count, /*device=*/1, all) ||
      wna16_check_workspace(bytes * threads, workspace, workspace_bytes) !=
          WNA16_OK)
    return wna16_status_get();

  constexpr int64_t kTokensAtOnce = 8;
  parallelFor(
      threads, (all.tokens + kTokensAtOnce - 1) / kTokensAtOnce,
      [&](int64_t block, Worker worker) {
        Carver carver(static_cast<char *>(workspace) + bytes * worker);
        const RouteScratch scratch = carveScratch(route, carver);
        const int64_t end = std::min(all.tokens, (block + 1) * kTokensAtOnce);
        for (int64_t t = block * kTokensAtOnce; t < end; ++t) {
          loadElements(all.logits.type, all.logits.data, t * route.experts,
                       route.experts, scratch.score);
          routeToken(route, all, scratch,
                     static_cast<float *>(all.weights.data) + t * route.top_k,
                     static_cast<int32_t *>(all.ids.data) + t * route.top_k);
        }
      });
  return WNA16_OK;
}
