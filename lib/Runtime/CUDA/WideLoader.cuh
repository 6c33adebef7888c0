//===- WideLoader.cuh - Bringing data for products of many tokens -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WIDELOADER_CUH
#define WNA16_LIB_RUNTIME_CUDA_WIDELOADER_CUH

#include "Wide.cuh"

namespace wna16::cuda {

/// How a block's shared memory is used for tiles of TT slots, with so many
/// blocks on a multiprocessor.
template <int BITS, int TT, int BLOCKS>
struct WideShared {
  /// Warps that copy activations, and all that bring data: groups of four. Two
  /// take longer over 128 rows than their products do.
  static constexpr int kInputWarps = TT == 128 ? 4 : 2;
  static constexpr int kLoaders = (2 + kInputWarps + 3) / 4 * 4;
  static constexpr int kThreads = (kLoaders + 8) * 32;
  /// Registers of the warps that bring and of those that compute.
  static constexpr int kFewRegisters = kLoaders == 8 || BLOCKS == 2 ? 32 : 40;
  static constexpr int kManyRegisters = kLoaders == 8 ? 224
                                        : BLOCKS == 2 ? 104
                                                      : 232;
  /// Two pairs of row tiles, each four input tiles long.
  static constexpr int kCodeBytes = 2048 * BITS;
  static constexpr int kMaxGroups = 2;
  /// With few columns, scaling the sums of a group takes less than scaling its
  /// weights.
  static constexpr bool kScalesSums = TT == 32 && BITS == 4;
  /// Short items are brought some ahead.
  static constexpr int kItems = 4;
  /// What a warp hands over at a time at the end.
  static constexpr int kHandedOver = TT / 4;

  struct Stage {
    unsigned char inputs[TT * 128];
    unsigned char codes[4][2][kCodeBytes / 8];
    uint16_t scales[kMaxGroups][2][2][64];
    uint32_t zeros[kMaxGroups][2][2][8];
    unsigned char unused[768];
  };
  static_assert(sizeof(Stage) % 1024 == 0, "rows are swizzled by address");

  /// What those who compute need to know of a tile of slots.
  struct Item {
    int expert, count, rows;
    int slots[TT];
    float weights[TT];
  };

  /// Kilobytes beside the stages, with room for what barriers there are.
  static constexpr int kBeside =
      (8 * kHandedOver * 128 + kItems * TT * 8) / 1024 + 1;
  static constexpr int kStages =
      (227 / BLOCKS - kBeside) * 1024 / int(sizeof(Stage));

  Stage stages[kStages];
  float exchange[8][kHandedOver * 32];
  Item items[kItems];
  /// Activations have come; and can be seen by matrix instructions, codes too;
  /// the stage can be filled again.
  uint64_t copied[kStages], full[kStages], empty[kStages];
  /// An item's numbers are there; its slots too; nobody needs it any more.
  uint64_t known[kItems], listed[kItems], done[kItems];
};

/// A place in the ring of stages.
template <int STAGES>
struct RingPlace {
  int index = 0, phase = 0;
  __device__ void advance() {
    if (++index == STAGES) {
      index = 0;
      phase ^= 1;
    }
  }
};

//===----------------------------------------------------------------------===//
// Warps that bring data
//===----------------------------------------------------------------------===//

/// One warp has the copy engine bring codes and scales. Another has it bring
/// rows of activations that lie in order; otherwise some copy the slots' rows,
/// and one makes these known to the matrix units. Whole warps ask for copies,
/// since the compiler makes a loop over lanes of a copy that one lane asks for.
template <int BITS, int TT, int BLOCKS>
class WideLoader {
  using Shared = WideShared<BITS, TT, BLOCKS>;
  using Place = RingPlace<Shared::kStages>;
  /// Rows that are copied at once, and how many a thread copies from.
  static constexpr int kAtOnce = Shared::kInputWarps * 4;
  static constexpr int kRows = TT / kAtOnce;

public:
  __device__ WideLoader(const WideParameters &p, Shared &shared, int tiles)
      : p(p), shared(shared), lane(threadIdx.x & 31), tiles(tiles),
        items(tiles * p.rowBlocks) {}

