//===- BlockProgram.cpp - A move plan as register shuffles ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

using namespace wna16;

namespace {

/// A permutation of lane bits: result bit i comes from bit [i].
using LaneBits = std::vector<int>;

/// Takes a plan's permutation apart into steps.
class Builder {
public:
  Builder(const MovePlan &plan, BlockMachine machine, BlockStaging staging,
          int fetchedUnits)
      : plan(plan), machine(machine), staging(staging),
        fetchedUnits(fetchedUnits), firstLane(plan.unitBits == 4 ? 1 : 0),
        laneEnd(firstLane + machine.laneBits),
        firstRegister(laneEnd + (machine.halves ? 1 : 0)), holds(plan.bits()) {
    for (int bit = 0; bit < plan.bits(); ++bit)
      holds[plan.permutation[bit]] = bit;
  }

  BlockProgram build() {
    placeNibble();
    placeLanes();
    placeOrder();
    joinSteps();
    listLines();
    return std::move(program);
  }

private:
  bool isLane(int bit) const { return bit >= firstLane && bit < laneEnd; }
  int registers() const { return 1 << (plan.bits() - firstRegister); }
  int64_t registerBytes() const { return machine.registerBytes(); }
  int64_t bytes(int64_t codes) const { return codes * plan.unitBits / 8; }

  int find(int bit) const {
    return static_cast<int>(std::find(holds.begin(), holds.end(), bit) -
                            holds.begin());
  }

  /// Brings what is in the half bit into a register bit.
  void emptyHalf(int at) {
    append(BlockStep::Kind::HalfExchange, at);
    std::swap(holds[laneEnd], holds[at]);
  }

  /// A register bit where a lane's bit is, if there is one.
  int registerToSwap() {
    if (machine.halves && isLane(holds[laneEnd]))
      emptyHalf(std::max(find(laneEnd), firstRegister));
    for (int at = firstRegister; at < plan.bits(); ++at)
      if (isLane(holds[at]))
        return at;
    return firstRegister;
  }

  void placeNibble() {
    if (firstLane == 0 || holds[0] == 0)
      return;
    if (machine.halves && find(0) == laneEnd)
      emptyHalf(firstRegister);
    if (isLane(find(0)))
      exchange(find(0), registerToSwap());
    int at = find(0);
    append(BlockStep::Kind::NibbleExchange, at);
    std::swap(holds[0], holds[at]);
  }

  void placeLanes() {
    for (int lane = firstLane; lane < laneEnd; ++lane)
      while (!isLane(holds[lane]))
        exchange(lane, registerToSwap());
    if (machine.halves && holds[laneEnd] != laneEnd)
      emptyHalf(find(laneEnd));
  }

  /// Swaps a lane bit with a register bit, by way of the top lane bit.
  void exchange(int lane, int at) {
    LaneBits before(machine.laneBits);
    std::iota(before.begin(), before.end(), 0);
    std::swap(before[lane - firstLane], before.back());
    std::swap(holds[lane], holds[laneEnd - 1]);
    std::swap(holds[laneEnd - 1], holds[at]);
    LaneBits after(machine.laneBits);
    std::iota(after.begin(), after.end(), 0);
    befores.push_back(before);
    afters.push_back(after);
    append(BlockStep::Kind::Exchange, at);
  }

  /// Puts lane bits in order, as part of the last exchange where one
  /// instruction does both.
  void placeOrder() {
    LaneBits order(machine.laneBits);
    bool ordered = true;
    for (int lane = 0; lane < machine.laneBits; ++lane) {
      order[lane] = find(firstLane + lane) - firstLane;
      ordered &= order[lane] == lane;
    }
    bool joins = machine.fused && !steps.empty() &&
                 steps.back().kind == BlockStep::Kind::Exchange;
    if (steps.empty() || (!ordered && !joins)) {
      append(BlockStep::Kind::Shuffle, laneEnd - 1);
      fillTable(order, steps.back().table[0]);
    } else if (!ordered) {
      afters.back() = order;
    }
    for (int lane = firstLane; lane < laneEnd; ++lane)
      holds[lane] = lane;
    fillExchanges();
  }

  static int permute(const LaneBits &bits, int lane) {
    int from = 0;
    for (size_t bit = 0; bit < bits.size(); ++bit)
      from |= ((lane >> bit) & 1) << bits[bit];
    return from;
  }

  void fillTable(const LaneBits &bits, uint8_t *table) const {
    for (int lane = 0; lane < registerBytes(); ++lane)
      table[lane] = static_cast<uint8_t>(
          permute(bits, lane & ((1 << machine.laneBits) - 1)));
  }

