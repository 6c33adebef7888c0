//===- NormTest.cpp - Root-mean-square normalisation ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace wna16test;

namespace {

wna16_rms_norm_plan normPlan(int64_t hidden, double epsilon, double scale) {
  return {WNA16_ABI_VERSION, hidden, epsilon, scale};
}

/// y, of `type`, after a call that has to succeed.
HostTensor normalized(const wna16_rms_norm_plan &plan, HostTensor x,
                      HostTensor weight, HostTensor addend, ScalarType type) {
  HostTensor y(type, x.shape);
  y.poison();
  wna16_status_clear();
  EXPECT_EQ(wna16_cpu_rms_norm_workspace(&plan, x.shape[0]), 0);
  wna16_tensor tensors[] = {x.view(), weight.view(), addend.view(), y.view()};
  EXPECT_EQ(wna16_cpu_rms_norm(&plan, tensors, 4, nullptr, 0, nullptr),
            WNA16_OK)
      << wna16_status_message();
  return y;
}

/// As defined, in float64.
std::vector<double> expected(const wna16_rms_norm_plan &plan,
                             const HostTensor &x, const HostTensor &weight,
                             const HostTensor &addend) {
  std::vector<double> result;
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    double squares = 0;
    for (int64_t k = 0; k < plan.hidden; ++k)
      squares += std::pow(x.get(row * plan.hidden + k), 2);
    double size = std::sqrt(squares / double(plan.hidden) + plan.epsilon);
    for (int64_t k = 0; k < plan.hidden; ++k) {
      int64_t at = row * plan.hidden + k;
      result.push_back(x.get(at) / size * weight.get(k) * plan.scale +
                       (addend.present() ? addend.get(at) : 0));
    }
  }
  return result;
}

TEST(RmsNorm, AsDefined) {
  Random random(1);
  const ScalarType types[] = {ScalarType::F32, ScalarType::F16,
                              ScalarType::BF16};
  for (int64_t hidden : {1, 511, 512, 513, 2816})
    for (ScalarType in : types)
      for (ScalarType out : types)
        for (bool adds : {false, true}) {
          HostTensor x = randomTensor(random, in, {5, hidden}, 3);
          HostTensor weight = randomTensor(random, in, {hidden});
          HostTensor addend;
          if (adds)
            addend = randomTensor(random, out, {5, hidden});
          wna16_rms_norm_plan plan = normPlan(hidden, 1e-6, adds ? 0.25 : 1);
          HostTensor y = normalized(plan, x, weight, addend, out);
          // Half a unit in the last place.
          const double limit = out == ScalarType::F32   ? 3e-7
                               : out == ScalarType::F16 ? 5e-4
                                                        : 4e-3;
          EXPECT_LE(relativeError(y, expected(plan, x, weight, addend)), limit)
              << hidden << (adds ? " with addend" : "");
        }
}

TEST(RmsNorm, EpsilonKeepsZerosZero) {
  HostTensor x(ScalarType::F32, {2, 3}), weight(ScalarType::F32, {3});
  for (int k = 0; k < 3; ++k) {
    weight.set(k, 2);
    x.set(3 + k, 1e-3);
  }
  HostTensor y =
      normalized(normPlan(3, 1e-6, 1), x, weight, {}, ScalarType::F32);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(y.get(k), 0);
    // 1e-3 over the root of 2e-6.
    EXPECT_NEAR(y.get(3 + k), std::sqrt(2.0), 1e-6);
  }
}

TEST(RmsNorm, NoTokens) {
  HostTensor x(ScalarType::BF16, {0, 8}), weight(ScalarType::BF16, {8});
  EXPECT_EQ(normalized(normPlan(8, 1e-6, 1), x, weight, {}, ScalarType::BF16)
                .elements(),
            0);
}

TEST(RmsNorm, RowsDoNotDependOnThreads) {
  Random random(2);
  HostTensor x = randomTensor(random, ScalarType::BF16, {37, 96});
  HostTensor weight = randomTensor(random, ScalarType::BF16, {96});
  wna16_rms_norm_plan plan = normPlan(96, 1e-5, 1);
  const int32_t before = wna16_get_num_threads();
  wna16_set_num_threads(1);
  HostTensor one = normalized(plan, x, weight, {}, ScalarType::BF16);
  wna16_set_num_threads(3);
  EXPECT_TRUE(normalized(plan, x, weight, {}, ScalarType::BF16).sameBytes(one));
  wna16_set_num_threads(before);
}

TEST(RmsNorm, RefusesBadPlansAndTensors) {
  struct {
    wna16_rms_norm_plan plan;
    const char *message;
  } const plans[] = {
      {{9, 8, 1e-6, 1}, "rms_norm: expected a plan of version 2 to 3, got 9"},
      {{WNA16_ABI_VERSION, 0, 1e-6, 1},
       "rms_norm: expected hidden from 1 to 2147483647, got 0"},
      {{WNA16_ABI_VERSION, 8, -1, 1},
       "rms_norm: expected an epsilon of 0 or more and a finite scale, got -1 "
       "and 1"},
      {{WNA16_ABI_VERSION, 8, 0, INFINITY},
       "rms_norm: expected an epsilon of 0 or more and a finite scale, got 0 "
       "and inf"},
  };
  for (const auto &entry : plans) {
    EXPECT_EQ(wna16_cpu_rms_norm_workspace(&entry.plan, 1), -1);
    EXPECT_STREQ(wna16_status_message(), entry.message);
  }
  HostTensor x(ScalarType::F32, {2, 8}), weight(ScalarType::F32, {7}),
      y(ScalarType::F32, {2, 8});
  wna16_tensor tensors[] = {x.view(), weight.view(), {}, y.view()};
  wna16_rms_norm_plan plan = normPlan(8, 1e-6, 1);
  wna16_status_clear();
  EXPECT_EQ(wna16_cpu_rms_norm(&plan, tensors, 4, nullptr, 0, nullptr),
            WNA16_INVALID_ARGUMENT);
  EXPECT_EQ(
      std::string(wna16_status_message()).rfind("rms_norm: expected weight", 0),
      0u)
      << wna16_status_message();
  wna16_status_clear();
}

} // namespace
