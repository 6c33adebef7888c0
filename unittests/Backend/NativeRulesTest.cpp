//===- NativeRulesTest.cpp - One test for each native rule ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace wna16;
using namespace wna16::test;

namespace {

#define CHANGE [](LayerInfo & layer, TargetAttr & target)
#define UNUSED (void)layer, (void)target

using Change = std::function<void(LayerInfo &, TargetAttr &)>;

const Change wrongKind = CHANGE {
  UNUSED;
  target = makeTarget(target.getKind() == TargetKind::cpu ? TargetKind::xpu
                                                          : TargetKind::cpu);
};
const Change sm75 = CHANGE {
  UNUSED;
  target = makeTarget(TargetKind::cuda, 75, {"flashinfer", "humming"});
};
const Change zeroGroup = CHANGE {
  UNUSED;
  layer.w13.group = 0;
};
const Change denseF32 = CHANGE {
  UNUSED;
  setDense(layer.w2);
  layer.w2.element = ScalarType::F32;
};
const Change denseW2 = CHANGE {
  UNUSED;
  setDense(layer.w2);
};
const Change eightBits = CHANGE {
  UNUSED;
  setBits8(layer);
};
const Change fp8Code = CHANGE {
  UNUSED;
  layer.w13.code = CodeType::U4FP8;
};
const Change foldedScale = CHANGE {
  UNUSED;
  layer.w2.scale = ScalarType::I16;
};
const Change asymmetric = CHANGE {
  UNUSED;
  setAsymmetric(layer);
};
const Change asymmetric8 = CHANGE {
  UNUSED;
  setBits8(layer);
  setAsymmetric(layer);
};
const Change oddGroup = CHANGE {
  UNUSED;
  layer.w13.group = 24;
};
const Change shortGroup = CHANGE {
  UNUSED;
  layer.w13.group = 384;
};
const Change actOrder = CHANGE {
  UNUSED;
  setActOrder(layer);
};
const Change actOrderInt8 = CHANGE {
  UNUSED;
  setActOrder(layer);
  layer.activationType = ActivationType::int8;
};
const Change f32Scales = CHANGE {
  UNUSED;
  layer.w13.scale = ScalarType::F32;
};
const Change f32Elements = CHANGE {
  UNUSED;
  layer.element = ScalarType::F32;
};
const Change notGated = CHANGE {
  UNUSED;
  layer.gated = false;
  layer.w13.halves = 1;
};
const Change notGatedOAI = CHANGE {
  UNUSED;
  layer.gated = false;
  layer.w13.halves = 1;
  layer.activation = Activation::swigluoai;
};
const Change step = CHANGE {
  UNUSED;
  layer.activation = Activation::swiglustep;
};
const Change limit = CHANGE {
  UNUSED;
  layer.limit = 7.0;
};
const Change int8 = CHANGE {
  UNUSED;
  layer.activationType = ActivationType::int8;
};
const Change fp8 = CHANGE {
  UNUSED;
  layer.activationType = ActivationType::fp8;
};
const Change fp8Bits8 = CHANGE {
  UNUSED;
  layer.activationType = ActivationType::fp8;
  setBits8(layer);
  target = makeTarget(TargetKind::cuda, 89);
};
const Change bias = CHANGE {
  UNUSED;
  layer.hasBias = true;
};
const Change expertMap = CHANGE {
  UNUSED;
  layer.hasExpertMap = true;
  layer.globalExperts = 16;
};
const Change batched = CHANGE {
  UNUSED;
  layer.batched = true;
};
const Change standard = CHANGE {
  UNUSED;
  layer.batched = false;
};
const Change onInput = CHANGE {
  UNUSED;
  layer.routerWeightOnInput = true;
};
const Change invariant = CHANGE {
  UNUSED;
  layer.batchInvariant = true;
};
const Change hidden544 = CHANGE {
  UNUSED;
  forBoth(layer, [](WeightSpec &w) { w.group = 32; });
  setExtents(layer, 544, 256);
};
const Change sorted96 = CHANGE {
  UNUSED;
  forBoth(layer, [](WeightSpec &w) { w.group = 32; });
  setActOrder(layer);
  setExtents(layer, 512, 96);
};
/// A code that needs zero points, without: the layout itself objects.
const Change noZeros = CHANGE {
  UNUSED;
  layer.w13.code = CodeType::U4;
};

std::vector<Row> makeRows() {
  std::vector<Row> rows;
  auto add = [&](std::vector<const char *> backends, const char *constraint,
                 const char *reason, const char *remedy, Change change) {
    for (const char *name : backends)
      rows.push_back({name, constraint, reason, remedy, change});
  };
  const std::vector<const char *> all = {"flashinfer_trtllm",
                                         "marlin",
                                         "batched_marlin",
                                         "humming",
                                         "cuda",
                                         "cpu",
                                         "xpu",
                                         "emulation",
                                         "emulation_otf"};
  const std::vector<const char *> marlins = {"marlin", "batched_marlin"};
  const std::vector<const char *> cuda = {"marlin", "batched_marlin",
                                          "humming"};
  const std::vector<const char *> packed = {"flashinfer_trtllm", "marlin",
                                            "batched_marlin", "humming"};
  const std::vector<const char *> devices = {
      "flashinfer_trtllm", "marlin", "batched_marlin", "humming", "xpu"};

  add(all, "weights", "with group 0 and w2 [8, 256, 512]", "give -1",
      zeroGroup);
  add({"flashinfer_trtllm", "marlin", "batched_marlin", "humming", "cuda"},
      "target-kind", "expected a cuda target, got cpu", "compile for cuda",
      wrongKind);
  add({"cpu"}, "target-kind", "expected a cpu target, got xpu",
      "compile for cpu", wrongKind);
  add({"xpu"}, "target-kind", "expected a xpu target, got cpu",
      "compile for xpu", wrongKind);
  add({"marlin", "batched_marlin", "humming", "cuda"}, "target-capability",
      "expected at least sm_80, got sm_75", "compile for cuda:sm_80", sm75);
  add({"flashinfer_trtllm"}, "target-capability",
      "expected sm_100 to sm_109, got sm_75", "compile for cuda:sm_100", sm75);
  add(
      {"flashinfer_trtllm"}, "target-library",
      "expected the library flashinfer", "libraries = [\"flashinfer\"]",
      CHANGE {
        UNUSED;
        target = makeTarget(TargetKind::cuda, 100);
      });
  add(packed, "dense-weight", "got w2 of dense bf16", "quantise", denseW2);
  add({"cuda", "xpu"}, "dense-weight",
      "expected dense weights of f16, bf16, got w2 of dense f32",
      "convert it to f16, bf16", denseF32);
  add({"flashinfer_trtllm", "xpu"}, "weight-bits",
      "expected 4-bit weights, got bits=8 of w13", "quantise to 4 bits",
      eightBits);
  add(all, "weight-code", "of w13, got u4fp8", "checkpoint", fp8Code);
  add(all, "weight-code", "of w2, got u4b8 with scales folded to i16",
      "checkpoint", foldedScale);
  add(marlins, "zero-points", "bits=8, group=128 with zero points (plain)",
      "quantise symmetrically", asymmetric8);
  add({"xpu"}, "zero-points", "bits=4, group=128 with zero points (plain)",
      "quantise symmetrically", asymmetric);
  add({"flashinfer_trtllm"}, "zero-points",
      "bits=4, group=32 with zero points (plain)", "quantise symmetrically",
      asymmetric);
  add(cuda, "group-size",
      "expected group (24) of w13 to be -1 or a multiple "
      "of 16",
      "quantise with group 32", oddGroup);
  add({"flashinfer_trtllm"}, "group-size", "expected group 32 of w13, got 384",
      "regroup to 32", shortGroup);
  add({"flashinfer_trtllm"}, "group-size", "expected group 32 of w13, got 24",
      "quantise with group 32", oddGroup);
  add(marlins, "group-divides",
      "expected w13's input (512) to be a multiple of its group 384",
      "pad to 768", shortGroup);
  add(
      {"flashinfer_trtllm"}, "group-divides",
      "expected w13's input (528) to be a multiple of its group 32",
      "pad to 544", CHANGE {
        UNUSED;
        setExtents(layer, 528, 256);
      });
  add({"flashinfer_trtllm", "humming", "xpu"}, "act-order",
      "expected w13 without act-order, got index", "desc_act = false",
      actOrder);
  add(marlins, "act-order",
      "expected 16-bit activations with act-order of w13, got int8",
      "activation_type a16", actOrderInt8);
  add(devices, "scale-type", "got f32 scales of w13 with bf16 activations",
      "convert the scales to bf16", f32Scales);
  add(devices, "element-type", "got f32 activations with f16 scales",
      "run the layer in", f32Elements);
  add({"cuda"}, "element-type", "got f32 activations with f16 scales",
      "run the layer in f16, bf16", f32Elements);
  add(
      {"flashinfer_trtllm"}, "element-type",
      "expected activations bf16, got f16 activations with f16 scales",
      "run the layer in bf16", CHANGE {
        UNUSED;
        layer.element = ScalarType::F16;
      });
  add({"flashinfer_trtllm"}, "gate", "got w13 of 1 half", "", notGated);
  add({"marlin", "batched_marlin", "humming", "cuda", "cpu", "xpu", "emulation",
       "emulation_otf"},
      "activation", "got swigluoai without a gate", "", notGatedOAI);
  add({"flashinfer_trtllm", "xpu"}, "activation", "got swiglustep", "", step);
  add(
      {"flashinfer_trtllm"}, "activation", "expected activation silu, got gelu",
      "", CHANGE {
        UNUSED;
        layer.activation = Activation::gelu;
      });
  add({"flashinfer_trtllm"}, "activation-limit",
      "expected no limit of the activation, got 7", "", limit);
  add({"flashinfer_trtllm", "humming", "cuda", "cpu", "xpu", "emulation",
       "emulation_otf"},
      "activation-type", "expected 16-bit activations, got int8",
      "activation_type a16", int8);
  add({"flashinfer_trtllm", "humming", "cuda", "cpu", "xpu", "emulation",
       "emulation_otf"},
      "activation-type", "expected 16-bit activations, got fp8",
      "activation_type a16", fp8);
  add(marlins, "activation-type",
      "expected 4-bit weights with fp8 activations, got bits=8 of w13",
      "a16 or int8", fp8Bits8);
  add(marlins, "target-capability", "expected at least sm_89, got sm_80",
      "cuda:sm_89", fp8);
  add({"flashinfer_trtllm"}, "bias", "experts without bias", "", bias);
  add({"flashinfer_trtllm"}, "expert-map", "got 8 of 16 experts here",
      "keep all experts", expertMap);
  add({"flashinfer_trtllm", "marlin", "xpu"}, "token-layout",
      "expected tokens [M, K], got batched ones [E, T, K]", "batched backend",
      batched);
  add({"batched_marlin"}, "token-layout",
      "expected batched tokens [E, T, K], got [M, K]", "standard layout",
      standard);
  add({"flashinfer_trtllm", "humming"}, "router-weight-on-input",
      "got router_weight_on_input", "", onInput);
  add(
      {"flashinfer_trtllm"}, "routing", "got routing method Default", "",
      CHANGE {
        UNUSED;
        layer.routing->renormalize = false;
      });
  add(
      {"flashinfer_trtllm"}, "routing", "got routing method Unspecified", "",
      CHANGE {
        UNUSED;
        layer.routing.reset();
      });
  add(
      {"flashinfer_trtllm"}, "routing",
      "got routing method Renormalize with 4 groups", "", CHANGE {
        UNUSED;
        layer.routing->groups = 4;
      });
  add(
      {"flashinfer_trtllm"}, "router-logits",
      "with routing method Renormalize, got f32", "16 bits", CHANGE {
        UNUSED;
        layer.routing->logits = ScalarType::F32;
      });
  add({"flashinfer_trtllm", "humming"}, "batch-invariant",
      "got batch_invariant", "", invariant);
  add(marlins, "hidden-multiple",
      "expected hidden size (544) to be a multiple of 64", "pad to 576",
      hidden544);
  add({"flashinfer_trtllm"}, "hidden-multiple",
      "expected hidden size (544) to be a multiple of 256", "pad to 768",
      hidden544);
  add(marlins, "intermediate-multiple",
      "expected intermediate size with act-order (96) to be a multiple of 64",
      "pad to 128", sorted96);
  add(
      {"flashinfer_trtllm"}, "experts", "expected at most 512 experts, got 513",
      "", CHANGE {
        UNUSED;
        layer.globalExperts = 513;
      });
  add(
      {"flashinfer_trtllm"}, "top-k",
      "expected at most 8 experts a token, got 9", "", CHANGE {
        UNUSED;
        layer.topK = 9;
      });
  add(all, "storage", "w13: expected zero points with code u4", "", noZeros);
  add(
      {"xpu"}, "storage", "expected input (513) to be a multiple of 2",
      "pad to 514", CHANGE {
        UNUSED;
        setExtents(layer, 513, 256);
      });
  return rows;
}

const std::vector<Row> &rows() {
  static const std::vector<Row> rows = makeRows();
  return rows;
}

class NativeRules : public testing::TestWithParam<size_t> {};

TEST_P(NativeRules, RejectsWithNumbersAndRemedy) {
  const Row &row = rows()[GetParam()];
  LayerInfo layer = acceptedLayer(row.backend);
  TargetAttr target = acceptedTarget(row.backend);
  const Backend &asked = backend(row.backend);
  for (const Rejection &rejection : asked.reject(layer, target, Rules::Native))
    FAIL() << "accepted layer: " << rejection.constraint << ": "
           << rejection.reason;
  row.change(layer, target);
  std::string all;
  for (const Rejection &rejection :
       asked.reject(layer, target, Rules::Native)) {
    all += rejection.constraint + ": " + rejection.reason + "; " +
           rejection.remedy + "\n";
    if (rejection.constraint != row.constraint)
      continue;
    EXPECT_NE(rejection.reason.find(row.reason), std::string::npos)
        << rejection.reason;
    EXPECT_NE(rejection.remedy.find(row.remedy), std::string::npos)
        << rejection.remedy;
    EXPECT_EQ(rejection.remedy.empty(), !*row.remedy) << rejection.remedy;
    return;
  }
  FAIL() << "expected a rejection by " << row.constraint << ", got\n" << all;
}

INSTANTIATE_TEST_SUITE_P(Rows, NativeRules,
                         testing::Range<size_t>(0, rows().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return rowName(rows()[info.param], info.param);
                         });

/// What a backend takes in every form has no row; each such pair is named.
TEST(NativeRulesTable, EveryConstraintHasARowOrIsUnrestricted) {
  const std::pair<const char *, std::vector<const char *>> free[] = {
      {"flashinfer_trtllm", {"intermediate-multiple"}},
      {"marlin",
       {"target-library", "weight-bits", "gate", "activation-limit", "bias",
        "expert-map", "router-weight-on-input", "routing", "router-logits",
        "batch-invariant", "experts", "top-k"}},
      {"batched_marlin",
       {"target-library", "weight-bits", "gate", "activation-limit", "bias",
        "expert-map", "router-weight-on-input", "routing", "router-logits",
        "batch-invariant", "experts", "top-k"}},
      {"humming",
       {"target-library", "weight-bits", "zero-points", "group-divides", "gate",
        "activation-limit", "bias", "expert-map", "token-layout", "routing",
        "router-logits", "hidden-multiple", "intermediate-multiple", "experts",
        "top-k"}},
      {"cuda",
       {"target-library",
        "weight-bits",
        "zero-points",
        "group-size",
        "group-divides",
        "act-order",
        "scale-type",
        "gate",
        "activation-limit",
        "bias",
        "expert-map",
        "token-layout",
        "router-weight-on-input",
        "routing",
        "router-logits",
        "batch-invariant",
        "hidden-multiple",
        "intermediate-multiple",
        "experts",
        "top-k"}},
      {"cpu",
       {"target-capability",
        "target-library",
        "dense-weight",
        "weight-bits",
        "zero-points",
        "group-size",
        "group-divides",
        "act-order",
        "scale-type",
        "element-type",
        "gate",
        "activation-limit",
        "bias",
        "expert-map",
        "token-layout",
        "router-weight-on-input",
        "routing",
        "router-logits",
        "batch-invariant",
        "hidden-multiple",
        "intermediate-multiple",
        "experts",
        "top-k"}},
      {"xpu",
       {"target-capability", "target-library", "group-size", "group-divides",
        "gate", "activation-limit", "bias", "expert-map",
        "router-weight-on-input", "routing", "router-logits", "batch-invariant",
        "hidden-multiple", "intermediate-multiple", "experts", "top-k"}},
      {"emulation",
       {"target-kind",
        "target-capability",
        "target-library",
        "dense-weight",
        "weight-bits",
        "zero-points",
        "group-size",
        "group-divides",
        "act-order",
        "scale-type",
        "element-type",
        "gate",
        "activation-limit",
        "bias",
        "expert-map",
        "token-layout",
        "router-weight-on-input",
        "routing",
        "router-logits",
        "batch-invariant",
        "hidden-multiple",
        "intermediate-multiple",
        "experts",
        "top-k"}},
  };
  for (const Backend *asked : BackendRegistry::get().all()) {
    llvm::StringRef key =
        asked->name() == "emulation_otf" ? "emulation" : asked->name();
    std::set<std::string> unrestricted;
    for (const auto &[name, constraints] : free)
      if (key == name)
        unrestricted.insert(constraints.begin(), constraints.end());
    for (const Constraint &constraint : asked->constraints(Rules::Native)) {
      bool tested = llvm::any_of(rows(), [&](const Row &row) {
        return asked->name() == row.backend &&
               constraint.name == llvm::StringRef(row.constraint);
      });
      EXPECT_NE(tested, unrestricted.count(constraint.name.str()) == 1)
          << asked->name().str() << " " << constraint.name.str();
    }
  }
}

} // namespace
