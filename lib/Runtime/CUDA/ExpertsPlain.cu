//===- ExpertsPlain.cu - Fused experts for any layout and device --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference on the device: any layout, code type, order of rows and token
// layout. A block decodes 32 inputs of 64 outputs at a time and multiplies them
// with 16 slots of one expert, all in f32.
//
//===----------------------------------------------------------------------===//

#include "Experts.h"
#include "Kernels.cuh"

using namespace wna16;
using namespace wna16::cuda;

static constexpr const char *kKernel = "fused_experts";
static constexpr int kSlots = 16;
static constexpr int kRows = 64;
static constexpr int kInputs = 32;
static constexpr int kThreads = 256;
static constexpr int kSlotsPerThread = kSlots * kRows / kThreads;

namespace {

struct PlainParameters {
  DeviceWeight weight;
  DeviceBias bias;
  Routing routing;
  SortedSlots sorted;
  DeviceActivation activation;
  const void *in; ///< x, or hidden
  void *out;      ///< hidden, or rows
  ScalarType inType, outType;
  int64_t inWidth, outWidth;
  int32_t first; ///< the first product: x, activation
  int32_t gated;
  int32_t weightOnInput;
};

/// Rows of weights and slots, decoded.
struct PlainTiles {
  float in[kSlots][kInputs + 1];
  float weights[2][kRows][kInputs + 1];
};

} // namespace

/// Inputs [k, k + kInputs) of the tile's slots.
static __device__ void loadInputs(const PlainParameters &p, const Tile &tile,
                                  int64_t k, PlainTiles &shared) {
  for (int i = threadIdx.x; i < kSlots * kInputs; i += kThreads) {
    const int s = i / kInputs, column = i % kInputs;
    float value = 0;
    if (s < tile.count && k + column < p.weight.input) {
      const int64_t slot = p.sorted.order[tile.begin + s];
      const int64_t row = p.first ? slot / p.routing.topK : slot;
      const int64_t from = sourceInput(p.weight, tile.expert, k + column);
      if (from < p.inWidth)
        value = loadElement(p.inType, p.in, row * p.inWidth + from);
      if (p.first && p.weightOnInput)
        value *= weightOf(p.routing, slot);
    }
    shared.in[s][column] = value;
  }
}

static __device__ void loadWeights(const PlainParameters &p, int expert,
                                   int64_t n, int64_t k, PlainTiles &shared) {
  const int halves = p.gated ? 2 : 1;
  for (int i = threadIdx.x; i < halves * kRows * kInputs; i += kThreads) {
    const int half = i / (kRows * kInputs);
    const int row = i / kInputs % kRows, column = i % kInputs;
    float value = 0;
    if (n + row < p.weight.outputs && k + column < p.weight.input)
      value = weightAt(p.weight, expert, k + column,
                       half * p.weight.outputs + n + row);
    shared.weights[half][row][column] = value;
  }
}

static __device__ void storeValue(const PlainParameters &p, const Tile &tile,
                                  int s, int64_t n, float gate, float up) {
  const int64_t slot = p.sorted.order[tile.begin + s];
  gate += biasOf(p.bias, tile.expert, n);
  float value;
  if (p.first && p.gated)
    value = activate(p.activation, gate,
                     up + biasOf(p.bias, tile.expert, n + p.weight.outputs));
  else if (p.first)
    value = activate(p.activation, gate);
  else
    value = p.weightOnInput ? gate : gate * weightOf(p.routing, slot);
  storeElement(p.outType, p.out, slot * p.outWidth + n, value);
}

__global__ void __launch_bounds__(kThreads)
    plainKernel(const __grid_constant__ PlainParameters p) {
  __shared__ PlainTiles shared;
  if (static_cast<int>(blockIdx.y) >= *p.sorted.numTiles)
    return;
  const Tile tile = p.sorted.tiles[blockIdx.y];
  const int64_t n = int64_t(blockIdx.x) * kRows;
  const int row = threadIdx.x % kRows, s = threadIdx.x / kRows;
  float gate[kSlotsPerThread] = {}, up[kSlotsPerThread] = {};
  for (int64_t k = 0; k < p.weight.input; k += kInputs) {
    __syncthreads();
    loadInputs(p, tile, k, shared);
    loadWeights(p, tile.expert, n, k, shared);
    __syncthreads();
    for (int column = 0; column < kInputs; ++column)
      for (int i = 0; i < kSlotsPerThread; ++i) {
        const float x = shared.in[s * kSlotsPerThread + i][column];
        gate[i] += x * shared.weights[0][row][column];
        if (p.gated)
          up[i] += x * shared.weights[1][row][column];
      }
  }
  if (n + row >= p.outWidth)
    return;
  for (int i = 0; i < kSlotsPerThread; ++i)
    if (s * kSlotsPerThread + i < tile.count)
      storeValue(p, tile, s * kSlotsPerThread + i, n + row, gate[i], up[i]);
}

static bool product(const ExpertsRound &round, bool first) {
  const ExpertsPlan &plan = *round.plan;
  PlainParameters p = {};
  p.weight = first ? round.w13 : round.w2;
  p.bias = first ? round.bias13 : round.bias2;
  p.routing = round.routing;
  p.sorted = round.buffers.sorted;
  p.activation = round.activation;
  p.in = first ? round.x : round.buffers.hidden;
  p.out = first ? round.buffers.hidden : round.buffers.rows;
  p.inType = plan.element();
  p.outType = first ? plan.element() : round.rowType;
  p.inWidth = first ? plan.fields.hidden : plan.w2.input;
  p.outWidth = first ? plan.w2.input : plan.fields.hidden;
  p.first = first;
  p.gated = first && plan.isGated();
  p.weightOnInput = static_cast<int32_t>(plan.fields.weight_on_input);
  const int64_t tiles =
      maxTiles(round.routing.slots, round.routing.experts, kSlots);
  Launch how;
  how.block = kThreads;
  how.stream = round.stream;
  // Blocks of tiles: the grid's second axis is short.
  how.grid = dim3(static_cast<unsigned>((p.outWidth + kRows - 1) / kRows),
                  static_cast<unsigned>(tiles));
  return launch(kKernel, plainKernel, how, p);
}

static bool takesAll(const ExpertsPlan &, int, int64_t) { return true; }

static bool runPlain(const ExpertsRound &round) {
  return sortSlots(round, kSlots) && product(round, true) &&
         product(round, false) && sumSlots(round);
}

const ExpertsKernel cuda::plainExperts = {"plain", takesAll, runPlain};
