//===- RouteTest.cpp - Routing --------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Isa.h"
#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

using namespace wna16test;

namespace {

struct Routed {
  std::vector<float> weights;
  std::vector<int32_t> ids;
};

wna16_route_plan routePlan(int64_t experts, int64_t topK,
                           wna16_scoring scoring) {
  wna16_route_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.experts = experts;
  plan.top_k = topK;
  plan.scoring = scoring;
  plan.scaling = 1;
  return plan;
}

Routed route(const wna16_route_plan &plan, HostTensor logits,
             HostTensor correction = {}, HostTensor expertScale = {}) {
  const int64_t tokens = logits.shape[0];
  HostTensor weights(ScalarType::F32, {tokens, plan.top_k});
  HostTensor ids(ScalarType::I32, {tokens, plan.top_k});
  weights.poison();
  ids.poison();
  wna16_status_clear();
  const int64_t bytes = wna16_cpu_route_workspace(&plan, tokens);
  EXPECT_GE(bytes, 0) << wna16_status_message();
  Workspace workspace(std::max<int64_t>(bytes, 0));
  wna16_tensor tensors[] = {logits.view(), correction.view(),
                            expertScale.view(), weights.view(), ids.view()};
  EXPECT_EQ(
      wna16_cpu_route(&plan, tensors, 5, workspace.data(), bytes, nullptr),
      WNA16_OK)
      << wna16_status_message();
  const int64_t count = tokens * plan.top_k;
  return {{weights.as<float>(), weights.as<float>() + count},
          {ids.as<int32_t>(), ids.as<int32_t>() + count}};
}

HostTensor row(const std::vector<double> &values) {
  HostTensor tensor(ScalarType::F32, {1, static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(i, values[i]);
  return tensor;
}

HostTensor vectorOf(const std::vector<double> &values) {
  HostTensor tensor = row(values);
  tensor.shape.erase(tensor.shape.begin());
  return tensor;
}

using Ids = std::vector<int32_t>;

TEST(Routing, SoftmaxWithAndWithoutRenormalize) {
  Random random(1);
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16}) {
    HostTensor logits = randomTensor(random, type, {33, 8});
    for (int64_t renormalize : {0, 1}) {
      wna16_route_plan plan = routePlan(8, 3, WNA16_SOFTMAX);
      plan.renormalize = renormalize;
      Routed routed = route(plan, logits);
      for (int64_t t = 0; t < 33; ++t) {
        std::vector<int32_t> order(8);
        std::iota(order.begin(), order.end(), 0);
        auto logit = [&](int32_t e) { return logits.get(t * 8 + e); };
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return logit(a) > logit(b); });
        double all = 0, chosen = 0;
        for (int k = 0; k < 8; ++k) {
          all += std::exp(logit(order[k]));
          chosen += k < 3 ? std::exp(logit(order[k])) : 0;
        }
        for (int k = 0; k < 3; ++k) {
          EXPECT_EQ(routed.ids[t * 3 + k], order[k]);
          EXPECT_NEAR(routed.weights[t * 3 + k],
                      std::exp(logit(order[k])) / (renormalize ? chosen : all),
                      1e-6);
        }
      }
    }
  }
}

TEST(Routing, TiesGoToTheLowestIndex) {
  wna16_route_plan plan = routePlan(6, 3, WNA16_SOFTMAX);
  EXPECT_EQ(route(plan, row({1, 2, 1, 2, 1, 2})).ids, (Ids{1, 3, 5}));
  EXPECT_EQ(route(plan, row({0, 0, 0, 0, 0, 0})).ids, (Ids{0, 1, 2}));
}

