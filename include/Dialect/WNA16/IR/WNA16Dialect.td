//===- WNA16Dialect.td - The wna16 dialect ----------------------------*- tableg
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16DIALECT_TD
#define WNA16_DIALECT_WNA16DIALECT_TD

include "mlir/IR/OpBase.td"

def WNA16_Dialect : Dialect {
  let name = "wna16";
  let cppNamespace = "::wna16";
  let summary = "Mixture-of-experts layers with integer weights and 16-bit "
                "activations";
  let description = [{
    The dialect describes mixture-of-experts (MoE) layers whose weights are 4-
    or 8-bit integer codes and whose activations are 16-bit floats.

    **A packed weight is a tensor with an encoding.** The type is the logical
    tensor; its encoding says how it is stored:

    ```mlir
    #gptq = #wna16.packed<u4b8, group = 128, layout = gptq>
    // w13: [experts, input, gate/up, output]
    tensor<128x2048x2x768xbf16, #gptq>
    // w2: [experts, input, output]
    tensor<128x768x2048xbf16, #gptq>
    ```

    A code Q of group g of an output stands for `(Q - z) * s`. The storage
    tensors (codes, scales, zero points, group indices) follow from type and
    encoding; `wna16.assemble` and `wna16.disassemble` are the two ways between
    them. Layouts are entries of one catalogue, see docs/Layouts.md.

    Letters: E experts, K hidden size, N intermediate size, M tokens, k experts
    a token, S halves of w13 (2 with a gate, 1 without), G groups.

    **Which stock operations may carry an encoded tensor:** function arguments
    and results, calls, branches, `scf`, `arith.select`, `tensor.empty` and
    `tensor.dim`. All others are an error of `wna16-verify-encodings`.

    **Discardable attributes**, which the dialect verifies; others of its
    namespace are errors:

    | attribute | on | value |
    |---|---|---|
    | `wna16.target`, `wna16.prepared_for` | module | `#wna16.target<...>` |
    | `wna16.checkpoint` | module | dictionary of strings |
    | `wna16.share` | module | `{rank = RANK, size = RANKS}` |
    | `wna16.parameter` | argument | `{pattern = "..."}`, or with `concat = axis` |
    | `wna16.name`, `wna16.prepared`, `wna16.encoding` | argument, result | string |
    | `wna16.output` | argument | unit |
    | `wna16.prepare`, `wna16.experts`, `wna16.backends` | function | string, integer, strings |
    | `wna16.workspace`, `wna16.extents` | function | symbol, `[[argument, axis], ...]` |

    **One numeric contract.** GEMMs accumulate in f32 on `(Q - z) * s`; the
    activation is computed in f32 and rounded once to the type of x; each slot
    is multiplied by its routing weight in f32; slots are summed in f32 in slot
    order and rounded once. Biases are added in f32 before the routing weight.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Version of the dialect's bytecode; docs/Compatibility.md lists them.
    static constexpr uint64_t kVersion = 2;
    struct Version : ::mlir::DialectVersion {
      explicit Version(uint64_t number) : number(number) {}
      uint64_t number;
    };

  private:
    // In the files that hold the generated definitions.
    void registerAttributes();
    void registerWeightOps();
    void registerMoEOps();
    void registerRuntimeOps();
  }];
}

#endif // WNA16_DIALECT_WNA16DIALECT_TD
