//===- ConvertWords.cu - Parts of a weight, word by word ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread writes whole 32-bit words of the target, each unit of them fetched
// from where the source has it. So every pair of layouts, every padding and
// every change of values works, and every byte is written once.
//
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "ConvertValues.cuh"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

//===----------------------------------------------------------------------===//
// From addresses to coordinates
//===----------------------------------------------------------------------===//

namespace {

/// Where a unit of a stored part belongs.
struct Place {
  int64_t input, group;
  int64_t half, output;
  bool isUnit; ///< not part of a trailer
};

__device__ Place placeOf(const DeviceMap &map, uint32_t address) {
  const auto tile = static_cast<uint32_t>(map.tile);
  const uint32_t inside = address % tile;
  uint32_t rest = address - inside, coordinate[kNumAxes] = {};
  int bits = 0;
#pragma unroll
  for (int a = 0; a < kNumAxes; ++a) {
    const AxisTerms &axis = map.axis[a];
    bits += axis.count;
    for (int i = 0; i < axis.count; ++i)
      if (((inside & axis.weight[i]) != 0) != (axis.inverted[i] != 0))
        coordinate[a] |= 1u << axis.bit[i];
  }
  // The axis with the longest stride first.
  for (int turn = 0; turn < map.rests; ++turn) {
    const uint32_t stride = map.restStride[turn];
    const uint32_t count = rest / stride;
    rest -= count * stride;
#pragma unroll
    for (int a = 0; a < kNumAxes; ++a)
      if (map.restAxis[turn] == a)
        coordinate[a] |= count << map.axis[a].count;
  }
  Place place;
  place.isUnit = inside < 1u << bits;
  place.input = coordinate[static_cast<int>(Axis::Input)];
  place.group = coordinate[static_cast<int>(Axis::Group)];
  const uint32_t row = coordinate[static_cast<int>(Axis::Output)];
  const auto outputs = static_cast<uint32_t>(map.outputs);
  place.half =
      map.hasHalves ? coordinate[static_cast<int>(Axis::Half)] : row / outputs;
  place.output = row - (map.hasHalves ? 0 : place.half * outputs);
  return place;
}

//===----------------------------------------------------------------------===//
// What units are
//===----------------------------------------------------------------------===//

__device__ uint32_t toUnsignedCode(CodeType type, uint32_t code, int zero) {
  return static_cast<uint32_t>(valueOfCode(type, static_cast<int>(code), zero) +
                               zero);
}

__device__ uint32_t fromUnsignedCode(CodeType type, uint32_t q, int zero) {
  switch (type) {
  case CodeType::S4:
    return q ^ 8;
  case CodeType::S8:
    return q ^ 128;
  case CodeType::U4FP8:
    return static_cast<int>(q) >= zero ? q - zero : 15 - q;
  default:
    return q;
  }
}

__device__ int64_t sourceRow(const Conversion &p, const Place &place) {
  return place.half * p.sourceOutputs + p.output + place.output;
}

__device__ bool hasRow(const Conversion &p, const Place &place) {
  return place.isUnit && place.half < p.halves && place.output < p.outputs;
}

struct Codes {
  Conversion p;
  __device__ const DeviceMap &map() const { return p.target.codes; }
  __device__ int bits() const { return p.target.bits; }
  __device__ void *out() const { return p.codes; }
  /// Beyond, and beyond the outputs that move, all is zeros.
  __device__ int64_t inners() const { return p.filled; }

  __device__ uint32_t at(int64_t expert, const Place &place) const {
    const DeviceWeight &from = p.source;
    const int64_t k = place.input, row = sourceRow(p, place);
    if (!hasRow(p, place) || k >= p.filled)
      return 0;
    if (k >= p.inputs) {
      // A new input of an old group decodes to 0.
      const int64_t first = p.input + k / p.target.group * p.target.group;
      const int64_t group = from.groups > 1 ? first / from.group : 0;
      const int zero = zeroAt(from, expert, group, row);
      return fromUnsignedCode(p.target.code, zero, zero);
    }
    const int64_t input =
        p.sorts ? p.permutation[expert * from.input + k] : p.input + k;
    const int64_t index = expert * from.codes.size +
                          inputTerm(from.codes, input) +
                          rowTerm(from.codes, row);
    const uint32_t code = codeAt(from.codeData, from.bits, index);
    // Where only the sign bit may differ the zero point does not matter.
    const int zero =
        p.recodes ? zeroAt(from, expert, groupOfInput(from, expert, input), row)
                  : 0;
    return fromUnsignedCode(p.target.code,
                            toUnsignedCode(from.code, code, zero), zero);
  }
};

__device__ uint32_t loadBits(const void *data, int bits, int64_t index) {
  return bits == 32 ? static_cast<const uint32_t *>(data)[index]
                    : static_cast<const uint16_t *>(data)[index];
}

/// Dense elements; padding is zeros.
struct Elements {
  Conversion p;
  __device__ const DeviceMap &map() const { return p.target.codes; }
  __device__ int bits() const { return p.target.bits; }
  __device__ void *out() const { return p.codes; }
  /// Beyond, and beyond the outputs that move, all is zeros.
  __device__ int64_t inners() const { return p.inputs; }