TEST(Routing, B64_ScalingIsIndependentOfRenormalize) {
  const double logits[] = {0.5, 2, -1, 1, 0, 1.5, -2, 0.25};
  double all = 0;
  for (double logit : logits)
    all += std::exp(logit);
  const double best[] = {std::exp(2), std::exp(1.5), std::exp(1)};
  const double sum = best[0] + best[1] + best[2];
  for (int64_t renormalize : {0, 1})
    for (double scaling : {1.0, 16.0}) {
      wna16_route_plan plan = routePlan(8, 3, WNA16_SOFTMAX);
      plan.renormalize = renormalize;
      plan.scaling = scaling;
      Routed routed = route(plan, row({std::begin(logits), std::end(logits)}));
      EXPECT_EQ(routed.ids, (Ids{1, 5, 3}));
      for (int k = 0; k < 3; ++k)
        EXPECT_NEAR(routed.weights[k],
                    best[k] / (renormalize ? sum : all) * scaling,
                    1e-6 * scaling);
    }
}

TEST(Routing, B65_WeightsAreTheUnbiasedScores) {
  wna16_route_plan plan = routePlan(8, 2, WNA16_SIGMOID);
  plan.renormalize = 1;
  Routed routed = route(plan, row({-18, -18.5, -18, -19, -18.2, -18, -18, -18}),
                        vectorOf({0, 12, 0, 12.5, 0, 0, 0, 0}));
  EXPECT_EQ(routed.ids, (Ids{3, 1}));
  const double a = 1 / (1 + std::exp(19.0)), b = 1 / (1 + std::exp(18.5));
  EXPECT_NEAR(routed.weights[0], a / (a + b), 1e-6);
  EXPECT_NEAR(routed.weights[1], b / (a + b), 1e-6);
}

TEST(Routing, B65_AllZeroSumStaysFinite) {
  wna16_route_plan plan = routePlan(4, 2, WNA16_SIGMOID);
  plan.renormalize = 1;
  Routed routed =
      route(plan, row({-200, -200, -200, -200}), vectorOf({12, 0, 12, 0}));
  EXPECT_EQ(routed.ids, (Ids{0, 2}));
  EXPECT_EQ(routed.weights, (std::vector<float>{0, 0}));
}

TEST(Routing, GroupsAreRankedByTheirBestMember) {
  wna16_route_plan plan = routePlan(8, 2, WNA16_SOFTMAX);
  plan.groups = 4;
  plan.top_groups = 1;
  EXPECT_EQ(route(plan, row({1, 1, 3, 0, 2, 2.5, 0, 0})).ids, (Ids{2, 3}));
}

