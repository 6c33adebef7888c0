//===- TensorMap.cpp - Tables in memory as the copy engine sees them ----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"

using namespace wna16;
using namespace wna16::cuda;

using EncodeTiled = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t,
                                 void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *,
                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);

/// libcuda is only ever found at run time.
static EncodeTiled findEncoder() {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult result = {};
  constexpr unsigned kVersion = 12000;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                       kVersion, cudaEnableDefault,
                                       &result) != cudaSuccess)
    return nullptr;
  return reinterpret_cast<EncodeTiled>(function);
}

bool cuda::encode(const char *kernel, const Table &table, CUtensorMap &map) {
  static const EncodeTiled encoder = findEncoder();
  if (!encoder) {
    setStatus(WNA16_FAILED, "%s: the driver has no cuTensorMapEncodeTiled",
              kernel);
    return false;
  }
  cuuint64_t extents[4], strides[4];
  cuuint32_t box[4];
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  const cuuint32_t axes = table.extents[3] ? 4 : 3;
  cuuint64_t bytes = static_cast<cuuint64_t>(table.elementBytes);
  for (size_t i = 0; i < axes; ++i) {
    extents[i] = static_cast<cuuint64_t>(table.extents[i]);
    box[i] = static_cast<cuuint32_t>(table.box[i]);
    bytes *= extents[i];
    strides[i] = bytes;
  }
  const CUresult error = encoder(
      &map, table.type, axes, const_cast<void *>(table.data), extents, strides,
      box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      table.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error == CUDA_SUCCESS)
    return true;
  setStatus(WNA16_FAILED,
            "%s: the driver refused a table of %lld x %lld x %lld (error %d)",
            kernel, static_cast<long long>(table.extents[0]),
            static_cast<long long>(table.extents[1]),
            static_cast<long long>(table.extents[2]), static_cast<int>(error));
  return false;
}
