//===- Weights.cpp - From module names to a described weight --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "Layout/Catalogue.h"
#include "Layout/TensorNames.h"

#include <algorithm>

using namespace wna16;

namespace {

/// The pattern with every "{a,b}" replaced by "a".
std::vector<std::string> expand(const std::string &pattern, int64_t experts) {
  TensorPattern names;
  names.pattern = pattern;
  names.experts = experts;
  return names.names();
}

/// Also when its codes have a dtype that is refused later, by name.
bool isPackedModule(const SafeTensors &files, const std::string &module) {
  for (const Format *format : allFormats()) {
    std::string codes = module + "." + format->parts[0].suffix;
    if (files.find(codes) || files.foreign().count(codes))
      return true;
  }
  return false;
}

std::string described(const std::optional<Scheme> &scheme) {
  if (!scheme)
    return "dense";
  return std::to_string(scheme->bits) + " bits with group size " +
         std::to_string(scheme->group) +
         (scheme->symmetric ? "" : ", asymmetric") +
         (scheme->actOrder ? ", act-order" : "");
}

} // namespace

bool wna16::isFloat(ScalarType type) {
  return type == ScalarType::F16 || type == ScalarType::BF16 ||
         type == ScalarType::F32;
}

//===----------------------------------------------------------------------===//
// What is stored, and what the configuration says
//===----------------------------------------------------------------------===//

/// All modules of a weight must be stored alike.
Result<bool>
WeightReader::isPacked(const std::vector<std::string> &modules) const {
  std::vector<std::string> packed, dense;
  for (const std::string &module : modules) {
    if (isPackedModule(files, module))
      packed.push_back(module);
    else if (files.find(module + ".weight"))
      dense.push_back(module);
    else if (auto view = require(files, module + ".weight"); !view)
      return fail(view.message() + ", and no packed form of it");
  }
  if (packed.empty() || dense.empty())
    return dense.empty();
  const auto &odd = packed.size() < dense.size() ? packed : dense;
  const auto &rest = packed.size() < dense.size() ? dense : packed;
  std::string list;
  for (size_t i = 0; i < odd.size() && i < 4; ++i)
    list += (i ? ", " : "") + odd[i];
  if (odd.size() > 4)
    list += ", ...";
  bool oddPacked = &odd == &packed;
  return fail(std::to_string(odd.size()) + " of " +
              std::to_string(modules.size()) + " modules are " +
              (oddPacked ? "packed" : "dense") + " (" + list +
              "), the others, as " + rest[0] + ", are " +
              (oddPacked ? "dense" : "packed"));
}

/// Experts cannot be told to be different.
Failure WeightReader::checkVerdicts(const std::vector<std::string> &modules,
                                    bool packed) const {
  if (!quantization.format)
    return ok();
  std::optional<Scheme> first = quantization.schemeOf(modules[0]);
  for (const std::string &module : modules) {
    std::optional<Scheme> scheme = quantization.schemeOf(module);
    bool differs = packed && scheme && first && !(*scheme == *first);
    if (scheme.has_value() != first.has_value() || differs)
      return fail("the configuration wants " + modules[0] + " " +
                  described(first) + " but " + module + " " +
                  described(scheme));
  }
  return ok();
}

/// The scheme of a module that is packed.
Result<Scheme> WeightReader::schemeFor(const std::string &module) const {
  if (!quantization.format)
    return fail("module " + module +
                " is packed, but there is no quantization_config");
  std::optional<Scheme> scheme = quantization.schemeOf(module);
  if (!scheme)
    return fail("module " + module +
                " is packed, but the configuration keeps it dense");
  if (!scheme->refusal.empty())
    return fail("module " + module + ": " + scheme->refusal);
  return *scheme;
}

/// The convention in words.
std::string WeightReader::formatText(const Scheme &scheme,
                                     const WeightSpec &spec) const {
  return quantization.variant +
         (scheme.symmetric ? ", symmetric" : ", asymmetric") +
         (spec.actOrder == ActOrder::Index ? ", act-order" : "") +
         (spec.layout == findLayout("interleaved") ? ", interleaved" : "");
}

