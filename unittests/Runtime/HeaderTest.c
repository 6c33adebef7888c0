/*===- HeaderTest.c - The C ABI from C ----------------------------*- C -*-===*\
|*
|* Part of the WNA16 project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "Runtime/wna16.h"
#include "Runtime/wna16_weight.h"

_Static_assert(sizeof(wna16_tensor) == 48, "as DLPack's DLTensor");
_Static_assert(sizeof(wna16_weight) == 12 * 8, "8-byte fields only");
_Static_assert(sizeof(wna16_route_plan) == 10 * 8, "8-byte fields only");
_Static_assert(sizeof(wna16_rms_norm_plan) == 4 * 8, "8-byte fields only");
_Static_assert(sizeof(wna16_linear_plan) == 14 * 8, "8-byte fields only");
_Static_assert(sizeof(wna16_experts_plan) == 37 * 8, "8-byte fields only");
_Static_assert(sizeof(wna16_convert_plan) == 30 * 8, "8-byte fields only");

/* The kernels have the types that the header promises. */
wna16_kernel wna16_test_kernels[] = {
    wna16_cpu_route,         wna16_cpu_rms_norm, wna16_cpu_linear,
    wna16_cpu_fused_experts, wna16_cpu_convert,  wna16_cpu_convert_bias,
    wna16_cpu_dequantize,    wna16_cpu_quantize};
wna16_workspace wna16_test_workspaces[] = {
    wna16_cpu_route_workspace, wna16_cpu_rms_norm_workspace,
    wna16_cpu_linear_workspace, wna16_cpu_fused_experts_workspace};
