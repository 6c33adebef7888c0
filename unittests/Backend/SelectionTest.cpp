//===- SelectionTest.cpp - Orders, explicit choices, registration ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "Backend/Explain.h"

#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

std::vector<std::string> asked(const Selection &selection) {
  std::vector<std::string> names;
  for (const Selection::Candidate &candidate : selection.candidates)
    names.push_back(candidate.backend->name().str());
  return names;
}

/// No backend runs int8 activations but Marlin, whose hidden size is odd here:
/// everything is asked.
LayerInfo hopeless() {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, 32);
  setExtents(layer, 544, 256);
  layer.activationType = ActivationType::int8;
  return layer;
}

TEST(NativeSelection, OrderOfEachPlatform) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(asked(selectBackend(hopeless(), makeTarget(TargetKind::cuda, 90),
                                "auto", Rules::Native)),
            (Names{"flashinfer_trtllm", "marlin", "batched_marlin", "humming",
                   "cuda"}));
  EXPECT_EQ(asked(selectBackend(hopeless(), makeTarget(TargetKind::cpu), "",
                                Rules::Native)),
            (Names{"cpu", "emulation", "emulation_otf"}));
  EXPECT_EQ(asked(selectBackend(hopeless(), makeTarget(TargetKind::xpu), "auto",
                                Rules::Native)),
            (Names{"xpu"}));
}

TEST(NativeSelection, SaysWhyNothingFits) {
  Selection selection = selectBackend(hopeless(), makeTarget(TargetKind::cpu),
                                      "auto", Rules::Native);
  EXPECT_FALSE(selection.chosen);
  EXPECT_EQ(selection.message,
            "no backend takes the layer on cpu; cpu: expected 16-bit "
            "activations, got int8; emulation: expected 16-bit activations, "
            "got int8; emulation_otf: expected 16-bit activations, got int8");
}

TEST(NativeSelection, B34_ARequestIsObeyedOrRefused) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, 32);
  TargetAttr target = makeTarget(TargetKind::cuda, 90);
  EXPECT_EQ(selectBackend(layer, target, "auto", Rules::Native).chosen->name(),
            "marlin");
  for (const char *name : {"marlin", "humming", "emulation", "emulation_otf"}) {
    Selection selection = selectBackend(layer, target, name, Rules::Native);
    ASSERT_TRUE(selection.chosen) << name;
    EXPECT_EQ(selection.chosen->name(), name);
    EXPECT_EQ(asked(selection), std::vector<std::string>{name});
  }
  layer.hasBias = true;
  Selection refused =
      selectBackend(layer, target, "flashinfer_trtllm", Rules::Native);
  EXPECT_FALSE(refused.chosen);
  ASSERT_EQ(refused.candidates.size(), 1u);
  std::vector<std::string> constraints;
  for (const Rejection &rejection : refused.candidates[0].rejections) {
    constraints.push_back(rejection.constraint);
    EXPECT_NE(refused.message.find(rejection.reason), std::string::npos);
  }
  EXPECT_EQ(constraints, (std::vector<std::string>{"target-capability",
                                                   "target-library", "bias"}));
}

TEST(NativeSelection, TheOthersOfThePlatformAreAskedAsWell) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, 32);
  Selection selection = selectBackend(layer, makeTarget(TargetKind::cuda, 90),
                                      "auto", Rules::Native);
  ASSERT_EQ(selection.candidates.size(), 5u);
  const struct {
    bool reached, takes;
  } verdicts[] = {{true, false},
                  {true, true},
                  {false, false},
                  {false, true},
                  {false, true}};
  for (size_t i = 0; i < 5; ++i) {
    const Selection::Candidate &candidate = selection.candidates[i];
    EXPECT_EQ(candidate.reached, verdicts[i].reached) << i;
    EXPECT_EQ(candidate.rejections.empty(), verdicts[i].takes) << i;
  }
  EXPECT_EQ(selection.chosen, selection.candidates[1].backend);
}

/// Shared experts of 16 bits beside quantised ones.
TEST(NativeSelection, DenseExpertsHaveAKernelOnEveryTarget) {
  LayerInfo layer = makeLayer("gptq");
  forBoth(layer, setDense);
  const std::pair<TargetAttr, const char *> targets[] = {
      {makeTarget(TargetKind::cpu), "cpu"},
      {makeTarget(TargetKind::cuda, 90), "cuda"},
      {makeTarget(TargetKind::xpu), "xpu"}};
  for (auto [target, name] : targets) {
    Selection selection = selectBackend(layer, target, "auto", Rules::Native);
    ASSERT_TRUE(selection.chosen) << name << ": " << selection.message;
    EXPECT_EQ(selection.chosen->name(), name);
    EXPECT_FALSE(selection.chosen->kernel().empty());
    EXPECT_EQ(selection.chosen->prepared(layer, layer.w13, Projection::W13),
              layer.w13);
    EXPECT_EQ(selection.chosen->prepared(layer, layer.w2, Projection::W2),
              layer.w2);
  }
}

