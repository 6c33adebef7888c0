//===- ExpertsPortable.cpp - Fused experts for any layout and machine -----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens are taken in chunks, so that the workspace does not grow with the
// batch. Per chunk: slots are sorted by expert; x becomes f32; for each block
// of rows of each expert that has tokens, w13's rows are decoded once and used
// for all of them; likewise w2's, into one f32 row a slot; the slots of each
// token are summed in order.
//
//===----------------------------------------------------------------------===//

#include "../Status.h"
#include "Dot.h"
#include "Elements.h"
#include "Experts.h"
#include "Layout/Move.h"
#include "Slots.h"
#include "Threads.h"

#include <algorithm>
#include <cstdio>
#include <utility>

using namespace wna16;

static constexpr int64_t kRowsPerTask = 16;

namespace {

/// The pieces of the workspace.
struct Buffers {
  void *table13;
  void *table2;
  SlotOrder slots;
  float *x;       ///< [tokens or slots, w13.input]
  float *hidden;  ///< [slots, w2.input]
  float *rows;    ///< [slots, hidden] weighted results
  float *scratch; ///< [threads, scratchSize]
  int64_t scratchSize;
};

class PortableExperts {
public:
  PortableExperts(const ExpertsPlan &plan, const ExpertsArguments &arguments,
                  const Buffers &buffers, int threads)
      : plan(plan), arguments(arguments), buffers(buffers), threads(threads),
        topK(plan.fields.top_k), slots(buffers.slots) {}

  wna16_status run(int64_t tokensPerChunk);

private:
  bool initDecoders();
  bool checkActive() const;
  void loadInput(int64_t row, float *scratch) const;
  void loadInputs() const;
  void runFirst() const;
  void firstBlock(int64_t expert, int64_t row, int64_t end,
                  float *scratch) const;
  void sortHidden() const;
  void runSecond() const;
  void secondBlock(int64_t expert, int64_t row, int64_t end,
                   float *scratch) const;
  void sumSlots() const;

  template <typename Block>
  void forEachBlock(int64_t rows, Block block) const;
  const int32_t *permutation(const WeightSpec &spec, const WeightBuffers &parts,
                             int64_t expert) const;
  float *scratchOf(Worker worker) const {
    return buffers.scratch + worker * buffers.scratchSize;
  }

  const ExpertsPlan &plan;
  const ExpertsArguments &arguments;
  const Buffers buffers;
  const int threads;
  const int64_t topK;
  RowDecoder w13;
  RowDecoder w2;
  SlotOrder slots;
};

} // namespace

static bool isSorted(const WeightSpec &spec) {
  return spec.actOrder == ActOrder::Sorted;
}

/// Sorted rows differ between experts: then x has a row for each slot.
static int64_t inputRowsPerToken(const ExpertsPlan &plan) {
  return isSorted(plan.w13) ? plan.fields.top_k : 1;
}

static Buffers layOut(const ExpertsPlan &plan, int64_t tokens, int threads,
                      Carver &carver) {
  const WeightSpec &w13 = plan.w13, &w2 = plan.w2;
  const int64_t chunk = tokensPerChunk(plan, tokens);
  const int64_t slots = chunk * plan.fields.top_k;
  Buffers buffers;
  buffers.table13 = carver.takeBytes(RowDecoder::tableBytes(w13));
  buffers.table2 = carver.takeBytes(RowDecoder::tableBytes(w2));
  buffers.slots = SlotOrder::carve(plan, slots, carver);
  buffers.x = carver.take<float>(chunk * inputRowsPerToken(plan) * w13.input);
  buffers.hidden = carver.take<float>(slots * w2.input);
  buffers.rows = carver.take<float>(slots * plan.fields.hidden);
  // A row of gate and one of up, or a row to be gathered.
  buffers.scratchSize = (2 * std::max(w13.input, w2.input) + 15) & ~int64_t(15);
  buffers.scratch = carver.take<float>(threads * buffers.scratchSize);
  return buffers;
}

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

bool PortableExperts::initDecoders() {
  const std::pair<const char *, Failure> results[] = {
      {"w13", w13.init(plan.w13, arguments.w13, buffers.table13)},
      {"w2", w2.init(plan.w2, arguments.w2, buffers.table2)}};
  for (const auto &[name, failure] : results)
    if (failure)
      setStatus(WNA16_INVALID_ARGUMENT, "fused_experts: %s: %s", name,
                failure.message.c_str());
  return wna16_status_get() == WNA16_OK;
}

