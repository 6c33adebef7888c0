//===- StreamKernel.cuh - The kernel of products that stream weights ----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAMKERNEL_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAMKERNEL_CUH

#include "StreamWarp.cuh"

namespace wna16::cuda {

/// The warps that share a piece of work: a group of a block's, or, where the
/// block is one of a cluster, all of each.
struct Team {
  int blocks;
  int threads; ///< in this block
  int group;   ///< of the block
  int warp;    ///< of the group
  int rank;    ///< of the warp, in all blocks

  __device__ explicit Team(int groupWarps)
      : blocks(static_cast<int>(gridDim.z)), threads(groupWarps * 32),
        group(static_cast<int>(threadIdx.x) / threads),
        warp((static_cast<int>(threadIdx.x) - group * threads) >> 5),
        rank(static_cast<int>(blockIdx.z) * groupWarps + warp) {}

  /// The group's threads of this block.
  __device__ void sync() const {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(threads) : "memory");
  }
};

/// A slot's row of the output.
struct OutRow {
  float weight;
  int64_t offset;
  bool biased;
};

__device__ inline OutRow findRow(const StreamParameters &p,
                                 const SlotLists &slots, int index, int split) {
  const int slot = slots.slot(index);
  const bool weighted = (p.first != 0) == (p.weightOnInput != 0);
  return {weighted ? slots.weight(slot) : 1.0f,
          (split * p.routing.slots + slot) * p.outWidth, split == 0};
}

__device__ inline float2 addBias(const StreamParameters &p, int expert,
                                 int64_t n, float2 values) {
  if (!p.bias.data || n >= p.rowTiles * 64)
    return values;
  return {values.x + biasOf(p.bias, expert, n),
          values.y + biasOf(p.bias, expert, n + 1)};
}

__device__ inline float2 scaled(float2 values, float factor) {
  return {values.x * factor, values.y * factor};
}

/// Gate and up meet.
__device__ inline float activatePair(const StreamParameters &p, float gate,
                                     float up) {
  return p.plainSilu ? fastSilu(gate) * up : activate(p.activation, gate, up);
}

/// Stores two neighbouring outputs of each column of a slot: gate and up, or
/// neighbours. Rows have an even number of outputs.
__device__ inline void storeOutputs(const StreamParameters &p, int expert,
                                    const OutRow &row, int64_t n, float2 a,
                                    int64_t n2, float2 b) {
  if (p.first) {
    // The routing weight of x comes out of the product.
    a = scaled(a, row.weight);
    b = scaled(b, row.weight);
  }
  if (row.biased) {
    a = addBias(p, expert, n, a);
    b = addBias(p, expert, n2, b);
  }
  if (p.first && p.gated) {
    a = {activatePair(p, a.x, b.x), activatePair(p, a.y, b.y)};
  } else if (p.first) {
    a = {activate(p.activation, a.x), activate(p.activation, a.y)};
    b = {activate(p.activation, b.x), activate(p.activation, b.y)};
  } else {
    a = scaled(a, row.weight);
    b = scaled(b, row.weight);
  }
  if (n < p.outWidth)
    storeTwo(p.outType, p.out, row.offset + n, a);
  if (!p.gated && n2 < p.outWidth)
    storeTwo(p.outType, p.out, row.offset + n2, b);
}

/// Sums of all warps, in order; `STRIDE` floats from one to the next.
template <int STRIDE>
__device__ inline float2 addWarps(const float *from, int warps) {
  float2 sum = {0, 0};
  for (int first = 0; first < warps; first += 4) {
    float2 values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = {0, 0};
      if (first + i < warps)
        values[i] = *reinterpret_cast<const float2 *>(from + i * STRIDE);
    }
    from += 4 * STRIDE;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum = {sum.x + values[i].x, sum.y + values[i].y};
  }
  return sum;
}

/// Sums of all blocks of the cluster, in order.
__device__ inline float2 addBlocks(const float *from, int blocks) {
  float2 values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    values[i] = {0, 0};
    if (i < blocks)
      values[i] = loadRemote(from, i);
  }
  float2 sum = {0, 0};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    sum = {sum.x + values[i].x, sum.y + values[i].y};
  return sum;
}

/// Adds the warps' sums, in order, and stores the outputs of a piece of work: a
/// warp takes a slot.
template <typename Ring>
__device__ inline void finish(const StreamParameters &p, const SlotLists &slots,
                              const Tile &tile, int column, int split,
                              Ring *rings, const Team &team) {
  constexpr int kWarp = sizeof(Ring) / sizeof(float);
  const int blocks = team.blocks, n = (threadIdx.x & 31) * 2;
  auto &sums = rings[0].sums;
  team.sync();
  if (blocks > 1) {
    // Each block adds up its own, then some of the cluster's.
    for (int row = team.warp; row < 2 * tile.count; row += p.groupWarps) {
      float *at = &sums[row & 1][row >> 1][n];
      *reinterpret_cast<float2 *>(at) = addWarps<kWarp>(at, p.groupWarps);
    }
    syncCluster();
  }
  for (int index = team.rank; index < tile.count;
       index += blocks * p.groupWarps) {
    const OutRow row = findRow(p, slots, tile.begin + index, split);
    const float *gate = &sums[0][index][n], *up = &sums[1][index][n];
    const float2 a = blocks > 1 ? addBlocks(gate, blocks)
                                : addWarps<kWarp>(gate, p.groupWarps);
    const float2 b =
        blocks > 1 ? addBlocks(up, blocks) : addWarps<kWarp>(up, p.groupWarps);
    const int64_t out = int64_t(column) * p.tileStep * 64 + n;
    storeOutputs(p, tile.expert, row, out, a, out + p.secondTile * 64, b);
  }
  blocks > 1 ? syncCluster() : team.sync();
}

