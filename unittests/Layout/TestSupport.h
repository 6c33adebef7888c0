//===- TestSupport.h - Weights that own their storage -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_LAYOUT_TESTSUPPORT_H
#define WNA16_UNITTESTS_LAYOUT_TESTSUPPORT_H

#include "Layout/Move.h"

#include <gtest/gtest.h>
#include <string>

namespace wna16::test {

using Bytes = std::vector<uint8_t>;

/// A stored weight that owns its parts.
struct Stored {
  WeightSpec spec;
  std::array<Bytes, kNumParts> parts;

  /// Parts of the right size, filled with a pattern that must be overwritten.
  explicit Stored(const WeightSpec &of, uint8_t poison = 0xa5) : spec(of) {
    Result<std::vector<StoredPart>> storage = storageOf(spec);
    EXPECT_TRUE(storage) << storage.message();
    if (storage)
      for (const StoredPart &part : *storage)
        at(part.part).assign(static_cast<size_t>(part.bytes()), poison);
  }
  Bytes &at(Part part) { return parts[static_cast<size_t>(part)]; }
  const Bytes &at(Part part) const { return parts[static_cast<size_t>(part)]; }
  WeightBuffers buffers() {
    WeightBuffers all;
    for (size_t i = 0; i < parts.size(); ++i)
      all.part[i] = parts[i].empty() ? nullptr : parts[i].data();
    return all;
  }
};

/// Moves all experts; the message of a failure.
inline std::string moveAll(Stored &from, Stored &to, Window window = {}) {
  return moveWeight(from.spec, from.buffers(), to.spec, to.buffers(),
                    {0, from.spec.experts}, window)
      .message;
}

/// Field `index` of a run of 4- or 8-bit codes, written on its own: 32-bit
/// little-endian words, lowest bits first.
inline uint32_t field(const Bytes &bytes, int bits, int64_t index) {
  int64_t perWord = 32 / bits, word = index / perWord;
  uint32_t value = 0;
  for (int64_t i = 0; i < 4; ++i)
    if (size_t at = static_cast<size_t>(4 * word + i); at < bytes.size())
      value |= uint32_t(bytes[at]) << (8 * i);
  return (value >> (bits * (index % perWord))) & ((1u << bits) - 1);
}

inline void setField(Bytes &bytes, int bits, int64_t index, uint32_t value) {
  size_t at = static_cast<size_t>(index * bits / 8);
  int shift = static_cast<int>(index * bits % 8);
  uint32_t mask = ((1u << bits) - 1) << shift;
  bytes[at] = static_cast<uint8_t>((bytes[at] & ~mask) | (value << shift));
}

} // namespace wna16::test

#endif // WNA16_UNITTESTS_LAYOUT_TESTSUPPORT_H
