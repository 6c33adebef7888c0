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
#include "Workspace.h"

#include <algorithm>
#include <cstdio>
#include <omp.h>
#include <utility>

using namespace wna16;

static constexpr int64_t kSlotsPerChunk = 4096;
static constexpr int64_t kRowsPerTask = 16;

namespace {

/// The pieces of the workspace. A slot is a token's slot within the chunk.
struct Buffers {
  void *table13;
  void *table2;
  int64_t *begin;  ///< [experts + 1] where an expert's slots begin in `order`
  int32_t *order;  ///< [slots] slots sorted by expert
  int32_t *local;  ///< [slots] expert of each slot, or -1
  int32_t *active; ///< [experts] those with tokens
  float *x;        ///< [tokens or slots, w13.input]
  float *hidden;   ///< [slots, w2.input]
  float *rows;     ///< [slots, hidden] weighted results
  float *scratch;  ///< [threads, scratchSize]
  int64_t scratchSize;
};

class PortableExperts {
public:
  PortableExperts(const ExpertsPlan &plan, const ExpertsArguments &arguments,
                  const Buffers &buffers, int threads)
      : plan(plan), arguments(arguments), buffers(buffers), threads(threads),
        topK(plan.fields.top_k) {}

  wna16_status run(int64_t tokensPerChunk);

private:
  bool initDecoders();
  void sortSlots();
  bool checkActive() const;
  void loadInputs() const;
  void runFirst() const;
  void firstBlock(int64_t expert, int64_t row, int64_t end) const;
  void sortHidden() const;
  void runSecond() const;
  void secondBlock(int64_t expert, int64_t row, int64_t end) const;
  void sumSlots() const;

  template <typename Block>
  void forEachBlock(int64_t rows, Block block) const;
  const int32_t *permutation(const WeightSpec &spec, const WeightBuffers &parts,
                             int64_t expert) const;
  float *threadScratch() const {
    return buffers.scratch + omp_get_thread_num() * buffers.scratchSize;
  }

  const ExpertsPlan &plan;
  const ExpertsArguments &arguments;
  const Buffers buffers;
  const int threads;
  const int64_t topK;
  RowDecoder w13;
  RowDecoder w2;
  // The chunk at hand.
  int64_t firstToken = 0;
  int64_t tokens = 0;
  int64_t numActive = 0;
};

} // namespace

static bool isSorted(const WeightSpec &spec) {
  return spec.actOrder == ActOrder::Sorted;
}

/// Sorted rows differ between experts: then x has a row for each slot.
static int64_t inputRowsPerToken(const ExpertsPlan &plan) {
  return isSorted(plan.w13) ? plan.fields.top_k : 1;
}

static int64_t tokensPerChunk(const ExpertsPlan &plan, int64_t tokens) {
  return std::min(tokens,
                  std::max<int64_t>(1, kSlotsPerChunk / plan.fields.top_k));
}

static Buffers layOut(const ExpertsPlan &plan, int64_t tokens, int threads,
                      Carver &carver) {
  const WeightSpec &w13 = plan.w13, &w2 = plan.w2;
  const int64_t chunk = tokensPerChunk(plan, tokens);
  const int64_t slots = chunk * plan.fields.top_k;
  Buffers buffers;
  buffers.table13 = carver.takeBytes(RowDecoder::tableBytes(w13));
  buffers.table2 = carver.takeBytes(RowDecoder::tableBytes(w2));
  buffers.begin = carver.take<int64_t>(w13.experts + 1);
  buffers.order = carver.take<int32_t>(slots);
  buffers.local = carver.take<int32_t>(slots);
  buffers.active = carver.take<int32_t>(w13.experts);
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

/// A counting sort, stable, so that slots of an expert stay in token order.
void PortableExperts::sortSlots() {
  const int64_t experts = plan.w13.experts;
  int64_t *begin = buffers.begin;
  std::fill_n(begin, experts + 1, 0);
  for (int64_t slot = 0; slot < tokens * topK; ++slot) {
    int32_t expert =
        arguments.expertOf(plan, firstToken + slot / topK, slot % topK);
    buffers.local[slot] = expert;
    if (expert >= 0)
      ++begin[expert + 1];
  }
  numActive = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (begin[e + 1] > 0)
      buffers.active[numActive++] = static_cast<int32_t>(e);
    begin[e + 1] += begin[e];
  }
  for (int64_t slot = 0; slot < tokens * topK; ++slot)
    if (int32_t expert = buffers.local[slot]; expert >= 0)
      buffers.order[begin[expert]++] = static_cast<int32_t>(slot);
  // Each begin has moved to its end, which is the next one's begin.
  std::copy_backward(begin, begin + experts, begin + experts + 1);
  begin[0] = 0;
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
  for (int64_t i = 0; i < numActive; ++i)
    if (!checkOrder("w13", plan.w13, arguments.w13, buffers.active[i]) ||
        !checkOrder("w2", plan.w2, arguments.w2, buffers.active[i]))
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

void PortableExperts::loadInputs() const {
  const int64_t input = plan.w13.input, hidden = plan.fields.hidden;
  const bool sorted = isSorted(plan.w13);
  const int64_t perToken = inputRowsPerToken(plan);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t row = 0; row < tokens * perToken; ++row) {
    const int64_t token = row / perToken;
    // Rows nobody asks for may hold anything and are not read.
    const int32_t *locals = buffers.local + (sorted ? row : token * topK);
    if (std::all_of(locals, locals + (sorted ? 1 : topK),
                    [](int32_t expert) { return expert < 0; }))
      continue;
    float *out = buffers.x + row * input;
    float *line = sorted ? threadScratch() : out;
    loadElements(arguments.x.type, arguments.x.data,
                 (firstToken + token) * hidden, hidden, line);
    std::fill(line + hidden, line + input, 0.0f);
    if (plan.fields.weight_on_input) {
      const float weight = arguments.weightOf(plan, firstToken + token, 0);
      for (int64_t k = 0; k < hidden; ++k)
        line[k] *= weight;
    }
    if (sorted)
      gatherElements(line, permutation(plan.w13, arguments.w13, *locals), input,
                     out);
  }
}

