/*===- wna16_weight.h - What the fields of a weight may hold ------*- C -*-===*\
|*
|* Part of the WNA16 project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Names for the numbers in a wna16_weight. None is ever given another meaning.
|*
\*===----------------------------------------------------------------------===*/

#ifndef WNA16_RUNTIME_WNA16_WEIGHT_H
#define WNA16_RUNTIME_WNA16_WEIGHT_H

/* wna16_weight.element, .scale, and wna16_experts_plan.element. */
typedef enum {
  WNA16_F16 = 0,
  WNA16_BF16 = 1,
  WNA16_F32 = 2,
  WNA16_F64 = 3,
  WNA16_I8 = 4,
  WNA16_U8 = 5,
  WNA16_I16 = 6,
  WNA16_I32 = 7,
  WNA16_I64 = 8,
  WNA16_BOOL = 9
} wna16_scalar;

/* wna16_weight.code: a weight is (Q - z) * s for the code Q. */
typedef enum {
  WNA16_CODE_DENSE = 0,  /* no code: elements, no scales */
  WNA16_CODE_U4 = 1,     /* 0 .. 15, z from the zero points */
  WNA16_CODE_U4B8 = 2,   /* 0 .. 15, z = 8 */
  WNA16_CODE_S4 = 3,     /* -8 .. 7, z = 0 */
  WNA16_CODE_U8 = 4,     /* 0 .. 255, z from the zero points */
  WNA16_CODE_U8B128 = 5, /* 0 .. 255, z = 128 */
  WNA16_CODE_S8 = 6,     /* -128 .. 127, z = 0 */
  WNA16_CODE_U4FP8 = 7   /* 4 bits rewritten for fp8 activations */
} wna16_code;

/* wna16_weight.zeros */
typedef enum {
  WNA16_ZEROS_NONE = 0,     /* no tensor: the code says them */
  WNA16_ZEROS_PLAIN = 1,    /* z */
  WNA16_ZEROS_MINUS_ONE = 2 /* z - 1, as GPTQ v1 */
} wna16_zeros;

/* wna16_weight.act_order */
typedef enum {
  WNA16_ORDER_NONE = 0,  /* input k belongs to group k / group */
  WNA16_ORDER_INDEX = 1, /* to group index[k] */
  WNA16_ORDER_SORTED = 2 /* to group k / group, and was permutation[k] */
} wna16_order;

/* wna16_weight.layout, wna16_experts_plan.bias_layout: what `wna16 layout NAME`
 * shows. Layout/Catalogue.h lists the shapes of the tensors. */
typedef enum {
  WNA16_LAYOUT_DENSE = 0,
  WNA16_LAYOUT_INTERLEAVED = 1,
  WNA16_LAYOUT_GPTQ = 2,
  WNA16_LAYOUT_AWQ = 3,
  WNA16_LAYOUT_COMPRESSED_TENSORS = 4,
  WNA16_LAYOUT_MARLIN = 5,
  WNA16_LAYOUT_MARLIN_A8 = 6,
  WNA16_LAYOUT_HUMMING_MMA = 7,
  WNA16_LAYOUT_HUMMING_WGMMA = 8,
  WNA16_LAYOUT_CPU_BLOCKED = 9,
  WNA16_LAYOUT_TRTLLM = 10,
  WNA16_LAYOUT_XPU = 11,
  WNA16_LAYOUT_OTF = 12,
  WNA16_LAYOUT_TRANSPOSED = 13,
  WNA16_LAYOUT_TRANSPOSED_INTERLEAVED = 14,
  WNA16_LAYOUT_CPU_PANELS = 15
} wna16_layout;

/* The place of each tensor of a weight among its six. */
typedef enum {
  WNA16_PART_CODES = 0,
  WNA16_PART_SCALES = 1,
  WNA16_PART_ZEROS = 2,
  WNA16_PART_GROUP_INDEX = 3,
  WNA16_PART_PERMUTATION = 4,
  WNA16_PART_GLOBAL_SCALE = 5
} wna16_part;

#endif /* WNA16_RUNTIME_WNA16_WEIGHT_H */
