//===- FusedExperts.cu - Checks and times fused experts on a GPU --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each shape and number of tokens: random weights, activations and
// routings; the result against float64 on a sample of tokens, with outputs and
// workspace poisoned before; then the median time of a call within a CUDA graph
// of many, which go through several layers' weights and routings so that the
// cache does not hold what a call reads. No point is timed that is not right.
//
//===----------------------------------------------------------------------===//

#include "Runtime/wna16_cuda.h"

#include "Layout/Catalogue.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace wna16;

#define CHECK(call)                                                            \
  do {                                                                         \
    cudaError_t error = (call);                                                \
    if (error != cudaSuccess) {                                                \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                \
                  cudaGetErrorString(error));                                  \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

namespace {

struct Shape {
  const char *name;
  int64_t experts, topK, hidden, width;
  /// Best peer by number of tokens, microseconds (docs/gpu-performance.md).
  std::vector<std::pair<int64_t, double>> peers;
};

const Shape kShapes[] = {
    {"qwen3",
     128,
     8,
     2048,
     768,
     {{1, 26.1},
      {4, 42.6},
      {8, 62.0},
      {16, 85.4},
      {32, 110},
      {64, 120},
      {128, 141},
      {256, 166},
      {512, 229},
      {1024, 296},
      {2048, 436},
      {4096, 839},
      {16384, 2684}}},
    {"ds_tp8",
     256,
     8,
     7168,
     256,
     {{1, 27.6},
      {4, 55.4},
      {8, 80.8},
      {16, 125},
      {32, 184},
      {64, 245},
      {128, 283},
      {256, 341},
      {512, 417},
      {1024, 596},
      {2048, 781},
      {4096, 1214},
      {16384, 3918}}},
    {"qwen3next",
     512,
     10,
     2048,
     512,
     {{1, 27.7},
      {4, 43.2},
      {8, 62.1},
      {16, 98.0},
      {32, 154},
      {64, 222},
      {128, 276},
      {256, 318},
      {512, 364},
      {1024, 434},
      {2048, 624},
      {4096, 891},
      {16384, 2531}}},
    {"mixtral",
     8,
     2,
     4096,
     14336,
     {{1, 78.0},
      {4, 164},
      {16, 233},
      {32, 267},
      {64, 289},
      {128, 409},
      {256, 467},
      {512, 798},
      {1024, 1403},
      {2048, 2775},
      {4096, 5093},
      {16384, 19097}}},
    {"kimi_ep",
     48,
     8,
     7168,
     2048,
     {{1, 81.0},
      {4, 188},
      {16, 330},
      {64, 413},
      {256, 688},
      {1024, 1691},
      {4096, 5273},
      {16384, 20790}}},
};

struct Scheme {
  const char *name;
  CodeType code;
  ZeroPoints zeros;
  int64_t group;
  ScalarType element;
  const char *layout;
  double bound; ///< of the relative error
};

const Scheme kSchemes[] = {
    {"w4", CodeType::U4B8, ZeroPoints::None, 128, ScalarType::BF16, "marlin",
     5e-3},
    {"w4f16", CodeType::U4B8, ZeroPoints::None, 128, ScalarType::F16, "marlin",
     8e-4},
    {"awq", CodeType::U4, ZeroPoints::Plain, 128, ScalarType::BF16, "marlin",
     5e-3},
    {"w8", CodeType::U8B128, ZeroPoints::None, 128, ScalarType::BF16, "marlin",
     5e-3},
    {"wgmma", CodeType::U4B8, ZeroPoints::None, 128, ScalarType::BF16,
     "humming_wgmma", 5e-3},
    {"g32", CodeType::U4B8, ZeroPoints::None, 32, ScalarType::BF16, "marlin",
     5e-3},
    {"g64", CodeType::U4B8, ZeroPoints::None, 64, ScalarType::BF16, "marlin",
     5e-3},
    {"channel", CodeType::U4B8, ZeroPoints::None, -1, ScalarType::BF16,
     "marlin", 5e-3},
};

//===----------------------------------------------------------------------===//
// Random data
//===----------------------------------------------------------------------===//

__device__ uint64_t hashOf(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

__global__ void fillBits(uint64_t *to, int64_t count, uint64_t seed) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x)
    to[i] = hashOf(seed * 0x100000001ull + i);
}

/// Uniform in [low, high), rounded to the type.
template <typename T>
__global__ void fillValues(T *to, int64_t count, uint64_t seed, float low,
                           float high) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    const float unit =
        static_cast<float>(hashOf(seed * 0x100000001ull + i) >> 40) * 0x1p-24f;
    to[i] = static_cast<T>(low + (high - low) * unit);
  }
}

