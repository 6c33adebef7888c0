/*===- wna16_cuda.h - The WNA16 runtime's CUDA kernels ------------*- C -*-===*\
|*
|* Part of the WNA16 project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The kernels of wna16.h on NVIDIA GPUs: same plans, same tensors in the same
|* order, all on the calling thread's current device (device type 2). A call
|* puts work on `stream` (a cudaStream_t; NULL: the default stream) and returns:
|* it neither waits nor allocates, so a CUDA graph can capture it. Data is
|* therefore not checked: an expert id out of range counts as -1, a group index
|* or permutation out of range as the nearest in range. A machine without a GPU
|* gets WNA16_FAILED, a build without CUDA WNA16_UNSUPPORTED.
|*
\*===----------------------------------------------------------------------===*/

#ifndef WNA16_RUNTIME_WNA16_CUDA_H
#define WNA16_RUNTIME_WNA16_CUDA_H

#include "Runtime/wna16.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WNA16_CUDA_KERNEL(NAME)                                                \
  WNA16_EXPORT wna16_status NAME(                                              \
      const void *plan, const wna16_tensor *tensors, int64_t count,            \
      void *workspace, int64_t workspace_bytes, void *stream);

/* A kernel of `forward`, with the size of its workspace. */
#define WNA16_CUDA_FORWARD_KERNEL(NAME)                                        \
  WNA16_CUDA_KERNEL(NAME)                                                      \
  WNA16_EXPORT int64_t NAME##_workspace(const void *plan, int64_t tokens);

/* fused_experts, by backend; all take the plan of any. NAME_kernel is the name
 * of the kernel that a call with that many tokens runs on the current device;
 * NULL, with a status, when the plan is bad or there is no device. */
#define WNA16_CUDA_EXPERTS(NAME)                                               \
  WNA16_CUDA_FORWARD_KERNEL(NAME)                                              \
  WNA16_EXPORT const char *NAME##_kernel(const void *plan, int64_t tokens);

WNA16_CUDA_EXPERTS(wna16_cuda_fused_experts)
WNA16_CUDA_EXPERTS(wna16_cuda_marlin_fused_experts)
WNA16_CUDA_EXPERTS(wna16_cuda_batched_marlin_fused_experts)
WNA16_CUDA_EXPERTS(wna16_cuda_humming_fused_experts)
WNA16_CUDA_EXPERTS(wna16_cuda_trtllm_fused_experts)
WNA16_CUDA_FORWARD_KERNEL(wna16_cuda_route)
WNA16_CUDA_FORWARD_KERNEL(wna16_cuda_linear)
WNA16_CUDA_FORWARD_KERNEL(wna16_cuda_rms_norm)

/* Preparation, all that the CPU does but quantize, for experts of fewer than
 * 2^31 codes. What the CPU finds in the data goes unnoticed: scales that
 * overflow their new type, groups of unequal size to be sorted, scales to be
 * folded of which none is positive. */
WNA16_CUDA_KERNEL(wna16_cuda_convert)
WNA16_CUDA_KERNEL(wna16_cuda_convert_bias)
WNA16_CUDA_KERNEL(wna16_cuda_dequantize)
WNA16_CUDA_KERNEL(wna16_cuda_quantize)

/* What loops between the kernels of `forward` become where the host cannot run
 * them; without workspace. All tensors of a call have one shape. */

/* fill: tensors: out: y, f16, bf16, f32 or i32. */
typedef struct {
  int64_t abi_version;
  double value; /* rounded to y's type */
} wna16_fill_plan;
WNA16_CUDA_KERNEL(wna16_cuda_fill)

/* sum: y = a + b, added in f32 and rounded once. tensors: a; b or absent; out:
 * y; each f16, bf16 or f32. */
typedef struct {
  int64_t abi_version;
} wna16_sum_plan;
WNA16_CUDA_KERNEL(wna16_cuda_sum)

/* copy: tensors: source; out: target, of any one type. */
typedef struct {
  int64_t abi_version;
} wna16_copy_plan;
WNA16_CUDA_KERNEL(wna16_cuda_copy)

/* Compute capability of the calling thread's current device, 90 for sm_90; -1,
 * with a status, when there is none that can be used. */
WNA16_EXPORT int32_t wna16_cuda_capability(void);

/* Memory of the calling thread's current device, for programs that know CUDA
 * through this library alone. Each call waits for what it does; like kernels,
 * they do nothing while the thread's status is not WNA16_OK. */
WNA16_EXPORT wna16_status wna16_cuda_allocate(int64_t bytes, void **memory);
/* Nothing happens to a null pointer. Never fails. */
WNA16_EXPORT void wna16_cuda_free(void *memory);
/* Between memory of the host and of the device, either way. */
WNA16_EXPORT wna16_status wna16_cuda_transfer(void *target, const void *source,
                                              int64_t bytes);
/* Waits for all work on a stream. */
WNA16_EXPORT wna16_status wna16_cuda_synchronize(void *stream);

#undef WNA16_CUDA_EXPERTS
#undef WNA16_CUDA_FORWARD_KERNEL
#undef WNA16_CUDA_KERNEL

#ifdef __cplusplus
}
#endif

#endif /* WNA16_RUNTIME_WNA16_CUDA_H */
