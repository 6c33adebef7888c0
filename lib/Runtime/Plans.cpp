//===- Plans.cpp - Checks of plans that all devices share ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plans.h"

#include "Status.h"

#include <cmath>
#include <cstddef>
#include <cstring>

using namespace wna16;

static constexpr const char *kRoute = "route";
static constexpr const char *kNorm = "rms_norm";

/// Whether the fields of a sparse mixer fit the scoring.
static bool checkMixer(const wna16_route_plan &plan) {
  const bool mixes = plan.scoring == WNA16_SPARSEMIXER;
  if (mixes && (plan.renormalize || plan.groups > 1)) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "route: sparsemixer goes without renormalize and groups");
    return false;
  }
  if (std::isfinite(plan.jitter) && plan.jitter >= 0 &&
      (mixes || plan.jitter == 0))
    return true;
  setStatus(WNA16_INVALID_ARGUMENT, "route: expected a jitter of %s, got %g",
            mixes ? "0 or more" : "0 without sparsemixer", plan.jitter);
  return false;
}

bool wna16::readRoutePlan(const void *address, int64_t maxExperts,
                          wna16_route_plan &plan) {
  if (!startCall(kRoute, address))
    return false;
  plan = {};
  int64_t version;
  std::memcpy(&version, address, sizeof version);
  std::memcpy(&plan, address,
              version < 3 ? offsetof(wna16_route_plan, jitter) : sizeof plan);
  if (!checkRange(kRoute, "experts", plan.experts, 1, maxExperts) ||
      !checkRange(kRoute, "top_k", plan.top_k, 1, plan.experts) ||
      !checkRange(kRoute, "scoring", plan.scoring, WNA16_SOFTMAX,
                  WNA16_SPARSEMIXER) ||
      !checkRange(kRoute, "renormalize", plan.renormalize, 0, 1) ||
      !checkRange(kRoute, "groups", plan.groups, 0, plan.experts) ||
      !checkRange(kRoute, "softmax_after_topk", plan.softmax_after_topk, 0, 1))
    return false;
  if (plan.softmax_after_topk && plan.scoring != WNA16_SOFTMAX) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "route: softmax_after_topk goes with softmax scoring");
    return false;
  }
  if (!std::isfinite(plan.scaling)) {
    setStatus(WNA16_INVALID_ARGUMENT, "route: expected a finite scaling");
    return false;
  }
  if (!checkMixer(plan))
    return false;
  if (plan.groups <= 1) {
    plan.groups = plan.top_groups = 1;
    return true;
  }
  if (plan.experts % plan.groups != 0) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "route: expected groups (%lld) to divide experts (%lld)",
              static_cast<long long>(plan.groups),
              static_cast<long long>(plan.experts));
    return false;
  }
  return checkRange(kRoute, "top_groups", plan.top_groups, 1, plan.groups) &&
         checkRange(kRoute, "top_k with top_groups", plan.top_k, 1,
                    plan.top_groups * (plan.experts / plan.groups));
}

bool wna16::readRouteTensors(const wna16_route_plan &plan,
                             const wna16_tensor *tensors, int64_t count,
                             int64_t device, RouteTensors &out) {
  const bool hasScale = plan.abi_version >= 3;
  ArgumentReader reader(kRoute, tensors, count, hasScale ? 5 : 4, device);
  out.logits = reader.take("logits", kFloatTypes, {-1, plan.experts});
  if (plan.scoring == WNA16_SPARSEMIXER)
    reader.takeAbsent("correction bias", "with sparsemixer");
  else
    out.correction =
        reader.takeOptional("correction bias", kFloatTypes, {plan.experts});
  if (hasScale)
    out.expertScale =
        reader.takeOptional("expert_scale", kFloatTypes, {plan.experts});
  out.tokens = reader.good() ? out.logits.shape[0] : 0;
  out.weights = reader.take("topk_weights", kF32, {out.tokens, plan.top_k});
  out.ids = reader.take("topk_ids", kI32, {out.tokens, plan.top_k});
  return reader.good();
}

bool wna16::readNormPlan(const void *address, wna16_rms_norm_plan &plan) {
  if (!startCall(kNorm, address))
    return false;
  plan = *static_cast<const wna16_rms_norm_plan *>(address);
  if (!checkRange(kNorm, "hidden", plan.hidden, 1, INT32_MAX))
    return false;
  if (std::isfinite(plan.epsilon) && plan.epsilon >= 0 &&
      std::isfinite(plan.scale))
    return true;
  setStatus(WNA16_INVALID_ARGUMENT,
            "rms_norm: expected an epsilon of 0 or more and a finite scale, "
            "got %g and %g",
            plan.epsilon, plan.scale);
  return false;
}

bool wna16::readNormTensors(const wna16_rms_norm_plan &plan,
                            const wna16_tensor *tensors, int64_t count,
                            int64_t device, NormTensors &out) {
  ArgumentReader reader(kNorm, tensors, count, 4, device);
  out.x = reader.take("x", kFloatTypes, {-1, plan.hidden});
  out.tokens = reader.good() ? out.x.shape[0] : 0;
  out.weight = reader.take("weight", kFloatTypes, {plan.hidden});
  out.addend =
      reader.takeOptional("addend", kFloatTypes, {out.tokens, plan.hidden});
  out.y = reader.take("y", kFloatTypes, {out.tokens, plan.hidden});
  return reader.good();
}
