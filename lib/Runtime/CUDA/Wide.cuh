//===- Wide.cuh - Products for many tokens an expert --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block multiplies 256 rows of weights with a tile of slots of one expert,
// then goes on to its next tile. Some warps bring data: the copy engine codes,
// scales and rows of activations that lie in the order of the slots; other rows
// the warps copy themselves. Eight warps compute: codes become 16-bit weights
// in registers, a step ahead of the matrix instructions that take them from
// there; in tiles of 32 slots without their scales, with which the sums of a
// group are multiplied. Gate and up of an output lie in one block, so the first
// product ends with the activation.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WIDE_CUH
#define WNA16_LIB_RUNTIME_CUDA_WIDE_CUH

#include "Experts.h"
#include "Fragments.cuh"
#include "Kernels.cuh"

namespace wna16::cuda {

/// Inputs of one step.
constexpr int kWideInputs = 64;
/// Rows of activations that the copy engine brings at a time.
constexpr int kWideRows = 32;

struct WideParameters {
  /// Words of a tile, row tiles, second half of a block, input tiles.
  CUtensorMap codes;
  CUtensorMap scales;
  CUtensorMap zeros;
  /// Rows in the order of the sorted slots, a tile or kWideRows at a time.
  CUtensorMap inputs[2];
  int32_t ordered; ///< there are such rows
  int32_t hasZeros;
  int32_t inputTiles; ///< of an expert
  int32_t rowTiles;
  int32_t groups;
  int32_t groupTiles;
  uint32_t groupMagic; ///< see divisionMagic
  /// Bits from a block of 16 outputs' zero point to the next block's, and to
  /// that of the output eight further.
  int32_t zeroSteps[2];
  uint32_t middle[2]; ///< by how much codes of the operand's middle are shifted
  int32_t scaleSteps; ///< steps that share scales
  int32_t secondTile; ///< from the first pair of row tiles to the second
  int32_t blockTiles; ///< row tiles from one block of rows to the next
  int32_t rowBlocks;
  DeviceBias bias;
  DeviceActivation activation;
  Routing routing;
  SortedSlots sorted;
  const void *in;
  void *out;
  int64_t inWidth, outWidth;
  int32_t first;
  int32_t weightOnInput;
};

/// What becomes of the sums: rows of outputs as they are, or gates and ups with
/// the activation between them.
enum class WideEnd { Rows, Silu, Any };

struct WideKernel {
  void (*function)(const WideParameters);
  size_t shared;
  unsigned threads;
};

/// Defined for each combination in a file of its own. `blocks`: of a
/// multiprocessor, two for tiles of 32 slots alone.
template <typename T, int BITS>
WideKernel wideKernel(WideEnd end, int tileSlots, int blocks);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDE_CUH
