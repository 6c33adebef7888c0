// Encoded tensors go through functions, control flow and the few tensor
// operations of the list, survive canonicalization, and bufferize once they are
// taken apart.
// RUN: wna16-opt %s --wna16-verify-encodings | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --mlir-print-op-generic | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --emit-bytecode | wna16-opt | FileCheck %s
// RUN: wna16-opt %s --wna16-disassemble \
// RUN:   | FileCheck %s --check-prefix=APART --implicit-check-not='#gptq' --implicit-check-not='64x32xf16'
// RUN: wna16-opt %s --wna16-disassemble \
// RUN:     --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   | FileCheck %s --check-prefix=BUFFER --implicit-check-not='tensor<' --implicit-check-not='64x32xf16'

#gptq = #wna16.packed<u4b8, group = 32, layout = gptq>

// CHECK-LABEL: func.func @callee(
// CHECK-SAME: tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq>
// APART-LABEL: func.func @callee(
// APART-SAME: tensor<2x8x32xi32>
// APART-SAME: tensor<2x2x32xf16>
// BUFFER-LABEL: func.func @callee(
// BUFFER-SAME: memref<2x8x32xi32>
// BUFFER-SAME: memref<2x2x32xf16>
func.func @callee(%w: tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq> {
  return %w : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @call
// CHECK: call @callee(%{{.*}}) : (tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq>
// APART-LABEL: func.func @call(
// APART: call @callee({{.*}}) : (tensor<2x8x32xi32>, tensor<2x2x32xf16>) -> (tensor<2x8x32xi32>, tensor<2x2x32xf16>)
// BUFFER-LABEL: func.func @call(
// BUFFER: call @callee({{.*}}) : (memref<2x8x32xi32>, memref<2x2x32xf16>)
func.func @call(%w: tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq> {
  %0 = call @callee(%w) : (tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq>
  return %0 : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @if
// CHECK: scf.if %{{.*}} -> (tensor<2x64x32xf16, #gptq>)
// APART-LABEL: func.func @if
// APART: scf.if %{{.*}} -> (tensor<2x8x32xi32>, tensor<2x2x32xf16>)
// BUFFER-LABEL: func.func @if
func.func @if(%c: i1, %a: tensor<2x64x32xf16, #gptq>, %b: tensor<2x64x32xf16, #gptq>)
    -> tensor<2x64x32xf16, #gptq> {
  %0 = scf.if %c -> tensor<2x64x32xf16, #gptq> {
    scf.yield %a : tensor<2x64x32xf16, #gptq>
  } else {
    %1 = func.call @callee(%b) : (tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq>
    scf.yield %1 : tensor<2x64x32xf16, #gptq>
  }
  return %0 : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @for
// CHECK: scf.for {{.*}} -> (tensor<2x64x32xf16, #gptq>)
// APART-LABEL: func.func @for
// APART: scf.for {{.*}} -> (tensor<2x8x32xi32>, tensor<2x2x32xf16>)
// BUFFER-LABEL: func.func @for
func.func @for(%n: index, %a: tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%w = %a) -> tensor<2x64x32xf16, #gptq> {
    %1 = func.call @callee(%w) : (tensor<2x64x32xf16, #gptq>) -> tensor<2x64x32xf16, #gptq>
    scf.yield %1 : tensor<2x64x32xf16, #gptq>
  }
  return %0 : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @select
// CHECK: arith.select %{{.*}} : tensor<2x64x32xf16, #gptq>
// APART-LABEL: func.func @select
// APART: arith.select %{{.*}} : tensor<2x8x32xi32>
// APART: arith.select %{{.*}} : tensor<2x2x32xf16>
// BUFFER-LABEL: func.func @select
func.func @select(%c: i1, %a: tensor<2x64x32xf16, #gptq>, %b: tensor<2x64x32xf16, #gptq>)
    -> tensor<2x64x32xf16, #gptq> {
  %0 = arith.select %c, %a, %b : tensor<2x64x32xf16, #gptq>
  return %0 : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @branch
// CHECK: cf.cond_br
// CHECK: ^bb{{.*}}(%{{.*}}: tensor<2x64x32xf16, #gptq>):
// APART-LABEL: func.func @branch
// APART: ^bb{{.*}}(%{{.*}}: tensor<2x8x32xi32>, %{{.*}}: tensor<2x2x32xf16>):
// BUFFER-LABEL: func.func @branch
func.func @branch(%c: i1, %a: tensor<2x64x32xf16, #gptq>, %b: tensor<2x64x32xf16, #gptq>)
    -> tensor<2x64x32xf16, #gptq> {
  cf.cond_br %c, ^merge(%a : tensor<2x64x32xf16, #gptq>), ^other
^other:
  cf.br ^merge(%b : tensor<2x64x32xf16, #gptq>)
^merge(%w: tensor<2x64x32xf16, #gptq>):
  return %w : tensor<2x64x32xf16, #gptq>
}

// CHECK-LABEL: func.func @empty
// CHECK: tensor.empty() : tensor<2x64x32xf16, #gptq>
// CHECK: tensor.dim
// APART-LABEL: func.func @empty
// APART-DAG: tensor.empty() : tensor<2x8x32xi32>
// APART-DAG: tensor.empty() : tensor<2x2x32xf16>
// APART-DAG: arith.constant 64 : index
// BUFFER-LABEL: func.func @empty
func.func @empty() -> (tensor<2x64x32xf16, #gptq>, index) {
  %0 = tensor.empty() : tensor<2x64x32xf16, #gptq>
  %c1 = arith.constant 1 : index
  %1 = tensor.dim %0, %c1 : tensor<2x64x32xf16, #gptq>
  return %0, %1 : tensor<2x64x32xf16, #gptq>, index
}
