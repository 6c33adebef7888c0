//===- TokenKernel.cuh - The kernel of products of one token ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_TOKENKERNEL_CUH
#define WNA16_LIB_RUNTIME_CUDA_TOKENKERNEL_CUH

#include "Token.cuh"

namespace wna16::cuda {

/// The thread arrives when its copies so far are there.
__device__ inline void arriveWithCopies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier)
               : "memory");
}

/// Into the second level's cache, where later writes arrive, too.
__device__ inline void prefetch(const void *address) {
  if (address)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/// Sends a float to the first block of the cluster, whose barrier counts it.
__device__ inline void sendFirst(const float *to, const uint64_t *barrier,
                                 float value) {
  uint32_t address, counter;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
               : "=r"(address)
               : "r"(sharedAddress(to)));
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
               : "=r"(counter)
               : "r"(sharedAddress(barrier)));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
               "[%0], %1, [%2];" ::"r"(address),
               "r"(__float_as_uint(value)), "r"(counter)
               : "memory");
}

/// Biases and activations other than the common one: out of line, so that the
/// usual way is short.
static __device__ __noinline__ float activateAny(const TokenParameters &p,
                                                 int expert, int64_t k,
                                                 float gate, float up) {
  if (p.biasIn.data) {
    gate += biasOf(p.biasIn, expert, k);
    up += biasOf(p.biasIn, expert, k + p.inWidth);
  }
  return activate(p.activation, gate, up);
}

static __device__ __noinline__ float biasAt(const TokenParameters &p,
                                            int expert, int64_t n) {
  return biasOf(p.bias, expert, n);
}

/// What the block knows of each of its pieces of work.
struct TokenPiece {
  int expert;   ///< -1: nobody's, not here
  float weight; ///< the slot's; second product
  int slot, column;
};

/// A warp's share of a piece. HALVES: tiles of 64 outputs, gate and up or one.
template <typename T, bool SWAP, int HALVES>
class TokenWarp {
  static constexpr bool kFirst = HALVES == 2;

public:
  __device__ TokenWarp(const TokenParameters &p, unsigned char *memory,
                       uint64_t *barriers)
      : p(p), lay(p.shares, p.zeros, HALVES), memory(memory),
        barriers(sharedAddress(barriers)),
        lane(static_cast<int>(threadIdx.x) & 31) {
    const TokenShares &shares = p.shares;
    const auto warp = static_cast<int>(threadIdx.x) >> 5,
               group = static_cast<int>(blockIdx.x),
               before = static_cast<int>(blockIdx.z) * shares.blockTiles;
    index = warp / shares.pieceWarps;
    part = warp - index * shares.pieceWarps;
    // The second product's pieces are all slots of one column.
    const int all = group * shares.pieces + index;
    piece.slot = kFirst ? all / p.columns : index;
    piece.column = kFirst ? all - piece.slot * p.columns : group;
    firstTile = before + part * shares.steps;
    const int end = min(before + shares.blockTiles, p.inputTiles);
    if (index < shares.pieces && piece.slot < p.routing.slots)
      steps = max(min(shares.steps, end - firstTile), 0);
    firstGroup = groupOf(firstTile);
    if (lane <= kTokenSteps)
      initBarrier(barrier(lane), 32);
    __syncwarp();
  }

  /// Finds the expert and asks for its weights.
  __device__ void begin(TokenPiece *pieces) {
    const bool exists = index < p.shares.pieces && piece.slot < p.routing.slots;
    piece.expert = exists ? expertOf(p.routing, piece.slot) : -1;
    const float weight =
        kFirst || !exists ? 0 : weightOf(p.routing, piece.slot);
    if (piece.expert < 0)
      steps = 0;
    if (steps > 0) {
      fetchScales();
      fetchCodes();
    }
    if (piece.expert >= 0)
      piece.weight = weight;
    if (part == 0 && lane == 0)
      pieces[index] = piece;
  }

  /// Asks for the token, in the first product.
  __device__ void fetchToken() {
    const int k = firstTile * 16 + lane * 8;
    unsigned char *to = memory + lay.inputs + lane * 16;
    if (lane < 2 * steps && k < p.inWidth)
      copyAsync(sharedAddress(to), static_cast<const char *>(p.in) + k * 2);
    else if (lane < 2 * steps)
      *reinterpret_cast<uint4 *>(to) = {0, 0, 0, 0};
    __syncwarp();
  }

