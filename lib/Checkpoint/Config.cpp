//===- Config.cpp - config.json in all its spellings ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Config.h"

#include <unistd.h>

using namespace wna16;

namespace {

constexpr int64_t kMaxConfig = 16'000'000;
constexpr int64_t kMaxLayers = 100'000;

const char *const kNestedParts[] = {"text_config", "llm_config",
                                    "language_config", "thinker_config"};

Result<std::optional<ScalarType>> parseDtype(const std::string &text) {
  std::string plain = text.compare(0, 6, "torch.") == 0 ? text.substr(6) : text;
  if (plain == "bfloat16")
    return std::optional(ScalarType::BF16);
  if (plain == "float16" || plain == "half")
    return std::optional(ScalarType::F16);
  if (plain == "float32" || plain == "float")
    return std::optional(ScalarType::F32);
  return fail("dtype \"" + text +
              "\" is not supported; bfloat16, float16 and float32 are");
}

} // namespace

Result<ModelConfig> ModelConfig::open(const std::string &directory) {
  ModelConfig config;
  config.where = directory + "/config.json";
  Result<std::string> text = readTextFile(config.where, kMaxConfig);
  if (!text)
    return text.takeFailure();
  Result<Json> root = parseConfig(*text, config.where);
  if (!root)
    return root.takeFailure();
  config.root = std::move(*root);
  for (const char *key : kNestedParts) {
    const Json *part = member(config.root, key);
    if (part && part->is_object()) {
      config.nested = key;
      break;
    }
  }
  if (Failure failure = config.readNames())
    return failure;
  return config;
}

Failure ModelConfig::readNames() {
  std::optional<std::string> name, dtype;
  if (Failure failure = read({"model_type"}, name))
    return failure;
  if (!name)
    return fail(where + ": missing model_type");
  type = *name;
  if (Failure failure = read({"dtype", "torch_dtype"}, dtype))
    return failure;
  if (!dtype || *dtype == "auto")
    return ok();
  Result<std::optional<ScalarType>> parsed = parseDtype(*dtype);
  if (!parsed)
    return fail(where + ": " + parsed.message());
  element = *parsed;
  return ok();
}

std::vector<const Json *> ModelConfig::parts() const {
  if (nested.empty())
    return {&root};
  return {member(root, nested), &root};
}

const Json *ModelConfig::find(const char *key) const {
  for (const Json *part : parts())
    if (const Json *value = member(*part, key))
      return value;
  return nullptr;
}

Failure ModelConfig::readLayer(const Keys &keys, int64_t layer,
                               std::optional<int64_t> &out) const {
  for (const char *key : keys) {
    const Json *value = find(key);
    if (!value || !value->is_array())
      continue;
    if (layer < 0 || layer >= kMaxLayers ||
        static_cast<size_t>(layer) >= value->size())
      return fail(where + ": " + key + " has " + std::to_string(value->size()) +
                  " entries, none for layer " + std::to_string(layer));
    Json one = Json::object();
    one[key] = (*value)[static_cast<size_t>(layer)];
    return readKey(one, {key}, where, out);
  }
  return read(keys, out);
}

//===----------------------------------------------------------------------===//
// Quantisation
//===----------------------------------------------------------------------===//

namespace {

/// A place that holds a quantisation configuration.
struct Source {
  std::string where;
  Json json;
};

Result<std::vector<Source>> findSources(const std::string &directory,
                                        const ModelConfig &config) {
  std::vector<Source> sources;
  for (const char *key : {"quantization_config", "compression_config"})
    if (const Json *json = config.find(key))
      sources.push_back({config.file() + ": " + key, *json});
  for (const char *name :
       {"quantize_config.json", "quantization_config.json"}) {
    std::string file = directory + "/" + name;
    if (::access(file.c_str(), F_OK) != 0)
      continue;
    Result<std::string> text = readTextFile(file, kMaxConfig);
    if (!text)
      return text.takeFailure();
    Result<Json> json = parseConfig(*text, file);
    if (!json)
      return json.takeFailure();
    sources.push_back({file, std::move(*json)});
  }
  for (const Source &source : sources)
    if (!source.json.is_object())
      return fail(source.where + ": expected an object, got " +
                  shown(source.json));
  return sources;
}

/// Writers before quant_method existed are told apart by their other keys.
Result<const Format *> methodOf(const Source &source) {
  std::optional<std::string> method;
  if (Failure failure = readKey(source.json, {"quant_method", "method"},
                                source.where, method))
    return failure;
  if (!method && (member(source.json, "zero_point") ||
                  member(source.json, "q_group_size")))
    method = "awq";
  if (!method &&
      (member(source.json, "desc_act") || member(source.json, "sym")))
    method = "gptq";
  if (!method && member(source.json, "config_groups"))
    method = "compressed-tensors";
  if (!method)
    return fail(source.where + ": missing quant_method");
  Result<const Format *> format = findFormat(*method);
  if (!format)
    return fail(source.where + ": " + format.message());
  return format;
}

Failure compare(const Quantization &a, const std::string &whereA,
                const Quantization &b, const std::string &whereB) {
  std::string both = whereA + " and " + whereB + " disagree: ";
  if (a.format != b.format)
    return fail(both + a.format->name + " and " + b.format->name);
  if (!a.silent && !b.silent && a.variant != b.variant)
    return fail(both + a.variant + " and " + b.variant);
  if (!a.base || !b.base)
    return ok();
  Scheme first = *a.base;
  if (a.silent || b.silent)
    first.zeros = b.base->zeros;
  if (first == *b.base)
    return ok();
  auto text = [](const Scheme &scheme) {
    return std::to_string(scheme.bits) + " bits, group " +
           std::to_string(scheme.group) +
           (scheme.symmetric ? ", symmetric" : ", asymmetric") +
           (scheme.actOrder ? ", act-order" : "");
  };
  return fail(both + text(*a.base) + " and " + text(*b.base));
}

} // namespace

Result<Quantization> wna16::readQuantization(const std::string &directory,
                                             const ModelConfig &config) {
  Result<std::vector<Source>> sources = findSources(directory, config);
  if (!sources)
    return sources.takeFailure();
  Quantization result;
  for (const Source &source : *sources) {
    Quantization one;
    Result<const Format *> format = methodOf(source);
    if (!format)
      return format.takeFailure();
    one.format = *format;
    if (Failure failure = one.format->configure(source.json, source.where, one))
      return failure;
    if (!result.format) {
      result = std::move(one);
      continue;
    }
    if (Failure failure =
            compare(result, sources->front().where, one, source.where))
      return failure;
    // One may leave out the convention, or the per-module rules.
    if (result.silent && !one.silent)
      std::swap(result, one);
    if (result.rules.empty())
      result.rules = std::move(one.rules);
  }
  return result;
}
