//===- PropertyTest.cpp - What holds for every layout and weight ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestWeights.h"

#include "Layout/Scalar.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace wna16;
using namespace wna16::test;

namespace {

/// `grown` holds the values of `source` and zeros.
void expectPadded(Stored &grown, Stored &source) {
  std::vector<float> got = valuesOf(grown), values = valuesOf(source);
  const WeightSpec &to = grown.spec, &from = source.spec;
  for (int64_t e = 0; e < to.experts; ++e)
    for (int64_t r = 0; r < to.rows(); ++r)
      for (int64_t k = 0; k < to.input; ++k) {
        int64_t n = r % to.output, row = r / to.output * from.output + n;
        float expected = n < from.output && k < from.input
                             ? values[(e * from.rows() + row) * from.input + k]
                             : 0.0f;
        ASSERT_EQ(got[(e * to.rows() + r) * to.input + k], expected)
            << to.layout->name << " row " << r << " input " << k;
      }
}

constexpr CodeType kCodes[] = {CodeType::U4, CodeType::U4B8, CodeType::U8,
                               CodeType::U8B128};

//===----------------------------------------------------------------------===//
// Every pair
//===----------------------------------------------------------------------===//

/// Extents with many factors of two, with few, and with none but a tile's.
struct {
  int64_t input, halves, output;
} constexpr kExtents[] = {
    {256, 1, 128}, {256, 2, 128}, {512, 1, 192}, {384, 2, 96}, {96, 2, 72}};

// Through every ordered pair of layouts to the same values; what the target
// held before does not show.
TEST(Pairs, SameValuesWhateverTheTargetHeld) {
  std::mt19937 random(17);
  int pairs = 0;
  for (const LayoutEntry &a : allLayouts())
    for (const LayoutEntry &b : allLayouts())
      for (CodeType code : kCodes)
        for (auto [input, halves, output] : kExtents) {
          WeightSpec from = plainSpec(a, code, input, halves, output, 32);
          WeightSpec to = plainSpec(b, code, input, halves, output, 32);
          if (!storageOf(from) || !storageOf(to))
            continue;
          Stored source(from), target(to), other(to, 0xff);
          randomize(source, random);
          ASSERT_EQ(moveAll(source, target), "") << a.name << " " << b.name;
          ASSERT_EQ(moveAll(source, other), "");
          ASSERT_EQ(target.parts, other.parts) << a.name << " " << b.name;
          ASSERT_EQ(valuesOf(target), valuesOf(source))
              << a.name << " " << b.name;
          ++pairs;
        }
  EXPECT_GT(pairs, 500);
}

//===----------------------------------------------------------------------===//
// Sorting and windows
//===----------------------------------------------------------------------===//

/// A random order of the inputs in groups of equal size.
void randomizeGroups(Stored &stored, std::mt19937 &random) {
  const WeightSpec &spec = stored.spec;
  std::vector<int32_t> groups(static_cast<size_t>(spec.input));
  for (int64_t k = 0; k < spec.input; ++k)
    groups[k] = static_cast<int32_t>(k / spec.group);
  for (int64_t e = 0; e < spec.experts; ++e) {
    std::shuffle(groups.begin(), groups.end(), random);
    std::memcpy(&stored.at(Part::GroupIndex)[e * spec.input * 4], groups.data(),
                groups.size() * 4);
  }
}

// Sorted inputs hold the values of the inputs that the permutation names.
TEST(Sorting, PermutesInputs) {
  std::mt19937 random(41);
  for (const char *layout : {"gptq", "compressed_tensors"})
    for (CodeType code : kCodes)
      for (auto [input, halves, output] : kExtents) {
        WeightSpec from = plainSpec(layout, code, input, halves, output, 32);
        WeightSpec to = plainSpec("marlin", code, input, halves, output, 32);
        from.actOrder = ActOrder::Index;
        to.actOrder = ActOrder::Sorted;
        if (!storageOf(from) || !storageOf(to))
          continue;
        SCOPED_TRACE(std::string(layout) + " " + std::to_string(input));
        Stored source(from), target(to);
        randomize(source, random);
        randomizeGroups(source, random);
        ASSERT_EQ(moveAll(source, target), "");
        std::vector<float> values = valuesOf(source), got = valuesOf(target);
        for (int64_t at = 0, rows = from.rows();
             at < from.experts * rows * input; ++at) {
          int64_t expert = at / (rows * input), k = at % input;
          int32_t old;
          std::memcpy(
              &old, &target.at(Part::Permutation)[(expert * input + k) * 4], 4);
          ASSERT_EQ(got[at], values[at - k + old]) << at;
        }
      }
}

/// The values of the source's window, and zeros, are in the target.
void expectWindow(Stored &target, Stored &source, Window window) {
  std::vector<float> got = valuesOf(target), values = valuesOf(source);
  const WeightSpec &to = target.spec, &from = source.spec;
  for (int64_t e = 0; e < to.experts; ++e)
    for (int64_t r = 0; r < to.rows(); ++r)
      for (int64_t k = 0; k < to.input; ++k) {
        int64_t n = r % to.output;
        int64_t row = r / to.output * from.output + window.output + n;
        bool moved = n < window.outputs && k < window.inputs;
        ASSERT_EQ(got[(e * to.rows() + r) * to.input + k],
                  moved ? values[(e * from.rows() + row) * from.input +
                                 window.input + k]
                        : 0.0f)
            << "row " << r << " input " << k;
      }
}

// A window that starts anywhere, padded to what the target's tiles need; its
// groups are those of the source, or finer ones where it starts within one.
TEST(Windows, TakeAPart) {
  std::mt19937 random(43);
  constexpr Window kWindows[] = {{0, 256, 0, 96},
                                 {128, 128, 96, 96},
                                 {64, 192, 24, 72},
                                 {32, 96, 7, 50},
                                 {256, 256, 64, 128}};
  for (const char *from : {"gptq", "awq", "compressed_tensors", "otf"})
    for (const LayoutEntry &to : allLayouts())
      for (CodeType code : {CodeType::U4, CodeType::U8B128})
        for (Window window : kWindows)
          for (int64_t halves : {1, 2}) {
            int64_t group = window.input % 128 ? 32 : 128;
            WeightSpec spec = plainSpec(to, code, 256, halves, 128, group);
            Stored source(plainSpec(from, code, 512, halves, 192, 128));
            if (!storageOf(spec) || checkMove(source.spec, spec, window))
              continue;
            SCOPED_TRACE(std::string(from) + " to " + std::string(to.name));
            randomize(source, random);
            Stored target(spec), other(spec, 0xff);
            for (Stored *out : {&target, &other})
              ASSERT_EQ(moveWeight(source.spec, source.buffers(), spec,
                                   out->buffers(), {0, 2}, window)
                            .message,
                        "");
            EXPECT_EQ(target.parts, other.parts);
            expectWindow(target, source, window);
          }
}

TEST(Windows, StayWithinTheSource) {
  WeightSpec from = plainSpec("gptq", CodeType::U4B8, 256, 1, 128, 64);
  WeightSpec to = plainSpec("otf", CodeType::U4B8, 128, 1, 128, 64);
  EXPECT_EQ(checkMove(from, to, {192, 128, 0, -1}).message,
            "expected a window within input 256, got 128 from 192 on");
  EXPECT_EQ(checkMove(from, to, {0, 128, -1, -1}).message,
            "expected a window within output 128, got all from -1 on");
  EXPECT_EQ(checkMove(from, to, {INT64_MIN, -1, 0, -1}).message,
            "expected a window within input 256, got all from "
            "-9223372036854775808 on");
  EXPECT_EQ(checkMove(from, to, {0, 128, 0, -2}).message,
            "expected a window within output 128, got -2 from 0 on");
  EXPECT_EQ(checkMove(from, to, {32, 128, 0, -1}).message,
            "expected the new group (64) to divide the window's first input "
            "(32)");
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// Pads every side; NaNs as what was there.
void padsInto(const char *to, CodeType code, int64_t group, bool fp8 = false) {
  std::mt19937 random(23);
  for (const char *from : {"gptq", "awq", "compressed_tensors", "otf"})
    for (int64_t halves : {1, 2}) {
      SCOPED_TRACE(std::string(from) + " to " + to);
      Stored source(plainSpec(from, code, 100, halves, 92, group));
      randomize(source, random);
      WeightSpec spec = plainSpec(to, code, 256, halves, 128, group);
      if (fp8) {
        spec.code = CodeType::U4FP8;
      }
      Stored target(spec), other(spec, 0xff);
      ASSERT_EQ(moveAll(source, target), "");
      ASSERT_EQ(moveAll(source, other), "");
      EXPECT_EQ(target.parts, other.parts);
      expectPadded(target, source);
    }
}

// 100 inputs in groups of 32 and 128: the last group is short.
TEST(Padding, DecodesToZero) {
  for (CodeType code : kCodes)
    for (int64_t group : {int64_t(32), int64_t(128), int64_t(-1)})
      for (const char *to :
           {"gptq", "awq", "compressed_tensors", "marlin", "marlin_a8",
            "humming_mma", "humming_wgmma", "otf"})
        padsInto(to, code, group);
  for (int64_t group : {32, 128, -1}) {
    padsInto("cpu_blocked", CodeType::U4, group);
    padsInto("marlin_a8", CodeType::U4, group, true);
  }
}

/// Compares the sums of two blocks of 128 inputs for 32 outputs with `sumOf`
/// (expert, row, first input, end), which is asked for `outputs` rows and
/// `inputs` inputs alone.
template <typename SumOf>
void expectBlockSums(const Stored &target, int64_t inputs, int64_t outputs,
                     SumOf sumOf) {
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t r = 0; r < 32; ++r)
      for (int64_t block = 0; block < 2; ++block) {
        int32_t sum;
        size_t at = (e * 2 + block) * (16 * 128 + 128) + 16 * 128 + 4 * r;
        std::memcpy(&sum, &target.at(Part::Codes)[at], 4);
        int64_t end = std::min<int64_t>(128 * (block + 1), inputs);
        int32_t expected = r < outputs ? sumOf(e, r, 128 * block, end) : 0;
        ASSERT_EQ(sum, expected) << e << " " << r << " " << block;
      }
}

TEST(Padding, BlockSumsSkipIt) {
  std::mt19937 random(29);
  Stored source(plainSpec("awq", CodeType::U4, 100, 1, 20, -1));
  randomize(source, random);
  Stored target(plainSpec("cpu_blocked", CodeType::U4, 256, 1, 32, -1));
  ASSERT_EQ(moveAll(source, target), "");
  expectBlockSums(
      target, 100, 20, [&](int64_t e, int64_t r, int64_t k, int64_t end) {
        // AWQ, word by word: column r in field A[r mod 8], here of 24.
        static const int64_t kField[] = {0, 4, 1, 5, 2, 6, 3, 7};
        int64_t in = r / 8 * 8 + kField[r % 8];
        int32_t sum = 0;
        for (; k < end; ++k) {
          sum += field(source.at(Part::Codes), 4, (e * 100 + k) * 24 + in);
          sum -= field(source.at(Part::Zeros), 4, e * 24 + in);
        }
        return sum;
      });
}

TEST(Padding, BlockSumsTakeTheZeroPointThatCodesImply) {
  std::mt19937 random(31);
  for (auto [width, height] : {std::pair(256, 32), std::pair(100, 20)}) {
    int64_t inputs = width, outputs = height;
    Stored source(plainSpec("otf", CodeType::U4B8, inputs, 1, outputs, -1));
    randomize(source, random);
    Stored target(plainSpec("cpu_blocked", CodeType::U4, 256, 1, 32, -1));
    ASSERT_EQ(moveAll(source, target), "");
    expectBlockSums(target, inputs, outputs,
                    [&](int64_t e, int64_t r, int64_t k, int64_t end) {
                      int32_t sum = 0;
                      for (; k < end; ++k)
                        sum += field(source.at(Part::Codes), 4,
                                     (e * outputs + r) * inputs + k) -
                               8;
                      return sum;
                    });
  }
}

//===----------------------------------------------------------------------===//
// Short groups and words
//===----------------------------------------------------------------------===//

// 704 inputs in groups of 128: six groups, the last of 64 inputs.
TEST(ShortGroups, SixGroupsOf704Inputs) {
  std::mt19937 random(31);
  for (const char *layout : {"gptq", "compressed_tensors"}) {
    Stored source(plainSpec(layout, CodeType::U4B8, 704, 1, 16, 128));
    EXPECT_EQ(source.spec.groups(), 6);
    randomize(source, random);
    bool rows = std::strcmp(layout, "gptq") != 0;
    std::vector<float> values = valuesOf(source);
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t r = 0; r < 16; ++r)
        for (int64_t k = 0; k < 704; ++k) {
          int64_t code = rows ? (e * 16 + r) * 704 + k
                              : e * 704 * 16 + (k / 8 * 16 + r) * 8 + k % 8;
          int64_t scale =
              rows ? (e * 16 + r) * 6 + k / 128 : (e * 6 + k / 128) * 16 + r;
          float expected =
              (static_cast<float>(field(source.at(Part::Codes), 4, code)) - 8) *
              loadFloat(ScalarType::F16, source.at(Part::Scales).data(), scale);
          ASSERT_EQ(values[(e * 16 + r) * 704 + k], expected) << layout;
        }
    // Groups halved, as backends of one group size for both weights do.
    Stored finer(plainSpec("otf", CodeType::U4B8, 704, 1, 16, 64));
    ASSERT_EQ(moveAll(source, finer), "");
    EXPECT_EQ(valuesOf(finer), values);
    Stored marlin(plainSpec("marlin", CodeType::U4B8, 768, 1, 64, 128));
    ASSERT_EQ(moveAll(source, marlin), "");
    expectPadded(marlin, source);
  }
}

