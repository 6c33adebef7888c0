//===- Encoding.cpp - What encoded tensors say about themselves -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"

using namespace mlir;
using namespace wna16;

static Attribute encodingOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getEncoding() : Attribute();
}

bool wna16::isEncoded(Type type) {
  return isa_and_nonnull<PackedAttr, DenseAttr, BiasAttr>(encodingOf(type));
}

bool wna16::isPacked(Type type) {
  return isa_and_nonnull<PackedAttr>(encodingOf(type));
}

bool wna16::isWeight(Type type) {
  return isa_and_nonnull<PackedAttr, DenseAttr>(encodingOf(type));
}

bool wna16::isPlain(Type type) {
  return isa<RankedTensorType>(type) && !encodingOf(type);
}

bool wna16::isBias(Type type) {
  return isPlain(type) || isa_and_nonnull<BiasAttr>(encodingOf(type));
}

Type wna16::getScalarType(MLIRContext *context, ScalarType type) {
  switch (type) {
  case ScalarType::F16:
    return Float16Type::get(context);
  case ScalarType::BF16:
    return BFloat16Type::get(context);
  case ScalarType::F32:
    return Float32Type::get(context);
  case ScalarType::F64:
    return Float64Type::get(context);
  case ScalarType::Bool:
    return IntegerType::get(context, 1);
  default:
    return IntegerType::get(context, 8 * sizeOf(type));
  }
}

std::optional<ScalarType> wna16::getScalarType(Type type) {
  if (type.isF16())
    return ScalarType::F16;
  if (type.isBF16())
    return ScalarType::BF16;
  if (type.isF32())
    return ScalarType::F32;
  if (type.isF64())
    return ScalarType::F64;
  if (type.isInteger(1))
    return ScalarType::Bool;
  if (type.isInteger(8))
    return ScalarType::U8;
  if (type.isInteger(16))
    return ScalarType::I16;
  if (type.isInteger(32))
    return ScalarType::I32;
  if (type.isInteger(64))
    return ScalarType::I64;
  return std::nullopt;
}

std::optional<WeightSpec> wna16::getWeightSpec(Type type) {
  if (!isWeight(type))
    return std::nullopt;
  auto tensor = cast<RankedTensorType>(type);
  ArrayRef<int64_t> shape = tensor.getShape();
  std::optional<ScalarType> element = getScalarType(tensor.getElementType());
  if (!element || shape.size() < 2 || shape.size() > 4)
    return std::nullopt;
  WeightSpec spec;
  spec.element = *element;
  if (auto packed = dyn_cast<PackedAttr>(tensor.getEncoding())) {
    spec.code = packed.getCode();
    spec.group = packed.getGroup();
    spec.keptGroups = packed.getKeptGroups();
    spec.layout = packed.getLayout();
    spec.scale = packed.getScale();
    spec.zeros = packed.getZeros();
    spec.actOrder = packed.getActOrder();
  } else {
    spec.layout = cast<DenseAttr>(tensor.getEncoding()).getLayout();
  }
  if (shape.size() > 2) {
    spec.experts = shape.front();
    shape = shape.drop_front();
  }
  spec.input = shape.front();
  spec.halves = shape.size() == 3 ? shape[1] : 1;
  spec.output = shape.back();
  return spec;
}

std::optional<WeightSpec> wna16::getBiasSpec(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!isBias(type) || tensor.getRank() < 1 || !tensor.hasStaticShape())
    return std::nullopt;
  WeightSpec spec;
  auto encoding = dyn_cast_or_null<BiasAttr>(tensor.getEncoding());
  spec.layout = encoding ? encoding.getLayout() : findLayout("dense");
  spec.element =
      getScalarType(tensor.getElementType()).value_or(ScalarType::F32);
  spec.experts = tensor.getDimSize(0);
  spec.input = 1;
  spec.halves = tensor.getRank() == 3 ? tensor.getDimSize(1) : 1;
  spec.output = tensor.getShape().back();
  return spec;
}

RankedTensorType wna16::getWeightType(MLIRContext *context,
                                      const WeightSpec &spec, int64_t rank) {
  SmallVector<int64_t> shape;
  if (rank > 2)
    shape.push_back(spec.experts);
  shape.push_back(spec.input);
  if (rank > 3)
    shape.push_back(spec.halves);
  shape.push_back(spec.output);
  Attribute encoding;
  if (spec.code == CodeType::Dense)
    encoding = DenseAttr::get(context, spec.layout);
  else
    encoding =
        PackedAttr::get(context, spec.code, spec.group, spec.keptGroups,
                        spec.layout, spec.scale, spec.zeros, spec.actOrder);
  return RankedTensorType::get(shape, getScalarType(context, spec.element),
                               encoding);
}

Result<ShardType> wna16::getShardType(RankedTensorType source, ShardAxis axis,
                                      Rank rank) {
  if (std::optional<WeightSpec> spec = getWeightSpec(source)) {
    Result<Shard> shard = shardWeight(*spec, axis, rank);
    if (!shard)
      return shard.takeFailure();
    return ShardType{
        getWeightType(source.getContext(), shard->spec, source.getRank()),
        shard->window};
  }
  SmallVector<int64_t> shape(source.getShape());
  Result<Share> share = shareOf(shape.back(), rank);
  if (!share)
    return share.takeFailure();
  shape.back() = share->extent;
  return ShardType{source.clone(shape),
                   {/*input=*/0, /*inputs=*/1, share->begin, share->taken}};
}

SmallVector<RankedTensorType> wna16::getStorageTypes(RankedTensorType type,
                                                     std::string *error) {
  if (isa_and_nonnull<BiasAttr>(type.getEncoding()))
    return {RankedTensorType::get(type.getShape(), type.getElementType())};
  std::optional<WeightSpec> spec = getWeightSpec(type);
  if (!spec)
    return {};
  Result<std::vector<StoredPart>> parts = storageOf(*spec);
  if (!parts) {
    if (error)
      *error = parts.message();
    return {};
  }
  SmallVector<RankedTensorType> types;
  for (const StoredPart &part : *parts) {
    ArrayRef<int64_t> shape = part.shape;
    // One matrix has no expert axis.
    if (type.getRank() == 2 && part.part != Part::GlobalScale)
      shape = shape.drop_front();
    types.push_back(RankedTensorType::get(
        shape, getScalarType(type.getContext(), part.type)));
  }
  return types;
}

SmallVector<StringRef> wna16::getPartNames(RankedTensorType type) {
  if (isa_and_nonnull<BiasAttr>(type.getEncoding()))
    return {"bias"};
  SmallVector<StringRef> names;
  if (std::optional<WeightSpec> spec = getWeightSpec(type))
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec))
      for (const StoredPart &part : *parts)
        names.push_back(name(part.part));
  return names;
}
