//===- WeightSpec.cpp - What one experts weight is and how it is stored ---===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/WeightSpec.h"
#include "Layout/Catalogue.h"

#include <algorithm>
#include <iterator>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static constexpr std::string_view kScalarNames[] = {
    "f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64", "bool"};
static constexpr std::string_view kCodeNames[] = {
    "dense", "u4", "u4b8", "s4", "u8", "u8b128", "s8", "u4fp8"};
static constexpr std::string_view kZerosNames[] = {"none", "plain",
                                                   "minus_one"};
static constexpr std::string_view kActOrderNames[] = {"none", "index",
                                                      "sorted"};
static constexpr std::string_view kPartNames[] = {
    "codes", "scales", "zeros", "group_index", "permutation", "global_scale"};

template <typename EnumT, size_t N>
static std::string_view nameIn(const std::string_view (&names)[N],
                               EnumT value) {
  auto index = static_cast<size_t>(value);
  return index < N ? names[index] : "invalid";
}

template <typename EnumT, size_t N>
static std::optional<EnumT> parseIn(const std::string_view (&names)[N],
                                    std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text)
      return static_cast<EnumT>(i);
  return std::nullopt;
}

std::string_view wna16::name(ScalarType type) {
  return nameIn(kScalarNames, type);
}
std::string_view wna16::name(CodeType code) { return nameIn(kCodeNames, code); }
std::string_view wna16::name(ZeroPoints zeros) {
  return nameIn(kZerosNames, zeros);
}
std::string_view wna16::name(ActOrder order) {
  return nameIn(kActOrderNames, order);
}
std::string_view wna16::name(Part part) { return nameIn(kPartNames, part); }
std::optional<ScalarType> wna16::parseScalarType(std::string_view text) {
  return parseIn<ScalarType>(kScalarNames, text);
}
std::optional<CodeType> wna16::parseCodeType(std::string_view text) {
  return parseIn<CodeType>(kCodeNames, text);
}

int64_t wna16::sizeOf(ScalarType type) {
  static constexpr int8_t sizes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8, 1};
  auto index = static_cast<size_t>(type);
  return index < std::size(sizes) ? sizes[index] : 0;
}

//===----------------------------------------------------------------------===//
// WeightSpec
//===----------------------------------------------------------------------===//

static int64_t groupsOfInput(const WeightSpec &spec) {
  if (spec.group <= 0)
    return 1;
  return spec.input / spec.group + (spec.input % spec.group ? 1 : 0);
}

int64_t WeightSpec::groups() const {
  if (code == CodeType::Dense)
    return 0;
  return keptGroups > 0 ? keptGroups : groupsOfInput(*this);
}

int WeightSpec::bits() const {
  switch (code) {
  case CodeType::Dense:
    return static_cast<int>(8 * sizeOf(element));
  case CodeType::U8:
  case CodeType::U8B128:
  case CodeType::S8:
    return 8;
  default:
    return 4;
  }
}

bool WeightSpec::operator==(const WeightSpec &o) const {
  return code == o.code && element == o.element && scale == o.scale &&
         zeros == o.zeros && actOrder == o.actOrder && group == o.group &&
         keptGroups == o.keptGroups && layout == o.layout &&
         experts == o.experts && input == o.input && halves == o.halves &&
         output == o.output;
}

