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
#include <cinttypes>
#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";

static const ExpertsKernel *const kernels[] = {&wideExperts, &streamExperts,
                                               &plainExperts};

static const ExpertsKernel &chooseKernel(const ExpertsPlan &plan,
                                         int capability, int64_t tokens) {
  for (const ExpertsKernel *kernel : kernels)
    if (kernel->takes(plan, capability, tokens))
      return *kernel;
  return plainExperts;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {

struct PlanRange {
  const char *field;
  int64_t wna16_experts_plan::*member;
  int64_t low;
  int64_t high;
};
constexpr PlanRange kPlanFields[] = {
    {"hidden", &wna16_experts_plan::hidden, 1, INT32_MAX},
    {"element", &wna16_experts_plan::element, 0,
     static_cast<int64_t>(ScalarType::F32)},
    {"top_k", &wna16_experts_plan::top_k, 1, kSlotsPerRound},
    {"activation", &wna16_experts_plan::activation, WNA16_SILU,
     WNA16_SWIGLUSTEP},
    {"activation_type", &wna16_experts_plan::activation_type, 0, 2},
    {"batched", &wna16_experts_plan::batched, 0, 1},
    {"weight_on_input", &wna16_experts_plan::weight_on_input, 0, 1},
    {"batch_invariant", &wna16_experts_plan::batch_invariant, 0, 1},
};

/// One rule about a plan's numbers, with the message where it is broken.
struct PlanRule {
  bool broken;
  const char *message;
};

} // namespace

static bool checkExtents(const ExpertsPlan &plan) {
  const WeightSpec &w13 = plan.w13, &w2 = plan.w2;
  struct {
    bool bad;
    const char *left;
    int64_t leftValue;
    const char *relation;
    const char *right;
    int64_t rightValue;
  } const rules[] = {
      {w13.experts != w2.experts, "w13.experts", w13.experts, "equal",
       "w2.experts", w2.experts},
      {w13.output != w2.input, "w13.output", w13.output, "equal", "w2.input",
       w2.input},
      {w13.input < plan.fields.hidden, "w13.input", w13.input, "be at least",
       "hidden", plan.fields.hidden},
      {w2.output < plan.fields.hidden, "w2.output", w2.output, "be at least",
       "hidden", plan.fields.hidden},
      {w2.halves != 1, "w2.halves", w2.halves, "equal", "one half", 1},
  };
  for (const auto &rule : rules) {
    if (!rule.bad)
      continue;
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %s (%" PRId64 ") to %s %s (%" PRId64 ")", kKernel,
              rule.left, rule.leftValue, rule.relation, rule.right,
              rule.rightValue);
    return false;
  }
  return true;
}

static bool checkFields(const ExpertsPlan &plan) {
  const wna16_experts_plan &fields = plan.fields;
  if (fields.activation_type != 0) {
    setStatus(WNA16_UNSUPPORTED,
              "%s: %s activations are not supported on cuda yet; use 16-bit "
              "activations",
              kKernel, fields.activation_type == 1 ? "int8" : "fp8");
    return false;
  }
  const PlanRule rules[] = {
      {fields.activation >= WNA16_SWIGLUOAI && !plan.isGated(),
       "swigluoai and swiglustep need w13 with 2 halves, got 1"},
      {!(fields.limit > 0), "expected a positive limit, or infinity for none"},
      {fields.activation == WNA16_SWIGLUSTEP && !std::isfinite(fields.limit),
       "swiglustep needs a finite limit"},
      {!std::isfinite(fields.alpha) || !std::isfinite(fields.beta),
       "expected finite alpha and beta"},
      {fields.batched && fields.top_k != 1,
       "expected top_k of batched tokens to be 1"},
      {fields.weight_on_input && fields.batched,
       "weight_on_input does not go with batched tokens"},
      {fields.weight_on_input && fields.top_k != 1,
       "weight_on_input needs top_k 1"},
  };
  for (const PlanRule &rule : rules)
    if (rule.broken) {
      setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel, rule.message);
      return false;
    }
  return true;
}

