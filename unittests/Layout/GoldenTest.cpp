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

  /// What the file records of a form, and formulas for the side tensors that it
  /// does not.
  Stored recorded(const Form &form, const WeightSpec &spec) {
    Stored stored(spec);
    Result<std::vector<StoredPart>> parts = storageOf(spec);
    for (const StoredPart &part : *parts)
      if (std::string from = recordedName(form, part.part); !from.empty())
        stored.at(part.part) = file.get(from, part);
      else if (part.part == Part::Scales)
        stored.at(part.part) = permutedScales(form, spec);
      else
        stored.at(part.part) = permutedZeros(spec);
    return stored;
  }

  /// Calls fn(e, g, row, column) for all that a side tensor [E, G, columns]
  /// holds of the logical weight: tiles of 64 columns transposed as 8 x 8 or,
  /// of 32, permuted as a lane of Marlin's reads them.
  template <typename Fn>
  void forPermuted(const WeightSpec &spec, bool transposed, Fn fn) const {
    for (int64_t e = 0; e < logical.experts; ++e)
      for (int64_t g = 0; g < logical.groups(); ++g)
        for (int64_t column = 0; column < spec.rows(); ++column) {
          int64_t j = column % 32, row = column - j;
          row += 2 * (j / 8) + j % 2 + 8 * (j % 8 / 2);
          if (transposed)
            row = column / 64 * 64 + column % 8 * 8 + column % 64 / 8;
          if (int64_t n = row % spec.output; n < logical.output)
            fn(e, g, row / spec.output * logical.output + n, column);
        }
  }

  /// f16 scales, permuted as kernels read them or as in rows [E, R, G].
  Bytes permutedScales(const Form &form, const WeightSpec &spec) {
    const Bytes &scales = file.get(tensor("logical", "_scale"));
    int64_t groups = spec.groups(), rows = spec.rows();
    Bytes out(2 * spec.experts * groups * rows);
    auto copy = [&](int64_t e, int64_t g, int64_t row, int64_t at) {
      uint16_t scale;
      int64_t from = (e * logical.groups() + g) * logical.rows() + row;
      std::memcpy(&scale, &scales[2 * from], 2);
      if (spec.code == CodeType::U4FP8)
        scale += 9 << 10; // times 512
      std::memcpy(&out[2 * at], &scale, 2);
    };
    std::string layout = form.layout;
    bool permuted =
        layout.rfind("marlin", 0) == 0 || layout.rfind("humming", 0) == 0;
    if (permuted) {
      forPermuted(spec, groups > 1 && layout != "marlin_a8",
                  [&](int64_t e, int64_t g, int64_t row, int64_t column) {
                    copy(e, g, row, (e * groups + g) * rows + column);
                  });
      return out;
    }
    bool rowMajor = layout == "compressed_tensors" || layout == "otf";
    for (int64_t e = 0; e < spec.experts; ++e)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t r = 0; r < rows; ++r)
          copy(e, g, r,
               rowMajor ? (e * rows + r) * groups + g
                        : (e * groups + g) * rows + r);
    return out;
  }

  /// Zero points of 8-bit activations' and Humming's layouts.
  Bytes permutedZeros(const WeightSpec &spec) {
    const Bytes &zeros = file.get(tensor("logical", "_zero"));
    int64_t groups = spec.groups(), rows = spec.rows();
    Bytes out(spec.experts * groups * rows * spec.bits() / 8);
    forPermuted(spec, true,
                [&](int64_t e, int64_t g, int64_t row, int64_t column) {
                  int64_t from = (e * logical.groups() + g) * logical.rows();
                  setField(out, spec.bits(), (e * groups + g) * rows + column,
                           zeros[from + row]);
                });
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

  /// The logical codes, in the order of `sort` if it is not null, or zero
  /// points, packed by `fieldOf`.
  Bytes packed(const Form &form, Part part, const uint8_t *sort = nullptr) {
    const char *suffix = part == Part::Zeros ? "_zero" : "";
    const Bytes &values = file.get(tensor("logical", suffix));
    int64_t rows = logical.rows();
    int64_t inputs = part == Part::Zeros ? logical.groups() : logical.input;
    uint32_t most = (1u << logical.bits()) - 1;
    Bytes packed(logical.experts * inputs * rows * logical.bits() / 8);
    for (int64_t e = 0; e < logical.experts; ++e)
      for (int64_t k = 0; k < inputs; ++k) {
        int64_t old = inputOf(sort, e, k);
        for (int64_t r = 0; r < rows; ++r) {
          uint32_t value = values[(e * inputs + old) * rows + r];
          if (part == Part::Zeros && form.minusOne)
            value = (value - 1) & most;
          setField(packed, logical.bits(),
                   e * inputs * rows + fieldOf(form, part, inputs, k, r),
                   value);
        }
      }
    return packed;
  }

  void comparePacking(const Form &form, const Stored &stored) {
    compare(packed(form, Part::Codes), stored.at(Part::Codes), "codes");
    if (logical.zeros != ZeroPoints::None)
      compare(packed(form, Part::Zeros), stored.at(Part::Zeros), "zeros");
  }

  void compareParts(const Stored &got, const Stored &expected,
                    const char *where) {
    for (size_t i = 0; i < got.parts.size(); ++i) {
      SCOPED_TRACE(where);
      compare(got.parts[i], expected.parts[i], ::wna16::name(Part(i)).data());
    }
  }

  /// Forth into the recorded bytes, and back out of them.
  void compareMove(const Form &from, Stored &source, const Form &to) {
    Stored target(specOf(to));
    ASSERT_EQ(engine::move(source, target), "");
    Stored expected = recorded(to, target.spec);
    compareParts(target, expected, "forth");
    compareBack(from, source, expected);
  }

  /// Normal f16 numbers with the fraction of bf16 ones, to nearest even.
  static Bytes roundedToBF16(Bytes scales) {
    for (size_t i = 0; i < scales.size(); i += 2) {
      uint16_t bits;
      std::memcpy(&bits, &scales[i], 2);
      bits = (bits + 3 + (bits >> 3) % 2) & ~7;
      std::memcpy(&scales[i], &bits, 2);
    }
    return scales;
  }

  /// Without the padding and with the source's scales as the backend's type
  /// rounds them, but sorted inputs stay sorted and zero points that were
  /// implied stay written out.
  void compareBack(const Form &from, const Stored &source, Stored &target) {
    WeightSpec spec = source.spec;
    spec.actOrder = target.spec.actOrder;
    bool writesZeros =
        spec.zeros == ZeroPoints::None && target.spec.zeros != ZeroPoints::None;
    if (writesZeros) {
      spec.code = CodeType::U4;
      spec.zeros = ZeroPoints::Plain;
    }
    Stored back(spec), expected(spec);
    ASSERT_EQ(engine::move(target, back, window()), "");
    const Bytes &sort = target.at(Part::Permutation);
    expected.at(Part::Codes) =
        packed(from, Part::Codes, sort.empty() ? nullptr : sort.data());
    expected.at(Part::Scales) = target.spec.scale == ScalarType::BF16
                                    ? roundedToBF16(source.at(Part::Scales))
                                    : source.at(Part::Scales);
    if (writesZeros)
      expected.at(Part::Zeros).assign(back.at(Part::Zeros).size(), 0x88);
    else
      expected.at(Part::Zeros) = source.at(Part::Zeros);
    if (spec.actOrder == ActOrder::Index)
      expected.at(Part::GroupIndex) = source.at(Part::GroupIndex);
    expected.at(Part::Permutation) = sort;
    compareParts(back, expected, "back");
  }

  /// What is no padding.
  Window window() const { return {0, logical.input, 0, logical.output}; }

  /// The input that position k of an expert holds.
  int64_t inputOf(const uint8_t *sort, int64_t e, int64_t k) const {
    if (!sort)
      return k;
    int32_t input;
    std::memcpy(&input, sort + 4 * (e * logical.input + k), 4);
    return input;
  }

  void compareValues(const Form &form) {
    Stored stored = recorded(form, specOf(form));
    const WeightSpec &spec = stored.spec;
    const Bytes &dense = file.get(tensor("dense_bf16"));
    ASSERT_EQ(dense.size(),
              size_t(2 * logical.experts * logical.rows() * logical.input));
    Bytes got(size_t(2 * spec.experts * spec.rows() * spec.input), 0xa5);
    ASSERT_EQ(engine::dequantize(stored, got), "");
    const Bytes &sort = stored.at(Part::Permutation);
    Bytes expected(got.size());
    std::vector<bool> inside(got.size() / 2);
    for (int64_t e = 0; e < spec.experts; ++e)
      for (int64_t r = 0; r < logical.rows(); ++r)
        for (int64_t k = 0; k < logical.input; ++k) {
          int64_t old = inputOf(sort.empty() ? nullptr : sort.data(), e, k);
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
    Bytes back(plain.size(), 0xa5);
    ASSERT_EQ(engine::moveBias(target, expected, source, back, window()), "");
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
