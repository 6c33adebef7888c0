//===- GoldenTest.cpp - Layouts against recorded vectors ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The logical codes of a golden file, packed by formulas of the test's own,
// equal its checkpoint packings; every packing moves to every other and to
// every backend layout of the file and back; each dequantises to the recorded
// values. All bit for bit, and every tensor of a file is used.
//
//===----------------------------------------------------------------------===//

#include "GoldenEngine.h"
#include "GoldenFile.h"

#include <cstring>
#include <iostream>

using namespace wna16;
using namespace wna16::test;

namespace {

/// How a form is stored. Code and zero points are those of a symmetric or an
/// asymmetric weight unless the form has its own.
struct Form {
  const char *prefix; ///< of codes, scales, bias and sort indices
  const char *zeros;  ///< prefix of zero points
  const char *layout;
  std::optional<CodeType> code;
  ScalarType scale;
  bool checkpoint;
  bool minusOne;
};

constexpr Form kForms[] = {
    {"gptq", "gptq_v1", "gptq", {}, ScalarType::F16, true, true},
    {"gptq", "gptq_v2", "gptq", {}, ScalarType::F16, true, false},
    {"awq", "awq", "awq", {}, ScalarType::F16, true, false},
    {"ct", "ct", "compressed_tensors", {}, ScalarType::F16, true, false},
    {"marlin", "marlin", "marlin", {}, ScalarType::F16, false, false},
    {"marlin_a8", "", "marlin_a8", {}, ScalarType::F16, false, false},
    {"marlin_fp8", "", "marlin_a8", CodeType::U4FP8, ScalarType::F16, false,
     false},
    {"humming_mma", "", "humming_mma", {}, ScalarType::F16, false, false},
    {"humming_wgmma", "", "humming_wgmma", {}, ScalarType::F16, false, false},
    {"cpu", "cpu", "cpu_blocked", CodeType::U4, ScalarType::F32, false, false},
    {"xpu", "", "xpu", {}, ScalarType::F16, false, false},
    {"otf", "otf", "otf", {}, ScalarType::F16, false, false},
    {"trtllm", "", "trtllm", CodeType::S4, ScalarType::BF16, false, false},
};

/// One projection of a file.
class Projection {
public:
  Projection(GoldenFile &file, std::string weight)
      : file(file), weight(std::move(weight)) {
    bool gated = this->weight == "w13", wide = file.number("bits") == 8;
    bool zeros = file.flag("zero_points");
    logical.code = zeros  ? (wide ? CodeType::U8 : CodeType::U4)
                   : wide ? CodeType::U8B128
                          : CodeType::U4B8;
    logical.zeros = zeros ? ZeroPoints::Plain : ZeroPoints::None;
    logical.actOrder =
        file.flag("act_order") ? ActOrder::Index : ActOrder::None;
    logical.group = file.number("group");
    logical.experts = file.number("E");
    logical.input = file.number(gated ? "K" : "N");
    logical.halves = gated ? 2 : 1;
    logical.output = file.number(gated ? "N" : "K");
  }

  void run() {
    for (const Form &from : kForms)
      if (from.checkpoint && present(from)) {
        SCOPED_TRACE(name("from", from));
        Stored source = recorded(from, specOf(from));
        comparePacking(from, source);
        for (const Form &to : kForms)
          if (present(to)) {
            SCOPED_TRACE(name("to", to));
            compareMove(from, source, to);
          }
      }
    for (const Form &form : kForms)
      if (present(form)) {
        SCOPED_TRACE(name("values", form));
        compareValues(form);
        compareBias(form);
      }
  }

  int comparisons = 0;

private:
  std::string name(const char *what, const Form &form) const {
    return std::string(what) + " " + form.prefix + "/" + form.zeros + "." +
           weight;
  }
  std::string tensor(const char *prefix, const char *suffix = "") const {
    return std::string(prefix) + "." + weight + suffix;
  }

  bool present(const Form &form) const {
    if (!file.has(tensor(form.prefix)))
      return false;
    // Symmetric GPTQ has no zero points, hence one convention.
    return logical.zeros != ZeroPoints::None || !form.minusOne;
  }

  WeightSpec specOf(const Form &form) const {
    WeightSpec spec = logical;
    spec.layout = findLayout(form.layout);
    spec.scale = form.scale;
    spec.code = form.code.value_or(spec.code);
    if (spec.code == CodeType::U4)
      spec.zeros = form.minusOne ? ZeroPoints::MinusOne : ZeroPoints::Plain;
    if (std::strncmp(form.prefix, "marlin", 6) == 0)
      (weight == "w13" ? spec.output : spec.input) = file.number("padded_N");
    if (!form.checkpoint && spec.actOrder == ActOrder::Index)
      spec.actOrder = ActOrder::Sorted;
    return spec;
  }

