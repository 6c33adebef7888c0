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
using wna16::BlockProgram;
using wna16::BlockStep;
using wna16::BlockView;

/// Keeps memory busy both ways while registers are shuffled, a few lines at a
/// time: asks for those of a later block, and stores those of the last one past
/// the caches. All at once would hold up this block's loads.
class Traffic {
public:
  /// Blocks that it is ahead: memory answers later than a block takes.
  static constexpr int64_t kAhead = 3;

  explicit Traffic(const BlockView &program)
      : program(program), line(program.lineCount),
        result(program.resultLineCount) {
    int64_t goes = 0;
    for (int64_t pass = 0; pass < program.passCount; ++pass)
      goes += program.passes[pass].count;
    lineStep = (program.lineCount + goes - 1) / goes;
    resultStep = (program.resultLineCount + goes - 1) / goes;
  }

  void fetch(const uint8_t *block) {
    next = block;
    line = 0;
  }
  /// What is left of the last block is stored first.
  void store(const uint8_t *scratch, uint8_t *block) {
    finish();
    from = scratch;
    to = block;
    result = 0;
  }
  void finish() { stream(program.resultLineCount); }

  inline void go() {
    for (int64_t end = least(line + lineStep, program.lineCount); line < end;
         ++line)
      _mm_prefetch(reinterpret_cast<const char *>(next + program.lines[line]),
                   _MM_HINT_T1);
    stream(resultStep);
  }

private:
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

  inline void stream(int64_t count) {
    constexpr int64_t kLine = 64, kBytes = sizeof(Vector);
    for (int64_t end = least(result + count, program.resultLineCount);
         result < end; ++result)
      for (int64_t at = 0; at < kLine; at += kBytes)
        Vector::load(from + result * kLine + at)
            .stream(to + program.resultLines[result] + at);
  }

  const BlockView &program;
  int64_t line, result; ///< the next ones
  int64_t lineStep, resultStep;
  const uint8_t *next = nullptr, *from = nullptr;
  uint8_t *to = nullptr;
};

/// Where a pass reads and writes.
struct Ends {
  const uint8_t *in;
  uint8_t *out;
  uint8_t flip;
};

/// A step on pairs that differ in bit `kBit` of the held registers' numbers.
template <int kBit, int kHeld>
inline __attribute__((always_inline)) void runPairs(const BlockStep &step,
                                                    Vector (&held)[kHeld]) {
  if (step.kind == BlockStep::Kind::NibbleExchange) {
#pragma GCC unroll 16
    for (int i = 0; i < kHeld; ++i)
      if (!(i >> kBit & 1)) {
        Vector &a = held[i], &b = held[i | 1 << kBit];
        Vector low = Vector::lowNibbles(a, b);
        b = Vector::highNibbles(a, b);
        a = low;
      }
    return;
  }
  const Exchange exchange(step);
#pragma GCC unroll 16
  for (int i = 0; i < kHeld; ++i)
    if (!(i >> kBit & 1))
      exchange.apply(held[i], held[i | 1 << kBit]);
}

template <int kHeld>
inline __attribute__((always_inline)) void runStep(const BlockStep &step,
                                                   Vector (&held)[kHeld]) {
  if constexpr (kHeld > 1)
    if (step.heldBit == 0)
      return runPairs<0>(step, held);
  if constexpr (kHeld > 2)
    if (step.heldBit == 1)
      return runPairs<1>(step, held);
  if constexpr (kHeld > 4)
    if (step.heldBit == 2)
      return runPairs<2>(step, held);
  if constexpr (kHeld > 8)
    if (step.heldBit == 3)
      return runPairs<3>(step, held);
  const Vector table = Vector::load(step.table[0]);
#pragma GCC unroll 16
  for (int i = 0; i < kHeld; ++i)
    held[i] = held[i].shuffle(table);
}

/// Offset of register `place` of those held.
inline int64_t heldOffset(const BlockView::Offsets &offsets, int place) {
  return (place & 1 ? offsets.second[0] : 0) +
         (place & 2 ? offsets.second[1] : 0) +
         (place & 4 ? offsets.second[2] : 0) +
         (place & 8 ? offsets.second[3] : 0);
}