// Zero points of a number of rows that fills no word, in every layout that
// rounds up, by their own.
TEST(ZeroPoints, RowsThatFillNoWord) {
  for (int64_t rows : {1, 5, 7, 9, 15, 20})
    for (CodeType code : {CodeType::U4, CodeType::U8})
      for (const char *from : {"gptq", "awq", "compressed_tensors", "otf"})
        for (const char *to : {"gptq", "awq", "compressed_tensors", "otf"}) {
          SCOPED_TRACE(std::string(from) + " to " + to);
          Stored source(plainSpec(from, code, 64, 1, rows, 32));
          Stored target(plainSpec(to, code, 64, 1, rows, 32));
          std::mt19937 random(37);
          randomize(source, random);
          // The rest of the last word is no one's.
          Stored clean(source.spec);
          ASSERT_EQ(moveAll(source, clean), "");
          ASSERT_EQ(moveAll(clean, target), "");
          Stored back(source.spec, 0xff);
          ASSERT_EQ(moveAll(target, back), "");
          EXPECT_EQ(back.parts, clean.parts);
          EXPECT_EQ(valuesOf(target), valuesOf(source));
        }
}

// Column c has the zero point (7 c + 3) mod 16; Marlin interleaves eight.
TEST(ZeroPoints, InterleavedForMarlin) {
  static const int64_t kField[] = {0, 4, 1, 5, 2, 6, 3, 7};
  static const int64_t kInterleave[] = {0, 2, 4, 6, 1, 3, 5, 7};
  Stored awq(plainSpec("awq", CodeType::U4, 256, 1, 128, 128));
  std::mt19937 random(41);
  randomize(awq, random);
  for (int64_t g = 0; g < 4; ++g)
    for (int64_t c = 0; c < 128; ++c)
      setField(awq.at(Part::Zeros), 4, g * 128 + c / 8 * 8 + kField[c % 8],
               (7 * c + 3) % 16);
  Stored marlin(plainSpec("marlin", CodeType::U4, 256, 1, 128, 128));
  ASSERT_EQ(moveAll(awq, marlin), "");
  for (int64_t g = 0; g < 4; ++g)
    for (int64_t word = 0; word < 16; ++word)
      for (int64_t p = 0; p < 8; ++p) {
        int64_t n = 64 * (word / 8) + 8 * kInterleave[p] + word % 8;
        ASSERT_EQ(field(marlin.at(Part::Zeros), 4, g * 128 + 8 * word + p),
                  uint32_t((7 * n + 3) % 16));
      }
  EXPECT_EQ(valuesOf(marlin), valuesOf(awq));
  Stored back(awq.spec);
  ASSERT_EQ(moveAll(marlin, back), "");
  EXPECT_EQ(back.at(Part::Zeros), awq.at(Part::Zeros));
}

