//===- CodeMover.cpp - Codes of an expert from layout to layout -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeMover.h"

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
  if (source.actOrder != target.actOrder && !codes.recodes)
    codes.planStrips(*from, *to, extents);
  if (!codes.sorts)
    codes.mover =
        BlockMover(*from, *to, target.bits(), extents,
                   !codes.recodes && source.actOrder == target.actOrder);
  return codes;
}

/// Plans a move by way of strips, unless an edge would be moved code by code.
void CodeMover::planStrips(const AddressMap &from, const AddressMap &to,
                           MoveExtents extents) {
  static const BitOrder order = *BitOrder::parse("n0 n1 n2 n3 n4 n5 | K N");
  strips = AddressMap(order, source.input, source.halves, source.output, 1);
  MoveExtents all =
      extentsOf(source, source, {0, source.input, 0, source.output});
  striper = BlockMover(from, strips, source.bits(), all, true);
  if (!striper.rest().empty())
    return;
  sorts = true;
  mover = BlockMover(strips, to, target.bits(), extents, true);
}

void CodeMover::run(const ExpertView &from, const ExpertView &to,
                    const InputOrder &order,
                    const BlockMover::TileVisitor &visit) const {
  if (!sorts)
    return moveBlocks(from, to, order, visit);
  int64_t bytes = strips.size() * source.bits() / 8;
  std::unique_ptr<uint8_t[]> moved(new uint8_t[bytes]),
      sorted(new uint8_t[bytes]);
  striper.run(from.codeData, moved.get(), 0);
  int64_t runBytes = strips.tile() * source.bits() / 8;
  int64_t inputs = source.input;
  for (int64_t at = 0; at < bytes; at += inputs * runBytes)
    for (int64_t k = 0; k < inputs; ++k)
      std::memcpy(sorted.get() + at + k * runBytes,
                  moved.get() + at + order.source[k] * runBytes, runBytes);
  ExpertView strip = from;
  strip.codes = strips;
  strip.codeData = sorted.get();
  InputOrder counting = order;
  for (int64_t k = 0; k < inputs; ++k) {
    counting.source[k] = k;
    counting.group[k] = order.group[order.source[k]];
  }
  moveBlocks(strip, to, counting, visit);
}

void CodeMover::moveBlocks(const ExpertView &from, const ExpertView &to,
                           const InputOrder &order,
                           const BlockMover::TileVisitor &visit) const {
  mover.run(from.codeData, to.codeData, flip, visit);
  for (BlockMover::Rect rect : mover.rest())
    moveRect(from, to, order, rect);
  if (mover.visits() || !target.layout->trailerBytes)
    return;
  int64_t tileBytes = to.codes.tile() * target.bits() / 8;
  int64_t tiles = to.codes.size() / std::max<int64_t>(to.codes.tile(), 1);
  for (int64_t tile = 0; tile < tiles; ++tile)
    visit(tile, to.codeData + tile * tileBytes);
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
