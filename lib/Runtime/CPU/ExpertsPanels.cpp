//===- ExpertsPanels.cpp - Fused experts on panels of weights -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two loops over the weights, each of which reads every panel of every expert
// that has tokens once:
//
//   gate and up: an iteration takes some panels of w13, multiplies them by all
//   tokens of their expert and activates the results;
//   down: an iteration takes some panels of w2 for all experts, so that it can
//   add up the slots of each token itself.
//
// Between them, rows of activations are prepared for the products.
//
//===----------------------------------------------------------------------===//

#include "../Status.h"
#include "Elements.h"
#include "Experts.h"
#include "Layout/Isa.h"
#include "PanelWeight.h"
#include "Slots.h"
#include "Threads.h"

#include <algorithm>

using namespace wna16;

/// Tokens whose gate and up a thread holds at a time.
static constexpr int64_t kTokensAtOnce = 48;
/// Panels of w2 that an iteration takes at most.
static constexpr int64_t kMostDownPanels = 4;
/// Iterations that each thread should get, so that they end together.
static constexpr int64_t kIterationsPerThread = 8;
/// The last quarter of a loop comes in iterations that are smaller by this.
static constexpr int64_t kEndParts = 4;
/// Rows that an iteration prepares.
static constexpr int64_t kRowsAtOnce = 8;

namespace {

/// The pieces of the workspace.
struct Buffers {
  SlotOrder slots;
  int32_t *position;     ///< [slots] where a slot is in the order, or -1
  float *weights;        ///< [positions] of the slots
  const uint8_t **xRows; ///< [positions] the token's prepared row
  const uint8_t **hRows; ///< [positions]
  uint8_t *x;            ///< [tokens] prepared rows
  uint8_t *hidden;       ///< [positions, w2.input] of x's type
  uint8_t *h;            ///< [positions] prepared rows
  float *noBias;         ///< [kMostDownPanels * kPanelRows] zeros
  float *scratch;        ///< [threads, scratchSize]
  int64_t scratchSize;
};

class PanelExperts {
public:
  PanelExperts(const PanelKernels &kernels, const ExpertsPlan &plan,
               const ExpertsArguments &arguments, const Buffers &buffers,
               int threads)
      : kernels(kernels), product13(productOf(kernels, plan, plan.w13)),
        product2(productOf(kernels, plan, plan.w2)), plan(plan),
        arguments(arguments), buffers(buffers), slots(this->buffers.slots),
        threads(threads), w13(plan.w13, arguments.w13),
        w2(plan.w2, arguments.w2), panels13(plan.w13.output / kPanelRows) {}

  void run();

  static const PanelProduct &productOf(const PanelKernels &kernels,
                                       const ExpertsPlan &plan,
                                       const WeightSpec &weight) {
    if (weight.code == CodeType::Dense)
      return kernels.dense;
    return plan.element() == ScalarType::F32 ? kernels.exact : kernels.fixed;
  }

private:
  void indexSlots();
  void prepareInputs() const;
  void runGateUp() const;
  void gateUpPanel(int64_t task, int64_t nextTask, float *scratch) const;
  void prepareHidden() const;
  void runDown() const;
  void downPanels(int64_t first, int64_t end, float *scratch) const;
  void sumTokens(int64_t first, int64_t end, const float *rows) const;

  /// A row of each half of w13: gate, then up.
  Panel panel13(int64_t task, int64_t half) const {
    return w13.panel(slots.active[task / panels13],
                     half * panels13 + task % panels13);
  }
  const float *biasOf(const Tensor &bias, const AddressMap &order, int64_t rows,
                      int64_t expert, int64_t first, int64_t count,
                      float *out) const;
  float *scratchOf(Worker worker) const {
    return buffers.scratch + worker * buffers.scratchSize;
  }

  const PanelKernels &kernels;
  const PanelProduct &product13, &product2;
  const ExpertsPlan &plan;
  const ExpertsArguments &arguments;
  Buffers buffers;
  SlotOrder &slots;
  const int threads;
  const PanelWeight w13, w2;
  const int64_t panels13; ///< of one half
};

} // namespace

