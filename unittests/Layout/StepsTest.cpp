//===- StepsTest.cpp - Moves in steps, and codes that change --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include "Layout/Isa.h"
#include "Layout/Scalar.h"

#include <random>
#include <thread>

using namespace wna16;
using namespace wna16::test;

namespace {

WeightSpec specOf(const char *layout, CodeType code, ZeroPoints zeros,
                  int64_t input, int64_t output) {
  WeightSpec spec;
  spec.layout = findLayout(layout);
  spec.code = code;
  spec.zeros = zeros;
  spec.scale = spec.layout->scaleType.value_or(ScalarType::BF16);
  spec.group = 32;
  spec.experts = 1;
  spec.input = input;
  spec.halves = 2;
  spec.output = output;
  return spec;
}

/// All parts, moved by the portable code in one piece.
Stored movedPlainly(Stored &source, const WeightSpec &to) {
  Isa best = isa();
  EXPECT_TRUE(setIsa(Isa::Portable));
  Stored target(to);
  EXPECT_EQ(moveAll(source, target), "");
  EXPECT_TRUE(setIsa(best));
  return target;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

// In reverse order and from two threads, a large expert comes out the same, in
// layouts with sums, with padding and with scales that are converted.
TEST(Steps, ManyOfOneExpert) {
  constexpr int64_t kInput = 1024, kOutput = 9216;
  struct {
    const char *from, *to;
    int64_t more; ///< outputs of padding
  } const cases[] = {{"gptq", "cpu_blocked", 0}, {"gptq", "marlin", 64},
                     {"gptq", "awq", 0},         {"awq", "cpu_blocked", 96},
                     {"awq", "otf", 8},          {"gptq", "marlin_a8", 0}};
  std::mt19937 random(29);
  for (auto [from, to, more] : cases) {
    Stored source(
        specOf(from, CodeType::U4, ZeroPoints::Plain, kInput, kOutput));
    randomize(source, random);
    WeightSpec spec =
        specOf(to, CodeType::U4, ZeroPoints::Plain, kInput, kOutput + more);
    Stored target(spec);
    Result<WeightMove> move = WeightMove::plan(source.spec, source.buffers(),
                                               spec, target.buffers(), {0, 1});
    ASSERT_TRUE(move) << move.message();
    int64_t steps = move->steps();
    // Sums follow once a tile is complete, which it may be at the end alone.
    bool cut = std::string(to) != "cpu_blocked" ||
               (isa() != Isa::Portable && more == 0);
    EXPECT_EQ(steps > 1, cut) << from << " " << to << ", " << steps;
    for (auto part : {&WeightMove::moveSides, &WeightMove::moveCodes}) {
      auto take = [&](int64_t first) {
        for (int64_t step = first; step >= 0; step -= 2) {
          Failure failure = ((*move).*part)(step);
          EXPECT_FALSE(failure) << failure.message;
        }
      };
      std::thread other(take, steps - 2);
      take(steps - 1);
      other.join();
    }
    EXPECT_EQ(target.parts, movedPlainly(source, spec).parts)
        << from << " " << to;
  }
}

TEST(Steps, FailsAsMovesDo) {
  Stored source(specOf("gptq", CodeType::U4, ZeroPoints::Plain, 64, 64));
  WeightSpec spec = specOf("marlin", CodeType::U4, ZeroPoints::Plain, 64, 128);
  Stored target(spec);
  Result<WeightMove> move = WeightMove::plan(source.spec, source.buffers(),
                                             spec, target.buffers(), {0, 2});
  ASSERT_FALSE(move);
  EXPECT_EQ(move.message(), "expected experts in 0..1, got 0..2");
}

//===----------------------------------------------------------------------===//
// Codes that change with their zero points
//===----------------------------------------------------------------------===//

/// For fp8: q - z where that is not negative, 15 - q otherwise.
uint32_t rewritten(uint32_t q, int z) {
  int value = static_cast<int>(q);
  return static_cast<uint32_t>(value >= z ? value - z : 15 - value);
}

// Every code of every group, in layouts where blocks move and in extents where
// they do not, with stored zero points and with implied ones.
TEST(Recoding, EachCodeWithItsZeroPoint) {
  constexpr int64_t kExtents[][2] = {{256, 128}, {96, 96}, {64, 72}};
  std::mt19937 random(29);
  for (const char *from : {"gptq", "awq", "compressed_tensors", "otf"})
    for (ZeroPoints zeros : {ZeroPoints::Plain, ZeroPoints::None})
      for (auto [input, output] : kExtents) {
        bool stored = zeros != ZeroPoints::None;
        CodeType code = stored ? CodeType::U4 : CodeType::U4B8;
        Stored source(specOf(from, code, zeros, input, output));
        randomize(source, random);
        WeightSpec spec = specOf("gptq", CodeType::U4FP8, zeros, input, output);
        Stored target(spec), back(source.spec);
        ASSERT_EQ(moveAll(source, target), "") << from;
        ASSERT_EQ(moveAll(target, back), "") << from;
        EXPECT_EQ(back.at(Part::Codes), source.at(Part::Codes)) << from;
        AddressMap codes = *codeAddresses(source.spec);
        AddressMap points = stored ? *zeroAddresses(source.spec) : AddressMap();
        for (int64_t r = 0; r < source.spec.rows(); ++r)
          for (int64_t k = 0; k < input; ++k) {
            uint32_t q =
                field(source.at(Part::Codes), 4, codes.input(k) + codes.row(r));
            int z = stored ? static_cast<int>(
                                 field(source.at(Part::Zeros), 4,
                                       points.group(k / 32) + points.row(r)))
                           : 8;
            // gptq: input 8 i + j of output n is field j of word [i, n].
            uint32_t got = field(target.at(Part::Codes), 4,
                                 (k / 8 * source.spec.rows() + r) * 8 + k % 8);
            ASSERT_EQ(got, rewritten(q, z))
                << from << " row " << r << " input " << k;
          }
      }
}

} // namespace
