//===- RandomLayoutTest.cpp - Moves between layouts of any bit order ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The engine reads bit orders, not names: it moves between layouts that no
// catalogue has as well. What is where follows from a drawn order, without the
// library's addresses. Floats go between every pair of their layouts.
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

//===----------------------------------------------------------------------===//
// Random orders
//===----------------------------------------------------------------------===//

/// Coordinates of a unit: an input or a group, a half and one of its outputs.
struct Place {
  int64_t inner, half, output;
};

/// A permutation of address bits below the rests of its axes.
class Order {
public:
  /// `inner` is 'k' or 'g'. Without `halves`, outputs count the halves.
  Order(std::mt19937 &random, char inner, unsigned innerBits, bool halves)
      : halves(halves) {
    for (auto [axis, most] : {std::pair(inner, innerBits), std::pair('n', 6u)})
      for (unsigned bit = 0, count = random() % (most + 1); bit < count; ++bit)
        bits.push_back({axis, bit});
    if (halves)
      bits.push_back({random() % 2 ? 's' : 'u', 0});
    innerFirst = random() % 2;
    std::shuffle(bits.begin(), bits.end(), random);
    for (auto [axis, bit] : bits)
      words += std::string(1, axis) +
               (axis == 's' || axis == 'u' ? "" : std::to_string(bit)) + " ";
    std::string first(1, char(inner - 'a' + 'A'));
    words += innerFirst ? first + " N" : "N " + first;
  }

  std::string_view text() const { return words; }

  /// The unit of an expert that has `inners` by `outputs` in each of two
  /// halves.
  int64_t address(Place at, int64_t inners, int64_t outputs) const {
    int64_t rows = halves ? outputs : 2 * outputs;
    int64_t row = halves ? at.output : at.half * outputs + at.output;
    int64_t unit = 0, weight = 1;
    int innerBits = 0, rowBits = 0;
    for (auto [axis, bit] : bits) {
      int64_t value;
      if (axis == 's' || axis == 'u') {
        value = axis == 's' ? at.half : 1 - at.half;
      } else if (axis == 'n') {
        value = row >> bit & 1;
        ++rowBits;
      } else {
        value = at.inner >> bit & 1;
        ++innerBits;
      }
      unit += value * weight;
      weight *= 2;
    }
    int64_t innerRest = at.inner >> innerBits, rowRest = row >> rowBits;
    return unit + weight * (innerFirst
                                ? innerRest + rowRest * (inners >> innerBits)
                                : rowRest + innerRest * (rows >> rowBits));
  }

private:
  struct Bit {
    char axis;
    unsigned bit;
  };
  bool halves, innerFirst;
  std::vector<Bit> bits;
  std::string words;
};

/// A layout of random orders, whatever the width of a code.
struct RandomLayout {
  Order codes, scales, zeros;
  LayoutEntry entry;

  explicit RandomLayout(std::mt19937 &random)
      : codes(random, 'k', 6, random() % 2),
        scales(random, 'g', 2, random() % 2),
        zeros(random, 'g', 2, random() % 2), entry(*findLayout("gptq")) {
    entry.name = "random";
    entry.codes4 = entry.codes8 = codes.text();
    entry.scales = scales.text();
    entry.zeros4 = entry.zeros8 = zeros.text();
    // Group by group, an order that begins with groups would be padded to
    // words.
    entry.zeroShape = SideShape::RowMajor;
  }
  RandomLayout(const RandomLayout &) = delete;

  std::string text() const {
    std::string all;
    for (const Order *part : {&codes, &scales, &zeros})
      all += "[" + std::string(part->text()) + "]";
    return all;
  }
  const Order &order(Part part) const {
    return part == Part::Codes ? codes : part == Part::Scales ? scales : zeros;
  }
};

int unitBits(const WeightSpec &spec, Part part) {
  return part == Part::Scales ? 16 : spec.bits();
}

/// `to` holds the units of `from`, each where its layout's order says.
void expectSameUnits(const RandomLayout &a, const Stored &from,
                     const RandomLayout &b, const Stored &to, Part part) {
  const WeightSpec &spec = from.spec;
  int64_t inners = part == Part::Codes ? spec.input : spec.groups();
  int64_t size = inners * spec.rows();
  int bits = unitBits(spec, part);
  Bytes expected(to.at(part).size());
  ASSERT_EQ(expected.size(), size_t(spec.experts * size * bits / 8));
  for (int64_t e = 0; e < spec.experts; ++e)
    for (Place at{0, 0, 0}; at.inner < inners; ++at.inner)
      for (at.half = 0; at.half < 2; ++at.half)
        for (at.output = 0; at.output < spec.output; ++at.output) {
          int64_t in =
              e * size + a.order(part).address(at, inners, spec.output);
          int64_t out =
              e * size + b.order(part).address(at, inners, spec.output);
          if (bits == 16)
            std::memcpy(&expected[2 * out], &from.at(part)[2 * in], 2);
          else
            setField(expected, bits, out, field(from.at(part), bits, in));
        }
  EXPECT_EQ(to.at(part), expected) << name(part);
}

