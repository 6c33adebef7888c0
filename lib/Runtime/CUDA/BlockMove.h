//===- BlockMove.h - A move plan as tables for threads --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A MovePlan for a device. A block comes into shared memory by the source's
// runs. Each thread then holds eight of its 32-bit words, chosen so that every
// word of the target is made of words that one thread holds: which codes share
// a word is changed by exchanges between registers, everything else by where
// words are read and written. Addresses are sums of one term for each bit of a
// thread's number, in shared memory without carry, so that terms of high bits
// can spread words over the banks.
//
// The functions here are what the kernel does; tests run them on the host.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_BLOCKMOVE_H
#define WNA16_LIB_RUNTIME_CUDA_BLOCKMOVE_H

#include "Layout/MovePlan.h"

#ifdef __CUDACC__
#define WNA16_HOST_DEVICE __host__ __device__
#else
#define WNA16_HOST_DEVICE
#endif

namespace wna16::cuda {

constexpr int kMoveThreadBits = 8;
/// Threads of a CUDA block. They move a plan's block, or several small ones.
constexpr int kMoveThreads = 1 << kMoveThreadBits;
constexpr int kHeldBits = 3;
/// Words that a thread holds.
constexpr int kHeldWords = 1 << kHeldBits;
static_assert(4 * kHeldWords * kMoveThreads == MovePlan::kMaxBytes,
              "threads hold the largest block");

/// What moves, and into what: inner coordinates are inputs (codes, elements) or
/// groups (scales, zero points).
struct MoveShape {
  Axis inner = Axis::Input;
  int64_t experts = 1;
  int64_t halves = 1;
  int64_t innerBegin = 0; ///< the first that moves, in the source
  int64_t inners = 0;     ///< that move
  int64_t targetInners = 0;
  int64_t sourceOutputs = 0; ///< of a half
  int64_t outputBegin = 0;   ///< the first that moves, in the source
  int64_t outputs = 0;       ///< of a half, that move
  int64_t targetOutputs = 0;
  /// Inputs of whole groups: those beyond what moves have a code of their own.
  int64_t filled = 0;
  /// What moves is to be whole blocks.
  bool whole = false;
  /// Halves are not one axis, even where both tensors' are.
  bool keepsHalves = false;
};

/// The address of a block along one axis: bits of its number that count up
/// evenly, group by group. Steps that are not needed add nothing.
struct AxisSteps {
  static constexpr int kMax = 4;
  struct Step {
    uint32_t shift = 0, mask = 0, words = 0;
  };
  Step step[kMax];
};

/// Terms of the bits of a thread's number, and of each of its accesses.
struct ThreadTerms {
  uint32_t bit[kMoveThreadBits] = {};
  uint32_t access[kHeldWords] = {};
};

/// Where blocks are in a tensor, in words.
struct BlockAddress {
  int64_t expert = 0;       ///< from expert to expert
  uint32_t first = 0;       ///< from an expert to the block that counts as 0
  uint32_t half = 0;        ///< from half to half, where they are an axis
  uint32_t halfOutputs = 0; ///< blocks from half to half otherwise
  uint32_t innerBegin = 0;  ///< blocks before those that move
  uint32_t outputBegin = 0;
  AxisSteps inner, output;
};

/// One of the two tensors.
struct BlockSide : BlockAddress {
  /// Accesses are of 16 bytes, two a thread; otherwise of 4.
  uint32_t wide = 0;
  ThreadTerms bytes;  ///< within a block
  ThreadTerms shared; ///< the same bytes in shared memory
};

/// Exchanges bits of the number of a code among what a thread holds: between
/// words whose numbers differ in bit `held`, nibbles, or bytes as two selectors
/// of a byte permutation say.
struct WordStep {
  uint32_t held = 0;
  uint32_t nibbles = 0;
  uint32_t low = 0, high = 0;
};

/// Codes as other codes: w ^ flip, and the lower three bits of a nibble
/// inverted where (w ^ invert) & select says so.
struct WordRecode {
  uint32_t flip = 0, invert = 0, select = 0;

  WNA16_HOST_DEVICE bool changes() const { return (flip | select) != 0; }
};

/// A divisor, and 2^64 / divisor rounded up; 0 for a divisor of 1.
struct Divisor {
  uint32_t value = 1;
  uint64_t magic = 0;
};

/// How blocks of a target are counted.
struct BlockCount {
  int32_t halves = 1;
  uint32_t outputsFirst = 0; ///< blocks count along outputs first
  Divisor inFirst, inSlice;  ///< blocks along the first axis, of a half
  uint32_t blocks = 0;       ///< of all experts
};

/// What a move counts is blocks that move.
struct BlockMove : BlockCount {
  static constexpr int kMaxSteps = 5;

