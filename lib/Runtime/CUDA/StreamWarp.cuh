//===- StreamWarp.cuh - A warp that streams weights ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAMWARP_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAMWARP_CUH

#include "StreamSlots.cuh"

namespace wna16::cuda {

/// How a warp goes through its inputs: a unit of 128 inputs is, column by
/// column of 64 outputs, one stage of 4-bit codes or two of 8-bit codes.
template <int BITS>
struct Stage {
  static constexpr int kTiles = BITS == 4 ? 8 : 4;
  static constexpr int kTileBytes = BITS * 16 * 64 / 8;
  static constexpr int kParts = 8 / kTiles; ///< of a column
  static constexpr int kPerUnit = 2 * kParts;
};

/// A warp's piece of shared memory.
template <int NT, int FOLDS>
struct WarpRing {
  alignas(128) uint4 codes[kStages][kStageBytes / 16];
  uint16_t scales[kStages][FOLDS][64];
  alignas(128) uint32_t zeros[kStages][FOLDS < 4 ? 4 : FOLDS][8];
  union {
    uint4 inputs[2][NT * 8 * kRingRow / 16];
    /// At the end of a piece: both columns' sums of each slot. Rows are as far
    /// apart as spreads what a warp stores over all banks.
    float sums[2][NT * 8][68];
  };
  uint64_t stages[kStages];
};

/// What a warp reads next: one of its units of a piece of work.
struct Unit {
  int tile, column;          ///< the piece
  int unit;                  ///< beyond the last: nothing
  int firstTile, firstGroup; ///< of the expert
  int tiles[2];
};

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
class StreamWarp {
  using S = Stage<BITS>;
  static constexpr int kFolds = S::kTiles / FOLD;

public:
  using Ring = WarpRing<NT, kFolds>;

  int splits, split = 0; ///< of a column's inputs, and the warp's

  /// For warp `warp` of a group.
  __device__ StreamWarp(const StreamParameters &p, const SlotLists &slots,
                        Ring &ring, int warp)
      : p(p), slots(slots), ring(ring), lane(threadIdx.x & 31),
        first(static_cast<int>(blockIdx.z) * p.groupWarps + warp),
        stride(static_cast<int>(gridDim.z) * p.groupWarps),
        units((p.inputTiles + 7) / 8) {
    if (lane < kStages)
      initBarrier(sharedAddress(&ring.stages[lane]), 1);
    fenceBarriers();
    __syncwarp();
  }

  /// Starts to read codes when slots are sorted, for group `group` of `groups`,
  /// which takes every so many pieces of work. Few pieces are split along their
  /// inputs as often as leaves no group more than one.
  __device__ void begin(int group, int groups) {
    const int pieces = slots.tiles * p.columns;
    splits = pieces ? min(max(groups / pieces, 1), p.mostSplits) : 1;
    tileStride = groups / p.columns;
    columnStride = groups - tileStride * p.columns;
    if (splits > 1) {
      split = group / pieces;
      group -= split * pieces;
      const int each = (units + splits - 1) / splits;
      first += split * each;
      units = split < splits ? min((split + 1) * each, units) : 0;
      tileStride = slots.tiles;
    }
    ahead.tile = split < splits ? group / p.columns : slots.tiles;
    ahead.column = group % p.columns;
    aim();
#pragma unroll
    for (int i = 0; i < kStages; ++i)
      fetchStage(ahead, i / S::kParts % 2, i % S::kParts, i);
  }

  /// Between two runs: the piece of the next.
  __device__ bool hasPiece() const { return ahead.tile < slots.tiles; }
  __device__ int tile() const { return ahead.tile; }
  __device__ int column() const { return ahead.column; }

