//===- TestSupport.cpp - Tensors, weights and a reference for the tests ---===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace wna16;
using namespace wna16test;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

HostTensor::HostTensor(ScalarType type, std::vector<int64_t> shape)
    : type(type), shape(std::move(shape)), storage(bytes() / 8 + 1) {}

int64_t HostTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

int64_t HostTensor::bytes() const {
  return present() ? elements() * sizeOf(type) : 0;
}

static float bf16ToFloat(uint16_t value) {
  uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

/// By search among the neighbours, unlike the runtime.
static uint16_t toBF16(double value) {
  float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  auto low = static_cast<uint16_t>(bits >> 16);
  auto high = static_cast<uint16_t>(low + 1);
  double below = std::fabs(value - bf16ToFloat(low));
  double above = std::fabs(bf16ToFloat(high) - value);
  if (below != above)
    return below < above ? low : high;
  return low & 1 ? high : low;
}

double HostTensor::get(int64_t i) const {
  const char *bytes = reinterpret_cast<const char *>(storage.data());
  if (type == ScalarType::F32)
    return reinterpret_cast<const float *>(bytes)[i];
  if (type == ScalarType::BF16)
    return bf16ToFloat(reinterpret_cast<const uint16_t *>(bytes)[i]);
  return static_cast<double>(reinterpret_cast<const _Float16 *>(bytes)[i]);
}

void HostTensor::set(int64_t i, double value) {
  if (type == ScalarType::F32)
    as<float>()[i] = static_cast<float>(value);
  else if (type == ScalarType::BF16)
    as<uint16_t>()[i] = toBF16(value);
  else
    as<_Float16>()[i] = static_cast<_Float16>(value);
}

std::vector<double> HostTensor::values() const {
  std::vector<double> result(elements());
  for (int64_t i = 0; i < elements(); ++i)
    result[i] = get(i);
  return result;
}

void HostTensor::fill(uint8_t byte) {
  std::fill(storage.begin(), storage.end(), byte * 0x0101010101010101u);
}

bool HostTensor::sameBytes(const HostTensor &other) const {
  if (type != other.type || shape != other.shape)
    return false;
  return bytes() == 0 || !std::memcmp(data(), other.data(), bytes());
}

wna16_tensor HostTensor::view() {
  static constexpr wna16_dtype kDTypes[] = {
      {2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {0, 8, 1},
      {1, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1}, {6, 8, 1}};
  if (!present())
    return {};
  wna16_tensor tensor = {};
  tensor.data = data();
  tensor.device = {1, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = kDTypes[static_cast<int64_t>(type)];
  tensor.shape = shape.data();
  return tensor;
}

HostTensor wna16test::randomTensor(Random &random, ScalarType type,
                                   std::vector<int64_t> shape,
                                   double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  HostTensor tensor(type, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.set(i, normal(random));
  return tensor;
}

HostTensor wna16test::indexTensor(std::vector<int64_t> shape,
                                  const std::vector<int32_t> &values) {
  HostTensor tensor(ScalarType::I32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<int32_t>());
  return tensor;
}

double wna16test::roundTo(ScalarType type, double value) {
  HostTensor one(type, {1});
  one.set(0, value);
  return one.get(0);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

int64_t wna16test::layoutId(const char *name) {
  const LayoutEntry *layout = findLayout(name);
  EXPECT_NE(layout, nullptr) << name;
  return layout ? layout->id : -1;
}

WeightSpec wna16test::specOf(const wna16_weight &plan) {
  WeightSpec spec;
  spec.code = static_cast<CodeType>(plan.code);
  spec.element = static_cast<ScalarType>(plan.element);
  spec.scale = static_cast<ScalarType>(plan.scale);
  spec.zeros = static_cast<ZeroPoints>(plan.zeros);
  spec.actOrder = static_cast<ActOrder>(plan.act_order);
  spec.group = plan.group;
  spec.keptGroups = plan.kept_groups;
  spec.layout = findLayout(plan.layout);
  spec.experts = plan.experts;
  spec.input = plan.input;
  spec.halves = plan.halves;
  spec.output = plan.output;
  return spec;
}

TestWeight wna16test::emptyWeight(const wna16_weight &plan) {
  TestWeight weight;
  weight.plan = plan;
  Result<std::vector<StoredPart>> storage = storageOf(specOf(plan));
  EXPECT_TRUE(storage) << storage.message();
  if (storage)
    for (const StoredPart &part : *storage)
      weight.parts[static_cast<int64_t>(part.part)] =
          HostTensor(part.type, part.shape);
  return weight;
}

static wna16_weight weightPlan(int64_t experts, int64_t input, int64_t halves,
                               int64_t output) {
  wna16_weight plan = {};
  plan.group = -1;
  plan.experts = experts;
  plan.input = input;
  plan.halves = halves;
  plan.output = output;
  return plan;
}

TestWeight wna16test::denseWeight(Random &random, int64_t experts,
                                  int64_t input, int64_t halves, int64_t output,
                                  ScalarType type) {
  wna16_weight plan = weightPlan(experts, input, halves, output);
  plan.element = static_cast<int64_t>(type);
  plan.layout = layoutId("dense");
  TestWeight weight = emptyWeight(plan);
  HostTensor values = randomTensor(
      random, type, {experts, halves * output, input}, 1 / std::sqrt(input));
  weight.values = values.values();
  EXPECT_EQ(weight.parts[0].bytes(), values.bytes());
  std::memcpy(weight.parts[0].data(), values.data(), values.bytes());
  return weight;
}

/// Field `index` of a string of b-bit fields.
static void putField(HostTensor &words, int64_t word, int64_t index, int bits,
                     uint32_t value) {
  const int fields = 32 / bits;
  words.as<uint32_t>()[word + index / fields] |= value
                                                 << (index % fields * bits);
}

static void fillGroups(Random &random, TestWeight &weight) {
  HostTensor &index = weight.parts[static_cast<int>(Part::GroupIndex)];
  const wna16_weight &plan = weight.plan;
  for (int64_t e = 0; e < plan.experts; ++e) {
    int32_t *row = index.as<int32_t>() + e * plan.input;
    for (int64_t k = 0; k < plan.input; ++k)
      row[k] = static_cast<int32_t>(k / plan.group);
    std::shuffle(row, row + plan.input, random);
  }
}

static CodeType codeOf(const WeightOptions &options) {
  if (options.bits == 8)
    return options.zeros ? CodeType::U8 : CodeType::U8B128;
  return options.zeros ? CodeType::U4 : CodeType::U4B8;
}

TestWeight wna16test::packedWeight(Random &random, int64_t experts,
                                   int64_t input, int64_t halves,
                                   int64_t output,
                                   const WeightOptions &options) {
  wna16_weight plan = weightPlan(experts, input, halves, output);
  plan.code = static_cast<int64_t>(codeOf(options));
  plan.scale = static_cast<int64_t>(options.scale);
  plan.zeros = options.zeros;
  plan.act_order = options.actOrder;
  plan.group = options.group;
  plan.layout = layoutId("compressed_tensors");
  TestWeight weight = emptyWeight(plan);
  const int64_t rows = halves * output;
  const int64_t group = options.group < 0 ? input : options.group;
  const int64_t groups = (input + group - 1) / group;
  const int bits = options.bits;
  const uint32_t top = (1u << bits) - 1;
  HostTensor &codes = weight.parts[0], &scales = weight.parts[1];
  HostTensor &zeros = weight.parts[2];
  EXPECT_EQ(scales.elements(), experts * rows * groups);
  if (options.actOrder)
    fillGroups(random, weight);
  const int64_t codeWords = codes.elements() / (experts * rows);
  std::uniform_int_distribution<uint32_t> code(0, top);
  std::uniform_real_distribution<double> real(0.5, 1.5);
  std::vector<double> z(rows * groups, (top + 1) / 2);
  weight.values.resize(experts * rows * input);
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = 0; i < rows * groups; ++i)
      scales.set(e * rows * groups + i,
                 real(random) * 4 / (top * std::sqrt(input)));
    for (int64_t r = 0; options.zeros && r < rows; ++r)
      for (int64_t g = 0; g < groups; ++g) {
        const int fields = 32 / bits;
        const int64_t zeroRows = zeros.elements() / (experts * groups);
        const uint32_t zero = code(random);
        z[r * groups + g] = zero;
        zeros.as<uint32_t>()[(e * zeroRows + r / fields) * groups + g] |=
            zero << (r % fields * bits);
      }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < input; ++k) {
        const uint32_t q = code(random);
        putField(codes, (e * rows + r) * codeWords, k, bits, q);
        const int64_t g = options.actOrder
                              ? weight.parts[3].as<int32_t>()[e * input + k]
                              : k / group;
        weight.values[(e * rows + r) * input + k] =
            (q - z[r * groups + g]) * scales.get((e * rows + r) * groups + g);
      }
  }
  return weight;
}

wna16_convert_plan wna16test::convertPlan(const wna16_weight &source,
                                          const wna16_weight &target) {
  wna16_convert_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.source = source;
  plan.target = target;
  return plan;
}

TestWeight wna16test::converted(const TestWeight &source,
                                const wna16_weight &target, uint8_t before) {
  TestWeight result = emptyWeight(target), from = source;
  result.values = source.values;
  std::vector<wna16_tensor> tensors;
  for (HostTensor &part : from.parts)
    tensors.push_back(part.view());
  for (HostTensor &part : result.parts) {
    part.fill(before);
    tensors.push_back(part.view());
  }
  const wna16_convert_plan plan = convertPlan(source.plan, target);
  wna16_status_clear();
  EXPECT_EQ(wna16_cpu_convert(&plan, tensors.data(), tensors.size(), nullptr, 0,
                              nullptr),
            WNA16_OK)
      << wna16_status_message();
  return result;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

Workspace::Workspace(int64_t bytes) : memory(bytes + 64, '\xff') {
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  aligned = memory.data() + (64 - address % 64) % 64;
}

Layer wna16test::makeLayer(Random &random, TestWeight w13, TestWeight w2,
                           int64_t tokens, int64_t topK, ScalarType type) {
  Layer layer;
  const int64_t experts = w13.plan.experts, hidden = w13.plan.input;
  layer.plan.abi_version = WNA16_ABI_VERSION;
  layer.plan.w13 = w13.plan;
  layer.plan.w2 = w2.plan;
  layer.plan.hidden = hidden;
  layer.plan.element = static_cast<int64_t>(type);
  layer.plan.top_k = topK;
  layer.plan.bias_layout = layoutId("dense");
  layer.plan.alpha = 1;
  layer.plan.limit = INFINITY;
  layer.w13 = std::move(w13);
  layer.w2 = std::move(w2);
  layer.x = randomTensor(random, type, {tokens, hidden});
  layer.weights = HostTensor(ScalarType::F32, {tokens, topK});
  layer.ids = HostTensor(ScalarType::I32, {tokens, topK});
  std::uniform_real_distribution<double> weight(0.1, 1);
  std::vector<int32_t> order(experts);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t t = 0; t < tokens; ++t) {
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t k = 0; k < topK; ++k) {
      layer.weights.set(t * topK + k, weight(random));
      layer.ids.as<int32_t>()[t * topK + k] = order[k % experts];
    }
  }
  return layer;
}

Layer wna16test::packedLayer(Random &random, int64_t experts, int64_t hidden,
                             int64_t width, int64_t tokens, int64_t topK,
                             ScalarType type, const WeightOptions &options,
                             int64_t halves) {
  TestWeight w13 =
      packedWeight(random, experts, hidden, halves, width, options);
  TestWeight w2 = packedWeight(random, experts, width, 1, hidden, options);
  return makeLayer(random, std::move(w13), std::move(w2), tokens, topK, type);
}

HostTensor Layer::emptyOutput() const {
  return HostTensor(outputType, x.shape);
}

std::vector<wna16_tensor> Layer::tensors(HostTensor &y) {
  std::vector<wna16_tensor> result = {x.view(), weights.view(), ids.view()};
  for (HostTensor &part : w13.parts)
    result.push_back(part.view());
  for (HostTensor &part : w2.parts)
    result.push_back(part.view());
  for (HostTensor *tensor : {&bias13, &bias2, &expertMap, &y})
    result.push_back(tensor->view());
  return result;
}

wna16_status Layer::run(HostTensor &y) {
  wna16_status_clear();
  const int64_t rows = plan.batched ? x.shape[1] : x.shape[0];
  const int64_t bytes = wna16_cpu_fused_experts_workspace(&plan, rows);
  Workspace workspace(std::max<int64_t>(bytes, 0));
  y.poison();
  std::vector<wna16_tensor> all = tensors(y);
  return wna16_cpu_fused_experts(&plan, all.data(), all.size(),
                                 workspace.data(), bytes, nullptr);
}

HostTensor Layer::output() {
  HostTensor y = emptyOutput();
  EXPECT_EQ(run(y), WNA16_OK) << wna16_status_message();
  return y;
}

Layer Layer::prefix(int64_t tokens) const {
  Layer result = *this;
  for (HostTensor *tensor : {&result.x, &result.weights, &result.ids}) {
    HostTensor first(tensor->type, {tokens, tensor->shape[1]});
    std::memcpy(first.data(), tensor->data(), first.bytes());
    *tensor = first;
  }
  return result;
}

static double activate(const wna16_experts_plan &plan, bool gated, double g,
                       double u) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double c = plan.limit;
  if (plan.activation == WNA16_SWIGLUSTEP)
    return std::min(g * sigmoid(g), c) * std::clamp(u, -c, c);
  g = std::min(g, c);
  u = gated ? std::clamp(u, -c, c) : 1;
  const double cube = g + 0.044715 * g * g * g;
  switch (plan.activation) {
  case WNA16_SILU:
    return g * sigmoid(g) * u;
  case WNA16_GELU:
    return 0.5 * g * (1 + std::erf(g / std::sqrt(2.0))) * u;
  case WNA16_GELU_TANH:
    return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * cube)) * u;
  case WNA16_RELU2:
    return std::max(g, 0.0) * std::max(g, 0.0) * u;
  default:
    return g * sigmoid(plan.alpha * g) * (u + plan.beta);
  }
}