void *allocate(int64_t bytes) {
  void *memory = nullptr;
  CHECK(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 8))));
  return memory;
}

void *randomBits(int64_t bytes, uint64_t seed) {
  void *memory = allocate((bytes + 7) / 8 * 8);
  fillBits<<<1024, 256>>>(static_cast<uint64_t *>(memory), (bytes + 7) / 8,
                          seed);
  CHECK(cudaGetLastError());
  return memory;
}

void *randomValues(ScalarType type, int64_t count, uint64_t seed, float low,
                   float high) {
  void *memory = allocate(2 * count);
  if (type == ScalarType::BF16)
    fillValues<<<1024, 256>>>(static_cast<__nv_bfloat16 *>(memory), count, seed,
                              low, high);
  else
    fillValues<<<1024, 256>>>(static_cast<__half *>(memory), count, seed, low,
                              high);
  CHECK(cudaGetLastError());
  return memory;
}

//===----------------------------------------------------------------------===//
// The reference: float64, by the formulas of the format
//===----------------------------------------------------------------------===//

struct Matrix {
  const uint8_t *codes;
  const uint16_t *scales;
  const uint32_t *zeros;
  int64_t input, rows, group, groups;
  int bits;
  bool wgmma, bf16;
};

__device__ double elementOf(bool bf16, uint16_t bits) {
  return bf16 ? __bfloat162float(__ushort_as_bfloat16(bits))
              : __half2float(__ushort_as_half(bits));
}

__device__ double weightOf(const Matrix &m, int64_t e, int64_t k, int64_t n) {
  const int kk = k % 16, nn = n % 64;
  const int lane = (nn & 7) << 2 | ((kk >> 1) & 3);
  const int n3 = nn >> 3 & 1, k3 = kk >> 3, k0 = kk & 1, u = nn >> 4;
  const int64_t tile =
      e * (m.input / 16) * (m.rows / 64) + (k / 16) * (m.rows / 64) + n / 64;
  double q, z;
  if (m.bits == 4) {
    const int nibble =
        m.wgmma ? n3 | k3 << 1 | k0 << 2 : k3 | n3 << 1 | k0 << 2;
    const auto *words = reinterpret_cast<const uint32_t *>(m.codes);
    q = words[tile * 128 + lane * 4 + u] >> (4 * nibble) & 15;
    z = 8;
  } else {
    const int byte = m.wgmma ? n3 | k0 << 1 : k3 | k0 << 1;
    const int word = 2 * u + (m.wgmma ? k3 : n3);
    q = m.codes[tile * 1024 + lane * 32 + word * 4 + byte];
    z = 128;
  }
  const int64_t g = m.groups > 1 ? k / m.group : 0;
  if (m.zeros)
    z = m.zeros[(e * m.groups + g) * m.rows / 8 + n / 64 * 8 + (nn & 7)] >>
            (4 * (u + 4 * n3)) &
        15;
  const int64_t at = m.groups > 1 ? n / 64 * 64 + 8 * (nn & 7) + (nn >> 3)
                                  : n / 32 * 32 + (n & 1) + 2 * (n >> 3 & 3) +
                                        8 * (n >> 1 & 3);
  return (q - z) *
         elementOf(m.bf16, m.scales[(e * m.groups + g) * m.rows + at]);
}

/// hidden[s * topK + slot][n] of sampled tokens.
__global__ void referenceFirst(Matrix m, const uint16_t *x, int64_t hidden,
                               const int32_t *ids, const int32_t *sample,
                               int topK, int64_t width, double *out) {
  const int64_t n = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= width)
    return;
  const int64_t token = sample[blockIdx.y / topK];
  const int32_t e = ids[token * topK + blockIdx.y % topK];
  double gate = 0, up = 0;
  for (int64_t k = 0; k < hidden; ++k) {
    const double value = elementOf(m.bf16, x[token * hidden + k]);
    gate += value * weightOf(m, e, k, n);
    up += value * weightOf(m, e, k, n + width);
  }
  out[blockIdx.y * width + n] = gate / (1 + exp(-gate)) * up;
}

