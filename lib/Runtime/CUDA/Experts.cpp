//===- Experts.cpp - Checks and choice of kernel of fused experts -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experts.h"

#include "../CPU/Workspace.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";
static constexpr ExpertsDevice kDevice = {2, "cuda", kSlotsPerRound, INT32_MAX};

static const ExpertsKernel *const kernels[] = {&wideExperts, &tokenExperts,
                                               &streamExperts, &plainExperts};

static const ExpertsKernel &chooseKernel(const ExpertsPlan &plan, int code,
                                         int64_t tokens) {
  for (const ExpertsKernel *kernel : kernels)
    if (kernel->takes(plan, code, tokens))
      return *kernel;
  return plainExperts;
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

/// Tokens of one round. Batched tokens are one round.
static int64_t tokensPerRound(const ExpertsPlan &plan, int64_t tokens) {
  if (plan.fields.batched)
    return tokens;
  return std::min(tokens,
                  std::max<int64_t>(1, kSlotsPerRound / plan.fields.top_k));
}

static ScalarType rowType(const ExpertsPlan &plan, int64_t slots) {
  return slots <= kWideSlots && !plan.fields.batch_invariant ? ScalarType::F32
                                                             : plan.element();
}

static Buffers layOut(const ExpertsPlan &plan, int64_t tokens, Carver &carver) {
  const int64_t slots = tokensPerRound(plan, tokens) * plan.fields.top_k;
  const int64_t experts = plan.w13.experts;
  const int64_t size = sizeOf(plan.element());
  const int64_t hidden = plan.fields.hidden;
  Buffers buffers;
  buffers.counters = carver.take<int32_t>(Buffers::kCounters);
  buffers.sorted.order = carver.take<int32_t>(slots);
  buffers.sorted.begin = carver.take<int32_t>(experts + 1);
  buffers.sorted.numTiles = carver.take<int32_t>(1);
  buffers.sorted.tiles =
      carver.take<Tile>(maxTiles(slots, experts, Buffers::kLeastTile));
  buffers.hidden = carver.takeBytes(slots * plan.w2.input, size);
  // Grows with the slots although wide rows become narrow ones.
  const int64_t wide = std::min(slots, kWideSlots) * 4;
  buffers.rows = carver.takeBytes(std::max(wide, slots * size), hidden);
  buffers.parts = carver.takeBytes(std::min(slots, Buffers::kPartSlots) *
                                       Buffers::kParts * 2 * 4,
                                   plan.w2.input);
  return buffers;
}

static bool runRound(const ExpertsPlan &plan, const ExpertsTensors &arguments,
                     const ExpertsKernel &kernel, ExpertsRound round,
                     int64_t first, int64_t tokens) {
  const wna16_experts_plan &fields = plan.fields;
  const int64_t size = sizeOf(plan.element());
  round.tokens = tokens;
  round.x = static_cast<const char *>(arguments.x.data) +
            first * fields.hidden * size;
  round.y = static_cast<char *>(arguments.y.data) +
            first * fields.hidden * sizeOf(arguments.y.type);
  Routing &routing = round.routing;
  routing.slots = tokens * fields.top_k;
  routing.ids = static_cast<const int32_t *>(arguments.ids.data);
  routing.weights = static_cast<const float *>(arguments.weights.data);
  if (!fields.batched)
    routing.ids += first * fields.top_k;
  if (routing.weights)
    routing.weights += first * fields.top_k;
  round.rowType = rowType(plan, routing.slots);
  return kernel.run(round);
}

static DeviceBias describeBias(const Tensor &bias, const AddressMap &order,
                               const WeightSpec &weight) {
  if (!bias.present)
    return {};
  return {bias.data, bias.type, describe(order, weight.output)};
}

static ExpertsRound describeCall(const ExpertsPlan &plan,
                                 const ExpertsTensors &arguments,
                                 const DeviceInfo &device, void *stream) {
  const wna16_experts_plan &fields = plan.fields;
  ExpertsRound round = {};
  round.plan = &plan;
  round.device = &device;
  round.stream = static_cast<cudaStream_t>(stream);
  round.w13 = describe(plan.w13, arguments.w13);
  round.w2 = describe(plan.w2, arguments.w2);
  round.bias13 = describeBias(arguments.bias13, arguments.order13, plan.w13);
  round.bias2 = describeBias(arguments.bias2, arguments.order2, plan.w2);
  round.routing.map = static_cast<const int32_t *>(arguments.expertMap.data);
  round.routing.mapSize = arguments.mapSize;
  round.routing.experts = plan.w13.experts;
  round.routing.topK = fields.top_k;
  round.routing.rowsPerExpert = arguments.rowsPerExpert;
  round.activation = {
      static_cast<int32_t>(fields.activation), static_cast<float>(fields.alpha),
      static_cast<float>(fields.beta), static_cast<float>(fields.limit)};
  round.outType = arguments.y.type;
  return round;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

static int64_t expertsWorkspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  ExpertsPlan experts;
  int64_t total;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !countTokens(kDevice, experts, tokens, total))
    return -1;
  Carver carver(nullptr);
  layOut(experts, total, carver);
  return carver.bytes(kKernel);
}

