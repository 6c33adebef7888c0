//===- CodeMover.cpp - Codes of an expert from layout to layout -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeMover.h"

using namespace wna16;

/// Targets below this may as well stay in the caches.
static constexpr int64_t kStreamBytes = int64_t(1) << 18;

static int trailingZeros(int64_t value) {
  return value ? __builtin_ctzll(static_cast<uint64_t>(value)) : 62;
}

/// Bits of a block along an extent. Blocks that divide it leave no rest; where
/// it has few factors of two, a rest is better than tiny blocks.
static int extentBits(int64_t extent) {
  constexpr int kEnough = 4;
  if (extent <= 0)
    return 0;
  int divides = trailingZeros(extent);
  return divides >= kEnough
             ? divides
             : 63 - __builtin_clzll(static_cast<uint64_t>(extent));
}

static int64_t paddedExtent(const AddressMap &map, Axis axis) {
  return std::max<int64_t>(map.tiles(axis), 1)
         << static_cast<int>(map.bits(axis).size());
}

/// Whether all codes of the storage belong to a coordinate.
static bool isExact(const AddressMap &map, const WeightSpec &spec) {
  return paddedExtent(map, Axis::Input) == spec.input &&
         paddedExtent(map, Axis::Output) ==
             (map.hasHalves() ? spec.output : spec.rows());
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

Result<CodeMover> CodeMover::make(const WeightSpec &source,
                                  const WeightSpec &target, Window window) {
  Result<AddressMap> from = codeAddresses(source), to = codeAddresses(target);
  if (!from)
    return from.takeFailure();
  if (!to)
    return to.takeFailure();
  CodeMover mover;
  mover.source = source;
  mover.target = target;
  mover.window = window;
  bool seamless = !from->hasHalves() && !to->hasHalves() &&
                  window.outputs == source.output &&
                  window.outputs == target.output;
  int64_t joined = seamless ? target.halves : 1;
  mover.halves = target.halves / joined;
  mover.sourceOutput = source.output * joined;
  mover.targetOutput = target.output * joined;
  mover.outputs = window.outputs * joined;
  int64_t size = std::min(groupSize(target), target.input);
  mover.paddedInput =
      size ? std::min(target.input, (window.inputs + size - 1) / size * size)
           : 0;
  mover.exact = isExact(*to, target);
  mover.recodes =
      source.code != target.code &&
      (source.code == CodeType::U4FP8 || target.code == CodeType::U4FP8);
  // Other code types of one width differ in the sign bit or not at all.
  if (!mover.recodes &&
      fromUnsigned(target.code, 0, 0) != fromUnsigned(source.code, 0, 0))
    mover.flip = target.bits() == 4 ? 0x88 : 0x80;
  if (mover.plan(*from, *to))
    mover.listBlocks(*from, *to);
  return mover;
}

/// Blocks start at multiples of their extents, in both weights and all halves.
BlockLimits CodeMover::limits() const {
  BlockLimits limits;
  limits.inputBits = std::min(extentBits(std::min(window.inputs, target.input)),
                              trailingZeros(window.input));
  limits.outputBits =
      std::min(extentBits(outputs), trailingZeros(window.output));
  if (halves > 1)
    limits.outputBits =
        std::min({limits.outputBits, trailingZeros(sourceOutput),
                  trailingZeros(targetOutput)});
  return limits;
}

/// Finds the best kernels that the limits leave room for.
bool CodeMover::plan(const AddressMap &from, const AddressMap &to) {
  if (recodes || outputs == 0 || window.inputs == 0)
    return false;
  int nibble = target.bits() == 4 ? 1 : 0;
  for (int set = static_cast<int>(isa()); set > 0; --set) {
    const BlockKernels *candidate = blockKernels(static_cast<Isa>(set));
    if (!candidate)
      continue;
    std::optional<MovePlan> plan =
        planMove(from, to, target.bits(), limits(),
                 candidate->machine.laneBits + nibble + 1);
    if (!plan)
      continue;
    kernels = candidate;
    program = BlockProgram::make(*plan, candidate->machine);
    return true;
  }
  return false;
}

/// Covers the target: whole blocks, blocks to clear, and rectangles of what is
/// moved code by code.
void CodeMover::listBlocks(const AddressMap &from, const AddressMap &to) {
  int64_t inputs = program.plan.inputs(), steps = program.plan.outputs();
  int64_t inputEnd = target.input / inputs * inputs;
  int64_t outputEnd = targetOutput / steps * steps;
  // Blocks follow the target's addresses as far as one axis goes.
  bool inputInside = to.input(inputs) < to.row(steps);
  for (int64_t half = 0; half < halves; ++half) {
    int64_t outer = inputInside ? outputEnd / steps : inputEnd / inputs;
    int64_t inner = inputInside ? inputEnd / inputs : outputEnd / steps;
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t j = 0; j < inner; ++j) {
        int64_t k = (inputInside ? j : i) * inputs;
        int64_t n = (inputInside ? i : j) * steps;
        listBlock(from, to, {half, n, n + steps, k, k + inputs});
      }
    if (inputEnd < target.input)
      rest.push_back({half, 0, targetOutput, inputEnd, target.input});
    if (outputEnd < targetOutput)
      rest.push_back({half, outputEnd, targetOutput, 0, inputEnd});
  }
}