TEST(Routing, GroupsWithCorrectionAreRankedByTheirBestTwo) {
  wna16_route_plan plan = routePlan(8, 2, WNA16_SIGMOID);
  plan.groups = 4;
  plan.top_groups = 1;
  Routed routed = route(plan, row({1, 1, 3, -9, 2, 2.5, 0, 0}),
                        vectorOf({0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(routed.ids, (Ids{5, 4}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(-2.5)), 1e-6);
}

TEST(Routing, DroppedGroupsAreNeverChosen) {
  // Negative corrections push the kept group below zero.
  wna16_route_plan plan = routePlan(4, 2, WNA16_SIGMOID);
  plan.groups = 2;
  plan.top_groups = 1;
  EXPECT_EQ(route(plan, row({0, 0, 1, 1}), vectorOf({-5, -5, -4, -4})).ids,
            (Ids{2, 3}));
}

TEST(Routing, SoftmaxAfterTopK) {
  wna16_route_plan plan = routePlan(4, 2, WNA16_SOFTMAX);
  plan.softmax_after_topk = 1;
  Routed routed = route(plan, row({1, 4, 2, 3}));
  EXPECT_EQ(routed.ids, (Ids{1, 3}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(routed.weights[1], 1 / (1 + std::exp(1.0)), 1e-6);
}

TEST(Routing, LlamaTopOneSigmoid) {
  wna16_route_plan plan = routePlan(4, 1, WNA16_SIGMOID);
  Routed routed = route(plan, row({-1, 0.5, 0.25, -3}));
  EXPECT_EQ(routed.ids, (Ids{1}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(-0.5)), 1e-6);
}

TEST(Routing, ExpertScaleComesLast) {
  wna16_route_plan plan = routePlan(4, 2, WNA16_SOFTMAX);
  plan.renormalize = 1;
  plan.scaling = 3;
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16}) {
    HostTensor scale(type, {4});
    for (int e = 0; e < 4; ++e)
      scale.set(e, 0.5 * e - 0.25);
    // Chosen by the logits alone.
    Routed routed = route(plan, row({2, 1, 0, 0.5}), {}, scale);
    EXPECT_EQ(routed.ids, (Ids{0, 1}));
    const double part = 1 / (1 + std::exp(-1.0));
    EXPECT_NEAR(routed.weights[0], 3 * part * -0.25, 1e-6);
    EXPECT_NEAR(routed.weights[1], 3 * (1 - part) * 0.25, 1e-6);
  }
}

TEST(Routing, CorrectionsOfSixteenBits) {
  wna16_route_plan plan = routePlan(4, 2, WNA16_SIGMOID);
  for (ScalarType type : {ScalarType::F16, ScalarType::BF16}) {
    HostTensor correction(type, {4});
    for (int e = 0; e < 4; ++e)
      correction.set(e, e == 2 ? 1 : e * 0.25);
    Routed routed = route(plan, row({0, 0, 0, 0}), correction);
    EXPECT_EQ(routed.ids, (Ids{2, 3}));
    EXPECT_EQ(routed.weights, (std::vector<float>{0.5, 0.5}));
  }
}

wna16_route_plan mixerPlan(int64_t experts, int64_t topK, double jitter) {
  wna16_route_plan plan = routePlan(experts, topK, WNA16_SPARSEMIXER);
  plan.jitter = jitter;
  return plan;
}

/// The weights of a sparse mixer as its definition says, in float64.
std::vector<double> mixed(const std::vector<double> &logits, const Ids &ids,
                          double jitter) {
  std::vector<double> weights;
  std::vector<bool> isLeft(logits.size(), true);
  for (int32_t id : ids) {
    double sum = 0;
    for (size_t e = 0; e < logits.size(); ++e) {
      double size = std::max(std::abs(logits[e]), logits[id]);
      if (isLeft[e] && logits[id] - logits[e] <= 2 * jitter * size)
        sum += std::exp(logits[e] - logits[id]);
    }
    weights.push_back(1 / sum);
    isLeft[id] = false;
  }
  return weights;
}

TEST(Routing, SparseMixerAsDefined) {
  Random random(3);
  int partial = 0;
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16})
    for (double jitter : {0.0, 0.01, 0.1, 0.45, 0.75})
      for (int64_t topK : {1, 2, 5}) {
        HostTensor logits = randomTensor(random, type, {9, 16}, 2);
        wna16_route_plan plan = mixerPlan(16, topK, jitter);
        plan.scaling = 1.5;
        Routed routed = route(plan, logits);
        for (int64_t t = 0; t < 9; ++t) {
          std::vector<double> values;
          for (int64_t e = 0; e < 16; ++e)
            values.push_back(logits.get(t * 16 + e));
          Ids order(16);
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](int a, int b) { return values[a] > values[b]; });
          order.resize(topK);
          std::vector<double> wanted = mixed(values, order, jitter);
          for (int64_t k = 0; k < topK; ++k) {
            EXPECT_EQ(routed.ids[t * topK + k], order[k]);
            EXPECT_NEAR(routed.weights[t * topK + k], 1.5 * wanted[k], 2e-6)
                << "jitter " << jitter << ", slot " << k;
            partial += wanted[k] > 0.1 && wanted[k] < 0.9;
          }
        }
      }
  EXPECT_GT(partial, 100) << "the cases weigh near and far ones";
}

TEST(Routing, SparseMixerAtItsEdge) {
  // (4 - 3) / 4 = 2 * 0.125: near. A logit below 3 is not.
  const double e1 = std::exp(-1.0), below = std::nextafter(3.0f, 0.0f);
  Routed routed = route(mixerPlan(3, 1, 0.125), row({4, 3, -9}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + e1), 1e-6);
  routed = route(mixerPlan(3, 1, 0.125), row({4, below, -9}));
  EXPECT_EQ(routed.weights[0], 1);
  // Negative ones by their own size: (-3 + 4) / 4.
  routed = route(mixerPlan(3, 2, 0.125), row({-4, -9, -3}));
  EXPECT_EQ(routed.ids, (Ids{2, 0}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + e1), 1e-6);
  EXPECT_EQ(routed.weights[1], 1);
  // 1 / 50 in f32 is what f32 makes of 2 * 0.01.
  routed = route(mixerPlan(2, 1, 0.01), row({50, 49}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + e1), 1e-6);
  routed = route(mixerPlan(2, 1, 0.01), row({50, std::nextafter(49.0f, 0.0f)}));
  EXPECT_EQ(routed.weights[0], 1);
}

