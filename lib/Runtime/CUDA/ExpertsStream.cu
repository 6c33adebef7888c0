//===- ExpertsStream.cu - Fused experts for few tokens an expert --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stream.cuh"
#include "TensorMap.h"

#include <algorithm>
#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";
/// Up to so many slots the second product sums them itself.
static constexpr int64_t kMaxSummed = 40;

static bool takes(const ExpertsPlan &plan, int capability, int64_t) {
  const ScalarType element = plan.element();
  return capability >= 90 && element != ScalarType::F32 &&
         plan.fields.hidden % 8 == 0 && isTiled(plan.w13, element) &&
         isTiled(plan.w2, element);
}

static bool isSwapped(const WeightSpec &weight) {
  return weight.layout->name == "humming_wgmma";
}

/// Whether a group is less than what a warp takes at a time.
static bool hasSmallGroups(const WeightSpec &weight) {
  return weight.groups() > 1 && weight.group % kUnitInputs != 0;
}

template <typename T>
static StreamKernel choose(const WeightSpec &weight, int tokenTiles) {
  const bool small = hasSmallGroups(weight);
  if (weight.bits() == 4)
    return isSwapped(weight) ? streamKernel<T, 4, true>(small, tokenTiles)
                             : streamKernel<T, 4, false>(small, tokenTiles);
  return isSwapped(weight) ? streamKernel<T, 8, true>(small, tokenTiles)
                           : streamKernel<T, 8, false>(small, tokenTiles);
}

static bool describeWeight(const WeightSpec &spec, const DeviceWeight &weight,
                           StreamParameters &p) {
  p.hasZeros = weight.zeroData != nullptr;
  p.inputTiles = static_cast<int32_t>(spec.input / 16);
  p.rowTiles = static_cast<int32_t>(spec.rows() / 64);
  p.groups = static_cast<int32_t>(weight.groups);
  p.groupMagic = divisionMagic(spec);
  p.zeroShift = spec.layout->name != "marlin";
  const int words = 32 * spec.bits();
  const int inputs = kStageBytes / 4 / words;
  const int groups = hasSmallGroups(spec) ? inputs / 2 : 1;
  const Table tables[] = {{weight.codeData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT32,
                           4,
                           {words, p.rowTiles, p.inputTiles * spec.experts},
                           {words, 1, inputs}},
                          {weight.scaleData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT16,
                           2,
                           {64, p.rowTiles, weight.groups * spec.experts},
                           {64, 1, groups}},
                          {weight.zeroData,
                           CU_TENSOR_MAP_DATA_TYPE_UINT32,
                           4,
                           {8, p.rowTiles, weight.groups * spec.experts},
                           {8, 1, groups}}};
  return encode(kKernel, tables[0], p.codes) &&
         encode(kKernel, tables[1], p.scales) &&
         (!p.hasZeros || encode(kKernel, tables[2], p.zeros));
}

namespace {

struct StreamChoice {
  int tokenTiles;
  bool bySlot;
  bool sorted;
  bool sums;
};

} // namespace

static StreamChoice chooseStream(const ExpertsRound &round) {
  const Routing &routing = round.routing;
  StreamChoice choice;
  // Half of what a tile holds: few experts have twice the average.
  choice.tokenTiles =
      round.tokens <= 8 || routing.slots * 2 <= routing.experts * 9 ? 1 : 2;
  choice.sorted = routing.slots > kMaxListed || routing.rowsPerExpert > 0;
  choice.bySlot = !choice.sorted && routing.slots < routing.experts;
  choice.sums = !choice.sorted && routing.slots <= kMaxSummed &&
                round.plan->fields.hidden <= 128 * Buffers::kCounters;
  return choice;
}

namespace {

/// How the inputs are shared out: blocks of a cluster, warps of a block.
struct Shares {
  int blocks;
  int warps;
};

} // namespace