  void fillExchanges() {
    size_t next = 0;
    for (BlockStep &step : steps) {
      if (step.kind != BlockStep::Kind::Exchange)
        continue;
      const LaneBits &before = befores[next], &after = afters[next];
      ++next;
      if (!machine.fused) {
        fillTable(before, step.table[0]);
        continue;
      }
      int top = 1 << (machine.laneBits - 1);
      for (int result : {0, 1})
        for (int lane = 0; lane < registerBytes(); ++lane) {
          int swapped = permute(after, lane);
          int operand = swapped & top ? 1 : 0;
          int from = permute(before, (swapped & ~top) | (result ? top : 0));
          step.table[result][lane] =
              static_cast<uint8_t>(from | operand << machine.laneBits);
        }
    }
  }

  /// A step on pairs that differ in bit `at` of the count; a lane's bit: on
  /// single registers.
  void append(BlockStep::Kind kind, int at) {
    BlockStep step;
    step.kind = kind;
    step.pairBit = at - firstRegister;
    steps.push_back(step);
  }

  /// Steps go into one pass as far as it can hold their registers.
  void joinSteps() {
    for (const BlockStep &step : steps) {
      bool held = step.pairBit < 0 || heldIndex(step.pairBit) >= 0;
      bool full = static_cast<int>(heldBits.size()) == machine.heldBits;
      if (program.passes.empty() || (!held && full)) {
        finishPass(/*last=*/false);
        heldBits = {};
        program.passes.emplace_back();
      }
      if (step.pairBit >= 0 && heldIndex(step.pairBit) < 0)
        heldBits.push_back(step.pairBit);
      program.passes.back().steps.push_back(step);
      program.passes.back().steps.back().heldBit = heldIndex(step.pairBit);
    }
    finishPass(/*last=*/true);
  }

  /// Where a register's bit is among those held, or -1.
  int heldIndex(int bit) const {
    auto found = std::find(heldBits.begin(), heldBits.end(), bit);
    return found == heldBits.end() ? -1
                                   : static_cast<int>(found - heldBits.begin());
  }

  /// A pass that holds more than it has to loads its tables less often.
  void holdMore() {
    const size_t enough = std::min(3, machine.heldBits);
    for (int bit = 0; bit < plan.bits() - firstRegister; ++bit)
      if (heldIndex(bit) < 0 && heldBits.size() < enough)
        heldBits.push_back(bit);
  }

  /// Lists where the registers of the current pass come from and go to.
  void finishPass(bool last) {
    if (program.passes.empty())
      return;
    BlockPass &pass = program.passes.back();
    holdMore();
    bool first = program.passes.size() == 1;
    pass.heldBits = heldBits;
    pass.readsSource =
        first && !staging.fetchedBits && plan.source.runBits >= firstRegister;
    pass.writesTarget =
        last && !staging.result && plan.target.runBits >= firstRegister;
    pass.in = list([&](int64_t slot) {
      return pass.readsSource ? sourceBytes(slot << firstRegister)
                              : slot * registerBytes();
    });
    pass.out = list([&](int64_t slot) {
      if (pass.writesTarget)
        return bytes(plan.target.offset(targetCount(slot)));
      return last ? bytes(targetCount(slot)) : slot * registerBytes();
    });
    if (first && !pass.readsSource)
      program.gather =
          copies(plan.source, [&](int64_t at) { return sourceBytes(at); });
    if (last && !pass.writesTarget)
      program.scatter = copies(plan.target, [&](int64_t at) {
        return bytes(plan.target.offset(at));
      });
  }

  template <typename OffsetOf>
  BlockPass::Offsets list(OffsetOf offsetOf) const {
    BlockPass::Offsets offsets;
    int held = 0;
    for (size_t i = 0; i < heldBits.size(); ++i) {
      held |= 1 << heldBits[i];
      offsets.second[i] = offsetOf(1 << heldBits[i]) - offsetOf(0);
    }
    for (int slot = 0; slot < registers(); ++slot)
      if (!(slot & held))
        offsets.first.push_back(offsetOf(slot));
    return offsets;
  }

  /// Where the register of a slot ends up in the target's count.
  int64_t targetCount(int64_t slot) const {
    int64_t count = 0;
    for (int at = firstRegister; at < plan.bits(); ++at)
      count |= ((slot >> (at - firstRegister)) & 1) << holds[at];
    return count;
  }

  /// Where unit `at` of the block lies in the source.
  int64_t sourceBytes(int64_t at) const {
    int64_t offset = bytes(plan.source.offset(at));
    return staging.fetchedBits ? offset * staging.fetchedBits / fetchedUnits
                               : offset;
  }

  template <typename OffsetOf>
  BlockProgram::Copies copies(const BlockOrder &order,
                              OffsetOf offsetOf) const {
    BlockProgram::Copies result;
    int64_t run = int64_t(1) << order.runBits;
    result.bytes = bytes(run);
    for (int64_t at = 0; at < int64_t(1) << plan.bits(); at += run)
      result.memory.push_back(offsetOf(at));
    return result;
  }

