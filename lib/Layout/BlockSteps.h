//===- BlockSteps.h - Runs block programs on one vector type --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by the one file of each instruction set, after its `Vector`. All of
// it is in an unnamed namespace: code compiled for a set must not be merged
// with another file's.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_BLOCKSTEPS_H
#define WNA16_LIB_LAYOUT_BLOCKSTEPS_H

#include "BlockProgram.h"

#include <immintrin.h>

namespace {

using wna16::BlockList;
using wna16::BlockPass;
using wna16::BlockProgram;
using wna16::BlockStep;

/// Asks for the lines of a later block, a few at a time: all at once would hold
/// up this block's loads.
class Prefetcher {
public:
  /// Blocks that it is ahead: memory answers later than a block takes.
  static constexpr int64_t kAhead = 3;

  explicit Prefetcher(const BlockProgram &program)
      : begin(program.lines.data()), end(begin + program.lines.size()),
        line(end) {
    size_t goes = 0;
    for (const BlockPass &pass : program.passes)
      goes += pass.in.first.size();
    step = (program.lines.size() + goes - 1) / goes;
  }

  void start(const uint8_t *block) {
    next = block;
    line = begin;
  }
  inline void go() {
    for (size_t i = 0; i < step && line != end; ++i)
      _mm_prefetch(reinterpret_cast<const char *>(next + *line++), _MM_HINT_T1);
  }

private:
  const int64_t *begin, *end, *line;
  size_t step;
  const uint8_t *next = nullptr;
};

/// Where a pass reads and writes.
struct Ends {
  const uint8_t *in;
  uint8_t *out;
  uint8_t flip;
};

/// A step on pairs, its tables in registers.
struct PairStep {
  Exchange exchange;
  bool swapsNibbles;

  explicit PairStep(const BlockStep &step)
      : exchange(step),
        swapsNibbles(step.kind == BlockStep::Kind::NibbleExchange) {}