  /// The warp's units of a piece, for the slots of `tile`. Afterwards the first
  /// of the next piece are under way.
  __device__ void run(const Tile &tile) {
    clear();
    findRows(tile);
    fetchInputs(first, 0);
    int buffer = 0;
    for (int unit = first; unit < units; unit += stride, buffer ^= 1) {
      fetchInputs(unit + stride, buffer ^ 1);
      const Unit now = ahead;
      advance();
      waitForCopies<1>();
      __syncwarp();
      inputs = sharedAddress(ring.inputs[buffer]) + (lane & 7) * kRingRow +
               (lane >> 3) * 16;
      float sum[S::kParts][kFolds][NT][4];
#pragma unroll
      for (int part = 0; part < S::kParts; ++part)
        runStage<0>(now, part, sum[part]);
#pragma unroll
      for (int part = 0; part < S::kParts; ++part)
        runStage<1>(now, part, sum[part]);
      // What the next kernel reads comes behind what this one does.
      letNextStart();
    }
    if (first >= units)
      advance();
    waitForCopies<0>();
  }

  /// Puts the sums of the first `count` slots where other warps find them.
  __device__ void storeSums(int count) const {
    __syncwarp();
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int slot = n * 8 + 2 * (lane & 3) + (i & 1);
        if (slot < count)
#pragma unroll
          for (int c = 0; c < 2; ++c)
#pragma unroll
            for (int u = 0; u < 4; ++u)
              ring.sums[c][slot][u * 16 + (i >> 1) * 8 + (lane >> 2)] =
                  total[c][u][n][i];
      }
  }

private:
  static constexpr int kRows = NT * 4;

  static __device__ int inputTile(int unit, int part, int tile) {
    return unit * 8 + part * S::kTiles + tile;
  }

  /// Makes the first unit of the piece the one to read next.
  __device__ void aim() {
    ahead.unit = hasPiece() ? first : units;
    if (ahead.unit >= units)
      return;
    // Nobody's slots meet any weights: what comes out is not stored.
    const int expert = max(slots.tile(ahead.tile).expert, 0);
    ahead.firstTile = expert * p.inputTiles;
    ahead.firstGroup = expert * p.groups;
    const int row = ahead.column * p.tileStep;
    ahead.tiles[0] = row;
    // The second tile may lie beyond the last: then it repeats the first.
    ahead.tiles[1] = row + p.secondTile < p.rowTiles ? row + p.secondTile : row;
  }

  __device__ void advance() {
    ahead.unit += stride;
    if (ahead.unit < units)
      return;
    ahead.tile += tileStride;
    ahead.column += columnStride;
    if (ahead.column >= p.columns) {
      ahead.column -= p.columns;
      ++ahead.tile;
    }
    aim();
  }

  __device__ void clear() {
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int n = 0; n < NT; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            total[c][u][n][i] = 0;
  }

