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

/// Where a step reads and writes, and how it stores.
struct Ends {
  const uint8_t *in;
  uint8_t *out;
  uint8_t flip;
  bool streams;
};

template <bool kStreams>
void put(uint8_t *at, Vector value) {
  if constexpr (kStreams)
    value.stream(at);
  else
    value.store(at);
}

template <bool kStreams>
void runStep(const BlockStep &step, Ends ends) {
  const int64_t *in = step.in.data(), *out = step.out.data();
  size_t count = step.in.size();
  Vector flip = Vector::splat(ends.flip);
  switch (step.kind) {
  case BlockStep::Kind::Shuffle: {
    Vector table = Vector::load(step.table[0]);
    for (size_t i = 0; i < count; ++i)
      put<kStreams>(ends.out + out[i],
                    Vector::load(ends.in + in[i]).shuffle(table) ^ flip);
    return;
  }
  case BlockStep::Kind::Exchange: {
    Exchange swap(step);
    for (size_t i = 0; i < count; i += 2) {
      Vector a = Vector::load(ends.in + in[i]);
      Vector b = Vector::load(ends.in + in[i + 1]);
      swap.apply(a, b);
      put<kStreams>(ends.out + out[i], a ^ flip);
      put<kStreams>(ends.out + out[i + 1], b ^ flip);
    }
    return;
  }
  case BlockStep::Kind::NibbleExchange:
    for (size_t i = 0; i < count; i += 2) {
      Vector a = Vector::load(ends.in + in[i]);
      Vector b = Vector::load(ends.in + in[i + 1]);
      put<kStreams>(ends.out + out[i], Vector::lowNibbles(a, b) ^ flip);
      put<kStreams>(ends.out + out[i + 1], Vector::highNibbles(a, b) ^ flip);
    }
    return;
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

void scatter(const BlockProgram::Copies &copies, const uint8_t *scratch,
             uint8_t *to) {
  withKnownSize(copies.bytes, [&](auto bytes) {
    for (int64_t i = 0, e = copies.size(); i < e; ++i)
      __builtin_memcpy(to + copies.memory[i], scratch + i * bytes, bytes);
  });
}

void runBlocks(const BlockProgram &program, const BlockList &list) {
  alignas(64) uint8_t scratch[2][BlockProgram::kMaxBlockBytes];
  for (int64_t block = 0; block < list.count; ++block) {
    const uint8_t *from = list.from + list.fromOffsets[block];
    uint8_t *to = list.to + list.toOffsets[block];
    if (block + 1 < list.count) {
      const uint8_t *next = list.from + list.fromOffsets[block + 1];
      for (int64_t line : program.lines)
        _mm_prefetch(reinterpret_cast<const char *>(next + line), _MM_HINT_T0);
    }
    if (program.gather.size())
      gather(program.gather, from, scratch[0]);
    for (const BlockStep &step : program.steps) {
      bool last = &step == &program.steps.back();
      Ends ends{step.readsSource ? from : scratch[0],
                step.writesTarget ? to : scratch[last ? 1 : 0],
                last ? list.flip : uint8_t(0), list.streams};
      if (last && list.streams && step.writesTarget)
        runStep<true>(step, ends);
      else
        runStep<false>(step, ends);
    }
    if (program.scatter.size())
      scatter(program.scatter, scratch[1], to);
  }
  if (list.streams)
    _mm_sfence();
}

} // namespace

#endif // WNA16_LIB_LAYOUT_BLOCKSTEPS_H
