//===- StreamKernel.cuh - The kernel of products that stream weights ----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAMKERNEL_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAMKERNEL_CUH

#include "Stream.cuh"

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
  uint4 inputs[2][NT * 8 * kRingRow / 16];
  uint64_t stages[kStages];
};

/// Slots of one expert that a block works on.
struct SlotList {
  const int32_t *sorted; ///< or null
  const uint16_t *found;
  int count;

  __device__ int slot(int index) const {
    return sorted ? sorted[index] : found[index];
  }
};

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
class StreamWarp {
  using S = Stage<BITS>;
  static constexpr int kFolds = S::kTiles / FOLD;

public:
  using Ring = WarpRing<NT, kFolds>;

  __device__ StreamWarp(const StreamParameters &p, int expert, int tile,
                        Ring &ring)
      : p(p), ring(ring), lane(threadIdx.x & 31),
        first(static_cast<int>(blockIdx.z * (blockDim.x >> 5) +
                               (threadIdx.x >> 5))),
        stride(static_cast<int>(gridDim.z * (blockDim.x >> 5))),
        firstTile(expert * p.inputTiles), firstGroup(expert * p.groups) {
    tiles[0] = tile;
    // A block's second tile may lie beyond the last: then it repeats the first.
    tiles[1] = tile + p.secondTile < p.rowTiles ? tile + p.secondTile : tile;
    const int all = (p.inputTiles + 7) / 8;
    units = first < all ? (all - first + stride - 1) / stride : 0;
    for (int c = 0; c < 2; ++c)
      for (int u = 0; u < 4; ++u)
        for (int n = 0; n < NT; ++n)
          for (int i = 0; i < 4; ++i)
            total[c][u][n][i] = 0;
  }

  /// Barriers are used from their first phase on.
  __device__ void init() {
    if (lane < kStages)
      initBarrier(sharedAddress(&ring.stages[lane]), 1);
    fenceBarriers();
    // What the block has left here is done.
    fenceCopies();
    __syncwarp();
  }

  /// Makes the barriers usable for something else.
  __device__ void forget() {
    __syncwarp();
    if (lane < kStages)
      forgetBarrier(sharedAddress(&ring.stages[lane]));
  }

  /// Starts to read codes.
  __device__ void begin() {
#pragma unroll
    for (int i = 0; i < kStages; ++i)
      fetchStage(i / S::kPerUnit, i / S::kParts % 2, i % S::kParts, i);
  }

  /// All units of the warp, for slots from `slot` of the list on.
  __device__ void run(const SlotList &list, int slot) {
    // Half a warp copies a row of activations. Rows without a slot stay as
    // they are: they only reach sums that nobody stores.
    present = list.count - slot - (lane >> 4);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      rows[i] = static_cast<const char *>(p.in) + (lane & 15) * 16;
      if (2 * i >= present)
        continue;
      const int index = list.slot(slot + (lane >> 4) + 2 * i);
      const int row =
          p.first ? index / static_cast<int>(p.routing.topK) : index;
      rows[i] += row * p.inWidth * 2;
    }
    fetchInputs(0);
    for (int unit = 0; unit < units; ++unit) {
      fetchInputs(unit + 1);
      waitForCopies<1>();
      __syncwarp();
      inputs = sharedAddress(ring.inputs[unit & 1]) + (lane & 7) * kRingRow +
               (lane >> 3) * 16;
      float sum[S::kParts][kFolds][NT][4];
#pragma unroll
      for (int part = 0; part < S::kParts; ++part)
        runStage<0>(unit, part, sum[part]);
#pragma unroll
      for (int part = 0; part < S::kParts; ++part)
        runStage<1>(unit, part, sum[part]);
    }
    waitForCopies<0>();
  }

  float total[2][4][NT][4];

