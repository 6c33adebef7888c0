//===- BitOrder.h - Layouts as permutations of address bits ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The notation: bits of the logical coordinates in the order in which they
// count up the address, lowest first. k is the input, n the output, s the half
// (u = 1 - s), g the group. A capital letter is the rest of that axis, of any
// radix; "|" only groups what belongs together.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_BITORDER_H
#define WNA16_LAYOUT_BITORDER_H

#include "Layout/InlineVector.h"
#include "Layout/Result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace wna16 {

enum class Axis : uint8_t { Input = 0, Output = 1, Half = 2, Group = 3 };
constexpr int kNumAxes = 4;

class BitOrder {
public:
  /// One bit of a coordinate; an inverted one counts 1 - bit.
  struct Bit {
    Axis axis;
    uint8_t index;
    bool inverted;
    bool operator==(const Bit &other) const {
      return axis == other.axis && index == other.index &&
             inverted == other.inverted;
    }
  };

  static constexpr size_t kMaxBits = 40;
  using Bits = InlineVector<Bit, kMaxBits>;
  using Rests = InlineVector<Axis, kNumAxes>;

  /// Parses the notation. Each axis lists its bits 0 .. n-1 once, in any order;
  /// a rest comes after all bits.
  static Result<BitOrder> parse(std::string_view text);
  /// The notation in normal form: single spaces, "|" where it was parsed. The
  /// catalogue's texts are in normal form.
  std::string str() const;

  const Bits &bits() const { return low; }
  const Rests &rests() const { return rest; }
  /// 2 to the number of listed bits: codes of a tile.
  int64_t tileSize() const { return int64_t(1) << low.size(); }
  /// Extent of the tile along an axis: extents that have no rest must equal
  /// it, others be a multiple.
  int64_t tileExtent(Axis axis) const;
  bool names(Axis axis) const;

private:
  Bits low;
  Rests rest;
  uint64_t bars = 0; ///< bit i: "|" before word i; bits, then rests
};

} // namespace wna16

#endif // WNA16_LAYOUT_BITORDER_H
