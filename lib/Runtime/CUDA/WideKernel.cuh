//===- WideKernel.cuh - The kernel of products for many tokens ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH
#define WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH

#include "Wgmma.cuh"
#include "Wide.cuh"

namespace wna16::cuda {

/// How a block's shared memory is used for tiles of TT slots.
template <int TT>
struct WideShared {
  static constexpr int kStages = TT == 128 ? 6 : TT == 64 ? 10 : 14;
  /// Two pairs of row tiles, each four input tiles long.
  static constexpr int kCodeBytes = 8192;
  static constexpr int kMaxGroups = 2;

  struct Stage {
    unsigned char inputs[TT * 128];
    unsigned char codes[2][kCodeBytes / 2];
    uint16_t scales[2][kMaxGroups][2][64];
    uint32_t zeros[2][kMaxGroups][2][8];
    unsigned char unused[TT * 128 % 1024 + 1024 - 1280 % 1024];
  };
  static_assert(sizeof(Stage) % 1024 == 0, "rows are swizzled by address");

  Stage stages[kStages];
  /// What each warp hands over or brings in order.
  float exchange[8][TT / 2 * 32];
  int slots[2][2][TT];
  float weights[2][2][TT];
  uint64_t full[kStages], empty[kStages];
};

/// Tile `index` of the list, and block of rows, that a block works on next.
/// Blocks of rows change slower than tiles, so that a few tiles' activations
/// and a few rows of weights are in use at a time.
struct WideItem {
  Tile tile;
  int rows;
};

__device__ inline WideItem findItem(const WideParameters &p, int item,
                                    int tiles) {
  constexpr int kTogether = 16;
  const int chunk = item / (p.rowBlocks * kTogether);
  const int width = min(kTogether, tiles - chunk * kTogether);
  const int inside = item - chunk * p.rowBlocks * kTogether;
  return {p.sorted.tiles[chunk * kTogether + inside % width], inside / width};
}

//===----------------------------------------------------------------------===//
// Four warps that bring data
//===----------------------------------------------------------------------===//

template <int TT>
class WideLoader {
  using Shared = WideShared<TT>;
  static constexpr int kRows = TT / 16; ///< that a thread copies from
  static constexpr int kLag = 3;

public:
  __device__ WideLoader(const WideParameters &p, Shared &shared)
      : p(p), shared(shared), thread(threadIdx.x) {}

  __device__ void run(int tiles) {
    const int items = tiles * p.rowBlocks;
    for (int item = blockIdx.x; item < items; item += gridDim.x)
      bring(findItem(p, item, tiles));
    for (int i = 0; i < kLag; ++i, ++step) {
      commitCopies();
      announce();
    }
  }

private:
  __device__ void bring(const WideItem &item) {
    // Rows in units of 16 bytes; a thread copies one such unit of each.
    const char *rows[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int index = thread / 8 + 16 * i;
      rows[i] = nullptr;
      if (index >= item.tile.count)
        continue;
      const int slot = p.sorted.order[item.tile.begin + index];
      const int row = p.first ? slot / static_cast<int>(p.routing.topK) : slot;
      rows[i] = static_cast<const char *>(p.in) + row * p.inWidth * 2 +
                (thread & 7) * 16;
    }
    const int firstTile = item.tile.expert * p.inputTiles;
    const int firstGroup = item.tile.expert * p.groups;
    const int rowTile = item.rows * p.blockTiles;
    for (int tile = 0; tile < p.inputTiles; tile += 4, ++step) {
      const int place = step % Shared::kStages;
      auto &stage = shared.stages[place];
      waitFor(sharedAddress(&shared.empty[place]),
              (step / Shared::kStages & 1) ^ 1);
      if (thread == 0)
        bringWeights(place, firstTile + tile,
                     firstGroup + (p.groups > 1 ? tile / p.groupTiles : 0),
                     rowTile);
      // Swizzled as matrix instructions expect it.
      const int row = thread / 8;
      const uint32_t to = sharedAddress(stage.inputs) + row * 128 +
                          (((thread & 7) ^ (row & 7)) << 4);
      const int64_t column = int64_t(tile) * 16;
      const bool inside = column + (thread & 7) * 8 < p.inWidth;
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (rows[i])
          copyOrClear(to + i * 2048, inside ? rows[i] + column * 2 : rows[i],
                      inside);
      commitCopies();
      announce();
    }
  }

