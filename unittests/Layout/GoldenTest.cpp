//===- GoldenTest.cpp - Layouts against recorded vectors ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every checkpoint packing of a golden file is moved to every backend layout
// in it and back, and compared byte by byte.
//
//===----------------------------------------------------------------------===//

#include "Layout/Move.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

using namespace wna16;

namespace {

using Bytes = std::vector<uint8_t>;

struct GoldenFile {
  std::map<std::string, Bytes> tensors;
  std::map<std::string, std::string> meta;

  explicit GoldenFile(const std::filesystem::path &path) {
    std::ifstream in(path, std::ios::binary);
    uint64_t length = 0;
    in.read(reinterpret_cast<char *>(&length), 8);
    std::string header(length, ' ');
    in.read(header.data(), static_cast<std::streamsize>(length));
    nlohmann::json json = nlohmann::json::parse(header);
    for (auto &[name, value] : json.items()) {
      if (name == "__metadata__") {
        meta = value.get<std::map<std::string, std::string>>();
        continue;
      }
      auto begin = value["data_offsets"][0].get<uint64_t>();
      auto end = value["data_offsets"][1].get<uint64_t>();
      Bytes data(end - begin);
      in.seekg(static_cast<std::streamoff>(8 + length + begin));
      in.read(reinterpret_cast<char *>(data.data()),
              static_cast<std::streamsize>(data.size()));
      tensors[name] = std::move(data);
    }
    EXPECT_TRUE(in.good()) << path;
  }

  bool has(const std::string &name) const { return tensors.count(name) != 0; }
  const Bytes &get(const std::string &name) const {
    static const Bytes none;
    auto found = tensors.find(name);
    if (found == tensors.end()) {
      ADD_FAILURE() << "missing tensor " << name;
      return none;
    }
    return found->second;
  }
  int64_t number(const char *key) const { return std::stoll(meta.at(key)); }
  bool flag(const char *key) const { return meta.at(key) == "True"; }
};

/// A stored weight that owns its parts.
struct Stored {
  WeightSpec spec;
  std::array<Bytes, kNumParts> parts;

  /// Parts of the right size, filled with a pattern that must be overwritten.
  explicit Stored(const WeightSpec &of) : spec(of) {
    Result<std::vector<StoredPart>> storage = storageOf(spec);
    EXPECT_TRUE(storage) << storage.message();
    if (storage)
      for (const StoredPart &part : *storage)
        at(part.part).assign(static_cast<size_t>(part.bytes()), 0xa5);
  }
  Bytes &at(Part part) { return parts[static_cast<size_t>(part)]; }
  void set(Part part, const Bytes &value) {
    EXPECT_EQ(at(part).size(), value.size()) << name(part);
    at(part) = value;
  }
  WeightBuffers buffers() {
    WeightBuffers all;
    for (size_t i = 0; i < parts.size(); ++i)
      all.part[i] = parts[i].empty() ? nullptr : parts[i].data();
    return all;
  }
};

/// [E, rows, columns] of 2-byte elements to [E, columns, rows].
Bytes transposed(const Bytes &in, int64_t experts, int64_t rows,
                 int64_t columns) {
  Bytes out(in.size());
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(&out[2 * ((e * columns + c) * rows + r)],
                    &in[2 * ((e * rows + r) * columns + c)], 2);
  return out;
}

struct Backend {
  const char *prefix;
  const char *layout;
  CodeType code;    ///< U4: that of the source
  ScalarType scale; ///< as the files hold it
  bool sides;       ///< the files hold scales, zero points and bias
};

constexpr Backend kBackends[] = {
    {"marlin", "marlin", CodeType::U4, ScalarType::F16, true},
    {"marlin_a8", "marlin_a8", CodeType::U4, ScalarType::F16, false},
    {"marlin_fp8", "marlin_a8", CodeType::U4FP8, ScalarType::F16, false},
    {"humming_mma", "humming_mma", CodeType::U4, ScalarType::F16, false},
    {"humming_wgmma", "humming_wgmma", CodeType::U4, ScalarType::F16, false},
    {"cpu", "cpu_blocked", CodeType::U4, ScalarType::F32, true},
    {"xpu", "xpu", CodeType::U4, ScalarType::F16, true},
    {"otf", "otf", CodeType::U4, ScalarType::F16, true},
    {"trtllm", "trtllm", CodeType::S4, ScalarType::BF16, true}};

class Golden {
public:
  Golden(const GoldenFile &file, std::string weight)
      : file(file), weight(std::move(weight)) {}

