//===- MoveBlocks.cu - Blocks from one layout to another ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Convert.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

/// CUDA blocks that a multiprocessor holds: enough bytes under way.
static constexpr int kResident = 6;

namespace {

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

__device__ void waitForFetches() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Where a block comes from and goes to; null beyond the last.
struct __align__(16) Way {
  const uint8_t *from;
  uint8_t *to;
};

struct Shared {
  uint8_t buffer[2][MovePlan::kMaxBytes];
  /// Of the blocks of the next turns, those of one turn side by side.
  Way ways[kMoveThreads];
};

/// One thread's share of a move.
struct Mover {
  const BlockMove &move;
  Shared &shared;
  uint32_t block; ///< which of those that are moved at once is the thread's
  uint32_t fill, read, write, drain; ///< in a buffer
  uint32_t in, out;                  ///< in memory

  __device__ Mover(const BlockMove &move, Shared &shared)
      : move(move), shared(shared), block(threadIdx.x >> move.threadBits) {
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

  /// Looks for the ways of the next turns, every `count`-th item from `first`
  /// on, a thread one of them.
  __device__ void plan(uint32_t first, uint32_t count) const {
    const uint32_t turn = threadIdx.x / move.blocksAtOnce();
    const uint32_t number = (first + turn * count) * move.blocksAtOnce() +
                            threadIdx.x % move.blocksAtOnce();
    Way way = {};
    if (number < move.blocks) {
      const BlockPlace place = placeOf(move, number);
      way = {move.from + addressOf(move.source, place),
             move.to + addressOf(move.target, place)};
    }
    shared.ways[threadIdx.x] = way;
  }

  /// Begins to bring the block of a turn into a buffer; where it will be
  /// stored.
  __device__ uint8_t *fetch(uint32_t turn, uint32_t stage) const {
    const uint32_t turns = 1u << move.threadBits;
    const Way way = shared.ways[turn % turns * move.blocksAtOnce() + block];
    if (!way.to)
      return nullptr;
    const BlockSide &side = move.source;
    const uint8_t *from = way.from + in;
    const auto to =
        static_cast<uint32_t>(__cvta_generic_to_shared(shared.buffer[stage]));
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

  __device__ void store(uint8_t *to, uint32_t stage) const {
    const BlockSide &side = move.target;
    const uint8_t *from = shared.buffer[stage];
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

  /// Brings a buffer from the source's order into the target's.
  __device__ void reorder(uint32_t stage) const {
    uint8_t *data = shared.buffer[stage];
    uint32_t words[kHeldWords];
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      words[i] = *reinterpret_cast<const uint32_t *>(
          data + (read ^ move.read.access[i]));
    permute(move, words);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      *reinterpret_cast<uint32_t *>(data + (write ^ move.write.access[i])) =
          words[i];
    __syncthreads();
  }

  /// Moves every `count`-th item from item `first` on: while one is put in
  /// order the next is on its way.
  __device__ void run(uint32_t first, uint32_t items, uint32_t count) {
    const uint32_t turns = first < items ? (items - first - 1) / count + 1 : 0;
    uint8_t *next = nullptr;
    for (uint32_t turn = 0; turn <= turns; ++turn) {
      holdSums();
      // Whoever reads ways that others wrote has met them since.
      if (turn % (1u << move.threadBits) == 0)
        plan(first + turn * count, count);
      waitForFetches();
      // What was in the other buffer has been stored, too.
      __syncthreads();
      uint8_t *to = next;
      if (turn < turns)
        next = fetch(turn, turn % 2);
      if (turn == 0)
        continue;
      reorder((turn - 1) % 2);
      if (to)
        store(to, (turn - 1) % 2);
    }
    __syncthreads();
  }
};

} // namespace

/// CUDA blocks take turns, from move to move. Unrolled, so that a move's tables
/// are operands of instructions.
__global__ void __launch_bounds__(kMoveThreads, kResident)
    moveBlocksKernel(const __grid_constant__ BlockMoves p) {
  __shared__ __align__(128) Shared shared;
  uint32_t first = blockIdx.x;
#pragma unroll
  for (int i = 0; i < BlockMoves::kMax; ++i) {
    if (i == p.count)
      return;
    const BlockMove &move = p.move[i];
    const uint32_t items =
        (move.blocks + move.blocksAtOnce() - 1) / move.blocksAtOnce();
    Mover(move, shared).run(first, items, gridDim.x);
    first = (first + gridDim.x - items % gridDim.x) % gridDim.x;
  }
}

bool cuda::moveBlocks(const char *kernel, const BlockMoves &moves,
                      cudaStream_t stream) {
  const DeviceInfo *device = currentDevice(kernel);
  int64_t items = 0;
  for (int i = 0; i < moves.count; ++i) {
    const int64_t atOnce = moves.move[i].blocksAtOnce();
    items += (moves.move[i].blocks + atOnce - 1) / atOnce;
  }
  if (!device || items == 0)
    return device;
  Launch how;
  how.grid = static_cast<unsigned>(
      std::min<int64_t>(items, device->multiprocessors * kResident));
  how.block = kMoveThreads;
  how.stream = stream;
  return launch(kernel, moveBlocksKernel, how, moves);
}
