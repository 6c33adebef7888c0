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
  sides.scales =
      BlockMover(*from, *to, static_cast<int>(8 * sizeOf(target.scale)),
                 sides.extents(), plans);
  if (target.zeros == ZeroPoints::None)
    return sides;
  bool stored = source.zeros != ZeroPoints::None;
  from = zeroAddresses(stored ? source : target);
  to = zeroAddresses(target);
  if (!from)
    return from.takeFailure();
  if (!to)
    return to.takeFailure();
  sides.zeros = BlockMover(*from, *to, zeroBits(target), sides.extents(),
                           plans && stored);
  return sides;
}

/// Calls fn(unit of the target, unit of the source) for all that blocks do not
/// move; the source's is -1 where it has none.
template <typename Fn>
void SideMover::forRest(const BlockMover &mover, const AddressMap &from,
                        const AddressMap &to, Fn fn) const {
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

bool SideMover::convertsScales() const {
  return source.scale != target.scale ||
         scaleFactor(source.code) != scaleFactor(target.code);
}

namespace {

struct F16 {
  static float load(uint16_t bits) { return f16ToFloat(bits); }
  static uint16_t store(float value) { return floatToF16(value); }
};

struct BF16 {
  static float load(uint16_t bits) { return bf16ToFloat(bits); }
  static uint16_t store(float value) { return floatToBF16(value); }
};

} // namespace

/// Loops that vectorize: one conversion each.
template <typename Type>
static void widen(const uint8_t *in, int64_t count, float unit, float *out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    out[i] = Type::load(bits) * unit;
  }
}

template <typename Type>
static void narrow(const float *in, int64_t count, uint8_t *out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = Type::store(in[i]);
    std::memcpy(out + 2 * i, &bits, 2);
  }
}

static void toFloats(ScalarType type, const uint8_t *in, int64_t count,
                     float unit, float *out) {
  if (type == ScalarType::F16)
    return widen<F16>(in, count, unit, out);
  if (type == ScalarType::BF16)
    return widen<BF16>(in, count, unit, out);
  for (int64_t i = 0; i < count; ++i)
    out[i] = loadScale(type, in, i, unit);
}

/// For int8 activations: every step in the scale's own type. What is no number,
/// or overflows on the way, saturates.
static int16_t fold(ScalarType type, float value, float largest) {
  float ratio = roundTo(type, value / largest);
  float folded = std::nearbyint(roundTo(type, ratio * 4096.0f));
  return static_cast<int16_t>(
      std::isnan(folded) ? 0.0f : std::clamp(folded, -32768.0f, 32767.0f));
}

/// The source's scales in the target's type, where the source has them.
SideMover::Bytes SideMover::convertScales(const ExpertView &from,
                                          float largest) const {
  int64_t count = from.scales.size();
  std::unique_ptr<float[]> values(new float[count]);
  bool folds = target.scale == ScalarType::I16;
  float factor = folds ? 1.0f : scaleFactor(target.code);
  toFloats(source.scale, from.scaleData, count, from.scaleUnit() * factor,
           values.get());
  Bytes result(new uint8_t[count * sizeOf(target.scale)]);
  if (target.scale == ScalarType::F16)
    narrow<F16>(values.get(), count, result.get());
  else if (target.scale == ScalarType::BF16)
    narrow<BF16>(values.get(), count, result.get());
  else if (!folds)
    std::memcpy(result.get(), values.get(), 4 * count);
  for (int64_t i = 0; folds && i < count; ++i) {
    int16_t folded = fold(source.scale, values[i], largest);
    std::memcpy(result.get() + 2 * i, &folded, 2);
  }
  return result;
}

/// Whether a finite scale can become an infinite one.
bool SideMover::mayOverflow() const {
  return target.scale == ScalarType::F16 ||
         (source.scale == ScalarType::F32 && target.scale != ScalarType::I16) ||
         scaleFactor(target.code) > scaleFactor(source.code);
}

