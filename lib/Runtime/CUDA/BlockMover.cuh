//===- BlockMover.cuh - A CUDA block that moves blocks --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of a move, and the loop over blocks. Movers that do more than move
// have steps of their own in place of some of these.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_BLOCKMOVER_CUH
#define WNA16_LIB_RUNTIME_CUDA_BLOCKMOVER_CUH

#include "BlockMove.h"

#include <type_traits>

namespace wna16::cuda {

/// Copies from global into shared memory, of which a thread may have several
/// under way.
template <int Bytes>
__device__ void fetchBytes(uint32_t shared, const void *global) {
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared),
                 "l"(global));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared),
                 "l"(global));
}

/// Ends a batch of fetches; batches arrive in order.
__device__ inline void endBatch() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most so many batches are on their way.
template <int Batches>
__device__ void waitForBatches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Batches) : "memory");
}

__device__ inline void waitForFetches() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Where a block comes from and goes to; null beyond the last.
struct __align__(16) Way {
  const uint8_t *from;
  uint8_t *to;
};

template <int Buffers = 2>
struct MoverMemory {
  uint8_t buffer[Buffers][MovePlan::kMaxBytes];
  /// Of the blocks of the next turns, those of one turn side by side.
  Way ways[kMoveThreads];
};

/// One thread's share of a move.
class BlockMover {
public:
  /// Where a block goes, and whatever else its later steps need.
  using Target = uint8_t *;

  const BlockMove &move;
  uint8_t (*buffers)[MovePlan::kMaxBytes];
  Way *ways;
  uint32_t block; ///< which of those that are moved at once is the thread's
  uint32_t fill, read, write, drain; ///< in a buffer
  uint32_t in, out;                  ///< in memory

  template <int Buffers>
  __device__ BlockMover(const BlockMove &move, MoverMemory<Buffers> &shared)
      : move(move), buffers(shared.buffer), ways(shared.ways),
        block(threadIdx.x >> move.threadBits) {
    const uint32_t thread = threadIdx.x & ((1u << move.threadBits) - 1);
    const uint32_t base = block << (move.threadBits + 5);
    fill = base + sumWithoutCarry(move.source.shared, thread);
    drain = base + sumWithoutCarry(move.target.shared, thread);
    read = base + sumWithoutCarry(move.read, thread);
    write = base + sumWithoutCarry(move.write, thread);
    in = sumOf(move.source.bytes, thread);
    out = sumOf(move.target.bytes, thread);
  }

  /// Hides from the compiler what the sums are: it is to hold them, neither
  /// compute them in each turn nor hold all that is computed from them.
  __device__ void holdSums() {
    for (uint32_t *sum : {&fill, &drain, &read, &write, &in, &out})
      asm volatile("" : "+r"(*sum));
  }

  /// The block whose way a thread looks for: of the next turns, every
  /// `count`-th item from `first` on, a thread one of them.
  __device__ uint32_t planned(uint32_t first, uint32_t count) const {
    const uint32_t turn = threadIdx.x / move.blocksAtOnce();
    return (first + turn * count) * move.blocksAtOnce() +
           threadIdx.x % move.blocksAtOnce();
  }

  __device__ void plan(uint32_t first, uint32_t count) const {
    const uint32_t number = planned(first, count);
    Way way = {};
    if (number < move.blocks) {
      const BlockPlace place = placeOf(move, number);
      way = {move.from + addressOf(move.source, place),
             move.to + addressOf(move.target, place)};
    }
    ways[threadIdx.x] = way;
  }

  /// Which of the ways is that of a turn.
  __device__ uint32_t wayOf(uint32_t turn) const {
    const uint32_t turns = 1u << move.threadBits;
    return turn % turns * move.blocksAtOnce() + block;
  }

  /// Before everyone meets to put a block in order.
  template <typename Target>
  __device__ void arrive(const Target &) const {}

