//===- DeviceData.cu - Random data and float64 results on a device --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

#include "Layout/Catalogue.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Random data
//===----------------------------------------------------------------------===//

static __device__ uint64_t hashOf(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

static __global__ void bitsKernel(uint64_t *to, int64_t count, uint64_t seed) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x)
    to[i] = hashOf(seed * 0x100000001ull + i);
}

template <typename T>
static __global__ void valuesKernel(T *to, int64_t count, uint64_t seed,
                                    float low, float high) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    const float unit =
        static_cast<float>(hashOf(seed * 0x100000001ull + i) >> 40) * 0x1p-24f;
    to[i] = static_cast<T>(low + (high - low) * unit);
  }
}

static constexpr int kBlocks = 1024, kThreads = 256;

cudaError_t wna16::fillBits(void *to, int64_t bytes, uint64_t seed) {
  bitsKernel<<<kBlocks, kThreads>>>(static_cast<uint64_t *>(to), bytes / 8,
                                    seed);
  return cudaGetLastError();
}

cudaError_t wna16::fillValues(ScalarType type, void *to, int64_t count,
                              uint64_t seed, float low, float high) {
  if (type == ScalarType::BF16)
    valuesKernel<<<kBlocks, kThreads>>>(static_cast<__nv_bfloat16 *>(to), count,
                                        seed, low, high);
  else
    valuesKernel<<<kBlocks, kThreads>>>(static_cast<__half *>(to), count, seed,
                                        low, high);
  return cudaGetLastError();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

TiledMatrix::TiledMatrix(const WeightSpec &spec, const WeightBuffers &buffers)
    : codes(buffers.get<uint8_t>(Part::Codes)),
      scales(buffers.get<uint16_t>(Part::Scales)),
      zeros(buffers.get<uint32_t>(Part::Zeros)), input(spec.input),
      rows(spec.rows()), group(spec.group), groups(spec.groups()),
      bits(spec.bits()), wgmma(spec.layout->name == "humming_wgmma"),
      humming(spec.layout->name != "marlin"),
      bf16(spec.element == ScalarType::BF16) {}

static __device__ double elementOf(bool bf16, uint16_t bits) {
  return bf16 ? __bfloat162float(__ushort_as_bfloat16(bits))
              : __half2float(__ushort_as_half(bits));
}

/// The code at (k, n) of a tile, as it is stored.
static __device__ int codeOf(const TiledMatrix &m, int64_t tile, int k, int n) {
  const int lane = (n & 7) << 2 | ((k >> 1) & 3);
  const int n3 = n >> 3 & 1, k3 = k >> 3, k0 = k & 1, u = n >> 4;
  if (m.bits == 4) {
    const int nibble =
        m.wgmma ? n3 | k3 << 1 | k0 << 2 : k3 | n3 << 1 | k0 << 2;
    const auto *words = reinterpret_cast<const uint32_t *>(m.codes);
    return static_cast<int>(words[tile * 128 + lane * 4 + u] >> (4 * nibble) &
                            15);
  }
  const int byte = m.wgmma ? n3 | k0 << 1 : k3 | k0 << 1;
  const int word = 2 * u + (m.wgmma ? k3 : n3);
  return m.codes[tile * 1024 + lane * 32 + word * 4 + byte];
}

static __device__ int zeroOf(const TiledMatrix &m, int64_t group, int64_t n) {
  if (!m.zeros)
    return m.bits == 4 ? 8 : 128;
  const int u = static_cast<int>(n % 64) >> 4,
            n3 = static_cast<int>(n) >> 3 & 1;
  const uint32_t word = m.zeros[group * m.rows / 8 + n / 64 * 8 + (n & 7)];
  return static_cast<int>(word >> (4 * (m.humming ? n3 + 2 * u : u + 4 * n3)) &
                          15);
}

static __device__ double scaleOf(const TiledMatrix &m, int64_t group,
                                 int64_t n) {
  const int64_t at = m.groups > 1 ? n / 64 * 64 + 8 * (n & 7) + (n >> 3 & 7)
                                  : n / 32 * 32 + (n & 1) + 2 * (n >> 3 & 3) +
                                        8 * (n >> 1 & 3);
  return elementOf(m.bf16, m.scales[group * m.rows + at]);
}

static __device__ double weightOf(const TiledMatrix &m, int64_t expert,
                                  int64_t k, int64_t n) {
  const int64_t tile =
      (expert * (m.input / 16) + k / 16) * (m.rows / 64) + n / 64;
  const int64_t group = expert * m.groups + (m.groups > 1 ? k / m.group : 0);
  const int code =
      codeOf(m, tile, static_cast<int>(k % 16), static_cast<int>(n % 64));
  return (code - zeroOf(m, group, n)) * scaleOf(m, group, n);
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

static __global__ void firstKernel(ReferenceCall call) {
  const int64_t n = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= call.width)
    return;
  const int64_t token = call.sample[blockIdx.y / call.topK];
  const int32_t expert = call.ids[token * call.topK + blockIdx.y % call.topK];
  const auto *x = static_cast<const uint16_t *>(call.x) + token * call.hidden;
  double gate = 0, up = 0;
  for (int64_t k = 0; k < call.hidden; ++k) {
    const double value = elementOf(call.w13.bf16, x[k]);
    gate += value * weightOf(call.w13, expert, k, n);
    up += value * weightOf(call.w13, expert, k, n + call.width);
  }
  call.middle[blockIdx.y * call.width + n] = gate / (1 + exp(-gate)) * up;
}

static __global__ void secondKernel(ReferenceCall call) {
  const int64_t n = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= call.hidden)
    return;
  const int64_t first = int64_t(call.sample[blockIdx.y]) * call.topK;
  double sum = 0;
  for (int i = 0; i < call.topK; ++i) {
    const int32_t expert = call.ids[first + i];
    const double *in =
        call.middle + (int64_t(blockIdx.y) * call.topK + i) * call.width;
    double row = 0;
    for (int64_t k = 0; k < call.width; ++k)
      row += in[k] * weightOf(call.w2, expert, k, n);
    sum += row * call.weights[first + i];
  }
  call.out[blockIdx.y * call.hidden + n] = sum;
}

cudaError_t wna16::runReference(const ReferenceCall &call) {
  constexpr int kOutputs = 64;
  auto blocks = [](int64_t outputs, int rows) {
    return dim3(static_cast<unsigned>((outputs + kOutputs - 1) / kOutputs),
                static_cast<unsigned>(rows));
  };
  firstKernel<<<blocks(call.width, call.count * call.topK), kOutputs>>>(call);
  secondKernel<<<blocks(call.hidden, call.count), kOutputs>>>(call);
  return cudaGetLastError();
}
