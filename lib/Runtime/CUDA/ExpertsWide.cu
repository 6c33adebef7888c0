//===- ExpertsWide.cu - Fused experts for many tokens an expert ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"
#include "Wide.cuh"

#include <algorithm>
#include <cmath>

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";

static bool isWide(const WeightSpec &weight, ScalarType element) {
  return isTiled(weight, element) && weight.input % kWideInputs == 0 &&
         (weight.groups() == 1 || weight.group == 32 || weight.group % 64 == 0);
}

/// Twice the slots an expert up to which reading weights is what takes time, as
/// measured: a warp that streams long inputs spends less on their ends.
static int64_t twiceFewSlots(const ExpertsPlan &plan) {
  return std::min(plan.w13.input, plan.w2.input) >= 2048 ? 16 : 9;
}

static bool takes(const ExpertsPlan &plan, int code, int64_t tokens) {
  const ScalarType element = plan.element();
  const wna16_experts_plan &fields = plan.fields;
  const bool many =
      tokens * fields.top_k * 2 > plan.w13.experts * twiceFewSlots(plan);
  // Sums along the inputs are the same in every tile: that is for all tokens.
  return (many || fields.batch_invariant) && code == 90 &&
         element != ScalarType::F32 && plan.isGated() &&
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
  p.groupMagic = divisionMagic(spec);
  p.zeroSteps[0] = shiftsZeros(spec) ? 8 : 4;
  p.zeroSteps[1] = shiftsZeros(spec) ? 4 : 16;
  // Of one word of eight codes, or of two words of four.
  const uint32_t near = spec.bits() == 4 ? 4 : 8;
  const uint32_t far = spec.bits() == 4 ? 8 : 32;
  const bool near1 = isSwapped(spec);
  p.middle[0] = near1 ? near : far;
  p.middle[1] = near1 ? far : near;
  p.scaleSteps =
      p.groups > 1 ? std::max(p.groupTiles / 4, 1) : p.inputTiles / 4;
  const int groups = p.groups > 1 && p.groupTiles < 4 ? 2 : 1;
  const int words = 32 * spec.bits();
  // A block's halves lie apart where there are gates and ups.
  const int halves = static_cast<int>(spec.halves), rows = 4 / halves;
  const int64_t rowTiles = p.rowTiles / halves;
  const Table tables[] = {
      {weight.codeData,
       CU_TENSOR_MAP_DATA_TYPE_UINT32,
       4,
       {words, rowTiles, halves, p.inputTiles * spec.experts},
       {words, rows, halves, 4}},
      {weight.scaleData,
       CU_TENSOR_MAP_DATA_TYPE_UINT16,
       2,
       {64, rowTiles, halves, weight.groups * spec.experts},
       {64, rows, halves, groups}},
      {weight.zeroData,
       CU_TENSOR_MAP_DATA_TYPE_UINT32,
       4,
       {8, rowTiles, halves, weight.groups * spec.experts},
       {8, rows, halves, groups}}};
  return encode(kKernel, tables[0], p.codes) &&
         encode(kKernel, tables[1], p.scales) &&
         (!p.hasZeros || encode(kKernel, tables[2], p.zeros));
}

/// Slots of a tile: half of them may be missing without loss. Tiles of 32 add
/// up in another order.
static int chooseTile(const ExpertsRound &round) {
  const int64_t each = round.routing.slots / round.routing.experts;
  return each > 48                                         ? 128
         : each > 24 || round.plan->fields.batch_invariant ? 64
                                                           : 32;
}

/// Two blocks on a multiprocessor hide each other's waiting, if the last round
/// of blocks is not too small for that.
static int chooseBlocks(int64_t items, int tile, int multiprocessors) {
  auto rounds = [&](int64_t room) {
    return static_cast<double>((items + room - 1) / room * room);
  };
  const bool even =
      rounds(2 * multiprocessors) <= 1.12 * rounds(multiprocessors);
  return tile == 32 && even ? 2 : 1;
}

/// Whether x is copied into the order of the slots, and tiles that are not full
/// go last. The copy takes time for each hidden size and saves it for each
/// product of that with the width; where the width is 768 it saves nothing.
static bool ordersInputs(const ExpertsPlan &plan, int tile) {
  return tile == 128 && plan.w2.input >= 2048;
}

