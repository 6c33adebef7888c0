//===- WideF16Codes8.cu - One instance of the wide kernel -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideKernel.cuh"

template wna16::cuda::WideKernel wna16::cuda::wideKernel<__half, 8>(WideEnd,
                                                                    int, int);