  __device__ uint32_t at(int64_t expert, const Place &place) const {
    const DeviceMap &from = p.source.codes;
    if (!hasRow(p, place) || place.input >= p.inputs)
      return 0;
    return loadBits(p.source.codeData, bits(),
                    expert * from.size +
                        inputTerm(from, p.input + place.input) +
                        rowTerm(from, sourceRow(p, place)));
  }
};

/// The source's group of one of the target's.
__device__ int64_t sourceGroup(const Conversion &p, int64_t group) {
  if (p.keepsGroups)
    return group;
  const int64_t first = p.target.groups > 1 ? group * p.target.group : 0;
  return p.source.groups > 1 ? (p.input + first) / p.source.group : 0;
}

struct Scales {
  Conversion p;
  __device__ const DeviceMap &map() const { return p.target.scales; }
  __device__ int bits() const {
    return p.target.scale == ScalarType::F32 ? 32 : 16;
  }
  __device__ void *out() const { return p.scales; }
  __device__ int64_t inners() const { return p.groups; }

  __device__ uint32_t at(int64_t expert, const Place &place) const {
    const DeviceWeight &from = p.source;
    if (!hasRow(p, place) || place.group >= p.groups)
      return 0;
    const int64_t index = expert * from.scales.size +
                          groupTerm(from.scales, sourceGroup(p, place.group)) +
                          rowTerm(from.scales, sourceRow(p, place));
    const float unit = 1.0f / scaleFactor(from.code);
    const float factor = unit * scaleFactor(p.target.code);
    if (from.scale == p.target.scale && factor == 1.0f)
      return loadBits(from.scaleData, bits(), index);
    const ScaleChange change = {from.scale, p.target.scale, unit, factor,
                                p.folds ? p.globalScale : nullptr};
    return convertScale(change, loadElement(from.scale, from.scaleData, index));
  }
};

struct Zeros {
  Conversion p;
  __device__ const DeviceMap &map() const { return p.target.zeroPoints; }
  __device__ int bits() const { return p.target.zeroBits; }
  __device__ void *out() const { return p.zeros; }
  __device__ int64_t inners() const { return p.groups; }

  __device__ uint32_t at(int64_t expert, const Place &place) const {
    const DeviceWeight &from = p.source;
    if (!hasRow(p, place) || place.group >= p.groups)
      return 0;
    uint32_t zero = impliedZero(from.code);
    uint32_t change = p.target.zeros == ZeroPoints::MinusOne ? -1 : 0;
    bool copies = false;
    if (from.zeroData) {
      zero =
          codeAt(from.zeroData, from.zeroBits,
                 expert * from.zeroPoints.size +
                     groupTerm(from.zeroPoints, sourceGroup(p, place.group)) +
                     rowTerm(from.zeroPoints, sourceRow(p, place)));
      change += from.zeros == ZeroPoints::MinusOne ? 1 : 0;
      copies =
          from.zeroBits == p.target.zeroBits && from.zeros == p.target.zeros;
    }
    return copies ? zero : (zero + change) & ((1u << p.target.bits) - 1);
  }
};

struct Biases {
  BiasConversion p;
  __device__ const DeviceMap &map() const { return p.target; }
  __device__ int bits() const {
    return p.source.type == ScalarType::F32 ? 32 : 16;
  }
  __device__ void *out() const { return p.out; }
  __device__ int64_t inners() const { return 1; }

  __device__ uint32_t at(int64_t expert, const Place &place) const {
    if (place.half >= p.halves || place.output >= p.outputs)
      return 0;
    const int64_t row = place.half * p.sourceOutputs + p.output + place.output;
    return loadBits(p.source.data, bits(),
                    expert * p.source.order.size +
                        rowTerm(p.source.order, row));
  }
};

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Writes word `word` of a part, or as much of it as there is.
template <typename Units>
__device__ void writeWord(const Units &units, int64_t experts, int64_t word) {
  const DeviceMap &map = units.map();
  const int bits = units.bits(), perWord = 32 / bits;
  const int64_t total = experts * map.size;
  int64_t unit = word * perWord, expert = unit / map.size;
  int64_t inside = unit - expert * map.size;
  uint32_t value = 0;
  for (int i = 0; i < perWord && unit < total; ++i, ++unit) {
    value |= units.at(expert, placeOf(map, static_cast<uint32_t>(inside)))
             << (i * bits);
    if (++inside == map.size) {
      inside = 0;
      ++expert;
    }
  }
  auto *out = static_cast<uint8_t *>(units.out()) + 4 * word;
  const int64_t left = (total * bits + 7) / 8 - 4 * word;
  if (left >= 4 && reinterpret_cast<uintptr_t>(out) % 4 == 0) {
    *reinterpret_cast<uint32_t *>(out) = value;
    return;
  }
  for (int i = 0; i < 4 && i < left; ++i)
    out[i] = static_cast<uint8_t>(value >> (8 * i));
}

} // namespace

