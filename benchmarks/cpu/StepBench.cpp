//===- StepBench.cpp - What a call does besides multiplying panels --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Routing, activations, sums of slots and dense rows, one thread, with the
// numbers of Qwen3-30B-A3B. Each is timed beside what a machine without vectors
// runs for it (`x_portable`: how many times faster it is than that) and, where
// memory or arithmetic bounds it, beside a ceiling of the same run (`of_read`,
// `of_fma`). Results that differ from the portable ones are an error.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CPU/Dot.h"
#include "../../lib/Runtime/CPU/Elements.h"
#include "../../lib/Runtime/CPU/Panels.h"
#include "../../lib/Runtime/CPU/RouteSteps.h"
#include "../Main.h"
#include "Ceilings.h"
#include "Layout/Isa.h"
#include "Memory.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace wna16;

namespace {

constexpr int64_t kExperts = 128, kTopK = 8, kHidden = 2048, kWidth = 768;

struct Set {
  Isa isa;
  const PanelKernels &panels;
  const RouteKernels &route;
};

std::vector<float> randomValues(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

/// A step, its portable equivalent, and what either of them wrote last.
class Step {
public:
  virtual ~Step() = default;
  virtual void run() = 0;
  virtual void runPortable() = 0;
  virtual std::vector<float> result() const = 0;
  /// That come from memory; 0: the step works in caches.
  virtual int64_t bytes() const { return 0; }
  /// 0: arithmetic is not what bounds the step.
  virtual double flops() const { return 0; }
};

/// The best of a token's experts after a softmax.
class Route : public Step {
public:
  explicit Route(const Set &set) : kernels(set.route) {}
  void run() override { runWith(kernels); }
  void runPortable() override { runWith(portableRoute); }
  std::vector<float> result() const override {
    std::vector<float> all(chosen, chosen + kTopK);
    for (int64_t id : ids)
      all.push_back(static_cast<float>(id));
    return all;
  }

private:
  void runWith(const RouteKernels &set) {
    alignas(64) float scores[kExperts];
    alignas(64) int32_t ranks[kExperts];
    std::copy(logits.begin(), logits.end(), scores);
    set.softmax(scores, kExperts);
    set.rank(scores, kExperts, ranks);
    for (int64_t i = 0; i < kTopK; ++i) {
      ids[i] = set.best(ranks, kExperts);
      ranks[ids[i]] = kTaken;
      chosen[i] = scores[ids[i]];
    }
  }

  const RouteKernels &kernels;
  const std::vector<float> logits = randomValues(kExperts);
  float chosen[kTopK] = {};
  int64_t ids[kTopK] = {};
};

/// The hidden values of one slot: SiLU(gate) * up.
class Activate : public Step {
public:
  explicit Activate(const Set &set) : kernels(set.panels) {}
  void run() override {
    for (int64_t i = 0; i < kWidth; i += kPanelRows)
      kernels.activate(silu, &gate[i], noBias, &up[i], noBias, ScalarType::BF16,
                       &hidden[i]);
  }
  void runPortable() override {
    std::vector<float> values(kWidth);
    for (int64_t i = 0; i < kWidth; ++i)
      values[i] = silu(gate[i], up[i]);
    storeElements(ScalarType::BF16, values.data(), kWidth, hidden.data(), 0);
  }
  std::vector<float> result() const override {
    std::vector<float> values(kWidth);
    loadElements(ScalarType::BF16, hidden.data(), 0, kWidth, values.data());
    return values;
  }

private:
  const PanelKernels &kernels;
  const Activation silu = {WNA16_SILU, 1, 0,
                           std::numeric_limits<float>::infinity()};
  const float noBias[kPanelRows] = {};
  const std::vector<float> gate = randomValues(kWidth), up = gate;
  std::vector<uint16_t> hidden = std::vector<uint16_t>(kWidth);
};

/// One token's slots, weighted and added up, as the iterations over w2 do it:
/// some panels at a time.
class Reduce : public Step {
public:
  explicit Reduce(const Set &set) : kernels(set.panels) {}
  void run() override {
    for (int64_t k = 0; k < kHidden; k += kColumns) {
      std::copy_n(&slots[k * kTopK], kTopK * kColumns, rows.data());
      kernels.finish(rows.data(), kTopK, kColumns, noBias, weights);
      kernels.sum(rows.data(), kColumns, positions, kTopK, ScalarType::BF16,
                  kColumns, &y[k]);
    }
  }
  void runPortable() override {
    for (int64_t k = 0; k < kHidden; k += kColumns) {
      std::copy_n(&slots[k * kTopK], kTopK * kColumns, rows.data());
      float sum[kColumns] = {};
      for (int64_t slot = 0; slot < kTopK; ++slot)
        for (int64_t i = 0; i < kColumns; ++i)
          sum[i] += (rows[slot * kColumns + i] + noBias[i]) * weights[slot];
      storeElements(ScalarType::BF16, sum, kColumns, y.data(), k);
    }
  }
  std::vector<float> result() const override {
    std::vector<float> values(kHidden);
    loadElements(ScalarType::BF16, y.data(), 0, kHidden, values.data());
    return values;
  }

private:
  static constexpr int64_t kColumns = 4 * kPanelRows;

  const PanelKernels &kernels;
  const std::vector<float> slots = randomValues(kTopK * kHidden);
  const float noBias[kColumns] = {};
  const float weights[kTopK] = {0.3f, 0.2f, 0.1f,  0.1f,
                                0.1f, 0.1f, 0.06f, 0.04f};
  const int32_t positions[kTopK] = {7, 3, 0, 1, 2, 4, 5, 6};
  std::vector<float> rows = std::vector<float>(kTopK * kColumns);
  std::vector<uint16_t> y = std::vector<uint16_t>(kHidden);
};

/// Logits of `count` tokens from a router's rows. One token takes another
/// router each time, so that rows come from memory; many keep theirs in caches.
class DenseRows : public Step {
public:
  DenseRows(const Set &set, ScalarType type, int64_t count)
      : product(set.panels.dense), type(type), count(count),
        weights(matrixBytes() * (count == 1 ? kMatrices : 1)),
        x(count * kHidden * 4), logits(count * kExperts) {
    const std::vector<float> values = randomValues(kExperts * kHidden);
    for (int64_t at = 0; at < matrices(); ++at)
      storeElements(type, values.data(), kExperts * kHidden,
                    weights.data() + at * matrixBytes(), 0);
    const std::vector<float> inputs = randomValues(count * kHidden);
    std::copy(inputs.begin(), inputs.end(),
              reinterpret_cast<float *>(x.data()));
    for (int64_t t = 0; t < count; ++t)
      rows.push_back(reinterpret_cast<uint8_t *>(x.data()) + t * kHidden * 4);
    shape.input = shape.block = kHidden;
    shape.blocks = shape.blocksPerGroup = 1;
    shape.scale = type;
  }
  void run() override {
    const uint8_t *matrix = nextMatrix();
    for (int64_t r = 0; r < kExperts; r += kPanelRows) {
      const Panel panel = {matrix + r * kHidden * sizeOf(type), nullptr,
                           nullptr};
      product.multiply(shape, panel, panel, rows.data(), count, &logits[r],
                       kExperts);
    }
  }
  void runPortable() override {
    const uint8_t *matrix = nextMatrix();
    std::vector<float> row(kHidden);
    for (int64_t r = 0; r < kExperts; ++r) {
      loadElements(type, matrix, r * kHidden, kHidden, row.data());
      for (int64_t t = 0; t < count; ++t)
        logits[t * kExperts + r] =
            dot(row.data(), reinterpret_cast<const float *>(rows[t]), kHidden);
    }
  }
  std::vector<float> result() const override { return logits; }
  int64_t bytes() const override { return count == 1 ? matrixBytes() : 0; }
  double flops() const override {
    return count == 1 ? 0
                      : 2.0 * static_cast<double>(count * kExperts * kHidden);
  }

private:
  static constexpr int64_t kMatrices = 512;

  int64_t matrixBytes() const { return kExperts * kHidden * sizeOf(type); }
  int64_t matrices() const { return count == 1 ? kMatrices : 1; }
  const uint8_t *nextMatrix() {
    turn = (turn + 1) % matrices();
    return reinterpret_cast<const uint8_t *>(weights.data()) +
           turn * matrixBytes();
  }

  const PanelProduct &product;
  const ScalarType type;
  const int64_t count;
  PageMemory weights, x;
  std::vector<const uint8_t *> rows;
  std::vector<float> logits;
  PanelShape shape;
  int64_t turn = 0;
};

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds of one portable run, at least 50 milliseconds of them.
double timePortable(Step &step) {
  const auto begin = Clock::now();
  int64_t runs = 0;
  while (secondsSince(begin) < 0.05) {
    step.runPortable();
    ++runs;
  }
  return secondsSince(begin) / static_cast<double>(runs);
}

/// |a - b| <= 1 % of what the largest value is: both round to bf16.
bool areClose(const std::vector<float> &a, const std::vector<float> &b) {
  float most = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::fabs(b[i]));
    difference = std::max(difference, std::fabs(a[i] - b[i]));
  }
  return difference <= 0.01f * most;
}

