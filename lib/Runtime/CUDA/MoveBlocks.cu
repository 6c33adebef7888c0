//===- MoveBlocks.cu - Blocks from one layout to another ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockMover.cuh"
#include "Convert.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

/// CUDA blocks that a multiprocessor holds: enough bytes under way.
static constexpr int kResident = 6;

/// CUDA blocks take turns, from move to move. Unrolled, so that a move's tables
/// are operands of instructions.
__global__ void __launch_bounds__(kMoveThreads, kResident)
    moveBlocksKernel(const __grid_constant__ BlockMoves p) {
  __shared__ __align__(128) MoverMemory<> shared;
  uint32_t first = blockIdx.x;
#pragma unroll
  for (int i = 0; i < BlockMoves::kMax; ++i) {
    if (i == p.count)
      return;
    const BlockMove &move = p.move[i];
    const uint32_t items = itemsOf(move);
    runMover(BlockMover(move, shared), first, items, gridDim.x);
    first = (first + gridDim.x - items % gridDim.x) % gridDim.x;
  }
}

bool cuda::moveBlocks(const char *kernel, const BlockMoves &moves,
                      cudaStream_t stream) {
  const DeviceInfo *device = currentDevice(kernel);
  int64_t items = 0;
  for (int i = 0; i < moves.count; ++i)
    items += itemsOf(moves.move[i]);
  if (!device || items == 0)
    return device;
  Launch how;
  how.grid = static_cast<unsigned>(
      std::min<int64_t>(items, device->multiprocessors * kResident));
  how.block = kMoveThreads;
  how.stream = stream;
  return launch(kernel, moveBlocksKernel, how, moves);
}
