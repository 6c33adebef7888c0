//===- Slots.cu - Sorting slots by expert and summing them --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Experts.h"
#include "Kernels.cuh"

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";
static constexpr int kSortThreads = 1024;
/// Blocks that share out more slots than one sorts at once; eight is what every
/// device with clusters takes.
static constexpr int kSortBlocks = 8;
static constexpr int64_t kSlotsOfBlock = 4096;
static constexpr int kGatherThreads = 256;
/// Counts of as many experts fit into shared memory.
static constexpr int64_t kMaxExperts = 8192;

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

namespace {

/// Does something with each of the block's slots that asks for an expert here.
/// Experts are found several at a time, so that loads do not wait for one
/// another.
template <typename Action>
__device__ void forEachSlot(const Routing &routing, Action action) {
  constexpr int kAtOnce = 8;
  const bool direct = !routing.rowsPerExpert && !routing.map;
  const int64_t step = int64_t(kSortThreads) * gridDim.z;
  for (int64_t first = blockIdx.z * kSortThreads + threadIdx.x;
       first < routing.slots; first += kAtOnce * step) {
    int experts[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t slot = first + i * step;
      experts[i] = slot >= routing.slots ? -1
                   : direct              ? routing.ids[slot]
                                         : expertOf(routing, slot);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (experts[i] >= 0 && experts[i] < routing.experts)
        action(first + i * step, experts[i]);
  }
}

/// What a warp adds up in an inclusive scan.
__device__ int scanWarp(int value) {
  const int lane = threadIdx.x & 31;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance)
      value += other;
  }
  return value;
}

/// Exclusive sums over the block's threads; `total` is that of all.
__device__ int scanBlock(int value, int *partial, int &total) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int inclusive = scanWarp(value);
  __syncthreads();
  if (lane == 31)
    partial[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const int sum = scanWarp(partial[lane]);
    partial[lane] = sum;
  }
  __syncthreads();
  total = partial[31];
  return inclusive - value + (warp ? partial[warp - 1] : 0);
}

/// Until all blocks of the cluster are here, and see what the others wrote.
__device__ void syncBlocks() {
#if __CUDA_ARCH__ >= 900
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
#else
  __syncthreads();
#endif
}

/// A value in the shared memory of one of the cluster's blocks.
__device__ int valueIn(const int32_t *mine, unsigned block) {
#if __CUDA_ARCH__ >= 900
  return *static_cast<const int32_t *>(__cluster_map_shared_rank(mine, block));
#else
  return *mine;
#endif
}

} // namespace

/// Tiles that are not full, the larger ones first, in steps of so many slots:
/// where they end, so that blocks with a tile more than others have a short
/// one. `begins`: where each expert's slots begin.
__device__ static int addShortTiles(const int32_t *begins, int experts,
                                    int slots, int tileSize, int tiles,
                                    int *partial, Tile *to) {
  constexpr int kStep = 32;
  for (int size = tileSize - 1; size > 0; size -= kStep)
    for (int first = 0; first < experts; first += kSortThreads) {
      const int e = first + static_cast<int>(threadIdx.x);
      const int begin = e < experts ? begins[e] : 0;
      const int end = e + 1 < experts ? begins[e + 1] : slots;
      const int rest = e < experts ? (end - begin) % tileSize : 0;
      const bool mine = rest > 0 && rest <= size && rest > size - kStep;
      int total;
      const int tile = tiles + scanBlock(mine, partial, total);
      if (mine)
        to[tile] = {e, end - rest, rest, 0};
      tiles += total;
    }
  return tiles;
}