/// Of one thread, measured once for each set.
const Ceilings &ceilingsOf(Isa set) {
  static std::map<Isa, Ceilings> known;
  const auto [entry, isNew] = known.try_emplace(set);
  if (isNew && setIsa(set))
    entry->second = measureCeilings(/*threads=*/1);
  return entry->second;
}

void measure(benchmark::State &state, Isa set,
             const std::function<std::unique_ptr<Step>()> &make) {
  const std::unique_ptr<Step> step = make();
  step->runPortable();
  const std::vector<float> expected = step->result();
  step->run();
  if (!areClose(step->result(), expected)) {
    state.SkipWithError("the result differs from the portable one");
    return;
  }
  Ceilings ceilings;
  if (step->bytes() || step->flops() > 0)
    ceilings = ceilingsOf(set);
  const auto begin = Clock::now();
  for (auto _ : state)
    step->run();
  const double seconds =
      secondsSince(begin) / static_cast<double>(state.iterations());
  state.counters["x_portable"] = timePortable(*step) / seconds;
  if (step->bytes()) {
    ceilings.readBytes = std::max(ceilings.readBytes, measureReadNow(1));
    state.SetBytesProcessed(state.iterations() * step->bytes());
    state.counters["of_read"] =
        static_cast<double>(step->bytes()) / seconds / ceilings.readBytes;
  }
  if (step->flops() > 0)
    state.counters["of_fma"] = step->flops() / seconds / ceilings.fmaFlops;
}

