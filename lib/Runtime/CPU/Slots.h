//===- Slots.h - The slots of a chunk of tokens, by expert ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_SLOTS_H
#define WNA16_LIB_RUNTIME_CPU_SLOTS_H

#include "Experts.h"
#include "Workspace.h"

namespace wna16 {

/// Tokens are taken in chunks of about this many slots, so that the workspace
/// does not grow with the batch.
constexpr int64_t kSlotsPerChunk = 4096;

/// Tokens of one chunk when a call has `tokens`.
int64_t tokensPerChunk(const ExpertsPlan &plan, int64_t tokens);

/// A chunk's slots sorted by expert. A slot is a token's slot, counted within
/// the chunk; a position is a place in the sorted order.
struct SlotOrder {
  int64_t *begin;  ///< [experts + 1] an expert's first position
  int32_t *order;  ///< [slots] the slot at each position
  int32_t *local;  ///< [slots] expert of each slot, or -1
  int32_t *active; ///< [experts] those with tokens
  int64_t numActive = 0;
  // The chunk.
  int64_t firstToken = 0;
  int64_t tokens = 0;
  int64_t topK = 1;

  static SlotOrder carve(const ExpertsPlan &plan, int64_t slots,
                         Carver &carver);
  /// Sorts tokens [firstToken, firstToken + tokens). Slots of one expert stay
  /// in token order.
  void sort(const ExpertsPlan &plan, const ExpertsArguments &arguments,
            int64_t first, int64_t count);

  int64_t positions() const { return end; }
  int64_t tokenAt(int64_t position) const {
    return firstToken + order[position] / topK;
  }
  /// Whether any slot of the chunk's token has an expert here.
  bool isUsed(int64_t token) const;

private:
  int64_t end = 0;
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_SLOTS_H
