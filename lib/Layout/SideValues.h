//===- SideValues.h - Scales and zero points in other types -----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_SIDEVALUES_H
#define WNA16_LIB_LAYOUT_SIDEVALUES_H

#include "Codes.h"

namespace wna16 {

/// Brings scales from a source's type and factor to a target's.
class ScaleConverter {
public:
  ScaleConverter() = default;
  ScaleConverter(const WeightSpec &source, const WeightSpec &target);

  /// Whether anything changes.
  bool converts() const { return changes; }

  /// What the scales of one expert count in, and the largest of all experts',
  /// where they are folded into int16.
  struct Units {
    float source;
    float largest;
  };
  /// Converts `count` values that lie side by side. False when the target's
  /// type cannot hold one of them; infinite ones stay what they are, but are
  /// false too.
  bool convert(const uint8_t *from, int64_t count, Units units,
               uint8_t *to) const;

private:
  ScalarType source = ScalarType::F16, target = ScalarType::F16;
  float factor = 1.0f;
  bool changes = false;
  bool overflows = false; ///< a finite scale can become an infinite one
};

/// Brings stored zero points from a source's width and convention to a
/// target's.
class ZeroConverter {
public:
  ZeroConverter() = default;
  ZeroConverter(const WeightSpec &source, const WeightSpec &target);

  bool converts() const { return changes; }
  uint32_t convert(uint32_t zero) const { return (zero + change) & mask; }
  /// Converts zero points that lie side by side, to `bytes`; two where they
  /// have four bits.
  void convert(const uint8_t *from, int64_t bytes, uint8_t *to) const;

private:
  int sourceBits = 4, targetBits = 4;
  bool changes = false;
  uint32_t change = 0, mask = 15;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_SIDEVALUES_H
