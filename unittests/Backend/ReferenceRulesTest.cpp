//===- ReferenceRulesTest.cpp - One test for each rule of the reference ---===//
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

TargetAttr blackwell() {
  return makeTarget(TargetKind::cuda, 100, {"flashinfer", "humming"});
}

/// A layer and target that the backend's class takes by the reference rules.
LayerInfo referenceLayer(llvm::StringRef name) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8,
                              name == "flashinfer_trtllm" ? 32 : 128);
  layer.batched = name == "batched_marlin";
  layer.deployment.flashinferInt4 = true;
  return layer;
}

TargetAttr referenceTarget(llvm::StringRef name) {
  if (name == "cpu")
    return makeTarget(TargetKind::cpu, 0, {}, {"amx-tile"});
  if (name == "xpu")
    return makeTarget(TargetKind::xpu);
  return blackwell();
}

const Change onCpu = CHANGE {
  UNUSED;
  target = makeTarget(TargetKind::cpu);
};
const Change onCuda = CHANGE {
  UNUSED;
  target = makeTarget(TargetKind::cuda, 90, {"flashinfer"});
};
const Change sm70 = CHANGE {
  UNUSED;
  target = makeTarget(TargetKind::cuda, 70, {"humming"});
};
const Change notGated = CHANGE {
  UNUSED;
  layer.gated = false;
  layer.w13.halves = 1;
};
const Change relu2 = CHANGE {
  UNUSED;
  layer.activation = Activation::relu2;
};
const Change oai = CHANGE {
  UNUSED;
  layer.activation = Activation::swigluoai;
};
const Change step = CHANGE {
  UNUSED;
  layer.activation = Activation::swiglustep;
};
const Change asymmetric = CHANGE {
  UNUSED;
  setAsymmetric(layer);
};
const Change eightBits = CHANGE {
  UNUSED;
  setBits8(layer);
};
const Change small = CHANGE {
  UNUSED;
  forBoth(layer, [](WeightSpec &w) { w.group = 32; });
};
const Change twoSided = CHANGE {
  UNUSED;
  layer.deployment.allToAll = "flashinfer_nvlink_two_sided";
};
const Change oneSided = CHANGE {
  UNUSED;
  layer.deployment.allToAll = "flashinfer_nvlink_one_sided";
};
const Change balanced = CHANGE {
  UNUSED;
  layer.deployment.loadBalancing = true;
};
const Change sigmoid = CHANGE {
  UNUSED;
  layer.routing->scoring = Scoring::sigmoid;
};
const Change batched = CHANGE {
  UNUSED;
  layer.batched = true;
};
const Change standard = CHANGE {
  UNUSED;
  layer.batched = false;
};
const Change invariant = CHANGE {
  UNUSED;
  layer.batchInvariant = true;
};
const Change lora = CHANGE {
  UNUSED;
  layer.deployment.lora = true;
};
const Change manyExperts = CHANGE {
  UNUSED;
  layer.globalExperts = 993;
};