  /// Begins to bring the block of a turn into a buffer.
  __device__ Target fetch(uint32_t turn, uint32_t stage) const {
    const Way way = ways[wayOf(turn)];
    if (!way.to)
      return nullptr;
    const BlockSide &side = move.source;
    const uint8_t *from = way.from + in;
    const auto to =
        static_cast<uint32_t>(__cvta_generic_to_shared(buffers[stage]));
    if (side.wide) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        fetchBytes<16>(to + (fill ^ side.shared.access[i]),
                       from + side.bytes.access[i]);
    } else {
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        fetchBytes<4>(to + (fill ^ side.shared.access[i]),
                      from + side.bytes.access[i]);
    }
    return way.to + out;
  }

  __device__ void store(Target to, uint32_t stage) const {
    const BlockSide &side = move.target;
    const uint8_t *from = buffers[stage];
    if (side.wide) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        __stcs(reinterpret_cast<uint4 *>(to + side.bytes.access[i]),
               *reinterpret_cast<const uint4 *>(
                   from + (drain ^ side.shared.access[i])));
    } else {
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        __stcs(reinterpret_cast<uint32_t *>(to + side.bytes.access[i]),
               *reinterpret_cast<const uint32_t *>(
                   from + (drain ^ side.shared.access[i])));
    }
  }

  __device__ void readWords(uint32_t stage,
                            uint32_t (&words)[kHeldWords]) const {
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      words[i] = *reinterpret_cast<const uint32_t *>(
          buffers[stage] + (read ^ move.read.access[i]));
  }

  /// Everyone has read before someone writes.
  __device__ void writeWords(uint32_t stage,
                             const uint32_t (&words)[kHeldWords]) const {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      *reinterpret_cast<uint32_t *>(buffers[stage] +
                                    (write ^ move.write.access[i])) = words[i];
    __syncthreads();
  }

  /// Brings a buffer from the source's order into the target's.
  __device__ void reorder(const Target &, uint32_t stage) const {
    uint32_t words[kHeldWords];
    readWords(stage, words);
    permute(move, words);
    writeWords(stage, words);
  }
};

/// Moves every `count`-th item from item `first` on: while one is put in order
/// the next is on its way.
template <typename Mover>
__device__ void runMover(Mover &&mover, uint32_t first, uint32_t items,
                         uint32_t count) {
  const uint32_t turns = first < items ? (items - first - 1) / count + 1 : 0;
  typename std::decay_t<Mover>::Target next = {};
  for (uint32_t turn = 0; turn <= turns; ++turn) {
    mover.holdSums();
    // Whoever reads ways that others wrote has met them since.
    if (turn % (1u << mover.move.threadBits) == 0)
      mover.plan(first + turn * count, count);
    mover.arrive(next);
    waitForFetches();
    // What was in the other buffer has been stored, too.
    __syncthreads();
    const auto to = next;
    if (turn < turns)
      next = mover.fetch(turn, turn % 2);
    if (turn == 0)
      continue;
    mover.reorder(to, (turn - 1) % 2);
    if (to)
      mover.store(to, (turn - 1) % 2);
  }
  __syncthreads();
}

/// Zeros in the target's blocks that do not move, from item `first` on.
__device__ inline void clearEdges(const BlockMove &move, uint32_t first,
                                  uint32_t count) {
  const BlockSide &side = move.target;
  const uint32_t thread = threadIdx.x & ((1u << move.threadBits) - 1);
  for (uint32_t number =
           first * move.blocksAtOnce() + (threadIdx.x >> move.threadBits);
       number < move.cleared; number += count * move.blocksAtOnce()) {
    uint8_t *to = move.to + addressOf(side, edgeOf(move, number)) +
                  sumOf(side.bytes, thread);
    if (side.wide) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        __stcs(reinterpret_cast<uint4 *>(to + side.bytes.access[i]), uint4());
    } else {
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        __stcs(reinterpret_cast<uint32_t *>(to + side.bytes.access[i]), 0u);
    }
  }
}

__host__ __device__ inline uint32_t itemsOf(const BlockMove &move) {
  return (move.blocks + move.blocksAtOnce() - 1) / move.blocksAtOnce();
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_BLOCKMOVER_CUH
