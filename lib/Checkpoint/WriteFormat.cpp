//===- WriteFormat.cpp - What a module becomes in a format ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/TargetFormat.h"

#include "Format.h"

#include "Layout/Catalogue.h"

#include <algorithm>
#include <cstring>

using namespace wna16;

namespace {

const TargetFormat kTargets[] = {
    {"gptq", "gptq", "gptq", ZeroPoints::MinusOne, /*needsZeros=*/false,
     /*eightBits=*/true, /*actOrder=*/true, /*wholeGroups=*/false,
     &WeightSpec::input},
    {"gptq_v2", "gptq", "gptq", ZeroPoints::Plain, /*needsZeros=*/false,
     /*eightBits=*/true, /*actOrder=*/true, /*wholeGroups=*/false,
     &WeightSpec::input},
    {"awq", "awq", "awq", ZeroPoints::Plain, /*needsZeros=*/true,
     /*eightBits=*/false, /*actOrder=*/false, /*wholeGroups=*/true,
     &WeightSpec::output},
    {"compressed-tensors", "compressed-tensors", "compressed_tensors",
     ZeroPoints::Plain, /*needsZeros=*/false, /*eightBits=*/true,
     /*actOrder=*/true, /*wholeGroups=*/false, nullptr},
    {"dense", nullptr, "dense", ZeroPoints::None, /*needsZeros=*/false,
     /*eightBits=*/true, /*actOrder=*/true, /*wholeGroups=*/false, nullptr},
};

std::string nextMultiple(int64_t extent, int64_t unit) {
  return "; the next multiple of " + std::to_string(unit) + " is " +
         std::to_string((extent / unit + 1) * unit);
}

Failure checkHolds(const TargetFormat &format, const WeightSpec &source) {
  std::string has = std::string(format.name) + " has ";
  if (source.code == CodeType::Dense)
    return fail("quantising floats is not exact; the source must be packed");
  if (source.bits() == 8 && !format.eightBits)
    return fail(has + "4-bit codes alone, got 8 bits; gptq, gptq_v2 and "
                      "compressed-tensors have 8");
  if (source.actOrder != ActOrder::None && !format.actOrder)
    return fail(has + "no act-order; gptq, gptq_v2 and compressed-tensors do");
  if (source.group > 0 && format.wholeGroups &&
      source.input % source.group != 0)
    return fail(has + "whole groups alone, got an input of " +
                std::to_string(source.input) + " in groups of " +
                std::to_string(source.group) +
                nextMultiple(source.input, source.group));
  int64_t word = 32 / source.bits();
  if (format.words && source.*format.words % word != 0)
    return fail(has + "whole words alone, got an extent of " +
                std::to_string(source.*format.words) +
                nextMultiple(source.*format.words, word));
  return ok();
}

} // namespace

const TargetFormat *wna16::findTargetFormat(std::string_view name) {
  for (const TargetFormat &row : kTargets)
    if (name == row.name)
      return &row;
  return nullptr;
}

Result<WeightSpec> wna16::specIn(const TargetFormat &format,
                                 const WeightSpec &source) {
  if (Failure failure = checkHolds(format, source))
    return failure;
  WeightSpec target = source;
  target.layout = findLayout(format.layout);
  bool hasZeros = source.zeros != ZeroPoints::None || format.needsZeros;
  target.zeros = hasZeros ? format.zeros : ZeroPoints::None;
  if (hasZeros)
    target.code = source.bits() == 4 ? CodeType::U4 : CodeType::U8;
  if (!format.method) {
    target.code = CodeType::Dense;
    target.zeros = ZeroPoints::None;
    target.actOrder = ActOrder::None;
    target.group = -1;
  }
  if (Result<std::vector<StoredPart>> parts = storageOf(target); !parts)
    return parts.takeFailure();
  return target;
}

