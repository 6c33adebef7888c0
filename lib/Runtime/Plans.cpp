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

using namespace wna16;

bool wna16::readRoutePlan(const void *address, int64_t maxExperts,
                          wna16_route_plan &plan) {
  constexpr const char *kKernel = "route";
  if (!startCall(kKernel, address))
    return false;
  plan = *static_cast<const wna16_route_plan *>(address);
  if (!checkRange(kKernel, "experts", plan.experts, 1, maxExperts) ||
      !checkRange(kKernel, "top_k", plan.top_k, 1, plan.experts) ||
      !checkRange(kKernel, "scoring", plan.scoring, WNA16_SOFTMAX,
                  WNA16_SIGMOID) ||
      !checkRange(kKernel, "renormalize", plan.renormalize, 0, 1) ||
      !checkRange(kKernel, "groups", plan.groups, 0, plan.experts) ||
      !checkRange(kKernel, "softmax_after_topk", plan.softmax_after_topk, 0, 1))
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
  return checkRange(kKernel, "top_groups", plan.top_groups, 1, plan.groups) &&
         checkRange(kKernel, "top_k with top_groups", plan.top_k, 1,
                    plan.top_groups * (plan.experts / plan.groups));
}
