//===- SharedDataTest.cpp - Checkpoints written by the quantisers ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// $WNA16_TEST_DATA/checkpoints holds what the quantisers' own code packed,
// beside the digests of what it means; test/Inputs/checkpoints has a small one
// of the kind, so that this always runs.
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Sha256.h"
#include "TestUtils.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace wna16;
using namespace wna16::test;
namespace fs = std::filesystem;

namespace {

/// Directories with a reference.json.
std::vector<fs::path> directoriesIn(const fs::path &root) {
  std::vector<fs::path> result;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(root, error))
    if (fs::exists(entry.path() / "reference.json"))
      result.push_back(entry.path());
  return result;
}

/// Digests of one weight's halves, experts one after the other.
int64_t compareDigests(const Checkpoint &checkpoint, const WeightSource &weight,
                       const nlohmann::json &digests, int64_t layer,
                       const std::vector<const char *> &halves) {
  std::vector<float> values = dequantised(checkpoint, weight);
  const WeightSpec &spec = weight.spec;
  int64_t block = spec.output * spec.input;
  int64_t compared = 0;
  for (int64_t expert = 0; expert < spec.experts; ++expert)
    for (int64_t half = 0; half < spec.halves; ++half) {
      std::string key = "layers." + std::to_string(layer) + ".experts." +
                        std::to_string(expert);
      const float *data =
          &values[size_t((expert * spec.halves + half) * block)];
      EXPECT_EQ(sha256(data, block * 4),
                digests.at(key).at(halves[size_t(half)]).get<std::string>())
          << key << "." << halves[size_t(half)];
      ++compared;
    }
  return compared;
}

int64_t compareDirectory(const fs::path &directory) {
  SCOPED_TRACE(directory.string());
  OpenOptions options;
  options.audit = true;
  Result<Checkpoint> checkpoint = Checkpoint::open(directory.string(), options);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
  if (!checkpoint)
    return 0;
  for (const Finding &finding : checkpoint->findings())
    EXPECT_FALSE(finding.fault) << finding.tensor << ": " << finding.text;
  std::ifstream stream(directory / "reference.json");
  nlohmann::json reference = nlohmann::json::parse(stream);
  EXPECT_EQ(checkpoint->layers().size(), reference["moe_layers"].size());
  int64_t compared = 0;
  for (const MoELayer &layer : checkpoint->layers()) {
    EXPECT_EQ(layer.router.topK, reference["top_k"].get<int64_t>());
    compared += compareDigests(*checkpoint, layer.experts.w13,
                               reference["dequantised_sha256"], layer.index,
                               {"w1", "w3"});
    compared +=
        compareDigests(*checkpoint, layer.experts.w2,
                       reference["dequantised_sha256"], layer.index, {"w2"});
    if (layer.shared) {
      dequantised(*checkpoint, layer.shared->w13);
      dequantised(*checkpoint, layer.shared->w2);
    }
    dequantised(*checkpoint, layer.router.weight);
  }
  return compared;
}

TEST(Data, Sha256) {
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9c"
                              "b410ff61f20015ad");
  EXPECT_EQ(sha256("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca4"
                           "95991b7852b855");
}

TEST(Data, CheckpointOfTheRepository) {
  std::vector<fs::path> all =
      directoriesIn(fs::path(WNA16_TEST_INPUTS) / "checkpoints");
  ASSERT_FALSE(all.empty());
  for (const fs::path &directory : all)
    EXPECT_GT(compareDirectory(directory), 0);
}

TEST(Data, CheckpointsOfTheQuantisers) {
  const char *root = std::getenv("WNA16_TEST_DATA");
  if (!root)
    GTEST_SKIP() << "WNA16_TEST_DATA is not set";
  std::vector<fs::path> all = directoriesIn(fs::path(root) / "checkpoints");
  EXPECT_GE(all.size(), 6u);
  int64_t compared = 0;
  for (const fs::path &directory : all)
    compared += compareDirectory(directory);
  std::cout << all.size() << " checkpoints, " << compared
            << " weights equal their digests\n";
  EXPECT_GT(compared, 0);
}

TEST(Data, BothSpellingsOfOneConfiguration) {
  const char *root = std::getenv("WNA16_TEST_DATA");
  if (!root)
    GTEST_SKIP() << "WNA16_TEST_DATA is not set";
  int64_t tried = 0;
  for (const fs::path &directory :
       directoriesIn(fs::path(root) / "checkpoints")) {
    if (!fs::exists(directory / "config.transformers4.json"))
      continue;
    TemporaryDirectory copy;
    for (const auto &entry : fs::directory_iterator(directory))
      fs::create_symlink(entry.path(),
                         fs::path(copy.path()) / entry.path().filename());
    fs::remove(fs::path(copy.path()) / "config.json");
    fs::rename(fs::path(copy.path()) / "config.transformers4.json",
               fs::path(copy.path()) / "config.json");
    Result<Checkpoint> old = Checkpoint::open(copy.path());
    Result<Checkpoint> now = Checkpoint::open(directory.string());
    ASSERT_TRUE(old) << old.message();
    ASSERT_TRUE(now) << now.message();
    ASSERT_EQ(old->layers().size(), now->layers().size());
    EXPECT_EQ(old->dtype(), now->dtype());
    for (size_t i = 0; i < old->layers().size(); ++i) {
      const MoELayer &a = old->layers()[i], &b = now->layers()[i];
      EXPECT_EQ(a.experts.w13.spec, b.experts.w13.spec);
      EXPECT_EQ(a.experts.w2.spec, b.experts.w2.spec);
      EXPECT_EQ(a.router.topK, b.router.topK);
      EXPECT_EQ(a.router.renormalize, b.router.renormalize);
    }
    ++tried;
  }
  EXPECT_GE(tried, 2);
}

} // namespace