/// Blocks of one cluster, which share out the slots: counts, offsets and tiles,
/// then the slots themselves. The order within an expert varies; no result
/// depends on it. Tiles that are not full follow their expert's others or, if
/// asked for, all that are.
__global__ void __launch_bounds__(kSortThreads)
    sortKernel(Routing routing, SortedSlots sorted, int tileSize,
               bool shortLast) {
  // [experts] counts of this block's slots, then where each expert's begin.
  extern __shared__ int32_t counts[];
  __shared__ int partial[32];
  const auto experts = static_cast<int>(routing.experts);
  int32_t *begins = counts + experts;
  const bool writes = blockIdx.z == 0;
  letNextStart();
  for (int e = threadIdx.x; e < experts; e += kSortThreads)
    counts[e] = 0;
  __syncthreads();
  forEachSlot(routing,
              [&](int64_t, int expert) { atomicAdd(&counts[expert], 1); });
  syncBlocks();
  int slots = 0, tiles = 0;
  for (int first = 0; first < experts; first += kSortThreads) {
    const int e = first + static_cast<int>(threadIdx.x);
    int count = 0;
    if (e < experts)
      for (unsigned block = 0; block < gridDim.z; ++block)
        count += valueIn(&counts[e], block);
    const int mine = (count + (shortLast ? 0 : tileSize - 1)) / tileSize;
    int slotTotal, tileTotal;
    const int begin = slots + scanBlock(count, partial, slotTotal);
    const int tile = tiles + scanBlock(mine, partial, tileTotal);
    if (e < experts) {
      begins[e] = begin;
      if (writes)
        sorted.begin[e] = begin;
      for (int i = 0; writes && i < mine; ++i)
        sorted.tiles[tile + i] = {e, begin + i * tileSize,
                                  min(tileSize, count - i * tileSize), 0};
    }
    slots += slotTotal;
    tiles += tileTotal;
  }
  __syncthreads();
  if (writes && shortLast)
    tiles = addShortTiles(begins, experts, slots, tileSize, tiles, partial,
                          sorted.tiles);
  if (writes && threadIdx.x == 0) {
    sorted.begin[experts] = slots;
    *sorted.numTiles = tiles;
  }
  __syncthreads();
  // Those of the blocks before come first.
  for (int e = threadIdx.x; e < experts; e += kSortThreads)
    for (unsigned block = 0; block < blockIdx.z; ++block)
      begins[e] += valueIn(&counts[e], block);
  __syncthreads();
  forEachSlot(routing, [&](int64_t slot, int expert) {
    sorted.order[atomicAdd(&begins[expert], 1)] = static_cast<int32_t>(slot);
  });
  // Nobody leaves while others read its counts.
  syncBlocks();
}

int64_t cuda::maxTiles(int64_t slots, int64_t experts, int64_t tile) {
  return std::min(slots, slots / tile + experts);
}

bool cuda::sortSlots(const ExpertsRound &round, int tile, bool shortLast) {
  if (!checkRange(kKernel, "experts", round.routing.experts, 1, kMaxExperts))
    return false;
  Launch how;
  how.grid = 1;
  if (round.device->code >= 90 && round.routing.slots > kSlotsOfBlock)
    how.grid.z = how.cluster = kSortBlocks;
  how.block = kSortThreads;
  how.shared = 2 * static_cast<size_t>(round.routing.experts) * sizeof(int32_t);
  how.stream = round.stream;
  return launch(kKernel, sortKernel, how, round.routing, round.buffers.sorted,
                tile, shortLast);
}

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

/// A warp copies the row of x of one sorted slot.
__global__ void __launch_bounds__(kGatherThreads)
    gatherKernel(Routing routing, SortedSlots sorted, const uint4 *x,
                 int64_t pieces, uint4 *rows) {
  letNextStart();
  waitForPrevious();
  const int64_t row = (int64_t(blockIdx.x) * kGatherThreads + threadIdx.x) / 32;
  if (row >= sorted.begin[routing.experts])
    return;
  const int64_t token = sorted.order[row] / routing.topK;
  const uint4 *from = x + token * pieces;
  uint4 *to = rows + row * pieces;
  constexpr int kAtOnce = 4;
  for (int64_t first = threadIdx.x & 31; first < pieces;
       first += kAtOnce * 32) {
    uint4 values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * 32 < pieces)
        values[i] = from[first + i * 32];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * 32 < pieces)
        to[first + i * 32] = values[i];
  }
}

