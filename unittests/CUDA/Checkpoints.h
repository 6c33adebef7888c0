//===- Checkpoints.h - Checkpoints and their references -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_CUDA_CHECKPOINTS_H
#define WNA16_UNITTESTS_CUDA_CHECKPOINTS_H

#include "Checkpoint/SafeTensors.h"

#include <map>

namespace wna16test {

using wna16::ScalarType;

/// Directories of checkpoints with references, of $WNA16_TEST_DATA and
/// test/Inputs.
std::vector<std::string> checkpointDirectories();

struct ReferenceFiles {
  wna16::SafeTensors tensors;
  /// Of the reference's own 16-bit run: "layers.0.M7".
  std::map<std::string, double> errors;
};
ReferenceFiles openReference(const std::string &directory);

/// Elements of a float or i32 tensor.
std::vector<double> valuesOf(ScalarType type, const uint8_t *data,
                             int64_t elements);
std::vector<double> valuesOf(const wna16::TensorView &view);

} // namespace wna16test

#endif // WNA16_UNITTESTS_CUDA_CHECKPOINTS_H