template <typename Kind, typename... Arguments>
void add(const Set &set, const char *label, Arguments... arguments) {
  const std::string full = std::string(name(set.isa)) + "/" + label;
  benchmark::RegisterBenchmark(
      full.c_str(), [&set, arguments...](benchmark::State &state) {
        measure(state, set.isa, [&]() -> std::unique_ptr<Step> {
          return std::make_unique<Kind>(set, arguments...);
        });
      });
}

} // namespace

void wna16::registerBenchmarks() {
  static const Set sets[] = {{Isa::AVX2, avx2Panels, avx2Route},
                             {Isa::AVX512, avx512Panels, avx512Route}};
  for (const Set &set : sets) {
    if (isa() < set.isa)
      continue;
    add<Route>(set, "route/softmax_8_of_128");
    add<Activate>(set, "activate/silu_768");
    add<Reduce>(set, "reduce/8_slots_of_2048");
    add<DenseRows>(set, "dense/bf16_1_token", ScalarType::BF16, int64_t(1));
    add<DenseRows>(set, "dense/f32_1_token", ScalarType::F32, int64_t(1));
    add<DenseRows>(set, "dense/bf16_24_tokens", ScalarType::BF16, int64_t(24));
    add<DenseRows>(set, "dense/f32_24_tokens", ScalarType::F32, int64_t(24));
  }
}
