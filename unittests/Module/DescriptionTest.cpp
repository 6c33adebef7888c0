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

const std::string kVersions = std::to_string(WNA16_ABI_OLDEST) + " to " +
                              std::to_string(WNA16_ABI_VERSION);

/// A description in which ABI stands for the version of this build.
Result<ModuleDescription> parse(std::string text) {
  for (size_t at; (at = text.find("ABI")) != std::string::npos;)
    text.replace(at, 3, std::to_string(WNA16_ABI_VERSION));
  return parseDescription(text);
}

/// A description of one function with one argument.
std::string withArgument(const std::string &argument) {
  return R"({"abi": ABI, "functions": [{"name": "f", "arguments": [)" +
         argument + "]}]}";
}

TEST(DescriptionTest, ReadsRolesTypesAndShapes) {
  auto module = parse(R"({"abi": ABI, "target": "cpu", "source": "f00",
    "rank": 1, "size": 2, "functions": [
    {"name": "prepare_w", "prepares": "forward", "experts": 2,
     "arguments": []},
    {"name": "forward", "backend": "marlin", "workspace": "workspace_size", "arguments": [
      {"role": "input", "name": "x", "type": "bf16", "shape": [-1, 8]},
      {"role": "prepared", "name": "w", "type": "u8", "shape": [2, 3],
       "encoding": "tensor<2x3xf32>"},
      {"role": "parameter", "pattern": "a.{b,c}", "concat": 1, "type": "i32",
       "shape": [4]},
      {"role": "output", "name": "out", "type": "f32", "shape": []}]}]})");
  ASSERT_TRUE(module) << module.message();
  EXPECT_EQ(module->target, "cpu");
  EXPECT_EQ(module->source, "f00");
  EXPECT_EQ(module->rank, 1);
  EXPECT_EQ(module->size, 2);
  ASSERT_EQ(module->functions.size(), 2u);
  EXPECT_EQ(module->functions[0].prepares, "forward");
  EXPECT_EQ(module->functions[0].experts, 2);
  const ModuleFunction &forward = module->functions[1];
  EXPECT_EQ(forward.prepares, "");
  EXPECT_EQ(forward.experts, 0);
  EXPECT_EQ(forward.backend, "marlin");
  EXPECT_EQ(forward.workspace, "workspace_size");
  ASSERT_EQ(forward.arguments.size(), 4u);
  EXPECT_EQ(forward.arguments[0].role, Role::Input);
  EXPECT_EQ(forward.arguments[0].type, ScalarType::BF16);
  EXPECT_EQ(forward.arguments[0].shapeFor(5), (std::vector<int64_t>{5, 8}));
  EXPECT_EQ(forward.arguments[1].role, Role::Prepared);
  EXPECT_EQ(forward.arguments[1].encoding, "tensor<2x3xf32>");
  EXPECT_EQ(forward.arguments[2].pattern, "a.{b,c}");
  EXPECT_EQ(forward.arguments[2].concat, 1);
  EXPECT_EQ(forward.arguments[3].role, Role::Output);
}

TEST(DescriptionTest, TakesOlderVersionsThatTheRuntimeTakes) {
  for (int version = WNA16_ABI_OLDEST - 1; version <= WNA16_ABI_VERSION + 1;
       ++version) {
    auto module = parse(R"({"abi": )" + std::to_string(version) +
                        R"(, "functions": []})");
    const bool isTaken =
        version >= WNA16_ABI_OLDEST && version <= WNA16_ABI_VERSION;
    EXPECT_EQ(bool(module), isTaken) << version;
    if (module)
      continue;
    EXPECT_NE(module.message().find("expected " + kVersions + ", got " +
                                    std::to_string(version)),
              std::string::npos)
        << module.message();
  }
}

TEST(DescriptionTest, RefusesWhatIsMalformed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected an object"},
      {"[]", "expected an object"},
      {R"({"functions": []})", "abi: expected " + kVersions + ", got none"},
      {R"({"abi": 99, "functions": []})", ", got 99"},
      {R"({"abi": ABI})", "functions: expected an array"},
      {R"({"abi": ABI, "functions": [3]})", "functions: expected objects"},
      {R"({"abi": ABI, "functions": [{"name": "f"}]})", "\"arguments\""},
      {R"({"abi": ABI, "functions": [{"name": "f", "arguments": []},
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
      {R"({"abi": ABI, "target": 3, "functions": []})",
       "expected \"target\" to be a string"},
      {R"({"abi": ABI, "rank": 2, "size": 2, "functions": []})",
       "expected a rank below 2, got 2"},
      {R"({"abi": ABI, "functions": [{"name": "f", "experts": 0,
           "arguments": []}]})",
       "\"experts\" to be an integer of 1 or more"},
      {R"({"abi": ABI, "functions": [{"name": "p", "prepares": "f",
           "arguments": []}]})",
       "function p: expected \"prepares\" to name a function that runs on "
       "tokens, got f"},
      {R"({"abi": ABI, "functions": [{"name": "p", "prepares": "p",
           "arguments": []}]})",
       "that runs on tokens, got p"},
  };
  for (const auto &[text, message] : cases) {
    auto functions = parse(text);
    ASSERT_FALSE(functions) << text;
    EXPECT_NE(functions.message().find(message), std::string::npos)
        << functions.message() << "\nlacks: " << message;
  }
}

} // namespace
