//===- Backend.h - What a backend answers -----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backend is one object: which layers it takes (named constraints), how it
// wants the weights, and which runtime symbol runs them. Passes know backends
// only through this interface; another library registers its own.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BACKEND_BACKEND_H
#define WNA16_BACKEND_BACKEND_H

#include "Dialect/WNA16/IR/WNA16.h"

#include <memory>
#include <optional>

namespace wna16 {

/// What a layer asks for, as facts; everything that selection may look at.
struct LayerInfo {
  WeightSpec w13; ///< as the weights come, before any preparation
  WeightSpec w2;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t experts = 0;       ///< held by this device
  int64_t globalExperts = 0; ///< routed over
  int64_t topK = 0;
  ScalarType element = ScalarType::BF16; ///< of the activations
  Activation activation = Activation::silu;
  double alpha = 1.0;
  double beta = 0.0;
  std::optional<double> limit;
  ActivationType activationType = ActivationType::a16;
  bool gated = true;
  bool hasBias = false;
  bool hasExpertMap = false;
  bool batched = false;
  bool routerWeightOnInput = false;
  bool batchInvariant = false;
  /// Compute capability of the machine, which decides between variants of a
  /// layout; 0: unknown.
  int64_t capability = 0;

  /// The layer's own routing, when ids and weights come from a `wna16.route`.
  struct Routing {
    Scoring scoring = Scoring::softmax;
    bool renormalize = false;
    bool softmaxAfterTopK = false;
    bool correction = false;
    bool expertScale = false;
    int64_t groups = 1;
    int64_t topGroups = 1;
    double scaling = 1.0;
    ScalarType logits = ScalarType::F32;
  };
  std::optional<Routing> routing;

  /// What only a deployment knows; used by the rules of the reference system.
  struct Deployment {
    std::string allToAll;       ///< its all2all_backend; empty: none
    bool loadBalancing = false; ///< EPLB
    bool lora = false;
    bool flashinferInt4 = false; ///< VLLM_USE_FLASHINFER_MOE_INT4
    std::string hummingGemm;     ///< VLLM_HUMMING_MOE_GEMM_TYPE
  } deployment;
};

/// Reads the facts off an operation and the `wna16.route` that feeds it.
LayerInfo describeLayer(FusedExpertsOp op);

/// Reads a deployment from words as people write them: "eplb", "lora",
/// "flashinfer-int4", "all2all=NAME", "humming-gemm=NAME".
Result<LayerInfo::Deployment>
parseDeployment(llvm::ArrayRef<std::string> words);

/// The name for people of the layer that an operation belongs to: its
/// location's, or its function's.
std::string layerName(mlir::Operation *op);

/// Which questions are asked. Native: what our kernels need. VLLM: the
/// reference system's selection, word for word.
enum class Rules { Native, VLLM };

/// A constraint that a layer does not meet.
struct Rejection {
  std::string constraint; ///< its name, "hidden-multiple"
  std::string reason;     ///< with the numbers
  std::string remedy;     ///< what would satisfy it; empty: nothing
};

/// One named question. `check` returns the rejection's reason and remedy, or
/// nothing when the layer passes.
struct Constraint {
  struct Verdict {
    std::string reason;
    std::string remedy;
  };
  llvm::StringLiteral name;
  std::optional<Verdict> (*check)(const LayerInfo &layer, TargetAttr target);
};

/// Which of the two weights is meant.
enum class Projection { W13, W2 };

/// Roundings beyond the numeric contract that a backend declares.
struct Roundings {
  bool weights = false; ///< (Q - z) * s is rounded to 16 bits
  bool slots = false;   ///< a weighted slot's row is rounded to 16 bits
};

class Backend {
public:
  virtual ~Backend();

  /// Name in IR and on command lines: "marlin".
  virtual llvm::StringRef name() const = 0;
  /// One line for people.
  virtual llvm::StringRef summary() const = 0;
  /// The constraints in the order in which they are asked.
  virtual llvm::ArrayRef<Constraint> constraints(Rules rules) const = 0;
  /// How this backend wants a weight: layout, padded extents, groups, code,
  /// act-order. Called for layers that pass the native constraints; the result
  /// equals `source` when nothing is to be done.
  virtual WeightSpec prepared(const LayerInfo &layer, const WeightSpec &source,
                              Projection which) const = 0;
  /// Layout whose bias order the kernel reads; null: natural order.
  virtual const LayoutEntry *biasLayout() const { return nullptr; }
  /// Runtime symbol of fused_experts ("wna16_cpu_fused_experts"); empty: the
  /// operation is emulated. Its workspace is asked of SYMBOL_workspace.
  virtual llvm::StringRef kernel() const = 0;
  virtual Roundings roundings() const { return {}; }
  /// A library that a target must have; empty: none.
  virtual llvm::StringRef library() const { return ""; }
  /// Whether weights are dequantised ahead of time (emulation).
  virtual bool dequantizes() const { return false; }

  /// The unmet constraints: all of them (Native), or the first (VLLM).
  std::vector<Rejection> reject(const LayerInfo &layer, TargetAttr target,
                                Rules rules) const;
};

/// The backends of this process, in the order of registration; ours come first.
class BackendRegistry {
public:
  static BackendRegistry &get();

  /// Adds a backend; false, changing nothing, when the name is taken.
  bool add(std::unique_ptr<Backend> backend);
  const Backend *find(llvm::StringRef name) const;
  std::vector<const Backend *> all() const;

private:
  BackendRegistry();
  std::vector<std::unique_ptr<Backend>> backends;
};

/// Fails for a library of the target that no backend of this process asks for.
Failure checkLibraries(TargetAttr target);

/// What selection found for one layer.
struct Selection {
  struct Candidate {
    const Backend *backend;
    std::vector<Rejection> rejections; ///< empty: it takes the layer
    bool reached = true;               ///< false: one before it was chosen
  };
  const Backend *chosen = nullptr;
  std::vector<Candidate> candidates; ///< in the order in which they were asked
  /// Why nothing was chosen, or what a request was turned into; for people.
  std::string message;
};

/// Asks the backends of `target`'s order ("auto"), or those that are named
/// ("marlin,cuda"), and takes the first that has no objection. Native: an
/// explicit choice is obeyed or refused with its constraints. VLLM: the
/// reference system's selection (docs/Selection.md), with its own names.
Selection selectBackend(const LayerInfo &layer, TargetAttr target,
                        llvm::StringRef request, Rules rules);

/// Fails where "auto", "marlin" or "marlin,cuda" has the name of no backend.
Failure checkBackends(llvm::StringRef request);

/// Runtime symbol of an operation that every target has: "linear", "route",
/// "convert", ...
std::string runtimeSymbol(TargetAttr target, llvm::StringRef operation);

} // namespace wna16

#endif // WNA16_BACKEND_BACKEND_H
