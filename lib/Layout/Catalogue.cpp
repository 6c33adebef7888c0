//===- Catalogue.cpp - Every storage layout, as data ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Catalogue.h"

#include <algorithm>

using namespace wna16;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static constexpr std::string_view kS64 = "n3 n4 n5 n0 n1 n2 | N G";
static constexpr std::string_view kS32 = "n0 n3 n4 n1 n2 | N G";
static constexpr std::string_view kS32Bias = "n0 n3 n4 n1 n2 | N";
static constexpr std::string_view kMma4 =
    "k3 n3 k0 | n4 n5 k1 k2 n0 n1 n2 | N K";
static constexpr std::string_view kMma8 =
    "k3 k0 | n3 n4 n5 k1 k2 n0 n1 n2 | N K";

const std::vector<LayoutEntry> &wna16::allLayouts() {
  using C = CodeShape;
  using S = SideShape;
  // clang-format off
  static const std::vector<LayoutEntry> table = {
      {0, "dense", "floats, output axis first",
       /*dense*/ "K | N", /*codes*/ "", "", /*gated*/ "",
       /*scales*/ "", "", /*gated*/ "",
       /*zeros*/ "", "", /*bias*/ "N",
       C::Elements, S::None, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {1, "interleaved", "rows of gate and up alternate",
       /*dense*/ "K | S | N", /*codes*/ "K | S | N", "K | S | N", /*gated*/ "",
       /*scales*/ "G | S | N", "G | S | N", /*gated*/ "",
       /*zeros*/ "n0 n1 n2 | G | N", "n0 n1 | G | N", /*bias*/ "S | N",
       C::RowWords, S::RowMajor, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {2, "gptq", "GPTQ v1 and v2: packed along the input",
       /*dense*/ "", /*codes*/ "k0 k1 k2 | N | K", "k0 k1 | N | K", /*gated*/ "",
       /*scales*/ "N | G", "N | G", /*gated*/ "",
       /*zeros*/ "N | G", "N | G", /*bias*/ "N",
       C::PackedInput, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ true, /*scaleType*/ {}, /*group*/ {}},
      {3, "awq", "AWQ gemm: packed along the output",
       /*dense*/ "", /*codes*/ "n1 n2 n0 | N | K", "n1 n0 | N | K", /*gated*/ "",
       /*scales*/ "N | G", "N | G", /*gated*/ "",
       /*zeros*/ "n1 n2 n0 | N | G", "n1 n0 | N | G", /*bias*/ "N",
       C::PackedOutput, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {4, "compressed_tensors", "pack-quantized: rows of 32-bit words",
       /*dense*/ "", /*codes*/ "K | N", "K | N", /*gated*/ "",
       /*scales*/ "G | N", "G | N", /*gated*/ "",
       /*zeros*/ "n0 n1 n2 | G | N", "n0 n1 | G | N", /*bias*/ "N",
       C::RowWords, S::RowMajor, S::RowMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ true, /*scaleType*/ {}, /*group*/ {}},
      {5, "marlin", "Marlin, 16-bit activations",
       /*dense*/ "", /*codes*/ kMma4, kMma8, /*gated*/ "",
       /*scales*/ kS64, kS32, /*gated*/ "",
       /*zeros*/ "n4 n5 n3 | n0 n1 n2 | N G", "n4 n3 | n5 n0 n1 n2 | N G", /*bias*/ kS32Bias,
       C::Tiles16, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ true, /*scaleType*/ {}, /*group*/ {}},
      {6, "marlin_a8", "Marlin, 8-bit activations",
       /*dense*/ "", /*codes*/ "k4 k0 k1 | n3 n4 k2 k3 n0 n1 n2 | N K", "k0 k1 | k4 n3 n4 k2 k3 n0 n1 n2 | N K", /*gated*/ "",
       /*scales*/ kS32, kS32, /*gated*/ "",
       /*zeros*/ kS64, kS64, /*bias*/ kS32Bias,
       C::Tiles16, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {7, "humming_mma", "Humming, mma kernels",
       /*dense*/ "", /*codes*/ kMma4, kMma8, /*gated*/ "",
       /*scales*/ kS64, kS32, /*gated*/ "",
       /*zeros*/ kS64, kS64, /*bias*/ kS32Bias,
       C::Tiles16, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {8, "humming_wgmma", "Humming, wgmma kernels",
       /*dense*/ "", /*codes*/ "n3 k3 k0 | n4 n5 k1 k2 n0 n1 n2 | N K", "n3 k0 | k3 n4 n5 k1 k2 n0 n1 n2 | N K", /*gated*/ "",
       /*scales*/ kS64, kS32, /*gated*/ "",
       /*zeros*/ kS64, kS64, /*bias*/ kS32Bias,
       C::Tiles16, S::GroupMajor, S::GroupMajor, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {9, "cpu_blocked", "blocks of 32 outputs, with their sums",
       /*dense*/ "", /*codes*/ "n3 k0 k1 n0 n1 n2 n4 * | K N", "", /*gated*/ "",
       /*scales*/ "n0 n1 n2 n3 n4 | G N", "n0 n1 n2 n3 n4 | G N", /*gated*/ "",
       /*zeros*/ "n0 n1 n2 n3 n4 | G N", "", /*bias*/ "N",
       C::Blocks32, S::Blocks32, S::Blocks32, /*trailerBytes*/ 128, /*zeroBits*/ 8,
       /*needsZeros*/ true, /*actOrder*/ false, /*scaleType*/ ScalarType::F32, /*group*/ {}},
      {10, "trtllm", "FlashInfer TRT-LLM MXINT4",
       /*dense*/ "", /*codes*/ "k0 k1 k2 k3 k4 k5 k6 k7 | n2 n3 n4 n0 n1 N | K", "", /*gated*/ "k0 k1 k2 k3 k4 k5 k6 k7 | n1 n2 n3 u n0 N | K",
       /*scales*/ "g0 g1 n5 n6 n2 n3 n4 n0 n1 | G N", "g0 g1 n5 n6 n2 n3 n4 n0 n1 | G N", /*gated*/ "g0 g1 n4 n5 n1 n2 n3 u n0 | G N",
       /*zeros*/ "", "", /*bias*/ "N",
       C::Planes256, S::Flat128x4, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ ScalarType::BF16, /*group*/ 32},
      {11, "xpu", "XPU: rows of bytes",
       /*dense*/ "", /*codes*/ "K | N", "K | N", /*gated*/ "",
       /*scales*/ "G | N", "G | N", /*gated*/ "",
       /*zeros*/ "", "", /*bias*/ "N",
       C::RowBytes, S::RowMajor, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {12, "otf", "on-the-fly: rows of bytes, zero points in pairs of rows",
       /*dense*/ "", /*codes*/ "K | N", "K | N", /*gated*/ "",
       /*scales*/ "G | N", "G | N", /*gated*/ "",
       /*zeros*/ "n0 | G | N", "G | N", /*bias*/ "N",
       C::RowBytes, S::RowMajor, S::RowBytes, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {13, "transposed", "floats, input axis first",
       /*dense*/ "N | K", /*codes*/ "", "", /*gated*/ "",
       /*scales*/ "", "", /*gated*/ "",
       /*zeros*/ "", "", /*bias*/ "N",
       C::InputElements, S::None, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {14, "transposed_interleaved", "floats, input axis first, columns of gate and up alternate",
       /*dense*/ "S | N | K", /*codes*/ "", "", /*gated*/ "",
       /*scales*/ "", "", /*gated*/ "",
       /*zeros*/ "", "", /*bias*/ "S | N",
       C::InputElements, S::None, S::None, /*trailerBytes*/ 0, /*zeroBits*/ 0,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
      {15, "cpu_panels", "panels of 32 outputs, four inputs at a time",
       /*dense*/ "", /*codes*/ "n3 k0 k1 n0 n1 n2 n4 | K N", "k0 k1 n0 n1 n2 n4 n3 | K N", /*gated*/ "",
       /*scales*/ "n0 n1 n2 n3 n4 | G N", "n0 n1 n2 n3 n4 | G N", /*gated*/ "",
       /*zeros*/ "n0 n1 n2 n3 n4 | G N", "n0 n1 n2 n3 n4 | G N", /*bias*/ "N",
       C::Panels32, S::Blocks32, S::Blocks32, /*trailerBytes*/ 0, /*zeroBits*/ 8,
       /*needsZeros*/ false, /*actOrder*/ false, /*scaleType*/ {}, /*group*/ {}},
  };
  // clang-format on
  return table;
}

const LayoutEntry *wna16::findLayout(std::string_view name) {
  for (const LayoutEntry &entry : allLayouts())
    if (entry.name == name)
      return &entry;
  return nullptr;
}

const LayoutEntry *wna16::findLayout(int64_t id) {
  const std::vector<LayoutEntry> &table = allLayouts();
  return id >= 0 && id < static_cast<int64_t>(table.size()) ? &table[id]
                                                            : nullptr;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

AddressMap::AddressMap(const BitOrder &order, int64_t input, int64_t halves,
                       int64_t output, int64_t groups, int64_t trailerUnits,
                       int64_t innerPadding)
    : outputs(output), namesHalf(order.names(Axis::Half)) {
  int64_t weight = 1;
  for (BitOrder::Bit bit : order.bits()) {
    int axis = static_cast<int>(bit.axis);
    low[axis].push_back({bit.index, bit.inverted, weight});
    ++lowBits[axis];
    weight *= 2;
  }
  tileUnits = weight + trailerUnits;
  int64_t extents[kNumAxes] = {input, namesHalf ? output : halves * output,
                               halves, groups};
  total = tileUnits;
  bool first = true;
  for (Axis rest : order.rests()) {
    int axis = static_cast<int>(rest);
    stride[axis] = total;
    int64_t tiles = ceilDiv(extents[axis], int64_t(1) << lowBits[axis]);
    // Rows of words: the innermost rest fills whole words.
    if (first && order.bits().empty())
      tiles = ceilDiv(tiles, innerPadding) * innerPadding;
    first = false;
    count[axis] = tiles;
    total *= tiles;
  }
}

int64_t AddressMap::term(Axis axis, int64_t coordinate) const {
  int a = static_cast<int>(axis);
  int64_t offset = (coordinate >> lowBits[a]) * stride[a];
  for (Term term : low[a])
    if (((coordinate >> term.bit) & 1) != (term.inverted ? 1 : 0))
      offset += term.weight;
  return offset;
}

int64_t AddressMap::input(int64_t k) const { return term(Axis::Input, k); }
int64_t AddressMap::group(int64_t g) const { return term(Axis::Group, g); }

int64_t AddressMap::row(int64_t r) const {
  if (!namesHalf)
    return term(Axis::Output, r);
  return term(Axis::Output, r % outputs) + term(Axis::Half, r / outputs);
}

int64_t wna16::blockLength(const WeightSpec &spec) {
  int64_t group = spec.group < 0 ? spec.input : spec.group;
  return std::min<int64_t>(128, group);
}

int wna16::zeroBits(const WeightSpec &spec) {
  return spec.layout->zeroBits ? spec.layout->zeroBits : spec.bits();
}

/// "k2 k3 .." of a block of at most 128, for the "*" of a bit order.
static std::string_view blockBits(int64_t length) {
  constexpr std::string_view kBits = "k2 k3 k4 k5 k6";
  size_t count = 0;
  while ((int64_t(4) << count) < length)
    ++count;
  return kBits.substr(0, count ? 3 * count - 1 : 0);
}

/// Parses `text` with its "*" replaced.
static Result<BitOrder> parseBlocked(std::string_view text, size_t star,
                                     std::string_view bits) {
  char full[128];
  size_t size = 0;
  for (std::string_view piece :
       {text.substr(0, star), bits, text.substr(star + 1)})
    size += piece.copy(full + size, sizeof full - size);
  return BitOrder::parse({full, size});
}

/// The order for gated weights where it differs and the weight is gated.
static std::string_view choose(const WeightSpec &spec, std::string_view plain,
                               std::string_view gated) {
  return spec.halves == 2 && !gated.empty() ? gated : plain;
}

Result<BitOrder> wna16::codeOrder(const WeightSpec &spec) {
  const LayoutEntry &layout = *spec.layout;
  std::string_view text;
  if (spec.code == CodeType::Dense)
    text = layout.dense;
  else
    text = spec.bits() == 4 ? choose(spec, layout.codes4, layout.gated4)
                            : layout.codes8;
  if (size_t star = text.find('*'); star != std::string_view::npos)
    return parseBlocked(text, star, blockBits(blockLength(spec)));
  return BitOrder::parse(text);
}

Result<AddressMap> wna16::codeAddresses(const WeightSpec &spec) {
  Result<BitOrder> order = codeOrder(spec);
  if (!order)
    return order.takeFailure();
  bool words = spec.layout->codeShape == CodeShape::RowWords &&
               spec.code != CodeType::Dense;
  return AddressMap(*order, spec.input, spec.halves, spec.output, 1,
                    spec.layout->trailerBytes * 8 / spec.bits(),
                    words ? 32 / spec.bits() : 1);
}

static Result<AddressMap>
sideAddresses(const WeightSpec &spec, std::string_view text, int64_t padding) {
  Result<BitOrder> order = BitOrder::parse(text);
  if (!order)
    return order.takeFailure();
  return AddressMap(*order, spec.input, spec.halves, spec.output, spec.groups(),
                    0, padding);
}

Result<AddressMap> wna16::scaleAddresses(const WeightSpec &spec) {
  const LayoutEntry &layout = *spec.layout;
  return sideAddresses(
      spec,
      choose(spec, spec.groups() > 1 ? layout.scales : layout.scales1,
             layout.gatedScales),
      1);
}

Result<AddressMap> wna16::zeroAddresses(const WeightSpec &spec) {
  const LayoutEntry &layout = *spec.layout;
  return sideAddresses(
      spec, spec.bits() == 4 ? layout.zeros4 : layout.zeros8,
      layout.zeroShape == SideShape::GroupMajor ? 32 / zeroBits(spec) : 1);
}

Result<AddressMap> wna16::biasAddresses(const WeightSpec &spec) {
  return sideAddresses(spec, spec.layout->bias, 1);
}
