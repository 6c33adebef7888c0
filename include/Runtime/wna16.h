/*===- wna16.h - The WNA16 runtime, C ABI -------------------------*- C -*-===*\
|*
|* Part of the WNA16 project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Kernels that compiled modules, C, C++ and Python call. Every kernel has one
|* signature: a plan (what is constant: shapes, encodings, parameters), tensors
|* in the order its section lists, the caller's workspace and stream. A call
|* allocates nothing, returns a status and leaves a message for the calling
|* thread. Optional tensors that are absent have data == NULL and ndim == 0.
|*
|* E experts, K hidden size, N intermediate size, M tokens, k experts a token.
|*
\*===----------------------------------------------------------------------===*/

#ifndef WNA16_RUNTIME_WNA16_H
#define WNA16_RUNTIME_WNA16_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A new version adds and changes nothing that was there: fields at the end of a
 * plan, whose 0 means what the versions before did, and tensors that calls with
 * older plans do not pass. A library takes plans and compiled modules of
 * WNA16_ABI_OLDEST up to its own version and reads no field that their version
 * lacks; to newer ones it says both numbers. So a runtime may be replaced by a
 * newer one under what was compiled before.
 *   2: windows of a weight and the groups that a share keeps
 *   3: route: sparse mixers, expert_scale, 16-bit correction biases; rms_norm
 */
#define WNA16_ABI_VERSION 3
#define WNA16_ABI_OLDEST 2
#define WNA16_EXPORT __attribute__((visibility("default")))

typedef int32_t wna16_status;
enum {
  WNA16_OK = 0,
  WNA16_INVALID_ARGUMENT = 1, /* a tensor or plan does not fit */
  WNA16_UNSUPPORTED = 2,      /* this library does not do that (yet) */
  WNA16_OUT_OF_RANGE = 3,     /* data out of range: an expert id, a group */
  WNA16_WORKSPACE = 4,        /* the workspace is too small */
  WNA16_FAILED = 5            /* the device or system failed */
};

/* The version this library was built with (WNA16_ABI_VERSION). */
WNA16_EXPORT uint32_t wna16_abi_version(void);

/* The status is sticky per thread, so that generated code needs no branches:
 * a kernel called while the thread's status is not WNA16_OK does nothing and
 * returns it. wna16_status_clear() starts anew. */
WNA16_EXPORT wna16_status wna16_status_get(void);
WNA16_EXPORT const char *wna16_status_message(void);
WNA16_EXPORT void wna16_status_clear(void);

/* Threads a call may use, from now on and for every caller; 0: one per core
 * that the process may run on. Results do not depend on it. */
WNA16_EXPORT void wna16_set_num_threads(int32_t threads);
WNA16_EXPORT int32_t wna16_get_num_threads(void);

/* A caller's own threads. Calls body(data, i, worker) once for each i in
 * [0, count), in any order, on up to `threads` of them, and returns after the
 * last one; `worker` is in [0, threads), and no two bodies that run at a time
 * have the same. */
typedef void (*wna16_parallel_for)(
    void *context, int32_t threads, int64_t count,
    void (*body)(void *data, int64_t i, int32_t worker), void *data);
/* Loops of every call run on `run`'s threads from now on, each loop with up to
 * wna16_get_num_threads() of them; NULL: on the library's own. No call may be
 * under way. Results do not depend on it. */
WNA16_EXPORT void wna16_set_parallel_for(wna16_parallel_for run, void *context);

/* A tensor, layout-compatible with DLPack's DLTensor. strides == NULL means
 * row-major; otherwise strides count elements and must describe the same. */
typedef struct {
  int32_t device_type; /* 1: CPU, 2: CUDA, as kDLCPU and kDLCUDA */
  int32_t device_id;
} wna16_device;

typedef struct {
  uint8_t code; /* 0: int, 1: unsigned, 2: float, 4: bfloat, 6: bool */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} wna16_dtype;

typedef struct {
  void *data;
  wna16_device device;
  int32_t ndim;
  wna16_dtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} wna16_tensor;

/* One kernel's entry point. `plan` points to the kernel's plan struct. */
typedef wna16_status (*wna16_kernel)(const void *plan,
                                     const wna16_tensor *tensors, int64_t count,
                                     void *workspace, int64_t workspace_bytes,
                                     void *stream);

/* Each kernel that can be called in `forward` has a companion, its name with
 * _workspace appended: the bytes of workspace that a call with at most `tokens`
 * tokens (batched: rows of one expert) needs with the current number of
 * threads, non-decreasing in both; -1, with a status, when the plan is bad. The
 * thread's status is cleared first. A workspace is aligned to 64 bytes. */
