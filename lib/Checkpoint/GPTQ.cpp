//===- GPTQ.cpp - The GPTQ format -----------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Format.h"

using namespace wna16;

namespace {

/// Zero points by checkpoint_format. Without one, only symmetric files are
/// unambiguous.
Failure readConvention(const Json &config, const std::string &where,
                       Scheme &scheme, Quantization &out) {
  std::optional<std::string> format;
  if (Failure failure =
          readKey(config, {"checkpoint_format", "format"}, where, format))
    return failure;
  std::optional<bool> marlin;
  if (Failure failure = readKey(config, {"is_marlin_format"}, where, marlin))
    return failure;
  if (marlin.value_or(false))
    format = "marlin";
  out.variant = format.value_or("") == "gptq_v2" ? "gptq v2" : "gptq v1";
  if (!format) {
    out.variant = "gptq";
    out.silent = true;
    scheme.zeros = ZeroPoints::None;
  } else if (*format == "gptq") {
    scheme.zeros = ZeroPoints::MinusOne;
  } else if (*format != "gptq_v2") {
    return fail(where + ": checkpoint_format \"" + *format +
                "\" is not supported; gptq and gptq_v2 are");
  }
  return ok();
}

/// Reads what a rule may override.
Failure readScheme(const Json &config, const std::string &where,
                   Scheme &scheme) {
  std::optional<int64_t> bits, group;
  std::optional<bool> symmetric, actOrder;
  if (Failure failure = readBits(config, {"bits", "w_bit"}, where, bits))
    return failure;
  if (Failure failure =
          readKey(config, {"group_size", "groupsize"}, where, group))
    return failure;
  if (Failure failure = readKey(config, {"sym"}, where, symmetric))
    return failure;
  if (Failure failure = readKey(config, {"desc_act"}, where, actOrder))
    return failure;
  scheme.bits = bits.value_or(scheme.bits);
  scheme.group = group.value_or(scheme.group);
  scheme.symmetric = symmetric.value_or(scheme.symmetric);
  scheme.actOrder = actOrder.value_or(scheme.actOrder);
  scheme.refusal = refusalOf(kGPTQ, scheme.bits, scheme.group);
  if (!scheme.symmetric && scheme.zeros == ZeroPoints::None)
    scheme.refusal = "asymmetric gptq without checkpoint_format is ambiguous; "
                     "add \"checkpoint_format\": \"gptq\" (zero points stored "
                     "minus one) or \"gptq_v2\" to " +
                     where;
  return ok();
}

/// "+:regex" overrides, "-:regex" excludes, a bare regex overrides.
Failure readDynamic(const Json &config, const std::string &where,
                    Quantization &out) {
  const Json *dynamic = member(config, "dynamic");
  if (!dynamic)
    return ok();
  if (!dynamic->is_object())
    return fail(where + ": expected dynamic to be an object, got " +
                shown(*dynamic));
  for (const auto &[key, value] : dynamic->items()) {
    std::string sign = key.substr(0, 2);
    bool hasSign = sign == "+:" || sign == "-:";
    Rule rule;
    rule.kind = Rule::Regex;
    rule.text = hasSign ? key.substr(2) : key;
    Result<Pattern> pattern = Pattern::compile(rule.text);
    if (!pattern)
      return fail(where + ": dynamic: " + pattern.message());
    rule.pattern = std::move(*pattern);
    if (sign != "-:") {
      if (!value.is_object())
        return fail(where + ": expected dynamic[\"" + key +
                    "\"] to be an object, got " + shown(value));
      rule.scheme = *out.base;
      if (Failure failure = readScheme(value, where, *rule.scheme))
        return failure;
    }
    out.rules.push_back(std::move(rule));
  }
  return ok();
}

Failure configure(const Json &config, const std::string &where,
                  Quantization &out) {
  Scheme scheme;
  if (Failure failure = readConvention(config, where, scheme, out))
    return failure;
  std::optional<int64_t> bits, group;
  if (Failure failure = readBits(config, {"bits", "w_bit"}, where, bits))
    return failure;
  if (!bits)
    return fail(where + ": missing bits");
  if (Failure failure =
          readKey(config, {"group_size", "groupsize"}, where, group))
    return failure;
  if (!group)
    return fail(where + ": missing group_size");
  std::optional<std::string> packing;
  if (Failure failure = readKey(config, {"pack_dtype"}, where, packing))
    return failure;
  if (packing && *packing != "int32")
    return fail(where + ": pack_dtype \"" + *packing +
                "\" is not supported; int32 is");
  if (Failure failure = readScheme(config, where, scheme))
    return failure;
  out.base = scheme;
  return readDynamic(config, where, out);
}

Failure describe(const SafeTensors &files,
                 const std::vector<std::string> &modules, const Scheme &scheme,
                 WeightSpec &spec) {
  for (const std::string &module : modules)
    if (Failure failure = checkPacking(files, module, kGPTQ, scheme.bits))
      return failure;
  const TensorView &codes = *files.find(modules[0] + ".qweight");
  if (__builtin_mul_overflow(codes.shape[0], 32 / scheme.bits, &spec.input))
    return fail("tensor " + modules[0] + ".qweight is too large");
  spec.output = codes.shape[1];
  return checkGroupIndex(files, modules, "g_idx", scheme, spec);
}

} // namespace

const Format wna16::kGPTQ = {"gptq",
                             "gptq",
                             {{Part::Codes, "qweight", 1},
                              {Part::Scales, "scales", 1},
                              {Part::Zeros, "qzeros", 1},
                              {Part::GroupIndex, "g_idx", -1}},
                             {"qzeros", "g_idx"},
                             configure,
                             describe};
