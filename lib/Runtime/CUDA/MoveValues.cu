//===- MoveValues.cu - Blocks of scales and zero points that change -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockMover.cuh"
#include "Convert.h"
#include "ConvertValues.cuh"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

/// CUDA blocks that a multiprocessor holds.
static constexpr int kResident = 4;

namespace {

/// Moves blocks of the source's units, and changes them when they are stored.
class ValueMover : public BlockMover {
public:
  __device__ ValueMover(const BlockMove &move, const UnitChange &change,
                        MoverMemory &shared)
      : BlockMover(move, shared), change(change) {
    out <<= move.widens;
  }

  __device__ void store(Target to, uint32_t stage) const {
    const BlockSide &side = move.target;
    const uint8_t *from = shared.buffer[stage];
    if (side.wide) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        storeVector(to + (side.bytes.access[i] << move.widens),
                    *reinterpret_cast<const uint4 *>(
                        from + (drain ^ side.shared.access[i])));
      return;
    }
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i) {
      uint32_t words[2];
      changeWord(*reinterpret_cast<const uint32_t *>(
                     from + (drain ^ side.shared.access[i])),
                 words);
      auto *out = reinterpret_cast<uint32_t *>(
          to + (side.bytes.access[i] << move.widens));
      out[0] = words[0];
      if (move.widens)
        out[1] = words[1];
    }
  }

private:
  __device__ void storeVector(uint8_t *to, uint4 vector) const {
    const uint32_t from[] = {vector.x, vector.y, vector.z, vector.w};
    uint32_t words[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      changeWord(from[i], words[i]);
    auto *out = reinterpret_cast<uint4 *>(to);
    if (!move.widens) {
      out[0] = {words[0][0], words[1][0], words[2][0], words[3][0]};
      return;
    }
    out[0] = {words[0][0], words[0][1], words[1][0], words[1][1]};
    out[1] = {words[2][0], words[2][1], words[3][0], words[3][1]};
  }

  __device__ void changeWord(uint32_t word, uint32_t (&out)[2]) const {
    if (change.isZero)
      changeZeros(change.zero, word, out);
    else
      changeScales(word, out);
  }

  __device__ void changeScales(uint32_t word, uint32_t (&out)[2]) const {
    const ScaleChange &scale = change.scale;
    if (scale.from == ScalarType::F32) {
      out[0] = convertScale(scale, __uint_as_float(word));
      out[1] = 0;
      return;
    }
    out[0] = convertScale(scale, floatOf(word & 0xffff));
    out[1] = convertScale(scale, floatOf(word >> 16));
    if (!move.widens)
      out[0] |= out[1] << 16;
  }

  __device__ float floatOf(uint32_t bits) const {
    return change.scale.from == ScalarType::F16
               ? __half2float(__ushort_as_half(static_cast<uint16_t>(bits)))
               : __uint_as_float(bits << 16);
  }

  const UnitChange &change;
};

} // namespace

__global__ void __launch_bounds__(kMoveThreads, kResident)
    moveValuesKernel(const __grid_constant__ ValueMoves p) {
  __shared__ __align__(128) MoverMemory shared;
  uint32_t first = blockIdx.x;
  for (int i = 0; i < p.count; ++i) {
    const uint32_t items = itemsOf(p.move[i]);
    runMover(ValueMover(p.move[i], p.change[i], shared), first, items,
             gridDim.x);
    first = (first + gridDim.x - items % gridDim.x) % gridDim.x;
  }
}

bool cuda::moveValues(const char *kernel, const ValueMoves &moves,
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
  return launch(kernel, moveValuesKernel, how, moves);
}
