//===- BitPermutation.h - From one layout's addresses to another's --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bit orders as an algebra. Where all extents are powers of two, the way from
// any order to any other permutes the bits of the address and flips some of
// them; such maps invert and compose. Other extents, padding and trailers are
// AddressMap's.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_BITPERMUTATION_H
#define WNA16_LAYOUT_BITPERMUTATION_H

#include "Layout/BitOrder.h"

#include <array>

namespace wna16 {

/// Extents of a tensor, indexed by Axis.
using Extents = std::array<int64_t, kNumAxes>;

class BitPermutation {
public:
  static constexpr int kMaxBits = 62;

  /// From addresses under `from` to those under `to`, of one tensor. Fails when
  /// an extent is no power of two or does not suit an order.
  static Result<BitPermutation>
  between(const BitOrder &from, const BitOrder &to, const Extents &extents);
  /// `first`, then `second`; fails unless both have as many bits.
  static Result<BitPermutation> compose(const BitPermutation &first,
                                        const BitPermutation &second);
  BitPermutation inverse() const;

  /// The image of an address in [0, 2 to the bits()).
  int64_t apply(int64_t address) const;
  int bits() const { return count; }

  bool operator==(const BitPermutation &other) const {
    return count == other.count && flips == other.flips &&
           target == other.target;
  }
  bool operator!=(const BitPermutation &other) const {
    return !(*this == other);
  }

private:
  std::array<uint8_t, kMaxBits> target = {}; ///< of each bit; 0 beyond count
  int count = 0;
  int64_t flips = 0; ///< bits of the image that are inverted
};

} // namespace wna16

#endif // WNA16_LAYOUT_BITPERMUTATION_H
