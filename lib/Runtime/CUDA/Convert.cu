//===- Convert.cu - Bringing weights into another stored form -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The moves of Layout/Move.h on the device. A thread writes a whole 32-bit word
// of the target: it finds out which input and output each code of the word is
// and fetches that from the source. So every pair of layouts works, and every
// byte of the target is written once.
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "Experts.h"
#include "Kernels.cuh"
#include "Layout/Move.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

static constexpr int kThreads = 256;

//===----------------------------------------------------------------------===//
// From addresses to coordinates
//===----------------------------------------------------------------------===//

namespace {

/// Where a unit of a stored part belongs.
struct Place {
  int64_t coordinate[kNumAxes];
  bool isCode; ///< not a trailer
};

__device__ Place placeOf(const DeviceMap &map, int64_t address) {
  Place place = {};
  const int64_t inside = address % map.tile;
  int64_t rest = address - inside;
  int bits = 0;
  for (int a = 0; a < kNumAxes; ++a) {
    const AxisTerms &axis = map.axis[a];
    bits += axis.count;
    for (int i = 0; i < axis.count; ++i)
      if (((inside & axis.weight[i]) != 0) != (axis.inverted[i] != 0))
        place.coordinate[a] |= int64_t(1) << axis.bit[i];
  }
  place.isCode = inside < int64_t(1) << bits;
  // The axis with the longest stride first.
  int64_t below = INT64_MAX;
  for (int turn = 0; turn < kNumAxes; ++turn) {
    int next = -1;
    for (int a = 0; a < kNumAxes; ++a)
      if (map.axis[a].stride > 0 && map.axis[a].stride < below &&
          (next < 0 || map.axis[a].stride > map.axis[next].stride))
        next = a;
    if (next < 0)
      break;
    below = map.axis[next].stride;
    place.coordinate[next] |= rest / below << map.axis[next].count;
    rest %= below;
  }
  return place;
}

__device__ int64_t along(const Place &place, Axis axis) {
  return place.coordinate[static_cast<int>(axis)];
}

/// The half and the output of one half that a place is.
__device__ void rowOf(const DeviceMap &map, const Place &place, int64_t &half,
                      int64_t &output) {
  const int64_t row = along(place, Axis::Output);
  half = map.hasHalves ? along(place, Axis::Half) : row / map.outputs;
  output = map.hasHalves ? row : row % map.outputs;
}

struct ConvertParameters {
  DeviceWeight source, target;
  uint8_t *codes, *scales, *zeros;
  int32_t *groupIndex, *permutation;
  int64_t experts, halves;
  int64_t sourceOutputs, targetOutputs;
  int64_t filled; ///< inputs that have a code: whole groups
  int32_t sorts;
};

//===----------------------------------------------------------------------===//
// Codes
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

/// Where only the sign bit may differ the zero point does not matter.
__device__ bool needsZero(const ConvertParameters &p) {
  return p.source.code != p.target.code &&
         (p.source.code == CodeType::U4FP8 || p.target.code == CodeType::U4FP8);
}

__device__ uint32_t codeOf(const ConvertParameters &p, int64_t expert,
                           int64_t half, int64_t n, int64_t k) {
  const DeviceWeight &from = p.source;
  if (half >= p.halves || n >= p.sourceOutputs || k >= p.filled)
    return 0;
  const int64_t row = half * p.sourceOutputs + n;
  if (k >= from.input) {
    // A new input of an old group decodes to 0.
    const int64_t first = k / p.target.group * p.target.group;
    const int64_t group = from.groups > 1 ? first / from.group : 0;
    const int zero = zeroAt(from, expert, group, row);
    return fromUnsignedCode(p.target.code, zero, zero);
  }
  int64_t input = k;
  if (p.sorts)
    input = p.permutation[expert * from.input + k];
  const int64_t index = expert * from.codes.size +
                        inputTerm(from.codes, input) + rowTerm(from.codes, row);
  const uint32_t code = codeAt(from.codeData, from.bits, index);
  const int zero = needsZero(p) ? zeroAt(from, expert,
                                         groupOfInput(from, expert, input), row)
                                : 0;
  return fromUnsignedCode(p.target.code, toUnsignedCode(from.code, code, zero),
                          zero);
}

} // namespace

