//===- CatalogueTest.cpp - Layouts and the storage that they ask for ------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace wna16;
using namespace wna16::test;

namespace {

TEST(Catalogue, NumbersArePositions) {
  int64_t next = 0;
  for (const LayoutEntry &entry : allLayouts()) {
    EXPECT_EQ(entry.id, next++);
    EXPECT_EQ(findLayout(entry.id), &entry);
    EXPECT_EQ(findLayout(entry.name), &entry);
  }
  EXPECT_EQ(findLayout("no such"), nullptr);
  EXPECT_EQ(findLayout(int64_t(-1)), nullptr);
  EXPECT_EQ(findLayout(next), nullptr);
}

// The ABI: names and numbers never change.
TEST(Catalogue, AbiNumbers) {
  const char *names[] = {"dense",
                         "interleaved",
                         "gptq",
                         "awq",
                         "compressed_tensors",
                         "marlin",
                         "marlin_a8",
                         "humming_mma",
                         "humming_wgmma",
                         "cpu_blocked",
                         "trtllm",
                         "xpu",
                         "otf",
                         "transposed",
                         "transposed_interleaved"};
  for (int64_t i = 0; i < 15; ++i) {
    ASSERT_NE(findLayout(i), nullptr);
    EXPECT_EQ(findLayout(i)->name, names[i]);
  }
}

TEST(Storage, B74_ReachesPast31Bits) {
  WeightSpec spec =
      specOf("compressed_tensors", CodeType::U4B8, 4096, 2, 1024, 128);
  spec.experts = 512;
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  ASSERT_TRUE(parts) << parts.message();
  const StoredPart &codes = parts->front();
  EXPECT_EQ(codes.bytes(), int64_t(1) << 31);
  Result<AddressMap> map = codeAddresses(spec);
  ASSERT_TRUE(map);
  int64_t last =
      511 * (codes.bytes() / 512) + (map->row(2047) + map->input(4095)) / 2;
  EXPECT_EQ(last, 2147483647);
  spec.layout = findLayout("gptq");
  map = codeAddresses(spec);
  ASSERT_TRUE(map);
  EXPECT_EQ(511 * map->size() / 2 + (map->row(2047) + map->input(4095)) / 2,
            2147483647);
}

TEST(Storage, NamesRuleAndNumbers) {
  WeightSpec spec = specOf("marlin", CodeType::U4B8, 100, 1, 64, -1);
  EXPECT_EQ(storageOf(spec).message(),
            "expected input (100) to be a multiple of 16 for layout marlin; "
            "pad to 112");
  spec = specOf("cpu_blocked", CodeType::U8, 128, 1, 32, 32, ZeroPoints::Plain);
  EXPECT_NE(storageOf(spec).message().find("bits = 8"), std::string::npos);
  spec =
      specOf("cpu_blocked", CodeType::U4, 320, 1, 32, 160, ZeroPoints::Plain);
  spec.scale = ScalarType::F32;
  EXPECT_NE(storageOf(spec).message().find("160"), std::string::npos);
  spec = specOf("xpu", CodeType::U4, 128, 1, 32, 32, ZeroPoints::Plain);
  EXPECT_NE(storageOf(spec).message().find("no zero points"),
            std::string::npos);
}

TEST(Storage, KeepsTails) {
  // 100 inputs: 13 words, the last half full; the last group has 4 rows.
  WeightSpec spec = specOf("compressed_tensors", CodeType::U4, 100, 1, 12, 32,
                           ZeroPoints::Plain);
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  ASSERT_TRUE(parts) << parts.message();
  EXPECT_EQ((*parts)[0].shape, (std::vector<int64_t>{2, 12, 13}));
  EXPECT_EQ((*parts)[1].shape, (std::vector<int64_t>{2, 12, 4}));
  EXPECT_EQ((*parts)[2].shape, (std::vector<int64_t>{2, 2, 4}));
}

TEST(Catalogue, InterleavedAlternatesGateAndUp) {
  WeightSpec spec = specOf("interleaved", CodeType::U4B8, 40, 2, 6, 8);
  Result<AddressMap> codes = codeAddresses(spec), scales = scaleAddresses(spec),
                     bias = biasAddresses(spec);
  ASSERT_TRUE(codes && scales && bias);
  for (int64_t s = 0; s < 2; ++s)
    for (int64_t n = 0; n < 6; ++n) {
      EXPECT_EQ(codes->row(6 * s + n), 40 * (2 * n + s));
      EXPECT_EQ(scales->row(6 * s + n), 5 * (2 * n + s));
      EXPECT_EQ(bias->row(6 * s + n), 2 * n + s);
    }
  spec.halves = 1;
  EXPECT_EQ(biasAddresses(spec)->size(), 6);
}

TEST(Catalogue, TransposedHoldsInputsFirst) {
  for (bool turns : {false, true}) {
    WeightSpec spec = specOf(turns ? "transposed_interleaved" : "transposed",
                             CodeType::Dense, 40, 2, 6, -1);
    Result<std::vector<StoredPart>> parts = storageOf(spec);
    ASSERT_TRUE(parts) << parts.message();
    EXPECT_EQ((*parts)[0].shape, (std::vector<int64_t>{2, 40, 12}));
    Result<AddressMap> map = codeAddresses(spec), bias = biasAddresses(spec);
    ASSERT_TRUE(map && bias);
    for (int64_t k = 0; k < 40; ++k)
      EXPECT_EQ(map->input(k), 12 * k);
    for (int64_t s = 0; s < 2; ++s)
      for (int64_t n = 0; n < 6; ++n) {
        EXPECT_EQ(map->row(6 * s + n), turns ? 2 * n + s : 6 * s + n);
        EXPECT_EQ(bias->row(6 * s + n), turns ? 2 * n + s : 6 * s + n);
      }
    spec.code = CodeType::U4B8;
    EXPECT_FALSE(storageOf(spec));
  }
}

// Nibble or byte addresses of the word formulas, word by word.
TEST(Catalogue, TileFormulas) {
  const int64_t kInput = 64, kOutput = 128;
  for (const char *layout :
       {"marlin", "humming_mma", "humming_wgmma", "marlin_a8"})
    for (bool wide : {false, true}) {
      SCOPED_TRACE(std::string(layout) + (wide ? " 8" : " 4"));
      bool a8 = std::string(layout) == "marlin_a8";
      bool wgmma = std::string(layout) == "humming_wgmma";
      CodeType code = wide ? CodeType::U8B128 : CodeType::U4B8;
      Result<AddressMap> map =
          codeAddresses(specOf(layout, code, kInput, 1, kOutput, -1));
      ASSERT_TRUE(map);
      int64_t pf = wide ? 4 : 8, words = 1024 / pf, wordsOfT = wide ? 8 : 4;
      for (int64_t at = 0; at < kInput * kOutput; ++at) {
        int64_t p = at % pf, f = at / pf, tile = f / words, w = f % words;
        int64_t t = w / wordsOfT, h = w % 2, k, n;
        int64_t u = wide ? w % 8 / 2 : w % 4;
        if (a8) {
          int64_t kt = tile / (kOutput / 32), nt = tile % (kOutput / 32);
          k = 32 * kt + 4 * (t & 3) +
              (wide ? p + 16 * h : (p >> 1) + 16 * (p & 1));
          n = 32 * nt + 8 * u + (t >> 2);
        } else {
          int64_t kt = tile / (kOutput / 64), nt = tile % (kOutput / 64);
          int64_t second = wide ? h : (p >> 1) & 1;
          k = 16 * kt + 2 * (t & 3) + 8 * (wgmma ? second : p & 1) +
              (wide ? p >> 1 : p >> 2);
          n = 64 * nt + 16 * u + 8 * (wgmma ? p & 1 : second) + (t >> 2);
        }
        ASSERT_EQ(map->input(k) + map->row(n), at) << k << " " << n;
      }
    }
}

TEST(Catalogue, SideFormulas) {
  const int64_t i4[] = {0, 2, 4, 6, 1, 3, 5, 7}, i8[] = {0, 2, 1, 3};
  struct {
    const char *layout;
    bool identity;
  } const cases[] = {{"marlin", false},
                     {"marlin_a8", true},
                     {"humming_mma", true},
                     {"humming_wgmma", true}};
  for (auto [layout, identity] : cases)
    for (bool wide : {false, true}) {
      SCOPED_TRACE(std::string(layout) + (wide ? " 8" : " 4"));
      WeightSpec spec = specOf(layout, wide ? CodeType::U8 : CodeType::U4, 64,
                               1, 128, 32, ZeroPoints::Plain);
      Result<AddressMap> zeros = zeroAddresses(spec);
      ASSERT_TRUE(zeros);
      int64_t pf = wide ? 4 : 8;
      for (int64_t g = 0; g < 2; ++g)
        for (int64_t at = 0; at < 128; ++at) {
          int64_t p = at % pf;
          int64_t q = at - p + (identity ? p : wide ? i8[p] : i4[p]);
          int64_t n = 64 * (q / 64) + 8 * (q % 8) + q % 64 / 8;
          ASSERT_EQ(zeros->group(g) + zeros->row(n), 128 * g + at);
        }
      for (int64_t group : {32, -1}) {
        spec.group = group;
        Result<AddressMap> scales = scaleAddresses(spec);
        ASSERT_TRUE(scales);
        bool s64 = group > 0 && std::string(layout) != "marlin_a8";
        for (int64_t j = 0; j < 128; ++j) {
          int64_t l = j % 32;
          int64_t n = s64 ? j / 64 * 64 + j % 8 * 8 + j % 64 / 8
                          : j - l + 2 * (l / 8) + (l & 1) + 8 * (l % 8 >> 1);
          ASSERT_EQ(scales->row(n), j);
        }
      }
    }
}

// Every address of every part lies in the part, and no two agree. 12 groups
// fill no word: zero points packed group by group cannot have groups innermost.
TEST(Storage, AddressesFillTheirParts) {
  auto check = [](const AddressMap &map, int64_t inner, bool group,
                  int64_t rows, int64_t units) {
    std::vector<bool> seen(static_cast<size_t>(units));
    ASSERT_EQ(map.size(), units);
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t r = 0; r < rows; ++r) {
        int64_t at = (group ? map.group(i) : map.input(i)) + map.row(r);
        ASSERT_TRUE(at >= 0 && at < units);
        ASSERT_FALSE(seen[at]);
        seen[at] = true;
      }
  };
  int checked = 0;
  for (const LayoutEntry &entry : allLayouts())
    for (CodeType code :
         {CodeType::U4B8, CodeType::U8B128, CodeType::U4, CodeType::U8})
      for (auto [input, halves] : {std::pair(256, 1), {256, 2}, {384, 2}}) {
        bool zeros = code == CodeType::U4 || code == CodeType::U8;
        WeightSpec spec = specOf("gptq", code, input, halves, 128, 32,
                                 zeros ? ZeroPoints::Plain : ZeroPoints::None);
        spec.layout = &entry;
        spec.scale = entry.scaleType.value_or(ScalarType::F16);
        Result<std::vector<StoredPart>> parts = storageOf(spec);
        if (!parts)
          continue;
        SCOPED_TRACE(std::string(entry.name));
        ++checked;
        check(*codeAddresses(spec), input, false, spec.rows(),
              (*parts)[0].bytes() / 2 * 8 / spec.bits());
        check(*scaleAddresses(spec), spec.groups(), true, spec.rows(),
              (*parts)[1].elements() / 2);
        if (zeros)
          check(*zeroAddresses(spec), spec.groups(), true, spec.rows(),
                (*parts)[2].bytes() / 2 * 8 / zeroBits(spec));
      }
  EXPECT_GE(checked, 80);
}

} // namespace