/// A pass that holds 2^kHeldBits registers at once.
template <int kHeldBits, bool kStreams>
void runPass(const BlockView::Pass &pass, Ends ends, Traffic &traffic) {
  constexpr int kHeld = 1 << kHeldBits;
  const Vector flip = Vector::splat(ends.flip);
  const BlockView::Offsets &in = pass.in, &out = pass.out;
  for (int64_t at = 0, count = pass.count; at < count; ++at) {
    const uint8_t *from = ends.in + in.first[at];
    uint8_t *to = ends.out + out.first[at];
    traffic.go();
    Vector held[kHeld];
#pragma GCC unroll 16
    for (int i = 0; i < kHeld; ++i)
      held[i] = Vector::load(from + heldOffset(in, i));
    for (const BlockStep *step = pass.steps, *end = step + pass.stepCount;
         step != end; ++step)
      runStep(*step, held);
#pragma GCC unroll 16
    for (int i = 0; i < kHeld; ++i) {
      if constexpr (kStreams)
        (held[i] ^ flip).stream(to + heldOffset(out, i));
      else
        (held[i] ^ flip).store(to + heldOffset(out, i));
    }
  }
}

template <bool kStreams>
void runPass(const BlockView::Pass &pass, Ends ends, Traffic &traffic) {
  switch (pass.heldBits) {
  case 0:
    return runPass<0, kStreams>(pass, ends, traffic);
  case 1:
    return runPass<1, kStreams>(pass, ends, traffic);
  case 2:
    return runPass<2, kStreams>(pass, ends, traffic);
  case 3:
    return runPass<3, kStreams>(pass, ends, traffic);
  default:
    return runPass<4, kStreams>(pass, ends, traffic);
  }
}

template <int64_t kBytes>
struct Bytes {
  operator int64_t() const { return kBytes; }
};

/// Copies of a size that the compiler knows become one or two moves.
template <typename Copy>
void withKnownSize(int64_t bytes, Copy copy) {
  switch (bytes) {
  case 4:
    return copy(Bytes<4>());
  case 8:
    return copy(Bytes<8>());
  case 16:
    return copy(Bytes<16>());
  case 32:
    return copy(Bytes<32>());
  default:
    return copy(bytes);
  }
}

void gather(const BlockView::Copies &copies, const uint8_t *from,
            uint8_t *scratch) {
  withKnownSize(copies.bytes, [&](auto bytes) {
    for (int64_t i = 0; i < copies.count; ++i)
      __builtin_memcpy(scratch + i * bytes, from + copies.memory[i], bytes);
  });
}

void fetch(const BlockView::Copies &copies, const BlockList &list,
           const uint8_t *from, uint8_t *scratch) {
  for (int64_t i = 0; i < copies.count; ++i)
    list.fetch(list.context, from + copies.memory[i], copies.bytes,
               scratch + i * copies.bytes);
}

void scatter(const BlockView::Copies &copies, const uint8_t *scratch,
             uint8_t *to) {
  withKnownSize(copies.bytes, [&](auto bytes) {
    for (int64_t i = 0; i < copies.count; ++i)
      __builtin_memcpy(to + copies.memory[i], scratch + i * bytes, bytes);
  });
}

/// Brings one block from `from` through the first buffer to `to`, or to
/// `result` where it is staged.
void runBlock(const BlockView &program, const BlockList &list,
              const uint8_t *from, uint8_t *to, uint8_t *scratch,
              uint8_t *result, Traffic &traffic) {
  if (list.fetch)
    fetch(program.gather, list, from, scratch);
  else if (program.gather.count)
    gather(program.gather, from, scratch);
  for (int64_t i = 0; i < program.passCount; ++i) {
    const BlockView::Pass &pass = program.passes[i];
    Ends ends{pass.readsSource ? from : scratch, scratch, 0};
    if (i + 1 == program.passCount) {
      ends.out = pass.writesTarget ? to : result;
      ends.flip = list.flip;
    }
    if (pass.writesTarget && list.streams)
      runPass<true>(pass, ends, traffic);
    else
      runPass<false>(pass, ends, traffic);
  }
}

void runBlocks(const BlockView &program, const BlockList &list) {
  // Where results are streamed, a block's is while the next one's is made.
  alignas(64) uint8_t scratch[BlockProgram::kMaxBlockBytes];
  alignas(64) uint8_t results[2][BlockProgram::kMaxBlockBytes];
  Traffic traffic(program);
  for (int64_t block = 0; block < list.count; ++block) {
    const uint8_t *from = list.from + list.fromOffsets[block];
    uint8_t *to = list.to + list.toOffsets[block];
    uint8_t *result = results[block % 2];
    if (block + Traffic::kAhead < list.count)
      traffic.fetch(list.from + list.fromOffsets[block + Traffic::kAhead]);
    runBlock(program, list, from, to, scratch, result, traffic);
    if (list.inspect)
      list.inspect(list.context, block, result);
    if (!program.scatter.count)
      continue;
    if (list.streams)
      traffic.store(result, to);
    else
      scatter(program.scatter, result, to);
  }
  traffic.finish();
  if (list.streams)
    _mm_sfence();
}

} // namespace

#endif // WNA16_LIB_LAYOUT_BLOCKSTEPS_H
