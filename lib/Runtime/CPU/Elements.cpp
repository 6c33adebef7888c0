//===- Elements.cpp - Tensor elements to and from f32 ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

#include "Layout/Scalar.h"

using namespace wna16;

namespace {

struct F16 {
  using Storage = uint16_t;
  static float load(uint16_t value) { return f16ToFloat(value); }
  static uint16_t store(float value) { return floatToF16(value); }
};

struct BF16 {
  using Storage = uint16_t;
  static float load(uint16_t value) { return bf16ToFloat(value); }
  static uint16_t store(float value) { return floatToBF16(value); }
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
