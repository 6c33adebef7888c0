//===- UnitMove.cpp - Scales and zero points, unit by unit ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UnitMove.h"

using namespace wna16;
using namespace wna16::cuda;

//===----------------------------------------------------------------------===//
// Units of other types
//===----------------------------------------------------------------------===//

std::optional<ScaleChange> cuda::planScaleChange(const WeightSpec &source,
                                                 const WeightSpec &target,
                                                 const float *global) {
  ScaleChange change;
  change.from = source.scale;
  change.to = target.scale;
  change.unit = 1.0f / scaleFactor(source.code);
  change.factor = change.unit * scaleFactor(target.code);
  if (source.scale == ScalarType::I16)
    return change.changes() ? std::nullopt : std::optional(change);
  change.global = target.scale == ScalarType::I16 ? global : nullptr;
  return change;
}

ZeroChange cuda::planZeroChange(const WeightSpec &source,
                                const WeightSpec &target) {
  ZeroChange change;
  // As they are stored, whatever a wider unit has beside the zero point.
  if (source.zeros == target.zeros && zeroBits(source) == zeroBits(target))
    return change;
  auto isLess = [](const WeightSpec &spec) {
    return spec.zeros == ZeroPoints::MinusOne ? 1u : 0u;
  };
  change.add = isLess(source) - isLess(target);
  change.mask = (1u << target.bits()) - 1;
  return change;
}

uint8_t cuda::impliedZeros(const WeightSpec &source, const WeightSpec &target) {
  const int less = target.zeros == ZeroPoints::MinusOne;
  const int zero =
      (impliedZero(source.code) - less) & ((1 << target.bits()) - 1);
  return static_cast<uint8_t>(zeroBits(target) == 4 ? zero * 0x11 : zero);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Bits of the number of a nibble that say which of its word, or of its 16
/// bytes, it is.
static constexpr int kWordBits = 3, kVectorBits = 5;

static int log2Of(int bits) { return 31 - __builtin_clz(unsigned(bits)); }

std::optional<UnitMove> cuda::planUnits(const AddressMap &from, int fromBits,
                                        const AddressMap &to, int toBits,
                                        MoveShape shape, int repeatBits,
                                        int64_t alignment) {
  shape.whole = true;
  shape.keepsHalves = from.hasHalves();
  BlockBits bits;
  const std::optional<BlockMove> blocks =
      planBlocks(to, to, toBits, shape, alignment, &bits);
  if (!blocks)
    return std::nullopt;
  if (blocks->halves != shape.halves) {
    shape.sourceOutputs *= shape.halves;
    shape.halves = 1;
  }
  UnitMove move;
  constexpr int kAsWords = 32;
  if (!listAddress(from, kAsWords, shape, bits.inner - repeatBits, bits.output,
                   shape.sourceOutputs, move.source))
    return std::nullopt;
  move.source.innerBegin = blocks->source.innerBegin;
  move.source.outputBegin = blocks->source.outputBegin;
  move.target = blocks->target;
  static_cast<BlockCount &>(move) = *blocks;
  move.inFirst =
      divisorOf(move.outputsFirst ? blocks->allOutputs : blocks->allInners);
  move.inSlice = divisorOf(blocks->allInners * blocks->allOutputs);
  move.blocks =
      static_cast<uint32_t>(shape.experts * shape.halves) * move.inSlice.value;
  move.inners = blocks->inners;
  move.outputs = blocks->outputs;
  move.threadBits = blocks->threadBits;
  move.exact = blocks->exact;
  move.fromBits = fromBits;
  move.toBits = toBits;

  auto termOf = [&](int bit) {
    const CoordinateBit at = bits.target(bit);
    if (at.bit < 0)
      return 0u;
    if (at.isOutput)
      return static_cast<uint32_t>(from.row(int64_t(1) << at.bit) -
                                   from.row(0));
    return at.bit < repeatBits
               ? 0u
               : static_cast<uint32_t>(
                     from.group(int64_t(1) << (at.bit - repeatBits)) -
                     from.group(0));
  };
  const int inUnit = log2Of(toBits) - 2;
  for (int bit = inUnit; bit < kWordBits; ++bit)
    move.inWord[bit - inUnit] = termOf(bit);
  const int first = move.target.wide ? kVectorBits : kWordBits;
  for (int bit = 0; bit < move.threadBits; ++bit)
    move.units.bit[bit] = termOf(first + bit);
  // Words within an access, then accesses.
  for (int word = 0; word < kHeldWords; ++word)
    for (int bit = 0; bit < kHeldBits; ++bit)
      if (word >> bit & 1)
        move.units.access[word] +=
            termOf(kWordBits + bit < first ? kWordBits + bit
                                           : kWordBits + bit + move.threadBits);
  return move;
}
