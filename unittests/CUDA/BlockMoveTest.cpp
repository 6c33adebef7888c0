//===- BlockMoveTest.cpp - A device's tables, run on the host -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the tables that the kernel gets, thread by thread, and compares with
// moves on the CPU; counts in how many turns the banks of shared memory serve a
// warp. No device takes part.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CUDA/BlockMove.h"
#include "../Layout/TestSupport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::cuda;
using namespace wna16::test;

namespace {

/// Runs a move as the kernel does, one CUDA block after the other.
class Interpreter {
public:
  explicit Interpreter(const BlockMove &move)
      : move(move), shared(MovePlan::kMaxBytes, 0xee),
        words(size_t(kMoveThreads) * kHeldWords) {}

  void run() {
    for (uint32_t item = 0; item * move.blocksAtOnce() < move.blocks; ++item) {
      copy(item, move.source, move.from, nullptr);
      for (uint32_t thread = 0; thread < kMoveThreads; ++thread)
        reorderOut(thread);
      for (uint32_t thread = 0; thread < kMoveThreads; ++thread)
        for (int word = 0; word < kHeldWords; ++word)
          store(address(move.write, thread, word),
                words[size_t(thread) * kHeldWords + word]);
      copy(item, move.target, nullptr, move.to);
    }
  }

  /// Turns that the worst access of a warp takes, over those that it needs.
  double conflicts() const {
    double most = 1;
    for (const ThreadTerms *terms : {&move.read, &move.write})
      most = std::max(most, conflictsOf(*terms, 4));
    for (const BlockSide *side : {&move.source, &move.target})
      most = std::max(most, conflictsOf(side->shared, side->wide ? 16 : 4));
    return most;
  }

private:
  uint32_t inBlock(uint32_t thread) const {
    return thread & ((1u << move.threadBits) - 1);
  }
  uint32_t address(const ThreadTerms &terms, uint32_t thread,
                   int access) const {
    return (thread >> move.threadBits << (move.threadBits + 5)) +
           (sumWithoutCarry(terms, inBlock(thread)) ^ terms.access[access]);
  }

  void store(uint32_t at, uint32_t word) {
    ASSERT_LE(at + 4, shared.size());
    std::memcpy(&shared[at], &word, 4);
  }

  /// Between memory and shared memory.
  void copy(uint32_t item, const BlockSide &side, const uint8_t *from,
            uint8_t *to) {
    for (uint32_t thread = 0; thread < kMoveThreads; ++thread) {
      uint32_t number =
          item * move.blocksAtOnce() + (thread >> move.threadBits);
      if (number >= move.blocks)
        continue;
      int64_t block = addressOf(side, placeOf(move, number)) +
                      sumOf(side.bytes, inBlock(thread));
      size_t bytes = side.wide ? 16 : 4;
      for (int access = 0; access < (side.wide ? 2 : kHeldWords); ++access) {
        uint8_t *in = &shared.at(address(side.shared, thread, access));
        int64_t at = block + side.bytes.access[access];
        if (from)
          std::memcpy(in, from + at, bytes);
        else
          std::memcpy(to + at, in, bytes);
      }
    }
  }

  void reorderOut(uint32_t thread) {
    uint32_t held[kHeldWords];
    for (int word = 0; word < kHeldWords; ++word)
      std::memcpy(&held[word], &shared.at(address(move.read, thread, word)), 4);
    permute(move, held);
    std::copy_n(held, kHeldWords, &words[size_t(thread) * kHeldWords]);
  }

  /// Of one warp: the banks serve 128 bytes a turn, wide accesses a quarter of
  /// the warp at a time.
  double conflictsOf(const ThreadTerms &terms, uint32_t bytes) const {
    int threads = static_cast<int>(128 / bytes);
    if (1 << move.threadBits < threads)
      return 1;
    std::array<int, 32> turns = {};
    for (int thread = 0; thread < threads; ++thread)
      for (uint32_t word = 0; word < bytes; word += 4)
        ++turns[(address(terms, static_cast<uint32_t>(thread), 0) + word) / 4 %
                32];
    return *std::max_element(turns.begin(), turns.end());
  }

  const BlockMove &move;
  Bytes shared;
  std::vector<uint32_t> words;
};

WeightSpec specOf(const LayoutEntry &layout, int bits, int64_t group) {
  WeightSpec spec;
  spec.layout = &layout;
  spec.code = layout.needsZeros ? CodeType::U4
              : bits == 4       ? CodeType::U4B8
                                : CodeType::U8B128;
  spec.zeros = layout.needsZeros ? ZeroPoints::Plain : ZeroPoints::None;
  spec.scale = layout.scaleType.value_or(ScalarType::BF16);
  spec.group = layout.group.value_or(group);
  return spec;
}

void fillRandomly(Stored &stored) {
  std::mt19937 random(5);
  for (uint8_t &byte : stored.at(Part::Codes))
    byte = static_cast<uint8_t>(random());
  // Finite in each type; zero points that four bits hold.
  for (size_t i = 0; i < stored.at(Part::Scales).size(); ++i)
    stored.at(Part::Scales)[i] = static_cast<uint8_t>(i % 2 ? 0x3c : random());
  for (uint8_t &byte : stored.at(Part::Zeros))
    byte = random() & 7;
}

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

MoveShape shapeOf(const WeightSpec &source, const WeightSpec &target,
                  Axis inner) {
  MoveShape shape;
  shape.inner = inner;
  shape.experts = target.experts;
  shape.halves = target.halves;
  shape.inners = inner == Axis::Input ? target.input : target.groups();
  shape.targetInners = shape.inners;
  shape.sourceOutputs = source.output;
  shape.outputs = shape.targetOutputs = target.output;
  return shape;
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
