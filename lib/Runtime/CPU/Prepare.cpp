//===- Prepare.cpp - Bringing weights into another stored form ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Arguments.h"
#include "../Status.h"
#include "Layout/Move.h"
#include "Threads.h"

#include <mutex>
#include <new>
#include <optional>

using namespace wna16;

namespace {

struct ConvertPlan {
  wna16_convert_plan fields;
  WeightSpec source;
  WeightSpec target;
  Window window;
};

} // namespace

/// The window of a plan: 0 extents stand for all.
static Window windowOf(const wna16_convert_plan &fields) {
  return {fields.input, fields.inputs ? fields.inputs : -1, fields.output,
          fields.outputs ? fields.outputs : -1};
}

static bool readPlan(const char *kernel, const void *address,
                     ConvertPlan &plan) {
  if (!startCall(kernel, address))
    return false;
  plan.fields = *static_cast<const wna16_convert_plan *>(address);
  plan.window = windowOf(plan.fields);
  return checkRange(kernel, "scale_first", plan.fields.scale_first, 0, 1) &&
         readWeight(kernel, "source", plan.fields.source, plan.source) &&
         readWeight(kernel, "target", plan.fields.target, plan.target);
}

/// Refuses a plan in which `weight` is not dense.
static bool checkDense(const char *kernel, const char *name,
                       const WeightSpec &weight) {
  if (weight.code == CodeType::Dense)
    return true;
  setStatus(WNA16_INVALID_ARGUMENT, "%s: expected a dense %s, got code %s",
            kernel, name, wna16::name(weight.code).data());
  return false;
}

/// Refuses a plan in which `weight` is dense.
static bool checkCodes(const char *kernel, const char *name,
                       const WeightSpec &weight) {
  if (weight.code != CodeType::Dense)
    return true;
  setStatus(WNA16_INVALID_ARGUMENT, "%s: expected codes of %s, got dense",
            kernel, name);
  return false;
}

/// Refuses a plan whose two weights differ in their logical extents.
static bool checkExtents(const char *kernel, const ConvertPlan &plan) {
  const WeightSpec &source = plan.source, &target = plan.target;
  if (source.experts == target.experts && source.input == target.input &&
      source.rows() == target.rows())
    return true;
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected target [%lld, %lld, %lld] (experts, rows, input) to "
            "equal source [%lld, %lld, %lld]",
            kernel, static_cast<long long>(target.experts),
            static_cast<long long>(target.rows()),
            static_cast<long long>(target.input),
            static_cast<long long>(source.experts),
            static_cast<long long>(source.rows()),
            static_cast<long long>(source.input));
  return false;
}

static wna16_status report(const char *kernel, wna16_status code,
                           const Failure &failure) {
  return failure ? setStatus(code, "%s: %s", kernel, failure.message.c_str())
                 : WNA16_OK;
}

/// No exception leaves the library.
template <typename Step>
static Failure guarded(Step step) {
  try {
    return step();
  } catch (const std::bad_alloc &) {
    return fail("out of memory");
  }
}

/// Calls step(i) for all i < count, from all threads. Of several failures the
/// first step's counts.
template <typename Step>
static wna16_status forSteps(const char *kernel, int64_t count, Step step) {
  std::mutex mutex;
  Failure first;
  int64_t failed = count;
  parallelFor(threadCount(), count, [&](int64_t i, Worker) {
    Failure failure = guarded([&] { return step(i); });
    if (!failure)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    if (i < failed) {
      failed = i;
      first = std::move(failure);
    }
  });
  return report(kernel, WNA16_OUT_OF_RANGE, first);
}

template <typename Step>
static wna16_status forExperts(const char *kernel, int64_t experts, Step step) {
  return forSteps(kernel, experts,
                  [&](int64_t e) { return step(ExpertRange{e, e + 1}); });
}

