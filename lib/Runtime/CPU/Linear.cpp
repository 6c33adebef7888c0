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
#include "PanelWeight.h"
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

//===----------------------------------------------------------------------===//
// On panels
//===----------------------------------------------------------------------===//

namespace {

/// A weight that fast kernels read: dense rows, as those of routers are, or
/// panels.
struct PanelLinear {
  const PanelKernels *kernels = nullptr; ///< none: the weight is not such
  PanelShape shape;
  bool isDense = false;

  const PanelProduct &product() const {
    return isDense ? kernels->dense : kernels->exact;
  }
};

struct PanelLinearBuffers {
  uint8_t *x;           ///< [chunk] prepared rows
  const uint8_t **rows; ///< [chunk] their addresses
  float *scratch;       ///< [threads, kTokensAtOnce, kPanelRows]
};

} // namespace

/// Tokens that a task multiplies, whose rows then stay in the second cache.
static constexpr int64_t kTokensAtOnce = 64;

static PanelLinear panelsOf(const LinearPlan &plan) {
  const std::optional<PanelShape> shape = panelShapeOf(plan.weight);
  PanelLinear linear;
  if (!shape)
    return linear;
  linear.kernels = panelKernels();
  linear.shape = *shape;
  linear.isDense = plan.weight.code == CodeType::Dense;
  return linear;
}

static PanelLinearBuffers layOutPanels(const PanelLinear &linear,
                                       int64_t tokens, int threads,
                                       Carver &carver) {
  const int64_t chunk = std::min(tokens, kTokensPerChunk);
  PanelLinearBuffers buffers;
  buffers.x = static_cast<uint8_t *>(
      carver.takeBytes(chunk, linear.product().rowBytes(linear.shape)));
  buffers.rows = carver.take<const uint8_t *>(chunk);
  buffers.scratch = carver.take<float>(threads * kTokensAtOnce * kPanelRows);
  return buffers;
}

/// Outputs of one task: few where there are few tokens to share among threads.
static int64_t outputsAtOnce(const PanelLinear &linear, int64_t tokens) {
  return linear.isDense && tokens < kTokensAtOnce ? 8 : kPanelRows;
}

/// Adds the bias and writes results [row, row + outputs) of some tokens.
static void writeResults(const LinearArguments &arguments, int64_t rows,
                         int64_t token, int64_t tokens, int64_t row,
                         int64_t outputs, float *results) {
  float bias[kPanelRows] = {};
  if (arguments.bias.present)
    loadElements(arguments.bias.type, arguments.bias.data, row, outputs, bias);
  for (int64_t t = 0; t < tokens; ++t) {
    float *line = results + t * kPanelRows;
    for (int64_t i = 0; i < outputs; ++i)
      line[i] += bias[i];
    storeElements(arguments.y.type, line, outputs, arguments.y.data,
                  (token + t) * rows + row);
  }
}

/// As runChunk.
static void runPanels(const LinearPlan &plan, const LinearArguments &arguments,
                      const PanelLinear &linear,
                      const PanelLinearBuffers &buffers, int threads,
                      int64_t first, int64_t count) {
  const PanelProduct &product = linear.product();
  const PanelWeight weight(plan.weight, arguments.weight);
  const int64_t input = plan.weight.input, rows = plan.weight.rows();
  const int64_t rowBytes = product.rowBytes(linear.shape);
  auto *x = static_cast<const uint8_t *>(arguments.x.data);
  parallelFor(threads, count, [&](int64_t t, Worker) {
    uint8_t *row = buffers.x + t * rowBytes;
    product.prepare(linear.shape, arguments.x.type,
                    x + (first + t) * input * sizeOf(arguments.x.type), input,
                    1.0f, row);
    buffers.rows[t] = row;
  });
  const int64_t outputs = outputsAtOnce(linear, count);
  const int64_t blocks = (rows + outputs - 1) / outputs;
  const int64_t groups = (count + kTokensAtOnce - 1) / kTokensAtOnce;
  parallelFor(threads, groups * blocks, [&](int64_t task, Worker worker) {
    const int64_t token = task / blocks * kTokensAtOnce;
    const int64_t row = task % blocks * outputs;
    const int64_t tokens = std::min(kTokensAtOnce, count - token);
    Panel panel = weight.panel(0, row / kPanelRows);
    panel.rows = std::min(outputs, rows - row);
    // Only dense tasks begin within a panel.
    panel.codes += row % kPanelRows * (linear.shape.codeBytes() / kPanelRows);
    float *results = buffers.scratch + worker * kTokensAtOnce * kPanelRows;
    product.multiply(linear.shape, panel, panel, buffers.rows + token, tokens,
                     results, kPanelRows);
    writeResults(arguments, rows, first + token, tokens, row, panel.rows,
                 results);
  });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Bytes of a call of one kernel or the other.
static int64_t workspaceOf(const LinearPlan &plan, const PanelLinear &panels,
                           int64_t tokens, int threads) {
  Carver carver(nullptr);
  if (panels.kernels)
    layOutPanels(panels, tokens, threads, carver);
  else
    layOut(plan, tokens, threads, carver);
  return carver.bytes(kKernel);
}

/// Calls run(first, count) for chunks of tokens.
template <typename Run>
static wna16_status forChunks(int64_t tokens, const Run &run) {
  for (int64_t first = 0; first < tokens; first += kTokensPerChunk)
    run(first, std::min(kTokensPerChunk, tokens - first));
  return WNA16_OK;
}

int64_t wna16_cpu_linear_workspace(const void *plan, int64_t tokens) {
  // A size does not depend on what failed before.
  wna16_status_clear();
  LinearPlan linear;
  if (!readPlan(plan, linear) ||
      !checkRange(kKernel, "tokens", tokens, 0, INT64_MAX))
    return -1;
  return workspaceOf(linear, panelsOf(linear), tokens, threadCount());
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
  const PanelLinear panels = panelsOf(linear);
  const int64_t needed = workspaceOf(linear, panels, arguments.tokens, threads);
  if (needed < 0 ||
      wna16_check_workspace(needed, workspace, workspace_bytes) != WNA16_OK)
    return wna16_status_get();
  Carver carver(workspace);
  if (panels.kernels) {
    const PanelLinearBuffers buffers =
        layOutPanels(panels, arguments.tokens, threads, carver);
    return forChunks(arguments.tokens, [&](int64_t first, int64_t chunk) {
      runPanels(linear, arguments, panels, buffers, threads, first, chunk);
    });
  }
  const LinearBuffers buffers =
      layOut(linear, arguments.tokens, threads, carver);
  RowDecoder decoder;
  if (Failure failure =
          decoder.init(linear.weight, arguments.weight, buffers.table))
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel,
                     failure.message.c_str());
  return forChunks(arguments.tokens, [&](int64_t first, int64_t chunk) {
    runChunk(linear, arguments, decoder, buffers, threads, first, chunk);
  });
}