/// Reads and checks a plan; false, with a status, when it is bad.
static bool readPlan(const void *address, ExpertsPlan &plan) {
  if (!startCall(kKernel, address))
    return false;
  plan.fields = *static_cast<const wna16_experts_plan *>(address);
  for (const PlanRange &range : kPlanFields)
    if (!checkRange(kKernel, range.field, plan.fields.*range.member, range.low,
                    range.high))
      return false;
  return readWeight(kKernel, "w13", plan.fields.w13, plan.w13) &&
         readWeight(kKernel, "w2", plan.fields.w2, plan.w2) &&
         checkExtents(plan) && checkFields(plan);
}

//===----------------------------------------------------------------------===//
// The tensors
//===----------------------------------------------------------------------===//

namespace {

/// The tensors of one call.
struct ExpertsArguments {
  int64_t tokens = 0;        ///< batched: of all experts
  int64_t rowsPerExpert = 0; ///< batched
  Tensor x, weights, ids, bias13, bias2, expertMap, y;
  WeightBuffers w13, w2;
  DeviceBias order13, order2;
};

} // namespace

/// x and the routing; gives `shape` of x and y, `rank` extents.
static void takeTokens(const ExpertsPlan &plan, ArgumentReader &reader,
                       ExpertsArguments &arguments, int64_t (&shape)[3],
                       int &rank) {
  const wna16_experts_plan &fields = plan.fields;
  const bool batched = fields.batched;
  rank = batched ? 3 : 2;
  shape[0] = batched ? plan.w13.experts : -1;
  shape[1] = batched ? -1 : fields.hidden;
  shape[2] = fields.hidden;
  arguments.x = reader.take("x", typeSet(plan.element()), shape, rank);
  if (!reader.good())
    return;
  std::copy_n(arguments.x.shape, rank, shape);
  arguments.tokens = shape[0];
  if (batched) {
    arguments.rowsPerExpert = shape[1];
    arguments.tokens *= shape[1];
    reader.takeAbsent("topk_weights", "with batched tokens");
    arguments.ids = reader.take("tokens of each expert", kI32, {shape[0]});
    return;
  }
  arguments.weights =
      reader.takeOptional("topk_weights", kF32, {shape[0], fields.top_k});
  arguments.ids = reader.take("topk_ids", kI32, {shape[0], fields.top_k});
}

/// Where the rows of a bias lie, if it is there.
static bool readBias(const ExpertsPlan &plan, const char *name,
                     const Tensor &bias, WeightSpec spec, DeviceBias &out) {
  if (!bias.present)
    return true;
  if (!checkRange(kKernel, "bias_layout", plan.fields.bias_layout, 0,
                  static_cast<int64_t>(allLayouts().size()) - 1))
    return false;
  spec.layout = findLayout(plan.fields.bias_layout);
  Result<AddressMap> found = biasAddresses(spec);
  if (found && found->size() == spec.rows()) {
    out = {bias.data, bias.type, describe(*found, spec.output)};
    return true;
  }
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected %s of whole tiles in bias_layout %s, got %" PRId64
            " rows; pad to %" PRId64,
            kKernel, name, spec.layout->name.data(), spec.rows(),
            found ? found->size() : 0);
  return false;
}

