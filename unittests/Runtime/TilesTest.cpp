//===- TilesTest.cpp - Products of panels with tiles ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels for AMX have to give the bits of those for AVX-512. Where the
// machine has no tiles, TileEmulator executes their instructions, so that the
// code that is tested is the code that runs elsewhere.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CPU/Panels.h"
#include "Layout/Isa.h"
#include "TileEmulator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace wna16;
using wna16test::TileEmulator;

namespace {

constexpr float kPoison = -12345.0f;

struct Case {
  int bits;
  int64_t block, blocksPerGroup, groups, trailer;
  bool zeros;
  ScalarType scale, element;
};

std::ostream &operator<<(std::ostream &os, const Case &one) {
  return os << one.bits << " bits, " << one.groups << " groups of "
            << one.blocksPerGroup << " blocks of " << one.block
            << (one.zeros ? ", zeros" : "") << ", trailer " << one.trailer
            << ", scales " << name(one.scale) << ", " << name(one.element);
}

/// One panel of random codes, or of `code` alone, and rows of tokens.
class PanelCase {
public:
  PanelCase(const Case &one, int64_t tokens, int code = -1)
      : one(one), random(1) {
    shape.bits = one.bits;
    shape.block = one.block;
    shape.blocks = one.blocksPerGroup * one.groups;
    shape.input = shape.block * shape.blocks;
    shape.blockBytes = kPanelRows * one.block * one.bits / 8 + one.trailer;
    shape.blocksPerGroup = one.blocksPerGroup;
    shape.scale = one.scale;
    shape.zero = one.zeros ? 0 : 1 << (one.bits - 1);
    codes.resize(shape.codeBytes());
    for (uint8_t &byte : codes)
      byte = static_cast<uint8_t>(code < 0        ? random()
                                  : one.bits == 4 ? code * 0x11
                                                  : code);
    fillScales();
    if (one.zeros)
      for (int64_t i = 0; i < shape.groups() * kPanelRows; ++i)
        zeros.push_back(static_cast<uint8_t>(random() >> (32 - one.bits)));
    fillRows(tokens);
  }

  std::vector<float> product(const PanelProduct &product) const {
    const Panel panel = {codes.data(), scales.data(),
                         zeros.empty() ? nullptr : zeros.data()};
    constexpr int64_t kStride = kPanelRows + 3;
    std::vector<float> out(pointers.size() * kStride, kPoison);
    product.multiply(shape, panel, panel, pointers.data(),
                     static_cast<int64_t>(pointers.size()), out.data(),
                     kStride);
    return out;
  }

private:
  void fillScales() {
    for (int64_t i = 0; i < shape.groups() * kPanelRows; ++i) {
      // f32, bf16 or f16 of about one.
      const uint32_t fraction = random();
      uint32_t bits = 0x3f800000 | fraction >> 9;
      int64_t size = 4;
      if (one.scale != ScalarType::F32) {
        bits = one.scale == ScalarType::BF16 ? bits >> 16
                                             : 0x3c00 | fraction >> 22;
        size = 2;
      }
      auto *bytes = reinterpret_cast<const uint8_t *>(&bits);
      scales.insert(scales.end(), bytes, bytes + size);
    }
  }

  /// Every second row is where no other row is a multiple of its size away.
  void fillRows(int64_t tokens) {
    const int64_t bytes = avx512Panels.fixed.rowBytes(shape);
    rows.resize(tokens * (bytes + 64) + 64);
    std::normal_distribution<float> normal;
    std::vector<float> x(shape.input);
    for (int64_t t = 0; t < tokens; ++t) {
      for (float &value : x)
        value = normal(random);
      // The largest magnitudes of a block in both directions.
      x[t % shape.input] = t % 2 ? 300.0f : -300.0f;
      uint8_t *row = rows.data() + t * (bytes + 64) + t % 2 * 64;
      avx512Panels.fixed.prepare(shape, ScalarType::F32, x.data(),
                                 shape.input - t % 3, 1.0f, row);
      pointers.push_back(row);
    }
  }

  Case one;
  std::mt19937 random;
  PanelShape shape;
  std::vector<uint8_t> codes, scales, zeros, rows;
  std::vector<const uint8_t *> pointers;
};

/// Whether tiles can be multiplied here; the reason when not.
class Tiles : public testing::Test {
protected:
  void SetUp() override {
    if (isa() < Isa::AVX512)
      GTEST_SKIP() << "expected a machine with AVX-512, got " << name(isa());
    if (isa() < Isa::AMX)
      emulator.emplace();
  }

  void expectSame(const PanelCase &one, const std::string &what) {
    const int64_t before = emulator ? emulator->products() : 0;
    const std::vector<float> expected = one.product(avx512Panels.fixed);
    const std::vector<float> got = one.product(amxPanels.fixed);
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(
        std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
        << what;
    if (emulator) {
      usesTiles = emulator->products() > before;
      EXPECT_FALSE(emulator->isConfigured()) << "tiles were not released";
    }
  }

  std::optional<TileEmulator> emulator;
  bool usesTiles = true;
};

TEST_F(Tiles, EveryShape) {
  for (int bits : {4, 8})
    for (bool zeros : {false, true})
      for (int64_t block : {16, 32, 64, 128})
        for (int64_t blocksPerGroup : {1, 3})
          for (ScalarType scale :
               {ScalarType::F32, ScalarType::F16, ScalarType::BF16}) {
            const Case one = {
                bits,  block, blocksPerGroup, 2, bits == 4 ? 64 : 0,
                zeros, scale, ScalarType::F32};
            expectSame(PanelCase(one, 19), testing::PrintToString(one));
            EXPECT_TRUE(usesTiles);
          }
}

TEST_F(Tiles, EveryNumberOfTokens) {
  const Case one = {4, 128, 1, 3, 0, true, ScalarType::BF16, ScalarType::F32};
  for (int64_t tokens = 1; tokens <= 100; ++tokens) {
    expectSame(PanelCase(one, tokens), std::to_string(tokens) + " tokens");
    EXPECT_TRUE(usesTiles || tokens < 16);
  }
}

TEST_F(Tiles, ExtremeCodes) {
  for (int bits : {4, 8})
    for (bool zeros : {false, true})
      for (int code : {0, (1 << bits) - 1, 1 << (bits - 1)}) {
        const Case one = {bits,           128, 1, 60, 0, zeros, ScalarType::F32,
                          ScalarType::F32};
        expectSame(PanelCase(one, 33, code), "code " + std::to_string(code));
      }
}

} // namespace
