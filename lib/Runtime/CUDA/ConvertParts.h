//===- ConvertParts.h - How the parts of a weight move -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of a conversion, on the host: nothing of CUDA in it, so that tests
// run all of it where there is no device.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_CONVERTPARTS_H
#define WNA16_LIB_RUNTIME_CUDA_CONVERTPARTS_H

#include "BlockWork.h"
#include "Layout/Move.h"
#include "UnitMove.h"

namespace wna16::cuda {

/// A conversion as kernels see it.
struct Conversion {
  DeviceWeight source, target;
  uint8_t *codes, *scales, *zeros;
  int32_t *groupIndex, *permutation;
  float *globalScale;
  int64_t experts, halves;
  int64_t sourceOutputs, targetOutputs; ///< of a half
  /// What of the source moves: the first, and how many.
  int64_t input, inputs, output, outputs;
  int64_t filled; ///< inputs that have a code: whole groups
  int64_t groups; ///< of the target that have a scale
  int32_t sorts;
  int32_t keepsGroups; ///< act-order: groups are what they were
  int32_t recodes;     ///< codes change with their zero points
  int32_t folds;       ///< scales become int16
};

/// What is to be done.
struct ConvertPlan {
  WeightSpec source;
  WeightSpec target;
  Window window; ///< resolved
};

Conversion describeConversion(const ConvertPlan &plan,
                              const WeightBuffers &from,
                              const WeightBuffers &to);

/// One part of a weight. What has neither blocks nor units, and edges of blocks
/// that are not cleared, is written word by word.
struct PartMove {
  Part part = Part::Codes;
  const void *from = nullptr;
  void *to = nullptr;
  int64_t bytes = 0;           ///< of the target
  std::optional<uint8_t> fill; ///< what each of its bytes is
  std::optional<BlockMove> blocks;
  CodeWork work; ///< of the blocks of codes
  std::optional<UnitMove> units;

  /// What no block covers is padding, of zeros.
  bool exact() const {
    return blocks ? blocks->exact : units ? units->exact : true;
  }
  /// Whether blocks move all there is, and do nothing else.
  bool isPlain() const {
    return fill || (blocks && !blocks->edges && !work.any());
  }
};

/// Codes, then scales and zero points as far as the target has them.
std::vector<PartMove> planParts(const ConvertPlan &plan, const Conversion &p);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_CONVERTPARTS_H
