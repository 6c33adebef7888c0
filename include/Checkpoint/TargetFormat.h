//===- TargetFormat.h - Formats that can be written -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a linear module becomes in a format: its specification, its tensors and
// its configuration. One row of one table for each format; what a format cannot
// hold exactly is refused.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_TARGETFORMAT_H
#define WNA16_CHECKPOINT_TARGETFORMAT_H

#include "Checkpoint/Checkpoint.h"
#include "Checkpoint/CheckpointWriter.h"

namespace wna16 {

/// A row of the table.
struct TargetFormat {
  const char *name;   ///< "gptq_v2"
  const char *method; ///< quant_method; null: floats
  const char *layout;
  ZeroPoints zeros; ///< how zero points are stored
  bool needsZeros;  ///< a weight without gets those that its codes imply
  bool eightBits;   ///< has 8-bit codes
  bool actOrder;    ///< has group indices
  bool wholeGroups; ///< no short last group
  int64_t WeightSpec::*words; ///< the extent that words of codes fill; or null
};

/// "gptq", "gptq_v2", "awq", "compressed-tensors" or "dense"; null for others.
const TargetFormat *findTargetFormat(std::string_view name);

/// What a weight is in a format, or why the format cannot hold it exactly.
Result<WeightSpec> specIn(const TargetFormat &format, const WeightSpec &source);

/// One scheme for all modules of a checkpoint.
struct TargetScheme {
  int64_t bits = 4;
  int64_t group = -1;
  bool symmetric = true;
  bool actOrder = false;

  static TargetScheme of(const WeightSpec &spec);
};

/// One tensor of a module.
struct ModuleTensor {
  enum Content {
    Stored,       ///< a part of the weight
    ImpliedZeros, ///< zero points that nobody reads
    GroupIndex,   ///< k / group
    Shape,        ///< output, input
  };
  PlannedTensor tensor;
  Content content = Stored;
  Part part = Part::Codes;
};

/// The tensors of a module whose weight is `spec`, one expert with one half.
Result<std::vector<ModuleTensor>> tensorsOf(const TargetFormat &format,
                                            const std::string &module,
                                            const WeightSpec &spec,
                                            const TargetScheme &scheme);
/// Writes a tensor that is not Stored.
void fillConstant(const TargetFormat &format, const ModuleTensor &tensor,
                  const WeightSpec &spec, uint8_t *out);

/// Zero points that the format's readers do not agree on: GPTQ v1 stores z - 1,
/// and 0 wraps. `zeros` is the stored tensor.
Failure checkStoredZeros(const TargetFormat &format, const WeightSpec &spec,
                         const uint8_t *zeros);

/// `config`, the text of a config.json, with the quantisation of the format in
/// the place of its own. `kept` names linear modules that stay dense,
/// `packed` the others.
Result<std::string> configIn(const TargetFormat &format,
                             const TargetScheme &scheme,
                             const std::string &config,
                             const std::vector<std::string> &kept,
                             const std::vector<std::string> &packed);

/// A packed linear module of a checkpoint.
struct PackedModule {
  std::string name;
  WeightSource source;
  std::vector<std::string> tensors; ///< all of its own, without its bias
};

/// Every packed module, experts one by one and attention too. Refuses what it
/// does not understand.
Result<std::vector<PackedModule>>
readPackedModules(const Checkpoint &checkpoint);

} // namespace wna16

#endif // WNA16_CHECKPOINT_TARGETFORMAT_H
