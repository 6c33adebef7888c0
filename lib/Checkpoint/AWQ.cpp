//===- AWQ.cpp - The AWQ format -------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Format.h"

#include <algorithm>
#include <cctype>

using namespace wna16;

namespace {

/// Versions differ in their packing, and some pass each other's shape checks.
Failure readVersion(const Json &config, const std::string &where) {
  for (const char *key : {"version", "format"}) {
    std::optional<std::string> version;
    if (Failure failure = readKey(config, {key}, where, version))
      return failure;
    std::string text = version.value_or("gemm");
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (text != "gemm")
      return fail(where + ": awq version \"" + text +
                  "\" is not supported; gemm is");
  }
  return ok();
}

Failure readIgnored(const Json &config, const std::string &where,
                    Quantization &out) {
  const Json *list = member(config, "modules_to_not_convert");
  if (!list)
    return ok();
  if (!list->is_array())
    return fail(where + ": expected modules_to_not_convert to be a list, got " +
                shown(*list));
  for (const Json &entry : *list) {
    if (!entry.is_string())
      return fail(where + ": expected names in modules_to_not_convert, got " +
                  shown(entry));
    // "gate" means the router, not gate_proj.
    Rule rule;
    rule.kind = Rule::Component;
    rule.text = entry.get<std::string>();
    out.rules.push_back(std::move(rule));
  }
  return ok();
}

Failure configure(const Json &config, const std::string &where,
                  Quantization &out) {
  std::optional<int64_t> bits, group;
  std::optional<bool> zeroPoint;
  if (Failure failure = readVersion(config, where))
    return failure;
  if (Failure failure = readBits(config, {"bits", "w_bit"}, where, bits))
    return failure;
  if (Failure failure = readKey(
          config, {"group_size", "groupsize", "q_group_size"}, where, group))
    return failure;
  if (Failure failure = readKey(config, {"zero_point"}, where, zeroPoint))
    return failure;
  if (!bits || !group)
    return fail(where + ": missing " + (bits ? "group_size" : "bits"));
  Scheme scheme;
  scheme.bits = *bits;
  scheme.group = *group;
  scheme.symmetric = !zeroPoint.value_or(true);
  scheme.refusal = refusalOf(kAWQ, *bits, *group);
  if (*bits != 4)
    scheme.refusal =
        "awq with " + std::to_string(*bits) + " bits is not supported; 4 is";
  out.base = scheme;
  out.variant = "awq gemm";
  return readIgnored(config, where, out);
}

Failure describe(const SafeTensors &files,
                 const std::vector<std::string> &modules, const Scheme &scheme,
                 WeightSpec &spec) {
  for (const std::string &module : modules)
    if (Failure failure = checkPacking(files, module, kAWQ, scheme.bits))
      return failure;
  const TensorView &codes = *files.find(modules[0] + ".qweight");
  spec.input = codes.shape[0];
  if (__builtin_mul_overflow(codes.shape[1], 32 / scheme.bits, &spec.output))
    return fail("tensor " + modules[0] + ".qweight is too large");
  // The format's buffers hold floor(K / g) groups, so a short one is lost.
  if (scheme.group > 0 && spec.input % scheme.group != 0)
    return fail("tensor " + modules[0] + ".qweight: expected an input of " +
                std::to_string(spec.input) +
                " to be a multiple of the awq "
                "group size " +
                std::to_string(scheme.group));
  return ok();
}

} // namespace

const Format wna16::kAWQ = {"awq",
                            "awq",
                            {{Part::Codes, "qweight", 1},
                             {Part::Scales, "scales", 1},
                             {Part::Zeros, "qzeros", 1}},
                            {},
                            configure,
                            describe};