  __device__ static void copyOrClear(uint32_t to, const void *from,
                                     bool present) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(present ? 16 : 0)
                 : "memory");
  }

  __device__ void bringWeights(int place, int inputTile, int group,
                               int rowTile) {
    auto &stage = shared.stages[place];
    const uint32_t barrier = sharedAddress(&shared.full[place]);
    const int groups = p.groups > 1 && p.groupTiles < 4 ? 2 : 1;
    arriveAndExpect(barrier,
                    Shared::kCodeBytes + groups * (p.hasZeros ? 640 : 512));
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int row = rowTile + pair * p.secondTile;
      copyBox(sharedAddress(stage.codes[pair]), p.codes, 0, row, inputTile,
              barrier);
      copyBox(sharedAddress(stage.scales[pair]), p.scales, 0, row, group,
              barrier);
      if (p.hasZeros)
        copyBox(sharedAddress(stage.zeros[pair]), p.zeros, 0, row, group,
                barrier);
    }
  }

  /// Tells of the activations of some steps ago, which have come by now.
  __device__ void announce() {
    if (step < kLag)
      return;
    waitForCopies<kLag>();
    fenceCopies();
    arrive(sharedAddress(&shared.full[(step - kLag) % Shared::kStages]));
  }

  const WideParameters &p;
  Shared &shared;
  const int thread;
  int step = 0; ///< of all tiles
};

//===----------------------------------------------------------------------===//
// Eight warps that compute
//===----------------------------------------------------------------------===//

/// Each four warps have 64 rows of the first pair of row tiles and 64 of the
/// second. A warp has 32 rows of one tile, as two matrix operands.
template <typename T, bool SWAP, bool GATED, int TT>
class WideWorker {
  using Shared = WideShared<TT>;

public:
  __device__ WideWorker(const WideParameters &p, Shared &shared)
      : p(p), shared(shared), lane(threadIdx.x & 31),
        warp((static_cast<int>(threadIdx.x) >> 5) - 4), group(warp >> 2),
        pair(warp >> 1 & 1), half(warp & 1) {}

  __device__ void run(int tiles) {
    const int items = tiles * p.rowBlocks;
    for (int i = blockIdx.x; i < items; i += gridDim.x, parity ^= 1) {
      const WideItem item = findItem(p, i, tiles);
      noteSlots(item.tile);
      if (item.tile.count <= TT / 2)
        multiply<TT / 2>(item);
      else
        multiply<TT>(item);
    }
  }

private:
  /// The slots and their weights, for the end.
  __device__ void noteSlots(const Tile &tile) {
    const int thread = threadIdx.x & 127;
    if (thread >= TT)
      return;
    const bool present = thread < tile.count;
    const int slot = present ? p.sorted.order[tile.begin + thread] : -1;
    shared.slots[group][parity][thread] = slot;
    const bool weighted = (p.first != 0) == (p.weightOnInput != 0);
    shared.weights[group][parity][thread] =
        present && weighted ? weightOf(p.routing, slot) : 1.0f;
  }

