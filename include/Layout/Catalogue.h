//===- Catalogue.h - Every storage layout, as data --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout is one entry of one table: the bit orders of its weight, scales,
// zero points and bias, and how its storage is shaped. Adding a layout adds a
// row to the table in Catalogue.cpp and touches nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_CATALOGUE_H
#define WNA16_LAYOUT_CATALOGUE_H

#include "Layout/BitOrder.h"
#include "Layout/WeightSpec.h"

#include <memory>

namespace wna16 {

/// How the codes of one expert are shaped as a tensor. K: input, R: rows, p:
/// codes a 32-bit word, b: bits a code.
enum class CodeShape : uint8_t {
  PackedInput,   ///< i32 [ceil(K/p), R]
  PackedOutput,  ///< i32 [K, ceil(R/p)]
  RowWords,      ///< i32 [R, ceil(K/p)]
  RowBytes,      ///< u8 [R, K*b/8]
  Tiles16,       ///< i32 [K/16, R*16/p]
  Blocks32,      ///< u8 [R/32, K/Bk, 16*Bk + 128]
  Planes256,     ///< u8 [K/256, R, 128]
  Elements,      ///< elements [R, K]
  InputElements, ///< elements [K, R]
  Panels32,      ///< u8 [R/32, K/4, 16*b]
};

/// How a side tensor of one expert is shaped. G: groups.
enum class SideShape : uint8_t {
  None,       ///< the layout has no such tensor
  GroupMajor, ///< [G, R]; packed: i32 [G, ceil(R/p)]
  RowMajor,   ///< [R, G]; packed: i32 [ceil(R/p), G]
  RowBytes,   ///< packed: u8 [R*b/8, G]
  Blocks32,   ///< [R/32, G, 32]
  Flat128x4,  ///< [ceil(R, 128) * ceil(G, 4)]
};

/// One layout. docs/Layouts.md explains bit orders; "*" stands for the bits
/// k2 .. of a block whose length follows from the group.
struct LayoutEntry {
  int64_t id; ///< position in the table: part of the ABI, never renumbered
  std::string_view name;
  std::string_view summary;

  std::string_view dense;       ///< floats; empty: none
  std::string_view codes4;      ///< 4-bit codes; empty: none
  std::string_view codes8;      ///< 8-bit codes; empty: none
  std::string_view gated4;      ///< 4-bit codes of gated weights, if different
  std::string_view scales;      ///< several groups
  std::string_view scales1;     ///< one group
  std::string_view gatedScales; ///< of gated weights, if different
  std::string_view zeros4;
  std::string_view zeros8;
  std::string_view bias;

  CodeShape codeShape;
  SideShape scaleShape;
  SideShape zeroShape;
  int64_t trailerBytes; ///< after each tile (sums of a block)
  int zeroBits;         ///< bits of a stored zero point; 0: those of the code
  bool needsZeros;      ///< zero points are stored even where implied
  bool actOrder;        ///< can hold rows out of group order
  /// The only scale type that the kernel reads; none: any.
  std::optional<ScalarType> scaleType;
  std::optional<int64_t> group; ///< the only group size; none: any
};

/// Looks a layout up by name ("gptq", "awq", "compressed_tensors", "marlin",
/// "marlin_a8", "humming_mma", "humming_wgmma", "cpu_blocked", "trtllm", "xpu",
/// "otf", "dense", ...); null when there is none.
const LayoutEntry *findLayout(std::string_view name);

/// Looks a layout up by its ABI number; null when there is none.
const LayoutEntry *findLayout(int64_t id);

/// The table, in the order of its ABI numbers.
const std::vector<LayoutEntry> &allLayouts();

/// Addresses of one expert's elements. Every layout is a sum of one term per
/// axis: offset(k, r) = input(k) + row(r), and for side tensors group(g) +
/// row(r). Units are codes (weights, zero points) or elements.
class AddressMap {
public:
  AddressMap() = default;
  AddressMap(const BitOrder &order, int64_t input, int64_t halves,
             int64_t output, int64_t groups, int64_t trailerUnits = 0,
             int64_t innerPadding = 1);

  int64_t input(int64_t k) const;
  int64_t row(int64_t r) const; ///< r = half * output + n
  int64_t group(int64_t g) const;
  /// Units of one expert, padding and trailers included.
  int64_t size() const { return total; }
  /// Units of one tile with its trailer.
  int64_t tile() const { return tileUnits; }

  /// What one bit of a coordinate adds to the address (inverted: what its 0
  /// adds).
  struct Term {
    uint8_t bit;
    bool inverted;
    int64_t weight;
  };
  /// The bits of an axis that lie within a tile, lowest address first.
  using Terms = InlineVector<Term, BitOrder::kMaxBits>;
  const Terms &bits(Axis axis) const { return low[static_cast<int>(axis)]; }
  /// Units from one tile to the next along an axis; 0 when there is no next.
  int64_t tileStride(Axis axis) const { return stride[static_cast<int>(axis)]; }
  /// Tiles along an axis, padding included.
  int64_t tiles(Axis axis) const { return count[static_cast<int>(axis)]; }
  /// Whether halves are an axis of their own; otherwise rows count them.
  bool hasHalves() const { return namesHalf; }

private:
  int64_t term(Axis axis, int64_t coordinate) const;

  std::array<Terms, kNumAxes> low;
  std::array<int, kNumAxes> lowBits = {};
  std::array<int64_t, kNumAxes> stride = {};
  std::array<int64_t, kNumAxes> count = {};
  int64_t outputs = 1;
  bool namesHalf = false;
  int64_t total = 0;
  int64_t tileUnits = 1;
};

/// Where the codes, scales, zero points and bias of a weight lie.
Result<AddressMap> codeAddresses(const WeightSpec &spec);
Result<AddressMap> scaleAddresses(const WeightSpec &spec);
Result<AddressMap> zeroAddresses(const WeightSpec &spec);
Result<AddressMap> biasAddresses(const WeightSpec &spec);

/// The bit order of a weight's codes, block length filled in.
Result<BitOrder> codeOrder(const WeightSpec &spec);

/// Inputs of one block of the blocked CPU layout: min(128, group).
int64_t blockLength(const WeightSpec &spec);
/// Bits of a stored zero point.
int zeroBits(const WeightSpec &spec);

} // namespace wna16

#endif // WNA16_LAYOUT_CATALOGUE_H
