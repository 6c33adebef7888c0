//===- WideWorker.cuh - Weights and products for many tokens --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WIDEWORKER_CUH
#define WNA16_LIB_RUNTIME_CUDA_WIDEWORKER_CUH

#include "Wgmma.cuh"
#include "WideLoader.cuh"

namespace wna16::cuda {

/// Each group of four warps has 64 rows of the first pair of row tiles and 64
/// of the second. A warp has 32 rows of one tile, as two matrix operands.
template <typename T, int BITS, WideEnd END, int TT, int BLOCKS>
class WideWorker {
  using Shared = WideShared<BITS, TT, BLOCKS>;
  using Stage = typename Shared::Stage;
  static_assert(offsetof(Shared, empty) ==
                    offsetof(Shared, full) + sizeof(Shared::full),
                "found from there");
  static constexpr int kWords = BITS / 4; ///< of an operand's codes
  /// Input tiles that are handed over at a time.
  static constexpr int kBatch = BLOCKS == 2 ? 1 : 2;
  /// The numbers of columns that there are instructions for.
  static constexpr int kFirst = TT == 32 ? 8 : TT == 64 ? 32 : 64;
  static constexpr int kStep = TT / 4;

public:
  __device__ WideWorker(const WideParameters &p, Shared &shared)
      : p(p), shared(shared), lane(threadIdx.x & 31),
        warp((static_cast<int>(threadIdx.x) >> 5) - Shared::kLoaders),
        group(warp >> 2), pair(warp >> 1 & 1), half(warp & 1),
        stages(opaque(sharedAddress(shared.stages))),
        full(opaque(sharedAddress(shared.full))), steps(p.inputTiles / 4),
        scaleSteps(p.scaleSteps), secondGroup(p.groups > 1 && p.groupTiles < 4),
        outputBytes(p.groups > 1 ? 2 : 4),
        zeroBit(opaque(2 * half * p.zeroSteps[0])) {
    const int g = lane >> 2;
    codesAt = offsetof(Stage, codes) + pair * sizeof(Stage::codes[0][0]) +
              (group * 32 + lane) * 4 * BITS + half * 2 * BITS;
    // One group has an order of its own.
    scalesAt = offsetof(Stage, scales) + pair * sizeof(Stage::scales[0][0]) +
               group * sizeof(Stage::scales[0][0][0]) +
               (p.groups > 1 ? g * 16 + half * 8
                             : half * 64 + (g & 1) * 2 + (g >> 1) * 16);
    zerosAt =
        opaque(offsetof(Stage, zeros) + pair * sizeof(Stage::zeros[0][0]) +
               group * sizeof(Stage::zeros[0][0][0]) + g * 4);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      offset[i >> 1][i & 1] = Element<T>::kMinusOffset & 0x7fff7fff;
  }

  __device__ void run(int tiles) {
    const int items = tiles * p.rowBlocks;
    for (int i = blockIdx.x; i < items; i += gridDim.x, ++number) {
      const int q = number % Shared::kItems;
      waitFor(sharedAddress(&shared.known[q]), number / Shared::kItems & 1);
      multiplyAtLeast<kFirst>(shared.items[q].count);
      __syncwarp();
      arrive(sharedAddress(&shared.done[q]));
    }
  }

private:
  /// With the fewest columns that there are instructions for.
  template <int N>
  __device__ void multiplyAtLeast(int count) {
    if constexpr (N < TT)
      if (count > N)
        return multiplyAtLeast<N + kStep>(count);
    multiply<N>();
  }

  /// Kept in a register instead of being found out again.
  static __device__ uint32_t opaque(uint32_t value) {
    uint32_t result;
    asm volatile("mov.u32 %0, %1;" : "=r"(result) : "r"(value));
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Codes to weights
  //===--------------------------------------------------------------------===//

  /// Two scales of each operand, in both halves of a register. Group 1 is that
  /// of a step's second half, if groups are that short.
  __device__ void loadScales(int place, int groupOfStep) {
    const uint32_t scales =
        stageAt(place) + scalesAt + groupOfStep * int(sizeof(Stage::scales[0]));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int j = i >> 1, n3 = i & 1;
      uint16_t value;
      asm volatile("ld.shared.u16 %0, [%1];"
                   : "=h"(value)
                   : "r"(scales + (2 * j + n3) * outputBytes));
      scale[j][n3] = __byte_perm(value, 0, 0x1010);
    }
  }