  /// Two scales of each of the two operands, in both halves of a register.
  __device__ void loadScales(const typename Shared::Stage &stage, int row) {
    const uint16_t *from = stage.scales[pair][0][0] + (row * 2 + group) * 64;
    const int g = lane >> 2;
    uint32_t values[2];
    if (p.groups > 1) {
      const uint2 both =
          *reinterpret_cast<const uint2 *>(from + 8 * g + 4 * half);
      values[0] = both.x;
      values[1] = both.y;
    } else {
      from += 32 * half + (g & 1) + 8 * (g >> 1);
      values[0] = from[0] | uint32_t(from[2]) << 16;
      values[1] = from[4] | uint32_t(from[6]) << 16;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      scale[j][0] = __byte_perm(values[j], 0, 0x1010);
      scale[j][1] = __byte_perm(values[j], 0, 0x3232);
    }
    if (!p.hasZeros)
      return;
    const uint32_t word = stage.zeros[pair][0][0][(row * 2 + group) * 8 + g];
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int n3 = 0; n3 < 2; ++n3) {
        const int u = 2 * half + j;
        const int at = p.zeroShift ? n3 + 2 * u : u + 4 * n3;
        const uint32_t z = word >> (4 * at) & 15;
        offset[j][n3] = Element<T>::kMagic | z | z << 16;
      }
  }

  __device__ void decode(uint2 words, uint32_t (&a)[2][4]) const {
    const uint32_t both[2] = {words.x, words.y};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      decode4<T, SWAP>(both[j], a[j]);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[j][i] = Element<T>::mul(Element<T>::sub(a[j][i], offset[j][i & 1]),
                                  scale[j][i & 1]);
    }
  }

  template <int N>
  __device__ void multiply(const WideItem &item) {
    float sums[2][N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i)
      sums[0][i] = sums[1][i] = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j)
      offset[j][0] = offset[j][1] = Element<T>::kMinusOffset & 0x7fff7fff;
    const int steps = p.inputTiles / 4;
    const int scaleRows = p.groups > 1 && p.groupTiles < 4 ? 2 : 1;
    for (int s = 0; s < steps; ++s, ++step) {
      const int place = step % Shared::kStages;
      const auto &stage = shared.stages[place];
      waitFor(sharedAddress(&shared.full[place]), step / Shared::kStages & 1);
      loadScales(stage, 0);
      const unsigned char *codes =
          stage.codes[pair] + group * 512 + lane * 16 + half * 8;
      const uint64_t inputs = swizzledOperand(sharedAddress(stage.inputs));
#pragma unroll
      for (int tile = 0; tile < 4; ++tile) {
        if (tile == 2 && scaleRows == 2)
          loadScales(stage, 1);
        uint32_t (&a)[2][4] = operands[tile & 1];
        decode(*reinterpret_cast<const uint2 *>(codes + tile * 1024), a);
        fenceRegisters();
        Wgmma<T, N>::run(sums[0], a[0], inputs + 2 * tile, s + tile);
        Wgmma<T, N>::run(sums[1], a[1], inputs + 2 * tile, s + tile);
        commitProducts();
        // The ones before are done: their registers can be written again.
        waitForProducts<1>();
        if (tile == 0 && s > 0)
          release(step - 1);
      }
    }
    waitForProducts<0>();
    release(step - 1);
    store<N>(item, sums);
  }

  __device__ void release(int past) {
    if (lane == 0)
      arrive(sharedAddress(&shared.empty[past % Shared::kStages]));
  }

  /// Until the other three warps are here too.
  __device__ void syncGroup() const {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  }

  template <int N>
  __device__ void store(const WideItem &item, float (&sums)[2][N / 2]) {
    const int64_t row = (item.rows * p.blockTiles + group) * 64 + half * 32;
    if constexpr (GATED) {
      // Warps with gates take the first half of the slots, those with ups the
      // other; each hands over the rest.
      float *mine = shared.exchange[warp], *other = shared.exchange[warp ^ 2];
      const int give = pair ? 0 : N / 4, keep = N / 4 - give;
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < N / 4; ++i)
          mine[(j * N / 4 + i) * 32 + lane] =
              give ? sums[j][N / 4 + i] : sums[j][i];
      syncGroup();
      float values[2][N / 4];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < N / 4; ++i) {
          const float own = keep ? sums[j][N / 4 + i] : sums[j][i];
          const float theirs = other[(j * N / 4 + i) * 32 + lane];
          const float weight =
              p.weightOnInput
                  ? shared.weights[group][parity][keep * 2 + slotOf(i)]
                  : 1.0f;
          const float gate = pair ? theirs : own, up = pair ? own : theirs;
          values[j][i] = swish(gate * weight, 1.0f) * (up * weight);
        }
      // The other warp has read what this one gave.
      syncGroup();
      storeRows<N / 2>(row, keep * 2, values);
    } else {
      const int64_t at = row + pair * p.secondTile * 64;
      syncGroup();
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
          sums[j][i] *= shared.weights[group][parity][slotOf(i)];
      storeRows<N>(at, 0, sums);
    }
  }

  /// Which slot of the tile value i of an operand belongs to.
  __device__ int slotOf(int i) const {
    return i / 4 * 8 + 2 * (lane & 3) + (i & 1);
  }

  /// Stores 32 outputs of slots [firstSlot, firstSlot + N), brought into rows
  /// in the warp's piece of shared memory.
  template <int N>
  __device__ void storeRows(int64_t row, int firstSlot,
                            const float (&values)[2][N / 2]) {
    unsigned char *rows =
        reinterpret_cast<unsigned char *>(shared.exchange[warp]);
#pragma unroll
    for (int block = 0; block < N / 8; ++block) {
      // One matrix of 8 x 8 for each of the four blocks of eight outputs.
      uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q)
        packed[q] = pack(values[q >> 1][block * 4 + 2 * (q & 1)],
                         values[q >> 1][block * 4 + 2 * (q & 1) + 1]);
      const int slot = block * 8 + (lane & 7);
      const uint32_t to = sharedAddress(rows) + slot * 64 +
                          (((lane >> 3) ^ (slot >> 1 & 3)) << 4);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], "
                   "{%1,%2,%3,%4};" ::"r"(to),
                   "r"(packed[0]), "r"(packed[1]), "r"(packed[2]),
                   "r"(packed[3])
                   : "memory");
    }
    __syncwarp();
    const int piece = lane & 3;
    if (row + piece * 8 < p.outWidth)