  void run() {
    for (const char *packing : {"gptq_v1", "gptq_v2", "awq", "ct"})
      if (file.has(codesName(packing))) {
        SCOPED_TRACE(std::string(packing) + "." + weight);
        runFrom(packing);
      }
  }
  int comparisons = 0;

private:
  static std::string prefixOf(const std::string &packing) {
    return packing.substr(0, 4) == "gptq" ? "gptq" : packing;
  }
  std::string codesName(const std::string &packing) const {
    return prefixOf(packing) + "." + weight;
  }

  WeightSpec logical(const std::string &packing) const {
    WeightSpec spec;
    bool gated = weight == "w13", zeros = file.flag("zero_points");
    bool wide = file.number("bits") == 8;
    spec.code = zeros  ? (wide ? CodeType::U8 : CodeType::U4)
                : wide ? CodeType::U8B128
                       : CodeType::U4B8;
    if (zeros)
      spec.zeros =
          packing == "gptq_v1" ? ZeroPoints::MinusOne : ZeroPoints::Plain;
    if (file.flag("act_order"))
      spec.actOrder = ActOrder::Index;
    spec.group = file.number("group");
    spec.layout =
        findLayout(packing == "ct" ? "compressed_tensors" : prefixOf(packing));
    spec.experts = file.number("E");
    spec.input = file.number(gated ? "K" : "N");
    spec.halves = gated ? 2 : 1;
    spec.output = file.number(gated ? "N" : "K");
    return spec;
  }

  Stored checkpoint(const std::string &packing) const {
    Stored source(logical(packing));
    const WeightSpec &spec = source.spec;
    source.set(Part::Codes, file.get(codesName(packing)));
    const Bytes &scales = file.get("logical." + weight + "_scale");
    source.set(Part::Scales, packing == "ct"
                                 ? transposed(scales, spec.experts,
                                              spec.groups(), spec.rows())
                                 : scales);
    if (spec.zeros != ZeroPoints::None)
      source.set(Part::Zeros, file.get(packing + "." + weight + "_zero"));
    if (spec.actOrder == ActOrder::Index)
      source.set(Part::GroupIndex, file.get("logical." + weight + "_g_idx"));
    return source;
  }

  void runFrom(const std::string &packing) {
    Stored source = checkpoint(packing);
    for (const char *other : {"gptq_v1", "gptq_v2", "awq", "ct"})
      if (file.has(codesName(other))) {
        Stored target(logical(other));
        move(source, target);
        compareAll(target, checkpoint(other), other);
      }
    for (const Backend &backend : kBackends)
      if (file.has(std::string(backend.prefix) + "." + weight))
        runTo(source, backend);
    dense(source);
    bias(source);
  }

  void move(Stored &source, Stored &target) {
    Failure bad = moveWeight(source.spec, source.buffers(), target.spec,
                             target.buffers(), {0, source.spec.experts});
    EXPECT_FALSE(bad) << bad.message;
  }

  void compare(const Bytes &got, const Bytes &expected,
               const std::string &what) {
    ++comparisons;
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(int(got[i]), int(expected[i])) << what << " byte " << i;
  }

  void compareAll(Stored &got, Stored expected, const std::string &what) {
    for (size_t i = 0; i < got.parts.size(); ++i)
      compare(got.parts[i], expected.parts[i],
              what + " " + std::string(name(Part(i))));
  }

