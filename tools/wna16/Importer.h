//===- Importer.h - From a checkpoint to a module ---------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function for each MoE layer: router, routing, experts and shared experts,
// on parameters that name the checkpoint's tensors.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_IMPORTER_H
#define WNA16_TOOLS_WNA16_IMPORTER_H

#include "Checkpoint/Checkpoint.h"
#include "Layout/Shard.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace wna16 {

struct ImportOptions {
  /// Indices of MoE layers; empty: all of them.
  std::vector<int64_t> layers;
  /// Element type of activations; nothing: the model's own.
  std::optional<ScalarType> dtype;
  /// Whose share of the experts' weights the functions take. Their results are
  /// parts: the sum over all ranks is the layer's.
  Rank rank;
  /// Also return router_logits, topk_ids, topk_weights and experts_out.
  bool intermediates = false;
};

/// The name of a layer's function: "forward", or "forward_3" in a module of
/// several.
std::string layerFunctionName(int64_t layer, size_t layersInModule);

/// The layers that are asked for; fails when one is not an MoE layer.
Result<std::vector<const MoELayer *>>
selectLayers(const Checkpoint &checkpoint, const std::vector<int64_t> &indices);

/// Makes a module of them. Tensors are named, not read.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
importCheckpoint(mlir::MLIRContext *context, const Checkpoint &checkpoint,
                 const ImportOptions &options);

} // namespace wna16

#endif // WNA16_TOOLS_WNA16_IMPORTER_H
