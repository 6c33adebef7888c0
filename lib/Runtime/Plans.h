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

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_PLANS_H
