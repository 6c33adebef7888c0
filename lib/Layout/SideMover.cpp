//===- SideMover.cpp - Scales and zero points from layout to layout -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SideMover.h"

#include <cmath>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

/// Whether a group of the target is a group of the source.
bool SideMover::keepsGroups() const {
  if (target.actOrder != ActOrder::None)
    return true;
  if (source.groups() <= 1)
    return target.groups() <= 1;
  return source.group == target.group && window.input % source.group == 0;
}

int64_t SideMover::sourceGroup(int64_t group) const {
  if (target.actOrder != ActOrder::None)
    return group;
  int64_t first = target.group < 0 ? 0 : group * target.group;
  return source.groups() <= 1 ? 0 : (window.input + first) / source.group;
}

MoveExtents SideMover::extents() const {
  MoveExtents extents;
  extents.inner = Axis::Group;
  extents.halves = target.halves;
  extents.innerBegin = keepsGroups() ? sourceGroup(0) : 0;
  int64_t size =
      std::min(groupSize(target), std::max<int64_t>(target.input, 1));
  extents.inners = target.actOrder != ActOrder::None
                       ? target.groups()
                       : window.inputs / size + (window.inputs % size != 0);
  extents.filledInners = extents.inners;
  extents.targetInners = target.groups();
  extents.sourceOutputs = source.output;
  extents.outputBegin = window.output;
  extents.outputs = window.outputs;
  extents.targetOutputs = target.output;
  return extents;
}

Result<SideMover> SideMover::make(const WeightSpec &source,
                                  const WeightSpec &target, Window window) {
  SideMover sides;
  sides.source = source;
  sides.target = target;
  sides.window = window;
  Result<AddressMap> from = scaleAddresses(source), to = scaleAddresses(target);
  if (!from)
    return from.takeFailure();
  if (!to)
    return to.takeFailure();
  bool plans = sides.keepsGroups();
  sides.scaleConverter = ScaleConverter(source, target);
  bool converts = sides.scaleConverter.converts();
  sides.scales = BlockMover(
      *from, *to, static_cast<int>(8 * sizeOf(target.scale)), sides.extents(),
      plans, converts ? static_cast<int>(8 * sizeOf(source.scale)) : 0);
  if (target.zeros == ZeroPoints::None)
    return sides;
  bool stored = source.zeros != ZeroPoints::None;
  from = zeroAddresses(stored ? source : target);
  to = zeroAddresses(target);
  if (!from)
    return from.takeFailure();
  if (!to)
    return to.takeFailure();
  sides.zeroConverter = ZeroConverter(source, target);
  converts = stored && sides.zeroConverter.converts();
  sides.zeros = BlockMover(*from, *to, zeroBits(target), sides.extents(),
                           plans && stored, converts ? zeroBits(source) : 0);
  return sides;
}

