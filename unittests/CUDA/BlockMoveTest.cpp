//===- BlockMoveTest.cpp - A device's tables, run on the host -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the tables that kernels get, thread by thread, and compares with moves
// on the CPU; counts in how many turns the banks of shared memory serve a warp.
// No device takes part.
//
//===----------------------------------------------------------------------===//

#include "BlockInterpreter.h"

using namespace wna16;
using namespace wna16::cuda;
using namespace wna16::test;

namespace {

/// Moves a part by tables; false when there are none.
bool runTables(const Bytes &from, Bytes &to, const AddressMap &source,
               const AddressMap &target, int bits, const MoveShape &shape,
               WordRecode recode, BlockMove &move, int64_t alignment = 16) {
  std::optional<BlockMove> planned =
      planBlocks(source, target, bits, shape, alignment);
  if (!planned)
    return false;
  move = *planned;
  move.from = from.data();
  move.to = to.data();
  move.recode = recode;
  EXPECT_TRUE(move.exact);
  Interpreter(move).run();
  return true;
}

/// Moves codes and scales of one pair by tables and on the CPU.
class Pair {
public:
  Pair(WeightSpec from, WeightSpec to) : source(from), target(to) {}

  void compare() {
    Stored in(source), expected(target);
    fillRandomly(in);
    ASSERT_EQ(moveAll(in, expected), "");
    Bytes codes(expected.at(Part::Codes).size(), 0x5a);
    ASSERT_TRUE(runTables(in.at(Part::Codes), codes, *codeAddresses(source),
                          *codeAddresses(target), target.bits(),
                          shapeOf(source, target, Axis::Input),
                          recodeOf(source.code, target.code), move));
    // Sums after blocks of codes are not moved.
    if (target.layout->trailerBytes == 0) {
      ASSERT_EQ(codes, expected.at(Part::Codes));
    }
    EXPECT_EQ(move.edges, 0u);
    conflicts = Interpreter(move).conflicts();
    if (source.scale != target.scale)
      return;
    Bytes scales(expected.at(Part::Scales).size(), 0x5a);
    BlockMove unused;
    scalesMoved = runTables(in.at(Part::Scales), scales,
                            *scaleAddresses(source), *scaleAddresses(target),
                            static_cast<int>(8 * sizeOf(target.scale)),
                            shapeOf(source, target, Axis::Group), {}, unused);
    if (scalesMoved) {
      ASSERT_EQ(scales, expected.at(Part::Scales));
    }
  }

