//===- Convert.cpp - Bringing weights into another stored form ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The moves of Layout/Move.h on the device, part by part: by blocks, with their
// edges word by word, or all word by word.
//
//===----------------------------------------------------------------------===//

#include "Convert.h"

#include "../Arguments.h"
#include "Experts.h"
#include "Layout/Move.h"
#include "Runtime/wna16_cuda.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {

bool readPlan(const char *kernel, const void *address,
              wna16_convert_plan &fields, ConvertPlan &plan) {
  if (!startCall(kernel, address))
    return false;
  fields = *static_cast<const wna16_convert_plan *>(address);
  if (!checkRange(kernel, "scale_first", fields.scale_first, 0, 1) ||
      !readWeight(kernel, "source", fields.source, plan.source) ||
      !readWeight(kernel, "target", fields.target, plan.target))
    return false;
  // Extents of 0 stand for all.
  Result<Window> window = resolve(
      plan.source, {fields.input, fields.inputs ? fields.inputs : -1,
                    fields.output, fields.outputs ? fields.outputs : -1});
  if (!window) {
    setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kernel,
              window.message().c_str());
    return false;
  }
  plan.window = *window;
  return true;
}

/// What kernels count in 32 bits.
bool checkSize(const char *kernel, const DeviceMap &map) {
  constexpr int64_t kMost = int64_t(1) << 31;
  if (map.size < kMost)
    return true;
  setStatus(WNA16_UNSUPPORTED,
            "%s: expected fewer than %lld elements an expert on a device, got "
            "%lld; convert on the cpu",
            kernel, static_cast<long long>(kMost),
            static_cast<long long>(map.size));
  return false;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Bytes that are all equal, and padding that no block covers.
bool fillPart(const char *kernel, const PartMove &part, cudaStream_t stream) {
  if (!part.fill && part.exact())
    return true;
  return check(kernel, "filling a part",
               cudaMemsetAsync(part.to, part.fill.value_or(0),
                               static_cast<size_t>(part.bytes), stream));
}

bool writeWords(const char *kernel, const PartMove &part, const Conversion &p,
                bool dense, cudaStream_t stream) {
  WordRange range;
  range.onlyEdges = part.blocks.has_value();
  if (part.blocks)
    range.edges = *part.blocks;
  if (part.bytes == 0 || part.fill || part.units ||
      (part.blocks && part.blocks->cleared))
    return true;
  switch (part.part) {
  case Part::Scales:
    return convertScales(kernel, p, range, stream);
  case Part::Zeros:
    return convertZeros(kernel, p, range, stream);
  default:
    return (dense ? convertElements : convertCodes)(kernel, p, range, stream);
  }
}

bool moveParts(const char *kernel, const std::vector<PartMove> &parts,
               const Conversion &p, bool dense, cudaStream_t stream) {
  BlockMoves moves;
  UnitMoves sides;
  for (const PartMove &part : parts) {
    if (!fillPart(kernel, part, stream))
      return false;
    if (part.units)
      sides.move[sides.count++] = *part.units;
    else if (part.blocks)
      moves.move[moves.count++] = *part.blocks;
  }
  const PartMove &codes = parts.front();
  const bool plain = sides.count == 0 && !codes.work.any() &&
                     !(codes.blocks && codes.blocks->cleared);
  if (plain ? !moveBlocks(kernel, moves, stream)
            : !moveWeight(kernel, codes.blocks.value_or(BlockMove()),
                          codes.work, sides, stream))
    return false;
  for (const PartMove &part : parts)
    if (!writeWords(kernel, part, p, dense, stream))
      return false;
  return true;
}

/// Row order: sorted here, or taken over.
bool moveOrder(const char *kernel, const ConvertPlan &plan, const Conversion &p,
               cudaStream_t stream) {
  if (plan.source.actOrder == ActOrder::None)
    return true;
  if (p.sorts)
    return sortInputs(kernel, p, stream);
  const bool indexed = plan.source.actOrder == ActOrder::Index;
  const int32_t *from = indexed ? p.source.groupIndex : p.source.permutation;
  int32_t *to = indexed ? p.groupIndex : p.permutation;
  return p.inputs == 0 ||
         check(kernel, "copying the order of rows",
               cudaMemcpy2DAsync(to, static_cast<size_t>(4 * p.inputs),
                                 from + p.input,
                                 static_cast<size_t>(4 * p.source.input),
                                 static_cast<size_t>(4 * p.inputs),
                                 static_cast<size_t>(p.experts),
                                 cudaMemcpyDeviceToDevice, stream));
}

/// The global scale comes from the source's, or from its largest scale.
bool startFolding(const char *kernel, const ConvertPlan &plan,
                  const Conversion &p, cudaStream_t stream) {
  if (plan.target.code == CodeType::Dense ||
      plan.target.scale != ScalarType::I16)
    return true;
  if (p.folds)
    return findLargestScale(kernel, p, stream);
  return check(kernel, "copying the global scale",
               cudaMemcpyAsync(p.globalScale, p.source.globalScale,
                               sizeof(float), cudaMemcpyDeviceToDevice,
                               stream));
}

bool convert(const char *kernel, const ConvertPlan &plan, const Conversion &p,
             cudaStream_t stream) {
  const std::vector<PartMove> parts = planParts(plan, p);
  const bool dense = plan.target.code == CodeType::Dense;
  return moveOrder(kernel, plan, p, stream) &&
         startFolding(kernel, plan, p, stream) &&
         moveParts(kernel, parts, p, dense, stream) &&
         (!p.folds || finishGlobalScale(kernel, p, stream)) &&
         (!plan.target.layout->trailerBytes || parts.front().work.sums ||
          sumBlocks(kernel, p, blockLength(plan.target), stream));
}

} // namespace

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