/// Calls block(expert, row, end) for blocks of `rows` rows of each expert that
/// has tokens, from all threads.
template <typename Block>
void PortableExperts::forEachBlock(int64_t rows, Block block) const {
  const int64_t blocks = (rows + kRowsPerTask - 1) / kRowsPerTask;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int64_t task = 0; task < numActive * blocks; ++task) {
    const int64_t row = task % blocks * kRowsPerTask;
    block(buffers.active[task / blocks], row,
          std::min(row + kRowsPerTask, rows));
  }
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

void PortableExperts::firstBlock(int64_t expert, int64_t row,
                                 int64_t end) const {
  const int64_t input = plan.w13.input, width = plan.w13.output;
  const int64_t slotsPerInput = isSorted(plan.w13) ? 1 : topK;
  const Activation activation = plan.activation();
  const bool gated = plan.isGated();
  float *gateRow = threadScratch(), *upRow = gateRow + input;
  auto biasOf = [&](int64_t n) {
    return biasAt(arguments.bias13, arguments.order13, plan.w13.rows(), expert,
                  n);
  };
  const int32_t *slots = buffers.order + buffers.begin[expert];
  const int32_t *last = buffers.order + buffers.begin[expert + 1];
  for (int64_t n = row; n < end; ++n) {
    const float gateBias = biasOf(n), upBias = gated ? biasOf(n + width) : 0;
    w13.decode(expert, n, gateRow);
    if (gated)
      w13.decode(expert, n + width, upRow);
    for (const int32_t *slot = slots; slot != last; ++slot) {
      const float *x = buffers.x + *slot / slotsPerInput * input;
      const float gate = dot(gateRow, x, input) + gateBias;
      buffers.hidden[*slot * width + n] =
          gated ? activation(gate, dot(upRow, x, input) + upBias)
                : activation(gate);
    }
  }
  for (const int32_t *slot = slots; slot != last; ++slot)
    roundElements(plan.element(), buffers.hidden + *slot * width + row,
                  end - row);
}

void PortableExperts::runFirst() const {
  forEachBlock(plan.w13.output,
               [this](int64_t expert, int64_t row, int64_t end) {
                 firstBlock(expert, row, end);
               });
}

/// Brings hidden values into the order of w2's sorted rows.
void PortableExperts::sortHidden() const {
  if (!isSorted(plan.w2))
    return;
  const int64_t width = plan.w2.input;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t slot = 0; slot < tokens * topK; ++slot) {
    const int32_t expert = buffers.local[slot];
    if (expert < 0)
      continue;
    float *line = threadScratch();
    std::copy_n(buffers.hidden + slot * width, width, line);
    gatherElements(line, permutation(plan.w2, arguments.w2, expert), width,
                   buffers.hidden + slot * width);
  }
}

void PortableExperts::secondBlock(int64_t expert, int64_t row,
                                  int64_t end) const {
  const int64_t width = plan.w2.input;
  float *weightRow = threadScratch();
  for (int64_t n = row; n < end; ++n) {
    const float bias =
        biasAt(arguments.bias2, arguments.order2, plan.w2.output, expert, n);
    w2.decode(expert, n, weightRow);
    for (int64_t i = buffers.begin[expert]; i < buffers.begin[expert + 1];
         ++i) {
      const int64_t slot = buffers.order[i];
      const float weight =
          plan.fields.weight_on_input
              ? 1.0f
              : arguments.weightOf(plan, firstToken + slot / topK, slot % topK);
      buffers.rows[slot * plan.fields.hidden + n] =
          (dot(weightRow, buffers.hidden + slot * width, width) + bias) *
          weight;
    }
  }
}

void PortableExperts::runSecond() const {
  forEachBlock(plan.fields.hidden,
               [this](int64_t expert, int64_t row, int64_t end) {
                 secondBlock(expert, row, end);
               });
}

void PortableExperts::sumSlots() const {
  const int64_t hidden = plan.fields.hidden;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t token = 0; token < tokens; ++token) {
    constexpr int64_t kWidth = 256;
    for (int64_t begin = 0; begin < hidden; begin += kWidth) {
      const int64_t count = std::min(kWidth, hidden - begin);
      float sum[kWidth] = {};
      for (int64_t slot = token * topK; slot < (token + 1) * topK; ++slot) {
        if (buffers.local[slot] < 0)
          continue;
        const float *row = buffers.rows + slot * hidden + begin;
        for (int64_t i = 0; i < count; ++i)
          sum[i] += row[i];
      }
      storeElements(arguments.y.type, sum, count, arguments.y.data,
                    (firstToken + token) * hidden + begin);
    }
  }
}

wna16_status PortableExperts::run(int64_t chunk) {
  if (!initDecoders())
    return wna16_status_get();
  for (; firstToken < arguments.tokens; firstToken += chunk) {
    tokens = std::min(chunk, arguments.tokens - firstToken);
    sortSlots();
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

static bool takesAll(const ExpertsPlan &, int64_t) { return true; }

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