TargetScheme TargetScheme::of(const WeightSpec &spec) {
  return {spec.bits(), spec.group, spec.zeros == ZeroPoints::None,
          spec.actOrder != ActOrder::None};
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

/// The tensors that only help readers, by format.
std::vector<ModuleTensor> constantsOf(const Format &format,
                                      const std::string &module,
                                      const WeightSpec &spec,
                                      const TargetScheme &scheme) {
  std::vector<ModuleTensor> list;
  auto add = [&](const char *suffix, ScalarType type,
                 std::vector<int64_t> shape, ModuleTensor::Content content) {
    list.push_back({{module + "." + suffix, type, std::move(shape)},
                    content,
                    Part::Codes});
  };
  bool isGPTQ = &format == &kGPTQ;
  int64_t word = 32 / spec.bits();
  if (isGPTQ && spec.zeros == ZeroPoints::None)
    add("qzeros", ScalarType::I32,
        {spec.groups(), (spec.output + word - 1) / word},
        ModuleTensor::ImpliedZeros);
  const char *index = format.suffixOf(Part::GroupIndex);
  if (index && spec.actOrder == ActOrder::None && (isGPTQ || scheme.actOrder))
    add(index, ScalarType::I32, {spec.input}, ModuleTensor::GroupIndex);
  if (&format == &kCompressedTensors)
    add("weight_shape", ScalarType::I64, {2}, ModuleTensor::Shape);
  return list;
}

} // namespace

Result<std::vector<ModuleTensor>> wna16::tensorsOf(const TargetFormat &target,
                                                   const std::string &module,
                                                   const WeightSpec &spec,
                                                   const TargetScheme &scheme) {
  Result<std::vector<StoredPart>> storage = storageOf(spec);
  if (!storage)
    return storage.takeFailure();
  const Format *format = nullptr;
  if (target.method) {
    Result<const Format *> found = findFormat(target.method);
    if (!found)
      return found.takeFailure();
    format = *found;
  }
  std::vector<ModuleTensor> list;
  for (const StoredPart &part : *storage) {
    const char *suffix = format ? format->suffixOf(part.part) : "weight";
    // The file's tensors lack the leading extent, of experts.
    list.push_back({{module + "." + suffix,
                     part.type,
                     {part.shape.begin() + 1, part.shape.end()}},
                    ModuleTensor::Stored,
                    part.part});
  }
  if (format)
    for (ModuleTensor &tensor : constantsOf(*format, module, spec, scheme))
      list.push_back(std::move(tensor));
  return list;
}

void wna16::fillConstant(const TargetFormat &format, const ModuleTensor &tensor,
                         const WeightSpec &spec, uint8_t *out) {
  auto store = [&](int64_t index, auto value) {
    std::memcpy(out + index * int64_t(sizeof value), &value, sizeof value);
  };
  switch (tensor.content) {
  case ModuleTensor::Stored:
    return;
  case ModuleTensor::ImpliedZeros: {
    const std::vector<int64_t> &shape = tensor.tensor.shape;
    uint32_t field = 1u << (spec.bits() - 1);
    if (format.zeros == ZeroPoints::MinusOne)
      --field;
    uint32_t fields = spec.bits() == 4 ? 0x11111111u : 0x01010101u;
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
      store(i, field * fields);
    return;
  }
  case ModuleTensor::GroupIndex:
    for (int64_t k = 0; k < spec.input; ++k)
      store(k, static_cast<int32_t>(spec.group > 0 ? k / spec.group : 0));
    return;
  case ModuleTensor::Shape:
    store(0, spec.output);
    store(1, spec.input);
    return;
  }
}

Failure wna16::checkStoredZeros(const TargetFormat &format,
                                const WeightSpec &spec, const uint8_t *zeros) {
  if (format.zeros != ZeroPoints::MinusOne || spec.zeros == ZeroPoints::None)
    return ok();
  Result<AddressMap> map = zeroAddresses(spec);
  if (!map)
    return map.takeFailure();
  int bits = spec.bits();
  uint32_t wrapped = (1u << bits) - 1;
  for (int64_t group = 0; group < spec.groups(); ++group)
    for (int64_t row = 0; row < spec.rows(); ++row) {
      int64_t bit = (map->group(group) + map->row(row)) * bits;
      if ((zeros[bit / 8] >> bit % 8 & wrapped) == wrapped)
        return fail("zero point 0 of group " + std::to_string(group) +
                    ", output " + std::to_string(row) + ": " + format.name +
                    " stores one less, which wraps, and its readers do not "
                    "agree on what that means; use gptq_v2");
    }
  return ok();
}
