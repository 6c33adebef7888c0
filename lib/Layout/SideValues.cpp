//===- SideValues.cpp - Scales and zero points in other types -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SideValues.h"

#include <cmath>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

namespace {

struct F16 {
  static constexpr uint16_t kExponent = 0x7c00;
  static float load(uint16_t bits) { return f16ToFloat(bits); }
  static uint16_t store(float value) { return floatToF16(value); }
};

struct BF16 {
  static constexpr uint16_t kExponent = 0x7f80;
  static float load(uint16_t bits) { return bf16ToFloat(bits); }
  static uint16_t store(float value) { return floatToBF16(value); }
};

} // namespace

/// Loops that vectorize: one conversion each. Floats are stored unaligned.
template <typename Type>
static void widen(const uint8_t *in, int64_t count, float unit, uint8_t *out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    float value = Type::load(bits) * unit;
    std::memcpy(out + 4 * i, &value, 4);
  }
}

static void toFloats(ScalarType type, const uint8_t *in, int64_t count,
                     float unit, uint8_t *out) {
  if (type == ScalarType::F16)
    return widen<F16>(in, count, unit, out);
  if (type == ScalarType::BF16)
    return widen<BF16>(in, count, unit, out);
  for (int64_t i = 0; i < count; ++i) {
    float value = loadScale(type, in, i, unit);
    std::memcpy(out + 4 * i, &value, 4);
  }
}

static bool areFinite(const uint8_t *floats, int64_t count) {
  // Adding one to an exponent of ones carries into the sign.
  uint32_t carries = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, floats + 4 * i, 4);
    carries |= (bits & 0x7f800000) + 0x00800000;
  }
  return (carries & 0x80000000) == 0;
}

/// Whether all results are finite.
template <typename Type>
static bool narrow(const float *in, int64_t count, uint8_t *out) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = Type::store(in[i]);
    finite &= (bits & Type::kExponent) != Type::kExponent;
    std::memcpy(out + 2 * i, &bits, 2);
  }
  return finite;
}

/// For int8 activations: every step in the scale's own type. What is no number,
/// or overflows on the way, saturates.
static int16_t fold(ScalarType type, float value, float largest) {
  float ratio = roundTo(type, value / largest);
  float folded = std::nearbyint(roundTo(type, ratio * 4096.0f));
  return static_cast<int16_t>(
      std::isnan(folded) ? 0.0f : std::clamp(folded, -32768.0f, 32767.0f));
}

ScaleConverter::ScaleConverter(const WeightSpec &from, const WeightSpec &to)
    : source(from.scale), target(to.scale) {
  bool folds = target == ScalarType::I16;
  float old = scaleFactor(from.code), now = scaleFactor(to.code);
  factor = folds ? 1.0f : now;
  changes = source != target || old != now;
  overflows = !folds && (target == ScalarType::F16 ||
                         source == ScalarType::F32 || now > old);
}

bool ScaleConverter::convert(const uint8_t *from, int64_t count, Units units,
                             uint8_t *to) const {
  float unit = units.source * factor;
  if (target == ScalarType::F32) {
    toFloats(source, from, count, unit, to);
    return !overflows || areFinite(to, count);
  }
  constexpr int64_t kChunk = 256;
  float values[kChunk];
  bool finite = true;
  for (int64_t at = 0; at < count; at += kChunk) {
    int64_t size = std::min(kChunk, count - at);
    uint8_t *out = to + at * sizeOf(target);
    toFloats(source, from + at * sizeOf(source), size, unit,
             reinterpret_cast<uint8_t *>(values));
    if (target == ScalarType::F16)
      finite &= narrow<F16>(values, size, out);
    else if (target == ScalarType::BF16)
      finite &= narrow<BF16>(values, size, out);
    for (int64_t i = 0; target == ScalarType::I16 && i < size; ++i) {
      int16_t folded = fold(source, values[i], units.largest);
      std::memcpy(out + 2 * i, &folded, 2);
    }
  }
  return finite || !overflows;
}

//===----------------------------------------------------------------------===//
// Zero points
//===----------------------------------------------------------------------===//

ZeroConverter::ZeroConverter(const WeightSpec &source, const WeightSpec &target)
    : sourceBits(zeroBits(source)), targetBits(zeroBits(target)),
      changes(sourceBits != targetBits || source.zeros != target.zeros),
      change((source.zeros == ZeroPoints::MinusOne ? 1 : 0) -
             (target.zeros == ZeroPoints::MinusOne ? 1 : 0)),
      mask((1u << target.bits()) - 1) {}

template <int kFrom, int kTo>
static void convertPairs(const uint8_t *in, int64_t pairs, uint8_t change,
                         uint8_t mask, uint8_t *out) {
  for (int64_t i = 0; i < pairs; ++i) {
    uint8_t first = kFrom == 4 ? in[i] & 15 : in[2 * i];
    uint8_t second = kFrom == 4 ? in[i] >> 4 : in[2 * i + 1];
    first = (first + change) & mask;
    second = (second + change) & mask;
    if (kTo == 4) {
      out[i] = static_cast<uint8_t>(first | second << 4);
    } else {
      out[2 * i] = first;
      out[2 * i + 1] = second;
    }
  }
}

void ZeroConverter::convert(const uint8_t *from, int64_t bytes,
                            uint8_t *to) const {
  auto add = static_cast<uint8_t>(change), keep = static_cast<uint8_t>(mask);
  int64_t pairs = bytes * 4 / targetBits;
  if (sourceBits == 4 && targetBits == 4)
    return convertPairs<4, 4>(from, pairs, add, keep, to);
  if (sourceBits == 4)
    return convertPairs<4, 8>(from, pairs, add, keep, to);
  if (targetBits == 4)
    return convertPairs<8, 4>(from, pairs, add, keep, to);
  for (int64_t i = 0; i < bytes; ++i)
    to[i] = static_cast<uint8_t>((from[i] + add) & keep);
}
