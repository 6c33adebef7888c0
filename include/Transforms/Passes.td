//===- Passes.td - The passes ------------------------------*- tablegen -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_PASSES_TD
#define WNA16_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyEncodings : Pass<"wna16-verify-encodings"> {
  let summary = "Check that only operations that respect encodings carry them";
  let description = [{
    Function arguments and results, calls, branches, `scf`, `arith.select`,
    `tensor.empty` and `tensor.dim` may carry encoded tensors, and so may the
    dialect's own operations. Any other operation with one among its operands or
    results is an error, above all a `tensor.cast` that changes or drops the
    encoding. First pass of every pipeline.
  }];
}

def SelectBackend : Pass<"wna16-select-backend", "::mlir::ModuleOp"> {
  let summary = "Choose a backend for each layer, and say why";
  let description = [{
    Sets `backend` on every `wna16.fused_experts`; a backend that is already
    there is obeyed or refused. `linear` and `route` follow the target. Every
    rejected backend is a remark with the constraint, the numbers and the
    remedy (`--remarks-filter='wna16.*'`).

    ```mlir
    wna16.fused_experts silu x(%x : ...) ... outs(%init : ...)
    // becomes, with target=cpu
    wna16.fused_experts silu x(%x : ...) ... outs(%init : ...) {backend = "cpu"}
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"\"",
           "cpu[:features], cuda:sm_NN or xpu; empty: the module's wna16.target "
           "or dlti entry">,
    Option<"backend", "backend", "std::string", /*default=*/"\"auto\"",
           "auto, or names of backends: the first of NAME,NAME that takes a "
           "layer">,
    Option<"rules", "rules", "std::string", /*default=*/"\"native\"",
           "native: what our kernels need; vllm: the reference system's rules">,
    ListOption<"deployment", "deployment", "std::string",
               "what rules=vllm cannot see in the module: eplb, lora, "
               "flashinfer-int4, all2all=NAME, humming-gemm=NAME">,
    Option<"explain", "explain", "std::string", /*default=*/"\"\"",
           "file for the table of candidates ('-': standard output); JSON when "
           "it ends in .json">,
  ];
  let dependentDialects = ["::wna16::WNA16Dialect"];
}

def MaterializeLayouts : Pass<"wna16-materialize-layouts"> {
  let summary = "Insert the steps that bring weights into the backend's form";
  let description = [{
    Between the checkpoint's encoding and the one that the chosen backend wants,
    inserts sort_groups, pad, regroup, recode, repack or dequantize, each only
    where something changes, and convert_bias for biases.

    ```mlir
    %y = wna16.fused_experts silu ... w2(%w2 : tensor<8x96x256xbf16, #gptq>) ...
    // becomes
    %0 = wna16.pad %w2 : tensor<8x96x256xbf16, #gptq> to tensor<8x128x256xbf16, #gptq>
    %1 = wna16.repack %0 : ... to tensor<8x128x256xbf16, #marlin>
    %y = wna16.fused_experts silu ... w2(%1 : ...) ...
    ```
  }];
}

def HoistPrepare : Pass<"wna16-hoist-prepare", "::mlir::ModuleOp"> {
  let summary = "Move what depends on weights alone into functions of its own";
  let description = [{
    For each function with parameters, makes a function that prepares each of
    its weights, `@prepare_w13` beside `@forward` (`@prepare_x_w13` for
    `@forward_x`, else `@f_prepare_w13` for `@f`). It takes the parameters and
    returns the prepared weight, which `@forward` takes as an argument. Weights
    that share parameters are prepared together.

    Where every step works expert by expert, the function takes and gives one
    expert, and `wna16.experts` says for how many it is to be called. A chain
    that needs all experts at once (scales folded into int16 under one global
    scale, constants, operations of other dialects) is computed whole and has
    no such attribute.

    The steps of a weight become one `wna16.convert`. Parameters that need no
    preparation become arguments of `@forward` itself. None of these arguments
    is writable. An `ml_program.global` with an external value is a parameter
    with the symbol's name; constants go where they are needed.

    A step on anything else, such as a weight that is an argument, stays where
    it is and runs in every call; a missed remark (`wna16.prepare`) says so.

    ```mlir
    func.func @prepare_w13(%codes: tensor<1x32x256xi32>
        {wna16.parameter = {pattern = "...{expert}...qweight", concat = 1}}, ...)
        -> (tensor<1x256x2x128xbf16, #cpu_panels> {wna16.prepared = "w13"})
        attributes {wna16.prepare = "forward", wna16.experts = 8}
    func.func @forward(%x: tensor<?x256xbf16>, %w13: tensor<8x256x2x128xbf16, #cpu_panels>
        {bufferization.writable = false, wna16.encoding = "tensor<8x...>", wna16.prepared = "w13"}, ...)
    ```
  }];
  let options = [
    Option<"prepareOnly", "prepare-only", "bool", /*default=*/"false",
           "keep what prepares weights: @forward keeps its weights as "
           "arguments and loses its body, the target becomes cpu and "
           "wna16.prepared_for names the one that there was">,
  ];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::wna16::WNA16Dialect"];
}

def Emulate : Pass<"wna16-emulate", "::mlir::ModuleOp"> {
  let summary = "Lower the dialect to linalg, arith and scf";
  let description = [{
    Encoded tensors are replaced by their storage tensors and operations by
    `linalg` on them, following the numeric contract; the result needs stock
    passes alone. With `all` every operation is lowered, for any target,
    otherwise those whose backend has no runtime kernel, which is an error where
    the kernels' buffers are on a device.

    ```mlir
    %1 = wna16.dequantize %0 : tensor<2x128x64xbf16, #gptq> to tensor<2x128x64xf32, #wna16.dense>
    // becomes a linalg.generic that shifts and masks codes, subtracts zero
    // points and multiplies by scales
    ```
  }];
  let options = [
    Option<"all", "all", "bool", /*default=*/"true",
           "lower every operation, not only those without a kernel">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def Disassemble : Pass<"wna16-disassemble", "::mlir::ModuleOp"> {
  let summary = "Replace encoded tensors by their parts, operations by kernels";
  let description = [{
    Encoded tensors in function signatures, calls, branches, `scf` and
    `arith.select` become their storage tensors (1:N); every operation of the
    dialect becomes a `kernel_plan` and a `kernel_run` of the runtime of the
    module's `wna16.target`.

    ```mlir
    %1 = wna16.convert %0 : tensor<2x128x64xf16, #gptq> to tensor<2x128x64xf16, #marlin>
    // becomes
    %p = wna16.kernel_plan convert @wna16_cpu_convert {source = ..., target = ...}
    %1:2 = wna16.kernel_run %p ins(%codes, %scales : ...) outs(%2, %3 : ...)
        roles ["source.codes", "source.scales", "target.codes", "target.scales"] -> ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ResultsToOuts : Pass<"wna16-results-to-outs", "::mlir::ModuleOp"> {
  let summary = "Make tensor results of public functions buffer arguments";
  let description = [{
    Each tensor result gets a buffer argument with its attributes, in which it
    is computed in place; what cannot be is copied there. After bufferization
    nothing is returned and nothing allocated for a result. The other tensors
    stay as the caller gave them: they are marked `bufferization.writable =
    false` unless the function says otherwise.

    ```mlir
    func.func @forward(%x: tensor<?x8xf32>) -> (tensor<?x8xf32> {wna16.name = "out"})
    // becomes
    func.func @forward(%x: tensor<?x8xf32>, %out: memref<?x8xf32>
        {wna16.name = "out", wna16.output})
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def VerifyDisassembled
    : Pass<"wna16-verify-disassembled", "::mlir::ModuleOp"> {
  let summary = "Check that encodings are gone and kernels in reach";
  let description = [{
    After disassembly no type is encoded, no operation of the dialect is left
    but kernel plans and runs, and these are in functions of the module itself,
    not of a nested one, which later passes do not enter.
  }];
}

def OffloadLoops : Pass<"wna16-offload-loops", "::mlir::ModuleOp"> {
  let summary = "Make loops between kernels kernels, where buffers lie on a device";
  let description = [{
    On a target that is a device, these become calls of its runtime, so that the
    host touches no buffer: a fill with a constant; a copy; a `linalg.generic`
    that rounds one array of floats or adds two, in f32. Buffers have 1 to 3 axes
    and the identity layout. What else there is stays, for
    `wna16-verify-planned` to refuse. On a CPU nothing changes.

    ```mlir
    linalg.fill ins(%one : f32) outs(%weights : memref<?x1xf32>)
    // becomes
    %p = wna16.kernel_plan fill @wna16_cuda_fill {value = 1.0 : f64}
    wna16.kernel_run %p outs(%weights : memref<?x1xf32>) roles ["y"]
    ```
  }];
  let dependentDialects = ["::wna16::WNA16Dialect"];
}

def PlanWorkspace : Pass<"wna16-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "Put temporary buffers and kernel scratch into one workspace";
  let description = [{
    Functions with `kernel_run` or `memref.alloc` get two last arguments, the
    workspace and the stream. Allocations become views of the workspace, one
    after the other and aligned to 64 bytes; kernels get what is left. Beside
    `@forward` stands `@workspace_size`, which computes the bytes for a
    number of tokens, the largest of the dynamic extents that the allocations
    depend on. It saturates: what does not fit 63 bits, or what a kernel refuses
    to size, is 2^63 - 1 bytes. Kernels that prepare weights ask for no scratch.

    ```mlir
    %a = memref.alloc(%m) : memref<?x8xf32>
    // becomes
    %a = memref.view %workspace[%offset][%m] : memref<?xi8> to memref<?x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def VerifyPlanned : Pass<"wna16-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check that calls allocate nothing and touch no device memory";
  let description = [{
    After `wna16-plan-workspace` no operation allocates, in loops and callees
    neither; and where the target is a device, kernels alone read and write
    buffers: a loop on the host cannot.
  }];
}

def LowerToRuntime : Pass<"wna16-lower-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower kernel_plan and kernel_run to calls of the C runtime";
  let description = [{
    A plan becomes the address of a constant that holds the plan struct; a run
    fills one tensor descriptor per role and calls the kernel:

    ```mlir
    %status = llvm.call @wna16_cpu_linear(%plan, %tensors, %count, %workspace,
        %bytes, %stream) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr) -> i32
    ```

    The status is sticky in the runtime, so that no branch is needed; entry
    points return it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def EmitEntryPoints : Pass<"wna16-emit-entry-points", "::mlir::ModuleOp"> {
  let summary = "Give functions C entry points that take DLPack-style tensors";
  let description = [{
    Each public function `NAME` on memrefs becomes `int32_t NAME(const
    wna16_tensor *tensors, int64_t count, void *workspace, int64_t
    workspace_bytes, void *stream)`, which checks the tensors against the
    signature (dynamic extents of one axis agree among tensors of one rank),
    calls the function (now private) and returns the status. The string `wna16_module_description` describes them as JSON:

    ```json
    {"abi": 3, "functions": [{"name": "forward", "workspace": "workspace_size",
      "arguments": [{"role": "input", "name": "x", "type": "bf16", "shape": [-1, 256]},
        {"role": "prepared", "name": "w13.codes", "type": "u8", "shape": [8, 8, 1152]},
        {"role": "parameter", "pattern": "model.layers.0.mlp.gate.weight", ...},
        {"role": "output", "name": "out", "type": "bf16", "shape": [-1, 256]}
      ] } ] }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif // WNA16_TRANSFORMS_PASSES_TD