TEST(Routing, SparseMixerOfTies) {
  // One after the other, the lowest first; those chosen leave the softmax.
  Routed routed = route(mixerPlan(4, 4, 0), row({1, 2, 2, 2}));
  EXPECT_EQ(routed.ids, (Ids{1, 2, 3, 0}));
  const std::vector<float> thirds = {1 / 3.0f, 1 / 2.0f, 1, 1};
  EXPECT_EQ(routed.weights, thirds);
  // 0 of 0 is near, also that of the other sign.
  routed = route(mixerPlan(4, 2, 0), row({0, -0.0, 0, -1}));
  EXPECT_EQ(routed.ids, (Ids{0, 1}));
  EXPECT_EQ(routed.weights, (std::vector<float>{1 / 3.0f, 1 / 2.0f}));
}

TEST(Routing, SparseMixerOfInfinitiesAndNaN) {
  // -inf is chosen late and adds nothing.
  Routed routed =
      route(mixerPlan(4, 2, 0.5), row({-INFINITY, 1, -INFINITY, 1}));
  EXPECT_EQ(routed.ids, (Ids{1, 3}));
  EXPECT_EQ(routed.weights, (std::vector<float>{0.5, 1}));
  // NaN comes last; what it is near to has no weight.
  routed = route(mixerPlan(3, 3, 0.01), row({NAN, 5, -INFINITY}));
  EXPECT_EQ(routed.ids, (Ids{1, 2, 0}));
  for (float weight : routed.weights)
    EXPECT_TRUE(std::isnan(weight)) << weight;
  routed = route(mixerPlan(3, 2, 0.01), row({0, INFINITY, 2}));
  EXPECT_EQ(routed.ids, (Ids{1, 2}));
  EXPECT_TRUE(std::isnan(routed.weights[0]));
  EXPECT_EQ(routed.weights[1], 1);
  routed = route(mixerPlan(2, 2, 0.01), row({-INFINITY, -INFINITY}));
  EXPECT_EQ(routed.ids, (Ids{0, 1}));
  EXPECT_TRUE(std::isnan(routed.weights[0]));
}

TEST(Routing, PlansOfVersion2) {
  // They end before jitter, and their calls have no expert_scale.
  wna16_route_plan plan = routePlan(4, 2, WNA16_SOFTMAX);
  plan.abi_version = 2;
  std::vector<char> old(offsetof(wna16_route_plan, jitter));
  std::memcpy(old.data(), &plan, old.size());
  HostTensor logits = row({1, 4, 2, 3});
  HostTensor weights(ScalarType::F32, {1, 2}), ids(ScalarType::I32, {1, 2});
  wna16_tensor tensors[] = {logits.view(), wna16_tensor(), weights.view(),
                            ids.view()};
  const int64_t bytes = wna16_cpu_route_workspace(old.data(), 1);
  Workspace workspace(std::max<int64_t>(bytes, 0));
  EXPECT_EQ(
      wna16_cpu_route(old.data(), tensors, 4, workspace.data(), bytes, nullptr),
      WNA16_OK)
      << wna16_status_message();
  EXPECT_EQ(ids.as<int32_t>()[0], 1);
  EXPECT_EQ(ids.as<int32_t>()[1], 3);
}

