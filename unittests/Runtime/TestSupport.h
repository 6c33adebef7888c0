//===- TestSupport.h - Tensors, weights and a reference for the tests -----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_UNITTESTS_RUNTIME_TESTSUPPORT_H
#define WNA16_UNITTESTS_RUNTIME_TESTSUPPORT_H

#include "Layout/Catalogue.h"
#include "Layout/WeightSpec.h"
#include "Runtime/wna16.h"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace wna16test {

using wna16::ScalarType;

/// A tensor that owns its memory; without a shape: an absent one.
class HostTensor {
public:
  HostTensor() = default;
  HostTensor(ScalarType type, std::vector<int64_t> shape);

  bool present() const { return !shape.empty(); }
  int64_t elements() const;
  int64_t bytes() const;
  void *data() { return storage.data(); }
  const void *data() const { return storage.data(); }
  template <typename T>
  T *as() {
    return reinterpret_cast<T *>(storage.data());
  }
  /// Floating-point elements; set rounds to nearest even.
  double get(int64_t i) const;
  void set(int64_t i, double value);
  std::vector<double> values() const;
  void fill(uint8_t byte);
  /// 0xff in every byte: NaN in every float format.
  void poison() { fill(0xff); }
  bool sameBytes(const HostTensor &other) const;
  wna16_tensor view();

  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;

private:
  std::vector<uint64_t> storage;
};

using Random = std::mt19937;

/// Normally distributed values.
HostTensor randomTensor(Random &random, ScalarType type,
                        std::vector<int64_t> shape, double deviation = 1);
/// i32 tensor of given values.
HostTensor indexTensor(std::vector<int64_t> shape,
                       const std::vector<int32_t> &values);
/// Rounds as HostTensor::set does.
double roundTo(ScalarType type, double value);

/// A weight with its storage and, for the reference, its values.
struct TestWeight {
  wna16_weight plan = {};
  HostTensor parts[wna16::kNumParts];
  /// [experts, rows, input], in the model's order.
  std::vector<double> values;

  double at(int64_t expert, int64_t row, int64_t k) const {
    return values[(expert * plan.halves * plan.output + row) * plan.input + k];
  }
};

struct WeightOptions {
  int bits = 4;
  int64_t group = 32;
  bool zeros = false;
  bool actOrder = false;
  ScalarType scale = ScalarType::F16;
};

/// Random codes, packed by this test into the compressed-tensors form.
TestWeight packedWeight(Random &random, int64_t experts, int64_t input,
                        int64_t halves, int64_t output,
                        const WeightOptions &options = {});
TestWeight denseWeight(Random &random, int64_t experts, int64_t input,
                       int64_t halves, int64_t output,
                       ScalarType type = ScalarType::F32);
/// An empty weight whose storage follows from the plan.
TestWeight emptyWeight(const wna16_weight &plan);
wna16::WeightSpec specOf(const wna16_weight &plan);
int64_t layoutId(const char *name);
/// A plan of everything that converts, without a window.
wna16_convert_plan convertPlan(const wna16_weight &source,
                               const wna16_weight &target);
/// Converts with wna16_cpu_convert into parts whose bytes held `before`; fails
/// the test when that fails.
TestWeight converted(const TestWeight &source, const wna16_weight &target,
                     uint8_t before = 0xff);

/// One layer, ready to be called.
struct Layer {
  wna16_experts_plan plan = {};
  TestWeight w13, w2;
  HostTensor x, weights, ids, bias13, bias2, expertMap;
  ScalarType outputType = ScalarType::F32;

  int64_t tokens() const { return x.shape[0]; }
  HostTensor emptyOutput() const;
  std::vector<wna16_tensor> tensors(HostTensor &y);
  /// Calls the kernel with a poisoned workspace and output.
  wna16_status run(HostTensor &y);
  /// run(), which has to succeed.
  HostTensor output();
  /// The first tokens of it.
  Layer prefix(int64_t tokens) const;
  /// What the contract says, in double.
  std::vector<double> reference() const;
};

/// A layer with random tokens and routing over all experts.
Layer makeLayer(Random &random, TestWeight w13, TestWeight w2, int64_t tokens,
                int64_t topK, ScalarType type = ScalarType::F32);
/// Both weights packed with the same options.
Layer packedLayer(Random &random, int64_t experts, int64_t hidden,
                  int64_t width, int64_t tokens, int64_t topK,
                  ScalarType type = ScalarType::F32,
                  const WeightOptions &options = {}, int64_t halves = 2);

/// |actual - expected| / |expected|, Frobenius norm; infinity when anything is
/// not finite.
double relativeError(const HostTensor &actual,
                     const std::vector<double> &expected);

/// What a kernel that rounds its result to `type` once may differ by.
double tolerance(ScalarType type);

/// Memory aligned to 64 bytes, filled with NaN.
class Workspace {
public:
  explicit Workspace(int64_t bytes);
  void *data() { return aligned; }

private:
  std::vector<char> memory;
  void *aligned;
};

} // namespace wna16test

#endif // WNA16_UNITTESTS_RUNTIME_TESTSUPPORT_H