  /// The tensor that records a part; empty where the file has none.
  std::string recordedName(const Form &form, Part part) const {
    std::string side;
    switch (part) {
    case Part::Codes:
      return tensor(form.prefix);
    case Part::Scales:
      side = tensor(form.prefix, "_scale");
      break;
    case Part::Zeros:
      side = tensor(form.zeros, "_zero");
      break;
    case Part::GroupIndex:
      return tensor("logical", "_g_idx");
    case Part::Permutation:
      return tensor(form.prefix, "_sort");
    case Part::GlobalScale:
      break;
    }
    return file.has(side) ? side : "";
  }

  /// What the file records of a form; for the parts that it does not, what a
  /// move of a checkpoint packing writes.
  Stored recorded(const Form &form, const WeightSpec &spec) {
    Stored stored(spec);
    if (!form.checkpoint) {
      const Form &origin = kForms[1];
      Stored source = recorded(origin, specOf(origin));
      EXPECT_EQ(engine::move(source, stored), "");
    }
    Result<std::vector<StoredPart>> parts = storageOf(spec);
    for (const StoredPart &part : *parts)
      if (std::string from = recordedName(form, part.part); !from.empty())
        stored.at(part.part) = file.get(from, part);
      else if (form.checkpoint && part.part == Part::Scales)
        stored.at(part.part) = checkpointScales(form);
    return stored;
  }

  /// f16 [E, G, R] of the logical weight, for row-major forms [E, R, G].
  Bytes checkpointScales(const Form &form) const {
    const Bytes &scales = file.get(tensor("logical", "_scale"));
    if (std::strcmp(form.prefix, "ct") != 0)
      return scales;
    Bytes out(scales.size());
    int64_t groups = logical.groups(), rows = logical.rows();
    for (int64_t e = 0; e < logical.experts; ++e)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(&out[2 * ((e * rows + r) * groups + g)],
                      &scales[2 * ((e * groups + g) * rows + r)], 2);
    return out;
  }

  void compare(const Bytes &got, const Bytes &expected, const char *what) {
    ++comparisons;
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(int(got[i]), int(expected[i])) << what << " byte " << i;
  }

  /// The field of a checkpoint packing that holds code (k, r) or, with groups
  /// for inputs, zero point (g, r), counted from its expert.
  int64_t fieldOf(const Form &form, Part part, int64_t inputs, int64_t k,
                  int64_t r) const {
    static constexpr int64_t kAwq4[] = {0, 4, 1, 5, 2, 6, 3, 7};
    static constexpr int64_t kAwq8[] = {0, 2, 1, 3};
    int64_t rows = logical.rows(), pf = 32 / logical.bits();
    std::string prefix = form.prefix;
    if (prefix == "awq") {
      int64_t in = logical.bits() == 4 ? kAwq4[r % 8] : kAwq8[r % 4];
      return k * rows + r / pf * pf + in;
    }
    if (prefix == "ct") // Zero points are packed along the rows.
      return part == Part::Codes ? r * inputs + k
                                 : (r / pf * inputs + k) * pf + r % pf;
    return part == Part::Codes ? (k / pf * rows + r) * pf + k % pf
                               : k * rows + r;
  }

  /// The logical tensor packed by `fieldOf` is the checkpoint's.
  void comparePacked(const Form &form, const Stored &stored, Part part,
                     const char *suffix, int64_t inputs) {
    const Bytes &values = file.get(tensor("logical", suffix));
    int64_t rows = logical.rows();
    uint32_t most = (1u << logical.bits()) - 1;
    Bytes packed(stored.at(part).size());
    ASSERT_EQ(values.size(), packed.size() * 8 / logical.bits());
    for (int64_t e = 0; e < logical.experts; ++e)
      for (int64_t k = 0; k < inputs; ++k)
        for (int64_t r = 0; r < rows; ++r) {
          uint32_t value = values[(e * inputs + k) * rows + r];
          if (part == Part::Zeros && form.minusOne)
            value = (value - 1) & most;
          setField(packed, logical.bits(),
                   e * inputs * rows + fieldOf(form, part, inputs, k, r),
                   value);
        }
    compare(packed, stored.at(part), "logical");
  }

  void comparePacking(const Form &form, const Stored &stored) {
    comparePacked(form, stored, Part::Codes, "", logical.input);
    if (logical.zeros != ZeroPoints::None)
      comparePacked(form, stored, Part::Zeros, "_zero", logical.groups());
  }

  /// Forth into the recorded bytes, and back out of them.
  void compareMove(const Form &from, Stored &source, const Form &to) {
    Stored target(specOf(to));
    ASSERT_EQ(engine::move(source, target), "");
    Stored expected = recorded(to, target.spec);
    for (size_t i = 0; i < target.parts.size(); ++i)
      compare(target.parts[i], expected.parts[i],
              ::wna16::name(Part(i)).data());
    compareBack(from, source, expected, to);
  }

