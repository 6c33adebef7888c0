//===- Weights.cpp - What functions of a module take unchanged ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <algorithm>
#include <set>

using namespace wna16;

using Role = ModuleArgument::Role;

/// The module that all tensors are below which a function takes: "model.layers.
/// 3.mlp", with the dot.
static std::string commonPrefix(const ModuleDescription &description,
                                const ModuleFunction &forward) {
  std::optional<std::string> prefix;
  for (const ModuleFunction &function : description.functions) {
    if (&function != &forward && function.prepares != forward.name)
      continue;
    for (const ModuleArgument &argument : function.arguments) {
      if (argument.role != Role::Parameter)
        continue;
      std::string pattern = argument.pattern;
      pattern.resize(std::min(pattern.size(), pattern.find('{')));
      if (!prefix)
        prefix = pattern;
      auto [end, ignored] = std::mismatch(prefix->begin(), prefix->end(),
                                          pattern.begin(), pattern.end());
      prefix->erase(end, prefix->end());
    }
  }
  size_t dot = prefix ? prefix->rfind('.') : std::string::npos;
  return dot == std::string::npos ? "" : prefix->substr(0, dot + 1);
}

Result<ModuleWeights> ModuleWeights::of(const ModuleDescription &description) {
  ModuleWeights weights;
  std::set<std::string> taken;
  for (const ModuleFunction &function : description.functions) {
    if (!function.prepares.empty())
      continue;
    std::vector<size_t> &used = weights.uses[function.name];
    std::string prefix = commonPrefix(description, function);
    for (const ModuleArgument &argument : function.arguments) {
      if (!isWeight(argument))
        continue;
      bool named = argument.role == Role::Prepared;
      std::string name = named ? prefix + argument.name : argument.pattern;
      while (!taken.insert(name).second)
        name = function.name + "." + name;
      std::optional<int64_t> bytes = bytesOf(argument.type, argument.shape);
      if (!bytes)
        return fail(name + ": expected a static shape of less than 2^63 " +
                    "bytes, got " + shown(argument));
      used.push_back(weights.list.size());
      weights.list.push_back({name, argument, *bytes, nullptr});
    }
  }
  return weights;
}