std::vector<Row> makeRows() {
  std::vector<Row> rows;
  auto add = [&](std::vector<const char *> backends, const char *constraint,
                 const char *what, Change change) {
    for (const char *name : backends)
      rows.push_back({name, constraint, what, "", change});
  };
  add({"flashinfer_trtllm", "marlin", "batched_marlin", "humming", "emulation",
       "emulation_otf", "cpu", "xpu"},
      "device", "kernel does not support current device cpu", onCpu);
  add({"flashinfer_trtllm", "humming", "cpu", "xpu"}, "device",
      "kernel does not support current device cuda", onCuda);
  add({"marlin", "batched_marlin", "humming"}, "device",
      "kernel does not support current device cuda", sm70);
  add(
      {"flashinfer_trtllm"}, "device",
      "kernel does not support current device cuda", CHANGE {
        UNUSED;
        layer.deployment.flashinferInt4 = false;
      });
  add({"flashinfer_trtllm", "cpu"}, "act-and-mul",
      "kernel does not support no act_and_mul MLP layer", notGated);
  add({"emulation_otf"}, "activation",
      "kernel does not support silu_no_mul activation", notGated);
  add({"xpu"}, "activation", "kernel does not support silu_no_mul activation",
      notGated);
  add({"flashinfer_trtllm", "marlin", "batched_marlin", "humming", "emulation",
       "emulation_otf", "cpu", "xpu"},
      "activation", "kernel does not support relu2 activation", relu2);
  add({"flashinfer_trtllm", "humming", "emulation_otf", "cpu", "xpu"},
      "activation", "kernel does not support swigluoai_uninterleave activation",
      oai);
  add({"flashinfer_trtllm", "emulation_otf", "cpu", "xpu"}, "activation",
      "kernel does not support swiglustep activation", step);
  add({"flashinfer_trtllm"}, "quantization-scheme",
      "kernel does not support quantization scheme I4g32asymxnone", asymmetric);
  add({"cpu", "xpu"}, "quantization-scheme",
      "kernel does not support quantization scheme I4asymxnone", asymmetric);
  add({"flashinfer_trtllm", "cpu", "xpu"}, "quantization-scheme",
      "kernel does not support quantization scheme I8xnone", eightBits);
  add({"cpu"}, "quantization-scheme",
      "kernel does not support quantization scheme I4g32xnone", small);
  add({"flashinfer_trtllm", "marlin", "batched_marlin", "humming", "emulation"},
      "parallel-config",
      "kernel does not support parallel config "
      "<all2all=flashinfer_nvlink_two_sided, eplb=False>",
      twoSided);
  add({"flashinfer_trtllm", "humming", "emulation"}, "parallel-config",
      "kernel does not support parallel config "
      "<all2all=flashinfer_nvlink_one_sided, eplb=False>",
      oneSided);
  add({"flashinfer_trtllm"}, "parallel-config",
      "kernel does not support parallel config <all2all=none, eplb=True>",
      balanced);
  add({"flashinfer_trtllm", "cpu"}, "routing-method",
      "kernel does not support routing method Unspecified", sigmoid);
  add(
      {"flashinfer_trtllm"}, "routing-method",
      "kernel does not support routing method Default", CHANGE {
        UNUSED;
        layer.routing->renormalize = false;
      });
  add(
      {"cpu"}, "routing-method",
      "kernel does not support routing method Llama4", CHANGE {
        UNUSED;
        layer.topK = 1;
        layer.routing->scoring = Scoring::sigmoid;
      });
  add(
      {"flashinfer_trtllm"}, "router-logits",
      "kernel does not support router logits dtype f32", CHANGE {
        UNUSED;
        layer.routing->logits = ScalarType::F32;
      });
  add({"flashinfer_trtllm", "marlin", "cpu", "xpu", "emulation",
       "emulation_otf"},
      "activation-format", "kernel does not support Batched activation format",
      batched);
  add({"batched_marlin"}, "activation-format",
      "kernel does not support Standard activation format", standard);
  add({"flashinfer_trtllm", "humming", "cpu", "xpu"}, "batch-invariance",
      "kernel does not support batch invariance", invariant);
  add({"flashinfer_trtllm", "batched_marlin", "humming", "cpu", "xpu"}, "lora",
      "kernel does not support LoRA", lora);
  add({"emulation", "emulation_otf"}, "padded-experts",
      "kernel's moe_align_block_size requires fewer than 1024 padded experts",
      manyExperts);
  return rows;
}

const std::vector<Row> &rows() {
  static const std::vector<Row> rows = makeRows();
  return rows;
}

class ReferenceRules : public testing::TestWithParam<size_t> {};

TEST_P(ReferenceRules, GivesTheFirstReasonWordForWord) {
  const Row &row = rows()[GetParam()];
  LayerInfo layer = referenceLayer(row.backend);
  TargetAttr target = referenceTarget(row.backend);
  const Backend &asked = backend(row.backend);
  for (const Rejection &rejection : asked.reject(layer, target, Rules::VLLM))
    FAIL() << "accepted layer: " << rejection.constraint << ": "
           << rejection.reason;
  row.change(layer, target);
  auto rejections = asked.reject(layer, target, Rules::VLLM);
  ASSERT_EQ(rejections.size(), 1u);
  EXPECT_EQ(rejections[0].constraint, row.constraint);
  EXPECT_EQ(rejections[0].reason, row.reason);
}

