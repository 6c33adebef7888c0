//===- Format.cpp - What the checkpoint formats share ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Format.h"

#include <algorithm>
#include <cstring>

using namespace wna16;

bool Scheme::operator==(const Scheme &other) const {
  return bits == other.bits && group == other.group &&
         symmetric == other.symmetric && (symmetric || zeros == other.zeros) &&
         actOrder == other.actOrder;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

bool Rule::matches(const std::string &module) const {
  switch (kind) {
  case Regex:
    return pattern->matches(module);
  case Exact:
    return module == text;
  case Component:
    return ("." + module + ".").find("." + text + ".") != std::string::npos;
  case Linear:
    return true;
  }
  return false;
}

Result<Rule> wna16::parseTarget(const std::string &text) {
  Rule rule;
  rule.text = text;
  rule.kind = text == "Linear" ? Rule::Linear : Rule::Exact;
  if (text.compare(0, 3, "re:") != 0)
    return rule;
  Result<Pattern> pattern = Pattern::compile(text.substr(3));
  if (!pattern)
    return pattern.takeFailure();
  rule.kind = Rule::Regex;
  rule.pattern = std::move(*pattern);
  return rule;
}

std::optional<Scheme> Quantization::schemeOf(const std::string &module) const {
  for (const Rule &rule : rules)
    if (rule.matches(module))
      return rule.scheme;
  return base;
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

const char *Format::suffixOf(Part part) const {
  for (const PartSuffix &entry : parts)
    if (entry.part == part)
      return entry.suffix;
  return nullptr;
}

const std::vector<const Format *> &wna16::allFormats() {
  static const std::vector<const Format *> formats = {&kGPTQ, &kAWQ,
                                                      &kCompressedTensors};
  return formats;
}

Result<const Format *> wna16::findFormat(const std::string &method) {
  struct Spelling {
    const char *text;
    const Format *format;
  };
  // Runtimes rename a method after the kernel they chose for it.
  static const Spelling spellings[] = {
      {"gptq", &kGPTQ},
      {"gptq_marlin", &kGPTQ},
      {"auto_gptq", &kGPTQ},
      {"awq", &kAWQ},
      {"awq_marlin", &kAWQ},
      {"auto_awq", &kAWQ},
      {"compressed-tensors", &kCompressedTensors},
      {"compressed_tensors", &kCompressedTensors},
  };
  for (const Spelling &spelling : spellings)
    if (method == spelling.text)
      return spelling.format;
  return fail("quantisation method \"" + method +
              "\" is not supported; gptq, awq and compressed-tensors are");
}

Failure wna16::readBits(const Json &config, const Keys &keys,
                        const std::string &where, std::optional<int64_t> &out) {
  for (const char *key : keys) {
    const Json *value = member(config, key);
    if (!value || !value->is_string())
      continue;
    std::string text = value->get<std::string>();
    if (text.compare(0, 3, "int") == 0)
      text = text.substr(3);
    if (text.size() != 1 || text[0] < '1' || text[0] > '8')
      return fail(where + ": expected " + key +
                  " to be a number of bits, got " + shown(*value));
    out = text[0] - '0';
    return ok();
  }
  return readKey(config, keys, where, out);
}

std::string wna16::refusalOf(const Format &format, int64_t bits,
                             int64_t group) {
  std::string what = std::string(format.name) + " with " +
                     std::to_string(bits) + " bits and group size " +
                     std::to_string(group);
  if (bits != 4 && bits != 8)
    return what + " is not supported; 4 and 8 bits are";
  if (group != -1 && group <= 0)
    return what + " is not supported; positive group sizes and -1 are";
  return {};
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

std::string wna16::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<const TensorView *> wna16::require(const SafeTensors &files,
                                          const std::string &tensor) {
  if (const TensorView *view = files.find(tensor))
    return view;
  auto foreign = files.foreign().find(tensor);
  if (foreign != files.foreign().end())
    return fail("tensor " + tensor + " has dtype " + foreign->second +
                ", which is not supported");
  return fail("missing tensor " + tensor);
}

Result<const TensorView *> wna16::requireMatrix(const SafeTensors &files,
                                                const std::string &tensor,
                                                ScalarType type) {
  Result<const TensorView *> view = require(files, tensor);
  if (!view)
    return view;
  if ((*view)->type != type || (*view)->shape.size() != 2)
    return fail("tensor " + tensor + ": expected a matrix of " +
                std::string(name(type)) + ", got " +
                std::string(name((*view)->type)) + " " +
                shapeText((*view)->shape));
  return view;
}

static Failure checkTrivialIndex(const std::string &tensor,
                                 const TensorView &view, int64_t group) {
  for (int64_t k = 0; k < view.shape[0]; ++k) {
    int32_t found = elementAt<int32_t>(view, k);
    int64_t expected = group > 0 ? k / group : 0;
    if (found != expected)
      return fail("tensor " + tensor + ": expected group " +
                  std::to_string(expected) + " for row " + std::to_string(k) +
                  ", got " + std::to_string(found) +
                  ", although the configuration says no act-order");
  }
  return ok();
}

static Failure checkIndexRange(const std::string &tensor,
                               const TensorView &view, int64_t groups) {
  for (int64_t k = 0; k < view.shape[0]; ++k) {
    int32_t found = elementAt<int32_t>(view, k);
    if (found < 0 || found >= groups)
      return fail("tensor " + tensor + ": expected groups from 0 to " +
                  std::to_string(groups - 1) + ", got " +
                  std::to_string(found) + " for row " + std::to_string(k));
  }
  return ok();
}

Failure wna16::checkGroupIndex(const SafeTensors &files,
                               const std::vector<std::string> &modules,
                               const char *suffix, const Scheme &scheme,
                               WeightSpec &spec) {
  // With a single group there is nothing to be out of order.
  bool actOrder = scheme.actOrder && spec.groups() > 1;
  spec.actOrder = actOrder ? ActOrder::Index : ActOrder::None;
  for (size_t i = 0; i < modules.size(); ++i) {
    std::string tensor = modules[i] + "." + suffix;
    const TensorView *view = files.find(tensor);
    if (!view && scheme.actOrder)
      return fail("missing tensor " + tensor + ", which act-order needs");
    if (!view)
      continue;
    if (view->type != ScalarType::I32 || view->shape.size() != 1 ||
        view->shape[0] != spec.input)
      return fail("tensor " + tensor + ": expected i32 [" +
                  std::to_string(spec.input) + "], got " +
                  std::string(name(view->type)) + " " + shapeText(view->shape));
    Failure failure = actOrder ? checkIndexRange(tensor, *view, spec.groups())
                               : checkTrivialIndex(tensor, *view, spec.group);
    if (failure)
      return failure;
    size_t first = i - i % static_cast<size_t>(spec.halves);
    std::string gate = modules[first] + "." + suffix;
    if (actOrder && first != i &&
        std::memcmp(files.find(gate)->data, view->data,
                    static_cast<size_t>(view->bytes)) != 0)
      return fail("tensors " + gate + " and " + tensor +
                  " differ, but gate and up of an expert must share one order "
                  "of groups");
  }
  return ok();
}

Failure wna16::checkPacking(const SafeTensors &files, const std::string &module,
                            const Format &expected, int64_t bits) {
  auto codes = requireMatrix(files, module + ".qweight", ScalarType::I32);
  if (!codes)
    return codes.takeFailure();
  auto scales = require(files, module + ".scales");
  if (!scales)
    return scales.takeFailure();
  if ((*scales)->shape.size() != 2)
    return fail("tensor " + module + ".scales: expected a matrix, got " +
                shapeText((*scales)->shape));
  int64_t words = (*codes)->shape[1];
  int64_t columns = (*scales)->shape[1];
  const Format *found = words == columns                 ? &kGPTQ
                        : words == columns / (32 / bits) ? &kAWQ
                                                         : nullptr;
  if (found == &expected)
    return ok();
  return fail("tensors " + module + ".qweight " + shapeText((*codes)->shape) +
              " and .scales " + shapeText((*scales)->shape) +
              " are packed as " +
              (found ? found->name : "neither gptq nor awq") +
              ", but the configuration says " + expected.name);
}
