//===- Plans.h - Checks of plans that all devices share ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_PLANS_H
#define WNA16_LIB_RUNTIME_PLANS_H

#include "Arguments.h"

namespace wna16 {

/// Copies a route plan and brings its groups to 1 where there are none; false,
/// with the status set, when a field is bad. `maxExperts`: what the device's
/// kernel takes.
bool readRoutePlan(const void *address, int64_t maxExperts,
                   wna16_route_plan &plan);

/// The tensors of a route.
struct RouteTensors {
  Tensor logits, correction, expertScale, weights, ids;
  int64_t tokens;
};

/// Reads them; false, with the status set, when one does not fit the plan.
/// `device`: DLPack's number.
bool readRouteTensors(const wna16_route_plan &plan, const wna16_tensor *tensors,
                      int64_t count, int64_t device, RouteTensors &out);

/// The same for rms_norm.
bool readNormPlan(const void *address, wna16_rms_norm_plan &plan);

struct NormTensors {
  Tensor x, weight, addend, y;
  int64_t tokens;
};

bool readNormTensors(const wna16_rms_norm_plan &plan,
                     const wna16_tensor *tensors, int64_t count, int64_t device,
                     NormTensors &out);

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_PLANS_H
