//===- Ceilings.h - What the machine can do at most -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CPU_CEILINGS_H
#define WNA16_BENCHMARKS_CPU_CEILINGS_H

namespace wna16 {

/// Rates of one moment; 0 where the machine has no such instructions.
struct Ceilings {
  double readBytes = 0; ///< bytes a second from memory
  double fmaFlops = 0;  ///< f32 operations a second, an FMA being two
  double vnniOps = 0;   ///< int8 operations a second, likewise

  /// The best of both: what disturbs a measurement only makes it slower.
  void raise(const Ceilings &other);
};

/// Measures with `threads` threads; takes about a second.
Ceilings measureCeilings(int threads);

/// Bytes a second from memory at this moment; takes milliseconds.
double measureReadNow(int threads);

} // namespace wna16

#endif // WNA16_BENCHMARKS_CPU_CEILINGS_H