  /// What to take from codes, if there are zero points.
  __device__ void loadOffsets(int place, int groupOfStep) {
    if (!p.hasZeros)
      return;
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];"
                 : "=r"(word)
                 : "r"(stageAt(place) + zerosAt +
                       groupOfStep * int(sizeof(Stage::zeros[0]))));
    word >>= zeroBit;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int j = i >> 1, n3 = i & 1;
      const uint32_t z = word >> (j * p.zeroSteps[0] + n3 * p.zeroSteps[1]);
      offset[j][n3] =
          andOr(__byte_perm(z, 0, 0x4040), 0x000f000f, Element<T>::kMagic);
    }
  }

  static __device__ void loadWords(uint32_t at, uint32_t (&to)[2]) {
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(at)
                 : "memory");
  }
  static __device__ void loadWords(uint32_t at, uint32_t (&to)[4]) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  }

  /// The 16 x 16 weights of an operand.
  __device__ void decode(const uint32_t *word, int j, uint32_t (&a)[4]) const {
    if constexpr (BITS == 4) {
      constexpr uint32_t kMask = 0x000f000f;
      constexpr uint32_t kMagic = Element<T>::kMagic;
      a[0] = andOr(word[0], kMask, kMagic);
      a[1] = andOr(word[0] >> p.middle[0], kMask, kMagic);
      a[2] = andOr(word[0] >> p.middle[1], kMask, kMagic);
      a[3] = andOr(word[0] >> 12, kMask, kMagic);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = Element<T>::sub(a[i], offset[j][i & 1]);
    } else {
      a[0] = decodeBytes<T>(word[0]);
      a[1] = decodeBytes<T>(__funnelshift_rc(word[0], word[1], p.middle[0]));
      a[2] = decodeBytes<T>(__funnelshift_rc(word[0], word[1], p.middle[1]));
      a[3] = decodeBytes<T>(word[1] >> 8);
    }
    if constexpr (!Shared::kScalesSums) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = Element<T>::mul(a[i], scale[j][i & 1]);
    }
  }

  __device__ uint32_t stageAt(int place) const {
    return stages + place * static_cast<int>(sizeof(Stage));
  }

  /// This warp's codes of the four input tiles of a step, once they have come.
  __device__ void loadCodes(uint32_t (&words)[4][2 * kWords]) const {
    waitFor(full + at.index * 8, at.phase);
#pragma unroll
    for (int tile = 0; tile < 4; ++tile)
      loadWords(stageAt(at.index) + codesAt +
                    tile * int(sizeof(Stage::codes[0])),
                words[tile]);
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// All products of an item. Columns nobody asked for are left out, since
  /// decoding does not hide them; the end takes 32 at a time.
  template <int N>
  __device__ void multiply() {
    constexpr int kColumns = (N + 31) / 32 * 32;
    float all[2][kColumns / 2] = {};
    if constexpr (Shared::kScalesSums) {
      multiplyGroups<N>(all);
    } else {
      float sums[2][N / 2] = {};
      multiplyWeights<N>(sums);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < N / 2; ++i)
          all[j][i] = sums[j][i];
    }
    finish<kColumns>(all);
  }

  /// Codes of some inputs become weights while the matrix instructions of those
  /// before run.
  template <int N>
  __device__ void multiplyWeights(float (&sums)[2][N / 2]) {
    uint32_t words[4][2 * kWords];
    loadCodes(words);
    for (int s = 0, untilScales = 0; s < steps; ++s, --untilScales) {
      if (untilScales == 0) {
        loadScales(at.index, 0);
        loadOffsets(at.index, 0);
        untilScales = scaleSteps;
      }
      multiplyStep<N>(s, words, sums);
    }
    waitForProducts<0>();
    release(before);
  }

  template <int N>
  __device__ void multiplyStep(int s, uint32_t (&words)[4][2 * kWords],
                               float (&sums)[2][N / 2]) {
    constexpr int kBatches = 4 / kBatch;
    const uint64_t inputs = swizzledOperand(stageAt(at.index));
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
      auto &operand = operands[batch & 1];
      if (batch * kBatch == 2 && secondGroup) {
        loadScales(at.index, 1);
        loadOffsets(at.index, 1);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          decode(words[kBatch * batch + i] + j * kWords, j, operand[i][j]);
      fenceRegisters();
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          Wgmma<T, N>::run(sums[j], operand[i][j],
                           inputs + 2 * (kBatch * batch + i));
      commitProducts();
      if (batch == kBatches - 1) {
        // Codes come from shared memory while products are waited for.
        before = at.index;
        at.advance();
        if (s + 1 < steps)
          loadCodes(words);
      }
      // The ones before are done: their registers can be written again.
      waitForProducts<1>();
      if (batch == 0 && s > 0)
        release(before);
    }
  }

  /// Sums of a group are scaled and added up. No products are under way where a
  /// step ends: the compiler would otherwise wait for each matrix instruction
  /// by itself, since sums are read there.
  template <int N, int COUNT>
  __device__ void multiplyGroups(float (&total)[2][COUNT]) {
    constexpr int kLast = 4 / kBatch - 1;
    uint32_t words[4][2 * kWords];
    float sums[2][N / 2] = {};
    loadCodes(words);
    loadScales(at.index, 0);
    loadOffsets(at.index, 0);
    decodeBatch(words, 0);
    int untilScales = scaleSteps, added = 0;
    for (int s = 0; s < steps; ++s) {
      const int place = at.index;
      const bool more = s + 1 < steps;
      const uint64_t inputs = swizzledOperand(stageAt(place));
#pragma unroll
      for (int batch = 0; batch <= kLast; ++batch) {
        if (batch * kBatch == 2 && secondGroup) {
          addGroup<N>(sums, total);
          loadScales(place, 1);
          added = 0;
        }
        fenceRegisters();
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j)
            Wgmma<T, N>::run(sums[j], operands[batch & 1][i][j],
                             inputs + 2 * (kBatch * batch + i),
                             i == 0 ? added : 1);
        commitProducts();
        added = 1;
        if (batch < kLast) {
          if ((batch + 1) * kBatch == 2 && secondGroup)
            loadOffsets(place, 1);
          decodeBatch(words, batch + 1);
        } else {
          at.advance();
          if (more)
            loadCodes(words);
          if (more && untilScales == 1)
            loadOffsets(at.index, 0);
          decodeBatch(words, 0);
        }
        waitForProducts<0>();
      }
      if (--untilScales == 0) {
        addGroup<N>(sums, total);
        if (more)
          loadScales(at.index, 0);
        untilScales = scaleSteps;
        added = 0;
      }
      release(place);
    }
  }

  __device__ void decodeBatch(const uint32_t (&words)[4][2 * kWords],
                              int batch) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        decode(words[kBatch * batch + i] + j * kWords, j,
               operands[batch & 1][i][j]);
  }

  template <int N, int COUNT>
  __device__ void addGroup(const float (&sums)[2][N / 2],
                           float (&total)[2][COUNT]) const {
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int i = 0; i < N / 2; ++i)
        total[j][i] = fmaf(Element<T>::low(scale[j][i >> 1 & 1]), sums[j][i],
                           total[j][i]);
  }

  __device__ void release(int place) const {
    if (isElected())
      arrive(full + (Shared::kStages + place) * 8);
  }

  //===--------------------------------------------------------------------===//
  // The end of an item
  //===--------------------------------------------------------------------===//

  /// Until the other three warps are here too.
  __device__ void syncGroup() const {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  }

  template <int N>
  __device__ void finish(float (&sums)[2][N / 2]) {
    waitFor(sharedAddress(&shared.listed[number % Shared::kItems]),
            number / Shared::kItems & 1);
    adjust<N>(sums);
    const auto &item = shared.items[number % Shared::kItems];
    const int64_t row =
        int64_t(item.rows * p.blockTiles + group) * 64 + half * 32;
    if constexpr (END == WideEnd::Rows) {
      const int64_t at = row + pair * p.secondTile * 64;
      storeRows<N / 2, 0>(at, 0, sums);
      storeRows<N / 2, N / 4>(at, N / 2, sums);
    } else {
      storeActivated<N>(row, sums);
    }
  }

  /// Weights of slots and biases of rows.
  template <int N>
  __device__ void adjust(float (&sums)[2][N / 2]) const {
    const float *weights = shared.items[number % Shared::kItems].weights;
    if (p.bias.data) {
      const auto &item = shared.items[number % Shared::kItems];
      const int64_t row =
          int64_t(item.rows * p.blockTiles + group + pair * p.secondTile) * 64 +
          half * 32 + (lane >> 2);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float bias[2];
#pragma unroll
        for (int n3 = 0; n3 < 2; ++n3) {
          const int64_t n = row + 16 * j + 8 * n3;
          bias[n3] = n < int64_t(p.rowTiles) * 64
                         ? biasOf(p.bias, item.expert, n)
                         : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
          const float weight = weights[slotOf(i)];
          // The routing weight of x comes out of the product.
          sums[j][i] = END == WideEnd::Rows
                           ? (sums[j][i] + bias[i >> 1 & 1]) * weight
                           : sums[j][i] * weight + bias[i >> 1 & 1];
        }
      }
    } else if (END == WideEnd::Rows || p.weightOnInput) {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        const float weight = weights[slotOf(i)];
        sums[0][i] *= weight;
        sums[1][i] *= weight;
      }
    }
  }

  /// The gates of an output are in one warp, its ups in another: both write
  /// what they have, half of the slots at a time, and each reads half of that.
  template <int N>
  __device__ void storeActivated(int64_t row, const float (&sums)[2][N / 2]) {
    constexpr int kBlocks = N / 16; // of eight slots, in half a tile
    auto piece = [&](int of) {
      return reinterpret_cast<float4 *>(shared.exchange[of]) + lane;
    };
    float4 *mine = piece(warp);
    const float4 *gates = piece(warp & ~2) + pair * kBlocks / 2 * 32;
    const float4 *ups = piece(warp | 2) + pair * kBlocks / 2 * 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float values[2][N / 8];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        // The other warp has read what was there before.
        if (j == 1)
          syncGroup();
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          const float *from = sums[j] + (h * kBlocks + b) * 4;
          mine[b * 32] = {from[0], from[1], from[2], from[3]};
        }
        syncGroup();