void CodeMover::listBlock(const AddressMap &from, const AddressMap &to,
                          Rect block) {
  int64_t bits = target.bits();
  int64_t address = (to.row(targetRow(block.half, block.outputBegin)) +
                     to.input(block.inputBegin)) *
                    bits / 8;
  if (block.outputEnd <= outputs && block.inputEnd <= window.inputs) {
    whole.to.push_back(address);
    whole.from.push_back((from.row(sourceRow(block.half, block.outputBegin)) +
                          from.input(window.input + block.inputBegin)) *
                         bits / 8);
    return;
  }
  cleared.push_back(address);
  block.outputEnd = std::min(block.outputEnd, outputs);
  block.inputEnd = std::min(block.inputEnd, paddedInput);
  if (block.outputBegin < block.outputEnd && block.inputBegin < block.inputEnd)
    rest.push_back(block);
}

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

void CodeMover::run(const ExpertView &from, const ExpertView &to,
                    const InputOrder &order) const {
  if (!kernels || order.sorted) {
    to.clearCodes();
    for (int64_t half = 0; half < halves; ++half)
      moveRect(from, to, order, {half, 0, outputs, 0, paddedInput});
    return;
  }
  if (!exact)
    to.clearCodes();
  runProgram(from, to);
  for (int64_t block : cleared)
    clearBlock(to.codeData + block);
  for (Rect rect : rest)
    moveRect(from, to, order, rect);
}

void CodeMover::runProgram(const ExpertView &from, const ExpertView &to) const {
  BlockList list;
  list.from = from.codeData;
  list.to = to.codeData;
  list.fromOffsets = whole.from.data();
  list.toOffsets = whole.to.data();
  list.count = static_cast<int64_t>(whole.to.size());
  list.flip = flip;
  list.streams = streams(to.codeData);
  kernels->run(program, list);
}

/// Streaming stores want whole, aligned registers; a trailer's sums are taken
/// from the caches.
bool CodeMover::streams(const uint8_t *to) const {
  int64_t bytes = int64_t(1) << kernels->machine.laneBits;
  auto aligned = [&](int64_t offset) { return offset % bytes == 0; };
  const BlockStep &last = program.steps.back();
  return target.layout->trailerBytes == 0 && last.writesTarget &&
         static_cast<int64_t>(whole.to.size()) * program.plan.inputs() *
                 program.plan.outputs() * target.bits() / 8 >=
             kStreamBytes &&
         aligned(static_cast<int64_t>(reinterpret_cast<uintptr_t>(to))) &&
         std::all_of(last.out.begin(), last.out.end(), aligned) &&
         std::all_of(whole.to.begin(), whole.to.end(), aligned);
}

void CodeMover::clearBlock(uint8_t *to) const {
  const BlockOrder &order = program.plan.target;
  int64_t run = int64_t(1) << order.runBits;
  for (int64_t at = 0; at < int64_t(1) << program.plan.bits(); at += run)
    std::fill_n(to + order.offset(at) * target.bits() / 8,
                run * target.bits() / 8, 0);
}

/// Moves code by code; zeros where the target has neither code nor padding of a
/// group.
void CodeMover::moveRect(const ExpertView &from, const ExpertView &to,
                         const InputOrder &order, Rect rect) const {
  int bits = target.bits();
  for (int64_t n = rect.outputBegin; n < rect.outputEnd; ++n) {
    int64_t row = sourceRow(rect.half, n);
    int64_t fromRow = n < outputs ? from.codes.row(row) : 0;
    int64_t toRow = to.codes.row(targetRow(rect.half, n));
    for (int64_t k = rect.inputBegin; k < rect.inputEnd; ++k) {
      uint32_t code = 0;
      if (n < outputs && k < window.inputs) {
        int64_t input = order.source[k];
        code = loadCode(from.codeData, bits, fromRow + from.codes.input(input));
        code = recode(from, order.group[input], row, code);
      } else if (n < outputs && k < paddedInput) {
        code = padding(from, row, k);
      }
      storeCode(to.codeData, bits, toRow + to.codes.input(k), code);
    }
  }
}

uint32_t CodeMover::recode(const ExpertView &from, int64_t group, int64_t row,
                           uint32_t code) const {
  // Where only the sign bit may differ the zero point does not matter.
  int zero = recodes ? from.zero(group, row) : 0;
  return fromUnsigned(target.code, toUnsigned(source.code, code, zero), zero);
}

/// New inputs of an old group decode to 0.
uint32_t CodeMover::padding(const ExpertView &from, int64_t row,
                            int64_t input) const {
  int64_t first = input / groupSize(target) * groupSize(target);
  int64_t group =
      source.groups() > 1 ? (window.input + first) / source.group : 0;
  int zero = from.zero(group, row);
  return fromUnsigned(target.code, static_cast<uint32_t>(zero), zero);
}
