//===- Experts.cpp - Checks and choice of kernel of fused experts ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experts.h"

#include "../Status.h"
#include "Layout/Catalogue.h"
#include "Threads.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

using namespace wna16;

static constexpr const char *kKernel = "fused_experts";

static const ExpertsKernel *const kernels[] = {&avx512Experts, &avx2Experts,
                                               &portableExperts};

static const ExpertsKernel &chooseKernel(const ExpertsPlan &plan,
                                         int64_t tokens) {
  for (const ExpertsKernel *kernel : kernels)
    if (kernel->takes(plan, tokens))
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

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

static bool refuse(const char *message) {
  setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel, message);
  return false;
}

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
    {"top_k", &wna16_experts_plan::top_k, 1, INT32_MAX},
    {"activation", &wna16_experts_plan::activation, WNA16_SILU,
     WNA16_SWIGLUSTEP},
    {"activation_type", &wna16_experts_plan::activation_type, 0, 2},
    {"batched", &wna16_experts_plan::batched, 0, 1},
    {"weight_on_input", &wna16_experts_plan::weight_on_input, 0, 1},
    {"batch_invariant", &wna16_experts_plan::batch_invariant, 0, 1},
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

static bool checkActivation(const ExpertsPlan &plan) {
  const wna16_experts_plan &fields = plan.fields;
  if (fields.activation_type != 0) {
    setStatus(WNA16_UNSUPPORTED,
              "%s: %s activations are not supported on the cpu yet; use 16-bit "
              "activations",
              kKernel, fields.activation_type == 1 ? "int8" : "fp8");
    return false;
  }
  if (fields.activation >= WNA16_SWIGLUOAI && !plan.isGated())
    return refuse("swigluoai and swiglustep need w13 with 2 halves, got 1");
  if (!(fields.limit > 0))
    return refuse("expected a positive limit, or infinity for none");
  if (fields.activation == WNA16_SWIGLUSTEP && !std::isfinite(fields.limit))
    return refuse("swiglustep needs a finite limit");
  if (!std::isfinite(fields.alpha) || !std::isfinite(fields.beta))
    return refuse("expected finite alpha and beta");
  return true;
}

static bool checkRouting(const wna16_experts_plan &fields) {
  if (fields.batched && fields.top_k != 1) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected top_k of batched tokens to be 1, got %" PRId64,
              kKernel, fields.top_k);
    return false;
  }
  if (fields.weight_on_input && fields.batched)
    return refuse("weight_on_input does not go with batched tokens");
  if (fields.weight_on_input && fields.top_k != 1) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: weight_on_input needs top_k 1, got %" PRId64, kKernel,
              fields.top_k);
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
         checkExtents(plan) && checkActivation(plan) &&
         checkRouting(plan.fields);
}

//===----------------------------------------------------------------------===//
// The tensors
//===----------------------------------------------------------------------===//

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
  if (batched) {
    arguments.rowsPerExpert = shape[1];
    arguments.tokens = shape[0] * shape[1];
    reader.takeAbsent("topk_weights", "with batched tokens");
    arguments.ids = reader.take("tokens of each expert", kI32, {shape[0]});
    return;
  }
  arguments.tokens = shape[0];
  arguments.weights =
      reader.takeOptional("topk_weights", kF32, {shape[0], fields.top_k});
  arguments.ids = reader.take("topk_ids", kI32, {shape[0], fields.top_k});
}

/// Reads and checks the tensors of a call; false, with a status, when they do
/// not fit the plan.
static bool readTensors(const ExpertsPlan &plan, const wna16_tensor *tensors,
                        int64_t count, ExpertsArguments &arguments) {
  constexpr int64_t kOthers = 7; // x, weights, ids, two biases, map, y
  ArgumentReader reader(kKernel, tensors, count,
                        kOthers + 2 * WNA16_WEIGHT_TENSORS);
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
  if (arguments.expertMap.present)
    arguments.mapSize = arguments.expertMap.shape[0];
  arguments.y = reader.take("y", typeSet(plan.element()) | kF32, shape, rank);
  return reader.good();
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

/// Where the rows of a bias lie, if it is there.
static bool readBiasOrder(const ExpertsPlan &plan, const char *name,
                          const Tensor &bias, WeightSpec spec,
                          AddressMap &order) {
  if (!bias.present)
    return true;
  if (!checkRange(kKernel, "bias_layout", plan.fields.bias_layout, 0,
                  static_cast<int64_t>(allLayouts().size()) - 1))
    return false;
  spec.layout = findLayout(plan.fields.bias_layout);
  Result<AddressMap> found = biasAddresses(spec);
  if (found && found->size() == spec.rows()) {
    order = *found;
    return true;
  }
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected %s of whole tiles in bias_layout %s, got %" PRId64
            " rows; pad to %" PRId64,
            kKernel, name, spec.layout->name.data(), spec.rows(),
            found ? found->size() : 0);
  return false;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Tokens as the kernels count them: batched rows of all experts.
static bool countTokens(const ExpertsPlan &plan, int64_t tokens,
                        int64_t &total) {
  if (!checkRange(kKernel, "tokens", tokens, 0, INT64_MAX))
    return false;
  total = tokens;
  return !plan.fields.batched ||
         !__builtin_mul_overflow(tokens, plan.w13.experts, &total) ||
         refuse("the tokens of all experts exceed 2^63");
}

int64_t wna16_cpu_fused_experts_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  ExpertsPlan experts;
  int64_t total;
  if (!readPlan(plan, experts) || !countTokens(experts, tokens, total))
    return -1;
  return chooseKernel(experts, total).workspace(experts, total, threadCount());
}

const char *wna16_cpu_fused_experts_kernel(const void *plan, int64_t tokens) {
  ExpertsPlan experts;
  int64_t total;
  if (!readPlan(plan, experts) || !countTokens(experts, tokens, total))
    return nullptr;
  return chooseKernel(experts, total).name;
}

wna16_status wna16_cpu_fused_experts(const void *plan,
                                     const wna16_tensor *tensors, int64_t count,
                                     void *workspace, int64_t workspace_bytes,
                                     void *) {
  ExpertsPlan experts;
  ExpertsArguments arguments;
  if (!readPlan(plan, experts) ||
      !readTensors(experts, tensors, count, arguments) ||
      !readBiasOrder(experts, "bias13", arguments.bias13, experts.w13,
                     arguments.order13) ||
      !readBiasOrder(experts, "bias2", arguments.bias2, experts.w2,
                     arguments.order2) ||
      !checkValues(experts, arguments))
    return wna16_status_get();
  const ExpertsKernel &kernel = chooseKernel(experts, arguments.tokens);
  const int threads = threadCount();
  const int64_t needed = kernel.workspace(experts, arguments.tokens, threads);
  if (needed < 0 ||
      wna16_check_workspace(needed, workspace, workspace_bytes) != WNA16_OK)
    return wna16_status_get();
  return kernel.run(experts, arguments, workspace, threads);
}
