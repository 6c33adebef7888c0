//===- ShardTest.cpp - Ranks' shares of a weight --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank holds the values of its part of the whole, exactly. The whole is
// read by itself; only moves are under test.
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include "Layout/Scalar.h"
#include "Layout/Shard.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

/// What cases differ in; two experts.
struct Case {
  const char *layout;
  CodeType code;
  int64_t input, halves, output, group;
  bool actOrder = false;
};

WeightSpec specOf(const Case &c) {
  bool stored = c.code == CodeType::U4 || c.code == CodeType::U8;
  WeightSpec spec =
      test::specOf(c.layout, c.code, c.input, c.halves, c.output, c.group,
                   stored ? ZeroPoints::Plain : ZeroPoints::None);
  if (c.actOrder)
    spec.actOrder = ActOrder::Index;
  return spec;
}

/// Random codes, zero points and scales, and groups in a random order.
Stored randomWeight(const WeightSpec &spec, uint32_t seed) {
  std::mt19937 random(seed);
  Stored stored(spec);
  for (Part part : {Part::Codes, Part::Zeros})
    for (uint8_t &byte : stored.at(part))
      byte = static_cast<uint8_t>(random());
  Bytes &scales = stored.at(Part::Scales);
  for (size_t i = 0; i < scales.size() / sizeOf(spec.scale); ++i)
    storeFloat(spec.scale, scales.data(), static_cast<int64_t>(i),
               0.0078125f * static_cast<float>(1 + random() % 64));
  std::vector<int32_t> groups(static_cast<size_t>(spec.input));
  for (int64_t k = 0; k < spec.input; ++k)
    groups[k] = static_cast<int32_t>(k / std::max<int64_t>(spec.group, 1));
  for (int64_t e = 0; e < spec.experts && spec.actOrder == ActOrder::Index;
       ++e) {
    std::shuffle(groups.begin(), groups.end(), random);
    std::memcpy(&stored.at(Part::GroupIndex)[e * spec.input * 4], groups.data(),
                groups.size() * 4);
  }
  return stored;
}

std::string moveWindow(Stored &from, Stored &to, Window window) {
  return moveWeight(from.spec, from.buffers(), to.spec, to.buffers(),
                    {0, from.spec.experts}, window)
      .message;
}

/// The values of `window` of the whole, and zeros, are in `part`.
void expectPart(Stored &part, const std::vector<float> &values,
                const WeightSpec &whole, Window window) {
  std::vector<float> got = valuesOf(part);
  const WeightSpec &spec = part.spec;
  for (int64_t e = 0; e < spec.experts; ++e)
    for (int64_t r = 0; r < spec.rows(); ++r)
      for (int64_t k = 0; k < spec.input; ++k) {
        int64_t n = r % spec.output;
        int64_t row = r / spec.output * whole.output + window.output + n;
        float expected = 0;
        if (n < window.outputs && k < window.inputs)
          expected =
              values[(e * whole.rows() + row) * whole.input + window.input + k];
        ASSERT_EQ(got[(e * spec.rows() + r) * spec.input + k], expected)
            << "expert " << e << " row " << r << " input " << k;
      }
}

