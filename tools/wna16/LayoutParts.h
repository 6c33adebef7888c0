//===- LayoutParts.h - What one layout's strings say ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout's tensors for one width of code, each with its bit order, and what
// follows from an order: which coordinates an address holds, how long runs of
// neighbours are, what an extent must be a multiple of. Nothing here knows a
// layout by name.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_LAYOUTPARTS_H
#define WNA16_TOOLS_WNA16_LAYOUTPARTS_H

#include "Layout/Catalogue.h"

#include "llvm/ADT/StringRef.h"

#include <array>
#include <string>

namespace wna16::cli {

/// One tensor of a layout.
struct LayoutPart {
  std::string title;    ///< "codes", "scales of one group", ...
  std::string notation; ///< as in the catalogue
  BitOrder order;       ///< with the bits of a block filled in
  int unitBits = 0;     ///< bits of one code or element
  int64_t halves = 1;
  int64_t trailerBytes = 0;
  bool isCodes = false;
};

/// The widths to ask for: of codes, and that of floats.
constexpr int kFloatBits = 16;
constexpr int kWidths[] = {4, 8, kFloatBits};

/// A weight with codes of `bits` bits, or floats, and extents that suit every
/// layout.
WeightSpec exampleOf(const LayoutEntry &layout, int bits, int64_t halves);

/// Why the layout holds none of this width; empty when it does.
std::string refusalOf(const LayoutEntry &layout, int bits);

/// The tensors of the layout, codes first.
std::vector<LayoutPart> partsOf(const LayoutEntry &layout, int bits);

/// A position of a tensor, by Axis.
using Coordinates = std::array<int64_t, kNumAxes>;

/// What lies at an address of a tensor whose first rest has no end.
Coordinates coordinatesAt(const BitOrder &order, int64_t address);

/// How many neighbours along an axis lie side by side, from an aligned one on;
/// 0: the whole axis.
int64_t runLength(const BitOrder &order, Axis axis);

/// The smallest power of two that an extent must be a multiple of, and whether
/// it must be one of the group as well: asked of storageOf, which knows.
struct ExtentRule {
  int64_t multiple = 1;
  bool wholeGroups = false;
};
ExtentRule ruleOf(const WeightSpec &spec, int64_t WeightSpec::*extent);

/// "input", "output", "half", "group".
llvm::StringRef axisName(Axis axis);
std::string plural(Axis axis);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_LAYOUTPARTS_H
