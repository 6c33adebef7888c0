//===- ExpertsWide.cu - Fused experts for many tokens an expert ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"
#include "Wide.cuh"

#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";

static bool isWide(const WeightSpec &weight, ScalarType element) {
  return isTiled(weight, element) && weight.bits() == 4 &&
         weight.input % kWideInputs == 0 &&
         (weight.groups() == 1 || weight.group == 32 || weight.group % 64 == 0);
}

static bool takes(const ExpertsPlan &plan, int capability, int64_t) {
  const ScalarType element = plan.element();
  const wna16_experts_plan &fields = plan.fields;
  return capability == 90 && element != ScalarType::F32 && plan.isGated() &&
         fields.activation == WNA16_SILU && std::isinf(fields.limit) &&
         fields.hidden % 8 == 0 && isWide(plan.w13, element) &&
         isWide(plan.w2, element);
}

static bool describeWeight(const WeightSpec &spec, const DeviceWeight &weight,
                           WideParameters &p) {
  p.hasZeros = weight.zeroData != nullptr;
  p.inputTiles = static_cast<int32_t>(spec.input / 16);
  p.rowTiles = static_cast<int32_t>(spec.rows() / 64);
  p.groups = static_cast<int32_t>(weight.groups);
  p.groupTiles = static_cast<int32_t>(weight.group / 16);
  p.zeroShift = spec.layout->name != "marlin";
  const int groups = p.groups > 1 && p.groupTiles < 4 ? 2 : 1;
  const Table tables[] = {{weight.codeData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT32,
                           4,
                           {128, p.rowTiles, p.inputTiles * spec.experts},
                           {128, 2, 4}},
                          {weight.scaleData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT16,
                           2,
                           {64, p.rowTiles, weight.groups * spec.experts},
                           {64, 2, groups}},
                          {weight.zeroData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT32,
                           4,
                           {8, p.rowTiles, weight.groups * spec.experts},
                           {8, 2, groups}}};
  return encode(kKernel, tables[0], p.codes) &&
         encode(kKernel, tables[1], p.scales) &&
         (!p.hasZeros || encode(kKernel, tables[2], p.zeros));
}

/// Slots of a tile: half of them may be missing without loss.
static int chooseTile(const ExpertsRound &round) {
  const int64_t each = round.routing.slots / round.routing.experts;
  return each <= 24 ? 32 : each <= 48 ? 64 : 128;
}

template <typename T>
static WideKernel choose(const WeightSpec &spec, bool gated, int tile) {
  return spec.layout->name == "humming_wgmma"
             ? wideKernel<T, true>(gated, tile)
             : wideKernel<T, false>(gated, tile);
}

static bool product(const ExpertsRound &round, int tile, bool first) {
  const ExpertsPlan &plan = *round.plan;
  const WeightSpec &spec = first ? plan.w13 : plan.w2;
  WideParameters p = {};
  if (!describeWeight(spec, first ? round.w13 : round.w2, p))
    return false;
  const auto outTiles = static_cast<int32_t>(spec.output / 64);
  p.secondTile = first ? outTiles : 2;
  p.blockTiles = first ? 2 : 4;
  p.rowBlocks = (outTiles + p.blockTiles - 1) / p.blockTiles;
  p.routing = round.routing;
  p.sorted = round.buffers.sorted;
  p.in = first ? round.x : round.buffers.hidden;
  p.out = first ? round.buffers.hidden : round.buffers.rows;
  p.inWidth = first ? plan.fields.hidden : plan.w2.input;
  p.outWidth = first ? plan.w2.input : plan.fields.hidden;
  p.first = first;
  p.weightOnInput = static_cast<int32_t>(plan.fields.weight_on_input);
  const WideKernel kernel = plan.element() == ScalarType::BF16
                                ? choose<__nv_bfloat16>(spec, first, tile)
                                : choose<__half>(spec, first, tile);
  const int64_t items =
      maxTiles(round.routing.slots, round.routing.experts, tile) * p.rowBlocks;
  Launch how;
  how.grid = static_cast<unsigned>(
      std::min<int64_t>(items, round.device->multiprocessors));
  how.block = 384;
  how.shared = kernel.shared;
  how.stream = round.stream;
  how.early = true;
  return launch(kKernel, kernel.function, how, p);
}

static bool run(const ExpertsRound &given) {
  ExpertsRound round = given;
  if (round.bias13.data || round.bias2.data)
    return plainExperts.run(round);
  // Rows of slots are read back once: 16 bits will do.
  round.rowType = round.plan->element();
  const int tile = chooseTile(round);
  return sortSlots(round, tile) && product(round, tile, true) &&
         product(round, tile, false) && sumSlots(round);
}

const ExpertsKernel cuda::wgmmaExperts = {"wgmma", takes, run};