/// Every rank of `size` holds its part of a random weight. Returns the spec
/// that all ranks share.
WeightSpec expectShares(const Case &c, ShardAxis axis, int64_t size) {
  WeightSpec spec = specOf(c), shared;
  Stored whole = randomWeight(spec, static_cast<uint32_t>(size));
  std::vector<float> values = valuesOf(whole);
  int64_t taken = 0;
  for (int64_t rank = 0; rank < size; ++rank) {
    SCOPED_TRACE(std::string(c.layout) + " rank " + std::to_string(rank) +
                 " of " + std::to_string(size));
    Result<Shard> shard = shardWeight(spec, axis, {rank, size});
    EXPECT_TRUE(shard) << shard.message();
    if (!shard)
      return shared;
    Stored part(shard->spec), other(shard->spec, 0xff);
    EXPECT_EQ(moveWindow(whole, part, shard->window), "");
    EXPECT_EQ(moveWindow(whole, other, shard->window), "");
    EXPECT_EQ(part.parts, other.parts);
    expectPart(part, values, spec, shard->window);
    EXPECT_TRUE(rank == 0 || shard->spec == shared);
    shared = shard->spec;
    taken +=
        axis == ShardAxis::Input ? shard->window.inputs : shard->window.outputs;
  }
  EXPECT_EQ(taken, axis == ShardAxis::Input ? spec.input : spec.output);
  return shared;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

constexpr int64_t kSizes[] = {1, 2, 4, 8};

TEST(Shard, B01_StraddledGroupsAreRepeated) {
  Case w2{"compressed_tensors", CodeType::U4B8, 640, 1, 64, 128};
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 1).group, 128);
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 2).group, 64);
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 5).group, 128);
}

// g' = gcd(128, 768 / TP) for each format, with zero points and with 8 bits.
TEST(Shard, B02_AnyNumberOfRanksFor768) {
  for (const char *layout : {"awq", "gptq", "compressed_tensors"})
    for (CodeType code : {CodeType::U4, CodeType::U4B8, CodeType::U8}) {
      const int64_t groups[] = {128, 128, 64, 32};
      for (size_t i = 0; i < 4; ++i) {
        WeightSpec w2 = expectShares({layout, code, 768, 1, 48, 128},
                                     ShardAxis::Input, kSizes[i]);
        EXPECT_EQ(w2.group, groups[i]);
        EXPECT_EQ(w2.input, 768 / kSizes[i]);
        WeightSpec w13 = expectShares({layout, code, 128, 2, 768, 128},
                                      ShardAxis::Output, kSizes[i]);
        EXPECT_EQ(w13.group, 128);
        EXPECT_EQ(w13.output, 768 / kSizes[i]);
      }
    }
}

// 1536 / 8 = 192.
TEST(Shard, B35_192InputsOfARank) {
  EXPECT_EQ(
      expectShares({"awq", CodeType::U4, 1536, 1, 32, 128}, ShardAxis::Input, 8)
          .group,
      64);
}

// 2880 / 8 = 360, of groups of 32.
TEST(Shard, B44_360InputsOfARank) {
  Case w2{"compressed_tensors", CodeType::U4B8, 2880, 1, 8, 32};
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 8).group, 8);
  // Groups of 128: the last one of the whole is short.
  w2.group = 128;
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 8).group, 8);
}

TEST(Shard, B58_ScalesAreShardedWithTheirGroups) {
  Case w2{"compressed_tensors", CodeType::U4B8, 2048, 1, 16, 128};
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 2).groups(), 8);
  EXPECT_EQ(expectShares(w2, ShardAxis::Input, 8).groups(), 2);
}

// Zero points are packed along N: 36 outputs of a rank fill no word.
TEST(Shard, B59_ZeroPointsOfPartialWords) {
  for (int64_t outputs : {256, 72}) {
    WeightSpec w13 = expectShares({"awq", CodeType::U4, 128, 2, outputs, 128},
                                  ShardAxis::Output, 2);
    EXPECT_EQ(w13.output, outputs / 2);
    expectShares({"awq", CodeType::U4, outputs, 1, 128, 128}, ShardAxis::Input,
                 2);
  }
}

// Where the ranks do not divide the axis, parts begin at multiples of 32.
TEST(Shard, UnevenPartsArePadded) {
  for (int64_t size : {3, 5, 7}) {
    WeightSpec w2 = expectShares({"gptq", CodeType::U4, 704, 1, 16, 128},
                                 ShardAxis::Input, size);
    EXPECT_EQ(w2.input % 16, 0);
    EXPECT_EQ(w2.group, std::gcd(w2.input, int64_t(128)));
    expectShares({"gptq", CodeType::U4, 128, 2, 704, 32}, ShardAxis::Output,
                 size);
  }
}