__global__ void __launch_bounds__(kThreads)
    convertCodes(const __grid_constant__ ConvertParameters p) {
  const DeviceMap &map = p.target.codes;
  const int perWord = 32 / p.target.bits;
  const int64_t words = p.experts * map.size / perWord;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t w = int64_t(blockIdx.x) * kThreads + threadIdx.x; w < words;
       w += stride) {
    uint32_t word = 0;
    for (int i = 0; i < perWord; ++i) {
      const int64_t unit = w * perWord + i, expert = unit / map.size;
      const Place place = placeOf(map, unit - expert * map.size);
      int64_t half, n;
      rowOf(map, place, half, n);
      if (place.isCode)
        word |= codeOf(p, expert, half, n, along(place, Axis::Input))
                << (i * p.target.bits);
    }
    reinterpret_cast<uint32_t *>(p.codes)[w] = word;
  }
}

/// Dense elements; padding is zeros.
__global__ void __launch_bounds__(kThreads)
    convertElements(const __grid_constant__ ConvertParameters p) {
  const DeviceMap &map = p.target.codes;
  const int64_t units = p.experts * map.size;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
       unit < units; unit += stride) {
    const int64_t expert = unit / map.size;
    const Place place = placeOf(map, unit - expert * map.size);
    int64_t half, n;
    rowOf(map, place, half, n);
    const int64_t k = along(place, Axis::Input);
    float value = 0;
    if (half < p.halves && n < p.sourceOutputs && k < p.source.input)
      value = weightAt(p.source, expert, k, half * p.sourceOutputs + n);
    storeElement(p.target.element, p.codes, unit, value);
  }
}

//===----------------------------------------------------------------------===//
// Scales, zero points, order
//===----------------------------------------------------------------------===//

/// The source's group of a target's group; -1 beyond the last input.
static __device__ int64_t sourceGroup(const ConvertParameters &p, int64_t g) {
  const int64_t first = p.target.groups > 1 ? g * p.target.group : 0;
  if (first >= p.source.input || g >= p.target.groups)
    return -1;
  return p.source.groups > 1 ? first / p.source.group : 0;
}

__global__ void __launch_bounds__(kThreads)
    convertScales(const __grid_constant__ ConvertParameters p) {
  const DeviceMap &map = p.target.scales;
  const int64_t units = p.experts * map.size;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const float factor = scaleFactor(p.target.code) * scaleUnitOf(p.source);
  const bool copies = p.source.scale == p.target.scale && factor == 1.0f;
  for (int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
       unit < units; unit += stride) {
    const int64_t expert = unit / map.size;
    const Place place = placeOf(map, unit - expert * map.size);
    int64_t half, n;
    rowOf(map, place, half, n);
    const int64_t group = sourceGroup(p, along(place, Axis::Group));
    const bool present =
        group >= 0 && half < p.halves && n < p.sourceOutputs && place.isCode;
    const int64_t from =
        present ? expert * p.source.scales.size +
                      groupTerm(p.source.scales, group) +
                      rowTerm(p.source.scales, half * p.sourceOutputs + n)
                : 0;
    if (copies && sizeOfElement(p.source.scale) == 2)
      reinterpret_cast<uint16_t *>(p.scales)[unit] =
          present ? reinterpret_cast<const uint16_t *>(p.source.scaleData)[from]
                  : 0;
    else
      storeElement(p.target.scale, p.scales, unit,
                   present ? storedScale(p.source, from) * factor : 0.0f);
  }
}

