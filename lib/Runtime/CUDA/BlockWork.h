//===- BlockWork.h - What blocks become on their way ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables for what threads do to a block of codes beside moving it: codes are
// gathered in the order of their groups, rewritten around stored zero points,
// or summed. All follow from what the bits of the block's count are; a function
// returns none where they do not fit, and codes are then written word by word.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_BLOCKWORK_H
#define WNA16_LIB_RUNTIME_CUDA_BLOCKWORK_H

#include "BlockMove.h"
#include "Parameters.h"

namespace wna16::cuda {

//===----------------------------------------------------------------------===//
// Codes and their zero points
//===----------------------------------------------------------------------===//

/// The source's zero points of 4-bit codes, as blocks find them.
struct BlockZeros {
  DeviceMap map;
  const uint8_t *data = nullptr; ///< null: all are `implied`
  int32_t implied = 0;
  int32_t bits = 4;
  uint32_t add = 0, mask = 15;           ///< z = (stored + add) & mask
  int32_t innerBits = 0, outputBits = 0; ///< of a block
  int64_t outputs = 0;                   ///< of a half
  int64_t group = 1;                     ///< inputs; beyond the last for one
  ThreadTerms units; ///< of what a thread works on, within a block
};

/// Rewrites codes for fp8 activations around their zero points, or back.
struct BlockRecode {
  BlockZeros zeros;   ///< one for each word that a thread holds
  int32_t asRead = 0; ///< words as they are read; otherwise as written
  int32_t toFP8 = 0;
};

/// Sums of codes less their zero points, after each tile of the target.
struct BlockSums {
  BlockZeros zeros;     ///< of the sums of low and high nibbles
  ThreadTerms words;    ///< what a thread adds up, in shared memory
  ThreadTerms bytes;    ///< where the two sums go
  int32_t partBits = 0; ///< log2 of the threads that share them
  int32_t length = 0;   ///< inputs of a sum
};

/// Codes whose inputs are sorted by group.
struct BlockGather {
  const int32_t *rows = nullptr; ///< of each input, the source's
  int64_t inputs = 0;
  int32_t bits = 4;        ///< of a code
  int32_t innerBits = 0;   ///< of a block
  uint32_t stride = 0;     ///< bytes from a word to that with the next inputs
  ThreadTerms inputTerms;  ///< inputs
  ThreadTerms outputTerms; ///< bytes
};

/// At most one of these.
struct CodeWork {
  std::optional<BlockRecode> recode;
  std::optional<BlockSums> sums;
  std::optional<BlockGather> gather;

  bool any() const { return recode || sums || gather; }
};

/// A weight of which codes move.
struct CodeSource {
  const WeightSpec &spec;
  const DeviceWeight &weight;
};

std::optional<BlockRecode> planRecode(CodeSource source, CodeType to,
                                      const BlockBits &bits);
std::optional<BlockSums> planSums(CodeSource source, int64_t length,
                                  const BlockMove &move, const BlockBits &bits);
std::optional<BlockGather> planGather(CodeSource source, const int32_t *rows,
                                      const BlockMove &move,
                                      const BlockBits &bits);

//===----------------------------------------------------------------------===//
// What a thread does
//===----------------------------------------------------------------------===//

/// Eight codes with one zero point: v >= z ? v - z : 15 - v, or back.
WNA16_HOST_DEVICE inline uint32_t recodeWord(uint32_t word, uint32_t zero,
                                             bool toFP8) {
  constexpr uint32_t kLow = 0x0f0f0f0f, kOnes = 0x01010101;
  uint32_t result = 0;
  for (int half = 0; half < 8; half += 4) {
    const uint32_t codes = (word >> half) & kLow;
    // Bit 4 of a byte: whether the difference, or the sum, needs no other form.
    const uint32_t moved = toFP8 ? (codes | 0x10101010) - zero * kOnes
                                 : (codes + zero * kOnes) ^ 0x10101010;
    const uint32_t keeps = ((moved >> 4) & kOnes) * 15;
    result |= ((moved & keeps) | ((codes ^ kLow) & ~keeps & kLow)) << half;
  }
  return result;
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_BLOCKWORK_H