/// As many warps as the device holds, each with as much to do.
static Shares chooseShares(int64_t columns, int inputTiles, int tokenTiles,
                           int multiprocessors) {
  const int64_t units = (inputTiles + 7) / 8;
  const int64_t most = maxStreamWarps(tokenTiles);
  const int64_t room = most * multiprocessors;
  // Short blocks end more evenly, but each has its beginning and end.
  const int64_t least = units >= 16 ? 4 : 2;
  const int64_t wanted = std::clamp<int64_t>(
      (room + columns - 1) / std::max<int64_t>(columns, 1), least, 8 * most);
  const int64_t rounds = (units + wanted - 1) / wanted;
  const int64_t warps = (units + rounds - 1) / rounds;
  int blocks = 1;
  while (blocks < 8 && (warps + blocks - 1) / blocks > 8)
    blocks *= 2;
  return {blocks, static_cast<int>((warps + blocks - 1) / blocks)};
}

static bool product(const ExpertsRound &round, const StreamChoice &choice,
                    bool first) {
  const ExpertsPlan &plan = *round.plan;
  const WeightSpec &spec = first ? plan.w13 : plan.w2;
  const Routing &routing = round.routing;
  StreamParameters p = {};
  if (!describeWeight(spec, first ? round.w13 : round.w2, p))
    return false;
  const bool gated = first && plan.isGated();
  const int32_t outTiles = static_cast<int32_t>(spec.output / 64);
  p.secondTile = gated ? outTiles : 1;
  p.tileStep = gated ? 1 : 2;
  p.bias = first ? round.bias13 : round.bias2;
  p.routing = routing;
  p.activation = round.activation;
  if (choice.sorted) {
    p.order = round.buffers.sorted.order;
    p.begin = round.buffers.sorted.begin;
  }
  p.in = first ? round.x : round.buffers.hidden;
  p.out = first ? round.buffers.hidden : round.buffers.rows;
  p.inWidth = first ? plan.fields.hidden : plan.w2.input;
  p.outWidth = first ? plan.w2.input : plan.fields.hidden;
  p.outType = first ? plan.element() : round.rowType;
  p.first = first;
  p.gated = gated;
  p.plainSilu =
      round.activation.kind == WNA16_SILU && std::isinf(round.activation.limit);
  p.weightOnInput = static_cast<int32_t>(plan.fields.weight_on_input);
  p.bySlot = choice.bySlot;
  Launch how;
  const int64_t second = choice.bySlot ? routing.slots : routing.experts;
  how.grid =
      dim3(static_cast<unsigned>((outTiles + p.tileStep - 1) / p.tileStep),
           static_cast<unsigned>(second));
  if (choice.sums) {
    p.counters = round.buffers.counters;
    p.numCounters = static_cast<int32_t>((plan.w2.output / 64 + 1) / 2);
    p.y = first ? nullptr : round.y;
    p.yType = round.outType;
  }
  const int64_t active = std::min(routing.slots, routing.experts);
  const Shares shares =
      chooseShares(how.grid.x * active, p.inputTiles, choice.tokenTiles,
                   round.device->multiprocessors);
  how.grid.z = how.cluster = static_cast<unsigned>(shares.blocks);
  how.block = static_cast<unsigned>(32 * shares.warps);
  how.stream = round.stream;
  how.early = true;
  StreamKernel kernel = plan.element() == ScalarType::BF16
                            ? choose<__nv_bfloat16>(spec, choice.tokenTiles)
                            : choose<__half>(spec, choice.tokenTiles);
  how.shared = shares.warps * kernel.warpBytes;
  return launch(kKernel, kernel.function, how, p);
}

static bool run(const ExpertsRound &round) {
  const StreamChoice choice = chooseStream(round);
  if (choice.sorted && !sortSlots(round, Buffers::kLeastTile))
    return false;
  return product(round, choice, true) && product(round, choice, false) &&
         (choice.sums || sumSlots(round));
}

const ExpertsKernel cuda::streamExperts = {"stream", takes, run};
