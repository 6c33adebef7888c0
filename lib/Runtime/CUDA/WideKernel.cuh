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

/// How a block's shared memory is used for tiles of TT slots, with so many
/// blocks on a multiprocessor.
template <int TT, int BLOCKS>
struct WideShared {
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kStages = TT == 256     ? 4
                                 : TT == 128   ? 6
                                 : TT == 64    ? 10
                                 : BLOCKS == 2 ? 6
                                               : 14;
  /// Row tiles of a pair: with many slots a block has half the rows, so that
  /// codes are decoded for twice as many.
  static constexpr int kTiles = TT == 256 ? 1 : 2;
  /// Registers of the warps that bring and of those that compute.
  static constexpr int kFewRegisters = kBlocks == 2 ? 32 : TT == 256 ? 56 : 40;
  static constexpr int kManyRegisters = kBlocks == 2 ? 104
                                        : TT == 256  ? 224
                                                     : 232;
  /// Two pairs of row tiles, each four input tiles long.
  static constexpr int kCodeBytes = 4096 * kTiles;
  static constexpr int kMaxGroups = 2;

  struct Stage {
    unsigned char inputs[TT * 128];
    unsigned char codes[2][kCodeBytes / 2];
    uint16_t scales[2][kMaxGroups][kTiles][64];
    uint32_t zeros[2][kMaxGroups][kTiles][8];
    unsigned char unused[1024 - 640 * kTiles % 1024];
  };
  static_assert(sizeof(Stage) % 1024 == 0, "rows are swizzled by address");