private:
  static constexpr int kRows = NT * 4;

  __device__ int inputTile(int unit, int part, int tile) const {
    return (first + unit * stride) * 8 + part * S::kTiles + tile;
  }

  /// Reads a stage into place `to`. Inputs beyond the last are multiplied with
  /// zeros, so codes may then be anyone's.
  __device__ void fetchStage(int unit, int column, int part, int to) {
    if (unit >= units || lane != 0)
      return;
    const uint32_t barrier = sharedAddress(&ring.stages[to]);
    const int bytes = kStageBytes + kFolds * (p.hasZeros ? 160 : 128);
    const int tile = inputTile(unit, part, 0);
    const int group = firstGroup + groupOf(tile);
    arriveAndExpect(barrier, bytes);
    copyBox(sharedAddress(ring.codes[to]), p.codes, 0, tiles[column],
            firstTile + tile, barrier);
    copyBox(sharedAddress(ring.scales[to]), p.scales, 0, tiles[column], group,
            barrier);
    if (p.hasZeros)
      copyBox(sharedAddress(ring.zeros[to]), p.zeros, 0, tiles[column], group,
              barrier);
  }

  __device__ int groupOf(int tile) const {
    return static_cast<int>(__umulhi(tile, p.groupMagic));
  }

  /// Reads a unit's activations; zeros beyond the last input.
  __device__ void fetchInputs(int unit) {
    if (unit < units) {
      const int column = (first + unit * stride) * kUnitInputs;
      uint4 *to =
          ring.inputs[unit & 1] + (lane >> 4) * (kRingRow / 16) + (lane & 15);
      if (column + (lane & 15) * 8 < p.inWidth) {
        const uint32_t address = sharedAddress(to);
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          if (2 * i < present)
            copyAsync(address + 2 * i * kRingRow, rows[i] + column * 2);
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
  __device__ void runStage(int unit, int part, float (&sum)[kFolds][NT][4]) {
    waitFor(sharedAddress(&ring.stages[place]), phase);
#pragma unroll
    for (int f = 0; f < kFolds; ++f) {
      float partial[4][NT][4];
      multiply<COLUMN>(part, f, sum[f], partial);
      fold<COLUMN>(groupOf(inputTile(unit, part, f * FOLD)) -
                       groupOf(inputTile(unit, part, 0)),
                   sum[f], partial);
    }
    __syncwarp();
    // Stage by stage: the other column, or the next unit's.
    constexpr int kAhead = kStages / S::kParts;
    static_assert(kStages % S::kParts == 0 && kAhead >= 1 && kAhead <= 2);
    if (kAhead == 2 || COLUMN == 1)
      fetchStage(unit + 1, kAhead == 2 ? COLUMN : 0, part, place);
    else
      fetchStage(unit, 1, part, place);
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
  Ring &ring;
  const int lane;
  const int first, stride; ///< units of this warp
  int units;
  const int firstTile, firstGroup; ///< of the expert
  int tiles[2];
  const char *rows[kRows]; ///< of activations that the lane copies
  int present = 0;         ///< twice as many of them
  uint32_t inputs = 0;     ///< where the lane reads the unit's activations
  int place = 0, phase = 0;
};

/// The expert of a block and its slots, none where there is nothing to do. By
/// slot: the block of the first slot with an expert works for all of them.
__device__ inline SlotList findSlots(const StreamParameters &p, int &expert,
                                     uint16_t *found) {
  if (p.order) {
    expert = static_cast<int>(blockIdx.y);
    const int begin = p.begin[expert];
    return {p.order + begin, nullptr, p.begin[expert + 1] - begin};
  }
  __shared__ int count, earlier;
  const auto slots = static_cast<int>(p.routing.slots);
  int slot = threadIdx.x;
  int asked = slot < slots ? expertOf(p.routing, slot) : -1;
  expert =
      p.bySlot ? expertOf(p.routing, blockIdx.y) : static_cast<int>(blockIdx.y);
  if (threadIdx.x == 0)
    count = earlier = 0;
  __syncthreads();
  while (slot < slots && expert >= 0) {
    if (asked == expert) {
      found[atomicAdd(&count, 1)] = static_cast<uint16_t>(slot);
      if (p.bySlot && slot < static_cast<int>(blockIdx.y))
        earlier = 1;
    }
    slot += blockDim.x;
    if (slot < slots)
      asked = expertOf(p.routing, slot);
  }
  __syncthreads();
  return {nullptr, found, earlier ? 0 : count};
}

/// A slot's row of the output.
struct OutRow {
  int slot; ///< -1: none
  float weight;
  int64_t offset;
};

__device__ inline OutRow findRow(const StreamParameters &p,
                                 const SlotList &list, int index) {
  if (index >= list.count)
    return {-1, 0, 0};
  const int slot = list.slot(index);
  const bool weighted = (p.first != 0) == (p.weightOnInput != 0);
  return {slot, weighted ? weightOf(p.routing, slot) : 1.0f, slot * p.outWidth};
}

/// Stores sums of two outputs of a slot: gate and up, or neighbours.
__device__ inline void storePair(const StreamParameters &p, int expert,
                                 const OutRow &row, int64_t n, float a,
                                 int64_t n2, float b) {
  if (p.first) {
    // The routing weight of x comes out of the product.
    a *= row.weight;
    b *= row.weight;
  }
  if (p.bias.data) {
    a += biasOf(p.bias, expert, n);
    b += n2 < p.rowTiles * 64 ? biasOf(p.bias, expert, n2) : 0.0f;
  }
  if (p.first && p.gated) {
    a = p.plainSilu ? swish(a, 1.0f) * b : activate(p.activation, a, b);
  } else if (p.first) {
    a = activate(p.activation, a);
    b = activate(p.activation, b);
  } else {
    a *= row.weight;
    b *= row.weight;
  }
  if (n < p.outWidth)
    storeElement(p.outType, p.out, row.offset + n, a);
  if (!p.gated && n2 < p.outWidth)
    storeElement(p.outType, p.out, row.offset + n2, b);
}

/// Sums of all warps, in order; `STRIDE` floats from one to the next.
template <int STRIDE>
__device__ inline float addWarps(const float *from, int warps) {
  float sum = 0;
  for (int first = 0; first < warps; first += 4) {
    float values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      values[i] = first + i < warps ? from[(first + i) * STRIDE] : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum += values[i];
  }
  return sum;
}

/// Sums of all blocks of the cluster, in order.
__device__ inline float addBlocks(const float *from, int blocks) {
  float values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    values[i] = i < blocks ? loadRemote(from, i) : 0.0f;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    sum += values[i];
  return sum;
}

/// Adds the warps' sums, in order, and stores the outputs of up to 8 * NT
/// slots.
template <int NT>
__device__ inline void storeTotals(const StreamParameters &p, int expert,
                                   int tile, const float (&total)[2][4][NT][4],
                                   const SlotList &list, int firstSlot,
                                   float *sums) {
  constexpr int kValues = 16 * NT; // of one column
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int warps = static_cast<int>(blockDim.x) >> 5;
  const auto blocks = static_cast<int>(gridDim.z);
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 2; ++c)
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[((warp * 2 + c) * kValues + (n * 2 + (i & 1)) * 8 + u * 2 +
                (i >> 1)) *
                   32 +
               lane] = total[c][u][n][i];
  __syncthreads();
  if (blocks > 1) {
    // Each block adds up its own, then some of the cluster's.
    for (int item = threadIdx.x; item < 2 * kValues * 32; item += blockDim.x)
      sums[item] = addWarps<2 * kValues * 32>(sums + item, warps);
    syncCluster();
  }
#pragma unroll 1
  for (int token = 0; token < 2 * NT; ++token) {
    const int column = firstSlot + token / 2 * 8 + (token & 1);
    if (column >= list.count)
      continue;
    const OutRow row = findRow(p, list, column + 2 * (lane & 3));
    // Of the eight blocks of eight outputs of this token.
#pragma unroll 1
    for (int q = static_cast<int>(blockIdx.z) * warps + warp; q < 8;
         q += warps * blocks) {
      const float *from = sums + (token * 8 + q) * 32 + lane;
      float a, b;
      if (blocks > 1) {
        a = addBlocks(from, blocks);
        b = addBlocks(from + kValues * 32, blocks);
      } else {
        a = addWarps<2 * kValues * 32>(from, warps);
        b = addWarps<2 * kValues * 32>(from + kValues * 32, warps);
      }
      const int64_t n = tile * 64 + q * 8 + (lane >> 2);
      if (row.slot >= 0)
        storePair(p, expert, row, n, a, n + p.secondTile * 64, b);
    }
  }
  blocks > 1 ? syncCluster() : __syncthreads();
}

/// The last of a column's blocks sums the rows of all slots.
__device__ inline void sumColumn(const StreamParameters &p) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    last = atomicAdd(&p.counters[blockIdx.x], 1) ==
           static_cast<int>(gridDim.y * gridDim.z) - 1;
  __syncthreads();
  if (!last)
    return;
  __threadfence();
  const int64_t column = int64_t(blockIdx.x) * 128;
  const auto topK = static_cast<int>(p.routing.topK);
  const int tokens = static_cast<int>(p.routing.slots) / topK;
  const auto *rows = static_cast<const float *>(p.out);
  for (int item = threadIdx.x; item < tokens * 32; item += blockDim.x) {
    const int64_t n = column + (item & 31) * 4;
    if (n >= p.outWidth)
      continue;
    float4 sum = {0, 0, 0, 0};
    for (int first = 0; first < topK; first += 8) {
      float4 values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        values[i] = {0, 0, 0, 0};
        const int slot = (item >> 5) * topK + first + i;
        if (first + i < topK && expertOf(p.routing, slot) >= 0)
          values[i] = __ldcg(
              reinterpret_cast<const float4 *>(rows + slot * p.outWidth + n));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sum.x += values[i].x, sum.y += values[i].y;
        sum.z += values[i].z, sum.w += values[i].w;
      }
    }
    const int64_t at = (item >> 5) * p.outWidth + n;
    storeElement(p.yType, p.y, at, sum.x);
    storeElement(p.yType, p.y, at + 1, sum.y);
    storeElement(p.yType, p.y, at + 2, sum.z);
    storeElement(p.yType, p.y, at + 3, sum.w);
  }
}

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
__global__ void __launch_bounds__(32 * maxStreamWarps(NT), 1)
    streamKernelOf(const __grid_constant__ StreamParameters p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ uint16_t found[kMaxListed];
  if (threadIdx.x == 0) {
    prefetchMap(p.codes);
    prefetchMap(p.scales);
  }
  // Routing comes from just before the first product; whoever starts after
  // that sees it.
  if (p.first)
    waitForPrevious();
  letNextStart();
  if (p.first && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0)
    for (int i = threadIdx.x; i < p.numCounters; i += blockDim.x)
      p.counters[i] = 0;
  bool wait = !p.first;
  const int tile = static_cast<int>(blockIdx.x) * p.tileStep;
  using Worker = StreamWarp<T, BITS, SWAP, FOLD, NT>;
  auto &ring =
      reinterpret_cast<typename Worker::Ring *>(shared)[threadIdx.x >> 5];
  int expert;
  const SlotList list = findSlots(p, expert, found);
  for (int slot = 0; slot < list.count; slot += 8 * NT) {
    Worker worker(p, expert, tile, ring);
    worker.init();
    worker.begin();
    // Weights and routing are there from the start, activations are not.
    if (wait)
      waitForPrevious();
    wait = false;
    worker.run(list, slot);
    worker.forget();
    storeTotals<NT>(p, expert, tile, worker.total, list, slot,
                    reinterpret_cast<float *>(shared));
  }
  if (p.y) {
    if (wait)
      waitForPrevious();
    sumColumn(p);
  }
#endif
}

template <typename T, int BITS, bool SWAP, int FOLD, int NT>
StreamKernel streamKernelWith() {
  using Ring = typename StreamWarp<T, BITS, SWAP, FOLD, NT>::Ring;
  return {streamKernelOf<T, BITS, SWAP, FOLD, NT>, sizeof(Ring)};
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