/// Loops of the host cannot run there, so that emulation has to be named.
TEST(NativeSelection, DevicesDoNotFallBackToEmulation) {
  LayerInfo layer = makeLayer("gptq", CodeType::U8B128, 128);
  TargetAttr xpu = makeTarget(TargetKind::xpu);
  Selection selection = selectBackend(layer, xpu, "auto", Rules::Native);
  EXPECT_FALSE(selection.chosen);
  EXPECT_EQ(selection.message,
            "no backend takes the layer on xpu; xpu: expected 4-bit weights, "
            "got bits=8 of w13");
  EXPECT_TRUE(selectBackend(layer, xpu, "emulation", Rules::Native).chosen);
}

TEST(NativeSelection, UnknownNames) {
  Selection selection = selectBackend(
      makeLayer("gptq"), makeTarget(TargetKind::cpu), "cutlass", Rules::Native);
  EXPECT_FALSE(selection.chosen);
  EXPECT_NE(selection.message.find("got backend 'cutlass'"), std::string::npos);
  EXPECT_NE(selection.message.find("batched_marlin"), std::string::npos);
}

TEST(NativeSelection, B40_ActivationsAreTakenOrRefusedByName) {
  const struct {
    Activation activation;
    bool gated;
  } cases[] = {{Activation::silu, true},      {Activation::gelu, true},
               {Activation::gelu_tanh, true}, {Activation::relu2, true},
               {Activation::relu2, false},    {Activation::swigluoai, true}};
  for (auto [activation, gated] : cases)
    for (const Backend *backend : BackendRegistry::get().all()) {
      LayerInfo layer = acceptedLayer(backend->name());
      layer.activation = activation;
      layer.gated = gated;
      layer.w13.halves = gated ? 2 : 1;
      auto rejections = backend->reject(layer, acceptedTarget(backend->name()),
                                        Rules::Native);
      bool named = false;
      for (const Rejection &rejection : rejections)
        named |= rejection.constraint == "activation" ||
                 rejection.constraint == "gate";
      EXPECT_TRUE(rejections.empty() || named) << backend->name().str();
    }
}

TEST(NativeSelection, B55_DenseDownProjection) {
  LayerInfo layer = makeLayer("awq");
  setAsymmetric(layer);
  setExtents(layer, 128, 128);
  setDense(layer.w2);
  for (const char *name : {"cpu", "emulation", "emulation_otf"}) {
    EXPECT_TRUE(
        selectBackend(layer, makeTarget(TargetKind::cpu), name, Rules::Native)
            .chosen)
        << name;
    EXPECT_EQ(backend(name).prepared(layer, layer.w2, Projection::W2),
              layer.w2);
  }
  Selection refused = selectBackend(layer, makeTarget(TargetKind::cuda, 90),
                                    "marlin", Rules::Native);
  EXPECT_FALSE(refused.chosen);
  EXPECT_NE(refused.message.find("got w2 of dense bf16"), std::string::npos);
}

TEST(Registry, NamesAndSymbols) {
  const std::pair<const char *, const char *> kernels[] = {
      {"flashinfer_trtllm", "wna16_cuda_trtllm_fused_experts"},
      {"marlin", "wna16_cuda_marlin_fused_experts"},
      {"batched_marlin", "wna16_cuda_batched_marlin_fused_experts"},
      {"humming", "wna16_cuda_humming_fused_experts"},
      {"cuda", "wna16_cuda_fused_experts"},
      {"cpu", "wna16_cpu_fused_experts"},
      {"xpu", "wna16_xpu_fused_experts"},
      {"emulation", ""},
      {"emulation_otf", ""}};
  for (auto [name, kernel] : kernels)
    EXPECT_EQ(backend(name).kernel(), kernel);
  EXPECT_EQ(runtimeSymbol(makeTarget(TargetKind::cuda, 90), "linear"),
            "wna16_cuda_linear");
  EXPECT_EQ(runtimeSymbol(makeTarget(TargetKind::cpu), "route"),
            "wna16_cpu_route");
}

