//===- TestUtils.h - What the checkpoint tests share ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_CHECKPOINT_TESTUTILS_H
#define WNA16_UNITTESTS_CHECKPOINT_TESTUTILS_H

#include "CheckpointBuilder.h"

#include "Checkpoint/Checkpoint.h"

#include <gtest/gtest.h>

namespace wna16::test {

/// Writes and opens; the mapping outlives the directory.
Result<Checkpoint> open(const CheckpointBuilder &builder, bool audit = false);

/// The message of a refusal; an error when there is none.
std::string refusal(const CheckpointBuilder &builder);

/// A weight's dequantised values, [experts, rows, input].
std::vector<float> dequantised(const Checkpoint &checkpoint,
                               const WeightSource &weight);

/// All linears of all layers equal what the builder meant, bit for bit, and
/// their parts are what storageOf lists.
void expectExact(const Checkpoint &checkpoint,
                 const CheckpointBuilder &builder);

#define EXPECT_CONTAINS(text, part)                                            \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

/// How one linear is stored.
LinearStyle style(Stored stored, int bits, int64_t group, bool symmetric,
                  bool actOrder = false);

/// A model of one expert a token.
ModelStyle model(int64_t experts, int64_t hidden, int64_t intermediate);

} // namespace wna16::test

#endif // WNA16_UNITTESTS_CHECKPOINT_TESTUTILS_H