/// Reads and checks the tensors of a call; false, with a status, when they do
/// not fit the plan.
static bool readTensors(const ExpertsPlan &plan, const wna16_tensor *tensors,
                        int64_t count, ExpertsArguments &arguments) {
  constexpr int64_t kOthers = 7; // x, weights, ids, two biases, map, y
  constexpr int64_t kDevice = 2;
  ArgumentReader reader(kKernel, tensors, count,
                        kOthers + 2 * WNA16_WEIGHT_TENSORS, kDevice);
  int64_t shape[3];
  int rank;
  takeTokens(plan, reader, arguments, shape, rank);
  arguments.w13 = reader.takeWeight("w13", plan.fields.w13);
  arguments.w2 = reader.takeWeight("w2", plan.fields.w2);
  const WeightSpec &w13 = plan.w13, &w2 = plan.w2;
  arguments.bias13 = reader.takeOptional("bias13", kFloatTypes,
                                         {w13.experts, w13.halves, w13.output});
  arguments.bias2 =
      reader.takeOptional("bias2", kFloatTypes, {w2.experts, w2.output});
  if (plan.fields.batched)
    reader.takeAbsent("expert_map", "with batched tokens");
  else
    arguments.expertMap = reader.takeOptional("expert_map", kI32, {-1});
  arguments.y = reader.take("y", typeSet(plan.element()) | kF32, shape, rank);
  return reader.good() &&
         readBias(plan, "bias13", arguments.bias13, w13, arguments.order13) &&
         readBias(plan, "bias2", arguments.bias2, w2, arguments.order2);
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
  return slots <= kWideSlots ? ScalarType::F32 : plan.element();
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
  return buffers;
}

static bool runRound(const ExpertsPlan &plan, const ExpertsArguments &arguments,
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

static ExpertsRound describeCall(const ExpertsPlan &plan,
                                 const ExpertsArguments &arguments,
                                 const DeviceInfo &device, void *stream) {
  const wna16_experts_plan &fields = plan.fields;
  ExpertsRound round = {};
  round.plan = &plan;
  round.device = &device;
  round.stream = static_cast<cudaStream_t>(stream);
  round.w13 = describe(plan.w13, arguments.w13);
  round.w2 = describe(plan.w2, arguments.w2);
  round.bias13 = arguments.order13;
  round.bias2 = arguments.order2;
  round.routing.map = static_cast<const int32_t *>(arguments.expertMap.data);
  round.routing.mapSize =
      arguments.expertMap.present ? arguments.expertMap.shape[0] : 0;
  round.routing.experts = plan.w13.experts;
  round.routing.topK = fields.top_k;
  round.routing.rowsPerExpert = arguments.rowsPerExpert;
  round.activation = {
      static_cast<int32_t>(fields.activation), static_cast<float>(fields.alpha),
      static_cast<float>(fields.beta), static_cast<float>(fields.limit)};
  round.outType = arguments.y.type;
  return round;
}

/// Tokens as the kernels count them: batched rows of all experts.
static bool countTokens(const ExpertsPlan &plan, int64_t tokens,
                        int64_t &total) {
  if (!checkRange(kKernel, "tokens", tokens, 0, INT32_MAX))
    return false;
  total = plan.fields.batched ? tokens * plan.w13.experts : tokens;
  return checkRange(kKernel, "tokens of all experts", total, 0, INT32_MAX);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

static int64_t expertsWorkspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  ExpertsPlan experts;
  int64_t total;
  if (!readPlan(plan, experts) || !countTokens(experts, tokens, total))
    return -1;
  Carver carver(nullptr);
  layOut(experts, total, carver);
  return carver.bytes(kKernel);
}

static const char *expertsKernel(const void *plan, int64_t tokens) {
  ExpertsPlan experts;
  int64_t total;
  if (!readPlan(plan, experts) || !countTokens(experts, tokens, total))
    return nullptr;
  const DeviceInfo *device = currentDevice(kKernel);
  return device ? chooseKernel(experts, device->capability,
                               tokensPerRound(experts, total))
                      .name
                : nullptr;
}

/// Whether everything that is read in pieces of 16 bytes lies like that. Rows
/// are as long as kernels ask for.
static bool isAligned(const ExpertsArguments &arguments) {
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
  ExpertsArguments arguments;
  int64_t total = 0;
  if (!readPlan(plan, experts) ||
      !readTensors(experts, tensors, count, arguments) ||
      !checkRange(kKernel, "tokens", arguments.tokens, 0, INT32_MAX))
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
  const ExpertsKernel &kernel =
      isAligned(arguments) ? chooseKernel(experts, device->capability, step)
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