static wna16_status move(const char *kernel, const ConvertPlan &plan,
                         const WeightBuffers &source,
                         const WeightBuffers &target) {
  std::optional<WeightMove> move;
  Failure bad = guarded([&]() -> Failure {
    Result<WeightMove> planned =
        WeightMove::plan(plan.source, source, plan.target, target,
                         {0, plan.source.experts}, plan.window);
    if (!planned)
      return planned.takeFailure();
    move.emplace(std::move(*planned));
    return ok();
  });
  if (bad)
    return report(kernel, WNA16_OUT_OF_RANGE, bad);
  wna16_status status = forSteps(kernel, move->steps(), [&](int64_t step) {
    return move->moveSides(step);
  });
  if (status != WNA16_OK)
    return status;
  return forSteps(kernel, move->steps(),
                  [&](int64_t step) { return move->moveCodes(step); });
}

wna16_status wna16_cpu_convert(const void *plan, const wna16_tensor *tensors,
                               int64_t count, void *, int64_t, void *) {
  constexpr const char *kKernel = "convert";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 2 * WNA16_WEIGHT_TENSORS);
  WeightBuffers source = reader.takeWeight("source", convert.fields.source);
  WeightBuffers target = reader.takeWeight("target", convert.fields.target);
  if (!reader.good() || report(kKernel, WNA16_INVALID_ARGUMENT,
                               checkMove(convert.source, convert.target,
                                         convert.window)) != WNA16_OK)
    return wna16_status_get();
  return move(kKernel, convert, source, target);
}

wna16_status wna16_cpu_convert_bias(const void *plan,
                                    const wna16_tensor *tensors, int64_t count,
                                    void *, int64_t, void *) {
  constexpr const char *kKernel = "convert_bias";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
    return wna16_status_get();
  const WeightSpec &from = convert.source, &to = convert.target;
  ArgumentReader reader(kKernel, tensors, count, 2);
  Tensor source = reader.take("source", kFloatTypes,
                              {from.experts, from.halves, from.output});
  Tensor target =
      reader.take("target", source.present ? typeSet(source.type) : kFloatTypes,
                  {from.experts, from.halves, to.output});
  if (!reader.good())
    return wna16_status_get();
  return report(kKernel, WNA16_INVALID_ARGUMENT, guarded([&] {
                  return moveBias(from, source.data, to, target.data,
                                  source.type, convert.window);
                }));
}

wna16_status wna16_cpu_dequantize(const void *plan, const wna16_tensor *tensors,
                                  int64_t count, void *, int64_t, void *) {
  constexpr const char *kKernel = "dequantize";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert) ||
      !checkDense(kKernel, "target", convert.target) ||
      !checkExtents(kKernel, convert) ||
      report(kKernel, WNA16_INVALID_ARGUMENT,
             checkDequantize(convert.source)) != WNA16_OK)
    return wna16_status_get();
  const WeightSpec &source = convert.source;
  ArgumentReader reader(kKernel, tensors, count, 1 + WNA16_WEIGHT_TENSORS);
  WeightBuffers buffers = reader.takeWeight("source", convert.fields.source);
  Tensor target = reader.takeDense("target", convert.target.element, source);
  if (!reader.good())
    return wna16_status_get();
  return forExperts(kKernel, source.experts, [&](ExpertRange range) {
    return dequantizeWeight(source, buffers, convert.target.element,
                            convert.fields.scale_first, target.data, range);
  });
}

wna16_status wna16_cpu_quantize(const void *plan, const wna16_tensor *tensors,
                                int64_t count, void *, int64_t, void *) {
  constexpr const char *kKernel = "quantize";
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert) ||
      !checkDense(kKernel, "source", convert.source) ||
      !checkCodes(kKernel, "target", convert.target) ||
      !checkExtents(kKernel, convert))
    return wna16_status_get();
  const WeightSpec &target = convert.target;
  ArgumentReader reader(kKernel, tensors, count, 1 + WNA16_WEIGHT_TENSORS);
  Tensor source = reader.takeDense("source", convert.source.element, target);
  WeightBuffers buffers = reader.takeWeight("target", convert.fields.target);
  if (!reader.good())
    return wna16_status_get();
  return forExperts(kKernel, target.experts, [&](ExpertRange range) {
    return quantizeWeight(convert.source.element, source.data, target, buffers,
                          range);
  });
}