__global__ void referenceSecond(Matrix m, const double *in, int64_t width,
                                const int32_t *ids, const float *weights,
                                const int32_t *sample, int topK, int64_t hidden,
                                double *out) {
  const int64_t n = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= hidden)
    return;
  const int64_t token = sample[blockIdx.y];
  double sum = 0;
  for (int i = 0; i < topK; ++i) {
    const int32_t e = ids[token * topK + i];
    double row = 0;
    for (int64_t k = 0; k < width; ++k)
      row += in[(blockIdx.y * topK + i) * width + k] * weightOf(m, e, k, n);
    sum += row * weights[token * topK + i];
  }
  out[blockIdx.y * hidden + n] = sum;
}

//===----------------------------------------------------------------------===//
// One point
//===----------------------------------------------------------------------===//

struct Weight {
  WeightSpec spec;
  void *codes = nullptr, *scales = nullptr, *zeros = nullptr;

  int64_t bytesPerExpert() const {
    int64_t bytes = 0;
    const std::vector<StoredPart> parts = *storageOf(spec);
    for (const StoredPart &part : parts)
      bytes += part.bytes() / spec.experts;
    return bytes;
  }

  Matrix matrix() const {
    return {static_cast<const uint8_t *>(codes),
            static_cast<const uint16_t *>(scales),
            static_cast<const uint32_t *>(zeros),
            spec.input,
            spec.rows(),
            spec.group,
            spec.groups(),
            spec.bits(),
            spec.layout->name == "humming_wgmma",
            spec.element == ScalarType::BF16};
  }
};

struct Layer {
  Weight w13, w2;
};

Weight makeWeight(const Shape &shape, const Scheme &scheme, int64_t input,
                  int64_t halves, int64_t output, uint64_t seed) {
  Weight weight;
  WeightSpec &spec = weight.spec;
  spec.code = scheme.code;
  spec.element = spec.scale = scheme.element;
  spec.zeros = scheme.zeros;
  spec.group = scheme.group;
  spec.layout = findLayout(scheme.layout);
  spec.experts = shape.experts;
  spec.input = input;
  spec.halves = halves;
  spec.output = output;
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  if (!parts) {
    std::printf("%s\n", parts.message().c_str());
    std::exit(1);
  }
  const auto scale = static_cast<float>(
      1 / (std::sqrt(double(input)) * (1 << (spec.bits() - 2))));
  for (const StoredPart &part : *parts) {
    if (part.part == Part::Codes)
      weight.codes = randomBits(part.bytes(), seed);
    if (part.part == Part::Scales)
      weight.scales = randomValues(spec.scale, part.elements(), seed + 1,
                                   0.5f * scale, 1.5f * scale);
    if (part.part == Part::Zeros)
      weight.zeros = randomBits(part.bytes(), seed + 2);
  }
  return weight;
}

wna16_weight abiOf(const WeightSpec &spec) {
  wna16_weight weight = {};
  weight.code = static_cast<int64_t>(spec.code);
  weight.element = static_cast<int64_t>(spec.element);
  weight.scale = static_cast<int64_t>(spec.scale);
  weight.zeros = static_cast<int64_t>(spec.zeros);
  weight.act_order = static_cast<int64_t>(spec.actOrder);
  weight.group = spec.group;
  weight.layout = spec.layout->id;
  weight.experts = spec.experts;
  weight.input = spec.input;
  weight.halves = spec.halves;
  weight.output = spec.output;
  return weight;
}

/// A list of tensors that keeps their shapes.
class Tensors {
public:
  void add(void *data, ScalarType type, std::vector<int64_t> shape) {
    static constexpr wna16_dtype kTypes[] = {
        {2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {0, 8, 1},
        {1, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1}, {6, 8, 1}};
    shapes.push_back(std::move(shape));
    wna16_tensor tensor = {};
    tensor.data = data;
    tensor.device = {2, 0};
    tensor.ndim = static_cast<int32_t>(shapes.back().size());
    tensor.dtype = kTypes[static_cast<int>(type)];
    tensors.push_back(tensor);
  }
  void addAbsent() {
    shapes.emplace_back();
    tensors.push_back({});
  }
  void addWeight(const Weight &weight) {
    void *data[kNumParts] = {weight.codes, weight.scales, weight.zeros};
    std::vector<StoredPart> parts = *storageOf(weight.spec);
    size_t next = 0;
    for (int i = 0; i < kNumParts; ++i)
      if (next < parts.size() && static_cast<int>(parts[next].part) == i) {
        add(data[i], parts[next].type, parts[next].shape);
        ++next;
      } else {
        addAbsent();
      }
  }
  const wna16_tensor *get() {
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i].shape = shapes[i].empty() ? nullptr : shapes[i].data();
    return tensors.data();
  }
  int64_t count() const { return static_cast<int64_t>(tensors.size()); }

private:
  std::vector<wna16_tensor> tensors;
  std::vector<std::vector<int64_t>> shapes;
};

