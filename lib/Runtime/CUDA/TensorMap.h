//===- TensorMap.h - Tables in memory as the copy engine sees them ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_TENSORMAP_H
#define WNA16_LIB_RUNTIME_CUDA_TENSORMAP_H

#include "Device.h"

#include <cuda.h>

#include <array>

namespace wna16::cuda {

/// A table of three or four axes, innermost first, and the box of it that one
/// copy brings. Boxes lie in shared memory without gaps; swizzled ones, of rows
/// of 128 bytes, as matrix instructions expect them.
struct Table {
  const void *data;
  CUtensorMapDataType type;
  int elementBytes;
  std::array<int64_t, 4> extents; ///< the last may be 0: there are three
  std::array<int, 4> box;
  bool swizzled = false;
};

/// Describes a table to the copy engine; false, with a status, when it cannot
/// be. The host alone is at work: nothing is launched.
bool encode(const char *kernel, const Table &table, CUtensorMap &map);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_TENSORMAP_H
