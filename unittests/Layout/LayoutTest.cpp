//===- LayoutTest.cpp - Bit orders, storage, moves and values -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "Layout/Scalar.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

WeightSpec specOf(const char *layout, CodeType code, int64_t input,
                  int64_t halves, int64_t output, int64_t group,
                  ZeroPoints zeros = ZeroPoints::None) {
  WeightSpec spec;
  spec.layout = findLayout(layout);
  spec.code = code;
  spec.zeros = zeros;
  spec.group = group;
  spec.experts = 2;
  spec.input = input;
  spec.halves = halves;
  spec.output = output;
  return spec;
}

//===----------------------------------------------------------------------===//
// Bit orders
//===----------------------------------------------------------------------===//

TEST(BitOrder, KeepsItsText) {
  for (const LayoutEntry &entry : allLayouts())
    for (std::string_view text :
         {entry.dense, entry.codes8, entry.scales, entry.scales1, entry.zeros4,
          entry.gated4, entry.gatedScales, entry.zeros8, entry.bias}) {
      if (text.empty())
        continue;
      Result<BitOrder> order = BitOrder::parse(text);
      ASSERT_TRUE(order) << order.message();
      EXPECT_EQ(order->str(), text);
    }
}

TEST(BitOrder, ReadsTileOffTheText) {
  Result<BitOrder> order =
      BitOrder::parse("k3 n3 k0 | n4 n5 k1 k2 n0 n1 n2 | N K");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->tileSize(), 1024);
  EXPECT_EQ(order->tileExtent(Axis::Input), 16);
  EXPECT_EQ(order->tileExtent(Axis::Output), 64);
  EXPECT_FALSE(order->names(Axis::Half));
}

TEST(BitOrder, RejectsNonsense) {
  for (const char *text :
       {"", "|", "x0 | K", "k0 k0 | K", "k1 | K", "k | K", "k0 K k1", "K K",
        "K0", "k0a", "k99", "k64 | K", "u0", "s s", "k-1", "k000"})
    EXPECT_FALSE(BitOrder::parse(text)) << text;
}

TEST(BitOrder, RandomOrdersAreBijections) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> bits = {"k0", "k1", "k2", "n0", "n1", "u"};
    std::shuffle(bits.begin(), bits.end(), random);
    std::string text;
    for (const std::string &bit : bits)
      text += bit + " ";
    Result<BitOrder> order = BitOrder::parse(text + "| N K");
    ASSERT_TRUE(order) << order.message();
    AddressMap map(*order, 24, 2, 12, 1);
    ASSERT_EQ(map.size(), 24 * 24);
    std::vector<bool> seen(24 * 24);
    for (int64_t k = 0; k < 24; ++k)
      for (int64_t r = 0; r < 24; ++r) {
        // The defining formula: one address bit after the other.
        int64_t n = r % 12, s = r / 12, at = 0;
        for (size_t i = 0; i < bits.size(); ++i) {
          int64_t bit = bits[i] == "u"      ? 1 - s
                        : bits[i][0] == 'k' ? k >> (bits[i][1] - '0') & 1
                                            : n >> (bits[i][1] - '0') & 1;
          at += bit << i;
        }
        at += 64 * (n / 4 + 3 * (k / 8));
        ASSERT_EQ(map.input(k) + map.row(r), at) << text;
        ASSERT_FALSE(seen[at]) << text;
        seen[at] = true;
      }
  }
}

//===----------------------------------------------------------------------===//
// Catalogue and storage
//===----------------------------------------------------------------------===//

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

// Every address of every part lies in the part, and no two agree.
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
      for (int64_t halves : {1, 2}) {
        bool zeros = code == CodeType::U4 || code == CodeType::U8;
        WeightSpec spec = specOf("gptq", code, 256, halves, 128, 32,
                                 zeros ? ZeroPoints::Plain : ZeroPoints::None);
        spec.layout = &entry;
        spec.scale = entry.scaleType.value_or(ScalarType::F16);
        Result<std::vector<StoredPart>> parts = storageOf(spec);
        if (!parts)
          continue;
        SCOPED_TRACE(std::string(entry.name));
        ++checked;
        check(*codeAddresses(spec), 256, false, spec.rows(),
              (*parts)[0].bytes() / 2 * 8 / spec.bits());
        check(*scaleAddresses(spec), 8, true, spec.rows(),
              (*parts)[1].elements() / 2);
        if (zeros)
          check(*zeroAddresses(spec), 8, true, spec.rows(),
                (*parts)[2].bytes() / 2 * 8 / zeroBits(spec));
      }
  EXPECT_GE(checked, 50);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

