//===- WNA16WeightOps.td - Weights and their preparation -----------*- tablegen 
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16WEIGHTOPS_TD
#define WNA16_DIALECT_WNA16WEIGHTOPS_TD

include "Dialect/WNA16/IR/WNA16OpBase.td"

def WNA16_WeightDoc : OpDocGroup {
  let summary = "Weights and their preparation";
  let description = [{
    A weight comes from a file (`parameter`), is put together (`assemble`) and
    brought, step by step, into the storage that a backend wants. All of it is
    pure and depends on weights alone, so it moves into a function that runs
    once.

    *Lifespan*: steps (`pad` to `convert_bias`) are introduced by
    `wna16-materialize-layouts`, fused by `wna16-hoist-prepare`, consumed by
    `wna16-emulate` or `wna16-disassemble`, and forbidden after.
  }];
}

let opDocGroup = WNA16_WeightDoc in {

def WNA16_ParameterOp : WNA16_Op<"parameter", [Pure]> {
  let summary = "a tensor that lives in weight files";
  let description = [{
    Names the file tensors that make up one tensor. In the pattern, `{expert}`
    stands for 0 .. E-1 and becomes the leading axis; `{a,b}` stands for two
    tensors joined along axis `concat` of the file tensor; without braces it is
    one tensor as it lies. A tensor that is not per expert may have a leading 1
    that the file tensor lacks; it counts as the expert axis.

    Constraints:
    - (C1) `concat` is given if and only if the pattern has alternatives.
    - (C2) `concat` is an axis of the file tensor.
    - (C3) the result has a static shape, and an axis for `{expert}`.
    - (C4) the extent of the joined axis is a multiple of the number of
      alternatives.
    - (C5) the pattern is not empty; braces pair and do not nest; `{expert}` is
      there at most once, and one list of two or more different names.

    *Lifespan*: introduced by importers; `wna16-hoist-prepare` turns it into a
    function argument with the attribute `wna16.parameter`.

    ```mlir
    %codes = wna16.parameter "model.layers.0.mlp.experts.{expert}.{gate_proj,up_proj}.qweight"
        concat(1) : tensor<8x32x256xi32>
    ```
  }];
  let arguments = (ins StrAttr:$pattern, OptionalAttr<I64Attr>:$concat);
  let results = (outs WNA16_PlainTensor:$result);
  let assemblyFormat = [{
    $pattern (`concat` `(` $concat^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def WNA16_AssembleOp : WNA16_Op<"assemble", [Pure]> {
  let summary = "storage tensors -> one encoded tensor";
  let description = [{
    The parts are those that type and encoding of the result require, in the
    order codes, scales, zeros, group_index, permutation, global_scale, each by
    its name:

    ```
    operation ::= `wna16.assemble` part `=` $operand (`,` part `=` $operand)*
                  attr-dict `:` type($parts) `->` type($result)
    ```

    Constraints:
    - (C1) one operand for each required part, no more.
    - (C2) the type of each part is the derived storage type.

    *Lifespan*: introduced by importers and frontends; consumed by
    `wna16-disassemble`.

    ```mlir
    %w = wna16.assemble codes = %codes, scales = %scales
        : tensor<8x32x256xi32>, tensor<8x2x256xf16>
        -> tensor<8x256x2x128xbf16, #wna16.packed<u4b8, group = 128, layout = gptq>>
    ```
  }];
  let arguments = (ins Variadic<WNA16_PlainTensor>:$parts);
  let results = (outs AnyRankedTensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def WNA16_DisassembleOp : WNA16_Op<"disassemble",
    [Pure, InferTypeOpAdaptor]> {
  let summary = "one encoded tensor -> its storage tensors";
  let description = [{
    The results are the parts of the operand, in the order of `assemble`.

    ```mlir
    %codes, %scales = wna16.disassemble %w
        : tensor<8x256x2x128xbf16, #wna16.packed<u4b8, group = 128, layout = gptq>>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs Variadic<WNA16_PlainTensor>:$parts);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasCanonicalizeMethod = 1;
}

class WNA16_StepOp<string mnemonic> : WNA16_Op<mnemonic, [Pure]> {
  let arguments = (ins WNA16_PackedTensor:$source);
  let results = (outs WNA16_PackedTensor:$result);
  let assemblyFormat = [{
    $source attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDefinition = [{
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor) {
      return foldStep(*this);
    }
  }];
}

// Steps of which two in a row are one.
class WNA16_MergingStepOp<string mnemonic> : WNA16_StepOp<mnemonic> {
  let hasCanonicalizeMethod = 1;
  let extraClassDefinition = [{
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor) {
      return foldStep(*this);
    }
    ::llvm::LogicalResult
    $cppClass::canonicalize($cppClass op, ::mlir::PatternRewriter &rewriter) {
      return mergeSteps(op, rewriter);
    }
  }];
}

def WNA16_PadOp : WNA16_MergingStepOp<"pad"> {
  let summary = "grow the input or output axes of a weight";
  let description = [{
    New elements dequantise to 0: the code of zero, scale 0. Each half of the
    gate/up axis is padded at its own end.

    Constraints:
    - (C1) ranks, experts and halves are equal.
    - (C2) no extent shrinks.
    - (C3) the encodings are equal.
    - (C4) the element types are equal.
    - (C5) the layout engine can do the move.

    ```mlir
    %1 = wna16.pad %0 : tensor<2x128x2x96xf16, #gptq> to tensor<2x128x2x128xf16, #gptq>
    ```
  }];
}

def WNA16_RegroupOp : WNA16_MergingStepOp<"regroup"> {
  let summary = "repeat scales and zero points for finer groups";
  let description = [{
    Constraints:
    - (C1) the shapes are equal.
    - (C2) the encodings differ in the group alone.
    - (C3) the new group divides the old one.
    - (C4) the element types are equal.

    ```mlir
    %1 = wna16.regroup %0 : tensor<2x128x64xf16, #g128> to tensor<2x128x64xf16, #g64>
    ```
  }];
}

def WNA16_RepackOp : WNA16_MergingStepOp<"repack"> {
  let summary = "move codes, scales and zero points into another layout";
  let description = [{
    Constraints:
    - (C1) the shapes are equal.
    - (C2) the encodings differ in layout and scale type alone.
    - (C3) the element types are equal.
    - (C4) the layout engine can do the move.

    Canonicalisation: a repack of a repack is one repack; a repack to the same
    type is its operand.

    ```mlir
    %1 = wna16.repack %0 : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
    ```
  }];
}

def WNA16_RecodeOp : WNA16_MergingStepOp<"recode"> {
  let summary = "write the same values in another code";
  let description = [{
    Changes the code type (u4b8 to s4 inverts the top bit), the zero-point
    convention, or the scale type; `i16` scales are folded for int8
    activations and bring a global scale.

    Constraints:
    - (C1) the shapes are equal.
    - (C2) the encodings differ in code, zeros and scale alone.
    - (C3) both codes have the same width, and the new one can hold the values.
    - (C4) the element types are equal.

    ```mlir
    %1 = wna16.recode %0 : tensor<2x128x64xf16, #u4b8> to tensor<2x128x64xf16, #s4>
    ```
  }];
}

def WNA16_SortGroupsOp : WNA16_StepOp<"sort_groups"> {
  let summary = "sort act-order rows by their group";
  let description = [{
    Rows of each expert are sorted by group index, stably; the permutation
    takes the place of the index. Activations are gathered by it.

    Constraints:
    - (C1) the shapes are equal.
    - (C2) the encodings differ in act_order alone: `index` to `sorted`.
    - (C3) the element types are equal.
    - (C4) the layout engine can do the move.

    ```mlir
    %1 = wna16.sort_groups %0 : tensor<2x128x64xf16, #index> to tensor<2x128x64xf16, #sorted>
    ```
  }];
}

def WNA16_ShardOp : WNA16_Op<"shard", [Pure]> {
  let summary = "a rank's share of a weight or bias";
  let description = [{
    Tensor parallelism splits the outputs of each half of w13 (and its bias) and
    the inputs of w2. The share holds the values of its part of the whole,
    exactly: a group that straddles two shares becomes groups of gcd(group,
    share) with its scale and zero point repeated; rows with `act_order = index`
    keep all groups. Where the size does not divide the axis, parts are a
    multiple of up to 32 and the last is padded, so that all ranks have one type.

    Constraints:
    - (C1) the rank is one of `size`, and each of them gets something.
    - (C2) the result's type is that of the share.
    - (C3) the axis of a bias is `output`.

    *Lifespan*: introduced by importers; fused and consumed as the other steps.

    ```mlir
    %1 = wna16.shard %0 input rank 1 of 4 : tensor<2x768x64xf16, #g128> to tensor<2x192x64xf16, #g64>
    ```
  }];
  let arguments = (ins WNA16_WeightOrBiasTensor:$source,
    WNA16_SharedAxisAttr:$axis, I64Attr:$rank, I64Attr:$size);
  let results = (outs WNA16_WeightOrBiasTensor:$result);
  let assemblyFormat = [{
    $source $axis `rank` $rank `of` $size attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def WNA16_ConvertOp : WNA16_StepOp<"convert"> {
  let summary = "several preparation steps as one";
  let description = [{
    Shard, pad, regroup, repack, recode and sort in one pass over the weight:
    each code is read once and written once. With `window` [input, inputs,
    output, outputs] only inputs [input, input + inputs) and of each half outputs
    [output, output + outputs) are taken.

    Constraints:
    - (C1) ranks, experts and halves are equal.
    - (C2) the layout engine can do the move.
    - (C3) the window is four numbers and takes at least one input and output.
    - (C4) the element types are equal.

    *Lifespan*: `wna16-hoist-prepare` fuses the steps of a weight into one.

    ```mlir
    %1 = wna16.convert %0 : tensor<2x128x2x96xf16, #gptq> to tensor<2x128x2x128xf16, #marlin>
    ```
  }];
  let arguments = (ins WNA16_PackedTensor:$source,
    OptionalAttr<DenseI64ArrayAttr>:$window);
  let assemblyFormat = [{
    $source (`window` $window^)? attr-dict `:` type($source) `to` type($result)
  }];
  let hasCanonicalizeMethod = 1;
  let extraClassDefinition = "";
}

def WNA16_DequantizeOp : WNA16_Op<"dequantize", [Pure]> {
  let summary = "packed -> dense";
  let description = [{
    Computes (Q - z) * s in f32 and rounds once to the element type of the
    result; with `scale_first` rnd(rnd(Q - z) * rnd(s)), as upstream's emulation
    does.

    Constraints:
    - (C1) the shapes are equal.
    - (C2) the result is encoded as `#wna16.dense` in dense layout.
    - (C3) the source is not sorted: its rows are in the order of the inputs.

    ```mlir
    %1 = wna16.dequantize %0 : tensor<2x128x64xbf16, #gptq> to tensor<2x128x64xf32, #wna16.dense>
    ```
  }];
  let arguments = (ins WNA16_PackedTensor:$source, UnitAttr:$scale_first);
  let results = (outs WNA16_WeightTensor:$result);
  let assemblyFormat = [{
    $source (`scale_first` $scale_first^)? attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def WNA16_QuantizeOp : WNA16_Op<"quantize", [Pure]> {
  let summary = "dense -> packed, round to nearest";
  let description = [{
    For tests, demos and tools. Ranges are min-max per group and always include
    0.

    Constraints:
    - (C1) the shapes are equal.
    - (C2) the source is encoded as `#wna16.dense` in dense layout.
    - (C3) the result has no act-order.

    ```mlir
    %1 = wna16.quantize %0 : tensor<2x128x64xf32, #wna16.dense> to tensor<2x128x64xf32, #gptq>
    ```
  }];
  let arguments = (ins WNA16_WeightTensor:$source);
  let results = (outs WNA16_PackedTensor:$result);
  let assemblyFormat = [{
    $source attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def WNA16_ConvertBiasOp : WNA16_Op<"convert_bias", [Pure]> {
  let summary = "pad a bias and bring it into a layout's order";
  let description = [{
    Constraints:
    - (C1) both have rank 2 or 3, static extents, and equal element types,
      experts and halves.
    - (C2) the output extent does not shrink.

    ```mlir
    %1 = wna16.convert_bias %0 : tensor<2x2x96xf16> to tensor<2x2x128xf16, #wna16.bias<layout = marlin>>
    ```
  }];
  let arguments = (ins WNA16_BiasTensor:$source);
  let results = (outs WNA16_BiasTensor:$result);
  let assemblyFormat = [{
    $source attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

} // opDocGroup

#endif // WNA16_DIALECT_WNA16WEIGHTOPS_TD
