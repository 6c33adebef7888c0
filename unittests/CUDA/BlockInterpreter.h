//===- BlockInterpreter.h - Tables of a device, run on the host -*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_CUDA_BLOCKINTERPRETER_H
#define WNA16_UNITTESTS_CUDA_BLOCKINTERPRETER_H

#include "../../lib/Runtime/CUDA/BlockWork.h"
#include "../Layout/TestSupport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace wna16::cuda {

using test::Bytes;
using test::Stored;

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
        reorderOut(item, thread);
      for (uint32_t thread = 0; thread < kMoveThreads; ++thread)
        for (int word = 0; word < kHeldWords; ++word)
          store(address(move.write, thread, word),
                words[size_t(thread) * kHeldWords + word]);
      copy(item, move.target, nullptr, move.to);
      for (uint32_t thread = 0; sums && thread < kMoveThreads; ++thread)
        addUp(item, thread);
    }
  }

  /// By way of slices.
  void runSlices(const BlockSort &sort) {
    Bytes slice(sort.bytes + 128);
    for (uint32_t number = 0; number < sort.slices; ++number) {
      const BlockPlace place = placeOf(sort, move.halves, number);
      std::fill(slice.begin(), slice.end(), 0xee);
      for (uint32_t block = 0; block < sort.blocksIn; ++block)
        fillSlice(sort,
                  sliceBlock(sort.in.source, sort, sort.in, place, block,
                             sort.innersIn),
                  slice);
      for (uint32_t block = 0; block < sort.blocksOut; ++block)
        emptySlice(
            sort, place.expert,
            sliceBlock(move.target, sort, move, place, block, sort.innersOut),
            slice);
    }
  }

  const BlockRecode *recode = nullptr;
  const BlockSums *sums = nullptr;
  AddressMap zeroMap; ///< of what the last two read

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

  /// The block that a thread works on; none beyond the last.
  std::optional<BlockPlace> placeAt(uint32_t item, uint32_t thread) const {
    const uint32_t number =
        item * move.blocksAtOnce() + (thread >> move.threadBits);
    if (number >= move.blocks)
      return std::nullopt;
    return placeOf(move, number);
  }

  static uint32_t outputBytes(const BlockSort &sort, const SliceBlock &block) {
    return block.output << sort.rowBits >> sort.outputBits;
  }

  void fillSlice(const BlockSort &sort, const SliceBlock &block, Bytes &slice) {
    const BlockSide &side = sort.in.source;
    const uint32_t threads = 1u << sort.in.threadBits;
    const size_t bytes = side.wide ? 16 : 4;
    for (uint32_t thread = 0; thread < threads; ++thread)
      for (int access = 0; access < (side.wide ? 2 : kHeldWords); ++access)
        std::memcpy(&shared.at(sumWithoutCarry(side.shared, thread) ^
                               side.shared.access[access]),
                    move.from + block.bytes + sumOf(side.bytes, thread) +
                        side.bytes.access[access],
                    bytes);
    for (uint32_t thread = 0; thread < threads; ++thread) {
      uint32_t held[kHeldWords];
      for (int i = 0; i < kHeldWords; ++i)
        std::memcpy(&held[i],
                    &shared.at(sumWithoutCarry(sort.in.read, thread) ^
                               sort.in.read.access[i]),
                    4);
      permute(sort.in, held);
      for (int i = 0; i < kHeldWords; ++i)
        std::memcpy(&slice.at(inSlice((block.input << sort.rowBits) +
                                          outputBytes(sort, block) +
                                          sumOf(sort.slice, thread) +
                                          sort.slice.access[i],
                                      sort.rowBits)),
                    &held[i], 4);
    }
  }

  void emptySlice(const BlockSort &sort, uint32_t expert,
                  const SliceBlock &block, const Bytes &slice) {
    const BlockSide &side = move.target;
    const uint32_t threads = 1u << move.threadBits;
    for (uint32_t thread = 0; thread < threads; ++thread) {
      const int32_t *rows = sort.rows + expert * sort.inputs + block.input +
                            sumOf(sort.inputTerms, thread);
      uint32_t held[kHeldWords];
      for (int i = 0; i < kHeldWords; ++i)
        std::memcpy(
            &held[i],
            &slice.at(inSlice(
                (static_cast<uint32_t>(rows[sort.inputTerms.access[i]])
                 << sort.rowBits) +
                    outputBytes(sort, block) + sumOf(sort.outputTerms, thread) +
                    sort.outputTerms.access[i],
                sort.rowBits)),
            4);
      permute(move, held);
      for (int i = 0; i < kHeldWords; ++i)
        store(sumWithoutCarry(move.write, thread) ^ move.write.access[i],
              held[i]);
    }
    const size_t bytes = side.wide ? 16 : 4;
    for (uint32_t thread = 0; thread < threads; ++thread)
      for (int access = 0; access < (side.wide ? 2 : kHeldWords); ++access)
        std::memcpy(move.to + block.bytes + sumOf(side.bytes, thread) +
                        side.bytes.access[access],
                    &shared.at(sumWithoutCarry(side.shared, thread) ^
                               side.shared.access[access]),
                    bytes);
  }

  uint32_t zeroAt(const BlockZeros &zeros, BlockPlace place, uint32_t thread,
                  int access) const {
    if (!zeros.data)
      return static_cast<uint32_t>(zeros.implied);
    const int64_t input = int64_t(place.inner + move.source.innerBegin)
                          << zeros.innerBits;
    const int64_t row =
        place.half * zeros.outputs +
        (int64_t(place.output + move.source.outputBegin) << zeros.outputBits);
    const int64_t at = place.expert * zeroMap.size() +
                       zeroMap.group(input / zeros.group) + zeroMap.row(row) +
                       sumOf(zeros.units, inBlock(thread)) +
                       zeros.units.access[access];
    const uint32_t stored = zeros.bits == 8
                                ? zeros.data[at]
                                : (zeros.data[at / 2] >> (at % 2 * 4)) & 15;
    return (stored + zeros.add) & zeros.mask;
  }

  /// What threads of a block fetch, one after the other.
  uint32_t fetchedZero(BlockPlace place, uint32_t number) const {
    EXPECT_LT(number, recode->count);
    return zeroAt(recode->zeros, place, number,
                  static_cast<int>(number >> move.threadBits));
  }

  void reorderOut(uint32_t item, uint32_t thread) {
    uint32_t held[kHeldWords];
    for (int word = 0; word < kHeldWords; ++word)
      std::memcpy(&held[word], &shared.at(address(move.read, thread, word)), 4);
    const std::optional<BlockPlace> place = placeAt(item, thread);
    auto rewrite = [&] {
      for (int word = 0; place && word < kHeldWords; ++word)
        held[word] = recodeWord(
            held[word],
            fetchedZero(*place, sumOf(recode->inTable, inBlock(thread)) +
                                    recode->inTable.access[word]),
            recode->toFP8);
    };
    if (recode && recode->asRead)
      rewrite();
    permute(move, held);
    if (recode && !recode->asRead)
      rewrite();
    std::copy_n(held, kHeldWords, &words[size_t(thread) * kHeldWords]);
  }

  /// All of a sum, where the kernel's threads share it.
  void addUp(uint32_t item, uint32_t thread) {
    const std::optional<BlockPlace> place = placeAt(item, thread);
    const uint32_t parts = 1u << sums->partBits;
    if (!place || ((thread >> 3) & (parts - 1)) != 0)
      return;
    int32_t sum[2] = {};
    for (uint32_t part = 0; part < parts; ++part)
      for (int i = 0; i < kHeldWords; ++i)
        for (int byte = 0; byte < 4; ++byte) {
          const uint8_t codes =
              shared.at(address(sums->words, thread + (part << 3), i) + byte);
          sum[0] += codes & 15;
          sum[1] += codes >> 4;
        }
    for (int i : {0, 1}) {
      sum[i] -= static_cast<int32_t>(zeroAt(sums->zeros, *place, thread, i)) *
                sums->length;
      std::memcpy(move.to + addressOf(move.target, *place) +
                      sumOf(sums->bytes, inBlock(thread)) +
                      sums->bytes.access[i],
                  &sum[i], 4);
    }
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

inline WeightSpec specOf(const LayoutEntry &layout, int bits, int64_t group) {
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

inline void fillRandomly(Stored &stored) {
  std::mt19937 random(5);
  for (uint8_t &byte : stored.at(Part::Codes))
    byte = static_cast<uint8_t>(random());
  // Finite in each type; zero points that four bits hold.
  for (size_t i = 0; i < stored.at(Part::Scales).size(); ++i)
    stored.at(Part::Scales)[i] = static_cast<uint8_t>(i % 2 ? 0x3c : random());
  for (uint8_t &byte : stored.at(Part::Zeros))
    byte = random() & 7;
}

inline MoveShape shapeOf(const WeightSpec &source, const WeightSpec &target,
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

} // namespace wna16::cuda

#endif // WNA16_UNITTESTS_CUDA_BLOCKINTERPRETER_H