Result<WeightSource> WeightReader::read(const WeightNames &names) {
  if (names.fused)
    return readFused(names);
  std::vector<std::string> modules = expand(names.pattern, names.experts);
  Result<bool> packed = isPacked(modules);
  if (!packed)
    return packed.takeFailure();
  if (Failure failure = checkVerdicts(modules, *packed))
    return failure;
  return *packed ? readPacked(names, modules) : readDense(names, modules);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Checks every file tensor of a stacked one and takes them into account.
Result<TensorPattern> WeightReader::makePattern(const WeightNames &names,
                                                const std::string &suffix,
                                                int64_t concat, ScalarType type,
                                                std::vector<int64_t> shape) {
  TensorPattern result;
  bool joined = names.halves == 2 && !names.fused && concat >= 0;
  Result<TensorNames> modules = TensorNames::parse(names.pattern);
  if (!modules)
    return modules.takeFailure();
  result.pattern = (joined ? names.pattern : modules->patternOf(0)) + suffix;
  result.experts = names.experts;
  result.concat = joined ? concat : -1;
  result.type = type;
  result.shape = std::move(shape);

  std::vector<int64_t> expected(result.shape.begin() + 1, result.shape.end());
  if (joined)
    expected[static_cast<size_t>(concat)] /= names.halves;
  for (const std::string &tensor : result.names()) {
    Result<const TensorView *> view = require(files, tensor);
    if (!view)
      return view.takeFailure();
    if ((*view)->type != type || (*view)->shape != expected)
      return fail("tensor " + tensor + ": expected " + std::string(name(type)) +
                  " " + shapeText(expected) + ", got " +
                  std::string(name((*view)->type)) + " " +
                  shapeText((*view)->shape));
    usedTensors.insert(tensor);
  }
  return result;
}

/// What the scheme and the type of the scales say.
Result<WeightSpec> WeightReader::schemeSpec(const Scheme &scheme,
                                            const std::string &tensor) const {
  WeightSpec spec;
  spec.group = scheme.group;
  spec.element = element;
  bool four = scheme.bits == 4;
  if (scheme.symmetric)
    spec.code = four ? CodeType::U4B8 : CodeType::U8B128;
  else
    spec.code = four ? CodeType::U4 : CodeType::U8;
  spec.zeros = scheme.symmetric ? ZeroPoints::None : scheme.zeros;
  auto scales = require(files, tensor);
  if (!scales)
    return scales.takeFailure();
  if (!isFloat((*scales)->type))
    return fail("tensor " + tensor + ": expected f16, bf16 or f32, got " +
                std::string(name((*scales)->type)));
  spec.scale = (*scales)->type;
  return spec;
}

/// The specification that scheme and tensors give together.
Result<WeightSpec>
WeightReader::packedSpec(const WeightNames &names,
                         const std::vector<std::string> &modules,
                         const Scheme &scheme) const {
  const Format &format = *quantization.format;
  Result<WeightSpec> spec =
      schemeSpec(scheme, modules[0] + "." + format.suffixOf(Part::Scales));
  if (!spec)
    return spec;
  spec->layout = findLayout(format.layout);
  spec->experts = std::max<int64_t>(names.experts, 1);
  spec->halves = names.halves;
  if (Failure failure = format.describe(files, modules, scheme, *spec))
    return failure;
  return spec;
}

/// Finds the tensors of every part that the specification asks for.
Failure WeightReader::attachParts(const WeightNames &names,
                                  WeightSource &source) {
  const Format &format = *quantization.format;
  Result<std::vector<StoredPart>> storage = storageOf(source.spec);
  if (!storage)
    return fail("modules " + names.pattern + ": " + storage.message());
  for (const StoredPart &part : *storage) {
    auto row = std::find_if(
        format.parts.begin(), format.parts.end(),
        [&](const PartSuffix &entry) { return entry.part == part.part; });
    if (row == format.parts.end())
      return fail("modules " + names.pattern + ": " + format.name +
                  " has no tensor of " + std::string(name(part.part)));
    Result<TensorPattern> pattern =
        makePattern(names, "." + std::string(row->suffix), row->concat,
                    part.type, part.shape);
    if (!pattern)
      return pattern.takeFailure();
    source.parts.push_back(std::move(*pattern));
  }
  return ok();
}

Result<WeightSource>
WeightReader::readPacked(const WeightNames &names,
                         const std::vector<std::string> &modules) {
  Result<Scheme> scheme = schemeFor(modules[0]);
  if (!scheme)
    return scheme.takeFailure();
  const Format &format = *quantization.format;
  std::string codes = modules[0] + "." + format.parts[0].suffix;
  if (auto found = require(files, codes); !found)
    return fail("module " + modules[0] + " is packed, but not as " +
                format.name + ": " + found.message());
  Result<WeightSpec> spec = packedSpec(names, modules, *scheme);
  if (!spec)
    return spec.takeFailure();
  WeightSource source;
  source.spec = *spec;
  if (Failure failure = attachParts(names, source))
    return failure;
  for (const std::string &module : modules)
    for (const char *suffix : format.checks)
      if (files.find(module + "." + suffix))
        usedTensors.insert(module + "." + suffix);
  source.format = formatText(*scheme, *spec);
  return source;
}

Result<WeightSource>
WeightReader::readDense(const WeightNames &names,
                        const std::vector<std::string> &modules) {
  const TensorView &first = *files.find(modules[0] + ".weight");
  if (first.shape.size() != 2 || !isFloat(first.type))
    return fail("tensor " + modules[0] +
                ".weight: expected a matrix of f16, bf16 or f32, got " +
                std::string(name(first.type)) + " " + shapeText(first.shape));
  // Only compressed-tensors lists every linear that stays dense; a router need
  // not be one.
  bool linear = names.halves == 2 || names.toHidden;
  if (linear && quantization.format == &kCompressedTensors &&
      quantization.schemeOf(modules[0]))
    findings.push_back({false, modules[0] + ".weight",
                        "dense, although the configuration does not ignore "
                        "it"});
  WeightSource source;
  WeightSpec &spec = source.spec;
  spec.layout = findLayout("dense");
  spec.element = first.type;
  spec.experts = std::max<int64_t>(names.experts, 1);
  spec.halves = names.halves;
  spec.output = first.shape[0];
  spec.input = first.shape[1];
  source.format = "dense " + std::string(name(first.type));
  Result<std::vector<StoredPart>> storage = storageOf(spec);
  if (!storage)
    return fail("modules " + names.pattern + ": " + storage.message());
  Result<TensorPattern> pattern =
      makePattern(names, ".weight", 0, first.type, storage->front().shape);
  if (!pattern)
    return pattern.takeFailure();
  source.parts.push_back(std::move(*pattern));
  return source;
}

//===----------------------------------------------------------------------===//
// Biases and vectors
//===----------------------------------------------------------------------===//

Result<std::optional<TensorPattern>>
WeightReader::readBias(const WeightNames &names, const WeightSpec &spec) {
  std::vector<std::string> modules = expand(names.pattern, names.experts);
  for (const char *suffix : {".bias", "_bias"})
    for (const std::string &module : modules) {
      const TensorView *view = files.find(module + suffix);
      if (!view)
        continue;
      if (!isFloat(view->type))
        return fail("tensor " + module + suffix +
                    ": expected f16, bf16 or f32, got " +
                    std::string(name(view->type)));
      std::vector<int64_t> shape = {spec.experts, spec.rows()};
      Result<TensorPattern> pattern =
          names.fused
              ? fusedPart(module + suffix, {Part::Codes, view->type, shape})
              : makePattern(names, suffix, 0, view->type, shape);
      if (!pattern)
        return pattern.takeFailure();
      return std::optional(std::move(*pattern));
    }
  return std::optional<TensorPattern>();
}

Result<TensorPattern> WeightReader::readVector(const std::string &tensor,
                                               int64_t size) {
  Result<const TensorView *> view = require(files, tensor);
  if (!view)
    return view.takeFailure();
  int64_t elements = 1;
  for (int64_t extent : (*view)->shape)
    elements *= extent; // the file was checked to fit 63 bits
  if (!isFloat((*view)->type) || elements != size || (*view)->shape.size() > 2)
    return fail("tensor " + tensor + ": expected " + std::to_string(size) +
                " elements of f16, bf16 or f32, got " +
                std::string(name((*view)->type)) + " " +
                shapeText((*view)->shape));
  usedTensors.insert(tensor);
  TensorPattern pattern;
  pattern.pattern = tensor;
  pattern.type = (*view)->type;
  pattern.shape = {size};
  return pattern;
}