__global__ void __launch_bounds__(kThreads)
    convertZeros(const __grid_constant__ ConvertParameters p) {
  const DeviceMap &map = p.target.zeroPoints;
  const int perByte = 8 / p.target.zeroBits;
  const int64_t bytes = p.experts * map.size / perByte;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  const int less = p.target.zeros == ZeroPoints::MinusOne ? 1 : 0;
  const uint32_t mask = (1u << p.target.bits) - 1;
  for (int64_t b = int64_t(blockIdx.x) * kThreads + threadIdx.x; b < bytes;
       b += stride) {
    uint32_t byte = 0;
    for (int i = 0; i < perByte; ++i) {
      const int64_t unit = b * perByte + i, expert = unit / map.size;
      const Place place = placeOf(map, unit - expert * map.size);
      int64_t half, n;
      rowOf(map, place, half, n);
      const int64_t group = sourceGroup(p, along(place, Axis::Group));
      if (group < 0 || half >= p.halves || n >= p.sourceOutputs)
        continue;
      const int zero =
          zeroAt(p.source, expert, group, half * p.sourceOutputs + n);
      byte |= (static_cast<uint32_t>(zero - less) & (less ? mask : 255u))
              << (i * p.target.zeroBits);
    }
    p.zeros[b] = static_cast<uint8_t>(byte);
  }
}

/// A block counts, for each input of an expert, how many come before it when
/// inputs are sorted by group, those of a group in their order.
__global__ void __launch_bounds__(kThreads)
    sortInputs(const __grid_constant__ ConvertParameters p) {
  const int64_t expert = blockIdx.y, input = p.source.input;
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const int32_t *groups = p.source.groupIndex + expert * input;
  if (k >= input)
    return;
  const int32_t mine = groups[k];
  int64_t before = 0;
  for (int64_t i = 0; i < input; ++i)
    before += groups[i] < mine || (groups[i] == mine && i < k);
  p.permutation[expert * input + before] = static_cast<int32_t>(k);
}

//===----------------------------------------------------------------------===//
// Dense values and biases
//===----------------------------------------------------------------------===//

namespace {

struct DenseParameters {
  DeviceWeight source;
  void *out;
  ScalarType type;
  int64_t experts;
  int32_t scaleFirst;
};

struct BiasParameters {
  DeviceBias source;
  DeviceMap target;
  void *out;
  int64_t experts, halves, outputs; ///< of the source
};

} // namespace

__global__ void __launch_bounds__(kThreads)
    dequantizeKernel(const __grid_constant__ DenseParameters p) {
  const DeviceWeight &w = p.source;
  const int64_t units = p.experts * w.rows * w.input;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
       unit < units; unit += stride) {
    const int64_t k = unit % w.input, row = unit / w.input % w.rows;
    const int64_t expert = unit / w.input / w.rows;
    float value = weightAt(w, expert, k, row);
    if (p.scaleFirst && w.code != CodeType::Dense) {
      const GroupValues group =
          groupAt(w, expert, groupOfInput(w, expert, k), row);
      const int64_t index =
          expert * w.codes.size + inputTerm(w.codes, k) + rowTerm(w.codes, row);
      const int code = static_cast<int>(codeAt(w.codeData, w.bits, index));
      const auto steps =
          static_cast<float>(valueOfCode(w.code, code, group.zero));
      value = roundElement(p.type, steps) * roundElement(p.type, group.scale);
    }
    storeElement(p.type, p.out, unit, value);
  }
}

