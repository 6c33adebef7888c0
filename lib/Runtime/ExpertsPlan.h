//===- ExpertsPlan.h - Plan and tensors of fused experts --------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_EXPERTSPLAN_H
#define WNA16_LIB_RUNTIME_EXPERTSPLAN_H

#include "Arguments.h"
#include "Layout/Catalogue.h"

namespace wna16 {

/// What the checks of a device's kernels differ in.
struct ExpertsDevice {
  int64_t type;     ///< DLPack's number
  const char *name; ///< for messages
  int64_t maxTopK;
  int64_t maxTokens; ///< batched: rows of all experts
};

/// A plan that passed the checks.
struct ExpertsPlan {
  wna16_experts_plan fields;
  WeightSpec w13;
  WeightSpec w2;

  bool isGated() const { return w13.halves == 2; }
  ScalarType element() const { return static_cast<ScalarType>(fields.element); }
};

/// The tensors of one call. Batched rows count as tokens with one slot each:
/// row t of expert e is token e * rowsPerExpert + t.
struct ExpertsTensors {
  int64_t tokens = 0;
  int64_t rowsPerExpert = 0; ///< batched: T
  int64_t mapSize = 0;
  Tensor x, weights, ids, bias13, bias2, expertMap, y;
  WeightBuffers w13, w2;
  AddressMap order13, order2; ///< of the biases that are present
};

/// Reads and checks a plan; false, with a status, when it is bad.
bool readExpertsPlan(const ExpertsDevice &device, const void *address,
                     ExpertsPlan &plan);

/// Reads and checks the tensors of a call; false, with a status, when they do
/// not fit the plan.
bool readExpertsTensors(const ExpertsDevice &device, const ExpertsPlan &plan,
                        const wna16_tensor *tensors, int64_t count,
                        ExpertsTensors &result);

/// Tokens as the kernels count them: batched rows of all experts.
bool countTokens(const ExpertsDevice &device, const ExpertsPlan &plan,
                 int64_t tokens, int64_t &total);

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_EXPERTSPLAN_H
