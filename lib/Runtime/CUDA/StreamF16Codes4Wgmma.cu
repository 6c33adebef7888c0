//===- StreamF16Codes4Wgmma.cu - One instance of the streaming kernel ---===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamKernel.cuh"

template wna16::cuda::StreamKernel
wna16::cuda::streamKernel<__half, 4, true>(bool, int);
