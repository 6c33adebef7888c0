//===- UnitMove.h - Scales and zero points, unit by unit ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales and zero points are few beside codes, but more happens to them: they
// become other types, groups become finer, a target has more of them than the
// source, and the source may have no runs of words. So blocks are of the target
// alone, and a thread fetches each unit of its words from where the source has
// it: the sum of a term for each bit of the unit's number in its block.
//
// The functions here are what the kernel does; tests run them on the host.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_UNITMOVE_H
#define WNA16_LIB_RUNTIME_CUDA_UNITMOVE_H

#include "BlockMove.h"

namespace wna16::cuda {

/// Scales of one type as those of another. `global` folds them into int16.
struct ScaleChange {
  ScalarType from = ScalarType::BF16, to = ScalarType::BF16;
  float unit = 1;   ///< of stored scales
  float factor = 1; ///< of scales to store, by stored ones
  const float *global = nullptr;

  WNA16_HOST_DEVICE bool changes() const { return from != to || factor != 1; }
};

/// Stored zero points as others: (z + add) & mask.
struct ZeroChange {
  uint32_t add = 0, mask = ~0u;

  bool changes() const { return add != 0 || mask != ~0u; }
};

/// None where scales become others than by a factor and a type.
std::optional<ScaleChange> planScaleChange(const WeightSpec &source,
                                           const WeightSpec &target,
                                           const float *global);
ZeroChange planZeroChange(const WeightSpec &source, const WeightSpec &target);
/// Each byte of the target's zero points where codes of the source imply them.
uint8_t impliedZeros(const WeightSpec &source, const WeightSpec &target);

/// A move of scales (of 16 or 32 bits) or zero points (4 or 8). Counts all
/// blocks of the target; those that do not move are zeros.
struct UnitMove : BlockCount {
  const void *from = nullptr; ///< null: each byte is `implied`
  uint8_t *to = nullptr;
  BlockAddress source; ///< in units
  BlockSide target;
  ThreadTerms
      units; ///< of the source; accesses are the words that threads hold
  static constexpr int kUnitBits = 3;
  uint32_t inWord[kUnitBits] = {}; ///< by the bits of a unit's number in a word
  uint32_t inners = 0, outputs = 0; ///< blocks that move, of a half
  int32_t threadBits = 0;           ///< log2 of the threads that a block takes
  int32_t fromBits = 4, toBits = 4; ///< of a unit
  uint32_t implied = 0;             ///< a word
  ScaleChange scale;
  ZeroChange zero;
  bool exact = true; ///< blocks cover the target
};

/// Scales and zero points of a weight.
struct UnitMoves {
  static constexpr int kMax = 2;
  UnitMove move[kMax];
  int32_t count = 0;
};

/// `from` counts the source's groups, the target's are 2^`repeatBits` times
/// finer; the shape counts the target's in both. None where the target has no
/// blocks of words.
std::optional<UnitMove> planUnits(const AddressMap &from, int fromBits,
                                  const AddressMap &to, int toBits,
                                  MoveShape shape, int repeatBits,
                                  int64_t alignment);

//===----------------------------------------------------------------------===//
// What a thread does
//===----------------------------------------------------------------------===//

template <int Bits>
WNA16_HOST_DEVICE inline uint32_t loadUnit(const void *data, int64_t index) {
  if constexpr (Bits == 32)
    return static_cast<const uint32_t *>(data)[index];
  else if constexpr (Bits == 16)
    return static_cast<const uint16_t *>(data)[index];
  else if constexpr (Bits == 8)
    return static_cast<const uint8_t *>(data)[index];
  else
    return (static_cast<const uint8_t *>(data)[index >> 1] >>
            (4 * (index & 1))) &
           15;
}

/// What a thread writes: words from `to` on, made of units from `unit` on.
struct UnitPlace {
  uint8_t *to;
  int64_t unit;
  bool moves; ///< otherwise zeros
};

WNA16_HOST_DEVICE inline UnitPlace unitPlace(const UnitMove &move,
                                             uint32_t number, uint32_t thread) {
  const BlockPlace place = placeOf(move, number);
  UnitPlace result;
  result.to = move.to + addressOf(move.target, place) +
              sumOf(move.target.bytes, thread);
  result.moves = place.inner < move.inners && place.output < move.outputs;
  const uint32_t expert = place.expert;
  BlockPlace inExpert = place;
  inExpert.expert = 0;
  // In 32 bits, in which terms may count down.
  result.unit = expert * move.source.expert +
                (static_cast<uint32_t>(wordsTo(move.source, inExpert)) +
                 sumOf(move.units, thread));
  return result;
}

/// Words [Word, Word + Words) of those that a thread holds. `change`: a unit of
/// the source as one of the target.
template <int FromBits, int ToBits, int Words, typename Change>
WNA16_HOST_DEVICE inline void fetchUnits(const UnitMove &move, int64_t unit,
                                         int word, uint32_t *words,
                                         Change change) {
  constexpr int kUnits = 32 / ToBits;
  uint32_t held[Words][kUnits];
  for (int i = 0; i < Words; ++i)
    for (int u = 0; u < kUnits; ++u) {
      uint32_t offset = move.units.access[word + i];
      for (int bit = 0; 1 << bit < kUnits; ++bit)
        offset += u >> bit & 1 ? move.inWord[bit] : 0;
      held[i][u] =
          loadUnit<FromBits>(move.from, unit + static_cast<int32_t>(offset));
    }
  for (int i = 0; i < Words; ++i) {
    words[i] = 0;
    for (int u = 0; u < kUnits; ++u)
      words[i] |= change(held[i][u]) << (u * ToBits % 32);
  }
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_UNITMOVE_H
