//===- ExpertsToken.cu - Fused experts for one token --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenKernel.cuh"

#include <algorithm>
#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";

/// Groups that `steps` input tiles lie in at most.
static int32_t mostGroups(const WeightSpec &spec, int64_t steps) {
  if (spec.groups() == 1)
    return 1;
  const int64_t tiles = spec.group / 16;
  return static_cast<int32_t>((steps + tiles - 2) / tiles + 1);
}

/// With each team of `blocks` blocks; blocks == 0: that cannot be.
static TokenShares shareWith(const ExpertsPlan &plan, bool first,
                             int64_t blocks, int64_t multiprocessors) {
  const WeightSpec &spec = first ? plan.w13 : plan.w2;
  const int64_t slots = plan.fields.top_k, columns = spec.output / 64;
  const int64_t room = multiprocessors / blocks, all = slots * columns;
  const int64_t pieces = first ? (all + room - 1) / room : slots;
  const int64_t teams = first ? (all + pieces - 1) / pieces : columns;
  if (pieces > kTokenWarps || teams > room)
    return {};
  const int64_t warps = kTokenWarps / pieces;
  const int64_t blockTiles = (spec.input / 16 + blocks - 1) / blocks;
  const int64_t steps = (blockTiles + warps - 1) / warps;
  if (steps > kTokenSteps)
    return {};
  return {static_cast<int32_t>(blocks),     static_cast<int32_t>(teams),
          static_cast<int32_t>(pieces),     static_cast<int32_t>(warps),
          static_cast<int32_t>(blockTiles), static_cast<int32_t>(steps),
          mostGroups(spec, steps)};
}

/// The way with the fewest tiles a warp; of those nearly alike, with the
/// smallest teams.
static TokenShares share(const ExpertsPlan &plan, bool first,
                         int64_t multiprocessors) {
  const int most = first ? kTokenSplits : kTokenBlocks;
  TokenShares best = {};
  for (int blocks = 1; blocks <= most; ++blocks) {
    const TokenShares way = shareWith(plan, first, blocks, multiprocessors);
    if (way.blocks > 0 && (best.blocks == 0 || way.steps + 1 < best.steps))
      best = way;
  }
  return best;
}

static size_t sharedBytes(const TokenShares &shares, bool hasZeros,
                          int halves) {
  return kTokenWarps * TokenMemory(shares, hasZeros, halves).bytes;
}

/// Whether both products' blocks find room in a multiprocessor.
static bool fits(const ExpertsPlan &plan, int64_t multiprocessors) {
  // What the system takes of each block, and what the kernels have besides.
  constexpr size_t kRoom = 228 * 1024, kOthers = 2 * 1024 + 20 * 1024;
  size_t bytes = kOthers;
  for (const WeightSpec *weight : {&plan.w13, &plan.w2}) {
    const TokenShares shares =
        share(plan, weight == &plan.w13, multiprocessors);
    if (shares.blocks == 0)
      return false;
    bytes +=
        sharedBytes(shares, weight->zeros != ZeroPoints::None, weight->halves);
  }
  return bytes <= kRoom;
}

static bool takes(const ExpertsPlan &plan, int code, int64_t tokens) {
  const ScalarType element = plan.element();
  const wna16_experts_plan &fields = plan.fields;
  if (code < 90 || tokens != 1 || fields.batched || fields.batch_invariant ||
      element == ScalarType::F32 || !plan.isGated() || fields.hidden % 8 != 0)
    return false;
  for (const WeightSpec *weight : {&plan.w13, &plan.w2})
    if (!isTiled(*weight, element) || weight->bits() != 4)
      return false;
  const DeviceInfo *device = currentDevice(kKernel);
  return device && fits(plan, device->multiprocessors);
}

template <typename T, int HALVES>
static void (*choose(const WeightSpec &weight))(const TokenParameters) {
  return isSwapped(weight) ? tokenKernelOf<T, true, HALVES>
                           : tokenKernelOf<T, false, HALVES>;
}

template <int HALVES>
static bool start(const ExpertsRound &round, const WeightSpec &spec,
                  const TokenParameters &p) {
  auto *kernel = round.plan->element() == ScalarType::BF16
                     ? choose<__nv_bfloat16, HALVES>(spec)
                     : choose<__half, HALVES>(spec);
  // Without that, a multiprocessor has room for one product's blocks.
  if (!check(kKernel, "setting shared memory",
             cudaFuncSetAttribute(
                 kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                 cudaSharedmemCarveoutMaxShared)))
    return false;
  Launch how;
  how.grid = dim3(static_cast<unsigned>(p.shares.teams));
  how.grid.z = static_cast<unsigned>(p.shares.blocks);
  how.cluster = HALVES == 2 ? 1 : how.grid.z;
  how.block = 32 * kTokenWarps;
  how.shared = sharedBytes(p.shares, p.zeros, HALVES);
  how.stream = round.stream;
  how.early = true;
  return launch(kKernel, kernel, how, p);
}

static void describeWeight(const WeightSpec &spec, const DeviceWeight &weight,
                           TokenParameters &p) {
  p.codes = weight.codeData;
  p.scales = weight.scaleData;
  p.zeros = weight.zeroData;
  p.inputTiles = static_cast<int32_t>(spec.input / 16);
  p.rowTiles = static_cast<int32_t>(spec.rows() / 64);
  p.columns = static_cast<int32_t>(spec.output / 64);
  p.groups = static_cast<int32_t>(weight.groups);
  p.groupTiles = static_cast<int32_t>(weight.group / 16);
  p.groupMagic = divisionMagic(spec);
  p.zeroShift = shiftsZeros(spec);
}

static bool product(const ExpertsRound &round, bool first) {
  const ExpertsPlan &plan = *round.plan;
  const WeightSpec &spec = first ? plan.w13 : plan.w2;
  const int64_t multiprocessors = round.device->multiprocessors;
  TokenParameters p = {};
  describeWeight(spec, first ? round.w13 : round.w2, p);
  p.shares = share(plan, first, multiprocessors);
  p.splits = share(plan, true, multiprocessors).blocks;
  p.biasIn = round.bias13;
  p.bias = round.bias2;
  p.routing = round.routing;
  p.activation = round.activation;
  p.plainSilu =
      round.activation.kind == WNA16_SILU && std::isinf(round.activation.limit);
  p.weightOnInput = static_cast<int32_t>(plan.fields.weight_on_input);
  p.letAt = p.shares.steps / 2;
  p.in = first ? round.x : round.buffers.parts;
  p.out = first ? round.buffers.parts : round.y;
  p.inWidth = static_cast<int32_t>(first ? plan.fields.hidden : spec.input);
  p.outWidth = static_cast<int32_t>(first ? plan.w2.input : plan.fields.hidden);
  p.outType = round.outType;
  p.element = plan.element();
  return first ? start<2>(round, spec, p) : start<1>(round, spec, p);
}

static bool run(const ExpertsRound &round) {
  return product(round, true) && product(round, false);
}

const ExpertsKernel cuda::tokenExperts = {"token", takes, run};
