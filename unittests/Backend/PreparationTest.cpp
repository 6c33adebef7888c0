//===- PreparationTest.cpp - What backends make of weights ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "Layout/Move.h"

using namespace wna16;
using namespace wna16::test;

namespace {

WeightSpec w13Of(const char *name, const LayerInfo &layer) {
  return backend(name).prepared(layer, layer.w13, Projection::W13);
}
WeightSpec w2Of(const char *name, const LayerInfo &layer) {
  return backend(name).prepared(layer, layer.w2, Projection::W2);
}

TEST(Prepared, MarlinPadsBothSidesOfTheIntermediateAxis) {
  const struct {
    int64_t intermediate, group, padded;
  } cases[] = {{256, 128, 256}, {96, 32, 128},  {192, 128, 256},
               {32, 32, 64},    {100, -1, 128}, {360, 32, 384}};
  for (auto [intermediate, group, padded] : cases) {
    LayerInfo layer = makeLayer("gptq", CodeType::U4B8, group);
    setExtents(layer, 512, intermediate);
    WeightSpec w13 = w13Of("marlin", layer), w2 = w2Of("marlin", layer);
    EXPECT_EQ(w13.output, padded);
    EXPECT_EQ(w2.input, padded);
    EXPECT_EQ(w13.input, 512);
    EXPECT_EQ(w2.output, 512);
    EXPECT_EQ(w13.layout->name, "marlin");
    EXPECT_EQ(w13.scale, ScalarType::BF16);
    EXPECT_EQ(w13.code, CodeType::U4B8);
  }
}

// What a rank gets of 2688, 544 and 2880 is padded on both sides.
TEST(Prepared, B07_B08_SharesArePaddedToTiles) {
  const struct {
    int64_t intermediate, group, marlin, humming;
  } cases[] = {{672, 32, 704, 768}, {544, 32, 576, 640}, {360, 8, 384, 384}};
  for (auto [intermediate, group, marlin, humming] : cases) {
    LayerInfo layer = makeLayer("gptq", CodeType::U4B8, group);
    setExtents(layer, 512, intermediate);
    for (auto [name, padded] :
         {std::pair("marlin", marlin), std::pair("humming", humming)}) {
      EXPECT_EQ(w13Of(name, layer).output, padded) << name;
      EXPECT_EQ(w2Of(name, layer).input, padded) << name;
    }
    EXPECT_EQ(w13Of("cpu", layer).output, w2Of("cpu", layer).input);
    EXPECT_FALSE(checkMove(layer.w2, w2Of("cpu", layer)));
  }
}

// 8-bit activations take K in steps of 32: 80 / 2 = 40 becomes 64.
TEST(Prepared, MarlinPadsSharesForEightBitActivations) {
  for (int64_t intermediate : {40, 72, 168}) {
    LayerInfo layer = makeLayer("gptq", CodeType::U4B8, 8);
    setExtents(layer, 512, intermediate);
    for (auto type : {ActivationType::int8, ActivationType::fp8}) {
      layer.activationType = type;
      WeightSpec w2 = w2Of("marlin", layer);
      EXPECT_EQ(w2.layout->name, "marlin_a8");
      EXPECT_EQ(w2.input % 32, 0);
      EXPECT_EQ(w13Of("marlin", layer).output, w2.input);
      EXPECT_TRUE(storageOf(w2)) << storageOf(w2).message();
    }
  }
}

TEST(Prepared, MarlinWithEightBitActivations) {
  LayerInfo layer = makeLayer("gptq");
  layer.activationType = ActivationType::int8;
  EXPECT_EQ(w13Of("marlin", layer).layout->name, "marlin_a8");
  EXPECT_EQ(w13Of("marlin", layer).scale, ScalarType::I16);
  layer.w13.group = -1;
  EXPECT_EQ(w13Of("marlin", layer).scale, ScalarType::BF16);
  layer.activationType = ActivationType::fp8;
  EXPECT_EQ(w2Of("marlin", layer).code, CodeType::U4FP8);
  EXPECT_EQ(w2Of("marlin", layer).layout->name, "marlin_a8");
}

TEST(Prepared, MarlinSortsAndKeepsTrueZeroPoints) {
  LayerInfo layer = makeLayer("gptq");
  setActOrder(layer);
  setAsymmetric(layer);
  forBoth(layer, [](WeightSpec &w) { w.zeros = ZeroPoints::MinusOne; });
  EXPECT_EQ(w13Of("marlin", layer).actOrder, ActOrder::Sorted);
  EXPECT_EQ(w13Of("marlin", layer).zeros, ZeroPoints::Plain);
}

TEST(Prepared, HummingPadsOutputsTo256AndInputsTo128) {
  LayerInfo layer = makeLayer("gptq", CodeType::U4B8, 32);
  setExtents(layer, 320, 96);
  WeightSpec w13 = w13Of("humming", layer), w2 = w2Of("humming", layer);
  EXPECT_EQ(w13.input, 384);
  EXPECT_EQ(w13.rows(), 256);
  EXPECT_EQ(w2.input, 128);
  EXPECT_EQ(w2.output, 512);
  EXPECT_EQ(w13.layout->name, "humming_mma");
  layer.capability = 90;
  EXPECT_EQ(w13Of("humming", layer).layout->name, "humming_wgmma");
}

TEST(Prepared, TrtllmTakesTwosComplement) {
  LayerInfo layer = acceptedLayer("flashinfer_trtllm");
  setExtents(layer, 512, 96);
  WeightSpec w13 = w13Of("flashinfer_trtllm", layer);
  EXPECT_EQ(w13.code, CodeType::S4);
  EXPECT_EQ(w13.scale, ScalarType::BF16);
  EXPECT_EQ(w13.output, 256);
  EXPECT_EQ(w2Of("flashinfer_trtllm", layer).input, 256);
}

TEST(Prepared, CpuTakesPanelsAndReadsTheRestByRows) {
  LayerInfo layer = makeLayer("gptq", CodeType::U4B8, 64);
  setExtents(layer, 256, 96);
  WeightSpec w13 = w13Of("cpu", layer), w2 = w2Of("cpu", layer);
  EXPECT_EQ(w13.layout->name, "cpu_panels");
  EXPECT_EQ(w13.code, CodeType::U4B8);
  EXPECT_EQ(w13.zeros, ZeroPoints::None);
  EXPECT_EQ(w13.scale, layer.w13.scale);
  EXPECT_EQ(w13.output, 128);
  EXPECT_EQ(w2.input, 128);
  setActOrder(layer);
  EXPECT_EQ(w13Of("cpu", layer).layout->name, "compressed_tensors");
  EXPECT_EQ(w13Of("cpu", layer).actOrder, ActOrder::Index);
  EXPECT_EQ(w13Of("cpu", layer).output, 96);
  LayerInfo eight = makeLayer("gptq", CodeType::U8B128, -1);
  EXPECT_EQ(w13Of("cpu", eight).layout->name, "cpu_panels");
  // Weights of different widths share the padded axis.
  LayerInfo mixed = makeLayer("gptq", CodeType::U4B8, 64);
  setExtents(mixed, 256, 96);
  mixed.w2.code = CodeType::U8B128;
  EXPECT_EQ(w13Of("cpu", mixed).output, w2Of("cpu", mixed).input);
}

TEST(Prepared, EmulationIsDenseFloatsOrBytes) {
  LayerInfo layer = makeLayer("awq");
  setAsymmetric(layer);
  WeightSpec dense = w13Of("emulation", layer);
  EXPECT_EQ(dense.code, CodeType::Dense);
  EXPECT_EQ(dense.element, ScalarType::F32);
  EXPECT_EQ(dense.zeros, ZeroPoints::None);
  EXPECT_EQ(dense.layout->name, "dense");
  EXPECT_TRUE(backend("emulation").dequantizes());
  EXPECT_EQ(w13Of("emulation_otf", layer).layout->name, "otf");
  EXPECT_FALSE(backend("emulation_otf").dequantizes());
  setDense(layer.w13);
  EXPECT_EQ(w13Of("emulation", layer), layer.w13);
}

TEST(Prepared, CudaDequantisesToTheActivationsType) {
  LayerInfo layer = makeLayer("awq");
  setAsymmetric(layer);
  setDense(layer.w2);
  for (ScalarType element : {ScalarType::F16, ScalarType::BF16}) {
    layer.element = element;
    WeightSpec w13 = w13Of("cuda", layer);
    EXPECT_EQ(w13.code, CodeType::Dense);
    EXPECT_EQ(w13.element, element);
    EXPECT_EQ(w13.layout->name, "dense");
    EXPECT_EQ(w13.input, layer.w13.input);
    EXPECT_EQ(w2Of("cuda", layer), layer.w2);
  }
}

/// Every accepted layer of a grid can be stored, moved there, and its two
/// weights meet on the intermediate axis.
TEST(Prepared, EveryAcceptedLayerOfAGridIsStorable) {
  int accepted = 0;
  for (const Backend *asked : BackendRegistry::get().all())
    for (const char *layout : {"gptq", "awq", "compressed_tensors", "otf"})
      for (int64_t hidden : {64, 256, 320, 512, 2688, 2880})
        for (int64_t intermediate : {32, 48, 96, 128, 192, 360, 704, 1856})
          for (int64_t group13 : {-1, 32, 48, 64, 128})
            for (int64_t group2 : {-1, 32, 128})
              for (int variant = 0; variant < 8; ++variant) {
                LayerInfo layer = makeLayer(layout, CodeType::U4B8, group13);
                layer.w2.group = group2;
                setExtents(layer, hidden, intermediate);
                if (variant & 1)
                  setBits8(layer);
                if (variant & 2)
                  setAsymmetric(layer);
                if (variant == 4)
                  setActOrder(layer);
                if (variant == 5)
                  setDense(layer.w2);
                if (variant == 6)
                  setDense(layer.w13);
                if (variant == 7) {
                  layer.gated = false;
                  layer.w13.halves = 1;
                  layer.activation = Activation::relu2;
                }
                layer.batched = asked->name() == "batched_marlin";
                TargetAttr target = acceptedTarget(asked->name());
                if (!asked->reject(layer, target, Rules::Native).empty())
                  continue;
                ++accepted;
                layer.capability = target.getCapability();
                WeightSpec w13 =
                    asked->prepared(layer, layer.w13, Projection::W13);
                WeightSpec w2 =
                    asked->prepared(layer, layer.w2, Projection::W2);
                ASSERT_EQ(w13.output, w2.input) << asked->name().str();
                ASSERT_GE(w13.input, hidden);
                ASSERT_GE(w2.output, hidden);
                for (auto [source, wanted] :
                     {std::pair(&layer.w13, &w13), std::pair(&layer.w2, &w2)}) {
                  auto parts = storageOf(*wanted);
                  ASSERT_TRUE(parts) << parts.message();
                  if (source->code == CodeType::Dense ||
                      wanted->code != CodeType::Dense) {
                    Failure bad = checkMove(*source, *wanted);
                    ASSERT_FALSE(bad) << bad.message;
                  }
                }
              }
  EXPECT_GT(accepted, 10000);
}

} // namespace
