//===- Stream.cuh - Products that stream weights ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For few tokens an expert: what counts is to read weights as fast as memory
// gives them. Warps work by themselves, each on its share of the inputs and
// with a ring of shared memory of its own, which the copy engine fills. A tile
// of 16 x 64 codes is, 16 bytes a thread, the operand of four matrix
// instructions as it lies. Codes are not brought to their values: products are
// taken of 128 + q, which costs one instruction for two codes, the sum of
// activations times -136 is added by one more matrix instruction for all
// outputs, and scales multiply the sums of a group. At the end the warps add up
// their sums in order.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAM_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAM_CUH

#include "Experts.h"
#include "Fragments.cuh"
#include "Kernels.cuh"

namespace wna16::cuda {

/// Slots of one call that every block can look through by itself.
constexpr int kMaxListed = 512;
/// Inputs that a warp takes at a time.
constexpr int kUnitInputs = 128;
/// Bytes of a row of activations in shared memory: 16 more, so that rows lie in
/// different banks.
constexpr int kRingRow = 2 * kUnitInputs + 16;
/// Bytes of codes that a warp reads at a time, and how many such reads are
/// under way.
constexpr int kStageBytes = 4096;
#ifndef STAGES
#define STAGES 2
#endif
constexpr int kStages = STAGES;
/// As many warps of a block as registers allow.
constexpr int maxStreamWarps(int tokenTiles) {
  return tokenTiles == 1 ? 16 : 12;
}

struct StreamParameters {
  CUtensorMap codes;  ///< words of a tile, row tiles, input tiles
  CUtensorMap scales; ///< of a tile, row tiles, groups
  CUtensorMap zeros;
  int32_t hasZeros;
  int32_t inputTiles;
  int32_t rowTiles; ///< of 64 outputs, all halves
  int32_t groups;
  uint32_t groupMagic; ///< of input tiles that share a scale: divisionMagic
  int32_t zeroShift;   ///< 1: the zero points' order has n3 lowest
  int32_t secondTile;  ///< from the first tile of a block to its second
  int32_t tileStep;    ///< from a block's first tile to the next block's
  DeviceBias bias;
  Routing routing;
  DeviceActivation activation;
  const int32_t *order; ///< slots sorted by expert, or null: blocks look
  const int32_t *begin;
  const void *in;
  void *out;
  int64_t inWidth, outWidth;
  ScalarType outType;
  int32_t first; ///< the first product
  int32_t gated;
  int32_t plainSilu; ///< the common activation, without a limit
  int32_t weightOnInput;
  int32_t bySlot; ///< the grid's second axis: slots; otherwise experts
  int32_t *counters;
  int32_t numCounters; ///< first: to be cleared
  void *y;             ///< second: the last block of a column sums into y
  ScalarType yType;
};

/// A kernel and the shared memory that each of its warps needs.
struct StreamKernel {
  void (*function)(const StreamParameters);
  size_t warpBytes;
};

/// Defined for each combination in a file of its own.
template <typename T, int BITS, bool SWAP>
StreamKernel streamKernel(bool smallGroups, int tokenTiles);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_STREAM_CUH
