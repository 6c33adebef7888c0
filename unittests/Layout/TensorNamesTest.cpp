//===- TensorNamesTest.cpp - Which file tensors make up a tensor ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/TensorNames.h"

#include <gtest/gtest.h>

using namespace wna16;

namespace {

TEST(TensorNames, OneTensor) {
  Result<TensorNames> names = TensorNames::parse("gate.weight");
  ASSERT_TRUE(names) << names.message();
  EXPECT_FALSE(names->isPerExpert());
  EXPECT_EQ(names->alternatives(), 0u);
  EXPECT_EQ(names->name(3, 1), "gate.weight");
}

TEST(TensorNames, ExpertsAndAlternatives) {
  Result<TensorNames> names = TensorNames::parse("e.{expert}.{w1,w3}.qweight");
  ASSERT_TRUE(names) << names.message();
  EXPECT_TRUE(names->isPerExpert());
  EXPECT_EQ(names->alternatives(), 2u);
  EXPECT_EQ(names->name(0, 0), "e.0.w1.qweight");
  EXPECT_EQ(names->name(12, 1), "e.12.w3.qweight");
  EXPECT_EQ(names->patternOf(1), "e.{expert}.w3.qweight");
}

TEST(TensorNames, AnyOrderAndNumber) {
  Result<TensorNames> names = TensorNames::parse("{a,bb,c}{expert}");
  ASSERT_TRUE(names) << names.message();
  EXPECT_EQ(names->alternatives(), 3u);
  EXPECT_EQ(names->name(7, 1), "bb7");
  names = TensorNames::parse("{expert}{a,b}");
  ASSERT_TRUE(names) << names.message();
  EXPECT_EQ(names->name(7, 1), "7b");
}

TEST(TensorNames, Malformed) {
  for (const char *pattern :
       {"", "{", "}", "a{expert", "a}", "{a,{expert}}", "{}", "{experts}",
        "{a}", "{,}", "{a,}", "{a,a}", "{expert}{expert}", "{a,b}{c,d}"})
    EXPECT_FALSE(TensorNames::parse(pattern)) << pattern;
}

} // namespace
