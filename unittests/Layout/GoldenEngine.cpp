//===- GoldenEngine.cpp - The golden test on the CPU ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GoldenEngine.h"

using namespace wna16;
using namespace wna16::test;

std::string engine::move(Stored &from, Stored &to, Window window) {
  return moveAll(from, to, window);
}

std::string engine::dequantize(Stored &from, Bytes &out) {
  return dequantizeWeight(from.spec, from.buffers(), ScalarType::BF16,
                          /*scaleFirst=*/true, out.data(),
                          {0, from.spec.experts})
      .message;
}

std::string engine::moveBias(const WeightSpec &source, const Bytes &from,
                             const WeightSpec &target, Bytes &to,
                             Window window) {
  return wna16::moveBias(source, from.data(), target, to.data(),
                         ScalarType::F16, window)
      .message;
}