  void listLines() {
    constexpr int64_t kLine = 64;
    int64_t codes = kLine * 8 / plan.unitBits;
    int64_t step = std::min<int64_t>(codes, int64_t(1) << plan.source.runBits);
    for (int64_t at = 0; at < int64_t(1) << plan.bits(); at += step)
      program.lines.push_back(sourceBytes(at));
    const BlockProgram::Copies &scatter = program.scatter;
    for (int64_t run : scatter.memory)
      for (int64_t at = 0; at + kLine <= scatter.bytes; at += kLine)
        program.resultLines.push_back(run + at);
  }

  const MovePlan &plan;
  BlockMachine machine;
  BlockStaging staging;
  int fetchedUnits; ///< bits of a unit once it is fetched
  int firstLane;
  int laneEnd; ///< where the half bit is, if there is one
  int firstRegister;
  /// For each bit of the registers' count, the bit of the target's that is
  /// there by now.
  std::vector<int> holds;
  std::vector<BlockStep> steps;
  InlineVector<int, BlockPass::kMaxHeldBits> heldBits; ///< of the current pass
  std::vector<LaneBits> befores, afters;               ///< of the exchanges
  BlockProgram program;
};

} // namespace

/// Elements of several bytes as that many units.
static MovePlan inBytes(const MovePlan &plan) {
  MovePlan result;
  result.unitBits = 8;
  int unit = plan.unitBits / 8, byteBits = unit == 4 ? 2 : unit == 2 ? 1 : 0;
  for (int bit = 0; bit < byteBits; ++bit)
    result.permutation.push_back(static_cast<uint8_t>(bit));
  for (uint8_t bit : plan.permutation)
    result.permutation.push_back(static_cast<uint8_t>(bit + byteBits));
  struct {
    const BlockOrder &from;
    BlockOrder &to;
  } const orders[] = {{plan.source, result.source},
                      {plan.target, result.target}};
  for (auto [from, to] : orders) {
    for (int bit = 0; bit < byteBits; ++bit)
      to.weights.push_back(int64_t(1) << bit);
    for (int64_t weight : from.weights)
      to.weights.push_back(weight * unit);
    to.runBits = from.runBits + byteBits;
  }
  result.innerBits = plan.innerBits + byteBits;
  result.outputBits = plan.outputBits;
  return result;
}

BlockProgram BlockProgram::make(const MovePlan &plan, BlockMachine machine,
                                BlockStaging staging) {
  assert(((int64_t(1) << plan.bits()) * plan.unitBits / 8) >=
             2 * machine.registerBytes() &&
         "expected a block of at least two registers");
  MovePlan bytes = plan.unitBits > 4 ? inBytes(plan) : plan;
  BlockProgram program =
      Builder(bytes, machine, staging, plan.unitBits).build();
  program.plan = plan;
  return program;
}

void BlockProgram::run(const BlockKernels &kernels,
                       const BlockList &list) const {
  auto size = [](const auto &vector) {
    return static_cast<int64_t>(vector.size());
  };
  auto copies = [&](const Copies &copies) {
    return BlockView::Copies{copies.bytes, copies.memory.data(), copies.size()};
  };
  auto offsets = [](const BlockPass::Offsets &from) {
    BlockView::Offsets view{from.first.data(), {}};
    std::copy(std::begin(from.second), std::end(from.second), view.second);
    return view;
  };
  std::vector<BlockView::Pass> views;
  for (const BlockPass &pass : passes)
    views.push_back({pass.steps.data(), size(pass.steps),
                     static_cast<int>(pass.heldBits.size()), pass.readsSource,
                     pass.writesTarget, size(pass.in.first), offsets(pass.in),
                     offsets(pass.out)});
  kernels.run({copies(gather), copies(scatter), views.data(), size(views),
               lines.data(), resultLines.data(), size(lines),
               size(resultLines)},
              list);
}

const BlockKernels *wna16::blockKernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::AVX512)
    return &kBlockKernelsAVX512;
  if (isa >= Isa::AVX2)
    return &kBlockKernelsAVX2;
#endif
  return nullptr;
}

void wna16::sumBlock(const CodeBlock &block, uint8_t *sums) {
  if (const BlockKernels *kernels = blockKernels(isa()))
    return kernels->sumBlock(block, sums);
  int32_t sum[32];
  for (int n = 0; n < 32; ++n)
    sum[n] = -block.zeros[n] * block.inputs;
  // Bytes count k0 k1 n0 n1 n2 n4, nibbles n3.
  for (int64_t at = 0; at < block.bytes; ++at) {
    int64_t output = (at >> 2 & 7) | (at >> 5 & 1) << 4;
    sum[output] += block.codes[at] & 15;
    sum[output | 8] += block.codes[at] >> 4;
  }
  std::memcpy(sums, sum, sizeof sum);
}