TEST(Shard, ChannelScalesAreKept) {
  WeightSpec w2 = expectShares({"gptq", CodeType::U8B128, 768, 1, 16, -1},
                               ShardAxis::Input, 8);
  EXPECT_EQ(w2.group, -1);
}

//===----------------------------------------------------------------------===//
// Act-order
//===----------------------------------------------------------------------===//

TEST(Shard, B23_ActOrderKeepsItsTables) {
  for (const char *layout : {"gptq", "compressed_tensors"})
    for (CodeType code : {CodeType::U4B8, CodeType::U4, CodeType::U8B128}) {
      Case w2{layout, code, 512, 1, 64, 128, /*actOrder=*/true};
      WeightSpec spec = expectShares(w2, ShardAxis::Input, 2);
      EXPECT_EQ(spec.input, 256);
      EXPECT_EQ(spec.group, 128);
      EXPECT_EQ(spec.groups(), 4);
      EXPECT_EQ(expectShares(w2, ShardAxis::Input, 8).groups(), 4);
      // w13's inputs are not shared: its rows can still be sorted.
      WeightSpec w13 = expectShares({layout, code, 256, 2, 128, 64, true},
                                    ShardAxis::Output, 2);
      EXPECT_EQ(w13.keptGroups, 0);
    }
}

// The rank's index says of which groups its rows are.
TEST(Shard, B23_IndicesAreThoseOfTheRank) {
  WeightSpec spec = specOf({"gptq", CodeType::U4B8, 512, 1, 64, 128, true});
  Stored whole = randomWeight(spec, 3);
  Result<Shard> shard = shardWeight(spec, ShardAxis::Input, {1, 2});
  ASSERT_TRUE(shard) << shard.message();
  Stored part(shard->spec);
  ASSERT_EQ(moveWindow(whole, part, shard->window), "");
  for (int64_t e = 0; e < 2; ++e)
    EXPECT_EQ(std::memcmp(&part.at(Part::GroupIndex)[e * 256 * 4],
                          &whole.at(Part::GroupIndex)[(e * 512 + 256) * 4],
                          256 * 4),
              0);
  EXPECT_EQ(part.at(Part::Scales), whole.at(Part::Scales));
}

TEST(Shard, B23_SortedRowsAreRefused) {
  WeightSpec spec = specOf({"gptq", CodeType::U4B8, 512, 1, 64, 128, true});
  Result<Shard> shard = shardWeight(spec, ShardAxis::Input, {0, 2});
  ASSERT_TRUE(shard);
  WeightSpec sorted = shard->spec;
  sorted.actOrder = ActOrder::Sorted;
  EXPECT_EQ(storageOf(sorted).message(),
            "expected 4 kept groups to be those of rows with act_order = index "
            "and more than those of the input (2), got act_order = sorted");
  sorted.keptGroups = 0;
  EXPECT_EQ(checkMove(spec, sorted, shard->window).message,
            "expected act-order rows to keep group, groups and input, got "
            "group 128 to 128, groups 4 to 2 and input 256 to 256");
  spec.actOrder = ActOrder::Sorted;
  EXPECT_EQ(shardWeight(spec, ShardAxis::Input, {0, 2}).message(),
            "expected rows in the model's order to share 512 inputs, got "
            "act_order = sorted; shard before sorting");
  spec.actOrder = ActOrder::Index;
  EXPECT_EQ(shardWeight(spec, ShardAxis::Input, {0, 3}).message(),
            "expected parts of 192 to divide input (512) with act_order = "
            "index; take a number of ranks that divides it");
}

//===----------------------------------------------------------------------===//
// With other steps, biases, refusals
//===----------------------------------------------------------------------===//