__global__ void __launch_bounds__(kThreads)
    convertBias(const __grid_constant__ BiasParameters p) {
  const int64_t units = p.experts * p.target.size;
  const int64_t stride = int64_t(gridDim.x) * kThreads;
  for (int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
       unit < units; unit += stride) {
    const int64_t expert = unit / p.target.size;
    const Place place = placeOf(p.target, unit - expert * p.target.size);
    int64_t half, n;
    rowOf(p.target, place, half, n);
    const bool present = half < p.halves && n < p.outputs;
    storeElement(p.source.type, p.out, unit,
                 present ? biasOf(p.source, expert, half * p.outputs + n)
                         : 0.0f);
  }
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

namespace {

struct ConvertPlan {
  wna16_convert_plan fields;
  WeightSpec source;
  WeightSpec target;
};

} // namespace

static bool refuse(const char *kernel, wna16_status code, const char *what) {
  setStatus(code, "%s: %s", kernel, what);
  return false;
}

static bool readPlan(const char *kernel, const void *address,
                     ConvertPlan &plan) {
  if (!startCall(kernel, address))
    return false;
  plan.fields = *static_cast<const wna16_convert_plan *>(address);
  const wna16_convert_plan &fields = plan.fields;
  if (fields.input || fields.inputs || fields.output || fields.outputs) {
    setStatus(WNA16_UNSUPPORTED,
              "%s: windows of a weight are taken on the cpu only; shard there "
              "or ahead of time",
              kernel);
    return false;
  }
  return checkRange(kernel, "scale_first", fields.scale_first, 0, 1) &&
         readWeight(kernel, "source", fields.source, plan.source) &&
         readWeight(kernel, "target", fields.target, plan.target);
}

static Launch launchFor(int64_t units, void *stream) {
  constexpr int64_t kMaxBlocks = 132 * 16;
  Launch how;
  how.grid = static_cast<unsigned>(
      std::clamp<int64_t>((units + kThreads - 1) / kThreads, 1, kMaxBlocks));
  how.block = kThreads;
  how.stream = static_cast<cudaStream_t>(stream);
  return how;
}

/// What the device leaves to the CPU.
static bool canConvert(const char *kernel, const ConvertPlan &plan) {
  if (Failure bad = checkMove(plan.source, plan.target))
    return refuse(kernel, WNA16_INVALID_ARGUMENT, bad.message.c_str());
  if (plan.target.code != CodeType::Dense &&
      plan.target.scale == ScalarType::I16)
    return refuse(kernel, WNA16_UNSUPPORTED,
                  "scales are folded into int16 on the cpu only; convert there "
                  "or ahead of time");
  if (plan.target.layout->trailerBytes)
    return refuse(kernel, WNA16_UNSUPPORTED,
                  "a layout with sums of blocks is written on the cpu only");
  return true;
}

static ConvertParameters describeConvert(const ConvertPlan &plan,
                                         const WeightBuffers &from,
                                         const WeightBuffers &to) {
  ConvertParameters p = {};
  p.source = describe(plan.source, from);
  p.target = describe(plan.target, to);
  p.codes = to.get<uint8_t>(Part::Codes);
  p.scales = to.get<uint8_t>(Part::Scales);
  p.zeros = to.get<uint8_t>(Part::Zeros);
  p.groupIndex = to.get<int32_t>(Part::GroupIndex);
  p.permutation = to.get<int32_t>(Part::Permutation);
  p.experts = plan.source.experts;
  p.halves = plan.source.halves;
  p.sourceOutputs = plan.source.output;
  p.targetOutputs = plan.target.output;
  p.sorts = plan.source.actOrder != plan.target.actOrder;
  const int64_t group = std::min(p.target.group, p.target.input);
  p.filled =
      std::min(p.target.input, (p.source.input + group - 1) / group * group);
  return p;
}

/// Row order: sorted here, or taken over.
static bool convertOrder(const char *kernel, const ConvertPlan &plan,
                         const ConvertParameters &p, void *stream) {
  const int64_t count = p.experts * p.source.input;
  if (p.sorts) {
    Launch how = launchFor(p.source.input, stream);
    how.grid =
        dim3(static_cast<unsigned>((p.source.input + kThreads - 1) / kThreads),
             static_cast<unsigned>(p.experts));
    return launch(kernel, sortInputs, how, p);
  }
  const void *from = plan.source.actOrder == ActOrder::Index
                         ? p.source.groupIndex
                         : p.source.permutation;
  void *to =
      plan.source.actOrder == ActOrder::Index ? p.groupIndex : p.permutation;
  return plan.source.actOrder == ActOrder::None ||
         check(kernel, "copying the order of rows",
               cudaMemcpyAsync(to, from, static_cast<size_t>(4 * count),
                               cudaMemcpyDeviceToDevice,
                               static_cast<cudaStream_t>(stream)));
}

wna16_status wna16_cuda_convert(const void *plan, const wna16_tensor *tensors,
                                int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "convert";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 2 * WNA16_WEIGHT_TENSORS, 2);
  const WeightBuffers from = reader.takeWeight("source", convert.fields.source);
  const WeightBuffers to = reader.takeWeight("target", convert.fields.target);
  if (!reader.good() || !canConvert(kKernel, convert) ||
      !currentDevice(kKernel))
    return wna16_status_get();
  const ConvertParameters p = describeConvert(convert, from, to);
  const int64_t units = p.experts * p.target.codes.size;
  if (convert.target.code == CodeType::Dense) {
    launch(kKernel, convertElements, launchFor(units, stream), p);
    return wna16_status_get();
  }
  const int64_t sides = p.experts * p.target.scales.size;
  if (!convertOrder(kKernel, convert, p, stream) ||
      !launch(kKernel, convertCodes,
              launchFor(units * p.target.bits / 32, stream), p) ||
      !launch(kKernel, convertScales, launchFor(sides, stream), p))
    return wna16_status_get();
  if (p.zeros)
    launch(kKernel, convertZeros, launchFor(sides, stream), p);
  return wna16_status_get();
}

