//===- Slots.cpp - The slots of a chunk of tokens, by expert --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Slots.h"

#include <algorithm>

using namespace wna16;

int64_t wna16::tokensPerChunk(const ExpertsPlan &plan, int64_t tokens) {
  return std::min(tokens,
                  std::max<int64_t>(1, kSlotsPerChunk / plan.fields.top_k));
}

SlotOrder SlotOrder::carve(const ExpertsPlan &plan, int64_t slots,
                           Carver &carver) {
  SlotOrder result;
  result.begin = carver.take<int64_t>(plan.w13.experts + 1);
  result.order = carver.take<int32_t>(slots);
  result.local = carver.take<int32_t>(slots);
  result.active = carver.take<int32_t>(plan.w13.experts);
  result.topK = plan.fields.top_k;
  return result;
}

/// A counting sort.
void SlotOrder::sort(const ExpertsPlan &plan, const ExpertsArguments &arguments,
                     int64_t first, int64_t count) {
  firstToken = first;
  tokens = count;
  const int64_t experts = plan.w13.experts;
  std::fill_n(begin, experts + 1, 0);
  for (int64_t slot = 0; slot < tokens * topK; ++slot) {
    const int32_t expert =
        arguments.expertOf(plan, firstToken + slot / topK, slot % topK);
    local[slot] = expert;
    if (expert >= 0)
      ++begin[expert + 1];
  }
  numActive = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (begin[e + 1] > 0)
      active[numActive++] = static_cast<int32_t>(e);
    begin[e + 1] += begin[e];
  }
  for (int64_t slot = 0; slot < tokens * topK; ++slot)
    if (const int32_t expert = local[slot]; expert >= 0)
      order[begin[expert]++] = static_cast<int32_t>(slot);
  // Each begin has moved to its end, which is the next one's begin.
  std::copy_backward(begin, begin + experts, begin + experts + 1);
  begin[0] = 0;
  end = begin[experts];
}

bool SlotOrder::isUsed(int64_t token) const {
  const int32_t *locals = local + token * topK;
  return std::any_of(locals, locals + topK,
                     [](int32_t expert) { return expert >= 0; });
}
