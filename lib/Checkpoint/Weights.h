//===- Weights.h - From module names to a described weight ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef WNA16_LIB_CHECKPOINT_WEIGHTS_H
#define WNA16_LIB_CHECKPOINT_WEIGHTS_H

#include "Config.h"

#include <set>

namespace wna16 {

/// The modules of one weight, and what is known before its tensors are seen.
struct WeightNames {
  std::string pattern;   ///< of modules, as TensorPattern's without a suffix
  int64_t experts = 0;   ///< 0: the pattern has no "{expert}"
  int64_t halves = 1;    ///< 2: the pattern has alternatives, or is fused
  bool fused = false;    ///< both halves, or all experts, in one tensor
  bool toHidden = false; ///< outputs (not inputs) are the hidden size
};

/// Whether weights, scales and biases may be of this type.
bool isFloat(ScalarType type);

/// Describes weights and keeps account of the tensors that they use.
class WeightReader {
public:
  WeightReader(const SafeTensors &files, const ModelConfig &config,
               const Quantization &quantization, ScalarType element,
               int64_t hidden)
      : files(files), config(config), quantization(quantization),
        element(element), hidden(hidden) {}

  Result<WeightSource> read(const WeightNames &names);
  /// The bias of a weight that was read; none when no module has one.
  Result<std::optional<TensorPattern>> readBias(const WeightNames &names,
                                                const WeightSpec &spec);
  /// One tensor of known shape that is stacked or joined with nothing.
  Result<TensorPattern> readVector(const std::string &tensor, int64_t size);

  const std::set<std::string> &used() const { return usedTensors; }
  std::vector<Finding> findings;

private:
  Result<WeightSource> readPacked(const WeightNames &names,
                                  const std::vector<std::string> &modules);
  Result<WeightSpec> packedSpec(const WeightNames &names,
                                const std::vector<std::string> &modules,
                                const Scheme &scheme) const;
  Failure attachParts(const WeightNames &names, WeightSource &source);
  Result<WeightSource> readDense(const WeightNames &names,
                                 const std::vector<std::string> &modules);
  Result<WeightSpec> schemeSpec(const Scheme &scheme,
                                const std::string &scales) const;
  Result<bool> isPacked(const std::vector<std::string> &modules) const;
  Failure checkVerdicts(const std::vector<std::string> &modules,
                        bool packed) const;
  Result<Scheme> schemeFor(const std::string &module) const;
  std::string formatText(const Scheme &scheme, const WeightSpec &spec) const;
  Result<TensorPattern> makePattern(const WeightNames &names,
                                    const std::string &suffix, int64_t concat,
                                    ScalarType type,
                                    std::vector<int64_t> shape);
  // Fused.cpp
  Result<WeightSource> readFused(const WeightNames &names);
  Result<WeightSource> readFusedDense(const WeightNames &names,
                                      const std::string &tensor);
  Result<WeightSource> readFusedPacked(const WeightNames &names);
  Result<bool> isTransposed(const WeightNames &names, const std::string &tensor,
                            int64_t rows, int64_t columns) const;
  Failure setExtents(const WeightNames &names, const std::string &tensor,
                     int64_t experts, int64_t rows, int64_t input,
                     WeightSpec &spec) const;
  Result<TensorPattern> fusedPart(const std::string &tensor,
                                  const StoredPart &part);
  Result<std::vector<int64_t>> fusedExtents(const std::string &module,
                                            const std::string &tensor,
                                            int64_t bits);
  Result<WeightSpec> fusedSpec(const WeightNames &names,
                               const std::string &codes,
                               const std::string &scales, const Scheme &scheme);

  const SafeTensors &files;
  const ModelConfig &config;
  const Quantization &quantization;
  ScalarType element;
  int64_t hidden; ///< 0: not known
  std::set<std::string> usedTensors;
};

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_WEIGHTS_H