  /// Makes the second product's inputs of the first one's sums: four a lane, or
  /// one at a time where there is more to do than the common activation.
  __device__ void activateInputs() {
    auto *to = reinterpret_cast<T *>(memory + lay.inputs);
    if (p.plainSilu && !p.weightOnInput && !p.biasIn.data) {
      if (lane < 4 * steps)
        activateFour(to);
    } else {
      const float factor = p.weightOnInput ? piece.weight : 1.0f;
#pragma unroll 1
      for (int k = lane; k < 16 * steps; k += 32) {
        float gate = 0, up = 0;
        for (int split = 0; split < p.splits; ++split) {
          gate += __ldcg(partOf<float>(split, 0, k));
          up += __ldcg(partOf<float>(split, 1, k));
        }
        storeElement(p.element, to, k,
                     activateAny(p, piece.expert, firstTile * 16 + k,
                                 gate * factor, up * factor));
      }
    }
    __syncwarp();
  }

  /// Of everything that was asked for.
  __device__ void finishCopies() { arriveWithCopies(barrier(kTokenSteps)); }
  __device__ void waitForAll() const { waitFor(barrier(kTokenSteps), 0); }

  /// Multiplies the tiles. The next kernel may start after `letAt` of them:
  /// what it asks for comes behind what this one does.
  __device__ void run() {
    const int tiles = p.groups > 1 ? p.groupTiles : p.inputTiles;
    int left = (firstGroup + 1) * tiles - firstTile; // of the group
    int group = 0;
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
      scaled[h][0] = scaled[h][1] = 0;
    clear();
#pragma unroll 2
    for (int step = 0; step < steps; ++step) {
      if (kFirst) {
        waitFor(barrier(step), 0);
        if (step == p.letAt)
          letNextStart();
      }
      multiply(step);
      if (--left > 0 && step + 1 < steps)
        continue;
      fold(group++);
      clear();
      left = tiles;
    }
  }

  /// Stores the sums, weighted in the second product.
  __device__ void store(float *out) const {
    const float factor = kFirst || p.weightOnInput ? 1.0f : piece.weight;
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
#pragma unroll
      for (int n3 = 0; n3 < 2; ++n3)
        out[h * 64 + (lane & 3) * 16 + n3 * 8 + (lane >> 2)] =
            scaled[h][n3] * factor;
  }

private:
  __device__ uint32_t barrier(int index) const { return barriers + index * 8; }
  __device__ int groupOf(int tile) const {
    return static_cast<int>(__umulhi(tile, p.groupMagic));
  }

  __device__ void fetchCodes() {
    const int64_t tile =
        (int64_t(piece.expert) * p.inputTiles + firstTile) * p.rowTiles +
        piece.column;
    const uint8_t *from = p.codes + tile * kTokenTile + lane * 16;
    uint32_t to = sharedAddress(memory) + lane * 16;
#pragma unroll 2
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int h = 0; h < HALVES; ++h) {
        copyAsync(to, from + h * p.columns * kTokenTile);
        to += kTokenTile;
      }
      if (kFirst)
        arriveWithCopies(barrier(step));
      from += p.rowTiles * kTokenTile;
    }
  }

  /// Pieces of 16 bytes: a group's scales are eight of them, its zero points
  /// two.
  __device__ void fetchScales() {
    const int64_t first =
        (int64_t(piece.expert) * p.groups + firstGroup) * p.rowTiles +
        piece.column;
    const int groups = groupOf(firstTile + steps - 1) - firstGroup + 1;
    fetchGroups(p.scales + first * 128, memory + lay.scales, groups, 3);
    if (p.zeros)
      fetchGroups(p.zeros + first * 32, memory + lay.zeros, groups, 1);
  }

  __device__ void fetchGroups(const uint8_t *from, unsigned char *to,
                              int groups, int shift) {
    const int count = groups * HALVES << shift;
#pragma unroll 1
    for (int i = lane; i < count; i += 32) {
      const int row = i >> shift, at = i - (row << shift);
      const int group = row / HALVES, h = row % HALVES;
      const int64_t rows = int64_t(group) * p.rowTiles + h * p.columns;
      copyAsync(sharedAddress(to + i * 16), from + ((rows << shift) + at) * 16);
    }
  }

  /// Of the first product's sums over a split of its inputs.
  template <typename V>
  __device__ const V *partOf(int split, int half, int k) const {
    const auto slots = static_cast<int>(p.routing.slots);
    const int row = (split * slots + piece.slot) * 2 + half;
    return reinterpret_cast<const V *>(static_cast<const float *>(p.in) +
                                       row * p.inWidth + firstTile * 16 + k);
  }

  __device__ void activateFour(T *to) const {
    float4 parts[2][kTokenSplits];
#pragma unroll
    for (int split = 0; split < kTokenSplits; ++split)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        parts[h][split] = {0, 0, 0, 0};
        if (split < p.splits)
          parts[h][split] = __ldcg(partOf<float4>(split, h, lane * 4));
      }