bool cuda::gatherRows(const ExpertsRound &round) {
  Launch how;
  how.grid = static_cast<unsigned>(
      (round.routing.slots * 32 + kGatherThreads - 1) / kGatherThreads);
  how.block = kGatherThreads;
  how.stream = round.stream;
  how.early = true;
  return launch(kKernel, gatherKernel, how, round.routing, round.buffers.sorted,
                static_cast<const uint4 *>(round.x),
                round.plan->fields.hidden / 8,
                static_cast<uint4 *>(round.buffers.rows));
}

//===----------------------------------------------------------------------===//
// Summing
//===----------------------------------------------------------------------===//

namespace {

/// Eight neighbouring elements as floats.
template <typename T>
__device__ void load8(const T *from, float (&to)[8]) {
  const uint4 raw = *reinterpret_cast<const uint4 *>(from);
  const T *elements = reinterpret_cast<const T *>(&raw);
  for (int i = 0; i < 8; ++i)
    to[i] = static_cast<float>(elements[i]);
}

template <>
__device__ void load8<float>(const float *from, float (&to)[8]) {
  const auto *raw = reinterpret_cast<const float4 *>(from);
  const float4 a = raw[0], b = raw[1];
  to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w;
  to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
}

} // namespace

/// One thread sums eight columns of a token, in the order of its slots.
template <typename T>
__global__ void sumKernel(Routing routing, const T *rows, int64_t width,
                          int64_t tokens, ScalarType outType, void *y) {
  letNextStart();
  waitForPrevious();
  const int64_t perToken = width / 8;
  const int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= tokens * perToken)
    return;
  const int64_t token = index / perToken, column = index % perToken * 8;
  float sum[8] = {};
  // One row after the other: eight at once take up to 1.7 times as long.
  for (int64_t i = 0; i < routing.topK; ++i) {
    const int64_t slot = token * routing.topK + i;
    float values[8] = {};
    if (expertOf(routing, slot) >= 0)
      load8(rows + slot * width + column, values);
    for (int j = 0; j < 8; ++j)
      sum[j] += values[j];
  }
  for (int j = 0; j < 8; ++j)
    storeElement(outType, y, token * width + column + j, sum[j]);
}

/// The same, one column a thread.
__global__ void sumOddKernel(Routing routing, const void *rows,
                             ScalarType rowType, int64_t width, int64_t tokens,
                             ScalarType outType, void *y) {
  const int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= tokens * width)
    return;
  const int64_t token = index / width, column = index % width;
  float sum = 0;
  for (int64_t i = 0; i < routing.topK; ++i) {
    const int64_t slot = token * routing.topK + i;
    if (expertOf(routing, slot) >= 0)
      sum += loadElement(rowType, rows, slot * width + column);
  }
  storeElement(outType, y, index, sum);
}

bool cuda::sumSlots(const ExpertsRound &round) {
  constexpr int kThreads = 256;
  const int64_t width = round.plan->fields.hidden;
  const bool wide = width % 8 == 0;
  const int64_t work = round.tokens * width / (wide ? 8 : 1);
  Launch how;
  how.grid = static_cast<unsigned>((work + kThreads - 1) / kThreads);
  how.block = kThreads;
  how.stream = round.stream;
  how.early = wide;
  auto sum = [&](auto *rows, auto kernel) {
    return launch(kKernel, kernel, how, round.routing, rows, width,
                  round.tokens, round.outType, round.y);
  };
  void *rows = round.buffers.rows;
  if (!wide)
    return launch(kKernel, sumOddKernel, how, round.routing, rows,
                  round.rowType, width, round.tokens, round.outType, round.y);
  switch (round.rowType) {
  case ScalarType::F16:
    return sum(static_cast<const __half *>(rows), sumKernel<__half>);
  case ScalarType::BF16:
    return sum(static_cast<const __nv_bfloat16 *>(rows),
               sumKernel<__nv_bfloat16>);
  default:
    return sum(static_cast<const float *>(rows), sumKernel<float>);
  }
}