wna16_status wna16_cuda_convert_bias(const void *plan,
                                     const wna16_tensor *tensors, int64_t count,
                                     void *, int64_t, void *stream) {
  constexpr const char *kKernel = "convert_bias";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
    return wna16_status_get();
  const WeightSpec &from = convert.source, &to = convert.target;
  ArgumentReader reader(kKernel, tensors, count, 2, 2);
  const Tensor source = reader.take("source", kFloatTypes,
                                    {from.experts, from.halves, from.output});
  const Tensor target =
      reader.take("target", source.present ? typeSet(source.type) : kFloatTypes,
                  {from.experts, from.halves, to.output});
  Result<AddressMap> in = biasAddresses(from), out = biasAddresses(to);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  if (!in || !out || from.experts != to.experts || from.halves != to.halves ||
      to.output < from.output)
    return setStatus(WNA16_INVALID_ARGUMENT,
                     "%s: expected equal experts and halves and no fewer "
                     "outputs than %lld, got %lld",
                     kKernel, static_cast<long long>(from.output),
                     static_cast<long long>(to.output));
  BiasParameters p = {{source.data, source.type, describe(*in, from.output)},
                      describe(*out, to.output),
                      target.data,
                      from.experts,
                      from.halves,
                      from.output};
  launch(kKernel, convertBias, launchFor(p.experts * p.target.size, stream), p);
  return wna16_status_get();
}

wna16_status wna16_cuda_dequantize(const void *plan,
                                   const wna16_tensor *tensors, int64_t count,
                                   void *, int64_t, void *stream) {
  constexpr const char *kKernel = "dequantize";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
    return wna16_status_get();
  const WeightSpec &source = convert.source, &target = convert.target;
  if (target.code != CodeType::Dense || source.experts != target.experts ||
      source.input != target.input || source.rows() != target.rows()) {
    refuse(kKernel, WNA16_INVALID_ARGUMENT,
           "expected a dense target with the source's extents");
    return wna16_status_get();
  }
  if (Failure bad = checkDequantize(source)) {
    refuse(kKernel, WNA16_INVALID_ARGUMENT, bad.message.c_str());
    return wna16_status_get();
  }
  ArgumentReader reader(kKernel, tensors, count, 1 + WNA16_WEIGHT_TENSORS, 2);
  const WeightBuffers buffers =
      reader.takeWeight("source", convert.fields.source);
  const Tensor out = reader.takeDense("target", target.element, source);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  DenseParameters p = {describe(source, buffers), out.data, target.element,
                       source.experts,
                       static_cast<int32_t>(convert.fields.scale_first)};
  launch(kKernel, dequantizeKernel,
         launchFor(source.experts * source.rows() * source.input, stream), p);
  return wna16_status_get();
}

wna16_status wna16_cuda_quantize(const void *, const wna16_tensor *, int64_t,
                                 void *, int64_t, void *) {
  return setStatus(WNA16_UNSUPPORTED,
                   "quantize: weights are quantised on the cpu only; prepare "
                   "them ahead of time");
}
