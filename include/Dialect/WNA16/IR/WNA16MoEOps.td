//===- WNA16MoEOps.td - Routing and experts ------------------------*- tablegen 
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16MOEOPS_TD
#define WNA16_DIALECT_WNA16MOEOPS_TD

include "Dialect/WNA16/IR/WNA16OpBase.td"

def WNA16_MoEDoc : OpDocGroup {
  let summary = "Routing and experts";
  let description = [{
    Destination-style operations on tensors with a dynamic number of tokens. A
    backend turns each into `kernel_plan` and `kernel_run`.

    *Lifespan*: introduced by importers and frontends, consumed by
    `wna16-emulate` or `wna16-disassemble`, and forbidden after.
  }];
}

class WNA16_MoEOp<string mnemonic, list<Trait> traits = []>
    : WNA16_Op<mnemonic, traits # [Pure, DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>]> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &shapes) {
      return reifyInits(*this, builder, shapes);
    }
  }];
}

let opDocGroup = WNA16_MoEDoc in {

def WNA16_LinearOp : WNA16_MoEOp<"linear"> {
  let summary = "x times one dense or packed weight";
  let description = [{
    y = x * w + bias, accumulated in f32 and rounded once to the type of y.

    | operand | shape | element |
    |---|---|---|
    | x | [M, K] | f16, bf16, f32 |
    | weight | [K, N] | encoded |
    | bias | [N] | f16, bf16, f32 |
    | init | [M, N] | f16, bf16, f32 |

    Constraints:
    - (C1) x and init have rank 2 and the weight rank 2.
    - (C2) the columns of x are static and equal the weight's input.
    - (C3) the columns of init equal the weight's output.
    - (C4) the bias is [N].

    ```mlir
    %logits = wna16.linear x(%x : tensor<?x256xbf16>)
        weight(%w : tensor<256x8xbf16, #wna16.dense>)
        outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins WNA16_PlainTensor:$x, WNA16_WeightTensor:$weight,
                       Optional<WNA16_PlainTensor>:$bias,
                       WNA16_PlainTensor:$init,
                       OptionalAttr<StrAttr>:$backend, UnitAttr:$batch_invariant);
  let results = (outs WNA16_PlainTensor:$result);
  let assemblyFormat = [{
    `x` `(` $x `:` type($x) `)` `weight` `(` $weight `:` type($weight) `)`
    (`bias` `(` $bias^ `:` type($bias) `)`)?
    `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
}

def WNA16_RmsNormOp : WNA16_MoEOp<"rms_norm"> {
  let summary = "rows of x over their root mean square, times a weight";
  let description = [{
    y = x / sqrt(mean(x^2) + `epsilon`) * weight * `scale` + addend, in f32, the
    mean being over the columns; rounded once to the type of y. Models whose
    router and experts read, or whose sum adds, different norms (Gemma-4) have
    them within the block.

    | operand | shape | element |
    |---|---|---|
    | x, addend | [M, K] | f16, bf16, f32 |
    | weight | [K] | f16, bf16, f32 |
    | init | [M, K] | f16, bf16, f32 |

    Constraints:
    - (C1) x is [M, K] with a static K of 1 or more.
    - (C2) the weight is [K].
    - (C3) addend and init have the shape of x.
    - (C4) `epsilon` is finite and not negative, `scale` is finite.

    ```mlir
    %y = wna16.rms_norm x(%x : tensor<?x256xbf16>) weight(%w : tensor<256xbf16>)
        outs(%init : tensor<?x256xf32>) {epsilon = 1.0e-6} -> tensor<?x256xf32>
    ```
  }];
  let arguments = (ins WNA16_PlainTensor:$x, WNA16_PlainTensor:$weight,
                       Optional<WNA16_PlainTensor>:$addend,
                       WNA16_PlainTensor:$init, F64Attr:$epsilon,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale,
                       OptionalAttr<StrAttr>:$backend);
  let results = (outs WNA16_PlainTensor:$result);
  let assemblyFormat = [{
    `x` `(` $x `:` type($x) `)` `weight` `(` $weight `:` type($weight) `)`
    (`add` `(` $addend^ `:` type($addend) `)`)?
    `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getHidden() { return getX().getType().getDimSize(1); }
  }];
}

def WNA16_RouteOp : WNA16_MoEOp<"route", [AttrSizedOperandSegments]> {
  let summary = "router logits -> routing weights and expert ids";
  let description = [{
    Scores are softmax or sigmoid of the logits, in f32. The k experts with the
    highest score (plus `correction`, where given) are chosen, ties to the
    lowest id; with `groups` > 1 only from the `top_groups` best groups. A
    weight is the unbiased score, divided by the sum of the chosen ones with
    `renormalize`, times `scaling`, times the expert's `expert_scale`, where
    given. With `softmax_after_topk` the scores are the logits and the weights
    the softmax over the chosen ones.

    With `sparsemixer` (Phi-MoE) the scores are the logits too. Each chosen
    expert, of logit m, is weighed by its part of a softmax over those experts
    that were not chosen before it and are near: of a logit l with
    (m - l) / max(|l|, m) <= 2 * `jitter`, all in f32. Where that quotient is
    no number, as for l = m = 0 or l = -inf, l is near.

    A group's score is its best, or with `correction` the sum of its best two.
    Experts and groups have one order: the greater first, NaN after everything
    (-inf included), equal ones by index. An expert of a dropped group is never
    chosen. A NaN logit makes all softmax scores of its token NaN.

    | operand | shape | element |
    |---|---|---|
    | logits | [M, E] | f16, bf16, f32 |
    | correction | [E] | f16, bf16, f32 |
    | expert_scale | [E] | f16, bf16, f32 |
    | weights, weights_init | [M, k] | f32 |
    | ids, ids_init | [M, k] | i32 |

    Constraints:
    - (C1) logits have rank 2, correction and expert_scale are [E].
    - (C2) the inits are f32 [M, k] and i32 [M, k] with a static k.
    - (C3) 1 <= k <= E.
    - (C4) groups divide E; 1 <= top_groups <= groups; k <= experts of the kept
      groups.
    - (C5) `softmax_after_topk` goes with softmax scoring.
    - (C6) `sparsemixer` goes without correction, groups and `renormalize`.
    - (C7) `jitter` is finite and not negative, and 0 without `sparsemixer`.

    ```mlir
    %weights, %ids = wna16.route softmax logits(%logits : tensor<?x8xf32>)
        outs(%w, %i : tensor<?x2xf32>, tensor<?x2xi32>) {renormalize}
        -> tensor<?x2xf32>, tensor<?x2xi32>
    ```
  }];
  let arguments = (ins WNA16_ScoringAttr:$scoring, WNA16_PlainTensor:$logits,
                       Optional<WNA16_PlainTensor>:$correction,
                       Optional<WNA16_PlainTensor>:$expert_scale,
                       WNA16_PlainTensor:$weights_init,
                       WNA16_PlainTensor:$ids_init, UnitAttr:$renormalize,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$top_groups,
                       UnitAttr:$softmax_after_topk,
                       DefaultValuedAttr<F64Attr, "1.0">:$scaling,
                       DefaultValuedAttr<F64Attr, "0.0">:$jitter,
                       OptionalAttr<StrAttr>:$backend);
  let results = (outs WNA16_PlainTensor:$weights, WNA16_PlainTensor:$ids);
  let assemblyFormat = [{
    `` $scoring `logits` `(` $logits `:` type($logits) `)`
    (`correction` `(` $correction^ `:` type($correction) `)`)?
    (`expert_scale` `(` $expert_scale^ `:` type($expert_scale) `)`)?
    `outs` `(` $weights_init `,` $ids_init `:` type($weights_init) `,`
    type($ids_init) `)` attr-dict `->` type($weights) `,` type($ids)
  }];
  // Bytecode of version 1 has neither expert_scale nor jitter.
  let useCustomPropertiesEncoding = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// Tells the operands of an operation of bytecode of version 1 apart.
    void upgradeOperands();
    int64_t getExperts() { return getLogits().getType().getDimSize(1); }
    int64_t getTopK() { return getWeights().getType().getDimSize(1); }
  }];
}

def WNA16_FusedExpertsOp
    : WNA16_MoEOp<"fused_experts", [AttrSizedOperandSegments]> {
  let summary = "both GEMMs of the chosen experts, and their weighted sum";
  let description = [{
    For each token and slot: h = act(x * w13[id] + bias13); y += weight *
    (h * w2[id] + bias2). Accumulation, biases, activation and the sum over the
    slots are f32; h is rounded once to the type of x, y once to its own.

    | operand | shape | element |
    |---|---|---|
    | x | [M, K]; batched: [E, T, K] | f16, bf16, f32 |
    | weights | [M, k]; batched: absent | f32 |
    | ids | [M, k]; batched: [E] tokens of each expert | i32 |
    | w13 | [E, K, S, N] | encoded |
    | w2 | [E, N, K] | encoded |
    | bias13 | [E, S, N] | f16, bf16, f32 |
    | bias2 | [E, K] | f16, bf16, f32 |
    | expert_map | [global experts]: local expert or -1 | i32 |
    | init | as x | type of x, or f32 |

    An id of -1, and an expert that the map sends to -1, adds nothing. Any other
    id or local expert out of range is an error of the caller: the CPU's kernels
    report it, emulation and devices, which do not look at values, skip the slot.
    A shared expert is this operation with E = k = 1. Activations with their
    parameters; without them alpha is 1 and beta 0:

    | activation | of gate g and up l (clamped when `limit` is given) |
    |---|---|
    | silu | g * sigmoid(g) * l |
    | gelu, gelu_tanh | gelu(g) * l |
    | relu2 | max(g, 0)^2 * l |
    | swigluoai | g * sigmoid(alpha * g) * (l + beta) |
    | swiglustep | min(silu(g), limit) * clamp(l, limit) |

    Without a gate (S = 1) the factor l is absent. Inputs of w13 and outputs of
    w2 may exceed K, and N may exceed the model's: what is beyond is padding.

    Constraints:
    - (C1) ranks are those of the table.
    - (C2) w13 and w2 agree in experts and in N.
    - (C3) w13's input and w2's output are at least the columns of x.
    - (C4) weights and ids have x's tokens and the same k >= 1; f32 and i32.
    - (C5) batched: no weights and no expert_map, ids are [E], x has E experts.
    - (C6) biases fit their weight.
    - (C7) w13 has 1 or 2 halves; swigluoai and swiglustep need 2.
    - (C8) alpha, beta and limit are finite, `limit` is positive; swiglustep
      needs it.
    - (C9) `router_weight_on_input` needs k = 1 and is not batched.
    - (C10) init has x's shape, and x's type or f32.
    - (C11) the elements of packed weights have x's type; dense weights keep
      their own.

    *Lifespan*: introduced by importers and frontends; `wna16-select-backend`
    sets `backend`; consumed by `wna16-disassemble` or `wna16-emulate`.

    ```mlir
    %y = wna16.fused_experts silu x(%x : tensor<?x256xbf16>)
        routing(%weights, %ids : tensor<?x2xf32>, tensor<?x2xi32>)
        w13(%w13 : tensor<8x256x2x128xbf16, #gptq>)
        w2(%w2 : tensor<8x128x256xbf16, #gptq>)
        outs(%init : tensor<?x256xbf16>) -> tensor<?x256xbf16>
    ```
  }];
  let arguments = (ins
    WNA16_ActivationAttr:$activation, WNA16_PlainTensor:$x,
    Optional<WNA16_PlainTensor>:$weights, WNA16_PlainTensor:$ids,
    WNA16_WeightTensor:$w13, WNA16_WeightTensor:$w2,
    Optional<WNA16_BiasTensor>:$bias13, Optional<WNA16_BiasTensor>:$bias2,
    Optional<WNA16_PlainTensor>:$expert_map, WNA16_PlainTensor:$init,
    OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$beta,
    OptionalAttr<F64Attr>:$limit,
    DefaultValuedAttr<WNA16_ActivationTypeAttr, "::wna16::ActivationType::a16">:$activation_type,
    UnitAttr:$batched, UnitAttr:$router_weight_on_input,
    UnitAttr:$batch_invariant, OptionalAttr<StrAttr>:$backend);
  let results = (outs WNA16_PlainTensor:$result);
  let assemblyFormat = [{
    `` $activation `x` `(` $x `:` type($x) `)`
    `routing` `(` custom<Routing>($weights, type($weights), $ids, type($ids)) `)`
    `w13` `(` $w13 `:` type($w13) `)` `w2` `(` $w2 `:` type($w2) `)`
    (`bias13` `(` $bias13^ `:` type($bias13) `)`)?
    (`bias2` `(` $bias2^ `:` type($bias2) `)`)?
    (`expert_map` `(` $expert_map^ `:` type($expert_map) `)`)?
    `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getExperts() { return getW13().getType().getDimSize(0); }
    int64_t getHidden() { return getX().getType().getShape().back(); }
    int64_t getHalves() { return getW13().getType().getDimSize(2); }
    /// Outputs of one half of w13, the input of w2, padding included.
    int64_t getIntermediate() { return getW13().getType().getDimSize(3); }
    /// Slots of a token; 1 when batched.
    int64_t getTopK() {
      return getBatched() ? 1 : getIds().getType().getDimSize(1);
    }
  }];
}

} // opDocGroup

#endif // WNA16_DIALECT_WNA16MOEOPS_TD
