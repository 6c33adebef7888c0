//===- Checkpoints.cpp - Checkpoints and their references -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"

#include "Layout/Scalar.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace wna16;
using namespace wna16test;
namespace fs = std::filesystem;

std::vector<std::string> wna16test::checkpointDirectories() {
  std::vector<std::string> roots = {WNA16_TEST_INPUTS};
  if (const char *data = std::getenv("WNA16_TEST_DATA"))
    roots.push_back(data);
  std::vector<std::string> found;
  for (const std::string &root : roots) {
    std::error_code error;
    for (const auto &entry :
         fs::directory_iterator(fs::path(root) / "checkpoints", error))
      if (fs::exists(entry.path() / "reference.json"))
        found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

ReferenceFiles wna16test::openReference(const std::string &directory) {
  ReferenceFiles files;
  auto tensors = SafeTensors::open(directory + "/reference.safetensors");
  EXPECT_TRUE(tensors) << tensors.message();
  if (tensors)
    files.tensors = std::move(*tensors);
  std::ifstream stream(directory + "/reference.json");
  files.errors = nlohmann::json::parse(stream)
                     .at("lp_vs_f64_relative_error")
                     .get<std::map<std::string, double>>();
  return files;
}

static double valueAt(ScalarType type, const uint8_t *data, int64_t i) {
  if (type == ScalarType::I32) {
    int32_t value;
    std::memcpy(&value, data + 4 * i, 4);
    return value;
  }
  if (type == ScalarType::F64) {
    double value;
    std::memcpy(&value, data + 8 * i, 8);
    return value;
  }
  return loadFloat(type, data, i);
}

std::vector<double> wna16test::valuesOf(ScalarType type, const uint8_t *data,
                                        int64_t elements) {
  std::vector<double> values;
  for (int64_t i = 0; i < elements; ++i)
    values.push_back(valueAt(type, data, i));
  return values;
}

std::vector<double> wna16test::valuesOf(const TensorView &view) {
  return valuesOf(view.type, view.data, view.bytes / sizeOf(view.type));
}
