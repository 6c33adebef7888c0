//===- Explain.h - Selection tables for people and programs -----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BACKEND_EXPLAIN_H
#define WNA16_BACKEND_EXPLAIN_H

#include "Backend/Backend.h"

#include "llvm/Support/raw_ostream.h"

namespace wna16 {

/// A layer's selection under a name ("model.layers.0.mlp").
struct ExplainedLayer {
  std::string name;
  LayerInfo layer;
  Selection selection;
};

/// A table per layer: the chosen backend with its layouts, padded extents and
/// roundings, and every other one of the platform with its verdict: constraint,
/// numbers and remedy, or that it was not reached.
void explainAsText(llvm::ArrayRef<ExplainedLayer> layers, TargetAttr target,
                   llvm::raw_ostream &os);

/// The same as JSON: {"target": ..., "layers": [{"name", "backend", "w13",
/// "w2", "rounds", "candidates": [{"backend", "reached", "rejections":
/// [{"constraint", "reason", "remedy"}]}]}]}.
void explainAsJson(llvm::ArrayRef<ExplainedLayer> layers, TargetAttr target,
                   llvm::raw_ostream &os);

} // namespace wna16

#endif // WNA16_BACKEND_EXPLAIN_H