  const uint8_t *from = nullptr;
  uint8_t *to = nullptr;
  BlockSide source, target;
  ThreadTerms read, write; ///< words in shared memory
  WordStep step[kMaxSteps];
  int32_t steps = 0;
  WordRecode recode;

  int32_t threadBits = 0; ///< log2 of the threads that a block takes
  int32_t innerBits = 0, outputBits = 0; ///< of its extents
  /// Whole blocks that move, and blocks of the target, along the axes of one
  /// half.
  uint32_t inners = 0, outputs = 0;
  uint32_t allInners = 0, allOutputs = 0;
  uint32_t edges = 0;   ///< blocks that do not move, of a half
  uint32_t cleared = 0; ///< of all experts, where all edges are zeros
  /// Whether blocks cover the target; what they do not is padding.
  bool exact = true;

  uint32_t bytes() const { return 32u << threadBits; }
  /// What CUDA blocks take at a time.
  WNA16_HOST_DEVICE uint32_t blocksAtOnce() const {
    return uint32_t(kMoveThreads) >> threadBits;
  }
};

/// What bit of a coordinate a bit of the count of a block's nibbles is; -1:
/// of none, within a unit.
struct CoordinateBit {
  bool isOutput = false;
  int bit = -1;
};

/// The bits of that count, as the tables of a move use them: for who makes
/// further tables.
struct BlockBits {
  std::vector<CoordinateBit> source; ///< in the source's order
  std::vector<int> inSource;         ///< of the target's bits, the source's
  std::vector<int64_t> weights[2];   ///< nibbles in the tensors
  std::vector<uint32_t> shared;      ///< the target's, in shared memory
  /// Bits in the source's order: those of a thread's number, and of the words
  /// that it holds, as read and as written.
  std::vector<int> threads, read, write;
  int inner = 0, output = 0; ///< log2 of a block's extents

  int count() const { return static_cast<int>(source.size()); }
  CoordinateBit target(int bit) const { return source[inSource[bit]]; }
};

/// Tables for a move of units of 4, 8, 16 or 32 bits; none where runs are
/// shorter than words or extents have no factors of two. Both buffers are
/// aligned to each power of two that divides `alignment`: their addresses'
/// low bits, ored, will do.
std::optional<BlockMove> planBlocks(const AddressMap &from,
                                    const AddressMap &to, int unitBits,
                                    MoveShape shape, int64_t alignment,
                                    BlockBits *bits = nullptr);

/// Where blocks of 2^`innerBits` by 2^`outputBits` coordinates are, in words;
/// with negative bits, of as many blocks each of a coordinate. False where that
/// takes too many terms. `halves`: as they are counted.
bool listAddress(const AddressMap &map, int unitBits, const MoveShape &shape,
                 int innerBits, int outputBits, int64_t outputs,
                 BlockAddress &address);

/// Divisors that `divide` takes.
Divisor divisorOf(uint32_t value);

/// Whether every unit of a target moves, or is one that does.
bool fills(const AddressMap &to, const MoveShape &shape);

/// How codes of one type become those of another, where their zero points are
/// implied.
WordRecode recodeOf(CodeType from, CodeType to);

//===----------------------------------------------------------------------===//
// What a thread does
//===----------------------------------------------------------------------===//

WNA16_HOST_DEVICE inline uint32_t divide(uint32_t value, Divisor by) {
  if (by.magic == 0)
    return value;
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__umul64hi(value, by.magic));
#else
  return static_cast<uint32_t>(
      (static_cast<unsigned __int128>(value) * by.magic) >> 64);
#endif
}

struct BlockPlace {
  uint32_t expert, half, inner, output;
};

/// Block `number` of those that are counted.
WNA16_HOST_DEVICE inline BlockPlace placeOf(const BlockCount &count,
                                            uint32_t number) {
  const uint32_t slice = divide(number, count.inSlice);
  const uint32_t rest = number - slice * count.inSlice.value;
  const uint32_t second = divide(rest, count.inFirst);
  const uint32_t first = rest - second * count.inFirst.value;
  const uint32_t gated = count.halves == 2;
  return {slice >> gated, slice & gated, count.outputsFirst ? second : first,
          count.outputsFirst ? first : second};
}

