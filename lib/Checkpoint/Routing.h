//===- Routing.h - Routing and activation by architecture -------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model computes around its experts is not in its tensors: it follows
// from model_type and from keys of the configuration. One table has a row for
// each architecture; what cannot be done exactly is refused by name.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_ROUTING_H
#define WNA16_LIB_CHECKPOINT_ROUTING_H

#include "Config.h"

namespace wna16 {

/// Whether the architecture is known.
Failure checkArchitecture(const ModelConfig &config);

/// Fills scoring, top-k, groups, scaling and activation of a layer whose
/// tensors are known and whose architecture was checked.
Failure readRouting(const ModelConfig &config, MoELayer &layer);

/// Whether this architecture's fused tensors of floats are [E, in, out].
bool storesTransposed(const std::string &modelType);
/// Whether the block has norms of its own and a dense part beside its experts.
bool hasNorms(const std::string &modelType);
/// Whether fused tensors hold gate and up rows in turn.
bool storesInterleaved(const std::string &modelType);

/// Experts that the configuration says a layer has.
Failure readExperts(const ModelConfig &config, int64_t layer,
                    std::optional<int64_t> &out);

/// Compares the intermediate sizes of the configuration, as far as it gives
/// them, with the extents of a layer's weights.
Failure checkWidths(const ModelConfig &config, const MoELayer &layer);

/// Whether the configuration makes a layer an MoE layer; empty: it does not
/// say.
std::optional<bool> expectsMoE(const ModelConfig &config, int64_t layer);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_ROUTING_H