  /// Swaps bit `kBit` of the held registers' numbers.
  template <int kBit, int kHeld>
  inline void run(Vector (&held)[kHeld]) const {
    if (swapsNibbles) {
#pragma GCC unroll 8
      for (int i = 0; i < kHeld; ++i)
        if (!(i >> kBit & 1)) {
          Vector &a = held[i], &b = held[i | 1 << kBit];
          Vector low = Vector::lowNibbles(a, b);
          b = Vector::highNibbles(a, b);
          a = low;
        }
      return;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kHeld; ++i)
      if (!(i >> kBit & 1))
        exchange.apply(held[i], held[i | 1 << kBit]);
  }
};

/// Offset of register `place` of those held.
inline int64_t heldOffset(const BlockPass::Offsets &offsets, int place) {
  return (place & 1 ? offsets.second[0] : 0) +
         (place & 2 ? offsets.second[1] : 0) +
         (place & 4 ? offsets.second[2] : 0);
}

/// A pass of kPairSteps steps on pairs and perhaps a shuffle after them.
template <int kPairSteps, bool kStreams>
void runPass(const BlockPass &pass, Ends ends, Prefetcher &prefetcher) {
  constexpr int kHeld = 1 << kPairSteps;
  const BlockStep *steps = pass.steps.data(), &final = pass.steps.back();
  const PairStep first(steps[0]), second(steps[kPairSteps > 1 ? 1 : 0]),
      third(steps[kPairSteps > 2 ? 2 : 0]);
  const bool shuffles = final.pairBit < 0;
  const Vector table = Vector::load(final.table[0]);
  const Vector flip = Vector::splat(ends.flip);
  const BlockPass::Offsets &in = pass.in, &out = pass.out;
  for (size_t at = 0, count = in.first.size(); at < count; ++at) {
    const uint8_t *from = ends.in + in.first[at];
    uint8_t *to = ends.out + out.first[at];
    prefetcher.go();
    Vector held[kHeld];
#pragma GCC unroll 8
    for (int i = 0; i < kHeld; ++i)
      held[i] = Vector::load(from + heldOffset(in, i));
    if constexpr (kPairSteps > 0)
      first.run<0>(held);
    if constexpr (kPairSteps > 1)
      second.run<1>(held);
    if constexpr (kPairSteps > 2)
      third.run<2>(held);
    if (shuffles)
#pragma GCC unroll 8
      for (int i = 0; i < kHeld; ++i)
        held[i] = held[i].shuffle(table);
#pragma GCC unroll 8
    for (int i = 0; i < kHeld; ++i) {
      if constexpr (kStreams)
        (held[i] ^ flip).stream(to + heldOffset(out, i));
      else
        (held[i] ^ flip).store(to + heldOffset(out, i));
    }
  }
}

template <bool kStreams>
void runPass(const BlockPass &pass, Ends ends, Prefetcher &prefetcher) {
  switch (pass.pairSteps) {
  case 0:
    return runPass<0, kStreams>(pass, ends, prefetcher);
  case 1:
    return runPass<1, kStreams>(pass, ends, prefetcher);
  case 2:
    return runPass<2, kStreams>(pass, ends, prefetcher);
  default:
    return runPass<3, kStreams>(pass, ends, prefetcher);
  }
}

/// Copies of a size that the compiler knows become one or two moves.
template <typename Copy>
void withKnownSize(int64_t bytes, Copy copy) {
  switch (bytes) {
  case 4:
    return copy(std::integral_constant<int64_t, 4>());
  case 8:
    return copy(std::integral_constant<int64_t, 8>());
  case 16:
    return copy(std::integral_constant<int64_t, 16>());
  case 32:
    return copy(std::integral_constant<int64_t, 32>());
  default:
    return copy(bytes);
  }
}

void gather(const BlockProgram::Copies &copies, const uint8_t *from,
            uint8_t *scratch) {
  withKnownSize(copies.bytes, [&](auto bytes) {
    for (int64_t i = 0, e = copies.size(); i < e; ++i)
      __builtin_memcpy(scratch + i * bytes, from + copies.memory[i], bytes);
  });
}

void fetch(const BlockProgram::Copies &copies, const BlockList &list,
           const uint8_t *from, uint8_t *scratch) {
  for (int64_t i = 0, e = copies.size(); i < e; ++i)
    list.fetch(list.context, from + copies.memory[i], copies.bytes,
               scratch + i * copies.bytes);
}

void scatter(const BlockProgram::Copies &copies, const uint8_t *scratch,
             uint8_t *to, bool streams) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Vector));
  if (streams) {
    for (int64_t i = 0, e = copies.size(); i < e; ++i)
      for (int64_t at = 0; at < copies.bytes; at += kBytes)
        Vector::load(scratch + i * copies.bytes + at)
            .stream(to + copies.memory[i] + at);
    return;
  }
  withKnownSize(copies.bytes, [&](auto bytes) {
    for (int64_t i = 0, e = copies.size(); i < e; ++i)
      __builtin_memcpy(to + copies.memory[i], scratch + i * bytes, bytes);
  });
}

void runBlocks(const BlockProgram &program, const BlockList &list) {
  alignas(64) uint8_t scratch[2][BlockProgram::kMaxBlockBytes];
  Prefetcher prefetcher(program);
  for (int64_t block = 0; block < list.count; ++block) {
    const uint8_t *from = list.from + list.fromOffsets[block];
    uint8_t *to = list.to + list.toOffsets[block];
    if (block + Prefetcher::kAhead < list.count)
      prefetcher.start(list.from +
                       list.fromOffsets[block + Prefetcher::kAhead]);
    if (list.fetch)
      fetch(program.gather, list, from, scratch[0]);
    else if (program.gather.size())
      gather(program.gather, from, scratch[0]);
    for (const BlockPass &pass : program.passes) {
      bool last = &pass == &program.passes.back();
      Ends ends{pass.readsSource ? from : scratch[0],
                pass.writesTarget ? to : scratch[last ? 1 : 0],
                last ? list.flip : uint8_t(0)};
      if (pass.writesTarget && list.streams)
        runPass<true>(pass, ends, prefetcher);
      else
        runPass<false>(pass, ends, prefetcher);
    }
    if (list.inspect)
      list.inspect(list.context, block, scratch[1]);
    if (program.scatter.size())
      scatter(program.scatter, scratch[1], to, list.streams);
  }
  if (list.streams)
    _mm_sfence();
}

} // namespace

#endif // WNA16_LIB_LAYOUT_BLOCKSTEPS_H