// Random codes survive every ordered pair of layouts.
TEST(Move, EveryPairRoundTrips) {
  std::mt19937 random(11);
  int pairs = 0;
  for (bool zeros : {false, true})
    for (bool wide : {false, true})
      for (const LayoutEntry &a : allLayouts())
        for (const LayoutEntry &b : allLayouts()) {
          WeightSpec spec = specOf(
              "gptq",
              zeros ? (wide ? CodeType::U8 : CodeType::U4)
                    : (wide ? CodeType::U8B128 : CodeType::U4B8),
              256, 2, 64, 32, zeros ? ZeroPoints::Plain : ZeroPoints::None);
          WeightSpec first = spec, second = spec;
          first.layout = &a;
          second.layout = &b;
          for (WeightSpec *one : {&first, &second})
            one->scale = one->layout->scaleType.value_or(ScalarType::F32);
          if (!storageOf(first) || !storageOf(second))
            continue;
          Stored original(spec), x(first), y(second), back(spec);
          for (Bytes &part : original.parts)
            for (uint8_t &byte : part)
              byte = static_cast<uint8_t>(random());
          // Scales that every type holds.
          for (size_t i = 0; i < original.at(Part::Scales).size(); i += 2) {
            original.at(Part::Scales)[i] = 0;
            original.at(Part::Scales)[i + 1] = uint8_t(0x30 + random() % 8);
          }
          ASSERT_EQ(moveAll(original, x), "");
          ASSERT_EQ(moveAll(x, y), "");
          ASSERT_EQ(moveAll(y, back), "");
          ASSERT_EQ(back.parts, original.parts) << a.name << " " << b.name;
          ++pairs;
        }
  EXPECT_GT(pairs, 200);
}

// A zero point of 0 is stored as 15 in GPTQ v1 without touching neighbours.
TEST(Move, ZeroPointsOfGptqV1) {
  WeightSpec spec =
      specOf("gptq", CodeType::U4, 8, 1, 16, -1, ZeroPoints::Plain);
  WeightSpec minusOne = spec;
  minusOne.zeros = ZeroPoints::MinusOne;
  Stored plain(spec), packed(minusOne), back(spec);
  for (Bytes &part : plain.parts)
    std::fill(part.begin(), part.end(), uint8_t(0x10));
  ASSERT_EQ(moveAll(plain, packed), "");
  for (uint8_t byte : packed.at(Part::Zeros))
    EXPECT_EQ(byte, 0x0f);
  ASSERT_EQ(moveAll(packed, back), "");
  EXPECT_EQ(back.parts, plain.parts);
}

TEST(Move, FoldsScalesForInt8) {
  WeightSpec from = specOf("gptq", CodeType::U4B8, 64, 1, 64, 32);
  WeightSpec to = from;
  to.layout = findLayout("marlin_a8");
  to.scale = ScalarType::I16;
  Stored a(from), b(to);
  auto *scales = reinterpret_cast<uint16_t *>(a.at(Part::Scales).data());
  int64_t count = 2 * 2 * 64;
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    scales[i] = floatToF16(0.003f + 0.0007f * static_cast<float>(i % 97));
    largest = std::max(largest, f16ToFloat(scales[i]));
  }
  ASSERT_EQ(moveAll(a, b), "");
  EXPECT_EQ(*b.buffers().get<float>(Part::GlobalScale), largest / 4096);
  auto *folded = b.buffers().get<int16_t>(Part::Scales);
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t g = 0; g < 2; ++g)
      for (int64_t block = 0; block < 2; ++block)
        for (int64_t j = 0; j < 32; ++j) {
          int64_t source = 2 * (j / 8) + (j & 1) + 8 * ((j % 8) >> 1);
          int64_t at = (e * 2 + g) * 64 + 32 * block;
          float s = f16ToFloat(scales[at + source]);
          float r = f16ToFloat(floatToF16(s / largest));
          ASSERT_EQ(folded[at + j],
                    std::nearbyint(f16ToFloat(floatToF16(r * 4096))));
        }
}

