//===- ConvertSteps.cu - What looks at many inputs or scales at once ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "Kernels.cuh"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

static Launch launchFor(dim3 grid, cudaStream_t stream) {
  Launch how;
  how.grid = grid;
  how.block = kConvertThreads;
  how.stream = stream;
  return how;
}

//===----------------------------------------------------------------------===//
// Inputs sorted by group
//===----------------------------------------------------------------------===//

/// A warp lists the inputs of a group, in their order, after those of the
/// groups before. An index out of range counts as the nearest group, so that
/// every input has a place.
__global__ void __launch_bounds__(kConvertThreads)
    sortInputsKernel(const __grid_constant__ Conversion p) {
  const auto inputs = static_cast<int32_t>(p.source.input);
  const auto groups = static_cast<int32_t>(p.source.groups);
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  const int64_t warps = int64_t(gridDim.x) * (kConvertThreads / 32);
  for (int64_t item =
           (int64_t(blockIdx.x) * kConvertThreads + threadIdx.x) / 32;
       item < p.experts * groups; item += warps) {
    const int64_t expert = item / groups;
    const auto group = static_cast<int32_t>(item - expert * groups);
    const int32_t *groupOf = p.source.groupIndex + expert * inputs;
    int32_t *order = p.permutation + expert * inputs;
    auto at = [&](int32_t k) {
      return k < inputs ? min(max(groupOf[k], 0), groups - 1) : groups;
    };
    int32_t before = 0;
#pragma unroll 8
    for (int32_t k = lane; k < inputs; k += 32)
      before += at(k) < group;
    before = static_cast<int32_t>(
        __reduce_add_sync(~0u, static_cast<unsigned>(before)));
#pragma unroll 8
    for (int32_t first = 0; first < inputs; first += 32) {
      const bool mine = at(first + lane) == group;
      const uint32_t members = __ballot_sync(~0u, mine);
      if (mine)
        order[before + __popc(members & ((1u << lane) - 1))] = first + lane;
      before += __popc(members);
    }
  }
}

bool cuda::sortInputs(const char *kernel, const Conversion &p,
                      cudaStream_t stream) {
  constexpr int64_t kMaxBlocks = 132 * 16, kWarps = kConvertThreads / 32;
  const int64_t blocks = (p.experts * p.source.groups + kWarps - 1) / kWarps;
  return p.source.input == 0 ||
         launch(kernel, sortInputsKernel,
                launchFor(static_cast<unsigned>(
                              std::clamp<int64_t>(blocks, 1, kMaxBlocks)),
                          stream),
                p);
}

//===----------------------------------------------------------------------===//
// Scales folded into int16
//===----------------------------------------------------------------------===//

/// Positive floats count up as integers do. What is no number, or not positive,
/// is less than any.
__global__ void __launch_bounds__(kConvertThreads)
    largestScaleKernel(const __grid_constant__ Conversion p) {
  const int64_t count = p.experts * p.source.scales.size;
  const int64_t stride = int64_t(gridDim.x) * kConvertThreads;
  float largest = 0;
  for (int64_t i = int64_t(blockIdx.x) * kConvertThreads + threadIdx.x;
       i < count; i += stride)
    largest =
        fmaxf(largest, loadElement(p.source.scale, p.source.scaleData, i) /
                           scaleFactor(p.source.code));
  for (int lane = 16; lane > 0; lane /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lane));
  if (threadIdx.x % 32 == 0)
    atomicMax(reinterpret_cast<int *>(p.globalScale), __float_as_int(largest));
}

bool cuda::findLargestScale(const char *kernel, const Conversion &p,
                            cudaStream_t stream) {
  const int64_t count = p.experts * p.source.scales.size;
  const auto blocks = static_cast<unsigned>(
      std::clamp<int64_t>(count / kConvertThreads, 1, 1024));
  return check(kernel, "clearing the global scale",
               cudaMemsetAsync(p.globalScale, 0, sizeof(float), stream)) &&
         launch(kernel, largestScaleKernel, launchFor(blocks, stream), p);
}

__global__ void finishGlobalScaleKernel(float *scale) { *scale /= 4096.0f; }

bool cuda::finishGlobalScale(const char *kernel, const Conversion &p,
                             cudaStream_t stream) {
  Launch how = launchFor(1, stream);
  how.block = 1;
  return launch(kernel, finishGlobalScaleKernel, how, p.globalScale);
}

//===----------------------------------------------------------------------===//
// Sums of blocks
//===----------------------------------------------------------------------===//

/// A warp sums a block of the blocked CPU layout. Bytes count k0 k1 n0 n1 n2 n4
/// and further inputs, nibbles n3: a word holds four inputs of outputs n and
/// n + 8, and 16 words side by side all outputs.
__global__ void __launch_bounds__(kConvertThreads)
    sumBlocksKernel(const __grid_constant__ Conversion p, int64_t blockLength) {
  constexpr int kOutputs = 32, kColumns = 16;
  constexpr uint32_t kLow = 0x0f0f0f0f, kOnes = 0x01010101;
  const DeviceMap &map = p.target.codes;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t warps = int64_t(gridDim.x) * (kConvertThreads / 32);
  const int64_t tilesOfExpert = map.size / map.tile;
  const int64_t blocks = p.target.input / blockLength;
  for (int64_t tile =
           (int64_t(blockIdx.x) * kConvertThreads + threadIdx.x) / 32;
       tile < p.experts * tilesOfExpert; tile += warps) {
    uint8_t *data = p.codes + tile * map.tile / 2;
    const auto *words = reinterpret_cast<const uint32_t *>(data);
    unsigned low = 0, high = 0;
    for (int64_t k = lane / kColumns; k < blockLength / 4; k += 2) {
      const uint32_t word = words[k * kColumns + lane % kColumns];
      low = __dp4a(word & kLow, kOnes, low);
      high = __dp4a((word >> 4) & kLow, kOnes, high);
    }
    low += __shfl_xor_sync(~0u, low, kColumns);
    high += __shfl_xor_sync(~0u, high, kColumns);
    // The first half of the warp writes outputs n, the second n + 8.
    const int column = lane % kColumns;
    const int n = column % 8 + column / 8 * 16 + lane / kColumns * 8;
    const int64_t expert = tile / tilesOfExpert, at = tile % tilesOfExpert;
    const int64_t group = at % blocks * blockLength / p.target.group;
    const int64_t row = at / blocks * kOutputs + n;
    const int zero = zeroAt(p.target, expert, group, row);
    const auto sum = static_cast<int32_t>(lane < kColumns ? low : high);
    reinterpret_cast<int32_t *>(data + blockLength * kOutputs / 2)[n] =
        sum - zero * static_cast<int32_t>(blockLength);
  }
}

bool cuda::sumBlocks(const char *kernel, const Conversion &p,
                     int64_t blockLength, cudaStream_t stream) {
  const int64_t warps = p.experts * p.target.codes.size / p.target.codes.tile;
  const auto blocks = static_cast<unsigned>(
      std::clamp<int64_t>(warps / (kConvertThreads / 32), 1, 132 * 8));
  return launch(kernel, sumBlocksKernel, launchFor(blocks, stream), p,
                blockLength);
}
