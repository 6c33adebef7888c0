//===- BlockWorkTest.cpp - What tables do to blocks, run on the host ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Layout/TestWeights.h"
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
  }

  void compare() {
    ASSERT_EQ(moveAll(in, expected), "");
    const MoveShape shape = shapeOf(source, target, Axis::Input);
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
    Interpreter interpreter(*move);
    if (source.zeros != ZeroPoints::None)
      interpreter.zeroMap = *zeroAddresses(source);
    const CodeSource codes = {source, weight};
    std::optional<BlockRecode> recode;
    std::optional<BlockSums> sums;
    if (source.code != target.code) {
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
  WeightSpec source, target;
  Stored in, expected;
};

WeightSpec weightIn(const char *layout, CodeType code, int64_t group) {
  return plainSpec(layout, code, 768, 2, 128, group);
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

} // namespace