// In one move with padding, sorting and another layout: as one after another.
TEST(Shard, IsPartOfOneMove) {
  for (const char *layout : {"marlin", "cpu_blocked", "otf", "humming_mma"})
    for (ShardAxis axis : {ShardAxis::Input, ShardAxis::Output})
      for (int64_t rank : {0, 3}) {
        SCOPED_TRACE(std::string(layout) + " " + std::string(name(axis)));
        WeightSpec spec = specOf({"awq", CodeType::U4, 768, 2, 384, 128});
        Stored whole = randomWeight(spec, 5);
        Result<Shard> shard = shardWeight(spec, axis, {rank, 4});
        ASSERT_TRUE(shard) << shard.message();
        WeightSpec wanted = shard->spec;
        wanted.layout = findLayout(layout);
        wanted.scale = wanted.layout->scaleType.value_or(wanted.scale);
        wanted.input = (wanted.input + 255) / 256 * 256;
        wanted.output = (wanted.output + 127) / 128 * 128;
        Stored part(shard->spec), steps(wanted), fused(wanted, 0xff);
        ASSERT_EQ(moveWindow(whole, part, shard->window), "");
        ASSERT_EQ(moveWindow(part, steps, {}), "");
        ASSERT_EQ(moveWindow(whole, fused, shard->window), "");
        EXPECT_EQ(fused.parts, steps.parts);
      }
}

// w13 of 1024 / 8 = 128 outputs has 32 groups along its own input of 4096, and
// w2 of 128 inputs one: each has the permutation of its own input.
TEST(Shard, B11_ScalesArePermutedByTheirOwnInput) {
  WeightSpec w13 = specOf({"gptq", CodeType::U4B8, 4096, 2, 1024, 128});
  WeightSpec w2 = specOf({"gptq", CodeType::U4B8, 1024, 1, 256, 128});
  const std::tuple<WeightSpec, ShardAxis, int64_t> weights[] = {
      {w13, ShardAxis::Output, 32}, {w2, ShardAxis::Input, 1}};
  for (const auto &[spec, axis, groups] : weights) {
    Stored whole = randomWeight(spec, 7);
    Result<Shard> shard = shardWeight(spec, axis, {5, 8});
    ASSERT_TRUE(shard) << shard.message();
    WeightSpec wanted = shard->spec;
    EXPECT_EQ(wanted.groups(), groups);
    wanted.layout = findLayout("marlin");
    Stored marlin(wanted);
    ASSERT_EQ(moveWindow(whole, marlin, shard->window), "");
    // Column 8 * (i % 8) + i / 8 of 64 at place i with several groups; with
    // one, as mma fragments want them.
    int64_t rows = wanted.rows();
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < rows; ++i) {
          static const int64_t kSingle[] = {0, 1, 8, 9, 16, 17, 24, 25};
          int64_t column = groups > 1 ? i % 8 * 8 + i / 8 % 8
                                      : 2 * (i / 8 % 4) + kSingle[i % 8];
          if (groups == 1)
            column += i / 32 % 2 * 32;
          int64_t row = i / 64 * 64 + column;
          int64_t source = row / wanted.output * spec.output +
                           shard->window.output + row % wanted.output;
          int64_t group = groups > 1 ? g : 5;
          ASSERT_EQ(
              std::memcmp(
                  &marlin.at(Part::Scales)[((e * groups + g) * rows + i) * 2],
                  &whole.at(
                      Part::Scales)[((e * spec.groups() + group) * spec.rows() +
                                     source) *
                                    2],
                  2),
              0)
              << groups << " groups, group " << g << " place " << i;
        }
    expectPart(marlin, valuesOf(whole), spec, shard->window);
  }
}

// The K block of a kernel with blocks divides the input and the group, for
// every input of whole groups.
TEST(Shard, B10_BlocksDivideInputAndGroup) {
  for (int64_t group : {4, 8, 16, 32, 64, 128, 256, 512})
    for (int64_t groups = 1; groups <= 64; ++groups) {
      WeightSpec spec =
          specOf({"cpu_blocked", CodeType::U4, group * groups, 1, 32, group});
      spec.scale = ScalarType::F32;
      ASSERT_TRUE(storageOf(spec)) << storageOf(spec).message();
      int64_t block = blockLength(spec);
      EXPECT_EQ(spec.input % block, 0);
      EXPECT_EQ(group % block, 0);
    }
}

