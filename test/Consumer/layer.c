/*===- layer.c - A layer of experts, from C -----------------------*- C -*-===*\
|*
|* Part of the WNA16 project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Makes float weights, quantizes them into the form of compressed-tensors,
|* brings them into the layout of the CPU's kernels, runs the layer and compares
|* with plain loops over the quantized weights.
|*
\*===----------------------------------------------------------------------===*/

#include "Runtime/wna16.h"
#include "Runtime/wna16_weight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  EXPERTS = 4,
  HIDDEN = 64,
  WIDTH = 32,
  TOP_K = 2,
  TOKENS = 3,
  GROUP = 32
};

static const wna16_dtype F16 = {2, 16, 1}, F32 = {2, 32, 1}, U8 = {1, 8, 1},
                         I32 = {0, 32, 1};

static void expect(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "%s: %s\n", what, wna16_status_message());
  exit(1);
}

/* A tensor of zeros, row-major. One without axes is absent. */
static wna16_tensor make(wna16_dtype dtype, int ndim, int64_t a, int64_t b,
                         int64_t c, int64_t d) {
  const int64_t extents[] = {a, b, c, d};
  int64_t bytes = dtype.bits / 8;
  wna16_tensor tensor = {0};
  tensor.shape = malloc(sizeof extents);
  expect(tensor.shape != NULL, "memory");
  for (int i = 0; i < ndim; ++i)
    bytes *= tensor.shape[i] = extents[i];
  tensor.data = calloc(1, (size_t)bytes);
  expect(tensor.data != NULL, "memory");
  tensor.device.device_type = 1;
  tensor.ndim = ndim;
  tensor.dtype = dtype;
  return tensor;
}

static void release(wna16_tensor *tensors, int count) {
  for (int i = 0; i < count; ++i) {
    free(tensors[i].data);
    free(tensors[i].shape);
  }
}

static float *floats(const wna16_tensor *tensor) { return tensor->data; }

/* Numbers in [-1, 1). */
static float draw(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 23) - 1;
}

/*===----------------------------------------------------------------------===*\
|* Weights
\*===----------------------------------------------------------------------===*/

typedef struct {
  wna16_weight plan;
  wna16_tensor parts[WNA16_WEIGHT_TENSORS];
} weight;

static weight make_weight(wna16_layout layout, int64_t input, int64_t halves,
                          int64_t output) {
  const int64_t rows = halves * output, groups = input / GROUP;
  weight w = {0};
  wna16_tensor *codes = &w.parts[WNA16_PART_CODES];
  wna16_tensor *scales = &w.parts[WNA16_PART_SCALES];
  w.plan.code = WNA16_CODE_U4B8;
  w.plan.element = WNA16_F32;
  w.plan.scale = WNA16_F16;
  w.plan.zeros = WNA16_ZEROS_NONE;
  w.plan.act_order = WNA16_ORDER_NONE;
  w.plan.group = GROUP;
  w.plan.layout = layout;
  w.plan.experts = EXPERTS;
  w.plan.input = input;
  w.plan.halves = halves;
  w.plan.output = output;
  if (layout == WNA16_LAYOUT_DENSE) {
    w.plan.code = WNA16_CODE_DENSE;
    *codes = make(F32, 3, EXPERTS, rows, input, 0);
  } else if (layout == WNA16_LAYOUT_COMPRESSED_TENSORS) {
    *codes = make(I32, 3, EXPERTS, rows, input / 8, 0);
    *scales = make(F16, 3, EXPERTS, rows, groups, 0);
  } else { /* WNA16_LAYOUT_CPU_PANELS */
    *codes = make(U8, 4, EXPERTS, rows / 32, input / 4, 64);
    *scales = make(F16, 4, EXPERTS, rows / 32, groups, 32);
  }
  return w;
}

static void append(wna16_tensor *tensors, int *count, const wna16_tensor *from,
                   int more) {
  for (int i = 0; i < more; ++i)
    tensors[(*count)++] = from[i];
}

/* One step from one stored form to another. A dense weight is one tensor for
 * quantize and dequantize, any other six. */
static void convert(wna16_kernel step, const weight *from, weight *to) {
  wna16_convert_plan plan = {0};
  wna16_tensor tensors[2 * WNA16_WEIGHT_TENSORS];
  int count = 0;
  plan.abi_version = WNA16_ABI_VERSION;
  plan.source = from->plan;
  plan.target = to->plan;
  append(tensors, &count, from->parts,
         from->plan.code == WNA16_CODE_DENSE ? 1 : WNA16_WEIGHT_TENSORS);
  append(tensors, &count, to->parts,
         to->plan.code == WNA16_CODE_DENSE ? 1 : WNA16_WEIGHT_TENSORS);
  expect(step(&plan, tensors, count, NULL, 0, NULL) == WNA16_OK, "convert");
}

/* Random weights as a kernel takes them; `values` become what they stand for.
 */
