//===- BlockWork.h - What blocks become on their way ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables for what threads do to a block of codes beside moving it: codes are
// rewritten around stored zero points, summed, or sorted by group. All follow
// from what the bits of the block's count are; a function returns none where
// they do not fit, and codes are then written word by word.
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
  /// What a thread fetches at most.
  static constexpr int kFetched = 2;
  BlockZeros zeros;    ///< all of a block, as its threads fetch them
  uint32_t count = 1;  ///< of them
  ThreadTerms inTable; ///< which are those of the words that a thread holds
  int32_t asRead = 0;  ///< words as they are read; otherwise as written
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

/// Codes whose inputs are sorted by group, by way of a slice: all inputs of
/// some outputs in shared memory, where a word has outputs of one input. Blocks
/// go from the source into it, and from it into the target (BlockMove of the
/// work), which reads its rows in order.
struct BlockSort {
  BlockMove in;                  ///< into the slice
  ThreadTerms slice;             ///< bytes of what threads write into it
  const int32_t *rows = nullptr; ///< of each input, the source's
  int64_t inputs = 0;
  ThreadTerms inputTerms;  ///< of what threads read from it: inputs
  ThreadTerms outputTerms; ///< bytes
  uint32_t outputBits = 0; ///< of a slice
  uint32_t rowBits = 0;    ///< log2 of the bytes of an input in it
  uint32_t bytes = 0;
  Divisor inHalf;      ///< slices of a half
  uint32_t slices = 0; ///< of all experts
  /// Blocks of a slice, and along inputs.
  uint32_t blocksIn = 0, blocksOut = 0;
  uint32_t innersIn = 0, innersOut = 0;
  static constexpr uint32_t kMaxBlocks = kMoveThreads;
  static constexpr int64_t kWantedBytes = 64 * 1024, kMaxBytes = 192 * 1024;
};

/// At most one of these.
struct CodeWork {
  std::optional<BlockRecode> recode;
  std::optional<BlockSums> sums;
  std::optional<BlockSort> sort;

  bool any() const { return recode || sums || sort; }
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

/// `move` becomes that from a slice into the target.
std::optional<BlockSort> planSort(CodeSource source, const AddressMap &to,
                                  const int32_t *rows, const MoveShape &shape,
                                  int64_t alignment, BlockMove &move);

//===----------------------------------------------------------------------===//
// What a thread does
//===----------------------------------------------------------------------===//

/// Where a slice has a word of which inputs and outputs would say `bytes`:
/// threads whose inputs differ in high bits alone use other banks.
WNA16_HOST_DEVICE inline uint32_t inSlice(uint32_t bytes, uint32_t rowBits) {
  constexpr uint32_t kBanks = 32, kInWord = 2;
  return bytes ^ (((bytes >> (rowBits + 3)) % kBanks) << kInWord);
}

/// A slice's expert, half, and first output in slices.
WNA16_HOST_DEVICE inline BlockPlace placeOf(const BlockSort &sort,
                                            int32_t halves, uint32_t slice) {
  const uint32_t rest = divide(slice, sort.inHalf);
  const uint32_t gated = halves == 2;
  return {rest >> gated, rest & gated, 0, slice - rest * sort.inHalf.value};
}

/// A block of a slice: its bytes in the source or target, and what comes first
/// in the slice.
struct SliceBlock {
  int64_t bytes;
  uint32_t input, output;
};

WNA16_HOST_DEVICE inline SliceBlock
sliceBlock(const BlockAddress &side, const BlockSort &sort,
           const BlockMove &move, BlockPlace slice, uint32_t number,
           uint32_t inners) {
  const uint32_t output = number / inners, inner = number - output * inners;
  SliceBlock block;
  block.input = inner << move.innerBits;
  block.output = output << move.outputBits;
  slice.inner = inner;
  slice.output = (slice.output << (sort.outputBits - move.outputBits)) + output;
  block.bytes = addressOf(side, slice);
  return block;
}

/// 255 where a byte's highest bit is set, otherwise 0.
WNA16_HOST_DEVICE inline uint32_t spreadTops(uint32_t word) {
#ifdef __CUDA_ARCH__
  uint32_t spread;
  asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(spread) : "r"(word));
  return spread;
#else
  return ((word >> 7) & 0x01010101) * 255;
#endif
}

/// Eight codes with one zero point: v >= z ? v - z : 15 - v, or back.
WNA16_HOST_DEVICE inline uint32_t recodeWord(uint32_t word, uint32_t zero,
                                             bool toFP8) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  const uint32_t zeros = zero * 0x01010101;
  uint32_t halves[2];
  for (int i = 0; i < 2; ++i) {
    const uint32_t codes = (word >> (4 * i)) & kLow;
    // The highest bit of a byte: whether the difference is none below 0, or the
    // sum is none that a code holds.
    const uint32_t moved =
        toFP8 ? (codes | 0x80808080) - zeros : codes + zeros + 0x70707070;
    const uint32_t tops = spreadTops(moved);
    const uint32_t keeps = toFP8 ? tops : ~tops;
    halves[i] = (moved & keeps) | (~codes & ~keeps);
  }
  return (halves[0] & kLow) | ((halves[1] << 4) & ~kLow);
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_BLOCKWORK_H