  WeightSpec targetSpec(const Stored &source, const Backend &backend) const {
    WeightSpec spec = source.spec;
    spec.layout = findLayout(backend.layout);
    spec.scale = backend.scale;
    if (backend.code != CodeType::U4)
      spec.code = backend.code;
    std::string layout = backend.layout;
    if (layout.substr(0, 6) == "marlin")
      (weight == "w13" ? spec.output : spec.input) = file.number("padded_N");
    if (spec.zeros != ZeroPoints::None)
      spec.zeros = ZeroPoints::Plain;
    if (layout == "cpu_blocked") {
      spec.code = CodeType::U4;
      spec.zeros = ZeroPoints::Plain;
    }
    if (spec.actOrder == ActOrder::Index)
      spec.actOrder = ActOrder::Sorted;
    return spec;
  }

  void runTo(Stored &source, const Backend &backend) {
    std::string base = std::string(backend.prefix) + "." + weight;
    SCOPED_TRACE(base);
    Stored target(targetSpec(source, backend));
    move(source, target);
    compare(target.at(Part::Codes), file.get(base), base);
    if (target.spec.actOrder == ActOrder::Sorted)
      compare(target.at(Part::Permutation), file.get(base + "_sort"), "sort");
    if (backend.sides) {
      if (backend.prefix != std::string("otf"))
        compare(target.at(Part::Scales), file.get(base + "_scale"), "scales");
      if (target.spec.zeros != ZeroPoints::None)
        compare(target.at(Part::Zeros), file.get(base + "_zero"), "zeros");
    }
    back(source, target);
  }

  /// Back, where padding and sorting did not lose what the source said.
  void back(Stored &source, Stored &target) {
    bool whole = target.spec.input == source.spec.input &&
                 target.spec.output == source.spec.output;
    bool added = source.spec.zeros == ZeroPoints::None &&
                 target.spec.zeros != ZeroPoints::None;
    if (!whole || added || source.spec.actOrder == ActOrder::Index)
      return;
    Stored again(source.spec);
    move(target, again);
    // bf16 scales do not hold what f16 scales said.
    if (target.spec.scale == ScalarType::BF16)
      again.at(Part::Scales) = source.at(Part::Scales);
    compareAll(again, source, "back");
  }

  void dense(Stored &source) {
    const Bytes &expected = file.get("dense_bf16." + weight);
    Bytes got(expected.size(), 0xa5);
    ASSERT_EQ(static_cast<int64_t>(expected.size()),
              2 * source.spec.experts * source.spec.rows() * source.spec.input);
    Failure bad =
        dequantizeWeight(source.spec, source.buffers(), ScalarType::BF16, true,
                         got.data(), {0, source.spec.experts});
    ASSERT_FALSE(bad) << bad.message;
    compare(got, expected, "dense_bf16");
  }

  void bias(Stored &source) {
    std::string expected = "marlin." + weight + "_bias";
    if (!file.flag("bias"))
      return;
    Backend marlin = kBackends[0];
    WeightSpec target = targetSpec(source, marlin);
    Bytes got(file.get(expected).size(), 0xa5);
    Failure bad =
        moveBias(source.spec, file.get("logical." + weight + "_bias").data(),
                 target, got.data(), ScalarType::F16);
    ASSERT_FALSE(bad) << bad.message;
    compare(got, file.get(expected), "bias");
  }

  const GoldenFile &file;
  std::string weight;
};

TEST(Golden, EveryFile) {
  const char *data = std::getenv("WNA16_TEST_DATA");
  std::filesystem::path folder =
      std::filesystem::path(data ? data : WNA16_TEST_INPUTS) / "golden";
  ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
  int files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors")
      continue;
    ++files;
    SCOPED_TRACE(entry.path().filename().string());
    GoldenFile file(entry.path());
    int compared = 0;
    for (const char *weight : {"w13", "w2"}) {
      Golden golden(file, weight);
      golden.run();
      EXPECT_GT(golden.comparisons, 0) << weight;
      compared += golden.comparisons;
    }
    std::cout << entry.path().filename().string() << ": " << compared
              << " comparisons\n";
  }
  ASSERT_GT(files, 0) << folder;
}

} // namespace