static Buffers layOut(const PanelKernels &kernels, const ExpertsPlan &plan,
                      int64_t tokens, int threads, Carver &carver) {
  auto rowBytes = [&](const WeightSpec &weight) {
    return PanelExperts::productOf(kernels, plan, weight)
        .rowBytes(*panelShapeOf(weight));
  };
  const int64_t chunk = tokensPerChunk(plan, tokens);
  const int64_t slots = chunk * plan.fields.top_k;
  Buffers buffers;
  buffers.slots = SlotOrder::carve(plan, slots, carver);
  buffers.position = carver.take<int32_t>(slots);
  buffers.weights = carver.take<float>(slots);
  buffers.xRows = carver.take<const uint8_t *>(slots);
  buffers.hRows = carver.take<const uint8_t *>(slots);
  buffers.x =
      static_cast<uint8_t *>(carver.takeBytes(chunk, rowBytes(plan.w13)));
  buffers.hidden = static_cast<uint8_t *>(
      carver.takeBytes(slots, plan.w2.input * sizeOf(plan.element())));
  buffers.h =
      static_cast<uint8_t *>(carver.takeBytes(slots, rowBytes(plan.w2)));
  constexpr int64_t kDownRows = kMostDownPanels * kPanelRows;
  buffers.noBias = carver.take<float>(kDownRows);
  // Gate and up with their biases; or rows of w2 of all slots with theirs.
  buffers.scratchSize =
      kDownRows + std::max(2 * kTokensAtOnce * kPanelRows, slots * kDownRows);
  buffers.scratch = carver.take<float>(threads * buffers.scratchSize);
  return buffers;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// What the order of the slots says about each position.
void PanelExperts::indexSlots() {
  const int64_t xBytes = product13.rowBytes(w13.shape());
  const int64_t hBytes = product2.rowBytes(w2.shape());
  std::fill_n(buffers.position, slots.tokens * slots.topK, -1);
  for (int64_t i = 0; i < slots.positions(); ++i) {
    const int64_t slot = slots.order[i];
    buffers.position[slot] = static_cast<int32_t>(i);
    buffers.weights[i] =
        plan.fields.weight_on_input
            ? 1.0f
            : arguments.weightOf(plan, slots.tokenAt(i), slot % slots.topK);
    buffers.xRows[i] = buffers.x + slot / slots.topK * xBytes;
    buffers.hRows[i] = buffers.h + i * hBytes;
  }
}

/// Calls body(row) for `count` rows from all threads.
template <typename Body>
static void forEachRow(int threads, int64_t count, const Body &body) {
  parallelFor(threads, (count + kRowsAtOnce - 1) / kRowsAtOnce,
              [&](int64_t block, Worker) {
                const int64_t end = std::min(count, (block + 1) * kRowsAtOnce);
                for (int64_t row = block * kRowsAtOnce; row < end; ++row)
                  body(row);
              });
}

void PanelExperts::prepareInputs() const {
  const int64_t hidden = plan.fields.hidden;
  const int64_t bytes = product13.rowBytes(w13.shape());
  forEachRow(threads, slots.tokens, [&](int64_t row) {
    // Rows nobody asks for may hold anything and are not read.
    if (!slots.isUsed(row))
      return;
    const int64_t token = slots.firstToken + row;
    const float factor =
        plan.fields.weight_on_input ? arguments.weightOf(plan, token, 0) : 1.0f;
    auto *x = static_cast<const uint8_t *>(arguments.x.data);
    product13.prepare(w13.shape(), plan.element(),
                      x + token * hidden * sizeOf(plan.element()), hidden,
                      factor, buffers.x + row * bytes);
  });
}

void PanelExperts::prepareHidden() const {
  const int64_t width = plan.w2.input, size = sizeOf(plan.element());
  const int64_t bytes = product2.rowBytes(w2.shape());
  forEachRow(threads, slots.positions(), [&](int64_t row) {
    product2.prepare(w2.shape(), plan.element(),
                     buffers.hidden + row * width * size, width, 1.0f,
                     buffers.h + row * bytes);
  });
}

/// Biases of `count` rows of an expert; zeros without any.
const float *PanelExperts::biasOf(const Tensor &bias, const AddressMap &order,
                                  int64_t rows, int64_t expert, int64_t first,
                                  int64_t count, float *out) const {
  if (!bias.present)
    return buffers.noBias;
  for (int64_t i = 0; i < count; ++i)
    loadElements(bias.type, bias.data, expert * rows + order.row(first + i), 1,
                 out + i);
  return out;
}

//===----------------------------------------------------------------------===//
// The two loops
//===----------------------------------------------------------------------===//

namespace {

/// Tasks in parts that one thread takes at a time: long ones, because a thread
/// streams through neighbours; short ones at the end, because then threads wait
/// for each other.
class LoopParts {
public:
  LoopParts(int64_t tasks, int threads) : tasks(tasks) {
    const int64_t parts =
        std::min<int64_t>(tasks, threads * kIterationsPerThread);
    coarse = parts - parts / 4;
    coarseTasks = parts ? tasks * coarse / parts : 0;
    fine = std::min(tasks - coarseTasks, (parts - coarse) * kEndParts);
  }

  int64_t count() const { return coarse + fine; }
  /// The first task of a part; of part count(), all tasks.
  int64_t begin(int64_t part) const {
    if (part < coarse)
      return coarseTasks * part / coarse;
    if (part == coarse)
      return coarseTasks;
    return coarseTasks + (tasks - coarseTasks) * (part - coarse) / fine;
  }

private:
  int64_t tasks, coarse, coarseTasks, fine;
};

} // namespace

/// One panel of each half for all tokens of an expert.
void PanelExperts::gateUpPanel(int64_t task, int64_t nextTask,
                               float *scratch) const {
  const int64_t expert = slots.active[task / panels13];
  const int64_t column = task % panels13 * kPanelRows;
  const int64_t width = plan.w13.output, size = sizeOf(plan.element());
  const bool gated = plan.isGated();
  float *bias = scratch, *gate = bias + 2 * kPanelRows;
  float *up = gate + kTokensAtOnce * kPanelRows;
  auto loadBias = [&](int64_t half) {
    return biasOf(arguments.bias13, arguments.order13, plan.w13.rows(), expert,
                  half * width + column, kPanelRows, bias + half * kPanelRows);
  };
  const float *gateBias = loadBias(0);
  const float *upBias = gated ? loadBias(1) : nullptr;
  const Panel first = panel13(task, 0);
  const Panel second = gated ? panel13(task, 1) : first;
  const Panel next = panel13(nextTask, 0);
  const int64_t end = slots.begin[expert + 1];
  for (int64_t begin = slots.begin[expert]; begin < end;
       begin += kTokensAtOnce) {
    const int64_t count = std::min(kTokensAtOnce, end - begin);
    const uint8_t *const *rows = buffers.xRows + begin;
    product13.multiply(w13.shape(), first, gated ? second : next, rows, count,
                       gate, kPanelRows);
    if (gated)
      product13.multiply(w13.shape(), second, next, rows, count, up,
                         kPanelRows);
    for (int64_t t = 0; t < count; ++t)
      kernels.activate(activationOf(plan), gate + t * kPanelRows, gateBias,
                       gated ? up + t * kPanelRows : nullptr, upBias,
                       plan.element(),
                       buffers.hidden + ((begin + t) * width + column) * size);
  }
}

void PanelExperts::runGateUp() const {
  const LoopParts parts(slots.numActive * panels13, threads);
  parallelFor(threads, parts.count(), [&](int64_t part, Worker worker) {
    const int64_t end = parts.begin(part + 1);
    // When threads take turns, this is where this one goes on.
    const int64_t following =
        parts.begin(std::min(part + threads, parts.count() - 1));
    for (int64_t task = parts.begin(part); task < end; ++task)
      gateUpPanel(task, task + 1 < end ? task + 1 : following,
                  scratchOf(worker));
  });
}

/// Panels [first, end) of w2 for all slots.
void PanelExperts::downPanels(int64_t first, int64_t end,
                              float *scratch) const {
  const int64_t width = (end - first) * kPanelRows;
  float *bias = scratch;
  float *rows = scratch + kMostDownPanels * kPanelRows;
  for (int64_t i = 0; i < slots.numActive; ++i) {
    const int64_t expert = slots.active[i];
    const int64_t begin = slots.begin[expert];
    const int64_t count = slots.begin[expert + 1] - begin;
    for (int64_t panel = first; panel < end; ++panel) {
      const bool isLast = panel + 1 == end;
      const int64_t nextExpert =
          isLast && i + 1 < slots.numActive ? slots.active[i + 1] : expert;
      product2.multiply(w2.shape(), w2.panel(expert, panel),
                        w2.panel(nextExpert, isLast ? first : panel + 1),
                        buffers.hRows + begin, count,
                        rows + begin * width + (panel - first) * kPanelRows,
                        width);
    }
    kernels.finish(rows + begin * width, count, width,
                   biasOf(arguments.bias2, arguments.order2, plan.w2.output,
                          expert, first * kPanelRows, width, bias),
                   buffers.weights + begin);
  }
  sumTokens(first * kPanelRows, end * kPanelRows, rows);
}

/// Columns [first, end) of y, as far as it has them.
void PanelExperts::sumTokens(int64_t first, int64_t end,
                             const float *rows) const {
  const int64_t hidden = plan.fields.hidden;
  const int64_t size = sizeOf(arguments.y.type);
  auto *y = static_cast<uint8_t *>(arguments.y.data);
  for (int64_t t = 0; t < slots.tokens; ++t)
    kernels.sum(rows, end - first, buffers.position + t * slots.topK,
                slots.topK, arguments.y.type, std::min(end, hidden) - first,
                y + ((slots.firstToken + t) * hidden + first) * size);
}

void PanelExperts::runDown() const {
  const int64_t panels = (plan.fields.hidden + kPanelRows - 1) / kPanelRows;
  const int64_t size = std::clamp<int64_t>(
      panels / (threads * kIterationsPerThread), 1, kMostDownPanels);
  parallelFor(threads, (panels + size - 1) / size,
              [&](int64_t part, Worker worker) {
                downPanels(part * size, std::min(panels, (part + 1) * size),
                           scratchOf(worker));
              });
}

void PanelExperts::run() {
  std::fill_n(buffers.noBias, kMostDownPanels * kPanelRows, 0.0f);
  const int64_t chunk = tokensPerChunk(plan, arguments.tokens);
  for (int64_t first = 0; first < arguments.tokens; first += chunk) {
    slots.sort(plan, arguments, first,
               std::min(chunk, arguments.tokens - first));
    indexSlots();
    prepareInputs();
    runGateUp();
    prepareHidden();
    runDown();
  }
}

//===----------------------------------------------------------------------===//
// The rows of the table
//===----------------------------------------------------------------------===//

namespace {

/// Fused experts with the kernels of one instruction set.
template <Isa kIsa, const PanelKernels &kKernels>
struct With {
  static bool takes(const ExpertsPlan &plan) {
    return isa() >= kIsa && takes(plan.w13) && takes(plan.w2);
  }
  static bool takes(const WeightSpec &weight) {
    return weight.output % kPanelRows == 0 && panelShapeOf(weight);
  }
  static int64_t workspace(const ExpertsPlan &plan, int64_t tokens,
                           int threads) {
    Carver carver(nullptr);
    layOut(kKernels, plan, tokens, threads, carver);
    return carver.bytes("fused_experts");
  }
  static wna16_status run(const ExpertsPlan &plan,
                          const ExpertsArguments &arguments, void *workspace,
                          int threads) {
    Carver carver(workspace);
    PanelExperts(kKernels, plan, arguments,
                 layOut(kKernels, plan, arguments.tokens, threads, carver),
                 threads)
        .run();
    return WNA16_OK;
  }
};

} // namespace

template <typename Kernels>
static constexpr ExpertsKernel rowOf(const char *name) {
  return {name, Kernels::takes, Kernels::workspace, Kernels::run};
}

const PanelKernels *wna16::panelKernels() {
#if defined(__x86_64__)
  switch (isa()) {
  case Isa::AMX:
    return &amxPanels;
  case Isa::AVX512:
    return &avx512Panels;
  case Isa::AVX2:
    return &avx2Panels;
  case Isa::Portable:
    break;
  }
#endif
  return nullptr;
}

#if defined(__x86_64__)
const ExpertsKernel wna16::avx2Experts =
    rowOf<With<Isa::AVX2, avx2Panels>>("avx2");
const ExpertsKernel wna16::avx512Experts =
    rowOf<With<Isa::AVX512, avx512Panels>>("avx512");
const ExpertsKernel wna16::amxExperts = rowOf<With<Isa::AMX, amxPanels>>("amx");
#endif