static weight prepare(int64_t input, int64_t halves, int64_t output,
                      weight *values) {
  weight stored =
      make_weight(WNA16_LAYOUT_COMPRESSED_TENSORS, input, halves, output);
  weight panels = make_weight(WNA16_LAYOUT_CPU_PANELS, input, halves, output);
  *values = make_weight(WNA16_LAYOUT_DENSE, input, halves, output);
  for (int64_t i = 0; i < EXPERTS * halves * output * input; ++i)
    floats(values->parts)[i] = draw() / sqrtf((float)input);
  convert(wna16_cpu_quantize, values, &stored);
  convert(wna16_cpu_dequantize, &stored, values);
  convert(wna16_cpu_convert, &stored, &panels);
  release(stored.parts, WNA16_WEIGHT_TENSORS);
  return panels;
}

/*===----------------------------------------------------------------------===*\
|* The layer
\*===----------------------------------------------------------------------===*/

static void run(const weight *w13, const weight *w2,
                const wna16_tensor *routed /* x, weights, ids */,
                const wna16_tensor *y) {
  wna16_experts_plan plan = {0};
  wna16_tensor tensors[7 + 2 * WNA16_WEIGHT_TENSORS] = {{0}};
  int count = 0;
  plan.abi_version = WNA16_ABI_VERSION;
  plan.w13 = w13->plan;
  plan.w2 = w2->plan;
  plan.hidden = HIDDEN;
  plan.element = WNA16_F32;
  plan.top_k = TOP_K;
  plan.activation = WNA16_SILU;
  plan.bias_layout = WNA16_LAYOUT_DENSE;
  plan.limit = INFINITY;
  append(tensors, &count, routed, 3);
  append(tensors, &count, w13->parts, WNA16_WEIGHT_TENSORS);
  append(tensors, &count, w2->parts, WNA16_WEIGHT_TENSORS);
  count += 3; /* no biases, no expert map */
  append(tensors, &count, y, 1);

  int64_t bytes = wna16_cpu_fused_experts_workspace(&plan, TOKENS);
  expect(bytes >= 0, "workspace");
  void *workspace = aligned_alloc(64, (size_t)(bytes + 64) / 64 * 64);
  expect(workspace != NULL, "memory");
  expect(wna16_cpu_fused_experts(&plan, tensors, count, workspace, bytes,
                                 NULL) == WNA16_OK,
         "fused_experts");
  free(workspace);
}

static double dot(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += (double)a[i] * b[i];
  return sum;
}

/* What one expert adds to one token. */
static void add_expert(const float *x, const float *w13, const float *w2,
                       double by, double *y) {
  float between[WIDTH];
  for (int64_t n = 0; n < WIDTH; ++n) {
    double gate = dot(w13 + n * HIDDEN, x, HIDDEN);
    double up = dot(w13 + (WIDTH + n) * HIDDEN, x, HIDDEN);
    between[n] = (float)(gate / (1 + exp(-gate)) * up);
  }
  for (int64_t k = 0; k < HIDDEN; ++k)
    y[k] += by * dot(w2 + k * WIDTH, between, WIDTH);
}

int main(void) {
  weight values13, values2;
  weight w13 = prepare(HIDDEN, 2, WIDTH, &values13);
  weight w2 = prepare(WIDTH, 1, HIDDEN, &values2);
  wna16_tensor routed[] = {make(F32, 2, TOKENS, HIDDEN, 0, 0),
                           make(F32, 2, TOKENS, TOP_K, 0, 0),
                           make(I32, 2, TOKENS, TOP_K, 0, 0)};
  wna16_tensor y = make(F32, 2, TOKENS, HIDDEN, 0, 0);
  int32_t *ids = routed[2].data;
  double off = 0, all = 0;
  for (int64_t i = 0; i < TOKENS * HIDDEN; ++i)
    floats(&routed[0])[i] = draw();
  for (int32_t i = 0; i < TOKENS * TOP_K; ++i) {
    floats(&routed[1])[i] = i % TOP_K ? 0.25f : 0.75f;
    ids[i] = (i + i / TOP_K) % EXPERTS;
  }
  run(&w13, &w2, routed, &y);

  for (int64_t m = 0; m < TOKENS; ++m) {
    double expected[HIDDEN] = {0};
    for (int64_t i = m * TOP_K; i < (m + 1) * TOP_K; ++i)
      add_expert(floats(&routed[0]) + m * HIDDEN,
                 floats(values13.parts) + ids[i] * 2 * WIDTH * HIDDEN,
                 floats(values2.parts) + ids[i] * HIDDEN * WIDTH,
                 floats(&routed[1])[i], expected);
    for (int64_t k = 0; k < HIDDEN; ++k) {
      double error = floats(&y)[m * HIDDEN + k] - expected[k];
      off += error * error;
      all += expected[k] * expected[k];
    }
  }
  printf("relative error %.1e\n", sqrt(off / all));
  release(w13.parts, WNA16_WEIGHT_TENSORS);
  release(w2.parts, WNA16_WEIGHT_TENSORS);
  release(values13.parts, WNA16_WEIGHT_TENSORS);
  release(values2.parts, WNA16_WEIGHT_TENSORS);
  release(routed, 3);
  release(&y, 1);
  return off <= 1e-10 * all ? 0 : 1; /* f32: 1e-5 */
}
