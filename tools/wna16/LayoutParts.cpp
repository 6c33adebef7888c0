//===- LayoutParts.cpp - What one layout's strings say --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayoutParts.h"

using namespace wna16;
using namespace wna16::cli;

/// Long enough for whole blocks and groups of every layout.
static constexpr int64_t kExtent = 1024;
static constexpr int64_t kGroup = 128;

WeightSpec cli::exampleOf(const LayoutEntry &layout, int bits, int64_t halves) {
  WeightSpec spec;
  spec.layout = &layout;
  spec.input = spec.output = kExtent;
  spec.halves = halves;
  if (bits == kFloatBits)
    return spec;
  bool zeros = layout.needsZeros;
  spec.code = bits == 4 ? (zeros ? CodeType::U4 : CodeType::U4B8)
                        : (zeros ? CodeType::U8 : CodeType::U8B128);
  spec.zeros = zeros ? ZeroPoints::Plain : ZeroPoints::None;
  spec.scale = layout.scaleType.value_or(ScalarType::F16);
  spec.group = layout.group.value_or(kGroup);
  return spec;
}

std::string cli::refusalOf(const LayoutEntry &layout, int bits) {
  Result<std::vector<StoredPart>> parts =
      storageOf(exampleOf(layout, bits, /*halves=*/1));
  return parts ? std::string() : parts.message();
}

namespace {

/// A field of LayoutEntry that may hold an order.
struct Row {
  const char *title;
  std::string_view text;
  std::string_view plain; ///< the order of which it is a variant
  int unitBits;
  bool ofCodes = true; ///< floats have none
};

} // namespace

/// Codes or floats; those of gated weights where they differ.
static void appendCodes(const LayoutEntry &layout, const WeightSpec &spec,
                        std::vector<LayoutPart> &parts) {
  Result<BitOrder> order = codeOrder(spec);
  if (!order || (!parts.empty() && order->str() == parts[0].order.str()))
    return;
  std::string_view text = spec.bits() != 4   ? std::string_view()
                          : spec.halves == 2 ? layout.gated4
                                             : layout.codes4;
  LayoutPart part;
  part.title = spec.code == CodeType::Dense ? "floats" : "codes";
  if (!parts.empty())
    part.title += " of gated weights";
  // Only a block's bits make the text differ from the order.
  part.notation =
      text.find('*') == std::string_view::npos ? order->str() : text;
  part.order = *order;
  part.unitBits = spec.bits();
  part.halves = order->names(Axis::Half) ? 2 : 1;
  part.trailerBytes = layout.trailerBytes;
  part.isCodes = true;
  parts.push_back(std::move(part));
}

std::vector<LayoutPart> cli::partsOf(const LayoutEntry &layout, int bits) {
  WeightSpec spec = exampleOf(layout, bits, 1);
  std::vector<LayoutPart> parts;
  appendCodes(layout, spec, parts);
  appendCodes(layout, exampleOf(layout, bits, 2), parts);
  auto scale =
      static_cast<int>(8 * sizeOf(layout.scaleType.value_or(ScalarType::F16)));
  std::string_view zeros = bits == 4 ? layout.zeros4 : layout.zeros8;
  if (layout.zeroShape == SideShape::None)
    zeros = {};
  const Row rows[] = {
      {"scales", layout.scales, "", scale},
      {"scales of one group", layout.scales1, layout.scales, scale},
      {"scales of gated weights", layout.gatedScales, layout.scales, scale},
      {"zero points", zeros, "", zeroBits(spec)},
      {"bias", layout.bias, "", 16, /*ofCodes=*/false},
  };
  for (const Row &row : rows) {
    Result<BitOrder> order = BitOrder::parse(row.text);
    bool missing = row.ofCodes && spec.code == CodeType::Dense;
    if (missing || row.text.empty() || row.text == row.plain || !order)
      continue;
    LayoutPart part;
    part.title = row.title;
    part.notation = row.text;
    part.order = *order;
    part.unitBits = row.unitBits;
    parts.push_back(std::move(part));
  }
  return parts;
}

Coordinates cli::coordinatesAt(const BitOrder &order, int64_t address) {
  Coordinates at = {};
  int shift = 0;
  for (BitOrder::Bit bit : order.bits())
    at[static_cast<int>(bit.axis)] |=
        ((address >> shift++ & 1) ^ int64_t(bit.inverted)) << bit.index;
  int64_t tile = address >> shift;
  for (Axis rest : order.rests()) {
    int64_t extent = order.tileExtent(rest);
    // There are two halves, and no end to the other axes.
    int64_t count = rest == Axis::Half ? 2 / extent : tile + 1;
    at[static_cast<int>(rest)] += tile % count * extent;
    tile /= count;
  }
  return at;
}

int64_t cli::runLength(const BitOrder &order, Axis axis) {
  int64_t run = 1;
  uint8_t next = 0;
  for (BitOrder::Bit bit : order.bits()) {
    if (bit.axis != axis || bit.index != next || bit.inverted)
      return run;
    ++next;
    run *= 2;
  }
  bool first = !order.rests().empty() && order.rests().front() == axis;
  return first ? 0 : run;
}

ExtentRule cli::ruleOf(const WeightSpec &spec, int64_t WeightSpec::*extent) {
  WeightSpec probe = spec;
  ExtentRule rule;
  // Odd multiples of a power of two are multiples of no greater one.
  auto fits = [&] {
    probe.*extent = 3 * rule.multiple;
    return static_cast<bool>(storageOf(probe));
  };
  while (rule.multiple < kExtent && !fits())
    rule.multiple *= 2;
  // One group and a half.
  probe.group = 2 * rule.multiple;
  rule.wholeGroups = spec.code != CodeType::Dense && !spec.layout->group &&
                     extent == &WeightSpec::input && !fits();
  return rule;
}

llvm::StringRef cli::axisName(Axis axis) {
  static constexpr llvm::StringLiteral kNames[] = {"input", "output", "half",
                                                   "group"};
  return kNames[static_cast<int>(axis)];
}

std::string cli::plural(Axis axis) {
  return axis == Axis::Half ? "halves" : axisName(axis).str() + "s";
}