struct Routing {
  int32_t *ids;
  float *weights;
  int64_t activeExperts;
};

/// Distinct experts for each token; `skew`: half the tokens' first is expert 0.
Routing makeRouting(const Shape &shape, int64_t tokens, bool skew,
                    uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(tokens * shape.topK)), pool;
  std::vector<float> weights(ids.size());
  std::vector<bool> active(static_cast<size_t>(shape.experts));
  for (int64_t e = 0; e < shape.experts; ++e)
    pool.push_back(static_cast<int32_t>(e));
  for (int64_t t = 0; t < tokens; ++t) {
    float sum = 0;
    for (int64_t i = 0; i < shape.topK; ++i) {
      const int64_t left = shape.experts - i;
      std::swap(pool[i], pool[i + random() % left]);
      if (skew && i == 0 && t % 2 == 0)
        std::swap(*std::find(pool.begin(), pool.end(), 0), pool[0]);
      ids[t * shape.topK + i] = pool[i];
      active[pool[i]] = true;
      weights[t * shape.topK + i] =
          0.1f + static_cast<float>(random() % 1000) / 1000;
      sum += weights[t * shape.topK + i];
    }
    for (int64_t i = 0; i < shape.topK; ++i)
      weights[t * shape.topK + i] /= sum;
  }
  Routing routing;
  routing.ids = static_cast<int32_t *>(allocate(4 * ids.size()));
  routing.weights = static_cast<float *>(allocate(4 * ids.size()));
  CHECK(cudaMemcpy(routing.ids, ids.data(), 4 * ids.size(),
                   cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(routing.weights, weights.data(), 4 * ids.size(),
                   cudaMemcpyHostToDevice));
  routing.activeExperts = std::count(active.begin(), active.end(), true);
  return routing;
}

class Bench {
public:
  Bench(const Shape &shape, const Scheme &scheme)
      : shape(shape), scheme(scheme) {
    CHECK(cudaStreamCreate(&stream));
    const double budget = 3e9;
    do {
      const uint64_t seed = 100 * layers.size() + 17;
      Layer layer;
      layer.w13 = makeWeight(shape, scheme, shape.hidden, 2, shape.width, seed);
      layer.w2 =
          makeWeight(shape, scheme, shape.width, 1, shape.hidden, seed + 10);
      layers.push_back(layer);
    } while (layers.size() < 8 && (layers.size() + 1) * layerBytes() < budget);
    plan.abi_version = WNA16_ABI_VERSION;
    plan.w13 = abiOf(layers[0].w13.spec);
    plan.w2 = abiOf(layers[0].w2.spec);
    plan.hidden = shape.hidden;
    plan.element = static_cast<int64_t>(scheme.element);
    plan.top_k = shape.topK;
    plan.activation = WNA16_SILU;
    plan.alpha = 1;
    plan.limit = std::numeric_limits<double>::infinity();
  }

  ~Bench() {
    for (const Layer &layer : layers)
      for (const Weight *weight : {&layer.w13, &layer.w2}) {
        cudaFree(weight->codes);
        cudaFree(weight->scales);
        cudaFree(weight->zeros);
      }
    cudaStreamDestroy(stream);
  }

  double layerBytes() const {
    return static_cast<double>(shape.experts) *
           (layers[0].w13.bytesPerExpert() + layers[0].w2.bytesPerExpert());
  }

  /// Checks and times one number of tokens; false when the result is wrong.
  bool point(int64_t tokens, bool skew, bool timed) {
    setUp(tokens, skew);
    const double error = checkedError(tokens);
    const bool right = error <= scheme.bound && sameBits(tokens);
    std::printf("%-9s %-7s %6lld%s  err %.2e%s", shape.name, scheme.name,
                static_cast<long long>(tokens), skew ? " skew" : "", error,
                right ? "" : "  WRONG");
    if (right && timed)
      report(tokens, time(tokens));
    std::printf("  %s\n",
                wna16_cuda_marlin_fused_experts_kernel(&plan, tokens));
    std::fflush(stdout);
    tearDown();
    return right;
  }

private:
  void setUp(int64_t tokens, bool skew) {
    const int64_t elements = tokens * shape.hidden;
    x = randomValues(scheme.element, elements, 5 + tokens, -1, 1);
    y = allocate(2 * elements);
    workspaceBytes = wna16_cuda_marlin_fused_experts_workspace(&plan, tokens);
    complain();
    workspace = allocate(workspaceBytes);
    const size_t sets = tokens <= 64 ? 16 : tokens <= 1024 ? 4 : 1;
    for (size_t i = 0; i < sets; ++i)
      routings.push_back(makeRouting(shape, tokens, skew, 31 * i + tokens));
  }