#pragma unroll
    for (int split = 1; split < kTokenSplits; ++split)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float4 &sum = parts[h][0];
        const float4 more = parts[h][split];
        sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
      }
    const float4 gate = parts[0][0], up = parts[1][0];
    storeTwo(p.element, to, lane * 4,
             {fastSilu(gate.x) * up.x, fastSilu(gate.y) * up.y});
    storeTwo(p.element, to, lane * 4 + 2,
             {fastSilu(gate.z) * up.z, fastSilu(gate.w) * up.w});
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum[i] = 0;
#pragma unroll
      for (int h = 0; h < HALVES; ++h)
#pragma unroll
        for (int u = 0; u < 4; ++u)
          total[h][u][i] = 0;
    }
  }

  /// All columns are the token.
  __device__ void multiply(int step) {
    constexpr uint32_t kMinus = Element<T>::kMinusOffset;
    const uint32_t minus[4] = {kMinus, kMinus, kMinus, kMinus};
    const auto *inputs = reinterpret_cast<const uint32_t *>(
        memory + lay.inputs + step * 32 + (lane & 3) * 4);
    const uint32_t b[2] = {inputs[0], inputs[4]};
    uint4 words[HALVES];
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
      words[h] = *reinterpret_cast<const uint4 *>(
          memory + (step * HALVES + h) * kTokenTile + lane * 16);
    Element<T>::mma(sum, minus, b, sum);
#pragma unroll
    for (int h = 0; h < HALVES; ++h) {
      const uint32_t flat[4] = {words[h].x, words[h].y, words[h].z, words[h].w};
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        uint32_t a[4];
        decode4<T, SWAP>(flat[u], a);
        Element<T>::mma(total[h][u], a, b, total[h][u]);
      }
    }
  }

  /// The lane's scales of a group: outputs 16 u + 8 n3 + lane / 4, u = lane
  /// % 4.
  __device__ float2 loadScales(int row) const {
    const auto *from =
        reinterpret_cast<const uint16_t *>(memory + lay.scales + row * 128);
    uint32_t pair;
    if (p.groups > 1) {
      pair = reinterpret_cast<const uint32_t *>(from)[lane];
    } else {
      // One group has an order of its own.
      const int g = lane >> 2, u = lane & 3;
      from += (g & 1) + 8 * (g >> 1) + 32 * (u >> 1) + 4 * (u & 1);
      pair = uint32_t(from[0]) | uint32_t(from[2]) << 16;
    }
    return {Element<T>::low(pair), Element<T>::high(pair)};
  }

  /// What takes the place of 8, as a multiple of the sum of activations.
  __device__ float zeroOf(int row, int n3) const {
    const auto *from =
        reinterpret_cast<const uint32_t *>(memory + lay.zeros + row * 32);
    const int u = lane & 3, at = p.zeroShift ? n3 + 2 * u : u + 4 * n3;
    const int zero = static_cast<int>(from[lane >> 2] >> (4 * at) & 15);
    return static_cast<float>(zero - 8) * (1.0f / Element<T>::kOffset);
  }

  /// Adds the sums of a group, times its scales. Columns are alike: each of the
  /// lanes that share rows takes one of the four blocks of outputs.
  __device__ void fold(int group) {
    const int u = lane & 3;
#pragma unroll
    for (int h = 0; h < HALVES; ++h) {
      const int row = group * HALVES + h;
      const float2 scales = loadScales(row);
#pragma unroll
      for (int n3 = 0; n3 < 2; ++n3) {
        const int i = 2 * n3;
        const float low = u & 1 ? total[h][1][i] : total[h][0][i];
        const float high = u & 1 ? total[h][3][i] : total[h][2][i];
        float value = (u & 2 ? high : low) + sum[i];
        if (p.zeros)
          value += zeroOf(row, n3) * sum[i];
        scaled[h][n3] += (n3 ? scales.y : scales.x) * value;
      }
    }
  }

  const TokenParameters &p;
  const TokenMemory lay;
  unsigned char *memory;
  const uint32_t barriers;
  const int lane;
  TokenPiece piece = {-1, 0, 0, 0};
  int index, part; ///< of the piece, of its warps
  int firstTile, firstGroup, steps = 0;
  float total[HALVES][4][4];
  float sum[4];
  float scaled[HALVES][2];
};

