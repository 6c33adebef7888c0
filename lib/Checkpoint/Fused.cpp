//===- Fused.cpp - All experts in one tensor ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fused experts are one tensor [experts, rows, columns] for gate and up and
// one for down; one expert's may lack the first extent. Floats come with
// either axis first, and with gate and up one after the other or in turn.
//
//===----------------------------------------------------------------------===//

#include "Weights.h"

#include "Routing.h"

#include "Layout/Catalogue.h"

using namespace wna16;

namespace {

/// Spellings of a part of fused experts: a parameter of a module of its own, or
/// of the experts' module, whose names then lack "weight".
std::vector<std::string> fusedNames(const std::string &module,
                                    const std::string &suffix) {
  constexpr std::string_view kWeight = "weight";
  return {module + "." + suffix, module + suffix.substr(kWeight.size())};
}

std::string findFused(const SafeTensors &files, const std::string &module,
                      const std::string &suffix) {
  for (const std::string &name : fusedNames(module, suffix))
    if (files.find(name) || files.foreign().count(name))
      return name;
  return {};
}

/// The shape with the leading extent that one expert's tensor lacks.
std::vector<int64_t> stacked(const TensorView &view, size_t rank = 3) {
  std::vector<int64_t> shape = view.shape;
  if (shape.size() + 1 == rank)
    shape.insert(shape.begin(), 1);
  return shape;
}

} // namespace

Result<WeightSource> WeightReader::readFused(const WeightNames &names) {
  for (const char *suffix : {"", ".weight"}) {
    std::string tensor = names.pattern + suffix;
    if (files.find(tensor) || files.foreign().count(tensor))
      return readFusedDense(names, tensor);
  }
  std::string codes = kCompressedTensors.parts[0].suffix;
  if (!findFused(files, names.pattern, codes).empty())
    return readFusedPacked(names);
  return fail("missing tensor " + names.pattern +
              ", and no packed form of it that compressed-tensors has");
}

/// Which axis of a fused tensor holds inputs follows from the hidden size;
/// where both fit, the architecture tells.
Result<bool> WeightReader::isTransposed(const WeightNames &names,
                                        const std::string &tensor, int64_t rows,
                                        int64_t columns) const {
  bool straight = (names.toHidden ? rows : columns) == hidden;
  bool transposed = (names.toHidden ? columns : rows) == hidden;
  if (straight && transposed)
    return storesTransposed(config.modelType());
  if (straight || transposed)
    return transposed;
  return fail("tensor " + tensor + " holds [" + std::to_string(rows) + ", " +
              std::to_string(columns) +
              "] of each expert, which does not fit the hidden size " +
              std::to_string(hidden));
}

