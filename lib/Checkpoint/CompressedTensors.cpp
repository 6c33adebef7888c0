//===- CompressedTensors.cpp - The compressed-tensors format --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Format.h"

#include <algorithm>

using namespace wna16;

namespace {

/// What the format of a file or group may be called.
Failure checkFormat(const Json &object, const std::string &where) {
  std::optional<std::string> format;
  if (Failure failure = readKey(object, {"format"}, where, format))
    return failure;
  if (format && *format != "pack-quantized" && *format != "mixed-precision")
    return fail("compressed-tensors format \"" + *format +
                "\" is not supported; pack-quantized is");
  return ok();
}

/// actorder: only "group" leaves a group index in the file.
Failure readActOrder(const Json &weights, const std::string &where,
                     Scheme &scheme) {
  std::optional<std::string> order;
  const Json *value = member(weights, "actorder");
  if (value && value->is_boolean())
    order = value->get<bool>() ? "group" : "none";
  else if (Failure failure = readKey(weights, {"actorder"}, where, order))
    return failure;
  std::string text = order.value_or("none");
  if (text == "group" || text == "dynamic")
    scheme.actOrder = true;
  else if (text != "none" && text != "weight" && text != "static")
    scheme.refusal = "actorder \"" + text +
                     "\" is not supported; group, weight, static and null are";
  return ok();
}

/// The strategy says what group_size means.
Failure readGroups(const Json &weights, const std::string &where,
                   Scheme &scheme) {
  std::optional<std::string> strategy;
  std::optional<int64_t> group;
  if (Failure failure = readKey(weights, {"strategy"}, where, strategy))
    return failure;
  if (Failure failure = readKey(weights, {"group_size"}, where, group))
    return failure;
  std::string text =
      strategy.value_or(group.value_or(-1) > 0 ? "group" : "channel");
  scheme.group = group.value_or(-1);
  if (text == "group" && !group)
    return fail(where + ": strategy group needs a group_size");
  if (text == "channel")
    scheme.group = -1;
  else if (text != "group")
    scheme.refusal =
        "strategy \"" + text + "\" is not supported; group and channel are";
  return ok();
}

Result<Scheme> readWeights(const Json &weights, const std::string &where) {
  Scheme scheme;
  std::optional<int64_t> bits;
  std::optional<bool> symmetric;
  std::optional<std::string> type;
  if (Failure failure = readBits(weights, {"num_bits"}, where, bits))
    return failure;
  if (Failure failure = readKey(weights, {"symmetric"}, where, symmetric))
    return failure;
  if (Failure failure = readKey(weights, {"type"}, where, type))
    return failure;
  if (!bits)
    return fail(where + ": missing num_bits");
  scheme.bits = *bits;
  scheme.symmetric = symmetric.value_or(true);
  if (Failure failure = readGroups(weights, where, scheme))
    return failure;
  if (Failure failure = readActOrder(weights, where, scheme))
    return failure;
  if (scheme.refusal.empty())
    scheme.refusal = refusalOf(kCompressedTensors, *bits, scheme.group);
  if (type.value_or("int") != "int")
    scheme.refusal =
        "weights of type \"" + *type + "\" are not supported; int is";
  return scheme;
}

Failure readTargets(const Json &list, const std::optional<Scheme> &scheme,
                    const std::string &where, Quantization &out) {
  if (!list.is_array())
    return fail(where + ": expected a list of names, got " + shown(list));
  for (const Json &entry : list) {
    if (!entry.is_string())
      return fail(where + ": expected names, got " + shown(entry));
    Result<Rule> rule = parseTarget(entry.get<std::string>());
    if (!rule)
      return fail(where + ": " + rule.message());
    rule->scheme = scheme;
    out.rules.push_back(std::move(*rule));
  }
  return ok();
}

Failure readGroup(const Json &group, const std::string &where,
                  Quantization &out) {
  if (!group.is_object())
    return fail(where + ": expected an object, got " + shown(group));
  const Json *weights = member(group, "weights");
  if (!weights)
    return ok();
  Result<Scheme> scheme = readWeights(*weights, where + ".weights");
  if (!scheme)
    return scheme.takeFailure();
  if (Failure failure = checkFormat(group, where))
    scheme->refusal = failure.message;
  for (const char *side : {"input", "output"})
    if (member(group, std::string(side) + "_activations"))
      scheme->refusal =
          "quantised " + std::string(side) + " activations are not supported";
  const Json *targets = member(group, "targets");
  if (!targets)
    return fail(where + ": missing targets");
  return readTargets(*targets, *scheme, where + ".targets", out);
}

/// Exact names and patterns decide before "Linear", whatever their order.
void sortRules(std::vector<Rule> &rules, size_t first) {
  std::stable_partition(
      rules.begin() + static_cast<std::ptrdiff_t>(first), rules.end(),
      [](const Rule &rule) { return rule.kind != Rule::Linear; });
}

/// Parts that change what weights or activations mean; writers leave them
/// empty where they do not.
Failure checkExtensions(const Json &config) {
  const Json *transform = member(config, "transform_config");
  if (transform && !transform->empty())
    return fail("transform_config is not supported, got " + shown(*transform));
  const Json *sparsity = member(config, "sparsity_config");
  if (!sparsity || sparsity->empty())
    return ok();
  const Json *format = member(*sparsity, "format");
  if (!format || *format != "dense")
    return fail("sparsity_config is not supported but for format dense, got " +
                shown(*sparsity));
  return ok();
}

Failure configure(const Json &config, const std::string &where,
                  Quantization &out) {
  if (Failure failure = checkFormat(config, where))
    return fail(where + ": " + failure.message);
  if (Failure failure = checkExtensions(config))
    return fail(where + ": " + failure.message);
  out.variant = "compressed-tensors pack-quantized";
  if (const Json *ignore = member(config, "ignore"))
    if (Failure failure =
            readTargets(*ignore, std::nullopt, where + ": ignore", out))
      return failure;
  const Json *groups = member(config, "config_groups");
  if (!groups || !groups->is_object())
    return fail(where + ": expected config_groups to be an object");
  size_t ignored = out.rules.size();
  for (const auto &[key, group] : groups->items())
    if (Failure failure =
            readGroup(group, where + ": config_groups." + key, out))
      return failure;
  sortRules(out.rules, ignored);
  return ok();
}

/// weight_shape says how wide a row is when words do not; otherwise it must
/// agree with the codes, which are what is used.
Failure checkShape(const SafeTensors &files, const std::string &module,
                   const WeightSpec &spec) {
  std::string tensor = module + ".weight_shape";
  const TensorView *view = files.find(tensor);
  if (!view)
    return ok();
  if (view->type != ScalarType::I64 || view->shape != std::vector<int64_t>{2})
    return fail("tensor " + tensor + ": expected i64 [2], got " +
                std::string(name(view->type)) + " " + shapeText(view->shape));
  int64_t rows = elementAt<int64_t>(*view, 0);
  int64_t columns = elementAt<int64_t>(*view, 1);
  if (rows != spec.output || columns != spec.input)
    return fail("tensor " + tensor + " says [" + std::to_string(rows) + ", " +
                std::to_string(columns) + "], but weight_packed holds [" +
                std::to_string(spec.output) + ", " +
                std::to_string(spec.input) + "]");
  return ok();
}

Failure describe(const SafeTensors &files,
                 const std::vector<std::string> &modules, const Scheme &scheme,
                 WeightSpec &spec) {
  auto codes =
      requireMatrix(files, modules[0] + ".weight_packed", ScalarType::I32);
  if (!codes)
    return codes.takeFailure();
  int64_t factor = 32 / scheme.bits;
  int64_t words = (*codes)->shape[1];
  spec.output = (*codes)->shape[0];
  if (__builtin_mul_overflow(words, factor, &spec.input))
    return fail("tensor " + modules[0] + ".weight_packed is too large");
  const TensorView *shape = files.find(modules[0] + ".weight_shape");
  if (shape && shape->type == ScalarType::I64 &&
      shape->shape == std::vector<int64_t>{2}) {
    int64_t columns = elementAt<int64_t>(*shape, 1);
    if (columns > spec.input - factor && columns <= spec.input)
      spec.input = columns;
  }
  for (const std::string &module : modules)
    if (Failure failure = checkShape(files, module, spec))
      return failure;
  return checkGroupIndex(files, modules, "weight_g_idx", scheme, spec);
}

} // namespace

const Format wna16::kCompressedTensors = {
    "compressed-tensors",
    "compressed_tensors",
    {{Part::Codes, "weight_packed", 0},
     {Part::Scales, "weight_scale", 0},
     {Part::Zeros, "weight_zero_point", 0},
     {Part::GroupIndex, "weight_g_idx", -1}},
    {"weight_shape", "weight_g_idx"},
    configure,
    describe};
