//===- Kernels.cuh - Device functions of all kernels
//-----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_KERNELS_CUH
#define WNA16_LIB_RUNTIME_CUDA_KERNELS_CUH

#include "Parameters.h"
#include "Runtime/wna16.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace wna16::cuda {

//===----------------------------------------------------------------------===//
// Launches that overlap
//===----------------------------------------------------------------------===//

/// Until everything that kernels before this one wrote can be seen.
__device__ inline void waitForPrevious() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The next kernel may start; it waits for this one's end by itself.
__device__ inline void letNextStart() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

__device__ inline float loadElement(ScalarType type, const void *data,
                                    int64_t index) {
  switch (type) {
  case ScalarType::F16:
    return __half2float(static_cast<const __half *>(data)[index]);
  case ScalarType::BF16:
    return __bfloat162float(static_cast<const __nv_bfloat16 *>(data)[index]);
  default:
    return static_cast<const float *>(data)[index];
  }
}

__device__ inline void storeElement(ScalarType type, void *data, int64_t index,
                                    float value) {
  switch (type) {
  case ScalarType::F16:
    static_cast<__half *>(data)[index] = __float2half_rn(value);
    break;
  case ScalarType::BF16:
    static_cast<__nv_bfloat16 *>(data)[index] = __float2bfloat16_rn(value);
    break;
  default:
    static_cast<float *>(data)[index] = value;
  }
}

/// Two neighbours, the first at an even index.
__device__ inline void storeTwo(ScalarType type, void *data, int64_t index,
                                float2 values) {
  switch (type) {
  case ScalarType::F16:
    reinterpret_cast<__half2 *>(data)[index / 2] = __float22half2_rn(values);
    break;
  case ScalarType::BF16:
    reinterpret_cast<__nv_bfloat162 *>(data)[index / 2] =
        __float22bfloat162_rn(values);
    break;
  default:
    reinterpret_cast<float2 *>(data)[index / 2] = values;
  }
}

__device__ inline int64_t sizeOfElement(ScalarType type) {
  return type == ScalarType::F32 ? 4 : 2;
}

__device__ inline float roundElement(ScalarType type, float value) {
  if (type == ScalarType::F16)
    return __half2float(__float2half_rn(value));
  if (type == ScalarType::BF16)
    return __bfloat162float(__float2bfloat16_rn(value));
  return value;
}

//===----------------------------------------------------------------------===//
// Addresses and stored weights
//===----------------------------------------------------------------------===//

__device__ inline int64_t termOf(const AxisTerms &axis, int64_t coordinate) {
  int64_t offset = (coordinate >> axis.count) * axis.stride;
  const auto low = static_cast<uint32_t>(coordinate);
  for (int i = 0; i < axis.count; ++i)
    if (((low >> axis.bit[i]) & 1) != axis.inverted[i])
      offset += axis.weight[i];
  return offset;
}

__device__ inline int64_t inputTerm(const DeviceMap &map, int64_t k) {
  return termOf(map.axis[static_cast<int>(Axis::Input)], k);
}

__device__ inline int64_t groupTerm(const DeviceMap &map, int64_t g) {
  return termOf(map.axis[static_cast<int>(Axis::Group)], g);
}

__device__ inline int64_t rowTerm(const DeviceMap &map, int64_t row) {
  if (!map.hasHalves)
    return termOf(map.axis[static_cast<int>(Axis::Output)], row);
  const int64_t half = row / map.outputs;
  return termOf(map.axis[static_cast<int>(Axis::Output)],
                row - half * map.outputs) +
         termOf(map.axis[static_cast<int>(Axis::Half)], half);
}

__device__ inline uint32_t codeAt(const uint8_t *data, int bits,
                                  int64_t index) {
  return bits == 8 ? data[index] : (data[index >> 1] >> (4 * (index & 1))) & 15;
}

/// A stored code as Q - z.
__device__ inline int valueOfCode(CodeType type, int code, int zero) {
  switch (type) {
  case CodeType::S4:
    return (code ^ 8) - zero;
  case CodeType::S8:
    return (code ^ 128) - zero;
  case CodeType::U4FP8:
    return code < 16 - zero ? code : 15 - code - zero;
  default:
    return code - zero;
  }
}

/// Scale and zero point of one group of one row.
struct GroupValues {
  float scale;
  int zero;
};

__device__ inline float scaleUnitOf(const DeviceWeight &weight) {
  const float unit = 1.0f / scaleFactor(weight.code);
  return weight.globalScale ? unit * *weight.globalScale : unit;
}

__device__ inline float storedScale(const DeviceWeight &weight, int64_t index) {
  if (weight.scale == ScalarType::I16)
    return reinterpret_cast<const int16_t *>(weight.scaleData)[index];
  return loadElement(weight.scale, weight.scaleData, index);
}