//===----------------------------------------------------------------------===//
// Past 31 bits
//===----------------------------------------------------------------------===//

TEST(Addresses, LastNibbleOfManyExperts) {
  for (const char *layout :
       {"gptq", "awq", "compressed_tensors", "marlin", "humming_wgmma", "xpu"})
    for (int64_t experts : {512, 513}) {
      WeightSpec spec = plainSpec(layout, CodeType::U4B8, 4096, 2, 1024, 128);
      spec.experts = experts;
      Result<std::vector<StoredPart>> parts = storageOf(spec);
      ASSERT_TRUE(parts) << parts.message();
      AddressMap map = *codeAddresses(spec);
      EXPECT_EQ(parts->front().bytes(), experts * (int64_t(1) << 22));
      int64_t last =
          (experts - 1) * map.size() + map.input(4095) + map.row(2047);
      EXPECT_EQ(last / 2, experts * (int64_t(1) << 22) - 1) << layout;
      EXPECT_EQ(last % 2, 1) << layout;
    }
}

//===----------------------------------------------------------------------===//
// Bad input
//===----------------------------------------------------------------------===//

// Small specs that storageOf takes must survive a move, whatever else they
// say: enumerators and groups out of range, extents of 0, parts that do not go
// with the code.
TEST(BadInput, MovesOfFuzzedSpecs) {
  std::mt19937_64 random(43);
  const int64_t extents[] = {0, 0, 1, 2, 8, 31, 32, 64, 96, 128, 256};
  const int64_t groups[] = {-1, -1, 0, -7, 1, 16, 32, 64, 128, INT64_MAX};
  auto pick = [&](const auto &from) {
    return from[random() % std::size(from)];
  };
  auto make = [&] {
    WeightSpec spec;
    spec.layout = findLayout(int64_t(random() % 15));
    spec.code = CodeType(random() % 9);
    spec.element = ScalarType(random() % 4);
    spec.scale = random() % 4 ? ScalarType::F16 : ScalarType(random() % 11);
    if (spec.layout->scaleType)
      spec.scale = *spec.layout->scaleType;
    spec.zeros = ZeroPoints(random() % 4);
    spec.actOrder = random() % 2 ? ActOrder::None : ActOrder(random() % 4);
    spec.group = pick(groups);
    spec.experts = int64_t(random() % 3);
    spec.input = pick(extents);
    spec.halves = 1 + int64_t(random() % 2);
    spec.output = pick(extents);
    return spec;
  };
  int moved = 0, refused = 0;
  for (int round = 0; round < 60000; ++round) {
    WeightSpec from = make(), to = random() % 4 ? from : make();
    if (random() % 2)
      to.layout = findLayout(int64_t(random() % 15));
    if (checkMove(from, to)) {
      ++refused;
      WeightBuffers none;
      EXPECT_TRUE(moveWeight(from, none, to, none, {0, from.experts}));
      continue;
    }
    Stored source(from), target(to);
    moved += moveAll(source, target).empty();
    Bytes bias(4 * 2 * 512), out(4 * 2 * 512 * 256);
    (void)moveBias(from, bias.data(), to, bias.data() + 2 * 512 * 2,
                   ScalarType::F16)
        .message;
    (void)dequantizeWeight(from, source.buffers(), ScalarType::F32,
                           random() % 2, out.data(), {0, from.experts})
        .message;
  }
  EXPECT_GT(moved, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(BadInput, NullLayoutsAndTypes) {
  WeightSpec none, good = plainSpec("gptq", CodeType::U4B8, 64, 1, 64, 32);
  Stored stored(good);
  float out[1] = {};
  EXPECT_EQ(storageOf(none).message(), "expected a layout");
  EXPECT_TRUE(checkMove(none, good));
  EXPECT_TRUE(checkMove(good, none));
  EXPECT_TRUE(moveBias(none, out, good, out, ScalarType::F32));
  EXPECT_TRUE(moveBias(good, out, good, out, ScalarType(77)));
  EXPECT_TRUE(moveBias(good, nullptr, good, out, ScalarType::F32));
  EXPECT_TRUE(quantizeWeight(ScalarType::F32, out, none, {}, {0, 1}));
  EXPECT_TRUE(
      quantizeWeight(ScalarType::I8, out, good, stored.buffers(), {0, 1}));
  EXPECT_TRUE(dequantizeWeight(none, {}, ScalarType::F32, false, out, {0, 1}));
  EXPECT_TRUE(dequantizeWeight(good, stored.buffers(), ScalarType::I8, false,
                               out, {0, 1}));
  EXPECT_TRUE(dequantizeWeight(good, {}, ScalarType::F32, false, out, {0, 1}));
  EXPECT_TRUE(moveWeight(good, stored.buffers(), good, {}, {0, 1}));
}

/// Edits of a good spec and the message that each must bring.
TEST(Messages, NameNumbersAndRemedy) {
  struct {
    const char *layout;
    CodeType code;
    int64_t input, output, group;
    const char *message;
  } const cases[] = {
      {"marlin", CodeType::U4B8, 100, 64, -1,
       "expected input (100) to be a multiple of 16 for layout marlin; pad to "
       "112"},
      {"marlin", CodeType::U4B8, 128, 96, -1,
       "expected output (96) to be a multiple of 64 for layout marlin; pad to "
       "128"},
      {"marlin_a8", CodeType::U4B8, 80, 64, -1,
       "expected input (80) to be a multiple of 32 for layout marlin_a8; pad "
       "to 96"},
      {"marlin", CodeType::U4B8, 192, 64, 128,
       "expected input (192) to be a multiple of 128 for layout marlin; pad to "
       "256"},
      {"xpu", CodeType::U4B8, 33, 64, -1,
       "expected input (33) to be a multiple of 2 for layout xpu; pad to 34"},
      {"gptq", CodeType::U4B8, 64, 64, 0,
       "expected a positive group or -1, got 0"},
      {"gptq", CodeType::U4B8, 64, 64, -7,
       "expected a positive group or -1, got -7"},
      {"gptq", CodeType::U4B8, -1, 64, 32,
       "expected input in 0..2147483648, got -1"},
      {"cpu_blocked", CodeType::U8, 128, 64, 32,
       "expected codes of a width that the layout holds (4), got bits = 8 for "
       "layout cpu_blocked"},
      {"trtllm", CodeType::S4, 256, 128, 64,
       "expected group 32, got 64 for layout trtllm"},
      {"trtllm", CodeType::S4, 256, 64, 32,
       "expected rows (64) to be a multiple of 128 for layout trtllm; pad to "
       "128"},
      {"dense", CodeType::U4B8, 64, 64, 32,
       "expected codes of a width that the layout holds (floats alone), got "
       "bits = 4 for layout dense"},
      {"marlin", CodeType::Dense, 64, 64, -1,
       "expected codes, got dense elements for layout marlin; use layout "
       "dense"},
  };
  for (const auto &c : cases)
    EXPECT_EQ(
        storageOf(plainSpec(c.layout, c.code, c.input, 1, c.output, c.group))
            .message(),
        c.message);
}

TEST(Messages, OfMoves) {
  WeightSpec a = plainSpec("gptq", CodeType::U4, 128, 1, 64, 32), b = a;
  auto edit = [&](auto change) {
    b = a;
    change(b);
    return checkMove(a, b).message;
  };
  EXPECT_EQ(edit([](WeightSpec &s) { s.group = 64; }),
            "expected the new group (64) to divide the old one (32)");
  EXPECT_EQ(edit([](WeightSpec &s) { s.output = 32; }),
            "expected no extent to shrink, got input 128 to 128 and output 64 "
            "to 32");
  EXPECT_EQ(edit([](WeightSpec &s) { s.experts = 3; }),
            "expected equal experts and halves, got 2 x 1 and 3 x 1");
  EXPECT_EQ(edit([](WeightSpec &s) { s.code = CodeType::U8; }),
            "expected codes of one width, got 4 and 8 bits");
  EXPECT_EQ(edit([](WeightSpec &s) {
              s.code = CodeType::U4B8;
              s.zeros = ZeroPoints::None;
            }),
            "expected zero points to be kept, got zeros = plain and none");
  EXPECT_EQ(edit([](WeightSpec &s) { s.actOrder = ActOrder::Sorted; }),
            "expected act_order to stay or to go from index to sorted, got "
            "none and sorted");
}

} // namespace