INSTANTIATE_TEST_SUITE_P(Rows, ReferenceRules,
                         testing::Range<size_t>(0, rows().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           return rowName(rows()[info.param], info.param);
                         });

TEST(ReferenceRulesTable, EveryConstraintHasARowOrIsUnrestricted) {
  const std::set<std::string> free[] = {
      /*flashinfer_trtllm*/ {"padded-experts"},
      /*marlin*/
      {"act-and-mul", "quantization-scheme", "routing-method", "router-logits",
       "batch-invariance", "lora", "padded-experts"},
      /*batched_marlin*/
      {"act-and-mul", "quantization-scheme", "routing-method", "router-logits",
       "batch-invariance", "padded-experts"},
      /*humming*/
      {"act-and-mul", "quantization-scheme", "routing-method", "router-logits",
       "activation-format", "padded-experts"},
      /*cuda*/ {"absent"},
      /*cpu*/ {"parallel-config", "router-logits", "padded-experts"},
      /*xpu*/
      {"act-and-mul", "parallel-config", "routing-method", "router-logits",
       "padded-experts"},
      /*emulation*/
      {"act-and-mul", "quantization-scheme", "routing-method", "router-logits",
       "batch-invariance", "lora"},
      /*emulation_otf*/
      {"act-and-mul", "quantization-scheme", "parallel-config",
       "routing-method", "router-logits", "batch-invariance", "lora"},
  };
  size_t index = 0;
  for (const Backend *asked : BackendRegistry::get().all()) {
    if (index == std::size(free))
      break; // backends that a test registers
    for (const Constraint &constraint : asked->constraints(Rules::VLLM)) {
      bool tested = llvm::any_of(rows(), [&](const Row &row) {
        return asked->name() == row.backend &&
               constraint.name == llvm::StringRef(row.constraint);
      });
      EXPECT_NE(tested, free[index].count(constraint.name.str()) == 1)
          << asked->name().str() << " " << constraint.name.str();
    }
    ++index;
  }
}

Selection select(const LayerInfo &layer, TargetAttr target,
                 llvm::StringRef request = "auto") {
  return selectBackend(layer, target, request, Rules::VLLM);
}

std::string chosen(const Selection &selection) {
  return selection.chosen ? selection.chosen->name().str() : "";
}

TEST(ReferenceSelection, OrderOnCuda) {
  LayerInfo layer = referenceLayer("flashinfer_trtllm");
  EXPECT_EQ(chosen(select(layer, blackwell())), "flashinfer_trtllm");
  layer.deployment.flashinferInt4 = false;
  EXPECT_EQ(chosen(select(layer, blackwell())), "marlin");
  layer.batched = true;
  EXPECT_EQ(chosen(select(layer, blackwell())), "batched_marlin");
  layer.batched = false;
  layer.deployment.allToAll = "flashinfer_nvlink_two_sided";
  Selection last = select(layer, blackwell());
  EXPECT_EQ(chosen(last), "emulation_otf");
  std::vector<std::string> asked;
  for (const Selection::Candidate &candidate : last.candidates)
    asked.push_back(candidate.backend->name().str());
  EXPECT_EQ(asked, (std::vector<std::string>{"flashinfer_trtllm", "marlin",
                                             "batched_marlin", "humming",
                                             "emulation_otf"}));
}

TEST(ReferenceSelection, OneBackendOnCpuAndXpu) {
  EXPECT_EQ(chosen(select(referenceLayer("cpu"), referenceTarget("cpu"))),
            "cpu");
  EXPECT_EQ(chosen(select(referenceLayer("xpu"), referenceTarget("xpu"))),
            "xpu");
  Selection none = select(referenceLayer("cpu"), makeTarget(TargetKind::cpu));
  EXPECT_EQ(chosen(none), "");
  EXPECT_EQ(none.message,
            "NotImplementedError: no backend supports the deployment "
            "configuration; WNA16 MoE backend 'CPU' does not support the "
            "deployment configuration since kernel does not support current "
            "device cpu.");
}