TEST(Shard, B44_BiasesFollowTheirOutputs) {
  for (const char *layout : {"dense", "interleaved", "marlin"}) {
    WeightSpec spec = specOf({"gptq", CodeType::U4B8, 64, 2, 256, 32});
    spec.layout = findLayout(layout);
    if (std::strcmp(layout, "marlin") != 0) {
      spec.code = CodeType::Dense;
      spec.element = ScalarType::F32;
    }
    std::vector<float> bias(2 * 512), part(2 * 128, -1), natural(2 * 128, -1);
    std::vector<float> values(2 * 512);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i);
    WeightSpec plain = spec;
    plain.code = CodeType::Dense;
    plain.element = ScalarType::F32;
    plain.layout = findLayout("dense");
    ASSERT_FALSE(
        moveBias(plain, values.data(), spec, bias.data(), ScalarType::F32));
    Result<Shard> shard = shardWeight(spec, ShardAxis::Output, {1, 4});
    ASSERT_TRUE(shard) << shard.message();
    ASSERT_FALSE(moveBias(spec, bias.data(), shard->spec, part.data(),
                          ScalarType::F32, shard->window));
    WeightSpec plainPart = shard->spec;
    plainPart.code = CodeType::Dense;
    plainPart.element = ScalarType::F32;
    plainPart.layout = findLayout("dense");
    ASSERT_FALSE(moveBias(shard->spec, part.data(), plainPart, natural.data(),
                          ScalarType::F32));
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t n = 0; n < 64; ++n)
          EXPECT_EQ(natural[e * 128 + half * 64 + n],
                    static_cast<float>(e * 512 + half * 256 + 64 + n))
              << layout;
  }
}

TEST(Shard, DenseWeights) {
  WeightSpec spec = specOf({"dense", CodeType::Dense, 96, 2, 48, -1});
  spec.zeros = ZeroPoints::None;
  Stored whole(spec);
  std::mt19937 random(9);
  for (uint8_t &byte : whole.at(Part::Codes))
    byte = static_cast<uint8_t>(random() % 64);
  std::vector<float> values = valuesOf(whole);
  for (ShardAxis axis : {ShardAxis::Input, ShardAxis::Output})
    for (int64_t rank = 0; rank < 3; ++rank) {
      Result<Shard> shard = shardWeight(spec, axis, {rank, 3});
      ASSERT_TRUE(shard) << shard.message();
      Stored part(shard->spec);
      ASSERT_EQ(moveWindow(whole, part, shard->window), "");
      expectPart(part, values, spec, shard->window);
    }
}

TEST(Shard, RefusalsNameNumbers) {
  WeightSpec spec = specOf({"gptq", CodeType::U4B8, 40, 1, 64, 8});
  EXPECT_EQ(shardWeight(spec, ShardAxis::Input, {3, 3}).message(),
            "input: expected a rank below the number of ranks, got rank 3 of "
            "3");
  EXPECT_EQ(shardWeight(spec, ShardAxis::Input, {-1, 3}).message(),
            "input: expected a rank below the number of ranks, got rank -1 of "
            "3");
  EXPECT_EQ(shardWeight(spec, ShardAxis::Input, {0, 27}).message(),
            "input: expected a part of 40 for each of 27 ranks, got parts of 2 "
            "for 20; take at most 20 ranks");
  EXPECT_EQ(shardWeight(spec, ShardAxis::Output, {0, INT64_MAX}).message(),
            "output: expected a part of 64 for each of 9223372036854775807 "
            "ranks, got parts of 1 for 64; take at most 64 ranks");
  WeightSpec tiles = specOf({"marlin", CodeType::U4B8, 128, 1, 192, 64});
  EXPECT_EQ(shardWeight(tiles, ShardAxis::Output, {0, 2}).message(),
            "expected output (96) to be a multiple of 64 for layout marlin; "
            "pad to 128");
}

} // namespace
