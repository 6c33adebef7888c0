//===- GoldenFile.h - Files of recorded layouts -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_LAYOUT_GOLDENFILE_H
#define WNA16_UNITTESTS_LAYOUT_GOLDENFILE_H

#include "TestSupport.h"

#include <filesystem>
#include <map>
#include <set>

namespace wna16::test {

/// One golden file. What is missing, of another shape or never used is a test
/// failure.
class GoldenFile {
public:
  explicit GoldenFile(const std::filesystem::path &path);

  bool has(const std::string &name) const { return tensors.count(name) != 0; }
  const Bytes &get(const std::string &name);
  /// The same, with the element type and shape of a stored part.
  const Bytes &get(const std::string &name, const StoredPart &part);
  int64_t number(const char *key) const { return std::stoll(meta.at(key)); }
  bool flag(const char *key) const { return meta.at(key) == "True"; }

  void expectAllUsed() const;

private:
  struct Tensor {
    std::string type;
    std::vector<int64_t> shape;
    Bytes data;
  };
  void expectForms(const std::string &stem) const;

  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> meta;
  std::set<std::string> used;
};

/// The files of $WNA16_TEST_DATA/golden, or the one kept with the tests.
std::vector<std::filesystem::path> goldenFiles();

} // namespace wna16::test

#endif // WNA16_UNITTESTS_LAYOUT_GOLDENFILE_H