/// Rows of activations that lie in order are brought by the copy engine. Tiles
/// of 32 slots gain nothing from that.
static bool describeRows(const ExpertsRound &round, int tile, bool first,
                         WideParameters &p) {
  const ExpertsPlan &plan = *round.plan;
  const bool gathered = first && ordersInputs(plan, tile);
  p.in = !first     ? round.buffers.hidden
         : gathered ? round.buffers.rows
                    : round.x;
  p.inWidth = first ? plan.fields.hidden : plan.w2.input;
  p.ordered = static_cast<int32_t>(first ? gathered : tile > 32);
  if (!p.ordered)
    return true;
  Table table = {p.in,
                 CU_TENSOR_MAP_DATA_TYPE_UINT16,
                 2,
                 {p.inWidth, round.routing.slots, 1},
                 {kWideInputs, tile, 1},
                 true};
  if (!encode(kKernel, table, p.inputs[0]))
    return false;
  table.box[1] = kWideRows;
  return encode(kKernel, table, p.inputs[1]);
}

template <typename T>
static WideKernel choose(const WeightSpec &spec, WideEnd end, int tile,
                         int blocks) {
  return spec.bits() == 4 ? wideKernel<T, 4>(end, tile, blocks)
                          : wideKernel<T, 8>(end, tile, blocks);
}

static bool product(const ExpertsRound &round, int tile, bool first) {
  const ExpertsPlan &plan = *round.plan;
  const WeightSpec &spec = first ? plan.w13 : plan.w2;
  WideParameters p = {};
  if (!describeWeight(spec, first ? round.w13 : round.w2, p) ||
      !describeRows(round, tile, first, p))
    return false;
  const auto outTiles = static_cast<int32_t>(spec.output / 64);
  p.secondTile = first ? outTiles : 2;
  p.blockTiles = first ? 2 : 4;
  p.rowBlocks = (outTiles + p.blockTiles - 1) / p.blockTiles;
  p.bias = first ? round.bias13 : round.bias2;
  p.activation = round.activation;
  p.routing = round.routing;
  p.sorted = round.buffers.sorted;
  p.out = first ? round.buffers.hidden : round.buffers.rows;
  p.outWidth = first ? plan.w2.input : plan.fields.hidden;
  p.first = first;
  p.weightOnInput = static_cast<int32_t>(plan.fields.weight_on_input);
  const bool silu =
      round.activation.kind == WNA16_SILU && std::isinf(round.activation.limit);
  const WideEnd end = !first ? WideEnd::Rows
                      : silu ? WideEnd::Silu
                             : WideEnd::Any;
  const int64_t active =
      std::max(round.routing.slots / tile,
               std::min(round.routing.slots, round.routing.experts));
  const int blocks =
      chooseBlocks(active * p.rowBlocks, tile, round.device->multiprocessors);
  const WideKernel kernel = plan.element() == ScalarType::BF16
                                ? choose<__nv_bfloat16>(spec, end, tile, blocks)
                                : choose<__half>(spec, end, tile, blocks);
  const int64_t items =
      maxTiles(round.routing.slots, round.routing.experts, tile) * p.rowBlocks;
  Launch how;
  how.grid = static_cast<unsigned>(std::min<int64_t>(
      items, int64_t(blocks) * round.device->multiprocessors));
  how.block = kernel.threads;
  how.shared = kernel.shared;
  how.stream = round.stream;
  how.early = true;
  return launch(kKernel, kernel.function, how, p);
}

static bool run(const ExpertsRound &given) {
  ExpertsRound round = given;
  // Rows of slots are read back once: 16 bits will do.
  round.rowType = round.plan->element();
  const int tile = chooseTile(round);
  const bool ordered = ordersInputs(*round.plan, tile);
  return sortSlots(round, tile, ordered) && (!ordered || gatherRows(round)) &&
         product(round, tile, true) && product(round, tile, false) &&
         sumSlots(round);
}

const ExpertsKernel cuda::wideExperts = {"wide", takes, run};
