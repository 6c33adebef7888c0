//===- Elementwise.cu - fill, sum and copy ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "Device.h"
#include "Kernels.cuh"
#include "Runtime/DType.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

static constexpr int kThreads = 256;
static constexpr int64_t kMaxBlocks = 4096;

__global__ void __launch_bounds__(kThreads)
    fillKernel(ScalarType type, void *y, int64_t elements, double value) {
  const int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < elements;
       i += step) {
    if (type == ScalarType::I32)
      static_cast<int32_t *>(y)[i] = static_cast<int32_t>(value);
    else
      storeElement(type, y, i, static_cast<float>(value));
  }
}

namespace {

struct SumParameters {
  const void *a;
  const void *b; ///< or null
  void *y;
  ScalarType aType, bType, yType;
  int64_t elements;
};

} // namespace

__global__ void __launch_bounds__(kThreads)
    sumKernel(const __grid_constant__ SumParameters p) {
  const int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < p.elements;
       i += step) {
    float sum = loadElement(p.aType, p.a, i);
    if (p.b)
      sum += loadElement(p.bType, p.b, i);
    storeElement(p.yType, p.y, i, sum);
  }
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// One thread an element, as far as the grid goes.
static Launch launchFor(int64_t elements, void *stream) {
  Launch how;
  how.grid = static_cast<unsigned>(
      std::min((elements + kThreads - 1) / kThreads, kMaxBlocks));
  how.block = kThreads;
  how.stream = static_cast<cudaStream_t>(stream);
  return how;
}

/// A tensor of a call whose tensors all have the shape of the first.
static Tensor takeAlike(ArgumentReader &reader, const wna16_tensor *tensors,
                        const char *name, TypeSet types) {
  return reader.good()
             ? reader.take(name, types, tensors[0].shape, tensors[0].ndim)
             : Tensor();
}

/// The first tensor: of any shape of up to three axes.
static Tensor takeFirst(ArgumentReader &reader, const wna16_tensor *tensors,
                        const char *name, TypeSet types) {
  constexpr int kMaxAxes = 3;
  const int64_t any[kMaxAxes] = {-1, -1, -1};
  if (!reader.good())
    return {};
  return reader.take(name, types, any,
                     std::clamp<int>(tensors[0].ndim, 1, kMaxAxes));
}

static int64_t elementsOf(const wna16_tensor &tensor) {
  int64_t elements = 1;
  for (int axis = 0; axis < tensor.ndim; ++axis)
    elements *= tensor.shape[axis];
  return elements;
}

wna16_status wna16_cuda_fill(const void *plan, const wna16_tensor *tensors,
                             int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "fill";
  if (!startCall(kKernel, plan))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 1, 2);
  const Tensor y = takeFirst(reader, tensors, "y", kFloatTypes | kI32);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  if (const int64_t elements = elementsOf(tensors[0]))
    launch(kKernel, fillKernel, launchFor(elements, stream), y.type, y.data,
           elements, static_cast<const wna16_fill_plan *>(plan)->value);
  return wna16_status_get();
}

wna16_status wna16_cuda_sum(const void *plan, const wna16_tensor *tensors,
                            int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "sum";
  if (!startCall(kKernel, plan))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 3, 2);
  const Tensor a = takeFirst(reader, tensors, "a", kFloatTypes);
  Tensor b;
  if (reader.good() && (tensors[1].data || tensors[1].ndim))
    b = takeAlike(reader, tensors, "b", kFloatTypes);
  else if (reader.good())
    reader.takeAbsent("b", "without data");
  const Tensor y = takeAlike(reader, tensors, "y", kFloatTypes);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  const SumParameters p = {
      a.data, b.data, y.data, a.type, b.type, y.type, elementsOf(tensors[0])};
  if (p.elements)
    launch(kKernel, sumKernel, launchFor(p.elements, stream), p);
  return wna16_status_get();
}

wna16_status wna16_cuda_copy(const void *plan, const wna16_tensor *tensors,
                             int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "copy";
  if (!startCall(kKernel, plan))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 2, 2);
  constexpr TypeSet kAll = (TypeSet(1) << kNumScalarTypes) - 1;
  const Tensor source = takeFirst(reader, tensors, "source", kAll);
  const Tensor target =
      takeAlike(reader, tensors, "target", typeSet(source.type));
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  const int64_t bytes = elementsOf(tensors[0]) * sizeOf(source.type);
  if (bytes)
    check(kKernel, "copying",
          cudaMemcpyAsync(target.data, source.data, static_cast<size_t>(bytes),
                          cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream)));
  return wna16_status_get();
}
