//===- WNA16RuntimeOps.td - The contact with the runtime -----------*- tablegen 
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_WNA16RUNTIMEOPS_TD
#define WNA16_DIALECT_WNA16RUNTIMEOPS_TD

include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Dialect/LLVMIR/LLVMTypes.td"
include "Dialect/WNA16/IR/WNA16OpBase.td"

def WNA16_RuntimeDoc : OpDocGroup {
  let summary = "The contact with the runtime";
  let description = [{
    A pure plan, which CSE and hoisting see, and an effectful run.
  }];
}

let opDocGroup = WNA16_RuntimeDoc in {

def WNA16_KernelPlanOp : WNA16_Op<"kernel_plan", [Pure]> {
  let summary = "what is constant about calls of a runtime kernel";
  let description = [{
    `kind` names the plan struct of Runtime/wna16.h (`experts`, `linear`,
    `route`, `rms_norm`, `convert`, `convert_bias`, `dequantize`, `quantize`) or, on devices
    alone, Runtime/wna16_cuda.h (`fill`, `sum`, `copy`), `fields` its fields;
    weights are given by their encoded types.

    Constraints:
    - (C1) the kind is known.
    - (C2) the fields are those of the kind.

    *Lifespan*: introduced by `wna16-disassemble`; `wna16-lower-to-runtime` makes
    it the address of a constant.

    ```mlir
    %p = wna16.kernel_plan convert @wna16_cpu_convert
        {source = tensor<2x128x64xf16, #gptq>, target = tensor<2x128x64xf16, #marlin>}
    ```
  }];
  let arguments = (ins StrAttr:$kind, FlatSymbolRefAttr:$kernel,
                       DictionaryAttr:$fields);
  let results = (outs WNA16_PlanType:$plan);
  let assemblyFormat = "custom<Keyword>($kind) $kernel $fields attr-dict";
  let hasVerifier = 1;
}

def WNA16_KernelRunOp : WNA16_Op<"kernel_run",
    [AttrSizedOperandSegments, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     DeclareOpInterfaceMethods<BufferizableOpInterface,
       ["bufferizesToMemoryRead", "bufferizesToMemoryWrite",
        "getAliasingValues", "bufferize"]>]> {
  let summary = "one call of a runtime kernel";
  let description = [{
    `ins` are read, `outs` written whole; each has its role, and the kind of the
    plan says which roles there are and in which order the C ABI wants them. On
    tensors the results are the written outs; on memrefs there are none.

    Constraints:
    - (C1) one role for each of `ins` and `outs`.
    - (C2) the roles are distinct.
    - (C3) tensors: one result of the same type for each of `outs`; memrefs:
      none.

    ```mlir
    wna16.kernel_run %p ins(%x, %c : memref<?x64xf32>, memref<64x8xf32>)
        outs(%y : memref<?x8xf32>) workspace(%ws : memref<?xi8>) stream(%s : !llvm.ptr)
        roles ["x", "weight.codes", "y"]
    ```
  }];
  let arguments = (ins WNA16_PlanType:$plan,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$inputs,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outputs,
                       Optional<AnyMemRef>:$workspace,
                       Optional<LLVM_AnyPointer>:$stream,
                       StrArrayAttr:$roles);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $plan (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)?
    (`stream` `(` $stream^ `:` type($stream) `)`)? `roles` $roles attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
  }];
  let hasVerifier = 1;
}

def WNA16_KernelWorkspaceOp : WNA16_Op<"kernel_workspace", [Pure]> {
  let summary = "bytes of workspace that a kernel needs for so many tokens";
  let description = [{
    ```mlir
    %bytes = wna16.kernel_workspace %p tokens(%m)
    ```
  }];
  let arguments = (ins WNA16_PlanType:$plan, Index:$tokens);
  let results = (outs Index:$bytes);
  let assemblyFormat = "$plan `tokens` `(` $tokens `)` attr-dict";
}

} // opDocGroup

#endif // WNA16_DIALECT_WNA16RUNTIMEOPS_TD