TEST(ReferenceSelection, NamesThatCannotBeAskedFor) {
  for (const char *name : {"cpu", "xpu", "batched_marlin", "emulation_otf"}) {
    Selection selection = select(referenceLayer("marlin"), blackwell(), name);
    EXPECT_EQ(chosen(selection), "");
    EXPECT_EQ(selection.message,
              std::string("ValueError: expected marlin, humming, "
                          "flashinfer_trtllm, emulation or auto, got '") +
                  name + "'");
  }
}

TEST(ReferenceSelection, AnExplicitNameOnAnotherPlatformFallsBackToAuto) {
  Selection selection =
      select(referenceLayer("cpu"), referenceTarget("cpu"), "marlin");
  EXPECT_EQ(chosen(selection), "cpu");
  EXPECT_NE(selection.message.find("'marlin' is not supported on this "
                                   "platform; falling back to auto"),
            std::string::npos);
}

TEST(ReferenceSelection, AnExplicitNameThatDoesNotFitIsAnError) {
  LayerInfo layer = referenceLayer("marlin");
  layer.batched = true;
  Selection selection = select(layer, blackwell(), "marlin");
  EXPECT_EQ(chosen(selection), "");
  EXPECT_NE(selection.message.find(
                "ValueError: requested backend 'marlin' does not support the "
                "quantization configuration; use auto"),
            std::string::npos);
  EXPECT_NE(selection.message.find(
                "WNA16 MoE backend 'MARLIN' does not support the deployment "
                "configuration since kernel does not support Batched "
                "activation format."),
            std::string::npos);
}

TEST(ReferenceSelection, EmulationNamesItsClassesInOrder) {
  LayerInfo layer = referenceLayer("emulation");
  EXPECT_EQ(chosen(select(layer, blackwell(), "emulation")), "emulation_otf");
  layer.activation = Activation::swiglustep;
  Selection selection = select(layer, blackwell(), "emulation");
  EXPECT_EQ(chosen(selection), "emulation");
  EXPECT_EQ(selection.message, "EMULATION (Int4EmulationTriton)");
  setBits8(layer);
  EXPECT_EQ(select(layer, blackwell(), "emulation").message,
            "EMULATION (Int8EmulationTriton)");
}

TEST(ReferenceSelection, HummingTakesNoCompressedTensors) {
  LayerInfo layer = makeLayer("gptq");
  EXPECT_EQ(select(layer, blackwell(), "humming").message,
            "HUMMING (HummingIndexed)");
  layer.deployment.hummingGemm = "Grouped_Contiguous";
  EXPECT_EQ(select(layer, blackwell(), "humming").message,
            "HUMMING (HummingGrouped)");
  layer.batched = true;
  EXPECT_EQ(select(layer, blackwell(), "humming").message,
            "HUMMING (BatchedHummingGrouped)");
  Selection refused = select(referenceLayer("humming"), blackwell(), "humming");
  EXPECT_EQ(chosen(refused), "");
  EXPECT_EQ(refused.message, "TypeError: HUMMING converts AutoGPTQ and "
                             "AutoAWQ, got compressed-tensors");
}

TEST(ReferenceSelection, ConversionRefusesWhatSelectionLetsThrough) {
  LayerInfo sorted = makeLayer("gptq");
  setActOrder(sorted);
  EXPECT_EQ(chosen(select(sorted, blackwell(), "marlin")), "marlin");
  EXPECT_NE(select(sorted, blackwell(), "humming").message.find("desc_act"),
            std::string::npos);
  EXPECT_NE(select(sorted, referenceTarget("cpu"))
                .message.find("NotImplementedError"),
            std::string::npos);
  LayerInfo awq = makeLayer("awq");
  EXPECT_NE(select(awq, blackwell(), "marlin").message.find("qzeros"),
            std::string::npos);
  setAsymmetric(awq);
  EXPECT_EQ(chosen(select(awq, blackwell(), "marlin")), "marlin");
  awq.w2 = makeLayer("awq").w2;
  EXPECT_NE(select(awq, blackwell(), "marlin").message.find("qzeros"),
            std::string::npos);
}

