//===- Stream.cuh - Products that stream weights ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For few tokens an expert: what counts is to read weights as fast as memory
// gives them. Groups of warps stay and take one piece of work after another: a
// column of outputs of an expert. Each warp of a group works on its share of
// the inputs, with a ring of shared memory of its own that the copy engine
// fills, from one piece to the next without a pause. A tile of 16 x 64 codes
// is, 16 bytes a thread, the operand of four matrix instructions as it lies.
// Codes are not brought to their values: products are taken of 128 + q, which
// costs one instruction for two codes, the sum of activations times -136 is
// added by one more matrix instruction for all outputs, and scales multiply the
// sums of a group. At the end the warps add up their sums in order.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_STREAM_CUH
#define WNA16_LIB_RUNTIME_CUDA_STREAM_CUH

#include "Experts.h"
#include "Fragments.cuh"
#include "Kernels.cuh"

namespace wna16::cuda {

/// Slots of one call that every block sorts by itself, and experts of which.
constexpr int kMaxListed = 512;
constexpr int kMaxListedExperts = 2048;
/// Inputs that a warp takes at a time.
constexpr int kUnitInputs = 128;
/// Bytes of a row of activations in shared memory: 16 more, so that rows lie in
/// different banks.
constexpr int kRingRow = 2 * kUnitInputs + 16;
/// Bytes of codes that a warp reads at a time, and how many such reads are
/// under way.
constexpr int kStageBytes = 4096;
constexpr int kStages = 2;
/// Blocks that a multiprocessor holds: the next product's are there, with their
/// first weights, when one product ends.
constexpr int kStreamBlocks = 2;
/// As many warps of a block as registers then allow.
constexpr int maxStreamWarps(int tokenTiles) { return tokenTiles == 1 ? 8 : 6; }

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
  int32_t tileStep;    ///< from a column's first tile to the next column's
  int32_t columns;     ///< pieces of work for each tile of slots and split
  int32_t mostSplits;  ///< second: of the inputs, where there are few pieces
  int32_t groupWarps;  ///< warps that share a piece's inputs
  DeviceBias bias;
  Routing routing;
  DeviceActivation activation;
  int32_t perSlot; ///< each slot is a tile: few experts are asked for twice
  const int32_t *order; ///< slots sorted by expert, or null: blocks sort them
  const Tile *tiles;
  const int32_t *numTiles;
  const void *in;
  void *out;
  int64_t inWidth, outWidth;
  ScalarType outType;
  int32_t first; ///< the first product
  int32_t gated;
  int32_t plainSilu; ///< the common activation, without a limit
  int32_t weightOnInput;
  int32_t *counters;
  int32_t numCounters; ///< first: to be cleared
  void *y;             ///< second: a column's last group sums into y
  ScalarType yType;
};

/// A kernel and the shared memory that each of its warps needs, and each slot
/// where blocks sort them.
struct StreamKernel {
  void (*function)(const StreamParameters);
  size_t warpBytes, slotBytes;
};

/// Defined for each combination in a file of its own.
template <typename T, int BITS, bool SWAP>
StreamKernel streamKernel(bool smallGroups, int tokenTiles);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_STREAM_CUH
