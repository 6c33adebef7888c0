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
/// Up to so many slots the second product sums them itself, and its inputs are
/// split at most so often.
static constexpr int64_t kMaxSummed = Buffers::kPartSlots, kMostSplits = 16;

/// How inputs are shared depends on the number of tokens.
static bool takes(const ExpertsPlan &plan, int code, int64_t) {
  const ScalarType element = plan.element();
  return code >= 90 && !plan.fields.batch_invariant &&
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
  double time; ///< expected
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

/// A warp alone takes so long over long inputs that the last end late.
static bool endsLate(int64_t share, int64_t units, int tokenTiles) {
  return share == 1 && units > 8 * tokenTiles;
}

/// What is expected to be over when all pieces are, in units of a warp's work,
/// from measurements: a piece's end costs 1.2 more, and of several rounds the
/// last is about half empty.
static double timeOf(int64_t pieces, int64_t teams, double units) {
  const double rounds = double(pieces) / double(teams);
  return (rounds > 1 ? rounds + 0.44 : 1.0) * (units + 1.2);
}

/// The way of sharing that is expected to end first.
static Shares chooseShares(int64_t pieces, int64_t units, int tokenTiles,
                           int multiprocessors) {
  const int most = maxStreamWarps(tokenTiles);
  Shares best = {1, 1, most, std::numeric_limits<double>::infinity()};
  for (int blocks = 1, end = 0; blocks <= 8; blocks *= 2, ++end)
    for (int warps = blocks > 1 ? most : 1; warps <= most; ++warps) {
      const int groups = most / warps;
      const int64_t teams =
          int64_t(multiprocessors) * kStreamBlocks / blocks * groups;
      const int64_t share = blocks * warps;
      if (endsLate(share, units, tokenTiles))
        continue;
      // In a cluster the end takes longer.
      const double time =
          timeOf(pieces, teams, double((units + share - 1) / share) + end);
      if (time < best.time)
        best = {blocks, warps, groups, time};
    }
  return best;
}

/// The same for pieces that are split as often as leaves no team more than one:
/// a mean over `tiles` to `last` tiles of slots.
static Shares chooseSplits(int64_t tiles, int64_t last, int64_t columns,
                           int64_t units, int64_t mostSplits, int tokenTiles,
                           int multiprocessors) {
  const int most = maxStreamWarps(tokenTiles);
  Shares best = {1, 1, most, std::numeric_limits<double>::infinity()};
  for (int warps = most; warps > 0; --warps) {
    const int groups = most / warps;
    const int64_t teams = int64_t(multiprocessors) * kStreamBlocks * groups;
    double time = 0;
    for (int64_t count = tiles; count <= last; ++count) {
      const int64_t pieces = count * columns;
      const int64_t splits =
          std::min(std::max<int64_t>(teams / pieces, 1), mostSplits);
      const int64_t piece = (units + splits - 1) / splits;
      time += endsLate(warps, piece, tokenTiles)
                  ? std::numeric_limits<double>::infinity()
                  : timeOf(pieces * splits, teams,
                           double((piece + warps - 1) / warps));
    }
    time /= static_cast<double>(last - tiles + 1);
    if (time < best.time)
      best = {1, warps, groups, time};
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
  p.mostSplits = 1;
  if (choice.sums) {
    p.counters = round.buffers.counters;
    p.numCounters = static_cast<int32_t>((plan.w2.output / 64 + 1) / 2);
    p.y = first ? nullptr : round.y;
    p.yType = round.outType;
  }
  const int tileSlots = 8 * choice.tokenTiles;
  const int64_t likely = std::max(expectedExperts(routing, round.tokens),
                                  routing.slots / tileSlots);
  const int64_t units = (p.inputTiles + 7) / 8;
  const int multiprocessors = round.device->multiprocessors;
  Shares shares = chooseShares(likely * p.columns, units, choice.tokenTiles,
                               multiprocessors);
  if (p.y) {
    // As many as the rows of all find room where `token` has its sums.
    const int64_t splits = std::min<int64_t>(
        kMostSplits, 2 * Buffers::kParts * p.inWidth / p.outWidth);
    const Shares split = chooseSplits(
        likely, choice.perSlot ? likely : likely + 1, p.columns, units,
        std::max<int64_t>(splits, 1), choice.tokenTiles, multiprocessors);
    // More rows to sum cost something, too.
    if (splits > 1 && split.time + 1 < shares.time) {
      shares = split;
      p.mostSplits = static_cast<int32_t>(splits);
      p.out = round.buffers.parts;
    }
  }
  p.groupWarps = shares.warps;
  StreamKernel kernel = plan.element() == ScalarType::BF16
                            ? choose<__nv_bfloat16>(spec, choice.tokenTiles)
                            : choose<__half>(spec, choice.tokenTiles);
  const int warps = shares.warps * shares.groups;
  const int64_t pieces = maxTiles(routing.slots, routing.experts, tileSlots) *
                         p.columns * p.mostSplits;
  const int64_t room = int64_t(multiprocessors) * kStreamBlocks / shares.blocks;
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