  void tearDown() {
    for (void *memory : {x, y, workspace})
      cudaFree(memory);
    for (const Routing &routing : routings) {
      cudaFree(routing.ids);
      cudaFree(routing.weights);
    }
    routings.clear();
  }

  void complain() const {
    if (wna16_status_get() == WNA16_OK)
      return;
    std::printf("status %d: %s\n", wna16_status_get(), wna16_status_message());
    std::exit(1);
  }

  void call(int64_t tokens, size_t index) {
    const Layer &layer = layers[index % layers.size()];
    const Routing &routing = routings[index % routings.size()];
    const ScalarType element = scheme.element;
    Tensors tensors;
    tensors.add(x, element, {tokens, shape.hidden});
    tensors.add(routing.weights, ScalarType::F32, {tokens, shape.topK});
    tensors.add(routing.ids, ScalarType::I32, {tokens, shape.topK});
    tensors.addWeight(layer.w13);
    tensors.addWeight(layer.w2);
    for (int i = 0; i < 3; ++i)
      tensors.addAbsent();
    tensors.add(y, element, {tokens, shape.hidden});
    wna16_cuda_marlin_fused_experts(&plan, tensors.get(), tensors.count(),
                                    workspace, workspaceBytes, stream);
    complain();
  }

  void poison(int64_t tokens) {
    CHECK(cudaMemsetAsync(workspace, 0xff, workspaceBytes, stream));
    CHECK(cudaMemsetAsync(y, 0xff, 2 * tokens * shape.hidden, stream));
  }