#pragma unroll
        for (int b = 0; b < kBlocks / 2; ++b) {
          const float4 gate = gates[b * 32], up = ups[b * 32];
          float *to = values[j] + b * 4;
          to[0] = activateOne(gate.x, up.x);
          to[1] = activateOne(gate.y, up.y);
          to[2] = activateOne(gate.z, up.z);
          to[3] = activateOne(gate.w, up.w);
        }
      }
      syncGroup();
      storeRows<N / 4, 0>(row, h * (N / 2) + pair * (N / 4), values);
    }
  }

  __device__ float activateOne(float gate, float up) const {
    return END == WideEnd::Silu ? fastSwish(gate) * up
                                : activateAny(p.activation, gate, up);
  }

  /// Without a branch: many are under way at once.
  __device__ static float fastSwish(float x) {
    float power, inverse;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * -1.44269504f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + power));
    return x * inverse;
  }

  /// Out of line: all of them together would be long.
  static __noinline__ __device__ float
  activateAny(const DeviceActivation &activation, float gate, float up) {
    return activate(activation, gate, up);
  }

  /// Which slot of the tile value i of an operand belongs to.
  __device__ int slotOf(int i) const {
    return i / 4 * 8 + 2 * (lane & 3) + (i & 1);
  }

  /// Stores 32 outputs of slots [firstSlot, firstSlot + N), whose values begin
  /// at FIRST, by way of rows in the warp's piece of shared memory.
  template <int N, int FIRST, int COUNT>
  __device__ void storeRows(int64_t row, int firstSlot,
                            const float (&values)[2][COUNT]) {
    unsigned char *rows =
        reinterpret_cast<unsigned char *>(shared.exchange[warp]);
    // Neighbouring rows lie in different banks.
    auto place = [&](int slot, int piece) {
      return rows + slot * 64 + ((piece ^ (slot >> 1 & 3)) << 4);
    };
    __syncwarp();
#pragma unroll
    for (int block = 0; block < N / 8; ++block) {
      // Four matrices of 8 x 8: pieces of eight slots.
      uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float *from = &values[q >> 1][FIRST + block * 4 + 2 * (q & 1)];
        packed[q] = pack(from[0], from[1]);
      }
      const int slot = block * 8 + (lane & 7);
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], "
          "{%1,%2,%3,%4};" ::"r"(sharedAddress(place(slot, lane >> 3))),
          "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
          : "memory");
    }
    __syncwarp();
    const int piece = lane & 3;
    if (row + piece * 8 >= p.outWidth)
      return;
    auto *out = static_cast<T *>(p.out) + row + piece * 8;
    const int *slots = shared.items[number % Shared::kItems].slots + firstSlot;
#pragma unroll
    for (int i = 0; i < N / 8; ++i) {
      const int at = i * 8 + (lane >> 2);
      const int slot = slots[at];
      const uint4 data = *reinterpret_cast<const uint4 *>(place(at, piece));
      if (slot >= 0)
        *reinterpret_cast<uint4 *>(out + slot * p.outWidth) = data;
    }
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
  const uint32_t stages, full;         ///< addresses in shared memory
  const int steps;                     ///< of an item
  const int scaleSteps;                ///< that share scales
  const bool secondGroup;              ///< a step has inputs of two groups
  const int outputBytes;               ///< from a lane's scale to its next
  const uint32_t zeroBit;              ///< of the lane's first zero point
  uint32_t codesAt, scalesAt, zerosAt; ///< of the lane, in a stage
  RingPlace<Shared::kStages> at;
  int before = 0; ///< place of the step before
  int number = 0; ///< of the item
  uint32_t operands[2][kBatch][2][4];
  uint32_t scale[2][2];
  uint32_t offset[2][2];
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDEWORKER_CUH
