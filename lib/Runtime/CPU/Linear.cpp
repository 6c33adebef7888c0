//===- Linear.cpp - x times one weight ------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "../Status.h"
#include "Dot.h"
#include "Elements.h"
#include "Layout/Move.h"
#include "Threads.h"
#include "Workspace.h"

using namespace wna16;

static constexpr const char *kKernel = "linear";
static constexpr int64_t kTokensPerChunk = 1024;

namespace {

struct LinearPlan {
  wna16_linear_plan fields;
  WeightSpec weight;

  bool isSorted() const { return weight.actOrder == ActOrder::Sorted; }
};

struct LinearBuffers {
  void *table;
  float *x;       ///< [chunk, input]
  float *scratch; ///< [threads, input]
};

struct LinearArguments {
  Tensor x, bias, y;
  WeightBuffers weight;
  int64_t tokens = 0;
};

} // namespace

static LinearBuffers layOut(const LinearPlan &plan, int64_t tokens, int threads,
                            Carver &carver) {
  const int64_t input = plan.weight.input;
  LinearBuffers buffers;
  buffers.table = carver.takeBytes(RowDecoder::tableBytes(plan.weight));
  buffers.x = carver.take<float>(std::min(tokens, kTokensPerChunk) * input);
  buffers.scratch = carver.take<float>(threads * input);
  return buffers;
}

static bool readPlan(const void *address, LinearPlan &plan) {
  if (!startCall(kKernel, address))
    return false;
  plan.fields = *static_cast<const wna16_linear_plan *>(address);
  return checkRange(kKernel, "batch_invariant", plan.fields.batch_invariant, 0,
                    1) &&
         readWeight(kKernel, "weight", plan.fields.weight, plan.weight) &&
         checkRange(kKernel, "weight.experts", plan.weight.experts, 1, 1);
}

static bool readTensors(const LinearPlan &plan, const wna16_tensor *tensors,
                        int64_t count, LinearArguments &arguments) {
  const WeightSpec &weight = plan.weight;
  ArgumentReader reader(kKernel, tensors, count, 3 + WNA16_WEIGHT_TENSORS);
  arguments.x = reader.take("x", kFloatTypes, {-1, weight.input});
  arguments.weight = reader.takeWeight("weight", plan.fields.weight);
  arguments.bias = reader.takeOptional("bias", kFloatTypes, {weight.rows()});
  arguments.tokens = reader.good() ? arguments.x.shape[0] : 0;
  arguments.y =
      reader.take("y", kFloatTypes, {arguments.tokens, weight.rows()});
  if (!reader.good())
    return false;
  if (plan.isSorted())
    return checkIndices(kKernel, "weight permutation",
                        arguments.weight.get<const int32_t>(Part::Permutation),
                        weight.input, 0, weight.input);
  return weight.actOrder == ActOrder::None ||
         checkIndices(kKernel, "weight group index",
                      arguments.weight.get<const int32_t>(Part::GroupIndex),
                      weight.input, 0, weight.groups());
}

/// Tokens [first, first + count): x as f32, then each row of the weight for all
/// of them.
static void runChunk(const LinearPlan &plan, const LinearArguments &arguments,
                     const RowDecoder &decoder, const LinearBuffers &buffers,
                     int threads, int64_t first, int64_t count) {
  const int64_t input = plan.weight.input, rows = plan.weight.rows();
  auto lineOf = [&](Worker worker) { return buffers.scratch + worker * input; };
  parallelFor(threads, count, [&](int64_t t, Worker worker) {
    float *out = buffers.x + t * input;
    float *line = plan.isSorted() ? lineOf(worker) : out;
    loadElements(arguments.x.type, arguments.x.data, (first + t) * input, input,
                 line);
    if (plan.isSorted())
      gatherElements(line,
                     arguments.weight.get<const int32_t>(Part::Permutation),
                     input, out);
  });
  parallelFor(threads, rows, [&](int64_t row, Worker worker) {
    float *line = lineOf(worker);
    float bias = 0;
    if (arguments.bias.present)
      loadElements(arguments.bias.type, arguments.bias.data, row, 1, &bias);
    decoder.decode(0, row, line);
    for (int64_t t = 0; t < count; ++t) {
      const float value = dot(line, buffers.x + t * input, input) + bias;
      storeElements(arguments.y.type, &value, 1, arguments.y.data,
                    (first + t) * rows + row);
    }
  });
}

int64_t wna16_cpu_linear_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  LinearPlan linear;
  if (!readPlan(plan, linear) ||
      !checkRange(kKernel, "tokens", tokens, 0, INT64_MAX))
    return -1;
  Carver carver(nullptr);
  layOut(linear, tokens, threadCount(), carver);
  return carver.bytes(kKernel);
}

wna16_status wna16_cpu_linear(const void *plan, const wna16_tensor *tensors,
                              int64_t count, void *workspace,
                              int64_t workspace_bytes, void *) {
  LinearPlan linear;
  LinearArguments arguments;
  if (!readPlan(plan, linear) ||
      !readTensors(linear, tensors, count, arguments))
    return wna16_status_get();
  const int threads = threadCount();
  Carver size(nullptr);
  layOut(linear, arguments.tokens, threads, size);
  const int64_t needed = size.bytes(kKernel);
  if (needed < 0 ||
      wna16_check_workspace(needed, workspace, workspace_bytes) != WNA16_OK)
    return wna16_status_get();
  Carver carver(workspace);
  const LinearBuffers buffers =
      layOut(linear, arguments.tokens, threads, carver);
  RowDecoder decoder;
  if (Failure failure =
          decoder.init(linear.weight, arguments.weight, buffers.table))
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel,
                     failure.message.c_str());
  for (int64_t first = 0; first < arguments.tokens; first += kTokensPerChunk)
    runChunk(linear, arguments, decoder, buffers, threads, first,
             std::min(kTokensPerChunk, arguments.tokens - first));
  return WNA16_OK;
}
