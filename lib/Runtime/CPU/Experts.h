//===- Experts.h - Plan, arguments and kernels of fused experts -*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_EXPERTS_H
#define WNA16_LIB_RUNTIME_CPU_EXPERTS_H

#include "../ExpertsPlan.h"
#include "Activation.h"

namespace wna16 {

inline Activation activationOf(const ExpertsPlan &plan) {
  const wna16_experts_plan &fields = plan.fields;
  return {static_cast<wna16_activation>(fields.activation),
          static_cast<float>(fields.alpha), static_cast<float>(fields.beta),
          static_cast<float>(fields.limit)};
}

/// The tensors of one call.
struct ExpertsArguments : ExpertsTensors {
  /// The local expert of a slot; -1: nobody's here.
  int32_t expertOf(const ExpertsPlan &plan, int64_t token, int64_t slot) const;
  /// The routing weight of a slot; 1 without weights.
  float weightOf(const ExpertsPlan &plan, int64_t token, int64_t slot) const;
};

/// One way to run fused experts. The first in the table that takes a plan runs
/// it; faster ones go before the portable one.
struct ExpertsKernel {
  const char *name;
  bool (*takes)(const ExpertsPlan &plan);
  /// Bytes for at most `tokens` tokens; -1 with a status when they overflow.
  int64_t (*workspace)(const ExpertsPlan &plan, int64_t tokens, int threads);
  /// Runs with a workspace of at least that size. Ids, counts and the expert
  /// map have been checked.
  wna16_status (*run)(const ExpertsPlan &plan,
                      const ExpertsArguments &arguments, void *workspace,
                      int threads);
};

/// Weights that consist of panels, with the kernels of one instruction set.
extern const ExpertsKernel amxExperts;
extern const ExpertsKernel avx512Experts;
extern const ExpertsKernel avx2Experts;
/// Any layout, any code type, any machine.
extern const ExpertsKernel portableExperts;

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_EXPERTS_H
