//===- DeviceCeilings.cu - What a device can do at most -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

#include "DeviceMemory.h"

// The matrix instructions of the runtime's own kernels.
#include "../../lib/Runtime/CUDA/Fragments.cuh"
#include "../../lib/Runtime/CUDA/Wgmma.cuh"

#include <algorithm>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Reads everything, eight pieces of 16 bytes a thread at a time; `out` gets a
/// word that nobody expects, so that nothing can be left out.
static __global__ void readKernel(const uint4 *from, int64_t count,
                                  uint4 *out) {
  constexpr int kAtOnce = 8;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  uint32_t sum = 0;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += kAtOnce * step) {
    uint4 values[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (i + j * step < count)
        values[j] = __ldcs(from + i + j * step);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      sum ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
  }
  if (sum == 0x5eed5eed)
    out->x = sum;
}

static __global__ void copyKernel(const uint4 *from, int64_t count, uint4 *to) {
  constexpr int kAtOnce = 4;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += kAtOnce * step) {
    uint4 values[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (i + j * step < count)
        values[j] = __ldcs(from + i + j * step);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (i + j * step < count)
        __stcs(to + i + j * step, values[j]);
  }
}

static constexpr int kTensorThreads = 256, kTensorRounds = 4096;

/// Values of about one: random bits would be infinities.
static __device__ uint4 tamed(uint4 pairs) {
  for (uint32_t *pair : {&pairs.x, &pairs.y, &pairs.z, &pairs.w})
    *pair = (*pair & 0x807f807f) | 0x3f003f00;
  return pairs;
}

/// Products of random 16-bit operands: 64 x 128 x 16 for four warps and round,
/// as one matrix instruction or as its 64 parts.
static __global__ void __launch_bounds__(kTensorThreads, 2)
    tensorKernel(const uint4 *operands, float *out) {
  using T = __nv_bfloat16;
  __shared__ __align__(1024) uint4 columns[128 * 8];
  for (int i = threadIdx.x; i < 128 * 8; i += kTensorThreads)
    columns[i] = tamed(operands[i]);
  const uint4 rows = tamed(operands[threadIdx.x]);
  const uint32_t a[4] = {rows.x, rows.y, rows.z, rows.w};
  __syncthreads();
  float sums[64] = {};
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  cuda::fenceCopies();
  __syncthreads();
  const uint64_t b = cuda::swizzledOperand(cuda::sharedAddress(columns));
  for (int round = 0; round < kTensorRounds; ++round) {
    cuda::fenceRegisters();
    cuda::Wgmma<T, 128>::run(sums, a, b + 2 * (round & 3));
    cuda::commitProducts();
    cuda::waitForProducts<1>();
  }
  cuda::waitForProducts<0>();
#else
  const auto *words = reinterpret_cast<const uint32_t *>(columns);
  for (int round = 0; round < kTensorRounds; ++round)
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const uint32_t b[2] = {words[threadIdx.x + i], words[threadIdx.x]};
      float d[4] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2],
                    sums[4 * i + 3]};
      cuda::Element<T>::mma(d, a, b, d);
      for (int j = 0; j < 4; ++j)
        sums[4 * i + j] = d[j];
    }
#endif
  float sum = 0;
  for (float value : sums)
    sum += value;
  if (sum == 1.2345f)
    *out = sum;
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// The least seconds of some runs.
template <typename Run>
static Result<double> secondsOf(Run run) {
  cudaEvent_t begin, end;
  WNA16_TRY_CUDA(cudaEventCreate(&begin));
  WNA16_TRY_CUDA(cudaEventCreate(&end));
  float least = 1e9f;
  for (int i = 0; i < 6; ++i) {
    WNA16_TRY_CUDA(cudaEventRecord(begin));
    run();
    WNA16_TRY_CUDA(cudaGetLastError());
    WNA16_TRY_CUDA(cudaEventRecord(end));
    WNA16_TRY_CUDA(cudaEventSynchronize(end));
    float milliseconds;
    WNA16_TRY_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    least = std::min(least, milliseconds);
  }
  WNA16_TRY_CUDA(cudaEventDestroy(begin));
  WNA16_TRY_CUDA(cudaEventDestroy(end));
  return least * 1e-3;
}

Result<Ceilings> wna16::measureDeviceCeilings() {
  constexpr int64_t kBytes = int64_t(2) << 30;
  constexpr int kBlocksEach[] = {4, 8, 16, 32};
  Result<DeviceMemory> memory = DeviceMemory::create(2 * kBytes);
  if (!memory)
    return memory.takeFailure();
  auto *data = static_cast<uint4 *>(memory->data());
  WNA16_TRY_CUDA(fillBits(data, kBytes, 1));
  int device, processors;
  WNA16_TRY_CUDA(cudaGetDevice(&device));
  WNA16_TRY_CUDA(cudaDeviceGetAttribute(
      &processors, cudaDevAttrMultiProcessorCount, device));
  Ceilings ceilings;
  // Each way of sharing out has a device that likes it best.
  for (int blocks : kBlocksEach) {
    Result<double> read = secondsOf([&] {
      readKernel<<<processors * blocks, 256>>>(data, 2 * kBytes / 16, data);
    });
    Result<double> copy = secondsOf([&] {
      copyKernel<<<processors * blocks, 256>>>(data, kBytes / 16,
                                               data + kBytes / 16);
    });
    if (!read || !copy)
      return read ? copy.takeFailure() : read.takeFailure();
    Ceilings now;
    now.readBytes = 2 * kBytes / *read;
    now.copyBytes = 2 * kBytes / *copy;
    ceilings.raise(now);
  }
  Result<double> tensor = secondsOf([&] {
    tensorKernel<<<2 * processors, kTensorThreads>>>(
        data, reinterpret_cast<float *>(data));
  });
  if (!tensor)
    return tensor.takeFailure();
  constexpr double kFlops = 2.0 * 64 * 128 * 16 * (kTensorThreads / 128);
  ceilings.tensorFlops = 2 * processors * kTensorRounds * kFlops / *tensor;
  return ceilings;
}