template <typename Shape>
static int64_t product(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

int64_t StoredPart::elements() const { return product(shape); }
int64_t StoredPart::bytes() const { return elements() * sizeOf(type); }
int64_t PartShape::elements() const { return product(shape); }
int64_t PartShape::bytes() const { return elements() * sizeOf(type); }

//===----------------------------------------------------------------------===//
// storageOf
//===----------------------------------------------------------------------===//

static std::string in(const WeightSpec &spec) {
  return " for layout " + std::string(spec.layout->name);
}

static int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Enumerators and extents are in range, so that the rest may compute.
static Failure checkRanges(const WeightSpec &spec) {
  if (!spec.layout)
    return fail("expected a layout");
  if (static_cast<uint64_t>(spec.code) > 7 ||
      static_cast<uint64_t>(spec.element) > 9 ||
      static_cast<uint64_t>(spec.scale) > 9 ||
      static_cast<uint64_t>(spec.zeros) > 2 ||
      static_cast<uint64_t>(spec.actOrder) > 2)
    return fail("expected known code, element, scale, zeros and act_order");
  constexpr int64_t kMost = int64_t(1) << 31;
  const std::pair<const char *, int64_t> extents[] = {
      {"experts", spec.experts},
      {"input", spec.input},
      {"output", spec.output},
      {"groups", spec.keptGroups}};
  for (auto [what, extent] : extents)
    if (extent < 0 || extent > kMost)
      return fail(std::string("expected ") + what + " in 0.." +
                  std::to_string(kMost) + ", got " + std::to_string(extent));
  if (spec.halves != 1 && spec.halves != 2)
    return fail("expected 1 or 2 halves, got " + std::to_string(spec.halves));
  // Bytes stay below 2^63 with room for padding and 8-byte elements.
  double bytes =
      16.0 * static_cast<double>(spec.experts) *
      static_cast<double>(std::max(spec.input, spec.keptGroups) + 512) *
      static_cast<double>(spec.halves) * static_cast<double>(spec.output + 512);
  if (bytes > 9e18)
    return fail("expected a weight below 2^63 bytes, got " +
                std::to_string(spec.experts) + " x " +
                std::to_string(spec.input) + " x " +
                std::to_string(spec.rows()));
  return ok();
}

static bool isFloat(ScalarType type) {
  return type == ScalarType::F16 || type == ScalarType::BF16 ||
         type == ScalarType::F32;
}

/// "4 or 8", "8"; floats have no codes.
static std::string widthsOf(const LayoutEntry &layout) {
  std::string widths = layout.codes4.empty() ? "" : "4";
  if (!layout.codes8.empty())
    widths += widths.empty() ? "8" : " or 8";
  return widths.empty() ? "floats alone" : widths;
}

static Failure checkCodesAndGroups(const WeightSpec &spec) {
  const LayoutEntry &layout = *spec.layout;
  if ((spec.bits() == 4 ? layout.codes4 : layout.codes8).empty())
    return fail("expected codes of a width that the layout holds (" +
                widthsOf(layout) +
                "), got bits = " + std::to_string(spec.bits()) + in(spec));
  if (spec.group != -1 && spec.group < 1)
    return fail("expected a positive group or -1, got " +
                std::to_string(spec.group));
  if (layout.group && spec.group != *layout.group)
    return fail("expected group " + std::to_string(*layout.group) + ", got " +
                std::to_string(spec.group) + in(spec));
  if (spec.keptGroups && (spec.actOrder != ActOrder::Index || spec.group < 1 ||
                          spec.keptGroups <= groupsOfInput(spec)))
    return fail("expected " + std::to_string(spec.keptGroups) +
                " kept groups to be those of rows with act_order = index and "
                "more than those of the input (" +
                std::to_string(groupsOfInput(spec)) +
                "), got act_order = " + std::string(name(spec.actOrder)));
  if (spec.actOrder != ActOrder::None && !layout.actOrder)
    return fail("expected rows in group order, got act_order = " +
                std::string(name(spec.actOrder)) + in(spec));
  return ok();
}

static Failure checkScales(const WeightSpec &spec) {
  std::string got = ", got " + std::string(name(spec.scale));
  if (!isFloat(spec.scale) && spec.scale != ScalarType::I16)
    return fail("expected scales of f16, bf16, f32 or i16" + got);
  if (spec.code == CodeType::U4FP8 && spec.scale == ScalarType::I16)
    return fail("expected scales of f16, bf16 or f32 with code u4fp8" + got);
  std::optional<ScalarType> only = spec.layout->scaleType;
  if (only && spec.scale != *only)
    return fail("expected scales of " + std::string(name(*only)) + got +
                in(spec));
  return ok();
}

static Failure checkZeroPoints(const WeightSpec &spec) {
  const LayoutEntry &layout = *spec.layout;
  bool hasZeros = spec.zeros != ZeroPoints::None;
  if (hasZeros && layout.zeroShape == SideShape::None)
    return fail("expected no zero points, got zeros = " +
                std::string(name(spec.zeros)) + in(spec));
  if (layout.needsZeros && spec.zeros != ZeroPoints::Plain)
    return fail("expected zeros = plain, got " + std::string(name(spec.zeros)) +
                in(spec));
  bool implied = spec.code != CodeType::U4 && spec.code != CodeType::U8;
  if (implied && spec.code != CodeType::U4FP8 && hasZeros)
    return fail("expected code u4 or u8 with zero points, got " +
                std::string(name(spec.code)));
  if (!implied && !hasZeros)
    return fail("expected zero points with code " +
                std::string(name(spec.code)) + ", got zeros = none");
  return ok();
}

/// What a layout can hold at all.
static Failure checkCapabilities(const WeightSpec &spec) {
  if (!isFloat(spec.element))
    return fail("expected elements of f16, bf16 or f32, got " +
                std::string(name(spec.element)));
  if (spec.code == CodeType::Dense) {
    if (spec.layout->dense.empty())
      return fail("expected codes, got dense elements" + in(spec) +
                  "; use layout dense");
    return ok();
  }
  for (auto check : {checkCodesAndGroups, checkScales, checkZeroPoints})
    if (Failure bad = check(spec))
      return bad;
  return ok();
}

static Failure checkMultiple(const WeightSpec &spec, const char *axis,
                             int64_t extent, int64_t multiple) {
  if (extent % multiple == 0)
    return ok();
  return fail(std::string("expected ") + axis + " (" + std::to_string(extent) +
              ") to be a multiple of " + std::to_string(multiple) + in(spec) +
              "; pad to " + std::to_string(roundUp(extent, multiple)));
}

/// Blocks are powers of two that fill groups.
static Failure checkBlocks(const WeightSpec &spec) {
  int64_t block = blockLength(spec);
  if (block < 4 || (block & (block - 1)))
    return fail("expected a block min(128, group) that is a power of two of "
                "at least 4, got " +
                std::to_string(block) + in(spec));
  if (spec.groups() > 1 && spec.group % block)
    return fail("expected group (" + std::to_string(spec.group) +
                ") to be a multiple of the block of " + std::to_string(block) +
                in(spec));
  return ok();
}

/// Rows that the tiles of the scales need; 1 where they follow the codes.
static int64_t rowMultiple(const LayoutEntry &layout) {
  if (layout.scaleShape == SideShape::Flat128x4)
    return 128;
  return layout.codeShape == CodeShape::Tiles16 ? 64 : 1;
}

/// Divisibility, read off the bit order; shapes that round up need none.
static Failure checkExtents(const WeightSpec &spec) {
  CodeShape shape = spec.layout->codeShape;
  if (shape == CodeShape::PackedInput || shape == CodeShape::PackedOutput)
    return ok();
  if (shape == CodeShape::RowBytes)
    return checkMultiple(spec, "input", spec.input, 8 / spec.bits());
  bool blocked = shape == CodeShape::Blocks32;
  if (blocked)
    if (Failure bad = checkBlocks(spec))
      return bad;
  Result<BitOrder> order = codeOrder(spec);
  if (!order)
    return order.takeFailure();
  bool keepsHalves = blocked || shape == CodeShape::Panels32;
  struct {
    const char *axis;
    int64_t extent, multiple;
  } const rules[] = {
      {"input", spec.input, order->tileExtent(Axis::Input)},
      // Blocks and panels do not mix halves.
      {keepsHalves && spec.halves == 2 ? "output of each half" : "output",
       keepsHalves ? spec.output : spec.rows(),
       order->tileExtent(Axis::Output)},
      {"rows", spec.rows(), rowMultiple(*spec.layout)},
  };
  for (auto [axis, extent, multiple] : rules)
    if (Failure bad = checkMultiple(spec, axis, extent, multiple))
      return bad;
  // Kernels with tiles along the input need whole groups.
  if (shape != CodeShape::RowWords && spec.groups() > 1 &&
      spec.actOrder != ActOrder::Index)
    return checkMultiple(spec, "input", spec.input, spec.group);
  return ok();
}

static PartShape codesPart(const WeightSpec &spec) {
  int64_t e = spec.experts, k = spec.input, r = spec.rows(), b = spec.bits();
  if (spec.code == CodeType::Dense) {
    bool inputFirst = spec.layout->codeShape == CodeShape::InputElements;
    return {
        Part::Codes, spec.element, {e, inputFirst ? k : r, inputFirst ? r : k}};
  }
  int64_t p = 32 / b;
  switch (spec.layout->codeShape) {
  case CodeShape::PackedInput:
    return {Part::Codes, ScalarType::I32, {e, (k + p - 1) / p, r}};
  case CodeShape::PackedOutput:
    return {Part::Codes, ScalarType::I32, {e, k, (r + p - 1) / p}};
  case CodeShape::RowWords:
    return {Part::Codes, ScalarType::I32, {e, r, (k + p - 1) / p}};
  case CodeShape::RowBytes:
    return {Part::Codes, ScalarType::U8, {e, r, k * b / 8}};
  case CodeShape::Tiles16:
    return {Part::Codes, ScalarType::I32, {e, k / 16, r * 16 / p}};
  case CodeShape::Blocks32: {
    int64_t block = blockLength(spec);
    return {
        Part::Codes, ScalarType::U8, {e, r / 32, k / block, 16 * block + 128}};
  }
  case CodeShape::Panels32:
    return {Part::Codes, ScalarType::U8, {e, r / 32, k / 4, 16 * b}};
  case CodeShape::Planes256:
    return {Part::Codes, ScalarType::U8, {e, k / 256, r, 128}};
  case CodeShape::Elements:
  case CodeShape::InputElements:
    break;
  }
  return {Part::Codes, spec.element, {e, r, k}};
}

/// A side tensor of elements of `type`; `p` elements share a 32-bit word.
static PartShape sidePart(const WeightSpec &spec, Part part, SideShape shape,
                          ScalarType type, int64_t p) {
  int64_t e = spec.experts, g = spec.groups(), r = spec.rows();
  int64_t packed = (r + p - 1) / p;
  switch (shape) {
  case SideShape::GroupMajor:
    return {part, type, {e, g, packed}};
  case SideShape::RowMajor:
    return {part, type, {e, packed, g}};
  case SideShape::RowBytes:
    return {part, ScalarType::U8, {e, (r * zeroBits(spec) + 7) / 8, g}};
  case SideShape::Blocks32:
    return {part, type, {e, r / 32, g, 32}};
  case SideShape::Flat128x4:
    return {part, type, {e, roundUp(r, 128) * roundUp(g, 4)}};
  case SideShape::None:
    break;
  }
  return {part, type, {e, 0}};
}

Result<PartShapes> wna16::partShapesOf(const WeightSpec &spec) {
  for (auto check : {checkRanges, checkCapabilities, checkExtents})
    if (Failure bad = check(spec))
      return bad;
  PartShapes parts{codesPart(spec)};
  if (spec.code == CodeType::Dense)
    return parts;
  const LayoutEntry &layout = *spec.layout;
  parts.push_back(
      sidePart(spec, Part::Scales, layout.scaleShape, spec.scale, 1));
  if (spec.zeros != ZeroPoints::None) {
    bool bytes = layout.zeroBits == 8;
    parts.push_back(sidePart(spec, Part::Zeros, layout.zeroShape,
                             bytes ? ScalarType::I8 : ScalarType::I32,
                             bytes ? 1 : 32 / spec.bits()));
  }
  if (spec.actOrder == ActOrder::Index)
    parts.push_back(
        {Part::GroupIndex, ScalarType::I32, {spec.experts, spec.input}});
  if (spec.actOrder == ActOrder::Sorted)
    parts.push_back(
        {Part::Permutation, ScalarType::I32, {spec.experts, spec.input}});
  if (spec.scale == ScalarType::I16)
    parts.push_back({Part::GlobalScale, ScalarType::F32, {1}});
  return parts;
}

Result<std::vector<StoredPart>> wna16::storageOf(const WeightSpec &spec) {
  Result<PartShapes> shapes = partShapesOf(spec);
  if (!shapes)
    return shapes.takeFailure();
  std::vector<StoredPart> parts;
  for (const PartShape &part : *shapes)
    parts.push_back(
        {part.part, part.type, {part.shape.begin(), part.shape.end()}});
  return parts;
}