wna16_status wna16_cuda_convert(const void *plan, const wna16_tensor *tensors,
                                int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "convert";
  wna16_convert_plan fields;
  ConvertPlan convertPlan;
  if (!readPlan(kKernel, plan, fields, convertPlan))
    return wna16_status_get();
  ArgumentReader reader(kKernel, tensors, count, 2 * WNA16_WEIGHT_TENSORS, 2);
  const WeightBuffers from = reader.takeWeight("source", fields.source);
  const WeightBuffers to = reader.takeWeight("target", fields.target);
  if (!reader.good())
    return wna16_status_get();
  if (Failure bad =
          checkMove(convertPlan.source, convertPlan.target, convertPlan.window))
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: %s", kKernel,
                     bad.message.c_str());
  if (!currentDevice(kKernel))
    return wna16_status_get();
  const Conversion p = describeConversion(convertPlan, from, to);
  for (const DeviceMap *map : {&p.source.codes, &p.target.codes})
    if (!checkSize(kKernel, *map))
      return wna16_status_get();
  if (p.experts * p.target.codes.size > 0)
    convert(kKernel, convertPlan, p, static_cast<cudaStream_t>(stream));
  return wna16_status_get();
}

wna16_status wna16_cuda_convert_bias(const void *plan,
                                     const wna16_tensor *tensors, int64_t count,
                                     void *, int64_t, void *stream) {
  constexpr const char *kKernel = "convert_bias";
  wna16_convert_plan fields;
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, fields, convert))
    return wna16_status_get();
  const WeightSpec &from = convert.source, &to = convert.target;
  const Window &window = convert.window;
  ArgumentReader reader(kKernel, tensors, count, 2, 2);
  const Tensor source = reader.take("source", kFloatTypes,
                                    {from.experts, from.halves, from.output});
  const Tensor target =
      reader.take("target", source.present ? typeSet(source.type) : kFloatTypes,
                  {from.experts, from.halves, to.output});
  Result<AddressMap> in = biasAddresses(from), out = biasAddresses(to);
  if (!reader.good() || !currentDevice(kKernel))
    return wna16_status_get();
  if (!in || !out || from.experts != to.experts || from.halves != to.halves ||
      to.output < window.outputs)
    return setStatus(WNA16_INVALID_ARGUMENT,
                     "%s: expected equal experts and halves and no fewer "
                     "outputs than %lld, got %lld",
                     kKernel, static_cast<long long>(window.outputs),
                     static_cast<long long>(to.output));
  const BiasConversion p = {
      {source.data, source.type, describe(*in, from.output)},
      describe(*out, to.output),
      target.data,
      from.experts,
      from.halves,
      from.output,
      window.output,
      window.outputs};
  if (p.experts * p.target.size > 0)
    convertBias(kKernel, p, static_cast<cudaStream_t>(stream));
  return wna16_status_get();
}

wna16_status wna16_cuda_quantize(const void *, const wna16_tensor *, int64_t,
                                 void *, int64_t, void *) {
  return setStatus(WNA16_UNSUPPORTED,
                   "quantize: weights are quantised on the cpu only; prepare "
                   "them ahead of time");
}
