//===- Main.cpp - Runs what the machine can run -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "gtest/gtest.h"

#include <cstdio>

/// With a device: all tests but those of a machine without one, and the other
/// way round; what does not run is said.
int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string asked = testing::GTEST_FLAG(filter);
  const bool device = wna16test::hasDevice();
  if (asked == "*")
    testing::GTEST_FLAG(filter) = device ? "-NoDevice.*" : "NoDevice.*";
  const int result = RUN_ALL_TESTS();
  if (!device)
    std::printf("GPU tests DID NOT RUN: %s\n",
                wna16test::deviceFault().c_str());
  return result;
}