/// Scales that were finite are so in their new type.
Failure SideMover::checkScales(const ExpertView &from, const uint8_t *converted,
                               int64_t expert) const {
  if (target.scale == ScalarType::I16)
    return ok();
  for (int64_t half = 0; half < source.halves; ++half)
    for (int64_t n = 0; n < window.outputs; ++n)
      for (int64_t g = 0; g < scales.shape().inners; ++g) {
        int64_t row = half * source.output + window.output + n;
        int64_t group = sourceGroup(g);
        int64_t at = from.scales.group(group) + from.scales.row(row);
        float value = from.scale(group, row);
        if (!std::isfinite(value) ||
            std::isfinite(loadFloat(target.scale, converted, at)))
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

static bool allFinite(ScalarType type, const uint8_t *data, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i)
    finite &= std::isfinite(loadFloat(type, data, i));
  return finite;
}

Failure SideMover::moveScales(const ExpertView &from, const ExpertView &to,
                              int64_t expert, float largest) const {
  const uint8_t *data = from.scaleData;
  Bytes converted;
  if (convertsScales()) {
    converted = convertScales(from, largest);
    data = converted.get();
    if (mayOverflow() && !allFinite(target.scale, data, from.scales.size()))
      if (Failure bad = checkScales(from, data, expert))
        return bad;
  }
  int64_t size = sizeOf(target.scale);
  scales.run(data, to.scaleData, 0);
  forRest(scales, from.scales, to.scales, [&](int64_t unit, int64_t old) {
    if (old < 0)
      std::memset(to.scaleData + unit * size, 0, size);
    else
      std::memcpy(to.scaleData + unit * size, data + old * size, size);
  });
  return ok();
}

//===----------------------------------------------------------------------===//
// Zero points
//===----------------------------------------------------------------------===//

/// The source's zero points as the target stores them, where the source has
/// them; null when they are that already.
SideMover::Bytes SideMover::convertZeros(const ExpertView &from) const {
  int fromBits = zeroBits(source), toBits = zeroBits(target);
  if (fromBits == toBits && source.zeros == target.zeros)
    return nullptr;
  int64_t count = from.zeros.size();
  uint32_t mask = (1u << target.bits()) - 1;
  uint32_t change = (source.zeros == ZeroPoints::MinusOne ? 1 : 0) -
                    (target.zeros == ZeroPoints::MinusOne ? 1 : 0);
  Bytes result(new uint8_t[(count * toBits + 7) / 8]);
  result[(count * toBits + 7) / 8 - 1] = 0;
  for (int64_t i = 0; i < count; ++i)
    storeCode(result.get(), toBits, i,
              (loadCode(from.zeroData, fromBits, i) + change) & mask);
  return result;
}

/// The zero point that the source's codes imply.
void SideMover::fillZeros(const ExpertView &to) const {
  uint32_t mask = (1u << target.bits()) - 1;
  uint32_t zero = (static_cast<uint32_t>(impliedZero(source.code)) -
                   (target.zeros == ZeroPoints::MinusOne ? 1 : 0)) &
                  mask;
  int bits = zeroBits(target);
  int64_t bytes = to.zeros.size() * bits / 8;
  if (zeros.fills()) {
    std::memset(to.zeroData, static_cast<int>(bits == 4 ? zero * 17 : zero),
                bytes);
    return;
  }
  std::fill_n(to.zeroData, bytes, 0);
  forRest(zeros, to.zeros, to.zeros, [&](int64_t unit, int64_t old) {
    storeCode(to.zeroData, bits, unit, old < 0 ? 0 : zero);
  });
}

void SideMover::moveZeros(const ExpertView &from, const ExpertView &to) const {
  if (!to.zeroData)
    return;
  if (!from.zeroData)
    return fillZeros(to);
  int bits = zeroBits(target);
  Bytes converted = convertZeros(from);
  const uint8_t *data = converted ? converted.get() : from.zeroData;
  zeros.run(data, to.zeroData, 0);
  forRest(zeros, from.zeros, to.zeros, [&](int64_t unit, int64_t old) {
    storeCode(to.zeroData, bits, unit, old < 0 ? 0 : loadCode(data, bits, old));
  });
}