  __device__ void run() {
    // The same in all lanes, as the compiler then knows.
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) >> 5, 0);
    Place at;
    int number = 0;
    for (int i = blockIdx.x; i < items; i += gridDim.x, ++number) {
      if (warp == 0)
        bringWeights(find(i), number, at);
      else if (warp == 1 && p.ordered)
        bringRows(find(i), at);
      else if (warp == 1)
        announce(at);
      else if (warp < 2 + Shared::kInputWarps && !p.ordered)
        bringInputs(find(i), at);
    }
    // No thread leaves before its copies have come.
    asm volatile("cp.async.wait_all;" ::: "memory");
  }

private:
  struct Work {
    Tile tile;
    int rowBlock;
  };

  /// Tile of slots and block of rows of an item. Blocks of rows change slower
  /// than tiles, so that a few tiles' activations and a few rows of weights are
  /// in use at a time.
  __device__ Work find(int item) const {
    constexpr int kTogether = 16;
    const int chunk = item / (p.rowBlocks * kTogether);
    const int width = min(kTogether, tiles - chunk * kTogether);
    const int inside = item - chunk * p.rowBlocks * kTogether;
    const Tile &tile = p.sorted.tiles[chunk * kTogether + inside % width];
    return {{__shfl_sync(~0u, tile.expert, 0), __shfl_sync(~0u, tile.begin, 0),
             __shfl_sync(~0u, tile.count, 0), 0},
            inside / width};
  }

  /// Codes and scales of an item, and the list of its slots.
  __device__ void bringWeights(const Work &work, int number, Place &at) {
    const int place = number % Shared::kItems;
    auto &item = shared.items[place];
    const Tile &tile = work.tile;
    waitFor(sharedAddress(&shared.done[place]),
            (number / Shared::kItems & 1) ^ 1);
    int slots[TT / 32];
#pragma unroll
    for (int i = 0; i < TT / 32; ++i)
      slots[i] = lane + 32 * i < tile.count
                     ? p.sorted.order[tile.begin + lane + 32 * i]
                     : -1;
    if (lane == 0) {
      item.expert = tile.expert;
      item.count = tile.count;
      item.rows = work.rowBlock;
      arrive(sharedAddress(&shared.known[place]));
    }
    copyWeights(work, at);
    __syncwarp();
    const bool weighted = (p.first != 0) == (p.weightOnInput != 0);
#pragma unroll
    for (int i = 0; i < TT / 32; ++i) {
      item.slots[lane + 32 * i] =
          p.first && slots[i] >= 0 ? tile.begin + lane + 32 * i : slots[i];
      item.weights[lane + 32 * i] =
          weighted && slots[i] >= 0 ? weightOf(p.routing, slots[i]) : 1.0f;
    }
    arrive(sharedAddress(&shared.listed[place]));
  }

  /// Codes of each step, scales where steps that share them begin.
  __device__ void copyWeights(const Work &work, Place &at) {
    const int row = work.rowBlock * p.blockTiles;
    const int inputTile = work.tile.expert * p.inputTiles;
    const int firstGroup = work.tile.expert * p.groups;
    const int groups = p.groups > 1 && p.groupTiles < 4 ? 2 : 1;
    const int scaleBytes = groups * 2 * (p.hasZeros ? 320 : 256);
    for (int t = 0, untilScales = 0; t < p.inputTiles;
         t += 4, --untilScales, at.advance()) {
      auto &stage = shared.stages[at.index];
      const uint32_t barrier = sharedAddress(&shared.full[at.index]);
      const bool scales = untilScales == 0;
      waitFor(sharedAddress(&shared.empty[at.index]), at.phase ^ 1);
      arriveAndExpectOfWarp(barrier,
                            Shared::kCodeBytes + (scales ? scaleBytes : 0));
      copyBoxOfWarp(sharedAddress(stage.codes), p.codes, 0, row, 0,
                    inputTile + t, barrier);
      if (!scales)
        continue;
      untilScales = p.scaleSteps;
      const int group =
          firstGroup + static_cast<int>(__umulhi(t, p.groupMagic));
      copyBoxOfWarp(sharedAddress(stage.scales), p.scales, 0, row, 0, group,
                    barrier);
      if (p.hasZeros)
        copyBoxOfWarp(sharedAddress(stage.zeros), p.zeros, 0, row, 0, group,
                      barrier);
    }
  }

  /// Rows of activations that lie in order, by the copy engine. What it brings
  /// beyond the tile's rows nobody looks at.
  __device__ void bringRows(const Work &work, Place &at) {
    const int begin = work.tile.begin, count = work.tile.count;
    const bool all = count > TT - kWideRows;
    const int rows = all ? TT : (count + kWideRows - 1) / kWideRows * kWideRows;
    for (int t = 0; t < p.inputTiles; t += 4, at.advance()) {
      const uint32_t to = sharedAddress(shared.stages[at.index].inputs);
      const uint32_t barrier = sharedAddress(&shared.full[at.index]);
      waitFor(sharedAddress(&shared.empty[at.index]), at.phase ^ 1);
      arriveAndExpectOfWarp(barrier, rows * 128);
      if (all)
        copyBoxOfWarp(to, p.inputs[0], t * 16, begin, 0, barrier);
      else
        for (int row = 0; row < rows; row += kWideRows)
          copyBoxOfWarp(to + row * 128, p.inputs[1], t * 16, begin + row, 0,
                        barrier);
    }
  }

  /// Rows of activations, swizzled as matrix instructions expect them. Rows
  /// that a tile lacks are those of another slot: nobody looks at the products.
  __device__ void bringInputs(const Work &work, Place &at) {
    const int thread = static_cast<int>(threadIdx.x) - 64;
    const int row = thread >> 3, piece = thread & 7;
    // In units of 16 bytes, of which a thread copies one of each row.
    uint32_t rows[kRows];
    const auto width = static_cast<uint32_t>(p.inWidth / 8);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int index = min(row + kAtOnce * i, work.tile.count - 1);
      const int place = work.tile.begin + index;
      const int from =
          p.first ? p.sorted.order[place] / static_cast<int>(p.routing.topK)
                  : place;
      rows[i] = from * width + piece;
    }
    const int last = (work.tile.count + kAtOnce - 1) / kAtOnce;
    const char *from = static_cast<const char *>(p.in);
    const uint32_t to = sharedAddress(shared.stages[0].inputs) + row * 128 +
                        ((piece ^ (row & 7)) << 4);
    int64_t left = p.inWidth - piece * 8;
    for (int t = 0; t < p.inputTiles; t += 4, from += 128, left -= 64) {
      waitFor(sharedAddress(&shared.empty[at.index]), at.phase ^ 1);
      const uint32_t stage =
          to + at.index * static_cast<int>(sizeof(typename Shared::Stage));
      const bool inside = left > 0;
      const char *base = inside ? from : static_cast<const char *>(p.in);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (i < last)
          copyOrClear(stage + i * kAtOnce * 128, base + uint64_t(rows[i]) * 16,
                      inside);
      asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                       sharedAddress(&shared.copied[at.index]))
                   : "memory");
      at.advance();
    }
  }

  __device__ static void copyOrClear(uint32_t to, const void *from,
                                     bool present) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(present ? 16 : 0)
                 : "memory");
  }

  /// A fence waits for what its own warp has under way: this one has nothing.
  __device__ void announce(Place &at) {
    if (lane == 0)
      for (int t = 0; t < p.inputTiles; t += 4, at.advance()) {
        waitFor(sharedAddress(&shared.copied[at.index]), at.phase);
        fenceCopies();
        arrive(sharedAddress(&shared.full[at.index]));
      }
  }

  const WideParameters &p;
  Shared &shared;
  const int lane, tiles, items;
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDELOADER_CUH