/// Row order and groups of one weight's expert come from a file.
static bool checkOrder(const char *name, const WeightSpec &spec,
                       const WeightBuffers &parts, int64_t expert) {
  if (spec.actOrder == ActOrder::None)
    return true;
  const Part part = isSorted(spec) ? Part::Permutation : Part::GroupIndex;
  const int64_t limit = isSorted(spec) ? spec.input : spec.groups();
  char what[64];
  std::snprintf(what, sizeof what, "%s %s of expert %lld", name,
                wna16::name(part).data(), static_cast<long long>(expert));
  return checkIndices("fused_experts", what,
                      parts.get<const int32_t>(part) + expert * spec.input,
                      spec.input, 0, limit);
}

bool PortableExperts::checkActive() const {
  for (int64_t i = 0; i < slots.numActive; ++i)
    if (!checkOrder("w13", plan.w13, arguments.w13, slots.active[i]) ||
        !checkOrder("w2", plan.w2, arguments.w2, slots.active[i]))
      return false;
  return true;
}

const int32_t *PortableExperts::permutation(const WeightSpec &spec,
                                            const WeightBuffers &parts,
                                            int64_t expert) const {
  return parts.get<const int32_t>(Part::Permutation) + expert * spec.input;
}

//===----------------------------------------------------------------------===//
// The phases
//===----------------------------------------------------------------------===//

/// The row-th row of x; sorted, there is one for each slot.
void PortableExperts::loadInput(int64_t row, float *scratch) const {
  const int64_t input = plan.w13.input, hidden = plan.fields.hidden;
  const bool sorted = isSorted(plan.w13);
  const int64_t chunkToken = sorted ? row / topK : row;
  const int64_t token = slots.firstToken + chunkToken;
  // Rows nobody asks for may hold anything and are not read.
  if (sorted ? slots.local[row] < 0 : !slots.isUsed(chunkToken))
    return;
  float *out = buffers.x + row * input;
  float *line = sorted ? scratch : out;
  loadElements(arguments.x.type, arguments.x.data, token * hidden, hidden,
               line);
  std::fill(line + hidden, line + input, 0.0f);
  if (plan.fields.weight_on_input) {
    const float weight = arguments.weightOf(plan, token, 0);
    for (int64_t k = 0; k < hidden; ++k)
      line[k] *= weight;
  }
  if (sorted)
    gatherElements(line, permutation(plan.w13, arguments.w13, slots.local[row]),
                   input, out);
}

void PortableExperts::loadInputs() const {
  parallelFor(
      threads, slots.tokens * inputRowsPerToken(plan),
      [&](int64_t row, Worker worker) { loadInput(row, scratchOf(worker)); });
}

/// Calls block(expert, row, end, scratch) for blocks of `rows` rows of each
/// expert that has tokens, from all threads.
template <typename Block>
void PortableExperts::forEachBlock(int64_t rows, Block block) const {
  const int64_t blocks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  parallelFor(threads, slots.numActive * blocks,
              [&](int64_t task, Worker worker) {
                const int64_t row = task % blocks * kRowsPerTask;
                block(slots.active[task / blocks], row,
                      std::min(row + kRowsPerTask, rows), scratchOf(worker));
              });
}

/// Bias of row `row` of an expert with `rows` rows; 0 without one.
static float biasAt(const Tensor &bias, const AddressMap &order, int64_t rows,
                    int64_t expert, int64_t row) {
  float value = 0;
  if (bias.present)
    loadElements(bias.type, bias.data, expert * rows + order.row(row), 1,
                 &value);
  return value;
}

void PortableExperts::firstBlock(int64_t expert, int64_t row, int64_t end,
                                 float *scratch) const {
  const int64_t input = plan.w13.input, width = plan.w13.output;
  const int64_t slotsPerInput = isSorted(plan.w13) ? 1 : topK;
  const Activation activation = activationOf(plan);
  const bool gated = plan.isGated();
  float *gateRow = scratch, *upRow = gateRow + input;
  auto biasOf = [&](int64_t n) {
    return biasAt(arguments.bias13, arguments.order13, plan.w13.rows(), expert,
                  n);
  };
  const int32_t *first = slots.order + slots.begin[expert];
  const int32_t *last = slots.order + slots.begin[expert + 1];
  for (int64_t n = row; n < end; ++n) {
    const float gateBias = biasOf(n), upBias = gated ? biasOf(n + width) : 0;
    w13.decode(expert, n, gateRow);
    if (gated)
      w13.decode(expert, n + width, upRow);
    for (const int32_t *slot = first; slot != last; ++slot) {
      const float *x = buffers.x + *slot / slotsPerInput * input;
      const float gate = dot(gateRow, x, input) + gateBias;
      buffers.hidden[*slot * width + n] =
          gated ? activation(gate, dot(upRow, x, input) + upBias)
                : activation(gate);
    }
  }
  for (const int32_t *slot = first; slot != last; ++slot)
    roundElements(plan.element(), buffers.hidden + *slot * width + row,
                  end - row);
}