template <typename Units>
__global__ void __launch_bounds__(kConvertThreads)
    writeAll(const __grid_constant__ Units units, int64_t experts,
             int64_t words) {
  const int64_t stride = int64_t(gridDim.x) * kConvertThreads;
  for (int64_t word = int64_t(blockIdx.x) * kConvertThreads + threadIdx.x;
       word < words; word += stride)
    writeWord(units, experts, word);
}

template <typename Units>
__global__ void __launch_bounds__(kConvertThreads)
    writeEdges(const __grid_constant__ Units units, int64_t experts,
               const __grid_constant__ BlockMove move) {
  const BlockSide &side = move.target;
  const uint32_t words = kHeldWords << move.threadBits;
  const uint32_t wordBits = side.wide ? 2 : 0;
  const uint32_t edges =
      move.edges * static_cast<uint32_t>(experts * move.halves);
  // Halves without a seam count as one.
  const int64_t outputs = units.p.outputs * units.p.halves / move.halves;
  for (uint32_t number = blockIdx.x; number < edges; number += gridDim.x) {
    const BlockPlace place = edgeOf(move, number);
    const int64_t block = addressOf(side, place);
    const bool empty =
        int64_t(place.inner) << move.innerBits >= units.inners() ||
        int64_t(place.output) << move.outputBits >= outputs;
    for (uint32_t i = threadIdx.x; i < words; i += kConvertThreads) {
      const uint32_t access = i >> wordBits;
      const uint32_t thread = access & ((1u << move.threadBits) - 1);
      const int64_t bytes = block + sumOf(side.bytes, thread) +
                            side.bytes.access[access >> move.threadBits];
      const int64_t word = bytes / 4 + (i & ((1 << wordBits) - 1));
      if (empty)
        static_cast<uint32_t *>(units.out())[word] = 0;
      else
        writeWord(units, experts, word);
    }
  }
}

static Launch launchFor(int64_t items, cudaStream_t stream) {
  constexpr int64_t kMaxBlocks = 132 * 16;
  Launch how;
  how.grid = static_cast<unsigned>(std::clamp<int64_t>(items, 1, kMaxBlocks));
  how.block = kConvertThreads;
  how.stream = stream;
  return how;
}

template <typename Units>
static bool writeUnits(const char *kernel, const Units &units, int64_t experts,
                       int64_t bytes, const WordRange &range,
                       cudaStream_t stream) {
  const int64_t words = (bytes + 3) / 4;
  if (!range.onlyEdges)
    return launch(
        kernel, writeAll<Units>,
        launchFor((words + kConvertThreads - 1) / kConvertThreads, stream),
        units, experts, words);
  const int64_t edges = range.edges.edges * experts * range.edges.halves;
  return edges == 0 ||
         launch(kernel, writeEdges<Units>, launchFor(edges, stream), units,
                experts, range.edges);
}

static int64_t bytesOf(const DeviceMap &map, int64_t experts, int bits) {
  return (experts * map.size * bits + 7) / 8;
}

bool cuda::convertCodes(const char *kernel, const Conversion &p,
                        const WordRange &range, cudaStream_t stream) {
  return writeUnits(kernel, Codes{p}, p.experts,
                    bytesOf(p.target.codes, p.experts, p.target.bits), range,
                    stream);
}

bool cuda::convertElements(const char *kernel, const Conversion &p,
                           const WordRange &range, cudaStream_t stream) {
  return writeUnits(kernel, Elements{p}, p.experts,
                    bytesOf(p.target.codes, p.experts, p.target.bits), range,
                    stream);
}

bool cuda::convertScales(const char *kernel, const Conversion &p,
                         const WordRange &range, cudaStream_t stream) {
  return writeUnits(kernel, Scales{p}, p.experts,
                    bytesOf(p.target.scales, p.experts,
                            p.target.scale == ScalarType::F32 ? 32 : 16),
                    range, stream);
}

bool cuda::convertZeros(const char *kernel, const Conversion &p,
                        const WordRange &range, cudaStream_t stream) {
  return writeUnits(kernel, Zeros{p}, p.experts,
                    bytesOf(p.target.zeroPoints, p.experts, p.target.zeroBits),
                    range, stream);
}

bool cuda::convertBias(const char *kernel, const BiasConversion &p,
                       cudaStream_t stream) {
  return writeUnits(
      kernel, Biases{p}, p.experts,
      bytesOf(p.target, p.experts, p.source.type == ScalarType::F32 ? 32 : 16),
      WordRange(), stream);
}
