//===- Describe.h - Weights as kernels see them --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_DESCRIBE_H
#define WNA16_LIB_RUNTIME_CUDA_DESCRIBE_H

#include "Parameters.h"

namespace wna16::cuda {

/// Whether the tiled kernels read this weight: 16 x 64 tiles, scales of the
/// element type, rows in order.
bool isTiled(const WeightSpec &weight, ScalarType element);
/// Of a tiled weight: whether an output, not an input, comes first in a word.
bool isSwapped(const WeightSpec &weight);
/// Of a tiled weight: whether zero points are in the order of scales, n3 first.
bool shiftsZeros(const WeightSpec &weight);

/// Input tile t of a weight is in group umulhi(t, magic): a division without
/// dividing, exact for t * d < 2^32. 0 where there is one group.
uint32_t divisionMagic(const WeightSpec &weight);

/// Descriptions for kernels; the spec passed the checks.
DeviceWeight describe(const WeightSpec &spec, const WeightBuffers &buffers);
DeviceMap describe(const AddressMap &map, int64_t outputs);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_DESCRIBE_H
