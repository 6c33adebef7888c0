//===- LayerPlan.cpp - A layer of experts to be measured ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerPlan.h"

#include "Layout/Catalogue.h"
#include "Runtime/DType.h"
#include "Runtime/Weight.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static CodeType codeOf(const BenchOptions &options) {
  if (options.bits == 8)
    return options.zeroPoints ? CodeType::U8 : CodeType::U8B128;
  return options.zeroPoints ? CodeType::U4 : CodeType::U4B8;
}

Result<BenchWeight> BenchWeight::create(const BenchOptions &options,
                                        int64_t input, int64_t halves,
                                        int64_t output) {
  BenchWeight weight;
  WeightSpec &spec = weight.spec;
  spec.layout = findLayout(options.layout);
  if (!spec.layout)
    return fail("expected a known layout, got " + options.layout);
  spec.code = codeOf(options);
  spec.element = options.element;
  spec.scale = spec.layout->scaleType.value_or(options.element);
  spec.zeros = spec.code == CodeType::U4 || spec.code == CodeType::U8
                   ? ZeroPoints::Plain
                   : ZeroPoints::None;
  spec.group = options.group;
  spec.experts = options.experts;
  spec.input = input;
  spec.halves = halves;
  spec.output = output;
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  if (!parts)
    return parts.takeFailure();
  weight.stored = std::move(*parts);
  return weight;
}

int64_t BenchWeight::bytes() const {
  return std::accumulate(
      stored.begin(), stored.end(), int64_t(0),
      [](int64_t sum, const StoredPart &part) { return sum + part.bytes(); });
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

/// Makes both weights.
static Failure makeWeights(const BenchOptions &options, LayerPlan &layer) {
  Result<BenchWeight> w13 =
      BenchWeight::create(options, options.hidden, 2, options.width);
  if (!w13)
    return w13.takeFailure();
  Result<BenchWeight> w2 =
      BenchWeight::create(options, options.width, 1, options.hidden);
  if (!w2)
    return w2.takeFailure();
  layer.w13 = std::move(*w13);
  layer.w2 = std::move(*w2);
  return ok();
}

static bool isHeld(const BenchOptions &options) {
  LayerPlan layer;
  return !makeWeights(options, layer);
}

/// The least extents above those of the options that their layout holds, as
/// each is an input of one weight and an output of the other; none where the
/// shape is not what is wrong.
static std::optional<BenchOptions> paddedOf(const BenchOptions &options) {
  constexpr int64_t kMostTile = 256;
  const int64_t group = std::max<int64_t>(options.group, 1);
  for (int64_t tile = 1; tile <= kMostTile; tile *= 2) {
    const int64_t multiple = std::lcm(group, tile);
    auto up = [&](int64_t extent) {
      return (extent + multiple - 1) / multiple * multiple;
    };
    for (auto [hidden, width] :
         {std::pair(up(options.hidden), options.width),
          std::pair(options.hidden, up(options.width)),
          std::pair(up(options.hidden), up(options.width))}) {
      BenchOptions padded = options;
      padded.hidden = hidden;
      padded.width = width;
      if (isHeld(padded))
        return padded;
    }
  }
  return std::nullopt;
}

static std::string groupText(int64_t group) {
  return "--group " + (group == -1 ? "channel" : std::to_string(group));
}

/// Why the layout does not hold the weights, in terms of the options.
static Failure explain(const BenchOptions &options, Failure reason) {
  const std::optional<BenchOptions> padded = paddedOf(options);
  if (!padded)
    return reason;
  std::string text = "layout " + options.layout + " with " +
                     groupText(options.group) +
                     " does not hold K = " + std::to_string(options.hidden) +
                     " and N = " + std::to_string(options.width) +
                     "; take K = " + std::to_string(padded->hidden) +
                     " and N = " + std::to_string(padded->width);
  for (int64_t group : {128, 64, 32, -1}) {
    BenchOptions other = options;
    other.group = group;
    if (isHeld(other)) {
      text += ", or " + groupText(group);
      break;
    }
  }
  return fail(text);
}

Result<LayerPlan> LayerPlan::create(const BenchOptions &options) {
  if (options.topK < 1 || options.topK > options.experts)
    return fail("expected 1 to " + std::to_string(options.experts) +
                " experts a token, got " + std::to_string(options.topK));
  if (options.bits != 4 && options.bits != 8)
    return fail("expected codes of 4 or 8 bits, got " +
                std::to_string(options.bits));
  LayerPlan layer;
  if (Failure bad = makeWeights(options, layer))
    return explain(options, std::move(bad));
  wna16_experts_plan &plan = layer.plan;
  plan.abi_version = WNA16_ABI_VERSION;
  plan.w13 = weightOf(layer.w13.spec);
  plan.w2 = weightOf(layer.w2.spec);
  plan.hidden = options.hidden;
  plan.element = static_cast<int64_t>(options.element);
  plan.top_k = options.topK;
  plan.activation = WNA16_SILU;
  plan.limit = std::numeric_limits<double>::infinity();
  return layer;
}

double LayerPlan::flops(int64_t tokens) const {
  return 6.0 * static_cast<double>(tokens * plan.top_k) *
         static_cast<double>(plan.hidden * w2.spec.input);
}

BenchRouting::BenchRouting(const BenchOptions &options, int64_t tokens,
                           std::mt19937_64 &random) {
  std::vector<int32_t> pool(options.experts);
  std::iota(pool.begin(), pool.end(), 0);
  std::vector<bool> seen(options.experts);
  for (int64_t t = 0; t < tokens; ++t) {
    const size_t first = ids.size();
    float sum = 0;
    for (int64_t i = 0; i < options.topK; ++i) {
      std::swap(pool[i], pool[i + random() % (options.experts - i)]);
      if (options.skewed && i == 0 && t % 2 == 0)
        std::swap(*std::find(pool.begin(), pool.end(), 0), pool[0]);
      ids.push_back(pool[i]);
      seen[pool[i]] = true;
      weights.push_back(0.1f + static_cast<float>(random() % 1000) / 1000);
      sum += weights.back();
    }
    for (size_t i = first; i < weights.size(); ++i)
      weights[i] /= sum;
  }
  touched = std::count(seen.begin(), seen.end(), true);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void BenchTensors::resize(size_t count) {
  shapes.resize(count);
  tensors.resize(count);
}

void BenchTensors::set(size_t index, const void *data, ScalarType type,
                       std::vector<int64_t> shape) {
  wna16_tensor &tensor = tensors[index];
  tensor.data = const_cast<void *>(data);
  tensor.device = {deviceType, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dtypeOf(type);
  shapes[index] = std::move(shape);
}

void BenchTensors::add(const void *data, ScalarType type,
                       std::vector<int64_t> shape) {
  addAbsent(1);
  set(shapes.size() - 1, data, type, std::move(shape));
}

void BenchTensors::add(const BenchWeight &weight,
                       const WeightBuffers &buffers) {
  const size_t first = shapes.size();
  addAbsent(WNA16_WEIGHT_TENSORS);
  for (const StoredPart &part : weight.stored)
    set(first + static_cast<size_t>(part.part), buffers.get(part.part),
        part.type, part.shape);
}

const wna16_tensor *BenchTensors::get() {
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].shape = shapes[i].empty() ? nullptr : shapes[i].data();
  return tensors.data();
}