void PortableExperts::runFirst() const {
  forEachBlock(plan.w13.output, [this](int64_t expert, int64_t row, int64_t end,
                                       float *scratch) {
    firstBlock(expert, row, end, scratch);
  });
}

/// Brings hidden values into the order of w2's sorted rows.
void PortableExperts::sortHidden() const {
  if (!isSorted(plan.w2))
    return;
  const int64_t width = plan.w2.input;
  parallelFor(threads, slots.tokens * topK, [&](int64_t slot, Worker worker) {
    const int32_t expert = slots.local[slot];
    if (expert < 0)
      return;
    float *line = scratchOf(worker);
    std::copy_n(buffers.hidden + slot * width, width, line);
    gatherElements(line, permutation(plan.w2, arguments.w2, expert), width,
                   buffers.hidden + slot * width);
  });
}

void PortableExperts::secondBlock(int64_t expert, int64_t row, int64_t end,
                                  float *scratch) const {
  const int64_t width = plan.w2.input;
  float *weightRow = scratch;
  for (int64_t n = row; n < end; ++n) {
    const float bias =
        biasAt(arguments.bias2, arguments.order2, plan.w2.output, expert, n);
    w2.decode(expert, n, weightRow);
    for (int64_t i = slots.begin[expert]; i < slots.begin[expert + 1]; ++i) {
      const int64_t slot = slots.order[i];
      const float weight =
          plan.fields.weight_on_input
              ? 1.0f
              : arguments.weightOf(plan, slots.tokenAt(i), slot % topK);
      buffers.rows[slot * plan.fields.hidden + n] =
          (dot(weightRow, buffers.hidden + slot * width, width) + bias) *
          weight;
    }
  }
}

void PortableExperts::runSecond() const {
  forEachBlock(plan.fields.hidden, [this](int64_t expert, int64_t row,
                                          int64_t end, float *scratch) {
    secondBlock(expert, row, end, scratch);
  });
}

void PortableExperts::sumSlots() const {
  const int64_t hidden = plan.fields.hidden;
  parallelFor(threads, slots.tokens, [&](int64_t token, Worker) {
    constexpr int64_t kWidth = 256;
    for (int64_t begin = 0; begin < hidden; begin += kWidth) {
      const int64_t count = std::min(kWidth, hidden - begin);
      float sum[kWidth] = {};
      for (int64_t slot = token * topK; slot < (token + 1) * topK; ++slot) {
        if (slots.local[slot] < 0)
          continue;
        const float *row = buffers.rows + slot * hidden + begin;
        for (int64_t i = 0; i < count; ++i)
          sum[i] += row[i];
      }
      storeElements(arguments.y.type, sum, count, arguments.y.data,
                    (slots.firstToken + token) * hidden + begin);
    }
  });
}

wna16_status PortableExperts::run(int64_t chunk) {
  if (!initDecoders())
    return wna16_status_get();
  for (int64_t token = 0; token < arguments.tokens; token += chunk) {
    slots.sort(plan, arguments, token,
               std::min(chunk, arguments.tokens - token));
    if (!checkActive())
      return wna16_status_get();
    loadInputs();
    runFirst();
    sortHidden();
    runSecond();
    sumSlots();
  }
  return WNA16_OK;
}

//===----------------------------------------------------------------------===//
// The row of the table
//===----------------------------------------------------------------------===//

static bool takesAll(const ExpertsPlan &) { return true; }

static int64_t portableWorkspace(const ExpertsPlan &plan, int64_t tokens,
                                 int threads) {
  Carver carver(nullptr);
  layOut(plan, tokens, threads, carver);
  return carver.bytes("fused_experts");
}

static wna16_status runPortable(const ExpertsPlan &plan,
                                const ExpertsArguments &arguments,
                                void *workspace, int threads) {
  Carver carver(workspace);
  Buffers buffers = layOut(plan, arguments.tokens, threads, carver);
  return PortableExperts(plan, arguments, buffers, threads)
      .run(tokensPerChunk(plan, arguments.tokens));
}

const ExpertsKernel wna16::portableExperts = {"portable", takesAll,
                                              portableWorkspace, runPortable};
