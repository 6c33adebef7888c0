//===- NativeCasesTest.cpp - Public bug cases under the native rules ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "llvm/ADT/STLExtras.h"

using namespace wna16;
using namespace wna16::test;

namespace {

TEST(NativeCases, B28_EightBitsAreSkippedByWidth) {
  LayerInfo layer = acceptedLayer("flashinfer_trtllm");
  setBits8(layer);
  Selection selection =
      selectBackend(layer, makeTarget(TargetKind::cuda, 100, {"flashinfer"}),
                    "auto", Rules::Native);
  ASSERT_TRUE(selection.chosen);
  EXPECT_EQ(selection.chosen->name(), "marlin");
  bool named = false;
  for (const Rejection &rejection : selection.candidates[0].rejections)
    named |= rejection.reason.find("bits=8") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST(NativeCases, B29_EightBitsWithAnyGroup) {
  for (int64_t group : {-1, 32, 128})
    for (bool symmetric : {true, false}) {
      LayerInfo layer = makeLayer("gptq", CodeType::U8B128, group);
      if (!symmetric)
        setAsymmetric(layer);
      auto rejections = backend("marlin").reject(
          layer, acceptedTarget("marlin"), Rules::Native);
      if (symmetric) {
        EXPECT_TRUE(rejections.empty());
        continue;
      }
      ASSERT_EQ(rejections.size(), 1u);
      EXPECT_NE(
          rejections[0].reason.find("bits=8, group=" + std::to_string(group)),
          std::string::npos)
          << rejections[0].reason;
      EXPECT_TRUE(backend("cpu")
                      .reject(layer, acceptedTarget("cpu"), Rules::Native)
                      .empty());
    }
}

// A rank's share of act-order rows keeps all groups: kernels that look groups
// up run it, kernels that sort rows by whole groups refuse it.
TEST(NativeCases, B23_SharesOfActOrderRows) {
  LayerInfo layer = makeLayer("gptq", CodeType::U4B8, 128);
  setActOrder(layer);
  layer.w2.keptGroups = 4;
  auto rejections =
      backend("marlin").reject(layer, acceptedTarget("marlin"), Rules::Native);
  ASSERT_EQ(rejections.size(), 1u);
  EXPECT_EQ(std::string(rejections[0].constraint), "act-order");
  EXPECT_EQ(rejections[0].reason,
            "expected whole act-order groups of w2 to sort by, got 256 inputs "
            "of 4 groups of 128");
  for (const char *name : {"cpu", "emulation", "emulation_otf", "cuda"})
    EXPECT_TRUE(backend(name)
                    .reject(layer, acceptedTarget(name), Rules::Native)
                    .empty())
        << name;
}

TEST(NativeCases, B31_HalfScalesUnderBfloatActivations) {
  for (const Backend *asked : BackendRegistry::get().all()) {
    LayerInfo layer = acceptedLayer(asked->name());
    layer.element = ScalarType::BF16;
    forBoth(layer, [](WeightSpec &w) { w.scale = ScalarType::F16; });
    EXPECT_TRUE(
        asked->reject(layer, acceptedTarget(asked->name()), Rules::Native)
            .empty())
        << asked->name().str();
  }
}

TEST(NativeCases, B32_AnExplicitBackendNamesTheDtypePair) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, 32);
  setExtents(layer, 64, 64);
  layer.element = ScalarType::F16;
  forBoth(layer, [](WeightSpec &w) { w.scale = ScalarType::F32; });
  for (const char *name : {"marlin", "humming"}) {
    Selection selection = selectBackend(layer, makeTarget(TargetKind::cuda, 90),
                                        name, Rules::Native);
    EXPECT_FALSE(selection.chosen);
    EXPECT_NE(selection.message.find("f32 scales of w13 with f16 activations"),
              std::string::npos)
        << selection.message;
  }
}

TEST(NativeCases, B37_UnknownCapabilityAndMemoryAreNoReason) {
  Selection selection = selectBackend(
      makeLayer("gptq"), makeTarget(TargetKind::cuda), "auto", Rules::Native);
  ASSERT_TRUE(selection.chosen);
  EXPECT_EQ(selection.chosen->name(), "marlin");
}

TEST(NativeCases, B38_RoutingInsideTheKernelIsNeverReplaced) {
  LayerInfo layer = acceptedLayer("flashinfer_trtllm");
  LayerInfo::Routing routing;
  routing.scoring = Scoring::sigmoid;
  routing.correction = true;
  routing.groups = 8;
  routing.topGroups = 4;
  routing.scaling = 2.5;
  layer.routing = routing;
  Selection selection =
      selectBackend(layer, acceptedTarget("flashinfer_trtllm"),
                    "flashinfer_trtllm", Rules::Native);
  EXPECT_FALSE(selection.chosen);
  EXPECT_NE(
      selection.message.find("routing method DeepSeekV3 with scaling 2.5"),
      std::string::npos)
      << selection.message;
  layer.routing->scaling = 1.0;
  EXPECT_TRUE(selectBackend(layer, acceptedTarget("flashinfer_trtllm"),
                            "flashinfer_trtllm", Rules::Native)
                  .chosen);
}

TEST(NativeCases, B41_ExpertsWithoutGate) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, 32);
  layer.gated = false;
  layer.w13.halves = 1;
  layer.activation = Activation::relu2;
  setExtents(layer, 2688, 1856);
  for (const char *name :
       {"marlin", "humming", "cuda", "cpu", "xpu", "emulation"}) {
    auto rejections =
        backend(name).reject(layer, acceptedTarget(name), Rules::Native);
    EXPECT_TRUE(rejections.empty())
        << name << ": " << (rejections.empty() ? "" : rejections[0].reason);
  }
}

} // namespace
