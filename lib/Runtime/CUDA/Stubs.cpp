//===- Stubs.cpp - The CUDA kernels of a build without CUDA -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Status.h"
#include "Runtime/wna16_cuda.h"

using namespace wna16;

static wna16_status refuse() {
  return setStatus(WNA16_UNSUPPORTED,
                   "this build of the runtime has no CUDA kernels; build it "
                   "where nvcc is found");
}

#define WNA16_REFUSE(NAME)                                                     \
  wna16_status NAME(const void *, const wna16_tensor *, int64_t, void *,       \
                    int64_t, void *) {                                         \
    return refuse();                                                           \
  }
#define WNA16_REFUSE_FORWARD(NAME)                                             \
  WNA16_REFUSE(NAME)                                                           \
  int64_t NAME##_workspace(const void *, int64_t) {                            \
    wna16_status_clear();                                                      \
    refuse();                                                                  \
    return -1;                                                                 \
  }
#define WNA16_REFUSE_EXPERTS(NAME)                                             \
  WNA16_REFUSE_FORWARD(NAME)                                                   \
  const char *NAME##_kernel(const void *, int64_t) {                           \
    refuse();                                                                  \
    return nullptr;                                                            \
  }

WNA16_REFUSE_EXPERTS(wna16_cuda_fused_experts)
WNA16_REFUSE_EXPERTS(wna16_cuda_marlin_fused_experts)
WNA16_REFUSE_EXPERTS(wna16_cuda_batched_marlin_fused_experts)
WNA16_REFUSE_EXPERTS(wna16_cuda_humming_fused_experts)
WNA16_REFUSE_EXPERTS(wna16_cuda_trtllm_fused_experts)
WNA16_REFUSE_FORWARD(wna16_cuda_route)
WNA16_REFUSE_FORWARD(wna16_cuda_linear)
WNA16_REFUSE_FORWARD(wna16_cuda_rms_norm)
WNA16_REFUSE(wna16_cuda_convert)
WNA16_REFUSE(wna16_cuda_convert_bias)
WNA16_REFUSE(wna16_cuda_dequantize)
WNA16_REFUSE(wna16_cuda_quantize)
WNA16_REFUSE(wna16_cuda_fill)
WNA16_REFUSE(wna16_cuda_sum)
WNA16_REFUSE(wna16_cuda_copy)

int32_t wna16_cuda_capability() {
  refuse();
  return -1;
}

wna16_status wna16_cuda_allocate(int64_t, void **memory) {
  if (memory)
    *memory = nullptr;
  return refuse();
}

void wna16_cuda_free(void *) {}

wna16_status wna16_cuda_transfer(void *, const void *, int64_t) {
  return refuse();
}

wna16_status wna16_cuda_synchronize(void *) { return refuse(); }
