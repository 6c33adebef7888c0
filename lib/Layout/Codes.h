//===- Codes.h - Codes in memory ------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_CODES_H
#define WNA16_LIB_LAYOUT_CODES_H

#include "Layout/Move.h"
#include "Layout/Scalar.h"

#include <algorithm>

namespace wna16 {

/// Code `index` of a run of 4- or 8-bit codes, lowest bits first.
inline uint32_t loadCode(const uint8_t *data, int bits, int64_t index) {
  if (bits == 8)
    return data[index];
  return (data[index >> 1] >> (4 * (index & 1))) & 15;
}

inline void storeCode(uint8_t *data, int bits, int64_t index, uint32_t code) {
  if (bits == 8) {
    data[index] = static_cast<uint8_t>(code);
    return;
  }
  int shift = 4 * (index & 1);
  uint8_t &byte = data[index >> 1];
  byte = static_cast<uint8_t>((byte & ~(15 << shift)) | (code & 15) << shift);
}

/// Element `index` of a tensor of 32-bit integers; files align nothing.
inline int32_t loadInt(const void *data, int64_t index) {
  int32_t value;
  std::memcpy(&value, static_cast<const char *>(data) + 4 * index, 4);
  return value;
}

inline void storeInt(void *data, int64_t index, int64_t value) {
  auto narrow = static_cast<int32_t>(value);
  std::memcpy(static_cast<char *>(data) + 4 * index, &narrow, 4);
}

/// Scale `index`, stored as a multiple of `unit`.
inline float loadScale(ScalarType type, const void *data, int64_t index,
                       float unit) {
  if (type != ScalarType::I16)
    return loadFloat(type, data, index) * unit;
  int16_t folded;
  std::memcpy(&folded, static_cast<const char *>(data) + 2 * index, 2);
  return static_cast<float>(folded) * unit;
}

/// What the scales of a weight have to be, for messages.
inline std::string scaleRule(const WeightSpec &spec) {
  std::string rule =
      "a scale that " + std::string(name(spec.scale)) + " can hold";
  if (scaleFactor(spec.code) != 1)
    rule +=
        " times " + std::to_string(static_cast<int>(scaleFactor(spec.code)));
  return rule;
}

/// A stored code as the unsigned code Q, given its zero point.
inline uint32_t toUnsigned(CodeType type, uint32_t code, int zero) {
  switch (type) {
  case CodeType::S4:
    return code ^ 8;
  case CodeType::S8:
    return code ^ 128;
  case CodeType::U4FP8: {
    // Codes below 16 - z are Q - z, the others 15 - Q.
    int value = static_cast<int>(code);
    return static_cast<uint32_t>(value < 16 - zero ? value + zero : 15 - value);
  }
  default:
    return code;
  }
}

inline uint32_t fromUnsigned(CodeType type, uint32_t q, int zero) {
  switch (type) {
  case CodeType::S4:
    return q ^ 8;
  case CodeType::S8:
    return q ^ 128;
  case CodeType::U4FP8: {
    int value = static_cast<int>(q);
    return static_cast<uint32_t>(value >= zero ? value - zero : 15 - value);
  }
  default:
    return q;
  }
}

/// Stored zero point `index`, as an unsigned code.
inline int loadZero(const WeightSpec &spec, const uint8_t *data,
                    int64_t index) {
  uint32_t stored = loadCode(data, zeroBits(spec), index);
  if (spec.zeros == ZeroPoints::MinusOne)
    stored = (stored + 1) & ((1u << spec.bits()) - 1);
  return static_cast<int>(stored);
}

/// One expert of a stored weight, read and written by coordinate.
struct ExpertView {
  const WeightSpec *spec = nullptr;
  AddressMap codes, scales, zeros;
  uint8_t *codeData = nullptr;
  uint8_t *scaleData = nullptr;
  uint8_t *zeroData = nullptr;
  uint8_t *groupIndex = nullptr;
  uint8_t *permutation = nullptr;
  uint8_t *globalScale = nullptr;

  /// Writes zeros to codes, or to scales and zero points.
  void clearCodes() const;
  void clearSides() const;

  /// What stored scales count in.
  float scaleUnit() const {
    float unit = 1.0f / scaleFactor(spec->code);
    return globalScale ? unit * loadFloat(ScalarType::F32, globalScale, 0)
                       : unit;
  }

  float scale(int64_t group, int64_t row) const {
    return loadScale(spec->scale, scaleData,
                     scales.group(group) + scales.row(row), scaleUnit());
  }

  /// Zero point of a group of a row, as an unsigned code.
  int zero(int64_t group, int64_t row) const {
    return zeroData
               ? loadZero(*spec, zeroData, zeros.group(group) + zeros.row(row))
               : impliedZero(spec->code);
  }
};

/// Experts of a call lie in 0..experts.
Failure checkRange(const WeightSpec &spec, ExpertRange range);

/// Group indices of an expert, if it has any, lie in 0..groups-1.
Failure checkGroupIndex(const ExpertView &view, int64_t expert);

/// Inputs that share a scale, a number to divide by.
inline int64_t groupSize(const WeightSpec &spec) {
  return spec.group > 0 ? spec.group : std::max<int64_t>(spec.input, 1);
}

/// Resolves the addresses and buffers of an expert; the spec passed storageOf.
Result<ExpertView> viewExpert(const WeightSpec &spec,
                              const WeightBuffers &buffers, int64_t expert);

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_CODES_H
