// Sizes saturate instead of wrapping around.
// RUN: split-file %s %t
// RUN: wna16-opt %t/forward.mlir -wna16-plan-workspace | sed '/^}$/d' > %t/both.mlir
// RUN: cat %t/main.mlir >> %t/both.mlir
// RUN: cat %t/both.mlir | %run-stock | FileCheck %s

//--- forward.mlir
// Both buffers have 32 bytes a token, and a multiple of 64.
func.func @forward(%x: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x8xf32>
  %a = memref.alloc(%m) : memref<?x8xf32>
  %b = memref.alloc(%m) : memref<?x8xf32>
  memref.copy %x, %a : memref<?x8xf32> to memref<?x8xf32>
  memref.copy %x, %b : memref<?x8xf32> to memref<?x8xf32>
  return
}

//--- main.mlir
func.func private @printI64(i64)
func.func private @printNewline()

func.func @show(%tokens: i64) {
  %i = arith.index_cast %tokens : i64 to index
  %size = call @workspace_size(%i) : (index) -> index
  %0 = arith.index_cast %size : index to i64
  call @printI64(%0) : (i64) -> ()
  call @printNewline() : () -> ()
  return
}

func.func @main() {
  // CHECK: {{^}}0{{$}}
  %none = arith.constant 0 : i64
  call @show(%none) : (i64) -> ()
  // CHECK-NEXT: {{^}}256{{$}}
  %few = arith.constant 3 : i64
  call @show(%few) : (i64) -> ()
  // 2^57 tokens: 2^62 bytes each, one more than fits.
  // CHECK-NEXT: {{^}}9223372036854775807{{$}}
  %sum = arith.constant 144115188075855872 : i64
  call @show(%sum) : (i64) -> ()
  // 2^59 tokens would wrap around to 0.
  // CHECK-NEXT: {{^}}9223372036854775807{{$}}
  %product = arith.constant 576460752303423488 : i64
  call @show(%product) : (i64) -> ()
  // CHECK-NEXT: {{^}}9223372036854775807{{$}}
  %negative = arith.constant -1 : i64
  call @show(%negative) : (i64) -> ()
  return
}
}
