//===- Elements.cpp - Tensor elements to and from f32 ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include <cstring>

using namespace wna16;

static uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

namespace {

struct F16 {
  using Storage = uint16_t;

  static float load(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16;
    const uint32_t magnitude = uint32_t(half & 0x7fff) << 13;
    // Exponent and fraction sit in place, the exponent's bias is 112 too low:
    // the product puts it right, for subnormals as well.
    float scaled = fromBits(magnitude) * 0x1p112f;
    if (magnitude >= 0x0f800000) // infinity and NaN keep their exponent
      scaled = fromBits(magnitude | 0x7f800000);
    return fromBits(bitsOf(scaled) | sign);
  }

  static uint16_t store(float value) {
    const uint32_t bits = bitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
      return sign | 0x7e00;
    if (magnitude >= 0x477ff000) // 65520 and above round to infinity
      return sign | 0x7c00;
    if (magnitude < 0x38800000) {
      // Below 2^-14 the result is a multiple of 2^-24; adding 0.5 makes the
      // hardware round there.
      return sign | (bitsOf(fromBits(magnitude) + 0.5f) - 0x3f000000);
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13);
  }
};

struct BF16 {
  using Storage = uint16_t;

  static float load(uint16_t value) { return fromBits(uint32_t(value) << 16); }

  static uint16_t store(float value) {
    const uint32_t bits = bitsOf(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
      return (bits >> 16) | 0x40; // a NaN stays one
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  }
};

struct F32 {
  using Storage = float;

  static float load(float value) { return value; }
  static float store(float value) { return value; }
};

/// Calls `function` with the format of a type.
template <typename Function>
void withFormat(ScalarType type, Function function) {
  switch (type) {
  case ScalarType::F16:
    return function(F16());
  case ScalarType::BF16:
    return function(BF16());
  default:
    return function(F32());
  }
}

} // namespace

void wna16::loadElements(ScalarType type, const void *data, int64_t begin,
                         int64_t count, float *out) {
  withFormat(type, [&](auto format) {
    using Format = decltype(format);
    auto *in = static_cast<const typename Format::Storage *>(data) + begin;
    for (int64_t i = 0; i < count; ++i)
      out[i] = Format::load(in[i]);
  });
}

void wna16::storeElements(ScalarType type, const float *in, int64_t count,
                          void *data, int64_t begin) {
  withFormat(type, [&](auto format) {
    using Format = decltype(format);
    auto *out = static_cast<typename Format::Storage *>(data) + begin;
    for (int64_t i = 0; i < count; ++i)
      out[i] = Format::store(in[i]);
  });
}

void wna16::roundElements(ScalarType type, float *values, int64_t count) {
  withFormat(type, [&](auto format) {
    using Format = decltype(format);
    for (int64_t i = 0; i < count; ++i)
      values[i] = Format::load(Format::store(values[i]));
  });
}

void wna16::gatherElements(const float *in, const int32_t *index, int64_t count,
                           float *out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = in[index[i]];
}