/// Blocks beside those that move, numbered row by row: first what lies beyond
/// their inner extent.
WNA16_HOST_DEVICE inline BlockPlace edgeOf(const BlockMove &move,
                                           uint32_t number) {
  const auto halves = static_cast<uint32_t>(move.halves);
  const uint32_t slice = number / move.edges;
  const uint32_t beyond = move.allInners - move.inners;
  uint32_t rest = number - slice * move.edges;
  BlockPlace place = {slice / halves, slice % halves, 0, 0};
  if (rest < beyond * move.outputs) {
    place.output = rest / beyond;
    place.inner = move.inners + rest % beyond;
    return place;
  }
  rest -= beyond * move.outputs;
  place.output = move.outputs + rest / move.allInners;
  place.inner = rest % move.allInners;
  return place;
}

WNA16_HOST_DEVICE inline uint32_t wordsAlong(const AxisSteps &axis,
                                             uint32_t number) {
  uint32_t sum = 0;
  for (const AxisSteps::Step &step : axis.step)
    sum += ((number >> step.shift) & step.mask) * step.words;
  return sum;
}

/// Words from expert 0 to a block.
WNA16_HOST_DEVICE inline int64_t wordsTo(const BlockAddress &side,
                                         BlockPlace place) {
  const uint32_t output =
      place.output + side.outputBegin + place.half * side.halfOutputs;
  const uint32_t words = side.first + place.half * side.half +
                         wordsAlong(side.inner, place.inner + side.innerBegin) +
                         wordsAlong(side.output, output);
  return place.expert * side.expert + words;
}

/// The same in bytes.
WNA16_HOST_DEVICE inline int64_t addressOf(const BlockAddress &side,
                                           BlockPlace place) {
  return wordsTo(side, place) * 4;
}

/// In memory.
WNA16_HOST_DEVICE inline uint32_t sumOf(const ThreadTerms &terms,
                                        uint32_t thread) {
  uint32_t sum = 0;
  for (int i = 0; i < kMoveThreadBits; ++i)
    sum += (thread >> i) & 1 ? terms.bit[i] : 0;
  return sum;
}

/// In shared memory.
WNA16_HOST_DEVICE inline uint32_t sumWithoutCarry(const ThreadTerms &terms,
                                                  uint32_t thread) {
  uint32_t sum = 0;
  for (int i = 0; i < kMoveThreadBits; ++i)
    sum ^= (thread >> i) & 1 ? terms.bit[i] : 0;
  return sum;
}

/// Four of the eight bytes of two words.
WNA16_HOST_DEVICE inline uint32_t pickBytes(uint32_t low, uint32_t high,
                                            uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(low, high, selector);
#else
  const uint64_t both = uint64_t(high) << 32 | low;
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word |= uint32_t((both >> (8 * ((selector >> (4 * i)) & 7))) & 255)
            << (8 * i);
  return word;
#endif
}

/// Calls `work` on each two words whose numbers differ in bit `held`.
template <typename Work>
WNA16_HOST_DEVICE inline void forPairs(uint32_t (&words)[kHeldWords],
                                       uint32_t held, Work work) {
  if (held == 0)
    for (int i = 0; i < kHeldWords; i += 2)
      work(words[i], words[i + 1]);
  else if (held == 1)
    for (int i = 0; i < kHeldWords; i += i % 2 ? 3 : 1)
      work(words[i], words[i + 2]);
  else
    for (int i = 0; i < kHeldWords / 2; ++i)
      work(words[i], words[i + 4]);
}

WNA16_HOST_DEVICE inline void exchange(uint32_t (&words)[kHeldWords],
                                       const WordStep &step) {
  if (step.nibbles) {
    forPairs(words, step.held, [](uint32_t &first, uint32_t &second) {
      constexpr uint32_t kLow = 0x0f0f0f0f;
      const uint32_t a = first, b = second;
      first = (a & kLow) | ((b << 4) & ~kLow);
      second = ((a >> 4) & kLow) | (b & ~kLow);
    });
    return;
  }
  const uint32_t low = step.low, high = step.high;
  forPairs(words, step.held, [low, high](uint32_t &first, uint32_t &second) {
    const uint32_t a = first, b = second;
    first = pickBytes(a, b, low);
    second = pickBytes(a, b, high);
  });
}

WNA16_HOST_DEVICE inline void permute(const BlockMove &move,
                                      uint32_t (&words)[kHeldWords]) {
  for (int i = 0; i < move.steps; ++i)
    exchange(words, move.step[i]);
  const WordRecode recode = move.recode;
  if (!recode.changes())
    return;
  for (uint32_t &word : words)
    word ^= recode.flip ^ (((word ^ recode.invert) & recode.select) >> 3) * 7;
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_BLOCKMOVE_H
