//===- WNA16Attrs.td - Encodings and the target -----------------------*- tableg
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16ATTRS_TD
#define WNA16_DIALECT_WNA16ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "Dialect/WNA16/IR/WNA16Enums.td"

class WNA16_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<WNA16_Dialect, name, traits> {
  let mnemonic = mnem;
}

class WNA16_Encoding<string name, string mnem>
    : WNA16_Attr<name, mnem,
        [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let hasCustomAssemblyFormat = 1;
}

def WNA16_LayoutParam
    : AttrOrTypeParameter<"const ::wna16::LayoutEntry *",
                          "entry of the layout catalogue">;

def WNA16_PackedAttr : WNA16_Encoding<"Packed", "packed"> {
  let summary = "how an integer weight is stored";
  let description = [{
    ```
    packed ::= `#wna16.packed` `<` code `,` `group` `=` int `,` `layout` `=` name
               (`,` `scale` `=` type)? (`,` `zeros` `=` (`plain` | `minus_one`))?
               (`,` `act_order` `=` (`index` | `sorted`))? (`,` `groups` `=` int)? `>`
    ```

    - `code`: `u4b8`, `u8b128` (unsigned, zero 8 or 128), `u4`, `u8` (zero points
      stored), `s4`, `s8` (two's complement), `u4fp8` (4-bit codes rewritten for
      fp8 activations; their scales are stored times 512).
    - `group`: input rows that share a scale; -1: all of them.
    - `layout`: an entry of the catalogue (docs/Layouts.md).
    - `scale`: element type of the scales, `f16` unless given; `i16` for scales
      folded for int8 activations (a global scale goes with them).
    - `zeros`: the stored zero points are z, or z - 1 as in GPTQ v1.
    - `act_order`: rows belong to groups by index (g_idx), or were sorted by it.
    - `groups`: with `act_order = index`, how many there are where that is more
      than the input has: a share of the rows keeps the groups of all.

    The encoded tensor is [E, input, halves, output], [E, input, output] or, for
    one matrix, [input, output], with static extents and elements f16, bf16 or
    f32 (the type that dequantised values round to).

    ```mlir
    #awq = #wna16.packed<u4, group = 64, layout = awq, zeros = plain>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::wna16::CodeType", "code type">:$code,
    "int64_t":$group, "int64_t":$keptGroups, WNA16_LayoutParam:$layout,
    AttrOrTypeParameter<"::wna16::ScalarType", "scale type">:$scale,
    AttrOrTypeParameter<"::wna16::ZeroPoints", "zero points">:$zeros,
    AttrOrTypeParameter<"::wna16::ActOrder", "act-order">:$actOrder);
}

def WNA16_DenseAttr : WNA16_Encoding<"Dense", "dense"> {
  let summary = "a weight of plain floats";
  let description = [{
    The elements of an [.., input, .., output] weight as frameworks store them:
    output-major, input contiguous. `#wna16.dense<layout = interleaved>`: rows
    of gate and up alternate; `transposed` and `transposed_interleaved` hold the
    same input-major, output contiguous.

    ```mlir
    tensor<8x256x2x128xbf16, #wna16.dense>  // stored tensor<8x256x256xbf16>
    ```
  }];
  let parameters = (ins WNA16_LayoutParam:$layout);
}

def WNA16_BiasAttr : WNA16_Encoding<"Bias", "bias"> {
  let summary = "a bias in the order that a layout's kernel reads";
  let description = [{
    On a tensor [E, halves, output] or [E, output]: `#wna16.bias<layout =
    marlin>`. A bias without encoding is in natural order.
  }];
  let parameters = (ins WNA16_LayoutParam:$layout);
}

def WNA16_TargetAttr : WNA16_Attr<"Target", "target"> {
  let summary = "the machine that a module is compiled for";
  let description = [{
    ```mlir
    #wna16.target<cuda, capability = 90>
    #wna16.target<cpu, features = ["avx512f", "avx512vnni"]>
    ```

    `capability` is the compute capability times ten (sm_90: 90), `memory` the
    bytes of device memory (0: unknown), `libraries` the optional kernel
    libraries that are present ("flashinfer", "humming"). On a module it is the
    discardable attribute `wna16.target`, or the entry "wna16.target" of its
    `dlti` system specification.

    Only a cuda target has a capability (up to 999; 0: unknown) and libraries;
    memory is not negative; features and libraries are distinct words of
    letters, digits, `.`, `_` and `-`.
  }];
  let parameters = (ins
    EnumParameter<WNA16_TargetKind>:$kind,
    DefaultValuedParameter<"int64_t", "0">:$capability,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$features,
    DefaultValuedParameter<"int64_t", "0">:$memory,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$libraries);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Parses "cpu", "cpu:avx512f,avx2", "cuda:sm_90", "xpu"; null, with a
    /// message, when the text is none of these.
    static TargetAttr parse(::mlir::MLIRContext *context, ::llvm::StringRef text,
                            std::string &error);
    bool hasFeature(::llvm::StringRef feature) const;
    bool hasLibrary(::llvm::StringRef library) const;
  }];
}

#endif // WNA16_DIALECT_WNA16ATTRS_TD