  WeightSpec source, target;
  BlockMove move;
  double conflicts = 1;
  bool scalesMoved = true;
};

struct Shape {
  const char *model;
  int64_t input, halves, output;
};
constexpr Shape kShapes[] = {{"w13", 512, 2, 256}, {"w2", 768, 1, 512}};

TEST(BlockMove, EveryPairOfLayouts) {
  int pairs = 0;
  for (const Shape &shape : kShapes)
    for (int bits : {4, 8})
      for (const LayoutEntry &from : allLayouts())
        for (const LayoutEntry &to : allLayouts()) {
          WeightSpec target = specOf(to, bits, from.group.value_or(128));
          target.experts = 2;
          target.input = shape.input;
          target.halves = shape.halves;
          target.output = shape.output;
          WeightSpec source = target;
          source.layout = &from;
          source.scale = from.scaleType.value_or(ScalarType::BF16);
          if (from.needsZeros || !to.needsZeros) {
            source.code = specOf(from, bits, 128).code;
            source.zeros = specOf(from, bits, 128).zeros;
          }
          if (!from.needsZeros && from.zeros4.empty() && to.needsZeros) {
            source.code = CodeType::U4B8;
            source.zeros = ZeroPoints::None;
          }
          if (checkMove(source, target))
            continue;
          SCOPED_TRACE(std::string(shape.model) + ", " + std::to_string(bits) +
                       " bits: " + std::string(from.name) + " to " +
                       std::string(to.name));
          Pair pair(source, target);
          pair.compare();
          if (HasFatalFailure())
            return;
          ++pairs;
          // Blocks are large, runs whole sectors, banks used evenly.
          EXPECT_GE(pair.move.bytes(), 2048u);
          EXPECT_TRUE(pair.move.source.wide && pair.move.target.wide);
          EXPECT_LE(pair.conflicts, 4);
          EXPECT_TRUE(pair.scalesMoved);
        }
  EXPECT_GE(pairs, 2 * (11 * 11 + 9 * 9));
}

TEST(BlockMove, CodesChange) {
  const LayoutEntry *a8 = findLayout("marlin_a8"), *gptq = findLayout("gptq");
  const CodeType codes[] = {CodeType::U4B8, CodeType::S4, CodeType::U4FP8};
  for (CodeType from : codes)
    for (CodeType to : codes) {
      WeightSpec target;
      target.layout = a8;
      target.code = to;
      target.group = 128;
      target.scale = ScalarType::F32;
      target.input = 256;
      target.output = 128;
      WeightSpec source = target;
      source.layout = gptq;
      source.code = from;
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      Stored in(source), expected(target);
      fillRandomly(in);
      ASSERT_EQ(moveAll(in, expected), "");
      // 16 bytes at a time, and words.
      for (int64_t alignment : {16, 4}) {
        Bytes got(expected.at(Part::Codes).size(), 0x5a);
        BlockMove move;
        ASSERT_TRUE(runTables(in.at(Part::Codes), got, *codeAddresses(source),
                              *codeAddresses(target), 4,
                              shapeOf(source, target, Axis::Input),
                              recodeOf(from, to), move, alignment));
        EXPECT_EQ(move.source.wide, alignment == 16);
        EXPECT_EQ(got, expected.at(Part::Codes));
      }
    }
}

/// Parts of a weight, padded: what blocks move is right, and each block of the
/// target moves or is an edge.
TEST(BlockMove, WindowsAndPadding) {
  WeightSpec source;
  source.layout = findLayout("gptq");
  source.code = CodeType::U4B8;
  source.group = 32;
  source.experts = 2;
  source.input = 512;
  source.halves = 2;
  source.output = 192;
  WeightSpec target = source;
  target.layout = findLayout("marlin");
  target.input = 256;
  target.output = 128;
  const Window window = {128, 224, 64, 96};
  Stored in(source), expected(target);
  fillRandomly(in);
  Failure bad = moveWeight(source, in.buffers(), target, expected.buffers(),
                           {0, 2}, window);
  ASSERT_FALSE(bad) << bad.message;
  MoveShape shape = shapeOf(source, target, Axis::Input);
  shape.innerBegin = window.input;
  shape.inners = window.inputs;
  shape.outputBegin = window.output;
  shape.outputs = window.outputs;
  const Bytes &codes = expected.at(Part::Codes);
  Bytes got[] = {Bytes(codes.size(), 0x5a), Bytes(codes.size(), 0xa5)};
  BlockMove move;
  for (Bytes &bytes : got)
    ASSERT_TRUE(runTables(in.at(Part::Codes), bytes, *codeAddresses(source),
                          *codeAddresses(target), 4, shape, {}, move));
  EXPECT_GT(move.blocks, 0u);
  size_t moved = 0;
  for (size_t i = 0; i < codes.size(); ++i)
    if (got[0][i] == got[1][i]) {
      ++moved;
      ASSERT_EQ(int(got[0][i]), int(codes[i])) << "byte " << i;
    }
  EXPECT_EQ(moved, size_t(move.blocks) * move.bytes());
  EXPECT_EQ(moved + size_t(move.edges) * move.bytes() * 4, codes.size());
}

TEST(BlockMove, TakesWhatHasBlocks) {
  WeightSpec spec;
  spec.layout = findLayout("compressed_tensors");
  spec.code = CodeType::U4B8;
  spec.input = 250;
  spec.output = 77;
  WeightSpec target = spec;
  target.layout = findLayout("gptq");
  MoveShape shape = shapeOf(spec, target, Axis::Input);
  EXPECT_FALSE(
      planBlocks(*codeAddresses(spec), *codeAddresses(target), 4, shape, 16));
  spec.input = target.input = 256;
  spec.output = target.output = 64;
  shape = shapeOf(spec, target, Axis::Input);
  std::optional<BlockMove> move =
      planBlocks(*codeAddresses(spec), *codeAddresses(target), 4, shape, 4);
  ASSERT_TRUE(move);
  EXPECT_FALSE(move->source.wide || move->target.wide);
  EXPECT_FALSE(
      planBlocks(*codeAddresses(spec), *codeAddresses(target), 4, shape, 2));
}

} // namespace
