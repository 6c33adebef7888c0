//===- WideKernel.cuh - The kernel of products for many tokens ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH
#define WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH

#include "WideWorker.cuh"

namespace wna16::cuda {

template <typename T, int BITS, WideEnd END, int TT, int BLOCKS>
__global__ void __launch_bounds__(WideShared<BITS, TT, BLOCKS>::kThreads,
                                  BLOCKS)
    wideKernelOf(const __grid_constant__ WideParameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shared = WideShared<BITS, TT, BLOCKS>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto &shared = *reinterpret_cast<Shared *>(memory);
  if (threadIdx.x == 0) {
    prefetchMap(p.codes);
    prefetchMap(p.scales);
    if (p.ordered)
      prefetchMap(p.inputs[0]);
    for (int i = 0; i < Shared::kStages; ++i) {
      initBarrier(sharedAddress(&shared.copied[i]), 32 * Shared::kInputWarps);
      initBarrier(sharedAddress(&shared.full[i]), 2);
      initBarrier(sharedAddress(&shared.empty[i]), 8);
    }
    for (int i = 0; i < Shared::kItems; ++i) {
      initBarrier(sharedAddress(&shared.known[i]), 1);
      initBarrier(sharedAddress(&shared.listed[i]), 32);
      initBarrier(sharedAddress(&shared.done[i]), 8 * 32);
    }
    fenceBarriers();
  }
  letNextStart();
  waitForPrevious();
  __syncthreads();
  const int tiles = *p.sorted.numTiles;
  if (threadIdx.x < 32 * Shared::kLoaders) {
    asm volatile(
        "setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Shared::kFewRegisters));
    WideLoader<BITS, TT, BLOCKS>(p, shared, tiles).run();
  } else {
    asm volatile(
        "setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Shared::kManyRegisters));
    WideWorker<T, BITS, END, TT, BLOCKS>(p, shared).run(tiles);
  }
#endif
}

template <typename T, int BITS, WideEnd END, int TT, int BLOCKS>
WideKernel wideKernelWith() {
  using Shared = WideShared<BITS, TT, BLOCKS>;
  return {wideKernelOf<T, BITS, END, TT, BLOCKS>, sizeof(Shared),
          Shared::kThreads};
}

template <typename T, int BITS, WideEnd END>
WideKernel wideKernelFor(int tileSlots, int blocks) {
  if (tileSlots == 32)
    return blocks == 2 ? wideKernelWith<T, BITS, END, 32, 2>()
                       : wideKernelWith<T, BITS, END, 32, 1>();
  return tileSlots == 64 ? wideKernelWith<T, BITS, END, 64, 1>()
                         : wideKernelWith<T, BITS, END, 128, 1>();
}

template <typename T, int BITS>
WideKernel wideKernel(WideEnd end, int tileSlots, int blocks) {
  switch (end) {
  case WideEnd::Rows:
    return wideKernelFor<T, BITS, WideEnd::Rows>(tileSlots, blocks);
  case WideEnd::Silu:
    return wideKernelFor<T, BITS, WideEnd::Silu>(tileSlots, blocks);
  default:
    return wideKernelFor<T, BITS, WideEnd::Any>(tileSlots, blocks);
  }
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WIDEKERNEL_CUH