typedef int64_t (*wna16_workspace)(const void *plan, int64_t tokens);

/* What compiled entry points call before anything else. `signature` is the
 * device type, n, and then for each of n tensors its wna16_scalar, rank and
 * extents; -1 is any extent, numbers below are symbols, of which equal ones
 * stand for equal extents. Clears the thread's status, then checks. */
WNA16_EXPORT wna16_status wna16_check_arguments(const int64_t *signature,
                                                const wna16_tensor *tensors,
                                                int64_t count);
WNA16_EXPORT wna16_status wna16_check_workspace(int64_t needed,
                                                const void *workspace,
                                                int64_t workspace_bytes);

/* Plans consist of 8-byte fields only, so that a compiler can emit one as a
 * constant array. wna16_weight.h names the values of a weight's fields. */

/* A stored weight. Its tensors are six, or one where a section says dense:
 * codes, scales, zeros, group index, permutation, global scale. */
typedef struct {
  int64_t code;      /* wna16_code */
  int64_t element;   /* wna16_scalar */
  int64_t scale;     /* wna16_scalar */
  int64_t zeros;     /* wna16_zeros */
  int64_t act_order; /* wna16_order */
  int64_t group;
  int64_t layout; /* wna16_layout */
  int64_t experts;
  int64_t input;
  int64_t halves;
  int64_t output;
  int64_t kept_groups; /* 0: those of the input; see WeightSpec::keptGroups */
} wna16_weight;
enum { WNA16_WEIGHT_TENSORS = 6 };

typedef enum {
  WNA16_SOFTMAX = 0,
  WNA16_SIGMOID = 1,
  WNA16_SPARSEMIXER = 2 /* no correction, groups, renormalize */
} wna16_scoring;

/* route: logits -> weights f32 [M, k], ids i32 [M, k].
 * tensors: logits [M, E], correction bias [E] or absent, from version 3 on
 * expert_scale [E] or absent (all f32, f16 or bf16); out: weights, ids. See the
 * dialect's operation of that name for the contract. Ties go to the lowest
 * index; slots are in order of descending choice score. */
typedef struct {
  int64_t abi_version;
  int64_t experts;
  int64_t top_k;
  int64_t scoring; /* wna16_scoring */
  int64_t renormalize;
  int64_t groups;     /* 0 or 1: not grouped */
  int64_t top_groups; /* groups kept */
  int64_t
      softmax_after_topk; /* 1: scores are the softmax of the chosen logits */
  double scaling;         /* multiplies the weights; 1: none */
  /* Version 3. */
  double jitter; /* sparsemixer: half the relative distance of logits that an
                    expert's weight takes in; else 0 */
} wna16_route_plan;
WNA16_EXPORT wna16_status wna16_cpu_route(const void *plan,
                                          const wna16_tensor *tensors,
                                          int64_t count, void *workspace,
                                          int64_t workspace_bytes,
                                          void *stream);
WNA16_EXPORT int64_t wna16_cpu_route_workspace(const void *plan,
                                               int64_t tokens);

/* linear: y [M, N] = x [M, K] * w (+ bias [N]), f32 accumulation, rounded once
 * to y's type. tensors: x, the six of w (experts == 1), bias or absent;
 * out: y. */
typedef struct {
  int64_t abi_version;
  wna16_weight weight;
  int64_t batch_invariant;
} wna16_linear_plan;
WNA16_EXPORT wna16_status wna16_cpu_linear(const void *plan,
                                           const wna16_tensor *tensors,
                                           int64_t count, void *workspace,
                                           int64_t workspace_bytes,
                                           void *stream);
WNA16_EXPORT int64_t wna16_cpu_linear_workspace(const void *plan,
                                                int64_t tokens);

/* rms_norm: y [M, K] = x / sqrt(mean of the squares of its row + epsilon) *
 * weight * scale (+ addend), in f32, rounded once to y's type. tensors: x;
 * weight [K]; addend [M, K] or absent; out: y; each f32, f16 or bf16. Needs no
 * workspace. */
typedef struct {
  int64_t abi_version;
  int64_t hidden; /* K */
  double epsilon;
  double scale;
} wna16_rms_norm_plan;
WNA16_EXPORT wna16_status wna16_cpu_rms_norm(const void *plan,
                                             const wna16_tensor *tensors,
                                             int64_t count, void *workspace,
                                             int64_t workspace_bytes,
                                             void *stream);
WNA16_EXPORT int64_t wna16_cpu_rms_norm_workspace(const void *plan,
                                                  int64_t tokens);

