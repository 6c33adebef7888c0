//===- GoldenFile.cpp - Files of recorded layouts -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GoldenFile.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace wna16;
using namespace wna16::test;

/// The forms that each file holds.
static const std::map<std::string, std::vector<const char *>> kContents = {
    {"u4_channel_zp",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "humming_mma",
      "humming_wgmma", "otf"}},
    {"u4_g64_zp_bias",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "marlin_fp8", "humming_mma",
      "humming_wgmma", "cpu", "otf"}},
    {"u4b8_g128_g_ge_n",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "humming_mma",
      "humming_wgmma", "cpu", "xpu"}},
    {"u4b8_g32_act_order", {"gptq", "ct", "marlin"}},
    {"u4b8_g32_mxint4",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "humming_mma",
      "humming_wgmma", "cpu", "xpu", "trtllm"}},
    {"u4b8_g32_pad",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "marlin_fp8", "cpu", "xpu"}},
    {"u8b128_channel",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "humming_mma",
      "humming_wgmma"}},
    {"u8b128_g128",
     {"gptq", "awq", "ct", "marlin", "marlin_a8", "humming_mma",
      "humming_wgmma"}},
};

GoldenFile::GoldenFile(const std::filesystem::path &path) {
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
    Tensor &tensor = tensors[name];
    tensor.type = value["dtype"].get<std::string>();
    tensor.shape = value["shape"].get<std::vector<int64_t>>();
    tensor.data.resize(end - begin);
    in.seekg(static_cast<std::streamoff>(8 + length + begin));
    in.read(reinterpret_cast<char *>(tensor.data.data()),
            static_cast<std::streamsize>(tensor.data.size()));
  }
  EXPECT_TRUE(in.good()) << path;
  expectForms(path.stem().string());
}

/// Known files hold what they should; of each form both weights and the side
/// tensors that go with it.
void GoldenFile::expectForms(const std::string &stem) const {
  auto expect = [&](const std::string &name) {
    EXPECT_TRUE(has(name)) << "missing tensor " << name;
  };
  auto known = kContents.find(stem);
  if (known == kContents.end())
    return;
  bool zeros = flag("zero_points"), bias = flag("bias");
  for (std::string weight : {".w13", ".w2"}) {
    for (const char *form : known->second) {
      std::string prefix = form;
      expect(prefix + weight);
      bool sides = prefix == "marlin" || prefix == "cpu";
      if (sides || prefix == "xpu" || prefix == "trtllm")
        expect(prefix + weight + "_scale");
      if (prefix == "cpu" || (zeros && (prefix == "marlin" || prefix == "awq" ||
                                        prefix == "ct" || prefix == "otf")))
        expect(prefix + weight + "_zero");
      if (prefix == "marlin" && bias)
        expect("marlin" + weight + "_bias");
      if (prefix == "marlin" && flag("act_order"))
        expect("marlin" + weight + "_sort");
    }
    if (zeros)
      for (const char *version : {"gptq_v1", "gptq_v2"})
        expect(version + weight + "_zero");
  }
}

const Bytes &GoldenFile::get(const std::string &name) {
  static const Bytes none;
  auto found = tensors.find(name);
  if (found == tensors.end()) {
    ADD_FAILURE() << "missing tensor " << name;
    return none;
  }
  used.insert(name);
  return found->second.data;
}

const Bytes &GoldenFile::get(const std::string &name, const StoredPart &part) {
  const Bytes &data = get(name);
  if (has(name)) {
    const Tensor &tensor = tensors.at(name);
    std::string type(wna16::name(part.type));
    std::transform(type.begin(), type.end(), type.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    EXPECT_EQ(tensor.type, type) << name;
    EXPECT_EQ(tensor.shape, part.shape) << name;
  }
  return data;
}

void GoldenFile::expectAllUsed() const {
  for (const auto &[name, tensor] : tensors)
    EXPECT_TRUE(used.count(name)) << "unknown tensor " << name;
}

std::vector<std::filesystem::path> wna16::test::goldenFiles() {
  const char *data = std::getenv("WNA16_TEST_DATA");
  std::filesystem::path folder =
      std::filesystem::path(data ? data : WNA16_TEST_INPUTS) / "golden";
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << "no golden files in " << folder;
  for (const auto &[stem, forms] : kContents)
    if (data) {
      EXPECT_TRUE(std::filesystem::exists(folder / (stem + ".safetensors")))
          << "missing file " << stem;
    }
  return files;
}
