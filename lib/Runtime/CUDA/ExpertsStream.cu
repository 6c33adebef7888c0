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
#include <limits>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";
/// Up to so many slots the second product sums them itself.
static constexpr int64_t kMaxSummed = 16;

/// How inputs are shared depends on the number of tokens.
static bool takes(const ExpertsPlan &plan, int capability, int64_t) {
  const ScalarType element = plan.element();
  return capability >= 90 && !plan.fields.batch_invariant &&
         element != ScalarType::F32 && plan.fields.hidden % 8 == 0 &&
         isTiled(plan.w13, element) && isTiled(plan.w2, element);
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
  p.zeroShift = shiftsZeros(spec);
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
  bool sorted;
  bool perSlot;
  bool sums;
};

/// How a product is shared out: blocks of a cluster and warps of each block
/// share a piece's inputs; a block has several such groups of warps.
struct Shares {
  int blocks;
  int warps;
  int groups;
};

} // namespace

static StreamChoice chooseStream(const ExpertsRound &round) {
  const Routing &routing = round.routing;
  StreamChoice choice;
  // Half of what a tile holds: few experts have twice the average.
  choice.tokenTiles =
      round.tokens <= 8 || routing.slots * 2 <= routing.experts * 9 ? 1 : 2;
  choice.sorted = routing.slots > kMaxListed || routing.rowsPerExpert > 0 ||
                  routing.experts > kMaxListedExperts;
  choice.perSlot = !choice.sorted &&
                   (round.tokens == 1 || routing.slots * 16 <= routing.experts);
  choice.sums = !choice.sorted && routing.slots <= kMaxSummed &&
                round.plan->fields.hidden <= 128 * Buffers::kCounters;
  return choice;
}

/// Experts that are asked for if all are as likely: what to share out for.
static int64_t expectedExperts(const Routing &routing, int64_t tokens) {
  const auto experts = static_cast<double>(routing.experts);
  const double others =
      std::max(0.0, 1 - static_cast<double>(routing.topK) / experts);
  const double asked =
      experts * (1 - std::pow(others, static_cast<double>(tokens)));
  return std::max<int64_t>(1, std::llround(asked));
}

/// The way of sharing that is expected to end first. Times are in units of a
/// warp's work, from measurements: a piece's end costs 1.3, more in a cluster,
/// of several rounds the last is half empty, and a warp alone takes so long
/// over long inputs that the last end late.
static Shares chooseShares(int64_t pieces, int64_t units, int tokenTiles,
                           int multiprocessors) {
  const int most = maxStreamWarps(tokenTiles);
  Shares best = {};
  double bestTime = std::numeric_limits<double>::infinity();
  for (int blocks = 1, end = 0; blocks <= 8; blocks *= 2, ++end)
    for (int warps = blocks > 1 ? most : 1; warps <= most; ++warps) {
      const int groups = most / warps;
      const int64_t teams =
          int64_t(multiprocessors) * kStreamBlocks / blocks * groups;
      const double rounds = double(pieces) / double(teams);
      const int64_t share = blocks * warps;
      if (share == 1 && units > 8 * tokenTiles)
        continue;
      const double time = (rounds > 1 ? rounds + 0.5 : 1.0) *
                          (double((units + share - 1) / share) + 1.3 + end);
      if (time < bestTime) {
        best = {blocks, warps, groups};
        bestTime = time;
      }
    }
  return best;
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
  p.perSlot = choice.perSlot;
  p.columns = (outTiles + p.tileStep - 1) / p.tileStep;
  p.bias = first ? round.bias13 : round.bias2;
  p.routing = routing;
  p.activation = round.activation;
  if (choice.sorted) {
    p.order = round.buffers.sorted.order;
    p.tiles = round.buffers.sorted.tiles;
    p.numTiles = round.buffers.sorted.numTiles;
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
  if (choice.sums) {
    p.counters = round.buffers.counters;
    p.numCounters = static_cast<int32_t>((plan.w2.output / 64 + 1) / 2);
    p.y = first ? nullptr : round.y;
    p.yType = round.outType;
  }
  const int tileSlots = 8 * choice.tokenTiles;
  const int64_t likely = std::max(expectedExperts(routing, round.tokens),
                                  routing.slots / tileSlots);
  const Shares shares =
      chooseShares(likely * p.columns, (p.inputTiles + 7) / 8,
                   choice.tokenTiles, round.device->multiprocessors);
  p.groupWarps = shares.warps;
  StreamKernel kernel = plan.element() == ScalarType::BF16
                            ? choose<__nv_bfloat16>(spec, choice.tokenTiles)
                            : choose<__half>(spec, choice.tokenTiles);
  const int warps = shares.warps * shares.groups;
  const int64_t pieces =
      maxTiles(routing.slots, routing.experts, tileSlots) * p.columns;
  const int64_t room =
      int64_t(round.device->multiprocessors) * kStreamBlocks / shares.blocks;
  Launch how;
  how.grid = dim3(static_cast<unsigned>(
      std::min(room, (pieces + shares.groups - 1) / shares.groups)));
  how.grid.z = how.cluster = static_cast<unsigned>(shares.blocks);
  how.block = static_cast<unsigned>(32 * warps);
  how.shared = warps * kernel.warpBytes;
  if (!choice.sorted)
    how.shared += static_cast<size_t>(routing.slots) * kernel.slotBytes;
  how.stream = round.stream;
  how.early = true;
  return launch(kKernel, kernel.function, how, p);
}

static bool run(const ExpertsRound &round) {
  const StreamChoice choice = chooseStream(round);
  if (choice.sorted && !sortSlots(round, 8 * choice.tokenTiles))
    return false;
  return product(round, choice, true) && product(round, choice, false) &&
         (choice.sums || sumSlots(round));
}

const ExpertsKernel cuda::streamExperts = {"stream", takes, run};