  Stage stages[kStages];
  /// What each warp hands over or brings in order.
  float exchange[8][TT * kTiles / 4 * 32];
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

template <int TT, int BLOCKS>
class WideLoader {
  using Shared = WideShared<TT, BLOCKS>;
  static constexpr int kRows = TT / 16; ///< that a thread copies from
  static constexpr int kLag = Shared::kStages == 4 ? 2 : 3;
  static constexpr uint32_t kNoRow = ~0u;

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
    // In units of 16 bytes, of which a thread copies one of each row.
    uint32_t rows[kRows];
    const auto width = static_cast<uint32_t>(p.inWidth / 8);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int index = thread / 8 + 16 * i;
      rows[i] = kNoRow;
      if (index >= item.tile.count)
        continue;
      const int slot = p.sorted.order[item.tile.begin + index];
      const int row = p.first ? slot / static_cast<int>(p.routing.topK) : slot;
      rows[i] = row * width + (thread & 7);
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
                     firstGroup +
                         static_cast<int>(__umulhi(tile, p.groupMagic)),
                     rowTile);
      // Swizzled as matrix instructions expect it.
      const int row = thread / 8;
      const uint32_t to = sharedAddress(stage.inputs) + row * 128 +
                          (((thread & 7) ^ (row & 7)) << 4);
      const int64_t column = int64_t(tile) * 16;
      const bool inside = column + (thread & 7) * 8 < p.inWidth;
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (rows[i] != kNoRow)
          copyOrClear(to + i * 2048,
                      static_cast<const char *>(p.in) +
                          (uint64_t(rows[i]) + (inside ? tile * 2 : 0)) * 16,
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
    arriveAndExpect(barrier, Shared::kCodeBytes + groups * Shared::kTiles *
                                                      (p.hasZeros ? 320 : 256));
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
template <typename T, bool SWAP, bool GATED, int TT, int BLOCKS>
class WideWorker {
  using Shared = WideShared<TT, BLOCKS>;
  static constexpr int kTiles = Shared::kTiles;

public:
  __device__ WideWorker(const WideParameters &p, Shared &shared)
      : p(p), shared(shared), lane(threadIdx.x & 31),
        warp((static_cast<int>(threadIdx.x) >> 5) - 4), group(warp >> 2),
        pair(warp >> 1 & 1), half(warp & 1),
        tileOfGroup(kTiles == 2 ? group : 0) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
      offset[j][0] = offset[j][1] = Element<T>::kMinusOffset & 0x7fff7fff;
  }

  __device__ void run(int tiles) {
    const int items = tiles * p.rowBlocks;
    for (int i = blockIdx.x; i < items; i += gridDim.x, parity ^= 1) {
      const WideItem item = findItem(p, i, tiles);
      noteSlots(item.tile);
      // A quarter more or less matters where tiles are large.
      constexpr int kQuarter = TT == 64 ? TT / 4 : TT / 2;
      constexpr int kThird = TT > 32 ? TT / 4 * 3 : TT;
      const int count = item.tile.count;
      if (count <= kQuarter)
        multiply<kQuarter>(item);
      else if (count <= TT / 2)
        multiply<TT / 2>(item);
      else if (count <= kThird)
        multiply<kThird>(item);
      else
        multiply<TT>(item);
    }
  }

private:
  /// The slots and their weights, for the end.
  __device__ void noteSlots(const Tile &tile) {
    const bool weighted = (p.first != 0) == (p.weightOnInput != 0);
    for (int i = threadIdx.x & 127; i < TT; i += 128) {
      const bool present = i < tile.count;
      const int slot = present ? p.sorted.order[tile.begin + i] : -1;
      shared.slots[group][parity][i] = slot;
      shared.weights[group][parity][i] =
          present && weighted ? weightOf(p.routing, slot) : 1.0f;
    }
  }

  /// Two scales of each operand, in both halves of a register.
  __device__ void loadScales(const typename Shared::Stage &stage, int row) {
    const int at = row * kTiles + tileOfGroup;
    const uint16_t *from = stage.scales[pair][0][0] + at * 64;
    const int g = lane >> 2;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int u = 2 * half + operand(j);
      uint32_t both;
      if (p.groups > 1) {
        both = *reinterpret_cast<const uint32_t *>(from + 8 * g + 2 * u);
      } else {
        const uint16_t *one =
            from + 32 * (u >> 1) + 4 * (u & 1) + (g & 1) + 8 * (g >> 1);
        both = one[0] | uint32_t(one[2]) << 16;
      }
      scale[j][0] = __byte_perm(both, 0, 0x1010);
      scale[j][1] = __byte_perm(both, 0, 0x3232);
    }
    if (!p.hasZeros)
      return;
    const uint32_t word = stage.zeros[pair][0][0][at * 8 + g];
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int n3 = 0; n3 < 2; ++n3) {
        const int u = 2 * half + operand(j);
        const int nibble = p.zeroShift ? n3 + 2 * u : u + 4 * n3;
        const uint32_t z = word >> (4 * nibble) & 15;
        offset[j][n3] = Element<T>::kMagic | z | z << 16;
      }
  }

  __device__ void decode(uint32_t word, int j, uint32_t (&a)[4]) const {
    decode4<T, SWAP>(word, a);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = Element<T>::mul(Element<T>::sub(a[i], offset[j][i & 1]),
                             scale[j][i & 1]);
  }

  /// The codes of a step, and their scales where a group begins.
  __device__ void beginStep(uint32_t (&words)[4][kTiles]) {
    const int place = step % Shared::kStages;
    const auto &stage = shared.stages[place];
    waitFor(sharedAddress(&shared.full[place]), step / Shared::kStages & 1);
    const unsigned char *codes =
        stage.codes[pair] + tileOfGroup * 512 + lane * 16 + half * 8;
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const unsigned char *from = codes + tile * 512 * kTiles;
      if constexpr (kTiles == 2) {
        const uint2 both = *reinterpret_cast<const uint2 *>(from);
        words[tile][0] = both.x;
        words[tile][1] = both.y;
      } else {
        words[tile][0] = *reinterpret_cast<const uint32_t *>(from + 4 * group);
      }
    }
    if (untilScales == 0) {
      loadScales(stage, 0);
      untilScales = p.scaleSteps;
    }
    --untilScales;
  }

  /// All products of a tile: codes of some inputs are decoded while the matrix
  /// instructions of those before run.
  template <int N>
  __device__ void multiply(const WideItem &item) {
    /// Input tiles that are handed over at a time.
    constexpr int kBatch = Shared::kBlocks == 2 ? 1 : 2;
    uint32_t operands[2][kBatch][kTiles][4];
    float sums[kTiles][N / 2];
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int i = 0; i < N / 2; ++i)
        sums[j][i] = 0;
    const int steps = p.inputTiles / 4;
    untilScales = 0;
    for (int s = 0; s < steps; ++s, ++step) {
      const auto &stage = shared.stages[step % Shared::kStages];
      uint32_t words[4][kTiles];
      beginStep(words);
      const uint64_t inputs = swizzledOperand(sharedAddress(stage.inputs));
#pragma unroll
      for (int batch = 0; batch < 4 / kBatch; ++batch) {
        if (batch * kBatch == 2 && p.groups > 1 && p.groupTiles < 4)
          loadScales(stage, 1);
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
#pragma unroll
          for (int j = 0; j < kTiles; ++j)
            decode(words[kBatch * batch + i][j], j, operands[batch & 1][i][j]);
        fenceRegisters();
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
#pragma unroll
          for (int j = 0; j < kTiles; ++j)
            Wgmma<T, N>::run(sums[j], operands[batch & 1][i][j],
                             inputs + 2 * (kBatch * batch + i), s + batch + i);
        commitProducts();
        // The ones before are done: their registers can be written again.
        waitForProducts<1>();
        if (batch == 0 && s > 0)
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
  __device__ void store(const WideItem &item, float (&sums)[kTiles][N / 2]) {
    const int64_t row = (item.rows * p.blockTiles + tileOfGroup) * 64 +
                        half * 32 + 16 * operand(0);
    if constexpr (GATED) {
      // Warps with gates take the first half of the slots, those with ups the
      // other; each hands over the rest.
      float *mine = shared.exchange[warp], *other = shared.exchange[warp ^ 2];
      const int give = pair ? 0 : N / 4, keep = N / 4 - give;
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
#pragma unroll
        for (int i = 0; i < N / 4; ++i)
          mine[(j * N / 4 + i) * 32 + lane] =
              give ? sums[j][N / 4 + i] : sums[j][i];
      syncGroup();
      float values[kTiles][N / 4];
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
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
      for (int j = 0; j < kTiles; ++j)
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

  /// Stores 16 or 32 outputs of slots [firstSlot, firstSlot + N), brought into
  /// rows in the warp's piece of shared memory.
  template <int N>
  __device__ void storeRows(int64_t row, int firstSlot,
                            const float (&values)[kTiles][N / 2]) {
    constexpr int kPieces = 2 * kTiles; // of eight outputs, in a row
    unsigned char *rows =
        reinterpret_cast<unsigned char *>(shared.exchange[warp]);
    // Neighbouring rows lie in different banks.
    auto place = [&](int slot, int piece) {
      const int turn = kTiles == 2 ? slot >> 1 & 3 : slot >> 2 & 1;
      return rows + slot * 16 * kPieces + ((piece ^ turn) << 4);
    };
#pragma unroll
    for (int block = 0; block < N / 8; block += 4 / kPieces) {
      // Four matrices of 8 x 8: pieces of one or two blocks of eight slots.
      uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int piece = q % kPieces, at = (block + q / kPieces) * 4;
        packed[q] = pack(values[piece >> 1][at + 2 * (piece & 1)],
                         values[piece >> 1][at + 2 * (piece & 1) + 1]);
      }
      const int q = lane >> 3;
      const int slot = (block + q / kPieces) * 8 + (lane & 7);
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], "
          "{%1,%2,%3,%4};" ::"r"(sharedAddress(place(slot, q % kPieces))),
          "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
          : "memory");
    }
    __syncwarp();
    const int piece = lane % kPieces;
    if (row + piece * 8 < p.outWidth)
#pragma unroll
      for (int i = 0; i < N * kPieces / 32; ++i) {
        const int at = (i * 32 + lane) / kPieces;
        const int slot = shared.slots[group][parity][firstSlot + at];
        const uint4 data = *reinterpret_cast<const uint4 *>(place(at, piece));
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
  /// Which of the two operands of its half a warp's operand j is.
  __device__ int operand(int j) const { return kTiles == 2 ? j : group; }

  const int lane, warp, group, pair, half, tileOfGroup;
  int step = 0;   ///< of all tiles
  int parity = 0; ///< of tiles
  int untilScales = 0;
  uint32_t scale[kTiles][2];
  uint32_t offset[kTiles][2];
};

template <typename T, bool SWAP, bool GATED, int TT, int BLOCKS>
__global__ void __launch_bounds__(384, BLOCKS)
    wideKernelOf(const __grid_constant__ WideParameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shared = WideShared<TT, BLOCKS>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto &shared = *reinterpret_cast<Shared *>(memory);
  if (threadIdx.x == 0) {
    prefetchMap(p.codes);
    prefetchMap(p.scales);
    for (int i = 0; i < Shared::kStages; ++i) {
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
    asm volatile(
        "setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Shared::kFewRegisters));
    WideLoader<TT, BLOCKS>(p, shared).run(tiles);
  } else {
    asm volatile(
        "setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Shared::kManyRegisters));
    WideWorker<T, SWAP, GATED, TT, BLOCKS>(p, shared).run(tiles);
  }
#endif
}

template <typename T, bool SWAP, bool GATED, int TT, int BLOCKS>
WideKernel wideKernelWith() {
  return {wideKernelOf<T, SWAP, GATED, TT, BLOCKS>,
          sizeof(WideShared<TT, BLOCKS>)};
}

template <typename T, bool SWAP, bool GATED>
WideKernel wideKernelFor(int tileSlots, int blocks) {
  if (tileSlots == 32)
    return blocks == 2 ? wideKernelWith<T, SWAP, GATED, 32, 2>()
                       : wideKernelWith<T, SWAP, GATED, 32, 1>();
  if (tileSlots == 64)
    return wideKernelWith<T, SWAP, GATED, 64, 1>();
  return tileSlots == 128 ? wideKernelWith<T, SWAP, GATED, 128, 1>()
                          : wideKernelWith<T, SWAP, GATED, 256, 1>();
}

template <typename T, bool SWAP>
WideKernel wideKernel(bool gated, int tileSlots, int blocks) {
  return gated ? wideKernelFor<T, SWAP, true>(tileSlots, blocks)
               : wideKernelFor<T, SWAP, false>(tileSlots, blocks);
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH
