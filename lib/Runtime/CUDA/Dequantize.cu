//===- Dequantize.cu - Dense values of a weight ---------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "Convert.h"
#include "Experts.h"
#include "Kernels.cuh"
#include "Layout/Move.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

namespace {

struct DenseParameters {
  DeviceWeight source;
  void *out;
  ScalarType type;
  int64_t experts;
  int32_t scaleFirst;
};

} // namespace

__global__ void __launch_bounds__(kConvertThreads)
    dequantizeKernel(const __grid_constant__ DenseParameters p) {
  const DeviceWeight &w = p.source;
  const int64_t units = p.experts * w.rows * w.input;
  const int64_t stride = int64_t(gridDim.x) * kConvertThreads;
  for (int64_t unit = int64_t(blockIdx.x) * kConvertThreads + threadIdx.x;
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

wna16_status wna16_cuda_dequantize(const void *plan,
                                   const wna16_tensor *tensors, int64_t count,
                                   void *, int64_t, void *stream) {
  constexpr const char *kKernel = "dequantize";
  if (!startCall(kKernel, plan))
    return wna16_status_get();
  const wna16_convert_plan fields =
      *static_cast<const wna16_convert_plan *>(plan);
  WeightSpec source, target;
  if (!checkRange(kKernel, "scale_first", fields.scale_first, 0, 1) ||
      !readWeight(kKernel, "source", fields.source, source) ||
      !readWeight(kKernel, "target", fields.target, target))
    return wna16_status_get();
  if (target.code != CodeType::Dense || source.experts != target.experts ||
      source.input != target.input || source.rows() != target.rows())
    return setStatus(WNA16_INVALID_ARGUMENT,
                     "%s: expected a dense target with the source's extents",
                     kKernel);
  if (Failure bad = checkDequantize(source))
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel,
                     bad.message.c_str());
  ArgumentReader reader(kKernel, tensors, count, 1 + WNA16_WEIGHT_TENSORS, 2);
  const WeightBuffers buffers = reader.takeWeight("source", fields.source);
  const Tensor out = reader.takeDense("target", target.element, source);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  const DenseParameters p = {describe(source, buffers), out.data,
                             target.element, source.experts,
                             static_cast<int32_t>(fields.scale_first)};
  const int64_t units = source.experts * source.rows() * source.input;
  Launch how;
  how.grid = static_cast<unsigned>(
      std::clamp<int64_t>(units / kConvertThreads, 1, 132 * 16));
  how.block = kConvertThreads;
  how.stream = static_cast<cudaStream_t>(stream);
  launch(kKernel, dequantizeKernel, how, p);
  return wna16_status_get();
}