TEST(Routing, NaNLogitsGiveValidIds) {
  for (wna16_scoring scoring :
       {WNA16_SOFTMAX, WNA16_SIGMOID, WNA16_SPARSEMIXER}) {
    wna16_route_plan plan = routePlan(8, 8, scoring);
    if (scoring != WNA16_SPARSEMIXER) {
      plan.renormalize = 1;
      plan.groups = 2;
      plan.top_groups = 2;
    }
    Routed routed =
        route(plan, row({NAN, 1, NAN, INFINITY, -INFINITY, NAN, 0, NAN}));
    std::sort(routed.ids.begin(), routed.ids.end());
    EXPECT_EQ(routed.ids, (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

std::vector<double> numbers(const std::string &text) {
  std::istringstream stream(text);
  std::vector<double> values;
  for (std::string word; stream >> word;)
    values.push_back(std::strtod(word.c_str(), nullptr));
  return values;
}

/// The cases that test/Integration/cpu asks of emulation.
TEST(Routing, UnorderedValuesAsInEmulation) {
  std::ifstream file(WNA16_TEST_INPUTS "/routing/unordered.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream columns(line);
    std::string kind, plan, logits, correction, ids;
    if (!(columns >> kind))
      continue;
    std::getline(columns, plan, '|');
    std::getline(columns, logits, '|');
    std::getline(columns, correction, '|');
    std::getline(columns, ids, '|');
    const std::vector<double> fields = numbers(plan), values = numbers(logits);
    const std::vector<double> bias = numbers(correction), wanted = numbers(ids);
    ASSERT_EQ(fields.size(), 3u) << line;
    wna16_route_plan asked =
        routePlan(values.size(), static_cast<int64_t>(fields[0]),
                  kind == "sigmoid"       ? WNA16_SIGMOID
                  : kind == "sparsemixer" ? WNA16_SPARSEMIXER
                                          : WNA16_SOFTMAX);
    asked.softmax_after_topk = kind == "after_topk";
    asked.groups = static_cast<int64_t>(fields[1]);
    asked.top_groups = static_cast<int64_t>(fields[2]);
    Routed routed =
        route(asked, row(values), bias.empty() ? HostTensor() : vectorOf(bias));
    EXPECT_EQ(routed.ids, Ids(wanted.begin(), wanted.end())) << line;
    ++cases;
  }
  EXPECT_GT(cases, 20);
}

TEST(Routing, EveryInstructionSetGivesTheSameBits) {
  const wna16::Isa best = wna16::isa();
  for (int64_t experts : {3, 16, 60, 128, 300})
    for (wna16_scoring scoring : {WNA16_SOFTMAX, WNA16_SIGMOID})
      for (bool after : {false, true}) {
        if (after && scoring != WNA16_SOFTMAX)
          continue;
        Random random(7);
        wna16_route_plan plan = routePlan(experts, 3, scoring);
        plan.softmax_after_topk = after;
        plan.renormalize = !after;
        HostTensor logits =
            randomTensor(random, ScalarType::F32, {40, experts}, 5);
        for (int64_t i = 0; i < 20; ++i)
          logits.set(i * 7 % logits.elements(), i % 2 ? -INFINITY : -95.0);
        ASSERT_TRUE(wna16::setIsa(wna16::Isa::Portable));
        const Routed expected = route(plan, logits);
        for (wna16::Isa set : {wna16::Isa::AVX2, wna16::Isa::AVX512}) {
          if (best < set)
            continue;
          ASSERT_TRUE(wna16::setIsa(set));
          const Routed routed = route(plan, logits);
          EXPECT_EQ(routed.ids, expected.ids) << wna16::name(set);
          EXPECT_EQ(routed.weights, expected.weights) << wna16::name(set);
        }
        ASSERT_TRUE(wna16::setIsa(best));
      }
}

TEST(Routing, NoTokens) {
  wna16_route_plan plan = routePlan(8, 2, WNA16_SOFTMAX);
  EXPECT_TRUE(route(plan, HostTensor(ScalarType::F32, {0, 8})).ids.empty());
}

TEST(Routing, RefusesBadPlans) {
  struct {
    const char *message;
    std::function<void(wna16_route_plan &)> change;
  } cases[] = {
      {"route: expected a plan of version 2 to 3, got 9",
       [](auto &plan) { plan.abi_version = 9; }},
      {"route: expected a plan of version 2 to 3, got 1",
       [](auto &plan) { plan.abi_version = 1; }},
      {"route: expected top_k from 1 to 8, got 9",
       [](auto &plan) { plan.top_k = 9; }},
      {"route: expected scoring from 0 to 2, got 3",
       [](auto &plan) { plan.scoring = 3; }},
      {"route: expected groups (3) to divide experts (8)",
       [](auto &plan) { plan.groups = 3; }},
      {"route: expected top_groups from 1 to 4, got 0",
       [](auto &plan) { plan.groups = 4; }},
      {"route: expected top_k with top_groups from 1 to 2, got 3",
       [](auto &plan) {
         plan.groups = 4, plan.top_groups = 1, plan.top_k = 3;
       }},
      {"route: softmax_after_topk goes with softmax scoring",
       [](auto &plan) {
         plan.scoring = WNA16_SIGMOID, plan.softmax_after_topk = 1;
       }},
      {"route: softmax_after_topk goes with softmax scoring",
       [](auto &plan) {
         plan.scoring = WNA16_SPARSEMIXER, plan.softmax_after_topk = 1;
       }},
      {"route: expected a finite scaling",
       [](auto &plan) { plan.scaling = NAN; }},
      {"route: sparsemixer goes without renormalize and groups",
       [](auto &plan) {
         plan.scoring = WNA16_SPARSEMIXER, plan.renormalize = 1;
       }},
      {"route: sparsemixer goes without renormalize and groups",
       [](auto &plan) { plan.scoring = WNA16_SPARSEMIXER, plan.groups = 2; }},
      {"route: expected a jitter of 0 or more, got -0.5",
       [](auto &plan) {
         plan.scoring = WNA16_SPARSEMIXER, plan.jitter = -0.5;
       }},
      {"route: expected a jitter of 0 or more, got inf",
       [](auto &plan) {
         plan.scoring = WNA16_SPARSEMIXER, plan.jitter = INFINITY;
       }},
      {"route: expected a jitter of 0 without sparsemixer, got 0.5",
       [](auto &plan) { plan.jitter = 0.5; }},
  };
  for (const auto &entry : cases) {
    wna16_route_plan plan = routePlan(8, 2, WNA16_SOFTMAX);
    entry.change(plan);
    wna16_status_clear();
    EXPECT_EQ(wna16_cpu_route_workspace(&plan, 1), -1);
    EXPECT_EQ(wna16_status_get(), WNA16_INVALID_ARGUMENT);
    EXPECT_STREQ(wna16_status_message(), entry.message);
  }
}

TEST(Routing, RefusesTensorsThatDoNotFit) {
  HostTensor logits = row({1, 2}), vector = vectorOf({1, 2}),
             other = vectorOf({1, 2, 3});
  HostTensor weights(ScalarType::F32, {1, 1}), ids(ScalarType::I32, {1, 1});
  struct {
    wna16_scoring scoring;
    HostTensor *correction, *scale;
    int64_t count;
    const char *message;
  } const cases[] = {
      {WNA16_SPARSEMIXER, &vector, nullptr, 5,
       "route: expected no correction bias with sparsemixer"},
      {WNA16_SOFTMAX, nullptr, &other, 5, "route: expected expert_scale "},
      {WNA16_SOFTMAX, nullptr, nullptr, 4, "route: expected 5 tensors, got 4"},
  };
  for (const auto &c : cases) {
    wna16_route_plan plan = routePlan(2, 1, c.scoring);
    auto view = [](HostTensor *tensor) {
      return tensor ? tensor->view() : wna16_tensor();
    };
    wna16_tensor tensors[] = {logits.view(), view(c.correction), view(c.scale),
                              weights.view(), ids.view()};
    const int64_t bytes = wna16_cpu_route_workspace(&plan, 1);
    Workspace workspace(bytes);
    EXPECT_EQ(wna16_cpu_route(&plan, tensors, c.count, workspace.data(), bytes,
                              nullptr),
              WNA16_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(wna16_status_message()).rfind(c.message, 0), 0u)
        << wna16_status_message();
    wna16_status_clear();
  }
}

} // namespace