TEST(Move, RejectsBadGroupIndices) {
  WeightSpec from = specOf("gptq", CodeType::U4B8, 64, 1, 64, 32);
  from.actOrder = ActOrder::Index;
  WeightSpec to = from;
  to.layout = findLayout("marlin");
  to.actOrder = ActOrder::Sorted;
  Stored a(from), b(to);
  auto *index = reinterpret_cast<int32_t *>(a.at(Part::GroupIndex).data());
  for (int64_t k = 0; k < 128; ++k)
    index[k] = static_cast<int32_t>(k & 1);
  EXPECT_EQ(moveAll(a, b), "");
  auto *perm = reinterpret_cast<int32_t *>(b.at(Part::Permutation).data());
  for (int64_t k = 0; k < 128; ++k)
    EXPECT_EQ(perm[k], k % 64 < 32 ? 2 * (k % 64) : 2 * (k % 32) + 1);
  for (int32_t bad : {2, -1, INT32_MAX, INT32_MIN}) {
    index[70] = bad;
    std::string message = moveAll(a, b);
    EXPECT_NE(message.find("expert 1"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(bad)), std::string::npos) << message;
    std::vector<float> out(2 * 64 * 64);
    EXPECT_TRUE(dequantizeWeight(from, a.buffers(), ScalarType::F32, false,
                                 out.data(), {0, 2}));
  }
  index[70] = 1; // 31 and 33 rows
  EXPECT_NE(moveAll(a, b).find("expert 1"), std::string::npos);
  EXPECT_TRUE(moveWeight(from, a.buffers(), to, b.buffers(), {0, 3}));
}

TEST(Move, ChecksNeverCrash) {
  std::mt19937_64 random(3);
  const int64_t values[] = {0,   1,    2,         8,         32,       64,
                            100, 128,  256,       4096,      -1,       -7,
                            3,   1000, INT64_MAX, INT64_MIN, 1LL << 31};
  auto pick = [&] { return values[random() % std::size(values)]; };
  auto make = [&] {
    WeightSpec spec;
    spec.layout = random() % 20 ? findLayout(int64_t(random() % 15)) : nullptr;
    spec.code = CodeType(random() % 9);
    spec.element = ScalarType(random() % 11);
    spec.scale = ScalarType(random() % 11);
    spec.zeros = ZeroPoints(random() % 4);
    spec.actOrder = ActOrder(random() % 4);
    spec.group = pick();
    spec.experts = pick();
    spec.input = pick();
    spec.halves = random() % 4 ? 1 + int64_t(random() % 2) : pick();
    spec.output = pick();
    return spec;
  };
  int fit = 0;
  for (int round = 0; round < 200000; ++round) {
    WeightSpec a = make(), b = random() % 2 ? make() : a;
    if (random() % 2)
      b.layout = findLayout(int64_t(random() % 15));
    fit += !checkMove(a, b);
  }
  EXPECT_GT(fit, 0);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

TEST(Scalar, EveryHalfIsExact) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float f = f16ToFloat(half), b = bf16ToFloat(half);
    int exponent = (half >> 10) & 31, mantissa = half & 1023;
    if (exponent < 31) {
      double value = exponent ? std::ldexp(1024 + mantissa, exponent - 25)
                              : std::ldexp(mantissa, -24);
      ASSERT_EQ(f, half & 0x8000 ? -value : value);
      ASSERT_EQ(floatToF16(f), half);
      if (exponent < 30 || mantissa < 1023) {
        // Halfway to the next value: to even.
        float next = f16ToFloat(static_cast<uint16_t>(half + 1));
        float middle = (f + next) / 2;
        ASSERT_EQ(floatToF16(middle), static_cast<uint16_t>(half + (half & 1)));
        ASSERT_EQ(floatToF16(std::nextafter(middle, f)), half);
      }
    } else {
      ASSERT_EQ(std::isnan(f), mantissa != 0);
      ASSERT_EQ(std::isnan(f16ToFloat(floatToF16(f))), mantissa != 0);
    }
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(bf16ToFloat(floatToBF16(b))));
      continue;
    }
    ASSERT_EQ(floatToBF16(b), half);
    if (std::isinf(b))
      continue;
    uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(floatToBF16(floatOf(middle)),
              static_cast<uint16_t>(half + (half & 1)));
    ASSERT_EQ(floatToBF16(floatOf(middle - 1)), half);
    ASSERT_EQ(floatToBF16(floatOf(middle + 1)),
              static_cast<uint16_t>(half + 1));
  }
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
}