/// The sum of an output over `count` warps, `stride` floats apart, by four
/// lanes in an order of their own.
__device__ inline float sumWarps(const float *from, int count, int stride) {
  const auto lane = static_cast<int>(threadIdx.x) & 3;
  float values[kTokenWarps / 4];
#pragma unroll
  for (int i = 0; i < kTokenWarps / 4; ++i)
    values[i] = lane + 4 * i < count ? from[(lane + 4 * i) * stride] : 0.0f;
  float sum = (values[0] + values[1]) + (values[2] + values[3]);
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

/// Stores the first product's sums over the block's inputs.
__device__ inline void storeHalves(const TokenParameters &p,
                                   const TokenPiece *pieces,
                                   const float *sums) {
  const int warps = p.shares.pieceWarps;
  const auto item = static_cast<int>(threadIdx.x) >> 2;
  auto *out = static_cast<float *>(p.out) +
              static_cast<int>(blockIdx.z * p.routing.slots) * 2 * p.outWidth;
#pragma unroll 1
  for (int piece = 0; piece < p.shares.pieces; ++piece) {
    const float sum = sumWarps(sums + piece * warps * 128 + item, warps, 128);
    const TokenPiece &of = pieces[piece];
    const int half = item >> 6;
    if ((threadIdx.x & 3) == 0 && of.expert >= 0)
      out[(of.slot * 2 + half) * p.outWidth + of.column * 64 + (item & 63)] =
          sum;
  }
}

/// What the blocks of a cluster send to the first.
struct TokenMail {
  float sums[kTokenBlocks][64];
  uint64_t barrier;
};

/// Stores the second product's sums, of all blocks of the cluster.
__device__ inline void storeToken(const TokenParameters &p,
                                  const TokenPiece *pieces, const float *sums,
                                  TokenMail &mail) {
  const auto at = static_cast<int>(threadIdx.x), item = at >> 2,
             rank = static_cast<int>(blockIdx.z);
  const int blocks = p.shares.blocks;
  if (at == 0 && rank == 0 && blocks > 1)
    arriveAndExpect(sharedAddress(&mail.barrier), blocks * 256);
  if (item < 64) {
    const float sum =
        sumWarps(sums + item, p.shares.pieces * p.shares.pieceWarps, 64);
    if ((at & 3) == 0 && blocks > 1)
      sendFirst(&mail.sums[rank][item], &mail.barrier, sum);
    else if ((at & 3) == 0)
      mail.sums[0][item] = sum;
  }
  if (blocks == 1)
    __syncthreads();
  const int n = static_cast<int>(blockIdx.x) * 64 + at;
  if (rank > 0 || at >= 64)
    return;
  if (blocks > 1)
    waitFor(sharedAddress(&mail.barrier), 0);
  float sum = mail.sums[0][at];
#pragma unroll
  for (int block = 1; block < kTokenBlocks; ++block)
    if (block < blocks)
      sum += mail.sums[block][at];
  if (n >= p.outWidth)
    return;
  if (p.bias.data)
#pragma unroll 1
    for (int i = 0; i < p.shares.pieces; ++i)
      if (pieces[i].expert >= 0)
        sum += (p.weightOnInput ? 1.0f : pieces[i].weight) *
               biasAt(p, pieces[i].expert, n);
  storeElement(p.outType, p.out, n, sum);
}

/// The two products' blocks are in a multiprocessor at the same time: registers
/// are shared out by the threads that bounds speak of, not by those there are.
template <typename T, bool SWAP, int HALVES>
__global__ void __launch_bounds__(HALVES == 2 ? 896 : 576, HALVES == 2 ? 1 : 2)
    tokenKernelOf(const __grid_constant__ TokenParameters p) {
#if __CUDA_ARCH__ >= 900
  constexpr bool kFirst = HALVES == 2;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ uint64_t barriers[kTokenWarps][kTokenSteps + 1];
  __shared__ TokenPiece pieces[kTokenWarps];
  __shared__ float sums[kTokenWarps][HALVES * 64];
  __shared__ TokenMail mail;
  const auto index = static_cast<int>(threadIdx.x) >> 5;
  TokenWarp<T, SWAP, HALVES> warp(
      p, shared + index * TokenMemory(p.shares, p.zeros, HALVES).bytes,
      barriers[index]);
  if (kFirst) {
    if (threadIdx.x == 0) {
      prefetch(p.routing.ids);
      prefetch(p.routing.weights);
    }
    waitForPrevious();
    warp.fetchToken();
    warp.begin(pieces);
  } else {
    if (threadIdx.x == 0) {
      initBarrier(sharedAddress(&mail.barrier), 1);
      fenceBarriers();
    }
    // Routing comes from just before the first product, and whoever starts
    // after that sees it.
    warp.begin(pieces);
    warp.finishCopies();
    letNextStart();
    // Blocks write to each other's memory when all are there.
    if (p.shares.blocks > 1)
      syncCluster();
    waitForPrevious();
    warp.activateInputs();
    warp.waitForAll();
  }
  warp.run();
  if (kFirst)
    letNextStart();
  warp.store(sums[index]);
  __syncthreads();
  if (kFirst)
    storeHalves(p, pieces, sums[0]);
  else
    storeToken(p, pieces, sums[0], mail);
#endif
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_TOKENKERNEL_CUH
