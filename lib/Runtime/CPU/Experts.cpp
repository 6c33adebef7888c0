//===- Experts.cpp - Checks and choice of kernel of fused experts ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experts.h"

#include "../Status.h"
#include "Threads.h"

using namespace wna16;

static constexpr const char *kKernel = "fused_experts";
static constexpr ExpertsDevice kDevice = {1, "the cpu", INT32_MAX, INT64_MAX};

static const ExpertsKernel *const kernels[] = {
#if defined(__x86_64__)
    &amxExperts, &avx512Experts, &avx2Experts,
#endif
    &portableExperts};

static const ExpertsKernel &chooseKernel(const ExpertsPlan &plan) {
  for (const ExpertsKernel *kernel : kernels)
    if (kernel->takes(plan))
      return *kernel;
  return portableExperts;
}

int32_t ExpertsArguments::expertOf(const ExpertsPlan &plan, int64_t token,
                                   int64_t slot) const {
  auto *values = static_cast<const int32_t *>(ids.data);
  if (plan.fields.batched) {
    const int64_t expert = token / rowsPerExpert;
    return token % rowsPerExpert < values[expert] ? static_cast<int32_t>(expert)
                                                  : -1;
  }
  const int32_t id = values[token * plan.fields.top_k + slot];
  if (id < 0 || !expertMap.present)
    return id;
  return static_cast<const int32_t *>(expertMap.data)[id];
}

float ExpertsArguments::weightOf(const ExpertsPlan &plan, int64_t token,
                                 int64_t slot) const {
  if (!weights.present)
    return 1.0f;
  return static_cast<const float *>(
      weights.data)[token * plan.fields.top_k + slot];
}

/// Checks the values that address experts and rows.
static bool checkValues(const ExpertsPlan &plan,
                        const ExpertsArguments &arguments) {
  const wna16_experts_plan &fields = plan.fields;
  const int64_t experts = plan.w13.experts;
  auto *ids = static_cast<const int32_t *>(arguments.ids.data);
  if (fields.batched)
    return checkIndices(kKernel, "tokens of each expert", ids, experts, 0,
                        arguments.rowsPerExpert + 1);
  if (!arguments.expertMap.present)
    return checkIndices(kKernel, "topk_ids", ids,
                        arguments.tokens * fields.top_k, -1, experts);
  return checkIndices(kKernel, "expert_map",
                      static_cast<const int32_t *>(arguments.expertMap.data),
                      arguments.mapSize, -1, experts) &&
         checkIndices(kKernel, "topk_ids", ids, arguments.tokens * fields.top_k,
                      -1, arguments.mapSize);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

int64_t wna16_cpu_fused_experts_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  ExpertsPlan experts;
  int64_t total;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !countTokens(kDevice, experts, tokens, total))
    return -1;
  return chooseKernel(experts).workspace(experts, total, threadCount());
}

const char *wna16_cpu_fused_experts_kernel(const void *plan, int64_t tokens) {
  ExpertsPlan experts;
  int64_t total;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !countTokens(kDevice, experts, tokens, total))
    return nullptr;
  return chooseKernel(experts).name;
}

wna16_status wna16_cpu_fused_experts(const void *plan,
                                     const wna16_tensor *tensors, int64_t count,
                                     void *workspace, int64_t workspace_bytes,
                                     void *) {
  ExpertsPlan experts;
  ExpertsArguments arguments;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !readExpertsTensors(kDevice, experts, tensors, count, arguments) ||
      !checkValues(experts, arguments))
    return wna16_status_get();
  const ExpertsKernel &kernel = chooseKernel(experts);
  const int threads = threadCount();
  const int64_t needed = kernel.workspace(experts, arguments.tokens, threads);
  if (needed < 0 ||
      wna16_check_workspace(needed, workspace, workspace_bytes) != WNA16_OK)
    return wna16_status_get();
  return kernel.run(experts, arguments, workspace, threads);
}
