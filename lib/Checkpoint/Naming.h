//===- Naming.h - How model families name their MoE tensors -----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table for all families: which prefixes a layer may have, what its MoE
// block is called, and how experts, router and shared experts are named in it.
// What a model has is decided by the tensors that are there.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_NAMING_H
#define WNA16_LIB_CHECKPOINT_NAMING_H

#include "Checkpoint/SafeTensors.h"

#include <set>

namespace wna16 {

/// The tensors of one MoE block.
struct Block {
  int64_t layer = 0;
  bool prediction = false; ///< of a multi-token-prediction module
  std::string layerPrefix; ///< "model.layers.1."
  std::string prefix;      ///< "model.layers.1.mlp."
  std::set<std::string> tensors;
};

/// All MoE blocks, by layer; with the layer's norms and dense part where the
/// block has norms. Refuses prefixes that are not in the table and models that
/// mix them.
Result<std::vector<Block>> findBlocks(const SafeTensors &files, bool hasNorms);

/// The modules of gated or plain two-layer experts.
struct ExpertNames {
  std::string w13; ///< "...experts.{expert}.{gate_proj,up_proj}"
  std::string w2;
  bool fused = false; ///< gate and up, or all experts, in one tensor
  int64_t halves = 2;
  int64_t experts = 0; ///< named one by one; 0: in fused tensors
};

Result<ExpertNames> routedNames(const Block &block);
/// Empty when there is no shared expert.
std::optional<ExpertNames> sharedNames(const Block &block);

/// A tensor of the block that goes by several names: the one that is there.
std::optional<std::string> routerModule(const Block &block);
std::optional<std::string> correctionTensor(const Block &block);
std::optional<std::string> expertScaleTensor(const Block &block);
std::optional<std::string> sharedGateModule(const Block &block);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_NAMING_H
