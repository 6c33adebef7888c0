// RUN: wna16-opt %s -wna16-pipeline=target=cpu | FileCheck %s --implicit-check-not=memrefCopy

// What stands around a layer: elementwise arith on tensors, and copies of parts
// of a buffer, need no other runtime.

// CHECK: llvm.func @residual(
// CHECK: llvm.call @wna16_cpu_linear(
// CHECK: llvm.func @parts(
// CHECK: llvm.call @wna16_cpu_linear(

func.func @residual(%x: tensor<?x256xbf16>, %weight: tensor<256x256xbf16, #wna16.dense>) -> tensor<?x256xbf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xbf16>
  %i = tensor.empty(%m) : tensor<?x256xbf16>
  %y = wna16.linear x(%x : tensor<?x256xbf16>) weight(%weight : tensor<256x256xbf16, #wna16.dense>)
      outs(%i : tensor<?x256xbf16>) -> tensor<?x256xbf16>
  %z = arith.addf %x, %y : tensor<?x256xbf16>
  return %z : tensor<?x256xbf16>
}

func.func @parts(%x: tensor<4x256xbf16>, %weight: tensor<256x8xbf16, #wna16.dense>) -> tensor<4x16xf32> {
  %i = tensor.empty() : tensor<4x8xf32>
  %y = wna16.linear x(%x : tensor<4x256xbf16>) weight(%weight : tensor<256x8xbf16, #wna16.dense>)
      outs(%i : tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = tensor.concat dim(1) %y, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}
