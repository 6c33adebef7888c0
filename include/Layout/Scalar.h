//===- Scalar.h - 16-bit floats in memory ---------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_SCALAR_H
#define WNA16_LAYOUT_SCALAR_H

#include "Layout/WeightSpec.h"

#include <cstring>

namespace wna16 {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float bf16ToFloat(uint16_t bits) {
  return floatOf(uint32_t(bits) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
inline uint16_t floatToBF16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Without branches, so that loops vectorize.
inline float f16ToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
  // The exponent counts from 15 and not from 127; denormals come out right too.
  uint32_t value = bitsOf(floatOf(magnitude) * 5.192296858534828e33f);
  uint32_t special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
  return floatOf(sign | value | special);
}

/// Rounds to nearest even; overflow is infinity, NaN stays NaN.
inline uint16_t floatToF16(float value) {
  uint32_t bits = bitsOf(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00;
  if (bits >= 0x477ff000)
    return sign | 0x7c00;
  if (bits < 0x38800000) {
    // Adding 0.5 leaves the rounded denormal in the low mantissa bits.
    float shifted = floatOf(bits) + 0.5f;
    return sign | static_cast<uint16_t>(bitsOf(shifted) - 0x3f000000);
  }
  bits += 0xc8000fff + ((bits >> 13) & 1);
  return sign | static_cast<uint16_t>(bits >> 13);
}

/// Element `index` of a float tensor of any of the three types.
inline float loadFloat(ScalarType type, const void *data, int64_t index) {
  if (type == ScalarType::F32) {
    float value;
    std::memcpy(&value, static_cast<const char *>(data) + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char *>(data) + 2 * index, 2);
  return type == ScalarType::F16 ? f16ToFloat(bits) : bf16ToFloat(bits);
}

inline void storeFloat(ScalarType type, void *data, int64_t index,
                       float value) {
  if (type == ScalarType::F32) {
    std::memcpy(static_cast<char *>(data) + 4 * index, &value, 4);
    return;
  }
  uint16_t bits =
      type == ScalarType::F16 ? floatToF16(value) : floatToBF16(value);
  std::memcpy(static_cast<char *>(data) + 2 * index, &bits, 2);
}

/// `value` rounded to a float type.
inline float roundTo(ScalarType type, float value) {
  switch (type) {
  case ScalarType::F16:
    return f16ToFloat(floatToF16(value));
  case ScalarType::BF16:
    return bf16ToFloat(floatToBF16(value));
  default:
    return value;
  }
}

} // namespace wna16

#endif // WNA16_LAYOUT_SCALAR_H
