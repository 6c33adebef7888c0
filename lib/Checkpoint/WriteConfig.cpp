//===- WriteConfig.cpp - config.json of another format --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/TargetFormat.h"

#include "Format.h"

#include <algorithm>
#include <set>

using namespace wna16;

namespace {

//===----------------------------------------------------------------------===//
// Modules that stay dense
//===----------------------------------------------------------------------===//

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// A regular expression for a name; with `general`, for those too that have
/// other layer and expert numbers.
std::string patternOf(const std::string &name, bool general) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    bool number = general && isDigit(name[i]) && i > 0 && name[i - 1] == '.';
    size_t end = i;
    while (number && end < name.size() && isDigit(name[end]))
      ++end;
    if (number && (end == name.size() || name[end] == '.')) {
      text += "\\d+";
      i = end - 1;
    } else if (name[i] == '.') {
      text += "\\.";
    } else {
      text += name[i];
    }
  }
  return text + "$";
}

/// As few patterns as possible that match the kept modules and no packed one.
Result<std::vector<std::string>>
patternsOf(const std::vector<std::string> &kept,
           const std::vector<std::string> &packed) {
  std::set<std::string> taken;
  for (const std::string &name : packed)
    taken.insert(patternOf(name, /*general=*/true));
  std::vector<std::string> patterns;
  std::set<std::string> seen;
  for (const std::string &name : kept) {
    if (name.find_first_of("^$*+?()[]{}|\\") != std::string::npos)
      return fail("module " + name + ": its name is none of a module");
    std::string general = patternOf(name, /*general=*/true);
    std::string pattern =
        taken.count(general) ? patternOf(name, /*general=*/false) : general;
    if (seen.insert(pattern).second)
      patterns.push_back(std::move(pattern));
  }
  return patterns;
}

//===----------------------------------------------------------------------===//
// One object for each method
//===----------------------------------------------------------------------===//

Json gptqConfig(const TargetFormat &format, const TargetScheme &scheme,
                const std::vector<std::string> &patterns) {
  Json config = {{"bits", scheme.bits},
                 {"group_size", scheme.group},
                 {"desc_act", scheme.actOrder},
                 {"sym", scheme.symmetric},
                 {"lm_head", false},
                 {"quant_method", "gptq"},
                 {"checkpoint_format", format.name},
                 {"pack_dtype", "int32"}};
  for (const std::string &pattern : patterns)
    config["dynamic"]["-:" + pattern] = Json::object();
  return config;
}

Json awqConfig(const TargetScheme &scheme,
               const std::vector<std::string> &kept) {
  return {{"bits", scheme.bits},
          {"group_size", scheme.group},
          {"zero_point", !scheme.symmetric},
          {"version", "gemm"},
          {"quant_method", "awq"},
          {"modules_to_not_convert", kept}};
}

Json compressedConfig(const TargetScheme &scheme,
                      const std::vector<std::string> &patterns) {
  bool channel = scheme.group < 0;
  Json weights = {{"num_bits", scheme.bits},
                  {"type", "int"},
                  {"symmetric", scheme.symmetric},
                  {"strategy", channel ? "channel" : "group"},
                  {"group_size", channel ? Json() : Json(scheme.group)},
                  {"dynamic", false},
                  {"actorder", scheme.actOrder ? Json("group") : Json()}};
  Json group = {{"targets", {"Linear"}},
                {"weights", weights},
                {"input_activations", nullptr},
                {"output_activations", nullptr},
                {"format", "pack-quantized"}};
  Json ignore = Json::array();
  for (const std::string &pattern : patterns)
    ignore.push_back("re:" + pattern);
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}},
          {"ignore", ignore}};
}

} // namespace

Result<std::string> wna16::configIn(const TargetFormat &format,
                                    const TargetScheme &scheme,
                                    const std::string &config,
                                    const std::vector<std::string> &kept,
                                    const std::vector<std::string> &packed) {
  Result<Json> root = parseConfig(config, "config.json");
  if (!root)
    return root.takeFailure();
  Result<std::vector<std::string>> patterns = patternsOf(kept, packed);
  if (!patterns)
    return patterns.takeFailure();
  for (const char *key : {"quantization_config", "compression_config"}) {
    root->erase(key);
    // Some nest it in the language model's part.
    for (auto &[name, part] : root->items())
      if (part.is_object())
        part.erase(key);
  }
  std::string method = format.method ? format.method : "";
  if (method == "gptq")
    (*root)["quantization_config"] = gptqConfig(format, scheme, *patterns);
  else if (method == "awq")
    (*root)["quantization_config"] = awqConfig(scheme, kept);
  else if (method == "compressed-tensors")
    (*root)["quantization_config"] = compressedConfig(scheme, *patterns);
  return root->dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}
