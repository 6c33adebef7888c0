//===- ForcedIsa.cpp - Tests run with the instruction set asked for -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library does not obey a WNA16_ISA that it does not know or that the
// machine lacks. A program that it is set for fails or skips its tests instead
// of passing them with another set.
//
//===----------------------------------------------------------------------===//

#include "Layout/Isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

using namespace wna16;

namespace {

class ForcedIsa : public testing::Environment {
  void SetUp() override {
    const char *wanted = std::getenv("WNA16_ISA");
    if (!wanted || !*wanted || name(isa()) == wanted)
      return;
    bool known = std::any_of(std::begin(kIsas), std::end(kIsas),
                             [&](Isa set) { return name(set) == wanted; });
    ASSERT_TRUE(known) << "no instruction set: WNA16_ISA = " << wanted;
    GTEST_SKIP() << "this machine lacks " << wanted << "; its best set is "
                 << name(isa());
  }
};

[[maybe_unused]] const testing::Environment *const kForcedIsa =
    testing::AddGlobalTestEnvironment(new ForcedIsa);

} // namespace