TEST(ReferenceSelection, KeysFollowTheMethod) {
  // GPTQ with groups of 32 is I4, and so never reaches FLASHINFER.
  LayerInfo gptq = makeLayer("gptq", CodeType::U4B8, 32);
  gptq.deployment.flashinferInt4 = true;
  EXPECT_EQ(chosen(select(gptq, blackwell())), "marlin");
  // AWQ is I4 even with zero points, which XPU takes.
  LayerInfo awq = makeLayer("awq");
  setAsymmetric(awq);
  EXPECT_EQ(chosen(select(awq, referenceTarget("xpu"))), "xpu");
  LayerInfo asymmetric = makeLayer("gptq");
  setAsymmetric(asymmetric);
  EXPECT_EQ(select(asymmetric, blackwell()).message,
            "ValueError: AutoGPTQ takes bits 4 or 8 with sym=True, got bits=4, "
            "sym=False");
  LayerInfo dense = makeLayer("gptq");
  setDense(dense.w2);
  EXPECT_EQ(chosen(select(dense, blackwell())), "");
}

struct PreFilterRow {
  const char *why;
  std::function<void(LayerInfo &)> change;
  bool passes;
};

TEST(ReferenceSelection, PreFilterTurnsLayersOverToMoeWNA16) {
  const PreFilterRow rows[] = {
      {"hidden size 320 is not a multiple of 128",
       [](LayerInfo &l) { setExtents(l, 320, 256); }, false},
      {"intermediate size 192 is not a multiple of group 128",
       [](LayerInfo &l) { setExtents(l, 512, 192); }, false},
      {"intermediate size 96 is not a multiple of 64 and act-order forbids",
       [](LayerInfo &l) {
         forBoth(l, [](WeightSpec &w) { w.group = 32; });
         setActOrder(l);
         setExtents(l, 512, 96);
       },
       false},
      {"", // desc_act is void with one group
       [](LayerInfo &l) {
         forBoth(l, [](WeightSpec &w) { w.group = -1; });
         setActOrder(l);
         setExtents(l, 512, 96);
       },
       true},
      {"", // padding repairs it
       [](LayerInfo &l) {
         forBoth(l, [](WeightSpec &w) { w.group = 32; });
         setExtents(l, 512, 96);
       },
       true},
      {"group 16 is none of",
       [](LayerInfo &l) { forBoth(l, [](WeightSpec &w) { w.group = 16; }); },
       false},
      {"the router weight is applied on the input",
       [](LayerInfo &l) { l.routerWeightOnInput = true; }, false},
  };
  for (const PreFilterRow &row : rows) {
    LayerInfo layer = makeLayer("gptq");
    row.change(layer);
    Selection selection = select(layer, blackwell());
    EXPECT_EQ(chosen(selection), row.passes ? "marlin" : "emulation_otf")
        << row.why << selection.message;
    EXPECT_NE(selection.message.find(row.why), std::string::npos)
        << selection.message;
    EXPECT_EQ(selection.message.find("falls back to moe_wna16") ==
                  std::string::npos,
              row.passes);
    // compressed-tensors has no such filter.
    layer.w13.layout = layer.w2.layout = findLayout("compressed_tensors");
    EXPECT_EQ(chosen(select(layer, blackwell())), "marlin");
  }
}

TEST(ReferenceSelection, B26_ChannelScalesAreGroupMinusOne) {
  LayerInfo layer = makeLayer("compressed_tensors", CodeType::U4B8, -1);
  setExtents(layer, 256, 512);
  for (Rules rules : {Rules::VLLM, Rules::Native}) {
    Selection selection =
        selectBackend(layer, makeTarget(TargetKind::cuda, 90), "auto", rules);
    EXPECT_EQ(chosen(selection), "marlin") << selection.message;
  }
}

TEST(ReferenceSelection, B35_SizesThatNoGroupDividesAreHandled) {
  LayerInfo layer = makeLayer("awq", CodeType::U4B8, 128);
  setAsymmetric(layer);
  setExtents(layer, 640, 192);
  Selection reference = select(layer, makeTarget(TargetKind::cuda, 90));
  EXPECT_EQ(chosen(reference), "emulation_otf");
  EXPECT_NE(reference.message.find("AutoAWQ falls back to moe_wna16"),
            std::string::npos);
  Selection native = selectBackend(layer, makeTarget(TargetKind::cuda, 90),
                                   "auto", Rules::Native);
  EXPECT_EQ(chosen(native), "marlin");
}

} // namespace