TEST(RandomLayouts, ComposeInvertAndFollowTheirOrders) {
  std::mt19937 random(61);
  constexpr std::pair<int64_t, int64_t> kExtents[] = {
      {256, 128}, {512, 64}, {128, 192}, {384, 128}};
  for (int round = 0; round < 120; ++round) {
    RandomLayout a(random), b(random), c(random);
    auto [input, output] = kExtents[random() % 4];
    WeightSpec spec = specOf("gptq", CodeType::U4B8, input, 2, output, 32);
    bool wide = random() % 2, zeros = random() % 2;
    if (wide)
      spec.code = CodeType::U8B128;
    if (zeros) {
      spec.code = wide ? CodeType::U8 : CodeType::U4;
      spec.zeros = ZeroPoints::Plain;
    }
    auto in = [&](const RandomLayout &layout) {
      WeightSpec placed = spec;
      placed.layout = &layout.entry;
      return placed;
    };
    Stored x(in(a)), y(in(b)), z(in(c)), direct(in(c), 0xff), back(in(a));
    for (Part part : {Part::Codes, Part::Scales, Part::Zeros})
      for (uint8_t &byte : x.at(part))
        byte = static_cast<uint8_t>(random());
    ASSERT_EQ(moveAll(x, y), "");
    ASSERT_EQ(moveAll(y, z), "");
    ASSERT_EQ(moveAll(x, direct), "");
    ASSERT_EQ(moveAll(z, back), "");
    EXPECT_EQ(direct.parts, z.parts);
    EXPECT_EQ(back.parts, x.parts);
    expectSameUnits(a, x, b, y, Part::Codes);
    expectSameUnits(a, x, b, y, Part::Scales);
    if (zeros)
      expectSameUnits(a, x, b, y, Part::Zeros);
    ASSERT_FALSE(HasFailure()) << "round " << round << ": " << a.text()
                               << " to " << b.text() << " to " << c.text();
  }
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// The element of a layout of floats.
int64_t elementOf(const WeightSpec &spec, int64_t e, Place at) {
  std::string_view layout = spec.layout->name;
  bool alternates = layout.find("interleaved") != std::string_view::npos;
  int64_t rows = spec.rows();
  int64_t row = alternates ? at.output * spec.halves + at.half
                           : at.half * spec.output + at.output;
  int64_t first = e * rows * spec.input;
  return layout.rfind("transposed", 0) == 0
             ? first + at.inner * rows + row
             : first + row * spec.input + at.inner;
}

/// `to` holds the window of `from`, and zeros.
void expectElements(const Stored &from, const Stored &to, Window window) {
  const WeightSpec &source = from.spec, &target = to.spec;
  auto size = static_cast<size_t>(sizeOf(target.element));
  Bytes expected(to.at(Part::Codes).size());
  for (int64_t e = 0; e < source.experts; ++e)
    for (Place at{0, 0, 0}; at.half < source.halves; ++at.half)
      for (at.output = 0; at.output < window.outputs; ++at.output)
        for (at.inner = 0; at.inner < window.inputs; ++at.inner) {
          Place old = {window.input + at.inner, at.half,
                       window.output + at.output};
          std::memcpy(&expected[size * elementOf(target, e, at)],
                      &from.at(Part::Codes)[size * elementOf(source, e, old)],
                      size);
        }
  EXPECT_EQ(to.at(Part::Codes), expected);
}

TEST(Floats, EveryPairWindowAndPadding) {
  std::mt19937 random(67);
  int pairs = 0;
  for (const LayoutEntry &a : allLayouts())
    for (const LayoutEntry &b : allLayouts())
      for (ScalarType type :
           {ScalarType::F16, ScalarType::BF16, ScalarType::F32})
        for (int64_t halves : {1, 2}) {
          if (a.dense.empty() || b.dense.empty())
            continue;
          SCOPED_TRACE(std::string(a.name) + " to " + std::string(b.name));
          WeightSpec spec =
              specOf("dense", CodeType::Dense, 72, halves, 40, -1);
          spec.element = type;
          spec.layout = &a;
          Stored source(spec);
          for (uint8_t &byte : source.at(Part::Codes))
            byte = static_cast<uint8_t>(random());
          spec.layout = &b;
          Stored whole(spec), back(source.spec);
          ASSERT_EQ(moveAll(source, whole), "");
          ASSERT_EQ(moveAll(whole, back), "");
          expectElements(source, whole, {0, 72, 0, 40});
          EXPECT_EQ(back.parts, source.parts);
          Window window = {5, 33, 7, 21};
          spec.input = 48;
          spec.output = 24;
          Stored part(spec);
          ASSERT_EQ(moveAll(source, part, window), "");
          expectElements(source, part, window);
          ++pairs;
        }
  EXPECT_GE(pairs, 4 * 4 * 6);
}

} // namespace
