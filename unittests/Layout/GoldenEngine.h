//===- GoldenEngine.h - What the golden test puts to the test ---*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves on the CPU (GoldenEngine.cpp) or on a device (unittests/CUDA). Each
// returns the message of a failure.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_LAYOUT_GOLDENENGINE_H
#define WNA16_UNITTESTS_LAYOUT_GOLDENENGINE_H

#include "TestSupport.h"

namespace wna16::test::engine {

/// Moves a window of all experts.
std::string move(Stored &from, Stored &to, Window window = {});

/// Writes bf16 values, upstream's rounding of both factors first.
std::string dequantize(Stored &from, Bytes &out);

/// Moves an f16 bias.
std::string moveBias(const WeightSpec &source, const Bytes &from,
                     const WeightSpec &target, Bytes &to, Window window = {});

} // namespace wna16::test::engine

#endif // WNA16_UNITTESTS_LAYOUT_GOLDENENGINE_H