Failure WeightReader::setExtents(const WeightNames &names,
                                 const std::string &tensor, int64_t experts,
                                 int64_t rows, int64_t input,
                                 WeightSpec &spec) const {
  if (rows % names.halves != 0)
    return fail("tensor " + tensor + ": expected rows of gate and up, got " +
                std::to_string(rows));
  spec.experts = experts;
  spec.halves = names.halves;
  spec.output = rows / names.halves;
  spec.input = input;
  return ok();
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Result<WeightSource> WeightReader::readFusedDense(const WeightNames &names,
                                                  const std::string &tensor) {
  Result<const TensorView *> found = require(files, tensor);
  if (!found)
    return found.takeFailure();
  const TensorView &view = **found;
  if (view.shape.size() < 2 || view.shape.size() > 3 || !isFloat(view.type))
    return fail("tensor " + tensor +
                ": expected [experts, out, in] or [experts, in, out] of f16, "
                "bf16 or f32, got " +
                std::string(name(view.type)) + " " + shapeText(view.shape));
  std::vector<int64_t> shape = stacked(view);
  Result<bool> transposed = isTransposed(names, tensor, shape[1], shape[2]);
  if (!transposed)
    return transposed.takeFailure();
  bool turns = names.halves == 2 && storesInterleaved(config.modelType());
  const char *const layouts[2][2] = {{"dense", "interleaved"},
                                     {"transposed", "transposed_interleaved"}};
  WeightSource source;
  source.spec.layout = findLayout(layouts[*transposed][turns]);
  source.spec.element = view.type;
  if (Failure failure =
          setExtents(names, tensor, shape[0], shape[*transposed ? 2 : 1],
                     shape[*transposed ? 1 : 2], source.spec))
    return failure;
  source.format = "dense " + std::string(name(view.type)) +
                  (*transposed ? ", transposed" : "") +
                  (turns ? ", interleaved" : "");
  Result<std::vector<StoredPart>> storage = storageOf(source.spec);
  if (!storage)
    return fail("tensor " + tensor + ": " + storage.message());
  Result<TensorPattern> pattern = fusedPart(tensor, storage->front());
  if (!pattern)
    return pattern.takeFailure();
  source.parts.push_back(std::move(*pattern));
  return source;
}

/// One tensor that holds a part as it is.
Result<TensorPattern> WeightReader::fusedPart(const std::string &tensor,
                                              const StoredPart &part) {
  Result<const TensorView *> view = require(files, tensor);
  if (!view)
    return view.takeFailure();
  if ((*view)->type != part.type ||
      stacked(**view, part.shape.size()) != part.shape)
    return fail("tensor " + tensor + ": expected " +
                std::string(name(part.type)) + " " + shapeText(part.shape) +
                ", got " + std::string(name((*view)->type)) + " " +
                shapeText((*view)->shape));
  usedTensors.insert(tensor);
  TensorPattern pattern;
  pattern.pattern = tensor;
  pattern.type = part.type;
  pattern.shape = part.shape;
  return pattern;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// The extents [experts, rows, columns] of packed codes. weight_shape says how
/// wide a row is when its last word is not full.
Result<std::vector<int64_t>>
WeightReader::fusedExtents(const std::string &module, const std::string &tensor,
                           int64_t bits) {
  Result<const TensorView *> codes = require(files, tensor);
  if (!codes)
    return codes.takeFailure();
  std::vector<int64_t> extents = stacked(**codes);
  int64_t factor = 32 / bits;
  if ((*codes)->type != ScalarType::I32 || extents.size() != 3 ||
      __builtin_mul_overflow(extents[2], factor, &extents[2]))
    return fail(
        "tensor " + tensor + ": expected i32 [experts, out, words], got " +
        std::string(name((*codes)->type)) + " " + shapeText((*codes)->shape));
  std::string tensorOfShape = findFused(files, module, "weight_shape");
  const TensorView *view = files.find(tensorOfShape);
  if (!view)
    return extents;
  int64_t rank = static_cast<int64_t>((*codes)->shape.size());
  if (view->type != ScalarType::I64 || view->shape != std::vector{rank})
    return fail("tensor " + tensorOfShape + ": expected i64 [" +
                std::to_string(rank) + "], got " +
                std::string(name(view->type)) + " " + shapeText(view->shape));
  usedTensors.insert(tensorOfShape);
  std::vector<int64_t> said;
  for (int64_t i = 0; i < rank; ++i)
    said.push_back(elementAt<int64_t>(*view, i));
  int64_t columns = said.back();
  if (columns > extents[2] - factor && columns <= extents[2])
    extents[2] = columns;
  std::vector<int64_t> held(extents.end() - rank, extents.end());
  if (said != held)
    return fail("tensor " + tensorOfShape + " says " + shapeText(said) +
                ", but " + tensor + " holds " + shapeText(held));
  return extents;
}

/// Packing runs along the last axis, which has to be the input.
Result<WeightSpec> WeightReader::fusedSpec(const WeightNames &names,
                                           const std::string &codes,
                                           const std::string &scales,
                                           const Scheme &scheme) {
  Result<std::vector<int64_t>> extents =
      fusedExtents(names.pattern, codes, scheme.bits);
  if (!extents)
    return extents.takeFailure();
  Result<bool> transposed =
      isTransposed(names, codes, (*extents)[1], (*extents)[2]);
  if (!transposed)
    return transposed.takeFailure();
  if (*transposed)
    return fail("tensor " + codes +
                " is packed along outputs ([experts, in, out]); packed along "
                "inputs is supported");
  if (scheme.actOrder)
    return fail("tensor " + codes +
                ": act-order of fused experts is not "
                "supported; expert by expert it is");
  Result<WeightSpec> spec = schemeSpec(scheme, scales);
  if (!spec)
    return spec.takeFailure();
  bool turns = names.halves == 2 && storesInterleaved(config.modelType());
  spec->layout = findLayout(turns ? "interleaved" : kCompressedTensors.layout);
  if (Failure failure = setExtents(names, codes, (*extents)[0], (*extents)[1],
                                   (*extents)[2], *spec))
    return failure;
  return spec;
}

Result<WeightSource> WeightReader::readFusedPacked(const WeightNames &names) {
  const Format &format = kCompressedTensors;
  auto tensorOf = [&](const PartSuffix &part) {
    std::string found = findFused(files, names.pattern, part.suffix);
    return found.empty() ? fusedNames(names.pattern, part.suffix).front()
                         : found;
  };
  if (quantization.format && quantization.format != &format)
    return fail("module " + names.pattern + " is packed as " + format.name +
                ", but the configuration says " + quantization.format->name);
  std::string codes = tensorOf(format.parts[0]);
  Result<Scheme> scheme = schemeFor(names.pattern);
  if (!scheme)
    return scheme.takeFailure();
  Result<WeightSpec> spec =
      fusedSpec(names, codes, tensorOf(format.parts[1]), *scheme);
  if (!spec)
    return spec.takeFailure();
  WeightSource source;
  source.spec = *spec;
  source.format = formatText(*scheme, *spec);
  Result<std::vector<StoredPart>> storage = storageOf(*spec);
  if (!storage)
    return fail("module " + names.pattern + ": " + storage.message());
  for (const StoredPart &part : *storage)
    for (const PartSuffix &row : format.parts) {
      if (row.part != part.part)
        continue;
      Result<TensorPattern> pattern = fusedPart(tensorOf(row), part);
      if (!pattern)
        return pattern.takeFailure();
      source.parts.push_back(std::move(*pattern));
    }
  return source;
}
