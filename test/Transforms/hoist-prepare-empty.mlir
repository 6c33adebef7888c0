// RUN: wna16-opt %s -wna16-hoist-prepare=prepare-only | FileCheck %s

// Nothing of the dialect is there, nor loaded.
// CHECK: module attributes {wna16.target = #wna16.target<cpu>}
module {
}