  std::vector<uint16_t> output(int64_t tokens) {
    std::vector<uint16_t> out(static_cast<size_t>(tokens * shape.hidden));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(out.data(), y, 2 * out.size(), cudaMemcpyDeviceToHost));
    return out;
  }

  double valueOf(uint16_t bits) const {
    if (scheme.element == ScalarType::F16)
      return __half2float(__half_raw{bits});
    const uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }

  double checkedError(int64_t tokens) {
    poison(tokens);
    call(tokens, 0);
    const std::vector<uint16_t> out = output(tokens);
    double written = 0;
    for (uint16_t bits : out)
      written += valueOf(bits); // NaN where poison is left
    std::vector<int32_t> sample;
    const int64_t most = shape.width > 8000 ? 8 : 24;
    const int64_t count = std::min(tokens, most);
    for (int64_t i = 0; i < count; ++i)
      sample.push_back(static_cast<int32_t>(
          count == 1 ? 0 : i * (tokens - 1) / (count - 1)));
    const std::vector<double> expected = reference(sample);
    double difference = 0, size = 0;
    for (size_t s = 0; s < sample.size(); ++s)
      for (int64_t n = 0; n < shape.hidden; ++n) {
        const double want = expected[s * shape.hidden + n];
        const double got = valueOf(out[sample[s] * shape.hidden + n]);
        difference += (got - want) * (got - want);
        size += want * want;
      }
    const double error = std::sqrt(difference / size);
    return std::isfinite(written) && std::isfinite(error) ? error : 1e9;
  }

  std::vector<double> reference(const std::vector<int32_t> &sample) {
    const Layer &layer = layers[0];
    const Routing &routing = routings[0];
    const auto topK = static_cast<int>(shape.topK);
    const auto count = static_cast<unsigned>(sample.size());
    auto *where = static_cast<int32_t *>(allocate(4 * count));
    auto *middle =
        static_cast<double *>(allocate(8 * count * topK * shape.width));
    auto *last = static_cast<double *>(allocate(8 * count * shape.hidden));
    CHECK(cudaMemcpy(where, sample.data(), 4 * count, cudaMemcpyHostToDevice));
    auto blocks = [](int64_t n) {
      return static_cast<unsigned>((n + 63) / 64);
    };
    referenceFirst<<<dim3(blocks(shape.width), count * topK), 64>>>(
        layer.w13.matrix(), static_cast<const uint16_t *>(x), shape.hidden,
        routing.ids, where, topK, shape.width, middle);
    referenceSecond<<<dim3(blocks(shape.hidden), count), 64>>>(
        layer.w2.matrix(), middle, shape.width, routing.ids, routing.weights,
        where, topK, shape.hidden, last);
    CHECK(cudaGetLastError());
    std::vector<double> out(count * shape.hidden);
    CHECK(cudaMemcpy(out.data(), last, 8 * out.size(), cudaMemcpyDeviceToHost));
    cudaFree(where);
    cudaFree(middle);
    cudaFree(last);
    return out;
  }

  bool sameBits(int64_t tokens) {
    const std::vector<uint16_t> before = output(tokens);
    poison(tokens);
    call(tokens, 0);
    if (output(tokens) == before)
      return true;
    std::printf("another run gives other bits: ");
    return false;
  }

  double time(int64_t tokens) {
    const size_t calls = tokens <= 256    ? 48
                         : tokens <= 1024 ? 16
                         : tokens <= 4096 ? 4
                                          : 2;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (size_t i = 0; i < calls; ++i)
      call(tokens, i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> times;
    for (int run = 0; run < 12; ++run) {
      CHECK(cudaEventRecord(begin, stream));
      CHECK(cudaGraphLaunch(executable, stream));
      CHECK(cudaEventRecord(end, stream));
      CHECK(cudaEventSynchronize(end));
      float milliseconds;
      CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      if (run >= 3)
        times.push_back(milliseconds * 1000 / calls);
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2,
                     times.end());
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return times[times.size() / 2];
  }

  void report(int64_t tokens, double microseconds) {
    double active = 0;
    for (const Routing &routing : routings)
      active += static_cast<double>(routing.activeExperts) / routings.size();
    const double bytes = active * (layers[0].w13.bytesPerExpert() +
                                   layers[0].w2.bytesPerExpert());
    const double operations =
        6.0 * tokens * shape.topK * shape.hidden * shape.width;
    const double floor = std::max(bytes / 4434e3, operations / 800e6);
    double peer = 0;
    for (auto [count, value] : shape.peers)
      if (count == tokens)
        peer = value;
    std::printf("  %9.2f us  floor %8.1f (x%.2f)  %6.0f GB/s %5.0f TFLOP/s",
                microseconds, floor, microseconds / floor,
                bytes / microseconds / 1e3, operations / microseconds / 1e6);
    if (peer && std::string(scheme.name) == "w4")
      std::printf("  peer %8.1f  %.2fx", peer, peer / microseconds);
  }

  const Shape &shape;
  const Scheme &scheme;
  cudaStream_t stream;
  std::vector<Layer> layers;
  std::vector<Routing> routings;
  wna16_experts_plan plan = {};
  void *x = nullptr, *y = nullptr, *workspace = nullptr;
  int64_t workspaceBytes = 0;
};

std::vector<std::string> split(const char *text) {
  std::vector<std::string> parts(1);
  for (; *text; ++text)
    if (*text == ',')
      parts.emplace_back();
    else
      parts.back() += *text;
  return parts;
}

template <typename Rows>
const auto *find(const Rows &rows, const std::string &name) {
  for (const auto &row : rows)
    if (name == row.name)
      return &row;
  std::printf("no such name: %s\n", name.c_str());
  std::exit(2);
}

} // namespace

/// Arguments: shapes, numbers of tokens, schemes, each separated by commas;
/// then "check" to leave times out, "skew" for half the tokens to one expert.
int main(int argc, char **argv) {
  if (argc < 4) {
    std::printf("usage: %s SHAPES TOKENS SCHEMES [check] [skew]\n", argv[0]);
    return 2;
  }
  bool timed = true, skew = false;
  for (int i = 4; i < argc; ++i) {
    timed &= std::string(argv[i]) != "check";
    skew |= std::string(argv[i]) == "skew";
  }
  bool right = true;
  for (const std::string &shape : split(argv[1]))
    for (const std::string &scheme : split(argv[3])) {
      Bench bench(*find(kShapes, shape), *find(kSchemes, scheme));
      for (const std::string &tokens : split(argv[2]))
        right &= bench.point(std::atoll(tokens.c_str()), skew, timed);
    }
  return right ? 0 : 1;
}