static const char *expertsKernel(const void *plan, int64_t tokens) {
  ExpertsPlan experts;
  int64_t total;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !countTokens(kDevice, experts, tokens, total))
    return nullptr;
  const DeviceInfo *device = currentDevice(kKernel);
  return device ? chooseKernel(experts, device->code,
                               tokensPerRound(experts, total))
                      .name
                : nullptr;
}

/// Whether everything that is read in pieces of 16 bytes lies like that. Rows
/// are as long as kernels ask for.
static bool isAligned(const ExpertsTensors &arguments) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(arguments.x.data) |
                   reinterpret_cast<uintptr_t>(arguments.y.data);
  for (const WeightBuffers *weight : {&arguments.w13, &arguments.w2})
    for (Part part : {Part::Codes, Part::Scales, Part::Zeros})
      bits |= reinterpret_cast<uintptr_t>(weight->get(part));
  return bits % 16 == 0;
}

static wna16_status fusedExperts(const void *plan, const wna16_tensor *tensors,
                                 int64_t count, void *workspace,
                                 int64_t workspaceBytes, void *stream) {
  ExpertsPlan experts;
  ExpertsTensors arguments;
  int64_t total = 0;
  if (!readExpertsPlan(kDevice, plan, experts) ||
      !readExpertsTensors(kDevice, experts, tensors, count, arguments))
    return wna16_status_get();
  const DeviceInfo *device = currentDevice(kKernel);
  if (!device)
    return wna16_status_get();
  Carver size(nullptr);
  layOut(experts, arguments.tokens, size);
  const int64_t needed = size.bytes(kKernel);
  if (needed < 0 ||
      wna16_check_workspace(needed, workspace, workspaceBytes) != WNA16_OK)
    return wna16_status_get();
  Carver carver(workspace);
  ExpertsRound round = describeCall(experts, arguments, *device, stream);
  round.buffers = layOut(experts, arguments.tokens, carver);
  const int64_t step = tokensPerRound(experts, arguments.tokens);
  const ExpertsKernel &kernel = isAligned(arguments)
                                    ? chooseKernel(experts, device->code, step)
                                    : plainExperts;
  for (; total < arguments.tokens; total += step)
    if (!runRound(experts, arguments, kernel, round, total,
                  std::min(step, arguments.tokens - total)))
      break;
  return wna16_status_get();
}

// One implementation for all backends: the plan says what they store.
#define WNA16_DEFINE_EXPERTS(NAME)                                             \
  wna16_status NAME(const void *plan, const wna16_tensor *tensors,             \
                    int64_t count, void *workspace, int64_t workspace_bytes,   \
                    void *stream) {                                            \
    return fusedExperts(plan, tensors, count, workspace, workspace_bytes,      \
                        stream);                                               \
  }                                                                            \
  int64_t NAME##_workspace(const void *plan, int64_t tokens) {                 \
    return expertsWorkspace(plan, tokens);                                     \
  }                                                                            \
  const char *NAME##_kernel(const void *plan, int64_t tokens) {                \
    return expertsKernel(plan, tokens);                                        \
  }

WNA16_DEFINE_EXPERTS(wna16_cuda_fused_experts)
WNA16_DEFINE_EXPERTS(wna16_cuda_marlin_fused_experts)
WNA16_DEFINE_EXPERTS(wna16_cuda_batched_marlin_fused_experts)
WNA16_DEFINE_EXPERTS(wna16_cuda_humming_fused_experts)
WNA16_DEFINE_EXPERTS(wna16_cuda_trtllm_fused_experts)