__device__ inline int zeroAt(const DeviceWeight &weight, int64_t expert,
                             int64_t group, int64_t row) {
  if (!weight.zeroData)
    return impliedZero(weight.code);
  const int64_t index = expert * weight.zeroPoints.size +
                        groupTerm(weight.zeroPoints, group) +
                        rowTerm(weight.zeroPoints, row);
  uint32_t stored = codeAt(weight.zeroData, weight.zeroBits, index);
  if (weight.zeros == ZeroPoints::MinusOne)
    stored = (stored + 1) & ((1u << weight.bits) - 1);
  return static_cast<int>(stored);
}

__device__ inline GroupValues groupAt(const DeviceWeight &weight,
                                      int64_t expert, int64_t group,
                                      int64_t row) {
  const int64_t index = expert * weight.scales.size +
                        groupTerm(weight.scales, group) +
                        rowTerm(weight.scales, row);
  return {storedScale(weight, index) * scaleUnitOf(weight),
          zeroAt(weight, expert, group, row)};
}

__device__ inline int64_t groupOfInput(const DeviceWeight &weight,
                                       int64_t expert, int64_t k) {
  if (!weight.groupIndex)
    return k / weight.group;
  // An index out of range reads the last group, never beyond.
  const int64_t group = weight.groupIndex[expert * weight.input + k];
  return min(max(group, int64_t(0)), weight.groups - 1);
}

/// (Q - z) * s in f32, or the dense element.
__device__ inline float weightAt(const DeviceWeight &weight, int64_t expert,
                                 int64_t k, int64_t row) {
  const int64_t index = expert * weight.codes.size +
                        inputTerm(weight.codes, k) + rowTerm(weight.codes, row);
  if (weight.code == CodeType::Dense)
    return loadElement(weight.element, weight.codeData, index);
  const GroupValues values =
      groupAt(weight, expert, groupOfInput(weight, expert, k), row);
  const auto code =
      static_cast<int>(codeAt(weight.codeData, weight.bits, index));
  return static_cast<float>(valueOfCode(weight.code, code, values.zero)) *
         values.scale;
}

/// The row of x that a weight's storage row k is multiplied with.
__device__ inline int64_t sourceInput(const DeviceWeight &weight,
                                      int64_t expert, int64_t k) {
  if (!weight.permutation)
    return k;
  const int64_t source = weight.permutation[expert * weight.input + k];
  return min(max(source, int64_t(0)), weight.input - 1);
}

__device__ inline float biasOf(const DeviceBias &bias, int64_t expert,
                               int64_t row) {
  return bias.data
             ? loadElement(bias.type, bias.data,
                           expert * bias.order.size + rowTerm(bias.order, row))
             : 0.0f;
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

/// The local expert of a slot; -1: nobody's here. Ids out of range are
/// nobody's: a call does not wait for the device to complain.
__device__ inline int expertOf(const Routing &routing, int64_t slot) {
  if (routing.rowsPerExpert) {
    const int64_t expert = slot / routing.rowsPerExpert;
    return slot - expert * routing.rowsPerExpert < routing.ids[expert]
               ? static_cast<int>(expert)
               : -1;
  }
  int id = routing.ids[slot];
  if (routing.map)
    id = id >= 0 && id < routing.mapSize ? routing.map[id] : -1;
  return id >= 0 && id < routing.experts ? id : -1;
}

__device__ inline float weightOf(const Routing &routing, int64_t slot) {
  return routing.weights ? routing.weights[slot] : 1.0f;
}

//===----------------------------------------------------------------------===//
// Activations, as on the CPU
//===----------------------------------------------------------------------===//

__device__ inline float atMost(float value, float limit) {
  return value > limit ? limit : value; // NaN passes through
}

__device__ inline float clampBoth(float value, float limit) {
  return value < -limit ? -limit : atMost(value, limit);
}

__device__ inline float swish(float x, float scale) {
  return x / (1.0f + __expf(-scale * x));
}

/// Without a limit, and without the division's slow path.
__device__ inline float fastSilu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

__device__ inline float activate(const DeviceActivation &activation,
                                 float value) {
  const float x = atMost(value, activation.limit);
  switch (activation.kind) {
  case WNA16_GELU:
    return 0.5f * x * erfcf(x * -0.70710678f);
  case WNA16_GELU_TANH:
    return swish(x, 1.59576912f * (1.0f + 0.044715f * x * x));
  case WNA16_RELU2: {
    const float positive = x < 0 ? 0.0f : x;
    return positive * positive;
  }
  case WNA16_SWIGLUOAI:
    return swish(x, activation.alpha);
  default:
    return swish(x, 1.0f);
  }
}

__device__ inline float activate(const DeviceActivation &activation, float gate,
                                 float up) {
  if (activation.kind == WNA16_SWIGLUSTEP)
    return atMost(swish(gate, 1.0f), activation.limit) *
           clampBoth(up, activation.limit);
  const float factor = clampBoth(up, activation.limit);
  return activate(activation, gate) * (activation.kind == WNA16_SWIGLUOAI
                                           ? factor + activation.beta
                                           : factor);
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_KERNELS_CUH