#pragma unroll
      for (int i = 0; i < N / 8; ++i) {
        const int at = i * 8 + (lane >> 2);
        const int slot = shared.slots[group][parity][firstSlot + at];
        const uint4 data = *reinterpret_cast<const uint4 *>(
            rows + at * 64 + ((piece ^ (at >> 1 & 3)) << 4));
        if (slot >= 0)
          *reinterpret_cast<uint4 *>(static_cast<T *>(p.out) +
                                     slot * p.outWidth + row + piece * 8) =
              data;
      }
    __syncwarp();
  }

  __device__ static uint32_t pack(float low, float high) {
    uint32_t pair;
    if constexpr (Element<T>::kMagic == 0x43004300)
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }

  const WideParameters &p;
  Shared &shared;
  const int lane, warp, group, pair, half;
  int step = 0;   ///< of all tiles
  int parity = 0; ///< of tiles
  uint32_t scale[2][2];
  uint32_t offset[2][2];
  uint32_t operands[2][2][4];
};

template <typename T, bool SWAP, bool GATED, int TT>
__global__ void __launch_bounds__(384, 1)
    wideKernelOf(const __grid_constant__ WideParameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char memory[];
  auto &shared = *reinterpret_cast<WideShared<TT> *>(memory);
  if (threadIdx.x == 0) {
    prefetchMap(p.codes);
    prefetchMap(p.scales);
    for (int i = 0; i < WideShared<TT>::kStages; ++i) {
      initBarrier(sharedAddress(&shared.full[i]), 129);
      initBarrier(sharedAddress(&shared.empty[i]), 8);
    }
    fenceBarriers();
  }
  letNextStart();
  waitForPrevious();
  __syncthreads();
  const int tiles = *p.sorted.numTiles;
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    WideLoader<TT>(p, shared).run(tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    WideWorker<T, SWAP, GATED, TT>(p, shared).run(tiles);
  }
#endif
}

template <typename T, bool SWAP, bool GATED>
WideKernel wideKernelFor(int tileSlots) {
  switch (tileSlots) {
  case 32:
    return {wideKernelOf<T, SWAP, GATED, 32>, sizeof(WideShared<32>)};
  case 64:
    return {wideKernelOf<T, SWAP, GATED, 64>, sizeof(WideShared<64>)};
  default:
    return {wideKernelOf<T, SWAP, GATED, 128>, sizeof(WideShared<128>)};
  }
}

template <typename T, bool SWAP>
WideKernel wideKernel(bool gated, int tileSlots) {
  return gated ? wideKernelFor<T, SWAP, true>(tileSlots)
               : wideKernelFor<T, SWAP, false>(tileSlots);
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH
