//===- CodeMover.cpp - Codes of an expert from layout to layout -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeMover.h"

#include <algorithm>

using namespace wna16;

static MoveExtents extentsOf(const WeightSpec &source, const WeightSpec &target,
                             Window window) {
  MoveExtents extents;
  extents.halves = target.halves;
  extents.innerBegin = window.input;
  extents.inners = window.inputs;
  extents.targetInners = target.input;
  extents.sourceOutputs = source.output;
  extents.outputBegin = window.output;
  extents.outputs = window.outputs;
  extents.targetOutputs = target.output;
  // New inputs of an old group decode to 0; new groups have a scale of 0.
  if (int64_t size = std::min(groupSize(target), target.input))
    extents.filledInners =
        std::min(target.input, (window.inputs + size - 1) / size * size);
  return extents;
}

Result<CodeMover> CodeMover::make(const WeightSpec &source,
                                  const WeightSpec &target, Window window) {
  Result<AddressMap> from = codeAddresses(source), to = codeAddresses(target);
  if (!from)
    return from.takeFailure();
  if (!to)
    return to.takeFailure();
  CodeMover codes;
  codes.source = source;
  codes.target = target;
  codes.window = window;
  codes.recodes =
      source.code != target.code &&
      (source.code == CodeType::U4FP8 || target.code == CodeType::U4FP8);
  // Other code types of one width differ in the sign bit or not at all.
  if (!codes.recodes &&
      fromUnsigned(target.code, 0, 0) != fromUnsigned(source.code, 0, 0))
    codes.flip = target.bits() == 4 ? 0x88 : 0x80;
  MoveExtents extents = extentsOf(source, target, window);
  codes.sorts = source.actOrder != target.actOrder;
  bool blocks = !codes.sorts && !codes.recodes;
  if (!blocks)
    codes.planStrips(*from, *to, extents);
  if (!codes.strips)
    codes.mover = BlockMover(*from, *to, target.bits(), extents, blocks);
  return codes;
}

/// Plans a move by way of strips, unless an edge would be moved code by code.
void CodeMover::planStrips(const AddressMap &from, const AddressMap &to,
                           MoveExtents extents) {
  static const BitOrder order = *BitOrder::parse("n0 n1 n2 n3 n4 n5 | K N");
  AddressMap map(order, source.input, source.halves, source.output, 1);
  MoveExtents all =
      extentsOf(source, source, {0, source.input, 0, source.output});
  striper = BlockMover(from, map, source.bits(), all, true);
  if (!striper.rest().empty())
    return;
  strips = map;
  mover = BlockMover(map, to, target.bits(), extents, true);
}

int64_t CodeMover::slices() const {
  constexpr int64_t kBytes = int64_t(4) << 20, kMost = 256;
  if (strips || (target.layout->trailerBytes && !mover.visits()))
    return 1;
  return std::clamp<int64_t>(mover.bytes() / kBytes, 1, kMost);
}

void CodeMover::run(const ExpertView &from, const ExpertView &to,
                    const InputOrder &order,
                    const BlockMover::TileVisitor &visit, Slice slice) const {
  if (!strips)
    return moveBlocks(from, to, order, visit, slice);
  using Bytes = std::unique_ptr<uint8_t[]>;
  int64_t bytes = strips->size() * source.bits() / 8;
  Bytes strip(new uint8_t[bytes]);
  striper.clear(strip.get(), slice);
  striper.run({from.codeData, strip.get()}, slice);
  InputOrder counting = order;
  if (sorts) {
    Bytes sorted(new uint8_t[bytes]);
    sortStrips(strip.get(), order, sorted.get());
    strip = std::move(sorted);
    for (int64_t k = 0; k < source.input; ++k) {
      counting.source[k] = k;
      counting.group[k] = order.group[order.source[k]];
    }
  }
  if (recodes)
    recodeStrips(from, counting, strip.get());
  ExpertView view = from;
  view.codes = *strips;
  view.codeData = strip.get();
  moveBlocks(view, to, counting, visit, slice);
}

void CodeMover::sortStrips(const uint8_t *strip, const InputOrder &order,
                           uint8_t *sorted) const {
  int64_t runBytes = strips->tile() * source.bits() / 8;
  int64_t bytes = strips->size() * source.bits() / 8;
  for (int64_t at = 0; at < bytes; at += source.input * runBytes)
    for (int64_t k = 0; k < source.input; ++k)
      std::memcpy(sorted + at + k * runBytes,
                  strip + at + order.source[k] * runBytes, runBytes);
}

