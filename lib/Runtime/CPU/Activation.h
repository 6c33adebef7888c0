//===- Activation.h - From gate and up to the hidden value ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_ACTIVATION_H
#define WNA16_LIB_RUNTIME_CPU_ACTIVATION_H

#include "Runtime/wna16.h"

namespace wna16 {

/// An activation with its parameters, in f32.
struct Activation {
  wna16_activation kind;
  float alpha;
  float beta;
  float limit; ///< infinity: none

  /// Of experts with a gate.
  float operator()(float gate, float up) const;
  /// Of experts without one.
  float operator()(float value) const;
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_ACTIVATION_H
