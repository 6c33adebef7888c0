//===- StreamSlots.cuh - The slots of each expert, as blocks see them ---===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where slots are few, each block sorts them by itself, in shared memory: that
// takes less than a kernel before this one would. Otherwise a kernel has done
// so and the lists are in the workspace.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAMSLOTS_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAMSLOTS_CUH

#include "Stream.cuh"

namespace wna16::cuda {

class SlotLists {
  struct ShortTile {
    uint16_t expert, begin, count;
  };

public:
  /// Shared memory for each slot, in bytes.
  static constexpr int kSlotBytes = 4 + sizeof(ShortTile) + 3 * 2;

  /// `memory` holds kSlotBytes a slot, `counts` an integer an expert until
  /// `build` is over.
  __device__ SlotLists(const StreamParameters &p, unsigned char *memory,
                       int32_t *counts)
      : p(p), counts(counts), slots(static_cast<int>(p.routing.slots)),
        weights(reinterpret_cast<float *>(memory)),
        shorts(reinterpret_cast<ShortTile *>(weights + slots)),
        order(reinterpret_cast<uint16_t *>(shorts + slots)),
        ranks(order + slots),
        experts(reinterpret_cast<int16_t *>(ranks + slots)) {
    if (p.order || p.perSlot)
      return;
    for (int e = threadIdx.x; e < p.routing.experts; e += blockDim.x)
      counts[e] = 0;
    __syncthreads();
  }

  /// Sorts the slots into tiles of at most `most`; all threads of the block.
  __device__ void build(int most) {
    if (p.order || p.perSlot)
      tiles = p.perSlot ? slots : *p.numTiles;
    // The first product has no time for lists when there are few slots.
    if (p.order || (p.perSlot && p.first))
      return;
    for (int s = threadIdx.x; s < slots; s += blockDim.x) {
      const int expert = expertOf(p.routing, s);
      experts[s] = static_cast<int16_t>(expert);
      weights[s] = weightOf(p.routing, s);
      if (!p.perSlot && expert >= 0)
        ranks[s] = static_cast<uint16_t>(atomicAdd(&counts[expert], 1));
    }
    __syncthreads();
    if (!p.perSlot)
      sort(most);
  }

  __device__ Tile tile(int index) const {
    if (p.order)
      return p.tiles[index];
    if (p.perSlot) {
      const int expert = this->expert(index);
      return {expert, index, expert >= 0, 0};
    }
    const ShortTile tile = shorts[index];
    return {tile.expert, tile.begin, tile.count, 0};
  }
  __device__ int slot(int index) const {
    return p.order ? p.order[index] : p.perSlot ? index : order[index];
  }
  __device__ float weight(int slot) const {
    return p.order || (p.perSlot && p.first) ? weightOf(p.routing, slot)
                                             : weights[slot];
  }
  /// Of the slot, -1 where nobody is asked. Not where a kernel has sorted.
  __device__ int expert(int slot) const {
    return p.perSlot && p.first ? expertOf(p.routing, slot) : experts[slot];
  }

  int tiles = 0;

private:
  __device__ void sort(int most) {
    // The blocks of a cluster have to agree on a slot's place, too.
    rankAgain(gridDim.z > 1 ? 1 : most);
    __syncthreads();
    list(most);
    __syncthreads();
    for (int s = threadIdx.x; s < slots; s += blockDim.x)
      if (experts[s] >= 0)
        order[counts[experts[s]] + ranks[s]] = static_cast<uint16_t>(s);
    // The copy engine comes next to where the counts are.
    fenceCopies();
    __syncthreads();
  }

  /// Slots of an expert have any order until here. Which tile of several a slot
  /// is in, all blocks have to say alike: where there are more than `most`,
  /// they are numbered in their order.
  __device__ void rankAgain(int most) {
    const int lane = threadIdx.x & 31;
    for (int first = threadIdx.x - lane; first < slots; first += blockDim.x) {
      const int s = first + lane;
      unsigned left = __ballot_sync(~0u, s < slots && experts[s] >= 0 &&
                                             counts[experts[s]] > most);
      for (; left; left &= left - 1) {
        const int slot = first + __ffs(static_cast<int>(left)) - 1;
        unsigned before = 0;
        for (int i = lane; i < slot; i += 32)
          before += experts[i] == experts[slot];
        before = __reduce_add_sync(~0u, before);
        if (s == slot)
          ranks[s] = static_cast<uint16_t>(before);
      }
    }
  }

  /// Lists the tiles, experts in their order, and puts in place of an expert's
  /// count where its slots begin.
  __device__ void list(int most) {
    __shared__ int partial[maxStreamWarps(1)];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const auto warps = static_cast<int>(blockDim.x) >> 5;
    const auto all = static_cast<int>(p.routing.experts);
    const int each =
        (all + static_cast<int>(blockDim.x) - 1) / static_cast<int>(blockDim.x);
    const int first = static_cast<int>(threadIdx.x) * each;
    const int last = min(first + each, all);
    int mine = 0; // slots, and tiles in the upper half
    for (int e = first; e < last; ++e)
      mine += counts[e] | ((counts[e] + most - 1) / most) << 16;
    int sum = mine;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, sum, distance);
      sum += lane >= distance ? other : 0;
    }
    if (lane == 31)
      partial[warp] = sum;
    __syncthreads();
    int before = sum - mine;
    for (int w = 0; w < warps; ++w) {
      before += w < warp ? partial[w] : 0;
      tiles += partial[w] >> 16;
    }
    for (int e = first; e < last; ++e) {
      const int count = counts[e], begin = before & 0xffff;
      counts[e] = begin;
      for (int i = 0; i < count; i += most) {
        shorts[before >> 16] = {static_cast<uint16_t>(e),
                                static_cast<uint16_t>(begin + i),
                                static_cast<uint16_t>(min(most, count - i))};
        before += 1 << 16;
      }
      before += count;
    }
  }

  const StreamParameters &p;
  int32_t *counts;
  const int slots;
  float *weights;
  ShortTile *shorts;
  uint16_t *order, *ranks;
  int16_t *experts;
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_STREAMSLOTS_CUH
