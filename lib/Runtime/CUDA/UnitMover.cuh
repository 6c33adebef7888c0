//===- UnitMover.cuh - A CUDA block that moves scales and zero points -----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_UNITMOVER_CUH
#define WNA16_LIB_RUNTIME_CUDA_UNITMOVER_CUH

#include "ConvertValues.cuh"
#include "UnitMove.h"

namespace wna16::cuda {

__device__ inline float floatOfBits(ScalarType type, uint32_t bits) {
  switch (type) {
  case ScalarType::F16:
    return __half2float(__ushort_as_half(static_cast<uint16_t>(bits)));
  case ScalarType::BF16:
    return __uint_as_float(bits << 16);
  default:
    return __uint_as_float(bits);
  }
}

/// Writes the words that a thread holds: `fetch` has those from a number on.
template <int Words, typename Fetch>
__device__ void storeUnits(const BlockSide &side, uint8_t *to, Fetch fetch) {
  // Little code for little time: what is unrolled is enough to wait for at
  // once.
  if (side.wide) {
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      uint32_t words[4];
#pragma unroll
      for (int word = 0; word < 4; word += Words)
        fetch(4 * i + word, words + word);
      __stcs(reinterpret_cast<uint4 *>(to + side.bytes.access[i]),
             uint4{words[0], words[1], words[2], words[3]});
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < kHeldWords; i += Words) {
    uint32_t words[Words];
    fetch(i, words);
#pragma unroll
    for (int word = 0; word < Words; ++word)
      __stcs(reinterpret_cast<uint32_t *>(to + side.bytes.access[i + word]),
             words[word]);
  }
}

template <int FromBits, int ToBits>
__device__ void moveUnits(const UnitMove &move, const UnitPlace &place) {
  // As many units at a time as registers hold.
  constexpr int kWords = ToBits < 16 ? 1 : 4;
  storeUnits<kWords>(move.target, place.to, [&](int word, uint32_t *words) {
    fetchUnits<FromBits, ToBits, kWords>(
        move, place.unit, word, words, [&](uint32_t unit) {
          if constexpr (ToBits < 16)
            return (unit + move.zero.add) & move.zero.mask;
          else
            return move.scale.changes()
                       ? convertScale(move.scale,
                                      floatOfBits(move.scale.from, unit))
                       : unit;
        });
  });
}

/// Moves every `count`-th item from item `first` on.
__device__ inline void moveUnits(const UnitMove &move, uint32_t first,
                                 uint32_t count) {
  const uint32_t atOnce = uint32_t(kMoveThreads) >> move.threadBits;
  const uint32_t thread = threadIdx.x & ((1u << move.threadBits) - 1);
  for (uint32_t number = first * atOnce + (threadIdx.x >> move.threadBits);
       number < move.blocks; number += count * atOnce) {
    const UnitPlace place = unitPlace(move, number, thread);
    if (!place.moves || !move.from) {
      const uint32_t word = place.moves ? move.implied : 0;
      storeUnits<1>(move.target, place.to,
                    [word](int, uint32_t *words) { *words = word; });
      continue;
    }
    switch (move.fromBits << 8 | move.toBits) {
    case 4 << 8 | 4:
      moveUnits<4, 4>(move, place);
      break;
    case 4 << 8 | 8:
      moveUnits<4, 8>(move, place);
      break;
    case 8 << 8 | 4:
      moveUnits<8, 4>(move, place);
      break;
    case 8 << 8 | 8:
      moveUnits<8, 8>(move, place);
      break;
    case 16 << 8 | 16:
      moveUnits<16, 16>(move, place);
      break;
    case 16 << 8 | 32:
      moveUnits<16, 32>(move, place);
      break;
    case 32 << 8 | 16:
      moveUnits<32, 16>(move, place);
      break;
    default:
      moveUnits<32, 32>(move, place);
    }
  }
}

__host__ __device__ inline uint32_t itemsOf(const UnitMove &move) {
  const uint32_t atOnce = uint32_t(kMoveThreads) >> move.threadBits;
  return (move.blocks + atOnce - 1) / atOnce;
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_UNITMOVER_CUH
