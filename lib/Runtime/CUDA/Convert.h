//===- Convert.h - Steps of bringing a weight into another form ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What only permutes is moved block by block (MoveBlocks.cu), and so is what
// more happens to (MoveCodes.cu). The rest, edges of blocks and changes that
// fit no block, is written word by word: a thread finds out what each unit of
// its word is and fetches that (ConvertWords.cu).
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_CONVERT_H
#define WNA16_LIB_RUNTIME_CUDA_CONVERT_H

#include "ConvertParts.h"
#include "Device.h"

namespace wna16::cuda {

constexpr int kConvertThreads = 256;

/// Moves that one launch makes.
struct BlockMoves {
  static constexpr int kMax = 3;
  BlockMove move[kMax];
  int32_t count = 0;
};
static_assert(sizeof(BlockMoves) <= 4096, "parameters of any CUDA kernel");

/// A bias as kernels see it.
struct BiasConversion {
  DeviceBias source;
  DeviceMap target;
  void *out;
  int64_t experts, halves;
  int64_t sourceOutputs, output, outputs; ///< of a half; those that move
};

/// The words of a part; with `edges`, those of its blocks that do not move.
struct WordRange {
  BlockMove edges;
  int32_t onlyEdges = 0;
};

// Each launches one kernel; false, with a status, when it could not.
bool moveBlocks(const char *kernel, const BlockMoves &moves,
                cudaStream_t stream);
/// Blocks of codes, if there are any, with their work, and the other parts.
bool moveWeight(const char *kernel, const BlockMove &codes,
                const CodeWork &work, const UnitMoves &sides,
                cudaStream_t stream);
bool convertCodes(const char *kernel, const Conversion &p,
                  const WordRange &range, cudaStream_t stream);
bool convertElements(const char *kernel, const Conversion &p,
                     const WordRange &range, cudaStream_t stream);
bool convertScales(const char *kernel, const Conversion &p,
                   const WordRange &range, cudaStream_t stream);
bool convertZeros(const char *kernel, const Conversion &p,
                  const WordRange &range, cudaStream_t stream);
bool convertBias(const char *kernel, const BiasConversion &p,
                 cudaStream_t stream);

/// Counts, for each input of an expert, how many come before it when inputs are
/// sorted by group, those of a group in their order.
bool sortInputs(const char *kernel, const Conversion &p, cudaStream_t stream);
/// Writes the largest scale of the source where the global scale will be.
bool findLargestScale(const char *kernel, const Conversion &p,
                      cudaStream_t stream);
/// Makes a global scale of it.
bool finishGlobalScale(const char *kernel, const Conversion &p,
                       cudaStream_t stream);
/// Writes the sums after the blocks of the blocked CPU layout.
bool sumBlocks(const char *kernel, const Conversion &p, int64_t blockLength,
               cudaStream_t stream);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_CONVERT_H
