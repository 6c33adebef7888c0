//===- BenchLayer.cpp - A layer of random experts to run ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchLayer.h"

#include "Layout/Move.h"
#include "Layout/Scalar.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

using namespace wna16;

/// Weights of at least this size do not stay in caches from call to call.
static constexpr int64_t kLeastBytes = int64_t(256) << 20;
static constexpr int64_t kRoutings = 16;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Any bits are codes; scales make values of about a fiftieth.
BenchLayer::WeightMemory BenchLayer::makeWeight(const BenchWeight &weight) {
  const WeightSpec &spec = weight.spec;
  WeightMemory parts;
  for (const StoredPart &part : weight.stored) {
    PageMemory &memory = parts.emplace_back(part.bytes());
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
  return parts;
}

WeightBuffers BenchLayer::buffersOf(const BenchWeight &weight,
                                    const WeightMemory &memory) {
  WeightBuffers result;
  for (size_t i = 0; i < memory.size(); ++i)
    result.part[static_cast<size_t>(weight.stored[i].part)] = memory[i].data();
  return result;
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<BenchLayer>>
BenchLayer::create(const BenchOptions &options) {
  Result<LayerPlan> plan = LayerPlan::create(options);
  if (!plan)
    return plan.takeFailure();
  wna16_set_num_threads(options.threads);
  std::unique_ptr<BenchLayer> bench(new BenchLayer(options, std::move(*plan)));
  const LayerPlan &layer = bench->layer;
  for (int64_t have = 0; have < kLeastBytes;
       have += std::max<int64_t>(layer.bytes(), 1))
    bench->copies.push_back(
        {bench->makeWeight(layer.w13), bench->makeWeight(layer.w2)});
  return bench;
}

Failure BenchLayer::setTokens(int64_t count) {
  tokens = count;
  workspaceBytes = wna16_cpu_fused_experts_workspace(&layer.plan, tokens);
  if (workspaceBytes < 0)
    return fail(wna16_status_message());
  const int64_t elements = tokens * options.hidden;
  const int64_t size = sizeOf(options.element);
  x.resize(elements * size);
  y.assign(elements * size, 0);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < elements; ++i)
    storeFloat(options.element, x.data(), i, normal(random));
  routings.clear();
  for (int64_t r = 0; r < kRoutings; ++r)
    routings.emplace_back(options, tokens, random);
  workspace = std::make_unique<PageMemory>(workspaceBytes);
  return ok();
}

const char *BenchLayer::kernelName() const {
  const char *name = wna16_cpu_fused_experts_kernel(&layer.plan, tokens);
  return name ? name : "none";
}

Failure BenchLayer::call(int64_t index) {
  last = index;
  const BenchRouting &chosen = routing(index);
  const std::vector<int64_t> shape = {tokens, options.hidden};
  const std::vector<int64_t> slots = {tokens, options.topK};
  BenchTensors tensors(/*deviceType=*/1);
  tensors.add(x.data(), options.element, shape);
  tensors.add(chosen.weights.data(), ScalarType::F32, slots);
  tensors.add(chosen.ids.data(), ScalarType::I32, slots);
  tensors.add(layer.w13, buffersOf(layer.w13, copy(index).w13));
  tensors.add(layer.w2, buffersOf(layer.w2, copy(index).w2));
  tensors.addAbsent(3); // biases and expert map
  tensors.add(y.data(), options.element, shape);
  wna16_status_clear();
  if (wna16_cpu_fused_experts(&layer.plan, tensors.get(), tensors.count(),
                              workspace->data(), workspaceBytes,
                              nullptr) == WNA16_OK)
    return ok();
  return fail(wna16_status_message());
}

double BenchLayer::touchedBytes(int64_t index) const {
  return static_cast<double>(routing(index).touched) * layer.expertBytes();
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
  const Copy &weights = copy(last);
  const BenchRouting &chosen = routing(last);
  std::vector<double> input, gateUp, hidden, rows, sum(options.hidden);
  for (int64_t k = 0; k < options.hidden; ++k)
    input.push_back(
        loadFloat(options.element, x.data(), token * options.hidden + k));
  for (int64_t slot = 0; slot < options.topK; ++slot) {
    const int64_t at = token * options.topK + slot;
    if (multiply(layer.w13.spec, buffersOf(layer.w13, weights.w13),
                 chosen.ids[at], input, gateUp))
      return {};
    hidden.clear();
    for (int64_t n = 0; n < options.width; ++n)
      hidden.push_back(gateUp[n] / (1 + std::exp(-gateUp[n])) *
                       gateUp[n + options.width]);
    if (multiply(layer.w2.spec, buffersOf(layer.w2, weights.w2), chosen.ids[at],
                 hidden, rows))
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
