//===- SynthModel.h - The tensors of a made-up model ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_SYNTHMODEL_H
#define WNA16_TOOLS_WNA16_SYNTHMODEL_H

#include "Checkpoint/TargetFormat.h"

#include <string>
#include <vector>

namespace wna16::cli {

struct SynthOptions {
  std::string model; ///< model_type
  const TargetFormat *format = nullptr;
  int64_t experts = 0, topK = 0, hidden = 0, intermediate = 0;
  int64_t layers = 1;
  int bits = 4;
  int64_t group = 128;
  bool symmetric = true;
  bool actOrder = false;
};

/// A tensor and what its numbers are like.
struct SynthTensor {
  ModuleTensor plan;
  WeightSpec spec;            ///< of its module; floats: dense
  float mean = 0, spread = 0; ///< of floats
  std::string stream;         ///< names the numbers; empty: the tensor's name

  bool isFloat() const {
    return plan.tensor.type == ScalarType::F16 ||
           plan.tensor.type == ScalarType::BF16 ||
           plan.tensor.type == ScalarType::F32;
  }
  /// Can be made piece by piece.
  bool isStream() const {
    return plan.content == ModuleTensor::Stored &&
           plan.part != Part::GroupIndex;
  }
};

struct SynthModel {
  std::string config;
  std::vector<SynthTensor> tensors; ///< in the order of the files
  int64_t hidden = 0;
};

Result<SynthModel> planModel(const SynthOptions &options);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_SYNTHMODEL_H