/// One expert on one token, before the routing weight.
static std::vector<double> expertOutput(const Layer &layer, int64_t e,
                                        const std::vector<double> &x) {
  const int64_t hidden = layer.plan.hidden, width = layer.plan.w13.output;
  const int64_t halves = layer.plan.w13.halves;
  std::vector<double> h(width), y(hidden);
  auto first = [&](int64_t row) {
    double sum =
        layer.bias13.present() ? layer.bias13.get(e * halves * width + row) : 0;
    for (int64_t k = 0; k < hidden; ++k)
      sum += x[k] * layer.w13.at(e, row, k);
    return sum;
  };
  for (int64_t n = 0; n < width; ++n) {
    double up = halves == 2 ? first(n + width) : 0;
    h[n] =
        roundTo(layer.x.type, activate(layer.plan, halves == 2, first(n), up));
  }
  for (int64_t k = 0; k < hidden; ++k) {
    y[k] = layer.bias2.present() ? layer.bias2.get(e * hidden + k) : 0;
    for (int64_t n = 0; n < width; ++n)
      y[k] += h[n] * layer.w2.at(e, k, n);
  }
  return y;
}

std::vector<double> Layer::reference() const {
  const int64_t hidden = plan.hidden, topK = plan.top_k;
  const int64_t rows = x.elements() / hidden;
  std::vector<double> y(x.elements());
  HostTensor indices = ids, map = expertMap;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t k = 0; k < topK; ++k) {
      int32_t e;
      if (plan.batched) {
        e = static_cast<int32_t>(t / x.shape[1]);
        if (t % x.shape[1] >= indices.as<int32_t>()[e])
          continue;
      } else {
        e = indices.as<int32_t>()[t * topK + k];
        if (e >= 0 && map.present())
          e = map.as<int32_t>()[e];
        if (e < 0)
          continue;
      }
      const double weight = weights.present() ? weights.get(t * topK + k) : 1;
      std::vector<double> in(hidden);
      for (int64_t i = 0; i < hidden; ++i)
        in[i] = x.get(t * hidden + i) * (plan.weight_on_input ? weight : 1);
      std::vector<double> out = expertOutput(*this, e, in);
      for (int64_t i = 0; i < hidden; ++i)
        y[t * hidden + i] += out[i] * (plan.weight_on_input ? 1 : weight);
    }
  return y;
}

double wna16test::relativeError(const HostTensor &actual,
                                const std::vector<double> &expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = actual.get(i);
    if (!std::isfinite(value))
      return INFINITY;
    error += (value - expected[i]) * (value - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 ? error : std::sqrt(error / norm);
}

double wna16test::tolerance(ScalarType type) {
  switch (type) {
  case ScalarType::F16:
    return 4e-4;
  case ScalarType::BF16:
    return 3e-3;
  default:
    return 1e-6;
  }
}
