//===- TestWeights.h - Random weights and their values ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_LAYOUT_TESTWEIGHTS_H
#define WNA16_UNITTESTS_LAYOUT_TESTWEIGHTS_H

#include "TestSupport.h"

#include "Layout/Catalogue.h"

#include <random>

namespace wna16::test {

/// Two experts, with scales of f16.
WeightSpec specOf(std::string_view layout, CodeType code, int64_t input,
                  int64_t halves, int64_t output, int64_t group,
                  ZeroPoints zeros = ZeroPoints::None);

/// The same as a layout takes it: with its type of scales, and with zero points
/// where the code needs them.
WeightSpec plainSpec(const LayoutEntry &layout, CodeType code, int64_t input,
                     int64_t halves, int64_t output, int64_t group);
WeightSpec plainSpec(const char *layout, CodeType code, int64_t input,
                     int64_t halves, int64_t output, int64_t group);

/// Random codes and zero points, scales of three bits that every type holds.
void randomize(Stored &stored, std::mt19937 &random);

/// [experts, rows, input], as kernels decode them.
std::vector<float> valuesOf(Stored &stored);

} // namespace wna16::test

#endif // WNA16_UNITTESTS_LAYOUT_TESTWEIGHTS_H
