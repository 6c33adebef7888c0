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

struct ConvertPlan {
  wna16_convert_plan fields;
  WeightSpec source;
  WeightSpec target;
  Window window;
};

bool readPlan(const char *kernel, const void *address, ConvertPlan &plan) {
  if (!startCall(kernel, address))
    return false;
  plan.fields = *static_cast<const wna16_convert_plan *>(address);
  const wna16_convert_plan &fields = plan.fields;
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

int64_t groupSize(const WeightSpec &spec) {
  return spec.group > 0 ? spec.group : std::max<int64_t>(spec.input, 1);
}

bool keepsGroups(const ConvertPlan &plan) {
  const WeightSpec &source = plan.source, &target = plan.target;
  if (target.actOrder != ActOrder::None)
    return true;
  if (source.groups() <= 1)
    return target.groups() <= 1;
  return source.group == target.group && plan.window.input % source.group == 0;
}

Conversion describeConversion(const ConvertPlan &plan,
                              const WeightBuffers &from,
                              const WeightBuffers &to) {
  const WeightSpec &source = plan.source, &target = plan.target;
  const Window &window = plan.window;
  Conversion p = {};
  p.source = describe(source, from);
  p.target = describe(target, to);
  p.codes = to.get<uint8_t>(Part::Codes);
  p.scales = to.get<uint8_t>(Part::Scales);
  p.zeros = to.get<uint8_t>(Part::Zeros);
  p.groupIndex = to.get<int32_t>(Part::GroupIndex);
  p.permutation = to.get<int32_t>(Part::Permutation);
  p.globalScale = to.get<float>(Part::GlobalScale);
  p.experts = source.experts;
  p.halves = source.halves;
  p.sourceOutputs = source.output;
  p.targetOutputs = target.output;
  p.input = window.input;
  p.inputs = window.inputs;
  p.output = window.output;
  p.outputs = window.outputs;
  const int64_t group =
      std::max<int64_t>(std::min(groupSize(target), target.input), 1);
  const int64_t groups = (window.inputs + group - 1) / group;
  p.filled = std::min(target.input, groups * group);
  p.keepsGroups = target.actOrder != ActOrder::None;
  p.groups = p.keepsGroups ? target.groups() : groups;
  p.sorts = source.actOrder != target.actOrder;
  p.recodes = source.code != target.code && (source.code == CodeType::U4FP8 ||
                                             target.code == CodeType::U4FP8);
  p.folds = target.scale == ScalarType::I16 && source.scale != ScalarType::I16;
  return p;
}

MoveShape shapeOf(const Conversion &p, Axis inner) {
  MoveShape shape;
  shape.inner = inner;
  shape.experts = p.experts;
  shape.halves = p.halves;
  const bool codes = inner == Axis::Input;
  shape.innerBegin = codes ? p.input
                     : p.keepsGroups || !p.source.group
                         ? 0
                         : p.input / p.source.group;
  shape.inners = codes ? p.inputs : p.groups;
  shape.targetInners = codes ? p.target.input : p.target.groups;
  shape.sourceOutputs = p.sourceOutputs;
  shape.outputBegin = p.output;
  shape.outputs = p.outputs;
  shape.targetOutputs = p.targetOutputs;
  return shape;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

using WordKernel = bool (*)(const char *, const Conversion &, const WordRange &,
                            cudaStream_t);

/// One part of a weight: how it moves by blocks, what becomes of it on the way,
/// and how it moves word by word.
struct PartMove {
  const void *from = nullptr;
  void *to = nullptr;
  int64_t bytes = 0; ///< of the target
  WordKernel words = nullptr;
  std::optional<uint8_t> fill; ///< what each of its bytes is
  std::optional<BlockMove> blocks;
  std::optional<UnitChange> change;
  std::optional<BlockRecode> recode;
  std::optional<BlockSums> sums;
  std::optional<BlockGather> gather;
};

/// Of units of so many bits.
PartMove partOf(const void *from, void *to, const AddressMap &target, int bits,
                const MoveShape &shape, WordKernel words) {
  PartMove part;
  part.from = from;
  part.to = to;
  part.bytes = (shape.experts * target.size() * bits + 7) / 8;
  part.words = words;
  return part;
}

/// Plans blocks of the source's units.
void addBlocks(PartMove &part, const AddressMap &source,
               const AddressMap &target, int bits, const MoveShape &shape,
               BlockBits *blockBits = nullptr) {
  const auto addresses =
      static_cast<int64_t>((reinterpret_cast<uintptr_t>(part.from) |
                            reinterpret_cast<uintptr_t>(part.to)) %
                           16);
  part.blocks =
      cuda::planBlocks(source, target, bits, shape, addresses, blockBits);
  if (!part.blocks)
    return;
  part.blocks->from = static_cast<const uint8_t *>(part.from);
  part.blocks->to = static_cast<uint8_t *>(part.to);
}

/// Codes, or dense elements.
PartMove planCodes(const ConvertPlan &plan, const Conversion &p) {
  const WeightSpec &source = plan.source, &target = plan.target;
  const bool dense = target.code == CodeType::Dense;
  MoveShape shape = shapeOf(p, Axis::Input);
  shape.gathers = p.sorts;
  const AddressMap to = *codeAddresses(target);
  PartMove part = partOf(p.source.codeData, p.codes, to, target.bits(), shape,
                         dense ? convertElements : convertCodes);
  const bool recodes = p.recodes && p.source.zeroData;
  if (p.sorts && recodes)
    return part;
  BlockBits bits;
  addBlocks(part, *codeAddresses(source), to, target.bits(), shape, &bits);
  if (!part.blocks || dense)
    return part;
  const CodeSource codes = {source, p.source};
  if (!recodes)
    part.blocks->recode = recodeOf(source.code, target.code);
  else if (!(part.recode = planRecode(codes, target.code, bits)))
    part.blocks.reset();
  if (p.sorts && part.blocks &&
      !(part.gather = planGather(codes, p.permutation, *part.blocks, bits)))
    part.blocks.reset();
  if (part.blocks && target.layout->trailerBytes)
    part.sums = planSums(codes, blockLength(target), *part.blocks, bits);
  return part;
}

PartMove planScales(const ConvertPlan &plan, const Conversion &p) {
  const WeightSpec &source = plan.source, &target = plan.target;
  const MoveShape shape = shapeOf(p, Axis::Group);
  const auto bits = [](const WeightSpec &spec) {
    return static_cast<int>(8 * sizeOf(spec.scale));
  };
  const AddressMap to = *scaleAddresses(target);
  PartMove part = partOf(p.source.scaleData, p.scales, to, bits(target), shape,
                         convertScales);
  if (!keepsGroups(plan))
    return part;
  if (source.scale != target.scale ||
      scaleFactor(source.code) != scaleFactor(target.code)) {
    std::optional<ScaleChange> change =
        planScaleChange(source, target, p.globalScale);
    if (!change)
      return part;
    part.change = UnitChange{*change, {}, /*isZero=*/0};
  }
  addBlocks(part, *scaleAddresses(source), to, bits(source), shape);
  if (part.blocks)
    part.blocks->widens = bits(target) > bits(source);
  return part;
}

PartMove planZeros(const ConvertPlan &plan, const Conversion &p) {
  const WeightSpec &source = plan.source, &target = plan.target;
  const MoveShape shape = shapeOf(p, Axis::Group);
  const int bits = zeroBits(target);
  const AddressMap to = *zeroAddresses(target);
  PartMove part =
      partOf(p.source.zeroData, p.zeros, to, bits, shape, convertZeros);
  if (!p.source.zeroData) {
    if (fills(to, shape))
      part.fill = impliedZeros(source, target);
    return part;
  }
  if (!keepsGroups(plan))
    return part;
  if (source.zeros != target.zeros || zeroBits(source) != bits) {
    std::optional<ZeroChange> change = planZeroChange(source, target);
    if (!change)
      return part;
    part.change = UnitChange{{}, *change, /*isZero=*/1};
  }
  addBlocks(part, *zeroAddresses(source), to, zeroBits(source), shape);
  if (part.blocks)
    part.blocks->widens = bits > zeroBits(source);
  return part;
}

/// Codes, then scales and zero points as far as the target has them.
std::vector<PartMove> planParts(const ConvertPlan &plan, const Conversion &p) {
  std::vector<PartMove> parts = {planCodes(plan, p)};
  if (plan.target.code == CodeType::Dense)
    return parts;
  parts.push_back(planScales(plan, p));
  if (p.zeros)
    parts.push_back(planZeros(plan, p));
  return parts;
}

/// Bytes that are all equal, and padding that no block covers.
bool fillPart(const char *kernel, const PartMove &part, cudaStream_t stream) {
  if (!part.fill && (!part.blocks || part.blocks->exact))
    return true;
  return check(kernel, "filling a part",
               cudaMemsetAsync(part.to, part.fill.value_or(0),
                               static_cast<size_t>(part.bytes), stream));
}

/// Blocks of codes that more happens to.
bool moveCodes(const char *kernel, const PartMove &part, int bits,
               cudaStream_t stream) {
  if (part.gather)
    return gatherCodes(kernel, *part.blocks, bits, *part.gather, stream);
  if (part.recode)
    return recodeCodes(kernel, *part.blocks, *part.recode, stream);
  return !part.sums || sumCodes(kernel, *part.blocks, *part.sums, stream);
}

bool moveParts(const char *kernel, const std::vector<PartMove> &parts,
               const Conversion &p, cudaStream_t stream) {
  BlockMoves moves;
  ValueMoves values;
  for (const PartMove &part : parts) {
    if (!fillPart(kernel, part, stream))
      return false;
    if (!part.blocks || part.gather || part.recode || part.sums)
      continue;
    if (part.change) {
      values.change[values.count] = *part.change;
      values.move[values.count++] = *part.blocks;
    } else {
      moves.move[moves.count++] = *part.blocks;
    }
  }
  if (!moveBlocks(kernel, moves, stream) ||
      !moveValues(kernel, values, stream) ||
      !moveCodes(kernel, parts.front(), p.source.bits, stream))
    return false;
  for (const PartMove &part : parts) {
    WordRange range;
    range.onlyEdges = part.blocks.has_value();
    if (part.blocks)
      range.edges = *part.blocks;
    if (part.bytes > 0 && !part.fill && !part.words(kernel, p, range, stream))
      return false;
  }
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
  return moveOrder(kernel, plan, p, stream) &&
         startFolding(kernel, plan, p, stream) &&
         moveParts(kernel, parts, p, stream) &&
         (!p.folds || finishGlobalScale(kernel, p, stream)) &&
         (!plan.target.layout->trailerBytes || parts.front().sums ||
          sumBlocks(kernel, p, blockLength(plan.target), stream));
}

} // namespace

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

wna16_status wna16_cuda_convert(const void *plan, const wna16_tensor *tensors,
                                int64_t count, void *, int64_t, void *stream) {
  constexpr const char *kKernel = "convert";
  ConvertPlan convertPlan;
  if (!readPlan(kKernel, plan, convertPlan))
    return wna16_status_get();
  const wna16_convert_plan &fields = convertPlan.fields;
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
  ConvertPlan convert;
  if (!readPlan(kKernel, plan, convert))
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
