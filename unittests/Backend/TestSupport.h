//===- TestSupport.h - Layers and targets for the tests ---------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_BACKEND_TESTSUPPORT_H
#define WNA16_UNITTESTS_BACKEND_TESTSUPPORT_H

#include "Backend/Backend.h"
#include "Layout/Catalogue.h"

#include <gtest/gtest.h>

#include <functional>

namespace wna16::test {

/// Eight experts of K = 512, N = 256 in 4-bit groups of 128 on bf16
/// activations, gated, softmax with renormalisation.
LayerInfo makeLayer(llvm::StringRef layout, CodeType code = CodeType::U4B8,
                    int64_t group = 128);

/// Gives both weights other extents.
void setExtents(LayerInfo &layer, int64_t hidden, int64_t intermediate);
/// Both weights, for changes that concern both.
void forBoth(LayerInfo &layer, const std::function<void(WeightSpec &)> &change);
/// Asymmetric codes with stored zero points.
void setAsymmetric(LayerInfo &layer);
void setBits8(LayerInfo &layer);
void setActOrder(LayerInfo &layer);
void setDense(WeightSpec &weight);

/// "cuda", 90, {"flashinfer"}.
TargetAttr makeTarget(TargetKind kind, int64_t capability = 0,
                      std::vector<std::string> libraries = {},
                      std::vector<std::string> features = {});

const Backend &backend(llvm::StringRef name);

/// A layer and a target on which the backend takes it by the native rules.
LayerInfo acceptedLayer(llvm::StringRef backend);
TargetAttr acceptedTarget(llvm::StringRef backend);

/// A rule as data: after `change`, `backend` rejects with `constraint`, a
/// reason with `reason` in it and a remedy with `remedy` in it.
struct Row {
  const char *backend;
  const char *constraint;
  const char *reason;
  const char *remedy;
  std::function<void(LayerInfo &, TargetAttr &)> change;
};

/// "marlin_group_size_3": a name for the row at an index.
std::string rowName(const Row &row, size_t index);

} // namespace wna16::test

#endif // WNA16_UNITTESTS_BACKEND_TESTSUPPORT_H