namespace {

/// Zero points of the 64 outputs of a strip, as their codes lie.
struct StripZeros {
  uint8_t low[32], high[32];
};

} // namespace

/// Brings the codes of a strip's inputs into another type. Vectorizes.
template <typename Recode>
static void recodeRun(uint8_t *codes, int64_t inputs, const StripZeros &zeros,
                      Recode recode) {
  for (; inputs > 0; --inputs, codes += sizeof zeros.low)
    for (size_t i = 0; i < sizeof zeros.low; ++i) {
      uint8_t low = recode(codes[i] & 15, zeros.low[i]);
      uint8_t high = recode(codes[i] >> 4, zeros.high[i]);
      codes[i] = static_cast<uint8_t>(low | high << 4);
    }
}

/// Codes of eight bits have no type that depends on zero points.
void CodeMover::recodeStrips(const ExpertView &from, const InputOrder &order,
                             uint8_t *strip) const {
  constexpr int64_t kOutputs = 64, kBytes = 32;
  const bool isSigned =
      source.code == CodeType::S4 || target.code == CodeType::S4;
  const uint8_t sign = isSigned ? 8 : 0;
  int64_t rows = source.rows(), inputs = source.input;
  for (int64_t row = 0; row < rows; row += kOutputs)
    for (int64_t first = 0, end; first < inputs; first = end) {
      int64_t group = order.group[first];
      for (end = first + 1; end < inputs && order.group[end] == group;)
        ++end;
      StripZeros zeros = {};
      for (int64_t n = 0; n < std::min(kOutputs, rows - row); ++n) {
        uint8_t *half = n % 2 ? zeros.high : zeros.low;
        half[n / 2] = static_cast<uint8_t>(from.zero(group, row + n));
      }
      uint8_t *codes = strip + (row / kOutputs * inputs + first) * kBytes;
      // As `toUnsigned` and `fromUnsigned` have it.
      if (target.code == CodeType::U4FP8)
        recodeRun(codes, end - first, zeros, [sign](uint8_t code, uint8_t z) {
          auto q = static_cast<uint8_t>(code ^ sign);
          return static_cast<uint8_t>(q >= z ? q - z : 15 - q);
        });
      else
        recodeRun(codes, end - first, zeros, [sign](uint8_t code, uint8_t z) {
          return static_cast<uint8_t>((code < 16 - z ? code + z : 15 - code) ^
                                      sign);
        });
    }
}

void CodeMover::moveBlocks(const ExpertView &from, const ExpertView &to,
                           const InputOrder &order,
                           const BlockMover::TileVisitor &visit,
                           Slice slice) const {
  mover.run({from.codeData, to.codeData, flip, &visit}, slice);
  if (!slice.isLast())
    return;
  for (BlockMover::Rect rect : mover.rest())
    moveRect(from, to, order, rect);
  if (mover.visits() || !target.layout->trailerBytes)
    return;
  int64_t tileBytes = to.codes.tile() * target.bits() / 8;
  int64_t tiles = to.codes.size() / std::max<int64_t>(to.codes.tile(), 1);
  for (int64_t tile = 0; tile < tiles; ++tile)
    visit(tile, to.codeData + tile * tileBytes, /*streams=*/false);
}

/// Moves code by code; zeros where the target has neither code nor padding of a
/// group.
void CodeMover::moveRect(const ExpertView &from, const ExpertView &to,
                         const InputOrder &order, BlockMover::Rect rect) const {
  const MoveExtents &shape = mover.shape();
  int bits = target.bits();
  for (int64_t n = rect.outputBegin; n < rect.outputEnd; ++n) {
    int64_t row = mover.sourceRow(rect, n);
    int64_t fromRow = n < shape.outputs ? from.codes.row(row) : 0;
    int64_t toRow = to.codes.row(mover.targetRow(rect, n));
    for (int64_t k = rect.innerBegin; k < rect.innerEnd; ++k) {
      uint32_t code = 0;
      if (n < shape.outputs && k < shape.inners) {
        int64_t input = order.source[k];
        code = loadCode(from.codeData, bits, fromRow + from.codes.input(input));
        if (!strips || !recodes) // strips were recoded
          code = recode(from, order.group[input], row, code);
      } else if (n < shape.outputs && k < shape.filledInners) {
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

uint32_t CodeMover::padding(const ExpertView &from, int64_t row,
                            int64_t input) const {
  int64_t first = input / groupSize(target) * groupSize(target);
  int64_t group =
      source.groups() > 1 ? (window.input + first) / source.group : 0;
  int zero = from.zero(group, row);
  return fromUnsigned(target.code, static_cast<uint32_t>(zero), zero);
}