typedef enum {
  WNA16_SILU = 0,
  WNA16_GELU = 1,      /* erf */
  WNA16_GELU_TANH = 2, /* tanh approximation */
  WNA16_RELU2 = 3,     /* max(x, 0)^2 */
  WNA16_SWIGLUOAI =
      4, /* min(x,c) * sigmoid(alpha min(x,c)) * (clamp(y,c)+beta) */
  WNA16_SWIGLUSTEP = 5 /* min(silu(x), c) * clamp(y, c) */
} wna16_activation;

/* fused_experts: see the dialect's operation of that name for the contract.
 * tensors: x [M, K] (batched: [E, T, K]); topk weights f32 [M, k] or absent
 * (batched: absent); topk ids i32 [M, k] (batched: tokens of each expert, i32
 * [E]); the six of w13; the six of w2; bias13 [E, halves, N] or absent; bias2
 * [E, K] or absent; expert map i32 [global experts] or absent; out: y, of x's
 * shape, in x's type or f32. Rows of a batched y beyond an expert's tokens are
 * written as zeros. */
typedef struct {
  int64_t abi_version;
  wna16_weight w13;
  wna16_weight w2;
  int64_t hidden;  /* K of x and y; w13.input and w2.output may be padded */
  int64_t element; /* wna16_scalar of x */
  int64_t top_k;
  int64_t activation;      /* wna16_activation */
  int64_t activation_type; /* 0: 16-bit, 1: int8, 2: fp8 */
  int64_t batched;
  int64_t weight_on_input; /* 1: routing weight multiplies x */
  int64_t batch_invariant;
  int64_t
      bias_layout; /* wna16_layout of the two biases; dense: natural order */
  double alpha;
  double beta;
  double limit; /* +infinity: none */
} wna16_experts_plan;
WNA16_EXPORT wna16_status wna16_cpu_fused_experts(
    const void *plan, const wna16_tensor *tensors, int64_t count,
    void *workspace, int64_t workspace_bytes, void *stream);
WNA16_EXPORT int64_t wna16_cpu_fused_experts_workspace(const void *plan,
                                                       int64_t tokens);
/* The name of the kernel that a call with that many tokens runs ("portable");
 * NULL, with a status, when the plan is bad. */
WNA16_EXPORT const char *wna16_cpu_fused_experts_kernel(const void *plan,
                                                        int64_t tokens);

/* convert: one step from one stored form to another (pad, regroup, repack,
 * recode, sort, shard). tensors: the six of the source; out: the six of the
 * target. A window takes inputs [input, input + inputs) and of each half
 * outputs [output, output + outputs) of the source alone. Allocates its index
 * tables: it is a preparation step, not a call of forward. */
typedef struct {
  int64_t abi_version;
  wna16_weight source;
  wna16_weight target;
  int64_t scale_first; /* dequantize: rnd(rnd(Q - z) * rnd(s)) */
  /* The window of convert and convert_bias (outputs alone); without one these
   * are 0. */
  int64_t input;
  int64_t inputs; /* 0: all from the first on */
  int64_t output;
  int64_t outputs; /* 0: all from the first on */
} wna16_convert_plan;
WNA16_EXPORT wna16_status wna16_cpu_convert(const void *plan,
                                            const wna16_tensor *tensors,
                                            int64_t count, void *workspace,
                                            int64_t workspace_bytes,
                                            void *stream);

/* convert_bias: tensors: source [E, halves, N]; out: target. The weights name
 * layout and extents only. */
WNA16_EXPORT wna16_status wna16_cpu_convert_bias(const void *plan,
                                                 const wna16_tensor *tensors,
                                                 int64_t count, void *workspace,
                                                 int64_t workspace_bytes,
                                                 void *stream);

/* dequantize: tensors: the six of the source; out: dense [E, halves * N, K] of
 * target.element. plan: wna16_convert_plan with a dense target. */
WNA16_EXPORT wna16_status wna16_cpu_dequantize(const void *plan,
                                               const wna16_tensor *tensors,
                                               int64_t count, void *workspace,
                                               int64_t workspace_bytes,
                                               void *stream);

/* quantize: tensors: dense [E, halves * N, K]; out: the six of the target.
 * plan: wna16_convert_plan with a dense source. */
WNA16_EXPORT wna16_status wna16_cpu_quantize(const void *plan,
                                             const wna16_tensor *tensors,
                                             int64_t count, void *workspace,
                                             int64_t workspace_bytes,
                                             void *stream);

#ifdef __cplusplus
}
#endif

#endif /* WNA16_RUNTIME_WNA16_H */
