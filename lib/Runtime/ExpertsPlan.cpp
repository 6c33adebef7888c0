//===- ExpertsPlan.cpp - Plan and tensors of fused experts ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertsPlan.h"

#include "Status.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

using namespace wna16;

static constexpr const char *kKernel = "fused_experts";

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

static bool checkFields(const ExpertsPlan &plan) {
  const wna16_experts_plan &fields = plan.fields;
  const bool onInput = fields.weight_on_input;
  struct {
    bool bad;
    const char *expected;
    double got;
  } const rules[] = {
      {fields.activation >= WNA16_SWIGLUOAI && !plan.isGated(),
       "w13 with 2 halves for swigluoai and swiglustep",
       static_cast<double>(plan.w13.halves)},
      {!(fields.limit > 0), "a positive limit, or infinity for none",
       fields.limit},
      {fields.activation == WNA16_SWIGLUSTEP && !std::isfinite(fields.limit),
       "a finite limit for swiglustep", fields.limit},
      {!std::isfinite(fields.alpha), "a finite alpha", fields.alpha},
      {!std::isfinite(fields.beta), "a finite beta", fields.beta},
      {fields.batched && fields.top_k != 1, "top_k 1 with batched tokens",
       static_cast<double>(fields.top_k)},
      {fields.batched && onInput, "weight_on_input 0 with batched tokens", 1},
      {onInput && fields.top_k != 1, "top_k 1 with weight_on_input",
       static_cast<double>(fields.top_k)},
  };
  for (const auto &rule : rules) {
    if (!rule.bad)
      continue;
    setStatus(WNA16_INVALID_ARGUMENT, "%s: expected %s, got %.10g", kKernel,
              rule.expected, rule.got);
    return false;
  }
  return true;
}

static bool checkActivationType(const ExpertsDevice &device, int64_t type) {
  if (type == 0)
    return true;
  setStatus(WNA16_UNSUPPORTED,
            "%s: %s activations (activation_type %" PRId64
            ") are not supported on %s yet; use 16-bit activations (0)",
            kKernel, type == 1 ? "int8" : "fp8", type, device.name);
  return false;
}

bool wna16::readExpertsPlan(const ExpertsDevice &device, const void *address,
                            ExpertsPlan &plan) {
  if (!startCall(kKernel, address))
    return false;
  plan.fields = *static_cast<const wna16_experts_plan *>(address);
  for (const PlanRange &range : kPlanFields)
    if (!checkRange(kKernel, range.field, plan.fields.*range.member, range.low,
                    range.high))
      return false;
  return checkRange(kKernel, "top_k", plan.fields.top_k, 1, device.maxTopK) &&
         readWeight(kKernel, "w13", plan.fields.w13, plan.w13) &&
         readWeight(kKernel, "w2", plan.fields.w2, plan.w2) &&
         checkExtents(plan) &&
         checkActivationType(device, plan.fields.activation_type) &&
         checkFields(plan);
}

bool wna16::countTokens(const ExpertsDevice &device, const ExpertsPlan &plan,
                        int64_t tokens, int64_t &total) {
  const int64_t experts = plan.fields.batched ? plan.w13.experts : 1;
  if (!checkRange(kKernel, "tokens", tokens, 0, device.maxTokens))
    return false;
  if (!__builtin_mul_overflow(tokens, experts, &total) &&
      total <= device.maxTokens)
    return true;
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected tokens (%" PRId64 ") of all experts (%" PRId64
            ") to be at most %" PRId64,
            kKernel, tokens, experts, device.maxTokens);
  return false;
}

//===----------------------------------------------------------------------===//
// The tensors
//===----------------------------------------------------------------------===//

/// x and the routing; gives `shape` of x and y, `rank` extents.
static void takeTokens(const ExpertsPlan &plan, ArgumentReader &reader,
                       ExpertsTensors &result, int64_t (&shape)[3], int &rank) {
  const wna16_experts_plan &fields = plan.fields;
  const bool batched = fields.batched;
  rank = batched ? 3 : 2;
  shape[0] = batched ? plan.w13.experts : -1;
  shape[1] = batched ? -1 : fields.hidden;
  shape[2] = fields.hidden;
  result.x = reader.take("x", typeSet(plan.element()), shape, rank);
  if (!reader.good())
    return;
  std::copy_n(result.x.shape, rank, shape);
  result.tokens = shape[0];
  if (batched) {
    result.rowsPerExpert = shape[1];
    result.tokens *= shape[1];
    reader.takeAbsent("topk_weights", "with batched tokens");
    result.ids = reader.take("tokens of each expert", kI32, {shape[0]});
    return;
  }
  result.weights =
      reader.takeOptional("topk_weights", kF32, {shape[0], fields.top_k});
  result.ids = reader.take("topk_ids", kI32, {shape[0], fields.top_k});
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

bool wna16::readExpertsTensors(const ExpertsDevice &device,
                               const ExpertsPlan &plan,
                               const wna16_tensor *tensors, int64_t count,
                               ExpertsTensors &result) {
  constexpr int64_t kOthers = 7; // x, weights, ids, two biases, map, y
  ArgumentReader reader(kKernel, tensors, count,
                        kOthers + 2 * WNA16_WEIGHT_TENSORS, device.type);
  int64_t shape[3];
  int rank;
  takeTokens(plan, reader, result, shape, rank);
  result.w13 = reader.takeWeight("w13", plan.fields.w13);
  result.w2 = reader.takeWeight("w2", plan.fields.w2);
  const WeightSpec &w13 = plan.w13, &w2 = plan.w2;
  result.bias13 = reader.takeOptional("bias13", kFloatTypes,
                                      {w13.experts, w13.halves, w13.output});
  result.bias2 =
      reader.takeOptional("bias2", kFloatTypes, {w2.experts, w2.output});
  if (plan.fields.batched)
    reader.takeAbsent("expert_map", "with batched tokens");
  else
    result.expertMap = reader.takeOptional("expert_map", kI32, {-1});
  if (result.expertMap.present)
    result.mapSize = result.expertMap.shape[0];
  result.y = reader.take("y", typeSet(plan.element()) | kF32, shape, rank);
  return reader.good() &&
         readBiasOrder(plan, "bias13", result.bias13, w13, result.order13) &&
         readBiasOrder(plan, "bias2", result.bias2, w2, result.order2) &&
         checkRange(kKernel, "tokens", result.tokens, 0, device.maxTokens);
}
