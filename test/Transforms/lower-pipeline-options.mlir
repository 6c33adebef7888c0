// The second half of the pipeline finds what it needs in the module.
// RUN: not wna16-opt %s --pass-pipeline='builtin.module(wna16-lower-pipeline{target=cpu})' 2>&1 | FileCheck %s
// CHECK: failed to add `wna16-lower-pipeline` with options `target=cpu`

module {}
