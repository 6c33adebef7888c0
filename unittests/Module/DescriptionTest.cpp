//===- DescriptionTest.cpp - Descriptions of compiled modules -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include <gtest/gtest.h>

using namespace wna16;

using Role = ModuleArgument::Role;

namespace {

/// A description of one function with one argument.
std::string withArgument(const std::string &argument) {
  return R"({"abi": 1, "functions": [{"name": "f", "arguments": [)" + argument +
         "]}]}";
}

TEST(DescriptionTest, ReadsRolesTypesAndShapes) {
  auto functions = parseDescription(R"({"abi": 1, "functions": [
    {"name": "forward", "workspace": "workspace_size", "arguments": [
      {"role": "input", "name": "x", "type": "bf16", "shape": [-1, 8]},
      {"role": "prepared", "name": "w", "type": "u8", "shape": [2, 3]},
      {"role": "parameter", "pattern": "a.{b,c}", "concat": 1, "type": "i32",
       "shape": [4]},
      {"role": "output", "name": "out", "type": "f32", "shape": []}]}]})");
  ASSERT_TRUE(functions) << functions.message();
  ASSERT_EQ(functions->size(), 1u);
  const ModuleFunction &forward = (*functions)[0];
  EXPECT_EQ(forward.workspace, "workspace_size");
  ASSERT_EQ(forward.arguments.size(), 4u);
  EXPECT_EQ(forward.arguments[0].role, Role::Input);
  EXPECT_EQ(forward.arguments[0].type, ScalarType::BF16);
  EXPECT_EQ(forward.arguments[0].shapeFor(5), (std::vector<int64_t>{5, 8}));
  EXPECT_EQ(forward.arguments[1].role, Role::Prepared);
  EXPECT_EQ(forward.arguments[2].pattern, "a.{b,c}");
  EXPECT_EQ(forward.arguments[2].concat, 1);
  EXPECT_EQ(forward.arguments[3].role, Role::Output);
}

TEST(DescriptionTest, RefusesWhatIsMalformed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected an object"},
      {"[]", "expected an object"},
      {R"({"functions": []})", "abi: expected 1, got none"},
      {R"({"abi": 2, "functions": []})", "abi: expected 1, got 2"},
      {R"({"abi": 1})", "functions: expected an array"},
      {R"({"abi": 1, "functions": [3]})", "functions: expected objects"},
      {R"({"abi": 1, "functions": [{"name": "f"}]})", "\"arguments\""},
      {R"({"abi": 1, "functions": [{"name": "f", "arguments": []},
           {"name": "f", "arguments": []}]})",
       "function f: appears twice"},
      {withArgument("7"), "function f, argument 0: expected an object"},
      {withArgument(R"({"type": "f32", "shape": []})"), "no \"role\""},
      {withArgument(R"({"role": "guest", "type": "f32", "shape": []})"),
       "unknown role \"guest\""},
      {withArgument(R"({"role": "input", "name": "x", "type": "f8",
                        "shape": []})"),
       "unknown type \"f8\""},
      {withArgument(R"({"role": "input", "type": "f32", "shape": []})"),
       "no \"name\""},
      {withArgument(R"({"role": "parameter", "type": "f32", "shape": []})"),
       "no \"pattern\""},
      {withArgument(R"({"role": "input", "name": "x", "type": "f32",
                        "shape": [-2]})"),
       "extents of -1 or more, got -2"},
      {withArgument(R"({"role": "input", "name": "x", "type": "f32",
                        "shape": [1.5]})"),
       "expected integer extents"},
      {withArgument(R"({"role": "input", "name": "x", "type": "f32",
                        "shape": [4611686018427387904, 2]})"),
       "does not fit 63 bits"},
      {std::string(100000, '['), "nested deeper than 16"},
  };
  for (const auto &[text, message] : cases) {
    auto functions = parseDescription(text);
    ASSERT_FALSE(functions) << text;
    EXPECT_NE(functions.message().find(message), std::string::npos)
        << functions.message() << "\nlacks: " << message;
  }
}

} // namespace
