//===- BlockWorkTest.cpp - What tables do to blocks, run on the host ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockInterpreter.h"

using namespace wna16;
using namespace wna16::cuda;
using namespace wna16::test;

namespace {

/// Codes of one pair, moved with whatever work they take.
class CodePair {
public:
  CodePair(const WeightSpec &from, const WeightSpec &to)
      : source(from), target(to), in(from), expected(to) {
    fillRandomly(in);
    sortable();
  }

  void compare() {
    ASSERT_EQ(moveAll(in, expected), "");
    MoveShape shape = shapeOf(source, target, Axis::Input);
    shape.gathers = source.actOrder != target.actOrder;
    BlockBits bits;
    std::optional<BlockMove> move =
        planBlocks(*codeAddresses(source), *codeAddresses(target),
                   target.bits(), shape, 16, &bits);
    ASSERT_TRUE(move);
    Bytes got(expected.at(Part::Codes).size(), 0x5a);
    move->from = in.at(Part::Codes).data();
    move->to = got.data();
    DeviceWeight weight = {};
    if (source.zeros != ZeroPoints::None)
      weight.zeroData = in.at(Part::Zeros).data();
    weight.zeroBits = zeroBits(source);
    Interpreter interpreter(*move, source.bits());
    if (source.zeros != ZeroPoints::None)
      interpreter.zeroMap = *zeroAddresses(source);
    const CodeSource codes = {source, weight};
    std::optional<BlockGather> gather;
    std::optional<BlockRecode> recode;
    std::optional<BlockSums> sums;
    if (shape.gathers) {
      const Bytes &rows = expected.at(Part::Permutation);
      gather = planGather(codes, reinterpret_cast<const int32_t *>(rows.data()),
                          *move, bits);
      ASSERT_TRUE(gather);
      interpreter.gather = &*gather;
    } else if (source.code != target.code) {
      recode = planRecode(codes, target.code, bits);
      ASSERT_TRUE(recode);
      interpreter.recode = &*recode;
    } else {
      sums = planSums(codes, blockLength(target), *move, bits);
      ASSERT_TRUE(sums);
      interpreter.sums = &*sums;
    }
    interpreter.run();
    EXPECT_EQ(got, expected.at(Part::Codes));
  }

private:
  /// As many rows of each group, in any order.
  void sortable() {
    if (source.actOrder != ActOrder::Index)
      return;
    std::vector<int32_t> groups(source.input);
    std::mt19937 random(3);
    Bytes &index = in.at(Part::GroupIndex);
    for (int64_t expert = 0; expert < source.experts; ++expert) {
      for (int64_t k = 0; k < source.input; ++k)
        groups[k] = static_cast<int32_t>(k / source.group);
      std::shuffle(groups.begin(), groups.end(), random);
      std::memcpy(&index[4 * expert * source.input], groups.data(),
                  4 * groups.size());
    }
  }

  WeightSpec source, target;
  Stored in, expected;
};

WeightSpec weightIn(const char *layout, CodeType code, int64_t group) {
  WeightSpec spec;
  spec.layout = findLayout(layout);
  spec.code = code;
  spec.scale = spec.layout->scaleType.value_or(ScalarType::BF16);
  spec.group = group;
  spec.experts = 2;
  spec.input = 768;
  spec.halves = 2;
  spec.output = 128;
  return spec;
}

TEST(BlockWork, SumsOfBlocks) {
  for (int64_t group : {32, 64, 128, 768, -1})
    for (const char *layout : {"gptq", "awq", "compressed_tensors", "marlin",
                               "cpu_panels", "cpu_blocked"})
      for (ZeroPoints zeros : {ZeroPoints::Plain, ZeroPoints::MinusOne}) {
        WeightSpec source = weightIn(layout, CodeType::U4, group);
        source.zeros = zeros;
        WeightSpec target = weightIn("cpu_blocked", CodeType::U4, group);
        target.zeros = ZeroPoints::Plain;
        if (checkMove(source, target))
          continue;
        SCOPED_TRACE(std::string(layout) + ", group " + std::to_string(group));
        CodePair(source, target).compare();
      }
}

TEST(BlockWork, CodesAroundZeroPoints) {
  for (int64_t group : {32, 128, -1})
    for (const char *layout : {"gptq", "awq", "compressed_tensors", "marlin"})
      for (bool back : {false, true}) {
        WeightSpec source = weightIn(layout, CodeType::U4, group);
        source.zeros = ZeroPoints::MinusOne;
        WeightSpec target = weightIn("marlin_a8", CodeType::U4FP8, group);
        target.zeros = ZeroPoints::Plain;
        if (back)
          std::swap(source, target);
        source.scale = ScalarType::F32;
        target.scale = ScalarType::F32;
        SCOPED_TRACE(std::string(layout) + ", group " + std::to_string(group));
        CodePair(source, target).compare();
      }
}

TEST(BlockWork, RowsSortedByGroup) {
  for (CodeType code : {CodeType::U4B8, CodeType::U8B128})
    for (const char *from : {"gptq", "compressed_tensors"})
      for (const char *to : {"gptq", "compressed_tensors", "marlin"}) {
        WeightSpec source = weightIn(from, code, 128);
        source.actOrder = ActOrder::Index;
        WeightSpec target = weightIn(to, code, 128);
        target.actOrder = ActOrder::Sorted;
        SCOPED_TRACE(std::string(from) + " to " + to);
        CodePair(source, target).compare();
      }
}

/// A word of sources that are gathered is at an even distance from the next,
/// up to the last input.
TEST(BlockWork, GatheredWordsCountUpEvenly) {
  int planned = 0;
  for (const LayoutEntry &layout : allLayouts())
    for (int64_t input = 64; input <= 4096; input += 64) {
      WeightSpec spec = weightIn("gptq", CodeType::U4B8, -1);
      spec.layout = &layout;
      spec.scale = layout.scaleType.value_or(ScalarType::BF16);
      spec.input = input;
      if (checkMove(spec, spec))
        continue;
      const auto map = codeAddresses(spec);
      BlockBits bits;
      const MoveShape shape = shapeOf(spec, spec, Axis::Input);
      std::optional<BlockMove> move =
          planBlocks(*map, *map, spec.bits(), shape, 16, &bits);
      if (!move)
        continue;
      alignas(16) const int32_t rows[4] = {};
      const auto gather = planGather({spec, {}}, rows, *move, bits);
      if (!gather)
        continue;
      ++planned;
      for (int64_t k = 0; k < input; ++k)
        ASSERT_EQ((map->input(k) - map->input(0)) * spec.bits() / 32,
                  k / 8 * gather->stride / 4)
            << layout.name << ", " << input << " inputs, input " << k;
    }
  EXPECT_GT(planned, 0);
}

} // namespace