/// Calls fn(unit of the target, unit of the source) for all that blocks do not
/// move; the source's is -1 where it has none.
template <typename Fn>
void SideMover::forRest(const BlockMover &mover, const AddressMap &from,
                        const AddressMap &to, Slice slice, Fn fn) const {
  if (!slice.isLast())
    return;
  const MoveExtents &shape = mover.shape();
  struct Row {
    int64_t to, from;
  };
  std::vector<Row> rows;
  for (BlockMover::Rect rect : mover.rest()) {
    rows.clear();
    for (int64_t n = rect.outputBegin; n < rect.outputEnd; ++n)
      rows.push_back(
          {to.row(mover.targetRow(rect, n)),
           n < shape.outputs ? from.row(mover.sourceRow(rect, n)) : -1});
    for (int64_t g = rect.innerBegin; g < rect.innerEnd; ++g) {
      int64_t unit = to.group(g);
      int64_t old = g < shape.inners ? from.group(sourceGroup(g)) : -1;
      for (Row row : rows)
        fn(unit + row.to, old < 0 || row.from < 0 ? -1 : old + row.from);
    }
  }
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Names a scale that was finite and is not so in its new type.
Failure SideMover::checkScales(const ExpertView &from,
                               ScaleConverter::Units units,
                               int64_t expert) const {
  for (int64_t half = 0; half < source.halves; ++half)
    for (int64_t n = 0; n < window.outputs; ++n)
      for (int64_t g = 0; g < scales.shape().inners; ++g) {
        int64_t row = half * source.output + window.output + n;
        int64_t group = sourceGroup(g);
        int64_t at = from.scales.group(group) + from.scales.row(row);
        float value = from.scale(group, row);
        uint8_t converted[sizeof(float)];
        if (!std::isfinite(value) ||
            scaleConverter.convert(from.scaleData + at * sizeOf(source.scale),
                                   1, units, converted))
          continue;
        std::string remedy =
            target.scale == ScalarType::F16 ? "; use scales of bf16" : "";
        return fail(
            "expected " + scaleRule(target) + ", got " + std::to_string(value) +
            " for expert " + std::to_string(expert) + ", group " +
            std::to_string(group) + ", row " + std::to_string(row) + remedy);
      }
  return ok();
}

Failure SideMover::moveScales(const ExpertView &from, const ExpertView &to,
                              int64_t expert, float largest,
                              Slice slice) const {
  ScaleConverter::Units units{from.scaleUnit(), largest};
  bool holds = true;
  BlockMover::Converter convert = [&](const uint8_t *in, int64_t bytes,
                                      uint8_t *out) {
    holds &=
        scaleConverter.convert(in, bytes / sizeOf(target.scale), units, out);
  };
  bool converts = scaleConverter.converts();
  BlockMover::Work work{from.scaleData, to.scaleData};
  if (converts)
    work.convert = &convert;
  scales.run(work, slice);
  int64_t fromSize = sizeOf(source.scale), size = sizeOf(target.scale);
  forRest(scales, from.scales, to.scales, slice,
          [&](int64_t unit, int64_t old) {
            uint8_t *out = to.scaleData + unit * size;
            if (old < 0)
              std::memset(out, 0, size);
            else if (converts)
              convert(from.scaleData + old * fromSize, size, out);
            else
              std::memcpy(out, from.scaleData + old * size, size);
          });
  return holds ? ok() : checkScales(from, units, expert);
}

//===----------------------------------------------------------------------===//
// Zero points
//===----------------------------------------------------------------------===//

/// The zero point that the source's codes imply.
void SideMover::fillZeros(const ExpertView &to, Slice slice) const {
  uint32_t mask = (1u << target.bits()) - 1;
  uint32_t zero = (static_cast<uint32_t>(impliedZero(source.code)) -
                   (target.zeros == ZeroPoints::MinusOne ? 1 : 0)) &
                  mask;
  int bits = zeroBits(target);
  int64_t bytes = to.zeros.size() * bits / 8;
  if (zeros.fills()) {
    std::fill(to.zeroData + slice.begin(bytes), to.zeroData + slice.end(bytes),
              static_cast<uint8_t>(bits == 4 ? zero * 17 : zero));
    return;
  }
  forRest(zeros, to.zeros, to.zeros, slice, [&](int64_t unit, int64_t old) {
    storeCode(to.zeroData, bits, unit, old < 0 ? 0 : zero);
  });
}

void SideMover::moveZeros(const ExpertView &from, const ExpertView &to,
                          Slice slice) const {
  if (!to.zeroData)
    return;
  if (!from.zeroData)
    return fillZeros(to, slice);
  BlockMover::Converter convert = [&](const uint8_t *in, int64_t bytes,
                                      uint8_t *out) {
    zeroConverter.convert(in, bytes, out);
  };
  BlockMover::Work work{from.zeroData, to.zeroData};
  if (zeroConverter.converts())
    work.convert = &convert;
  zeros.run(work, slice);
  int fromBits = zeroBits(source), bits = zeroBits(target);
  forRest(zeros, from.zeros, to.zeros, slice, [&](int64_t unit, int64_t old) {
    uint32_t zero = 0;
    if (old >= 0)
      zero = zeroConverter.convert(loadCode(from.zeroData, fromBits, old));
    storeCode(to.zeroData, bits, unit, zero);
  });
}

void SideMover::clear(const ExpertView &to, Slice slice) const {
  scales.clear(to.scaleData, slice);
  if (to.zeroData)
    zeros.clear(to.zeroData, slice);
}