TEST(Explain, TextAndJson) {
  ExplainedLayer entry{"model.layers.0.mlp", makeLayer("gptq"), {}};
  setExtents(entry.layer, 512, 192);
  TargetAttr target = makeTarget(TargetKind::cuda, 90);
  entry.selection = selectBackend(entry.layer, target, "auto", Rules::Native);
  std::string text, json;
  llvm::raw_string_ostream textStream(text), jsonStream(json);
  explainAsText(entry, target, textStream);
  explainAsJson(entry, target, jsonStream);
  for (const char *part :
       {"model.layers.0.mlp on cuda:sm_90", "chosen: marlin",
        "u4b8 group 128 gptq [8, 192, 1, 512] -> u4b8 group 128 marlin [8, "
        "256, 1, 512]",
        "extra roundings: weights, slots",
        "rejected: flashinfer_trtllm  target-capability: expected sm_100 to "
        "sm_109, got sm_90; compile for cuda:sm_100"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  for (const char *part :
       {"\"target\": \"cuda:sm_90\"", "\"backend\": \"marlin\"",
        "\"constraint\": \"target-capability\"",
        "\"remedy\": \"compile for cuda:sm_100\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
}

/// A layer of any numbers, sound ones and others.
LayerInfo randomLayer(std::mt19937 &random) {
  auto pick = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  LayerInfo layer;
  for (WeightSpec *w : {&layer.w13, &layer.w2}) {
    w->code = static_cast<CodeType>(random() % 8);
    w->group =
        pick({-1, -1, 32, 64, 128, 128, 0, 24, -7, INT64_MAX, INT64_MIN});
    w->layout = random() % 16 ? findLayout(int64_t(random() % 13)) : nullptr;
    w->experts = pick({8, 8, 8, 0, -1, INT64_MAX});
    w->scale = static_cast<ScalarType>(random() % 10);
    w->zeros = static_cast<ZeroPoints>(random() % 3);
    w->actOrder = static_cast<ActOrder>(random() % 3);
    w->halves = pick({1, 2, 2, 0});
  }
  if (random() % 2)
    layer.w2 = layer.w13;
  setExtents(layer, pick({512, 512, 2880, 100, 0, -4, INT64_MAX}),
             pick({256, 96, 192, 1, INT64_MAX - 1}));
  layer.experts = layer.globalExperts = pick({8, 8, 1024, 0, INT64_MAX});
  layer.topK = pick({1, 2, 8, 0, -1});
  layer.element = static_cast<ScalarType>(random() % 3);
  layer.activation = static_cast<Activation>(random() % 6);
  if (random() % 2)
    layer.limit = 7.0;
  layer.activationType = static_cast<ActivationType>(random() % 3);
  layer.gated = layer.w13.halves == 2;
  layer.batched = random() % 4 == 0;
  layer.hasBias = random() % 4 == 0;
  layer.hasExpertMap = random() % 4 == 0;
  layer.routerWeightOnInput = random() % 4 == 0;
  layer.batchInvariant = random() % 4 == 0;
  if (random() % 2) {
    LayerInfo::Routing routing;
    routing.scoring = static_cast<Scoring>(random() % 2);
    routing.correction = random() % 2;
    routing.groups = pick({1, 8, 0, -1});
    layer.routing = routing;
  }
  return layer;
}

TEST(Selection, B26_AProbeNeverFailsWhateverTheNumbers) {
  std::mt19937 random(7);
  const char *requests[] = {
      "auto", "marlin",   "humming", "flashinfer_trtllm", "emulation", "cpu",
      "xpu",  "nonsense", ""};
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    LayerInfo layer = randomLayer(random);
    TargetAttr target = makeTarget(
        static_cast<TargetKind>(random() % 3), random() % 2 ? 100 : 0,
        random() % 2 ? std::vector<std::string>{"flashinfer", "humming"}
                     : std::vector<std::string>{});
    Rules rules = random() % 2 ? Rules::Native : Rules::VLLM;
    Selection selection = selectBackend(
        layer, target, requests[random() % std::size(requests)], rules);
    if (!selection.chosen) {
      EXPECT_FALSE(selection.message.empty());
      continue;
    }
    ++taken;
    EXPECT_TRUE(selection.chosen->reject(layer, target, rules).empty());
    if (rules == Rules::VLLM)
      continue;
    layer.capability = target.getCapability();
    EXPECT_TRUE(storageOf(
        selection.chosen->prepared(layer, layer.w13, Projection::W13)));
    EXPECT_TRUE(
        storageOf(selection.chosen->prepared(layer, layer.w2, Projection::W2)));
  }
  EXPECT_GT(taken, 20);
}

/// The smallest backend that another library could bring.
class ForeignBackend : public Backend {
public:
  llvm::StringRef name() const override { return "foreign"; }
  llvm::StringRef summary() const override { return "for the test"; }
  llvm::ArrayRef<Constraint> constraints(Rules) const override {
    static const Constraint table[] = {
        {"int8-only",
         [](const LayerInfo &layer,
            TargetAttr) -> std::optional<Constraint::Verdict> {
           if (layer.activationType == ActivationType::int8)
             return std::nullopt;
           return Constraint::Verdict{"expected int8", ""};
         }}};
    return table;
  }
  WeightSpec prepared(const LayerInfo &, const WeightSpec &source,
                      Projection) const override {
    return source;
  }
  llvm::StringRef kernel() const override { return "foreign_experts"; }
};

/// The last test of the binary, since what it registers stays.
TEST(RegistryOfOthers, AnotherLibraryAddsABackendThatComesLast) {
  EXPECT_FALSE(BackendRegistry::get().add(nullptr));
  EXPECT_TRUE(BackendRegistry::get().add(std::make_unique<ForeignBackend>()));
  EXPECT_FALSE(BackendRegistry::get().add(std::make_unique<ForeignBackend>()));
  Selection selection = selectBackend(hopeless(), makeTarget(TargetKind::cpu),
                                      "auto", Rules::Native);
  ASSERT_TRUE(selection.chosen);
  EXPECT_EQ(selection.chosen->name(), "foreign");
  EXPECT_EQ(selection.candidates.size(), 4u);
}

} // namespace
