//===- Token.cuh - Products of one token --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For one token whose experts' weights fit the shared memory of all
// multiprocessors: what counts is how long the chain of waiting is. Every warp
// asks for all of its codes at once, at most eight tiles of 16 inputs, and uses
// no memory twice. The second product's blocks are there with their codes
// before the first one ends.
//
// A piece of work is 64 outputs of a slot. The first product leaves sums of
// gate and up, over parts of the inputs where there are few pieces; whoever
// takes them as inputs adds them up and activates them. In the second product a
// block has all slots of a column, and a cluster shares their inputs.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_TOKEN_CUH
#define WNA16_LIB_RUNTIME_CUDA_TOKEN_CUH

#include "Experts.h"
#include "Fragments.cuh"
#include "Kernels.cuh"

namespace wna16::cuda {

/// Of a block; no more slots than that.
constexpr int kTokenWarps = static_cast<int>(Buffers::kPartSlots);
/// Input tiles of a warp at most.
constexpr int kTokenSteps = 8;
/// Blocks of a cluster at most, and parts of the first product's inputs.
constexpr int kTokenBlocks = 8;
constexpr int kTokenSplits = static_cast<int>(Buffers::kParts);
/// Bytes of a tile of 16 inputs by 64 outputs.
constexpr int kTokenTile = 512;

/// How a product is shared out.
struct TokenShares {
  int32_t blocks;     ///< that share inputs; second product: of a cluster
  int32_t teams;      ///< of so many blocks; second product: columns
  int32_t pieces;     ///< of a team
  int32_t pieceWarps; ///< of a block, which share a piece's inputs
  int32_t blockTiles; ///< input tiles of a block
  int32_t steps;      ///< input tiles of a warp
  int32_t groups;     ///< that these are in, at most
};

struct TokenParameters {
  const uint8_t *codes, *scales, *zeros; ///< zeros: or null
  int32_t inputTiles;
  int32_t rowTiles; ///< of 64 outputs, both halves
  int32_t columns;  ///< of 64 outputs, one half
  int32_t groups;
  int32_t groupTiles;  ///< input tiles that share a scale
  uint32_t groupMagic; ///< of these: divisionMagic
  int32_t zeroShift;   ///< 1: the zero points' order has n3 lowest
  TokenShares shares;
  DeviceBias biasIn; ///< second product: the first one's
  DeviceBias bias;
  Routing routing;
  DeviceActivation activation;
  int32_t plainSilu; ///< the common activation, without a limit
  int32_t weightOnInput;
  int32_t letAt; ///< first product: tiles of a warp before the next may start
  const void *in;
  void *out;
  int32_t inWidth, outWidth;
  ScalarType outType; ///< second product
  ScalarType element;
  int32_t splits; ///< second product: parts of the first one's inputs
};

/// What a warp keeps in shared memory, and where. `halves`: tiles of a step.
struct TokenMemory {
  int inputs, scales, zeros, bytes;

  __host__ __device__ TokenMemory(const TokenShares &shares, bool hasZeros,
                                  int halves)
      : inputs(shares.steps * halves * kTokenTile),
        scales(inputs + shares.steps * 32),
        zeros(scales + shares.groups * halves * 128),
        bytes(zeros + (hasZeros ? shares.groups * halves * 32 : 0)) {}
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_TOKEN_CUH
