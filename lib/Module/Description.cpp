//===- Description.cpp - What a compiled module says about itself ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include "Layout/TensorNames.h"

#include <nlohmann/json.hpp>

#include <set>

using namespace wna16;

namespace {

using Json = nlohmann::json;
using Role = ModuleArgument::Role;

constexpr std::pair<const char *, Role> kRoles[] = {
    {"input", Role::Input},
    {"output", Role::Output},
    {"prepared", Role::Prepared},
    {"parameter", Role::Parameter},
};

Failure malformed(const std::string &where, const std::string &what) {
  return fail("module description: " + where + ": " + what);
}

/// Reads a string member; absent ones stay empty unless they are required.
Failure readString(const Json &object, const char *key,
                   const std::string &where, bool required, std::string &out) {
  auto member = object.find(key);
  if (member == object.end())
    return required ? malformed(where, std::string("no \"") + key + "\"")
                    : ok();
  if (!member->is_string())
    return malformed(where,
                     std::string("expected \"") + key + "\" to be a string");
  out = member->get<std::string>();
  return ok();
}

/// Reads an integer of at least `least`, where there is one.
Failure readInteger(const Json &object, const char *key,
                    const std::string &where, int64_t least, int64_t &out) {
  auto member = object.find(key);
  if (member == object.end())
    return ok();
  if (!member->is_number_integer() || member->get<int64_t>() < least)
    return malformed(where, std::string("expected \"") + key +
                                "\" to be an integer of " +
                                std::to_string(least) + " or more");
  out = member->get<int64_t>();
  return ok();
}

Failure readShape(const Json &object, const std::string &where,
                  ModuleArgument &argument) {
  auto shape = object.find("shape");
  if (shape == object.end() || !shape->is_array())
    return malformed(where, "expected \"shape\" to be an array");
  int64_t bytes = sizeOf(argument.type);
  for (const Json &extent : *shape) {
    if (!extent.is_number_integer())
      return malformed(where, "expected integer extents");
    int64_t value = extent.get<int64_t>();
    if (value < -1)
      return malformed(where, "expected extents of -1 or more, got " +
                                  std::to_string(value));
    if (value >= 0 && __builtin_mul_overflow(bytes, value, &bytes))
      return malformed(where, "the size does not fit 63 bits");
    argument.shape.push_back(value);
  }
  return ok();
}

Failure readArgument(const Json &object, const std::string &where,
                     ModuleArgument &argument) {
  if (!object.is_object())
    return malformed(where, "expected an object");
  std::string role, type;
  if (Failure failure = readString(object, "role", where, true, role))
    return failure;
  if (Failure failure = readString(object, "type", where, true, type))
    return failure;
  auto known = std::find_if(std::begin(kRoles), std::end(kRoles),
                            [&](auto &entry) { return entry.first == role; });
  if (known == std::end(kRoles))
    return malformed(where, "unknown role \"" + role + "\"");
  argument.role = known->second;
  std::optional<ScalarType> scalar = parseScalarType(type);
  if (!scalar)
    return malformed(where, "unknown type \"" + type + "\"");
  argument.type = *scalar;
  bool isParameter = argument.role == Role::Parameter;
  if (Failure failure =
          readString(object, "name", where, !isParameter, argument.name))
    return failure;
  if (Failure failure =
          readString(object, "pattern", where, isParameter, argument.pattern))
    return failure;
  if (isParameter)
    if (Result<TensorNames> names = TensorNames::parse(argument.pattern);
        !names)
      return malformed(where, names.message());
  if (Failure failure =
          readString(object, "encoding", where, false, argument.encoding))
    return failure;
  if (Failure failure =
          readInteger(object, "concat", where, 0, argument.concat))
    return failure;
  return readShape(object, where, argument);
}

Failure readFunction(const Json &object, ModuleFunction &function) {
  if (!object.is_object())
    return malformed("functions", "expected objects");
  if (Failure failure =
          readString(object, "name", "function", true, function.name))
    return failure;
  std::string where = "function " + function.name;
  std::pair<const char *, std::string *> texts[] = {
      {"workspace", &function.workspace},
      {"prepares", &function.prepares},
      {"backend", &function.backend}};
  for (auto [key, text] : texts)
    if (Failure failure = readString(object, key, where, false, *text))
      return failure;
  if (Failure failure =
          readInteger(object, "experts", where, 1, function.experts))
    return failure;
  auto arguments = object.find("arguments");
  if (arguments == object.end() || !arguments->is_array())
    return malformed(where, "expected \"arguments\" to be an array");
  for (const Json &argument : *arguments) {
    std::string place =
        where + ", argument " + std::to_string(function.arguments.size());
    function.arguments.emplace_back();
    if (Failure failure =
            readArgument(argument, place, function.arguments.back()))
      return failure;
  }
  return ok();
}

/// The parser recurses; a description needs four levels.
bool isTooDeep(const std::string &text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      ++depth;
    else if (!quoted && (c == '}' || c == ']'))
      --depth;
    if (depth > 16)
      return true;
  }
  return false;
}

/// Which share of the weights it is.
Failure readShare(const Json &json, ModuleDescription &module) {
  if (Failure failure = readInteger(json, "size", "module", 1, module.size))
    return failure;
  if (Failure failure = readInteger(json, "rank", "module", 0, module.rank))
    return failure;
  if (module.rank >= module.size)
    return malformed("module", "expected a rank below " +
                                   std::to_string(module.size) + ", got " +
                                   std::to_string(module.rank));
  return ok();
}

/// What prepares weights prepares those of a function that runs on tokens.
Failure checkPreparation(const ModuleDescription &module) {
  for (const ModuleFunction &function : module.functions) {
    if (function.prepares.empty())
      continue;
    const ModuleFunction *forward = module.find(function.prepares);
    if (!forward || !forward->prepares.empty())
      return malformed("function " + function.name,
                       "expected \"prepares\" to name a function that runs on "
                       "tokens, got " +
                           function.prepares);
  }
  return ok();
}

} // namespace

const ModuleFunction *ModuleDescription::find(const std::string &name) const {
  for (const ModuleFunction &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

Result<ModuleDescription> wna16::parseDescription(const std::string &text) {
  if (isTooDeep(text))
    return malformed("JSON", "nested deeper than 16");
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return malformed("JSON", "expected an object");
  auto abi = json.find("abi");
  if (abi == json.end() || !abi->is_number_integer() ||
      abi->get<int64_t>() < WNA16_ABI_OLDEST ||
      abi->get<int64_t>() > WNA16_ABI_VERSION)
    return malformed("abi", "expected " + std::to_string(WNA16_ABI_OLDEST) +
                                " to " + std::to_string(WNA16_ABI_VERSION) +
                                ", got " +
                                (abi == json.end() ? "none" : abi->dump()));
  auto list = json.find("functions");
  if (list == json.end() || !list->is_array())
    return malformed("functions", "expected an array");
  ModuleDescription module;
  if (Failure failure =
          readString(json, "target", "module", false, module.target))
    return failure;
  if (Failure failure =
          readString(json, "source", "module", false, module.source))
    return failure;
  if (Failure failure = readShare(json, module))
    return failure;
  std::vector<ModuleFunction> &functions = module.functions;
  std::set<std::string> names;
  for (const Json &object : *list) {
    functions.emplace_back();
    if (Failure failure = readFunction(object, functions.back()))
      return failure;
    if (!names.insert(functions.back().name).second)
      return malformed("function " + functions.back().name, "appears twice");
  }
  if (Failure failure = checkPreparation(module))
    return failure;
  return module;
}
