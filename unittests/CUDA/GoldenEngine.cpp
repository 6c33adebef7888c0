//===- GoldenEngine.cpp - The golden test on a device ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a device moves has to be what the CPU moves, too: files record no global
// scales and not all side tensors.
//
//===----------------------------------------------------------------------===//

#include "../Layout/GoldenEngine.h"
#include "TestSupport.h"

#include "Runtime/Weight.h"

#include <algorithm>
#include <cstring>

using namespace wna16;
using namespace wna16::test;
using namespace wna16test;

static HostTensor tensorOf(const Bytes &bytes, ScalarType type,
                           std::vector<int64_t> shape) {
  HostTensor tensor(type, std::move(shape));
  EXPECT_EQ(static_cast<size_t>(tensor.bytes()), bytes.size());
  std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

static void copyBack(const HostTensor &tensor, Bytes &bytes) {
  std::memcpy(bytes.data(), tensor.data(), bytes.size());
}

static TestWeight tensorsOf(const Stored &stored) {
  TestWeight weight;
  weight.plan = weightOf(stored.spec);
  const Result<std::vector<StoredPart>> storage = storageOf(stored.spec);
  for (const StoredPart &part : *storage)
    weight.parts[static_cast<int64_t>(part.part)] =
        tensorOf(stored.at(part.part), part.type, part.shape);
  return weight;
}

static std::string statusOf(wna16_status status) {
  return status == WNA16_OK ? "" : wna16_status_message();
}

/// A window that is not all from the first on has extents.
static wna16_convert_plan planOf(const wna16_weight &source,
                                 const wna16_weight &target, Window window) {
  wna16_convert_plan plan = convertPlan(source, target);
  plan.input = window.input;
  plan.inputs = std::max<int64_t>(window.inputs, 0);
  plan.output = window.output;
  plan.outputs = std::max<int64_t>(window.outputs, 0);
  return plan;
}

std::string engine::move(Stored &from, Stored &to, Window window) {
  Stored expected(to.spec);
  if (std::string bad = moveAll(from, expected, window); !bad.empty())
    return bad;
  TestWeight source = tensorsOf(from), target = tensorsOf(to);
  const wna16_convert_plan plan = planOf(source.plan, target.plan, window);
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  addParts(target, tensors);
  if (std::string bad =
          statusOf(runOnDevice(wna16_cuda_convert, &plan, tensors, kNumParts));
      !bad.empty())
    return bad;
  for (int part = 0; part < kNumParts; ++part) {
    copyBack(target.parts[part], to.parts[part]);
    if (to.parts[part] != expected.parts[part])
      return "the device's " + std::string(name(Part(part))) +
             " are not the CPU's";
  }
  return "";
}

std::string engine::dequantize(Stored &from, Bytes &out) {
  const WeightSpec &spec = from.spec;
  TestWeight source = tensorsOf(from);
  // Files have the values of sorted rows as they lie, groups one after the
  // other; to a device those are rows in their order.
  if (spec.actOrder == ActOrder::Sorted) {
    source.plan.act_order = static_cast<int64_t>(ActOrder::None);
    source.parts[static_cast<int>(Part::Permutation)] = HostTensor();
  }
  WeightSpec dense = spec;
  dense.code = CodeType::Dense;
  dense.element = ScalarType::BF16;
  dense.zeros = ZeroPoints::None;
  dense.actOrder = ActOrder::None;
  dense.group = -1;
  dense.layout = findLayout("dense");
  wna16_convert_plan plan = convertPlan(source.plan, weightOf(dense));
  plan.scale_first = 1;
  HostTensor values =
      tensorOf(out, ScalarType::BF16, {spec.experts, spec.rows(), spec.input});
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  tensors.push_back(&values);
  const std::string bad =
      statusOf(runOnDevice(wna16_cuda_dequantize, &plan, tensors, 1));
  copyBack(values, out);
  return bad;
}

std::string engine::moveBias(const WeightSpec &source, const Bytes &from,
                             const WeightSpec &target, Bytes &to,
                             Window window) {
  const wna16_convert_plan plan =
      planOf(weightOf(source), weightOf(target), window);
  HostTensor in = tensorOf(from, ScalarType::F16,
                           {source.experts, source.halves, source.output});
  HostTensor out = tensorOf(to, ScalarType::F16,
                            {target.experts, target.halves, target.output});
  const std::string bad =
      statusOf(runOnDevice(wna16_cuda_convert_bias, &plan, {&in, &out}, 1));
  copyBack(out, to);
  return bad;
}