  /// Half a warp copies a row of activations. Rows without a slot stay as they
  /// are: they only reach sums that nobody stores.
  __device__ void findRows(const Tile &tile) {
    present = tile.count - (lane >> 4);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      rows[i] = 0;
      if (2 * i >= present)
        continue;
      const int slot = slots.slot(tile.begin + (lane >> 4) + 2 * i);
      rows[i] = p.first ? slot / static_cast<int>(p.routing.topK) : slot;
    }
  }

  /// Reads a stage into place `to`. Inputs beyond the last are multiplied with
  /// zeros, so codes may then be anyone's.
  __device__ void fetchStage(const Unit &unit, int column, int part, int to) {
    if (unit.unit >= units || lane != 0)
      return;
    const uint32_t barrier = sharedAddress(&ring.stages[to]);
    const int bytes = kStageBytes + kFolds * (p.hasZeros ? 160 : 128);
    const int tile = inputTile(unit.unit, part, 0);
    const int group = unit.firstGroup + groupOf(tile);
    arriveAndExpect(barrier, bytes);
    copyBoxOnce(sharedAddress(ring.codes[to]), p.codes, 0, unit.tiles[column],
                unit.firstTile + tile, barrier);
    copyBox(sharedAddress(ring.scales[to]), p.scales, 0, unit.tiles[column],
            group, barrier);
    if (p.hasZeros)
      copyBox(sharedAddress(ring.zeros[to]), p.zeros, 0, unit.tiles[column],
              group, barrier);
  }

  __device__ int groupOf(int tile) const {
    return static_cast<int>(__umulhi(tile, p.groupMagic));
  }

  /// Reads a unit's activations; zeros beyond the last input.
  __device__ void fetchInputs(int unit, int buffer) {
    if (unit < units) {
      const int column = unit * kUnitInputs + (lane & 15) * 8;
      uint4 *to =
          ring.inputs[buffer] + (lane >> 4) * (kRingRow / 16) + (lane & 15);
      if (column < p.inWidth) {
        const uint32_t address = sharedAddress(to);
        const auto *from = static_cast<const char *>(p.in) + column * 2;
        const auto width = static_cast<uint32_t>(p.inWidth * 2);
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          if (2 * i < present)
            copyAsync(address + 2 * i * kRingRow,
                      from + uint64_t(rows[i]) * width);
      } else {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          to[2 * i * (kRingRow / 16)] = {0, 0, 0, 0};
      }
    }
    commitCopies();
  }

  /// The operands of two neighbouring input tiles.
  __device__ void loadInputs(int tile, uint32_t (&b)[2][NT][2]) const {
#pragma unroll
    for (int n = 0; n < NT; ++n) {
      uint32_t r[4];
      loadMatrices(inputs + n * 8 * kRingRow + tile * 32, r);
      b[0][n][0] = r[0];
      b[0][n][1] = r[1];
      b[1][n][0] = r[2];
      b[1][n][1] = r[3];
    }
  }

  /// Multiplies one stage, then reads another into its place.
  template <int COLUMN>
  __device__ void runStage(const Unit &now, int part,
                           float (&sum)[kFolds][NT][4]) {
    waitFor(sharedAddress(&ring.stages[place]), phase);
#pragma unroll
    for (int f = 0; f < kFolds; ++f) {
      float partial[4][NT][4];
      multiply<COLUMN>(part, f, sum[f], partial);
      fold<COLUMN>(groupOf(inputTile(now.unit, part, f * FOLD)) -
                       groupOf(inputTile(now.unit, part, 0)),
                   sum[f], partial);
    }
    __syncwarp();
    // Stage by stage: the other column, or the next unit's.
    constexpr int kAhead = kStages / S::kParts;
    static_assert(kStages % S::kParts == 0 && kAhead >= 1 && kAhead <= 2);
    if (kAhead == 2 || COLUMN == 1)
      fetchStage(ahead, kAhead == 2 ? COLUMN : 0, part, place);
    else
      fetchStage(now, 1, part, place);
    if (++place == kStages) {
      place = 0;
      phase ^= 1;
    }
  }

  /// Sums of products of one group. The first column's pass also sums the
  /// activations themselves, times -136, for both.
  template <int COLUMN>
  __device__ void multiply(int part, int f, float (&sum)[NT][4],
                           float (&partial)[4][NT][4]) const {
    constexpr bool kOffset = BITS == 4;
    const uint32_t minus[4] = {
        Element<T>::kMinusOffset, Element<T>::kMinusOffset,
        Element<T>::kMinusOffset, Element<T>::kMinusOffset};
    const float nothing[4] = {};
    uint32_t b[2][NT][2];
#pragma unroll
    for (int j = 0; j < FOLD; ++j) {
      const int tile = f * FOLD + j;
      if (j % 2 == 0)
        loadInputs(part * S::kTiles + tile, b);
      const uint4 *from =
          &ring.codes[place][tile * S::kTileBytes / 16 + lane * (BITS / 4)];
      uint4 words[BITS / 4];
#pragma unroll
      for (int i = 0; i < BITS / 4; ++i)
        words[i] = from[i];
      const auto *flat = reinterpret_cast<const uint32_t *>(words);
      if (kOffset && COLUMN == 0)
#pragma unroll
        for (int n = 0; n < NT; ++n)
          if (j == 0)
            Element<T>::mma(sum[n], minus, b[j % 2][n], nothing);
          else
            Element<T>::mma(sum[n], minus, b[j % 2][n], sum[n]);
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        uint32_t a[4];
        if constexpr (BITS == 4)
          decode4<T, SWAP>(flat[u], a);
        else
          decode8<T, SWAP>(flat[2 * u], flat[2 * u + 1], a);
#pragma unroll
        for (int n = 0; n < NT; ++n)
          if (j > 0)
            Element<T>::mma(partial[u][n], a, b[j % 2][n], partial[u][n]);
          else if (kOffset && COLUMN == 1)
            Element<T>::mma(partial[u][n], a, b[j % 2][n], sum[n]);
          else
            Element<T>::mma(partial[u][n], a, b[j % 2][n], nothing);
      }
    }
  }

  /// The thread's eight scales of a group: outputs lane / 4 + 8 i, i = n3 + 2u.
  __device__ uint4 loadScales(int group) const {
    const uint16_t *from = ring.scales[place][group];
    const int g = lane >> 2;
    if (p.groups > 1)
      return *reinterpret_cast<const uint4 *>(from + 8 * g);
    // One group has an order of its own.
    from += (g & 1) + 8 * (g >> 1);
    auto pair = [&](int u) {
      const int at = 32 * (u >> 1) + 4 * (u & 1);
      return uint32_t(from[at]) | uint32_t(from[at + 2]) << 16;
    };
    return {pair(0), pair(1), pair(2), pair(3)};
  }

  /// Puts z in place of 8: sums are -offset times those of activations.
  __device__ void addZeros(int group, const float (&sum)[NT][4],
                           float (&partial)[4][NT][4]) const {
    const uint32_t zero = ring.zeros[place][group][lane >> 2];
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int n3 = 0; n3 < 2; ++n3) {
        const int at = p.zeroShift ? n3 + 2 * u : u + 4 * n3;
        const float less =
            static_cast<float>(static_cast<int>(zero >> (4 * at) & 15) - 8) *
            (1.0f / Element<T>::kOffset);
#pragma unroll
        for (int n = 0; n < NT; ++n)
#pragma unroll
          for (int i = 2 * n3; i < 2 * n3 + 2; ++i)
            partial[u][n][i] += less * sum[n][i];
      }
  }

  /// Adds the sums of a group, times its scales.
  template <int COLUMN>
  __device__ void fold(int group, const float (&sum)[NT][4],
                       float (&partial)[4][NT][4]) {
    if (kFolds == 1)
      group = 0;
    if (BITS == 4 && p.hasZeros)
      addZeros(group, sum, partial);
    const uint4 scale = loadScales(group);
    const uint32_t pairs[4] = {scale.x, scale.y, scale.z, scale.w};
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const float s[2] = {Element<T>::low(pairs[u]),
                          Element<T>::high(pairs[u])};
#pragma unroll
      for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float value = partial[u][n][i];
          if (BITS == 4 && COLUMN == 0)
            value += sum[n][i];
          total[COLUMN][u][n][i] += s[i >> 1] * value;
        }
    }
  }

  const StreamParameters &p;
  const SlotLists &slots;
  Ring &ring;
  const int lane;
  int first;                    ///< of this warp's units
  const int stride;             ///< from one to the next
  int units;                    ///< of a piece; where the warp's end
  int tileStride, columnStride; ///< from a piece to the warp's next
  Unit ahead;                   ///< whose stages are read next
  float total[2][4][NT][4];
  uint32_t rows[kRows]; ///< of activations that the lane copies
  int present = 0;      ///< twice as many of them
  uint32_t inputs = 0;  ///< where the lane reads the unit's activations
  int place = 0, phase = 0;
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_STREAMWARP_CUH
