//===- ConvertPartsTest.cpp - A conversion's tables, run on the host ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans conversions as for a device, runs what is planned on the host and
// compares with moves on the CPU: that what tables write is right, and that
// they write all but what is left to be written word by word.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CUDA/ConvertParts.h"
#include "../Layout/TestWeights.h"
#include "BlockInterpreter.h"

#include "Layout/Scalar.h"

using namespace wna16;
using namespace wna16::cuda;
using namespace wna16::test;

namespace {

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

uint32_t changeScale(const ScaleChange &change, uint32_t unit) {
  if (!change.changes())
    return unit;
  const float value = loadFloat(change.from, &unit, 0) * change.factor;
  return change.to == ScalarType::F32   ? bitsOf(value)
         : change.to == ScalarType::F16 ? floatToF16(value)
                                        : floatToBF16(value);
}

template <int FromBits, int ToBits>
void fetchWord(const UnitMove &move, int64_t unit, int word, uint32_t *out) {
  fetchUnits<FromBits, ToBits, 1>(move, unit, word, out, [&](uint32_t value) {
    return ToBits < 16 ? (value + move.zero.add) & move.zero.mask
                       : changeScale(move.scale, value);
  });
}

void runUnits(const UnitMove &move) {
  using Fetch = void (*)(const UnitMove &, int64_t, int, uint32_t *);
  const Fetch fetch =
      move.fromBits == 4 ? move.toBits == 4 ? fetchWord<4, 4> : fetchWord<4, 8>
      : move.fromBits == 8
          ? move.toBits == 4 ? fetchWord<8, 4> : fetchWord<8, 8>
      : move.fromBits == 16
          ? move.toBits == 16 ? fetchWord<16, 16> : fetchWord<16, 32>
      : move.toBits == 16 ? fetchWord<32, 16>
                          : fetchWord<32, 32>;
  for (uint32_t number = 0; number < move.blocks; ++number)
    for (uint32_t thread = 0; thread < 1u << move.threadBits; ++thread) {
      const UnitPlace place = unitPlace(move, number, thread);
      for (int word = 0; word < kHeldWords; ++word) {
        uint32_t value = place.moves ? move.implied : 0;
        if (place.moves && move.from)
          fetch(move, place.unit, word, &value);
        const BlockSide &side = move.target;
        uint8_t *to =
            place.to + (side.wide ? side.bytes.access[word / 4] + 4 * (word % 4)
                                  : side.bytes.access[word]);
        std::memcpy(to, &value, 4);
      }
    }
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

void clearEdges(const BlockMove &move) {
  const BlockSide &side = move.target;
  for (uint32_t number = 0; number < move.cleared; ++number)
    for (uint32_t thread = 0; thread < 1u << move.threadBits; ++thread)
      for (int access = 0; access < (side.wide ? 2 : kHeldWords); ++access)
        std::memset(move.to + addressOf(side, edgeOf(move, number)) +
                        sumOf(side.bytes, thread) + side.bytes.access[access],
                    0, side.wide ? 16 : 4);
}

/// What is planned for one conversion, and what comes of it.
class Converted {
public:
  Converted(Stored &in, const WeightSpec &target, const Window &window,
            const Stored &expected)
      : in(in), expected(expected), plan{in.spec, target, window} {}

  void compare() {
    Stored got[] = {Stored(plan.target, 0x5a), Stored(plan.target, 0xa5)};
    for (Stored &stored : got)
      run(stored);
    for (Part part : {Part::Codes, Part::Scales, Part::Zeros}) {
      const Bytes &want = expected.at(part);
      const auto index = static_cast<size_t>(part);
      size_t moved = 0;
      for (size_t i = 0; i < want.size(); ++i)
        if (got[0].at(part)[i] == got[1].at(part)[i]) {
          ++moved;
          ASSERT_EQ(int(got[0].at(part)[i]), int(want[i]))
              << "part " << index << ", byte " << i;
        }
      EXPECT_EQ(moved + words[index], want.size()) << "part " << index;
      wordParts += words[index] > 0;
    }
  }

  int wordParts = 0; ///< of which something is left to be written by words

private:
  void run(Stored &out) {
    // Rows in order are known before codes move.
    out.at(Part::Permutation) = expected.at(Part::Permutation);
    const WeightBuffers from = in.buffers(), to = out.buffers();
    const Conversion p = describeConversion(plan, from, to);
    words = {};
    for (const PartMove &part : planParts(plan, p))
      run(part, out);
  }

  void run(const PartMove &part, Stored &out) {
    Bytes &bytes = out.at(part.part);
    ASSERT_EQ(bytes.size(), size_t(part.bytes));
    if (part.fill || !part.exact())
      std::fill(bytes.begin(), bytes.end(), part.fill.value_or(0));
    if (part.units)
      return runUnits(*part.units);
    if (part.fill)
      return;
    if (!part.blocks) {
      words[size_t(part.part)] = bytes.size();
      return;
    }
    const BlockMove &move = *part.blocks;
    Interpreter interpreter(move);
    interpreter.recode = part.work.recode ? &*part.work.recode : nullptr;
    interpreter.sums = part.work.sums ? &*part.work.sums : nullptr;
    if (plan.source.zeros != ZeroPoints::None)
      interpreter.zeroMap = *zeroAddresses(plan.source);
    EXPECT_EQ(part.work.sort.has_value(),
              part.part == Part::Codes &&
                  plan.source.actOrder != plan.target.actOrder);
    if (part.work.sort)
      interpreter.runSlices(*part.work.sort);
    else
      interpreter.run();
    clearEdges(move);
    const int64_t blocks = plan.target.experts * move.halves *
                           int64_t(move.allInners) * move.allOutputs;
    size_t &left = words[size_t(part.part)];
    if (!move.cleared && move.exact)
      left += plan.target.experts * move.halves * move.edges * move.bytes();
    // Sums after blocks.
    if (part.part == Part::Codes && !part.work.sums && move.exact)
      left += bytes.size() - blocks * move.bytes();
  }

  Stored &in;
  const Stored &expected;
  ConvertPlan plan;
  std::array<size_t, kNumParts> words = {};
};

/// As many rows of each group, in any order.
void shuffleGroups(Stored &stored) {
  const WeightSpec &spec = stored.spec;
  std::vector<int32_t> groups(spec.input);
  std::mt19937 random(3);
  for (int64_t expert = 0; expert < spec.experts; ++expert) {
    for (int64_t k = 0; k < spec.input; ++k)
      groups[k] = static_cast<int32_t>(k / spec.group);
    std::shuffle(groups.begin(), groups.end(), random);
    std::memcpy(&stored.at(Part::GroupIndex)[4 * expert * spec.input],
                groups.data(), 4 * groups.size());
  }
}

/// Converts random bytes; how many parts are not written by tables alone.
int compare(const WeightSpec &source, const WeightSpec &target,
            Window window = {}) {
  Stored in(source), expected(target);
  fillRandomly(in);
  if (source.actOrder == ActOrder::Index)
    shuffleGroups(in);
  const Failure bad =
      moveWeight(source, in.buffers(), target, expected.buffers(),
                 {0, source.experts}, window);
  EXPECT_FALSE(bad) << bad.message;
  if (bad)
    return 0;
  Converted converted(in, target, *resolve(source, window), expected);
  converted.compare();
  return converted.wordParts;
}

/// A weight that any layout holds which has zero points.
WeightSpec weightIn(const char *layout, int64_t group) {
  return plainSpec(layout, CodeType::U4, 512, 2, 192, group);
}

constexpr const char *kFrom[] = {"gptq",   "awq", "compressed_tensors",
                                 "marlin", "otf", "cpu_panels"};

TEST(ConvertParts, FinerGroups) {
  for (const char *from : kFrom)
    for (const char *to : {"gptq", "marlin", "compressed_tensors", "awq"})
      for (int64_t group : {512, 128, 64, -1})
        for (int64_t finer : {64, 32}) {
          SCOPED_TRACE(std::string(from) + " to " + to + ", " +
                       std::to_string(group) + " to " + std::to_string(finer));
          if (group > 0 && finer > group)
            continue;
          EXPECT_EQ(compare(weightIn(from, group), weightIn(to, finer)), 0);
        }
}

TEST(ConvertParts, Padding) {
  for (const char *from : kFrom)
    for (const char *to : {"gptq", "marlin", "compressed_tensors", "awq"})
      for (int64_t finer : {128, 64})
        for (auto [input, output] :
             {std::pair<int64_t, int64_t>{128, 64}, {0, 64}, {128, 0}}) {
          SCOPED_TRACE(std::string(from) + " to " + to + ", " +
                       std::to_string(finer));
          WeightSpec target = weightIn(to, finer);
          target.input += input;
          target.output += output;
          // An odd number of groups side by side: scales have no words.
          const bool words =
              target.layout == findLayout("compressed_tensors") &&
              target.groups() % 2;
          EXPECT_EQ(compare(weightIn(from, 128), target), words);
        }
}

TEST(ConvertParts, Windows) {
  for (const char *from : {"gptq", "compressed_tensors", "marlin", "otf"})
    for (const char *to : {"gptq", "marlin"})
      for (int64_t begin : {96, 128, 192})
        for (auto [inputs, outputs] :
             {std::pair<int64_t, int64_t>{256, 128}, {160, 64}, {224, 100}}) {
          SCOPED_TRACE(std::string(from) + " to " + to);
          WeightSpec target = weightIn(to, 32);
          target.input = 256;
          target.output = 128;
          compare(weightIn(from, 64), target, {begin, inputs, 64, outputs});
        }
}

TEST(ConvertParts, OtherTypes) {
  const ScalarType types[] = {ScalarType::F16, ScalarType::BF16,
                              ScalarType::F32};
  for (ScalarType from : types)
    for (ScalarType to : types)
      for (const char *layout : kFrom)
        for (bool padded : {false, true}) {
          WeightSpec source = weightIn("gptq", 64);
          source.scale = from;
          WeightSpec target = weightIn(layout, 64);
          target.scale = to;
          target.zeros = ZeroPoints::MinusOne;
          target.output += padded ? 64 : 0;
          SCOPED_TRACE(layout);
          if (!checkMove(source, target)) {
            EXPECT_EQ(compare(source, target), 0);
          }
          std::swap(source, target);
          if (!padded && !checkMove(source, target)) {
            EXPECT_EQ(compare(source, target), 0);
          }
        }
}

/// Implied zero points, stored where something moves.
TEST(ConvertParts, ImpliedZeros) {
  for (const char *layout : {"gptq", "awq", "marlin", "cpu_blocked"})
    for (int64_t padding : {0, 64}) {
      WeightSpec source = weightIn("compressed_tensors", 32);
      source.code = CodeType::U4B8;
      source.zeros = ZeroPoints::None;
      WeightSpec target = weightIn(layout, 32);
      target.output += padding;
      SCOPED_TRACE(layout);
      if (!checkMove(source, target))
        compare(source, target);
    }
}

TEST(ConvertParts, SortsRows) {
  for (int bits : {4, 8})
    for (auto [input, halves, output] : {std::array<int64_t, 3>{512, 2, 192},
                                         {768, 1, 64},
                                         {14336, 1, 64},
                                         {128, 2, 320}})
      for (const char *from : {"gptq", "compressed_tensors", "marlin"})
        for (const char *to : {"gptq", "compressed_tensors", "marlin"}) {
          WeightSpec source = weightIn(from, 32);
          source.code = bits == 4 ? CodeType::U4B8 : CodeType::U8B128;
          source.zeros = ZeroPoints::None;
          source.experts = 2;
          source.input = input;
          source.halves = halves;
          source.output = output;
          WeightSpec target = source;
          target.layout = findLayout(to);
          target.output += output == 192 ? 64 : 0;
          source.actOrder = ActOrder::Index;
          target.actOrder = ActOrder::Sorted;
          SCOPED_TRACE(std::string(from) + " to " + to + ", " +
                       std::to_string(input));
          if (!checkMove(source, target)) {
            EXPECT_EQ(compare(source, target), 0);
          }
        }
}

/// Every pair as benchmarks have it: all is written by tables.
TEST(ConvertParts, EveryPairOfLayouts) {
  struct Shape {
    int64_t input, halves, output;
  };
  int pairs = 0;
  for (Shape shape : {Shape{512, 2, 256}, {768, 1, 512}})
    for (const LayoutEntry &from : allLayouts())
      for (const LayoutEntry &to : allLayouts()) {
        if (from.codes4.empty() || to.codes4.empty())
          continue;
        WeightSpec target = specOf(to, 4, from.group.value_or(128));
        target.input = shape.input;
        target.halves = shape.halves;
        target.output = shape.output;
        WeightSpec source = target;
        source.layout = &from;
        source.scale = from.scaleType.value_or(ScalarType::BF16);
        if (target.zeros != ZeroPoints::None && from.zeros4.empty()) {
          source.code = CodeType::U4B8;
          source.zeros = ZeroPoints::None;
        }
        if (from.needsZeros) {
          source.code = CodeType::U4;
          source.zeros = ZeroPoints::Plain;
        }
        if (checkMove(source, target))
          continue;
        SCOPED_TRACE(std::string(from.name) + " to " + std::string(to.name));
        EXPECT_EQ(compare(source, target), 0);
        ++pairs;
      }
  EXPECT_GE(pairs, 2 * 150);
}

} // namespace