/// Sums the rows of all slots and splits, for the outputs of a column.
__device__ inline void sumColumn(const StreamParameters &p,
                                 const SlotLists &slots, int column, int splits,
                                 int thread, int threads) {
  const auto topK = static_cast<int>(p.routing.topK);
  const int tokens = static_cast<int>(p.routing.slots) / topK;
  const int count = topK * splits;
  const auto *rows = static_cast<const float *>(p.out);
  for (int item = thread; item < tokens * 32; item += threads) {
    const int64_t n = int64_t(column) * 128 + (item & 31) * 4;
    if (n >= p.outWidth)
      continue;
    float4 sum = {0, 0, 0, 0};
    for (int first = 0; first < count; first += 8) {
      float4 values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        values[i] = {0, 0, 0, 0};
        const int split = (first + i) / topK;
        const int slot = (item >> 5) * topK + first + i - split * topK;
        if (first + i < count && slots.expert(slot) >= 0)
          values[i] = __ldcg(reinterpret_cast<const float4 *>(
              rows + (split * p.routing.slots + slot) * p.outWidth + n));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sum.x += values[i].x, sum.y += values[i].y;
        sum.z += values[i].z, sum.w += values[i].w;
      }
    }
    const int64_t at = (item >> 5) * p.outWidth + n;
    storeTwo(p.yType, p.y, at, {sum.x, sum.y});
    storeTwo(p.yType, p.y, at + 2, {sum.z, sum.w});
  }
}

/// The last of a column's groups sums it into y.
__device__ inline void sumIfLast(const StreamParameters &p,
                                 const SlotLists &slots, int column, int splits,
                                 const Team &team) {
  __shared__ int last[maxStreamWarps(1)];
  const int thread = team.warp * 32 + static_cast<int>(threadIdx.x & 31);
  // The group's stores are before its barrier.
  if (thread == 0) {
    __threadfence();
    last[team.group] = atomicAdd(&p.counters[column], 1) ==
                       slots.tiles * splits * team.blocks - 1;
    __threadfence();
  }
  team.sync();
  if (last[team.group])
    sumColumn(p, slots, column, splits, thread, team.threads);
}

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
__global__ void __launch_bounds__(32 * maxStreamWarps(NT), kStreamBlocks)
    streamKernelOf(const __grid_constant__ StreamParameters p) {
#if __CUDA_ARCH__ >= 900
  using Warp = StreamWarp<T, BITS, SWAP, FOLD, NT>;
  extern __shared__ __align__(128) unsigned char shared[];
  auto *rings = reinterpret_cast<typename Warp::Ring *>(shared);
  if (threadIdx.x == 0) {
    prefetchMap(p.codes);
    prefetchMap(p.scales);
  }
  SlotLists slots(p, shared + (blockDim.x >> 5) * sizeof(rings[0]),
                  reinterpret_cast<int32_t *>(shared));
  const Team team(p.groupWarps);
  const auto perBlock = static_cast<int>(blockDim.x) / team.threads;
  const auto blocks = static_cast<int>(gridDim.x);
  Warp warp(p, slots, rings[threadIdx.x >> 5], team.warp);
  // Routing comes from just before the first product; whoever starts after
  // that sees it.
  if (p.first)
    waitForPrevious();
  slots.build(8 * NT);
  warp.begin(team.group * blocks + static_cast<int>(blockIdx.x),
             perBlock * blocks);
  if (p.first && blockIdx.x == 0 && blockIdx.z == 0)
    for (int i = threadIdx.x; i < p.numCounters; i += blockDim.x)
      p.counters[i] = 0;
  // Weights and routing are there from the start, activations are not.
  if (!p.first)
    waitForPrevious();
  if (p.y && slots.tiles == 0)
    for (int column = blockIdx.x; column < p.columns; column += gridDim.x)
      sumColumn(p, slots, column, 1, threadIdx.x, blockDim.x);
  while (warp.hasPiece()) {
    const Tile tile = slots.tile(warp.tile());
    const int column = warp.column();
    warp.run(tile);
    warp.storeSums(tile.count);
    finish(p, slots, tile, column, warp.split,
           rings + team.group * p.groupWarps, team);
    if (p.y)
      sumIfLast(p, slots, column, warp.splits, team);
  }
#endif
}

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
StreamKernel streamKernelWith() {
  using Ring = typename StreamWarp<T, BITS, SWAP, FOLD, NT>::Ring;
  return {streamKernelOf<T, BITS, SWAP, FOLD, NT>, sizeof(Ring),
          SlotLists::kSlotBytes};
}

template <typename T, int BITS, bool SWAP>
StreamKernel streamKernel(bool smallGroups, int tokenTiles) {
  if (smallGroups)
    return tokenTiles == 1 ? streamKernelWith<T, BITS, SWAP, 2, 1>()
                           : streamKernelWith<T, BITS, SWAP, 2, 2>();
  constexpr int kFold = BITS == 4 ? 8 : 4;
  return tokenTiles == 1 ? streamKernelWith<T, BITS, SWAP, kFold, 1>()
                         : streamKernelWith<T, BITS, SWAP, kFold, 2>();
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_STREAMKERNEL_CUH