std::vector<float> decodeByte(CodeType code, ZeroPoints zeros) {
  WeightSpec spec = specOf("xpu", code, 2, 1, 2, -1, zeros);
  if (zeros != ZeroPoints::None)
    spec.layout = findLayout("otf");
  spec.experts = 1;
  spec.scale = ScalarType::F32;
  Stored stored(spec);
  std::fill(stored.at(Part::Codes).begin(), stored.at(Part::Codes).end(), 0x9f);
  std::fill(stored.at(Part::Zeros).begin(), stored.at(Part::Zeros).end(), 0);
  float one[2] = {1, 1};
  std::memcpy(stored.at(Part::Scales).data(), one, 8);
  std::vector<float> out(4);
  Failure bad = dequantizeWeight(spec, stored.buffers(), ScalarType::F32, false,
                                 out.data(), {0, 1});
  EXPECT_FALSE(bad) << bad.message;
  out.resize(2);
  return out;
}

TEST(Values, LowNibbleFirst) {
  EXPECT_EQ(decodeByte(CodeType::U4, ZeroPoints::Plain),
            (std::vector<float>{15, 9}));
  EXPECT_EQ(decodeByte(CodeType::U4B8, ZeroPoints::None),
            (std::vector<float>{7, 1}));
  EXPECT_EQ(decodeByte(CodeType::S4, ZeroPoints::None),
            (std::vector<float>{-1, -7}));
}

TEST(Values, RangesIncludeZero) {
  WeightSpec spec =
      specOf("gptq", CodeType::U4, 8, 1, 1, -1, ZeroPoints::Plain);
  spec.experts = 1;
  spec.scale = ScalarType::F32;
  Stored stored(spec);
  std::vector<float> in, out(8);
  for (int i = 0; i < 8; ++i)
    in.push_back(10.5f + 0.5f * static_cast<float>(i));
  ASSERT_FALSE(quantizeWeight(ScalarType::F32, in.data(), spec,
                              stored.buffers(), {0, 1}));
  ASSERT_FALSE(dequantizeWeight(spec, stored.buffers(), ScalarType::F32, false,
                                out.data(), {0, 1}));
  for (int i = 0; i < 8; ++i)
    EXPECT_LE(std::abs(in[i] - out[i]), 0.47f);
}

// A padded, recoded, folded weight decodes to what it was.
TEST(Values, MovesKeepValues) {
  WeightSpec from =
      specOf("awq", CodeType::U4, 96, 2, 32, 32, ZeroPoints::Plain);
  Stored a(from);
  std::mt19937 random(5);
  for (Bytes &part : a.parts)
    for (uint8_t &byte : part)
      byte = static_cast<uint8_t>(random());
  for (size_t i = 1; i < a.at(Part::Scales).size(); i += 2)
    a.at(Part::Scales)[i] = 0x2c;
  WeightSpec to = from;
  to.layout = findLayout("marlin_a8");
  to.code = CodeType::U4FP8;
  to.input = 128;
  to.output = 64;
  Stored b(to);
  ASSERT_EQ(moveAll(a, b), "");
  std::vector<float> x(2 * 64 * 96), y(2 * 128 * 128);
  ASSERT_FALSE(dequantizeWeight(from, a.buffers(), ScalarType::F32, false,
                                x.data(), {0, 2}));
  ASSERT_FALSE(dequantizeWeight(to, b.buffers(), ScalarType::F32, false,
                                y.data(), {0, 2}));
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t r = 0; r < 128; ++r)
      for (int64_t k = 0; k < 128; ++k) {
        int64_t n = r % 64;
        float expected =
            n < 32 && k < 96 ? x[(e * 64 + r / 64 * 32 + n) * 96 + k] : 0.0f;
        ASSERT_EQ(y[(e * 128 + r) * 128 + k], expected) << r << " " << k;
      }
}

} // namespace
