//===- BenchLayer.cpp - A layer of random experts to run ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchLayer.h"

#include "Layout/Catalogue.h"
#include "Layout/Move.h"
#include "Layout/Scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace wna16;

/// Weights of at least this size do not stay in caches from call to call.
static constexpr int64_t kLeastBytes = int64_t(256) << 20;
static constexpr int64_t kRoutings = 16;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static CodeType codeOf(const BenchOptions &options, const LayoutEntry &layout) {
  const bool stored = options.zeroPoints || layout.needsZeros;
  if (options.bits == 8)
    return stored ? CodeType::U8 : CodeType::U8B128;
  return stored ? CodeType::U4 : CodeType::U4B8;
}

Failure BenchLayer::Weight::init(const BenchOptions &options, int64_t input,
                                 int64_t halves, int64_t output) {
  spec.layout = findLayout(options.layout);
  if (!spec.layout)
    return fail("expected a known layout, got " + options.layout);
  spec.code = codeOf(options, *spec.layout);
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
  stored = *parts;
  for (const StoredPart &part : stored)
    expertBytes +=
        static_cast<double>(part.bytes()) / static_cast<double>(spec.experts);
  plan.code = static_cast<int64_t>(spec.code);
  plan.element = static_cast<int64_t>(spec.element);
  plan.scale = static_cast<int64_t>(spec.scale);
  plan.zeros = static_cast<int64_t>(spec.zeros);
  plan.group = spec.group;
  plan.layout = spec.layout->id;
  plan.experts = spec.experts;
  plan.input = spec.input;
  plan.halves = spec.halves;
  plan.output = spec.output;
  return ok();
}

int64_t BenchLayer::Weight::bytes() const {
  return std::accumulate(
      stored.begin(), stored.end(), int64_t(0),
      [](int64_t sum, const StoredPart &part) { return sum + part.bytes(); });
}

/// Any bits are codes; scales make values of about a fiftieth.
void BenchLayer::Weight::addCopy(std::mt19937_64 &random) {
  std::vector<PageMemory> copy;
  for (const StoredPart &part : stored) {
    PageMemory &memory = copy.emplace_back(part.bytes());
    if (part.part == Part::Scales) {
      const float unit = spec.bits() == 4 ? 0.004f : 0.00025f;
      for (int64_t i = 0; i < part.elements(); ++i)
        storeFloat(spec.scale, memory.data(), i,
                   unit * (1.0f + static_cast<float>(random() % 256) / 256));
      continue;
    }
    const uint64_t mask = part.part == Part::Zeros && spec.bits() == 4
                              ? 0x0f0f0f0f0f0f0f0f
                              : ~uint64_t(0);
    for (int64_t at = 0; at < part.bytes(); at += 8) {
      const uint64_t bits = random() & mask;
      std::memcpy(memory.data() + at, &bits,
                  std::min<int64_t>(8, part.bytes() - at));
    }
  }
  parts.push_back(std::move(copy));
}

WeightBuffers BenchLayer::Weight::buffers(int64_t copy) const {
  WeightBuffers result;
  for (size_t i = 0; i < stored.size(); ++i)
    result.part[static_cast<size_t>(stored[i].part)] = parts[copy][i].data();
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static wna16_dtype typeOf(ScalarType type) {
  switch (type) {
  case ScalarType::BF16:
    return {4, 16, 1};
  case ScalarType::F16:
    return {2, 16, 1};
  case ScalarType::F32:
    return {2, 32, 1};
  case ScalarType::I8:
    return {0, 8, 1};
  case ScalarType::U8:
    return {1, 8, 1};
  default:
    return {0, 32, 1};
  }
}

static wna16_tensor tensorOf(const void *data, ScalarType type,
                             const std::vector<int64_t> &shape) {
  return {const_cast<void *>(data),
          {1, 0},
          static_cast<int32_t>(shape.size()),
          typeOf(type),
          const_cast<int64_t *>(shape.data()),
          nullptr,
          0};
}

void BenchLayer::Weight::appendTensors(
    int64_t copy, std::vector<wna16_tensor> &tensors) const {
  const size_t first = tensors.size();
  tensors.resize(first + WNA16_WEIGHT_TENSORS);
  for (size_t i = 0; i < stored.size(); ++i)
    tensors[first + static_cast<size_t>(stored[i].part)] =
        tensorOf(parts[copy][i].data(), stored[i].type, stored[i].shape);
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<BenchLayer>>
BenchLayer::create(const BenchOptions &options) {
  if (options.topK < 1 || options.topK > options.experts)
    return fail("expected 1 to " + std::to_string(options.experts) +
                " experts a token, got " + std::to_string(options.topK));
  if (options.bits != 4 && options.bits != 8)
    return fail("expected codes of 4 or 8 bits, got " +
                std::to_string(options.bits));
  std::unique_ptr<BenchLayer> layer(new BenchLayer(options));
  wna16_set_num_threads(options.threads);
  if (Failure bad = layer->w13.init(options, options.hidden, 2, options.width))
    return fail("w13: " + bad.message);
  if (Failure bad = layer->w2.init(options, options.width, 1, options.hidden))
    return fail("w2: " + bad.message);
  const int64_t bytes = layer->w13.bytes() + layer->w2.bytes();
  for (int64_t have = 0; have < kLeastBytes;
       have += std::max<int64_t>(bytes, 1)) {
    layer->w13.addCopy(layer->random);
    layer->w2.addCopy(layer->random);
  }
  wna16_experts_plan &plan = layer->plan;
  plan.abi_version = WNA16_ABI_VERSION;
  plan.w13 = layer->w13.plan;
  plan.w2 = layer->w2.plan;
  plan.hidden = options.hidden;
  plan.element = static_cast<int64_t>(options.element);
  plan.top_k = options.topK;
  plan.activation = WNA16_SILU;
  plan.limit = std::numeric_limits<double>::infinity();
  return layer;
}

Failure BenchLayer::setTokens(int64_t count) {
  tokens = count;
  const int64_t elements = tokens * options.hidden;
  const int64_t size = sizeOf(options.element);
  x.resize(elements * size);
  y.assign(elements * size, 0);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < elements; ++i)
    storeFloat(options.element, x.data(), i, normal(random));
  routings.clear();
  std::vector<int32_t> experts(options.experts);
  std::iota(experts.begin(), experts.end(), 0);
  for (int64_t r = 0; r < kRoutings; ++r) {
    Routing routing;
    std::vector<bool> touched(options.experts);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < options.topK; ++k) {
        std::swap(experts[k], experts[k + random() % (options.experts - k)]);
        routing.ids.push_back(experts[k]);
        routing.weights.push_back(1.0f / static_cast<float>(options.topK));
        touched[experts[k]] = true;
      }
    routing.touched = std::count(touched.begin(), touched.end(), true);
    routings.push_back(std::move(routing));
  }
  workspaceBytes = wna16_cpu_fused_experts_workspace(&plan, tokens);
  if (workspaceBytes < 0)
    return fail(wna16_status_message());
  workspace = std::make_unique<PageMemory>(workspaceBytes);
  return ok();
}