  /// Back into the checkpoint's layout, at the extents, in the order and with
  /// the zero points that the backend has.
  void compareBack(const Form &from, Stored &source, Stored &target,
                   const Form &to) {
    WeightSpec spec = target.spec;
    spec.layout = source.spec.layout;
    spec.scale = to.scale;
    if (spec.zeros == ZeroPoints::None)
      spec.code = logical.code;
    else
      spec.code = logical.bits() == 4 ? CodeType::U4 : CodeType::U8;
    if (spec.zeros != ZeroPoints::None && from.minusOne)
      spec.zeros = ZeroPoints::MinusOne;
    Stored back(spec);
    ASSERT_EQ(engine::move(target, back), "");
    if (spec == source.spec) {
      for (size_t i = 0; i < back.parts.size(); ++i)
        compare(back.parts[i], source.parts[i], ::wna16::name(Part(i)).data());
      return;
    }
    // Padding of rewritten codes is their 0, which is the code 8.
    bool rewritten = to.code == CodeType::U4FP8;
    compareGrown(from, source, back, rewritten ? 8 : 0);
  }

  /// The input that position k of an expert holds.
  static int64_t inputOf(const Stored &stored, int64_t e, int64_t k) {
    if (stored.spec.actOrder != ActOrder::Sorted)
      return k;
    int32_t input;
    std::memcpy(&input,
                &stored.at(Part::Permutation)[4 * (e * stored.spec.input + k)],
                4);
    return input;
  }

  /// `back` is `source` with padding, sorted inputs or implied zero points
  /// written out, element by element.
  void compareGrown(const Form &form, const Stored &source, Stored &back,
                    uint32_t padding) {
    ++comparisons;
    const WeightSpec &grown = back.spec;
    const Bytes &codes = file.get(tensor("logical"));
    int bits = logical.bits();
    AddressMap to = *codeAddresses(grown);
    for (int64_t e = 0; e < grown.experts; ++e)
      for (int64_t r = 0; r < grown.rows(); ++r)
        for (int64_t k = 0; k < grown.input; ++k) {
          int64_t n = r % grown.output, old = inputOf(back, e, k);
          bool inside = n < logical.output && k < logical.input;
          int64_t row = r / grown.output * logical.output + n;
          uint32_t expected =
              inside ? codes[(e * logical.input + old) * logical.rows() + row]
                     : padding;
          ASSERT_EQ(field(back.at(Part::Codes), bits,
                          e * to.size() + to.input(k) + to.row(r)),
                    expected)
              << form.prefix << " expert " << e << " row " << r << " input "
              << k;
        }
    if (source.spec.zeros != ZeroPoints::None)
      return;
    for (uint8_t byte : back.at(Part::Zeros))
      ASSERT_EQ(byte, form.minusOne ? 0x77 : 0x88);
  }

  void compareValues(const Form &form) {
    Stored stored = recorded(form, specOf(form));
    const WeightSpec &spec = stored.spec;
    const Bytes &dense = file.get(tensor("dense_bf16"));
    ASSERT_EQ(dense.size(),
              size_t(2 * logical.experts * logical.rows() * logical.input));
    Bytes got(size_t(2 * spec.experts * spec.rows() * spec.input), 0xa5);
    ASSERT_EQ(engine::dequantize(stored, got), "");
    Bytes expected(got.size());
    std::vector<bool> inside(got.size() / 2);
    for (int64_t e = 0; e < spec.experts; ++e)
      for (int64_t r = 0; r < logical.rows(); ++r)
        for (int64_t k = 0; k < logical.input; ++k) {
          int64_t old = inputOf(stored, e, k);
          int64_t row = r / logical.output * spec.output + r % logical.output;
          int64_t at = (e * spec.rows() + row) * spec.input + k;
          inside[at] = true;
          std::memcpy(
              &expected[2 * at],
              &dense[2 * ((e * logical.rows() + r) * logical.input + old)], 2);
        }
    // Padding is a zero of either sign.
    for (size_t i = 0; i < got.size(); i += 2)
      if (!inside[i / 2] && !got[i] && got[i + 1] == 0x80)
        got[i + 1] = 0;
    compare(got, expected, "dense_bf16");
  }

  void compareBias(const Form &form) {
    std::string recordedBias = tensor(form.prefix, "_bias");
    if (!file.has(recordedBias))
      return;
    WeightSpec source = specOf(kForms[1]), target = specOf(form);
    const Bytes &plain = file.get(tensor("logical", "_bias"));
    const Bytes &expected = file.get(recordedBias);
    Bytes got(expected.size(), 0xa5);
    ASSERT_EQ(engine::moveBias(source, plain, target, got), "");
    compare(got, expected, "bias");
    if (source.output != target.output)
      return;
    Bytes back(plain.size(), 0xa5);
    ASSERT_EQ(engine::moveBias(target, expected, source, back), "");
    compare(back, plain, "bias back");
  }

  GoldenFile &file;
  std::string weight;
  WeightSpec logical;
};

TEST(Golden, EveryFile) {
  for (const std::filesystem::path &path : goldenFiles()) {
    std::string name = path.filename().string();
    SCOPED_TRACE(name);
    GoldenFile file(path);
    int compared = 0;
    for (const char *weight : {"w13", "w2"}) {
      Projection projection(file, weight);
      projection.run();
      compared += projection.comparisons;
    }
    EXPECT_GT(compared, 0);
    file.expectAllUsed();
    std::cout << name << ": " << compared << " comparisons\n";
  }
}

} // namespace