const char *BenchLayer::kernelName() const {
  const char *name = wna16_cpu_fused_experts_kernel(&plan, tokens);
  return name ? name : "none";
}

Failure BenchLayer::call(int64_t index) {
  last = index;
  const int64_t copy = index % copies();
  const Routing &chosen = routing(index);
  const std::vector<int64_t> shape = {tokens, options.hidden};
  const std::vector<int64_t> slots = {tokens, options.topK};
  std::vector<wna16_tensor> tensors = {
      tensorOf(x.data(), options.element, shape),
      tensorOf(chosen.weights.data(), ScalarType::F32, slots),
      tensorOf(chosen.ids.data(), ScalarType::I32, slots)};
  w13.appendTensors(copy, tensors);
  w2.appendTensors(copy, tensors);
  tensors.resize(tensors.size() + 3); // biases and expert map
  tensors.push_back(tensorOf(y.data(), options.element, shape));
  wna16_status_clear();
  if (wna16_cpu_fused_experts(
          &plan, tensors.data(), static_cast<int64_t>(tensors.size()),
          workspace->data(), workspaceBytes, nullptr) == WNA16_OK)
    return ok();
  return fail(wna16_status_message());
}

double BenchLayer::touchedBytes(int64_t index) const {
  return static_cast<double>(routing(index).touched) *
         (w13.expertBytes + w2.expertBytes);
}

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

/// row . x for all rows of an expert.
static Failure multiply(const WeightSpec &spec, const WeightBuffers &buffers,
                        int64_t expert, const std::vector<double> &x,
                        std::vector<double> &out) {
  std::vector<int64_t> table(RowDecoder::tableBytes(spec) / 8 + 1);
  RowDecoder decoder;
  if (Failure bad = decoder.init(spec, buffers, table.data()))
    return bad;
  std::vector<float> row(spec.input);
  out.clear();
  for (int64_t r = 0; r < spec.rows(); ++r) {
    decoder.decode(expert, r, row.data());
    out.push_back(std::inner_product(row.begin(), row.end(), x.begin(), 0.0));
  }
  return ok();
}

std::vector<double> BenchLayer::referenceOf(int64_t token) const {
  const int64_t copy = last % copies();
  const Routing &chosen = routing(last);
  std::vector<double> input, gateUp, hidden, rows, sum(options.hidden);
  for (int64_t k = 0; k < options.hidden; ++k)
    input.push_back(
        loadFloat(options.element, x.data(), token * options.hidden + k));
  for (int64_t slot = 0; slot < options.topK; ++slot) {
    const int64_t at = token * options.topK + slot;
    if (multiply(w13.spec, w13.buffers(copy), chosen.ids[at], input, gateUp))
      return {};
    hidden.clear();
    for (int64_t n = 0; n < options.width; ++n)
      hidden.push_back(gateUp[n] / (1 + std::exp(-gateUp[n])) *
                       gateUp[n + options.width]);
    if (multiply(w2.spec, w2.buffers(copy), chosen.ids[at], hidden, rows))
      return {};
    for (int64_t k = 0; k < options.hidden; ++k)
      sum[k] += chosen.weights[at] * rows[k];
  }
  return sum;
}

double BenchLayer::errorOfToken(int64_t token) const {
  if (tokens == 0)
    return 0;
  const std::vector<double> expected = referenceOf(token);
  double difference = 0, norm = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const double value =
        loadFloat(options.element, y.data(), token * options.hidden + k);
    difference += (value - expected[k]) * (value - expected[k]);
    norm += expected[k] * expected[k];
  }
  return expected.empty() ? std::numeric_limits<double>::infinity()
                          : std::sqrt(difference / norm);
}
