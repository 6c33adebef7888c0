//===- ConvertParts.cpp - How the parts of a weight move -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvertParts.h"

#include "Describe.h"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

static int64_t groupSize(const WeightSpec &spec) {
  return spec.group > 0 ? spec.group : std::max<int64_t>(spec.input, 1);
}

Conversion cuda::describeConversion(const ConvertPlan &plan,
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

namespace {

MoveShape shapeOf(const Conversion &p, Axis inner) {
  MoveShape shape;
  shape.inner = inner;
  shape.experts = p.experts;
  shape.halves = p.halves;
  const bool codes = inner == Axis::Input;
  shape.innerBegin = codes ? p.input : 0;
  shape.inners = codes ? p.inputs : p.groups;
  shape.targetInners = codes ? p.target.input : p.target.groups;
  shape.sourceOutputs = p.sourceOutputs;
  shape.outputBegin = p.output;
  shape.outputs = p.outputs;
  shape.targetOutputs = p.targetOutputs;
  return shape;
}

/// Which of the source's groups those of the target are.
struct GroupOrder {
  int64_t begin = 0;  ///< groups of the target's size before the first
  int repeatBits = 0; ///< log2 of the groups of the target in one of the source
};

/// None where they have no power of two.
std::optional<GroupOrder> orderGroups(const ConvertPlan &plan,
                                      const Conversion &p) {
  const WeightSpec &source = plan.source, &target = plan.target;
  if (p.keepsGroups)
    return GroupOrder();
  if (source.groups() <= 1) {
    GroupOrder one;
    while (int64_t(1) << one.repeatBits < target.groups())
      ++one.repeatBits;
    return one;
  }
  if (target.groups() <= 1)
    return GroupOrder{p.input / source.group, 0};
  const int64_t ratio = source.group / target.group;
  if (source.group % target.group || (ratio & (ratio - 1)) ||
      p.input % target.group)
    return std::nullopt;
  GroupOrder order{p.input / target.group, 0};
  while (int64_t(1) << order.repeatBits < ratio)
    ++order.repeatBits;
  return order;
}

/// Of units of so many bits.
PartMove partOf(Part which, const void *from, void *to,
                const AddressMap &target, int bits, const Conversion &p) {
  PartMove part;
  part.part = which;
  part.from = from;
  part.to = to;
  part.bytes = (p.experts * target.size() * bits + 7) / 8;
  return part;
}

int64_t alignmentOf(const void *from, const void *to) {
  return static_cast<int64_t>(
      (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) %
      16);
}

void setEnds(PartMove &part) {
  part.blocks->from = static_cast<const uint8_t *>(part.from);
  part.blocks->to = static_cast<uint8_t *>(part.to);
}

void addBlocks(PartMove &part, const AddressMap &source,
               const AddressMap &target, int bits, const MoveShape &shape,
               BlockBits *blockBits = nullptr) {
  part.blocks = cuda::planBlocks(source, target, bits, shape,
                                 alignmentOf(part.from, part.to), blockBits);
  if (part.blocks)
    setEnds(part);
}

/// Codes, or dense elements.
PartMove planCodes(const ConvertPlan &plan, const Conversion &p) {
  const WeightSpec &source = plan.source, &target = plan.target;
  const bool dense = target.code == CodeType::Dense;
  MoveShape shape = shapeOf(p, Axis::Input);
  shape.filled = dense ? p.inputs : p.filled;
  const AddressMap to = *codeAddresses(target);
  PartMove part =
      partOf(Part::Codes, p.source.codeData, p.codes, to, target.bits(), p);
  const bool recodes = p.recodes && p.source.zeroData;
  if (p.sorts && recodes)
    return part;
  const CodeSource codes = {source, p.source};
  CodeWork &work = part.work;
  if (p.sorts) {
    BlockMove blocks;
    work.sort = planSort(codes, to, p.permutation, shape,
                         alignmentOf(part.from, part.to), blocks);
    if (!work.sort)
      return part;
    part.blocks = blocks;
    part.blocks->recode = recodeOf(source.code, target.code);
    setEnds(part);
    return part;
  }
  BlockBits bits;
  addBlocks(part, *codeAddresses(source), to, target.bits(), shape, &bits);
  if (!part.blocks || dense)
    return part;
  if (!recodes)
    part.blocks->recode = recodeOf(source.code, target.code);
  else if (!(work.recode = planRecode(codes, target.code, bits)))
    part.blocks.reset();
  if (part.blocks && target.layout->trailerBytes)
    work.sums = planSums(codes, blockLength(target), *part.blocks, bits);
  return part;
}

/// Scales or zero points: by blocks of both tensors if `plain` and that is all,
/// otherwise unit by unit.
struct SidePlan {
  const AddressMap &from, &to;
  int fromBits, toBits;
  bool changes; ///< units become others
};

void planSide(PartMove &part, const SidePlan &side, const ConvertPlan &plan,
              const Conversion &p, bool plain) {
  const std::optional<GroupOrder> order = orderGroups(plan, p);
  if (!order)
    return;
  MoveShape shape = shapeOf(p, Axis::Group);
  shape.innerBegin = order->begin;
  if (plain && part.from && !side.changes && order->repeatBits == 0) {
    addBlocks(part, side.from, side.to, side.toBits, shape);
    if (part.isPlain())
      return;
    part.blocks.reset();
  }
  part.units = planUnits(side.from, side.fromBits, side.to, side.toBits, shape,
                         order->repeatBits, alignmentOf(nullptr, part.to));
  if (!part.units)
    return;
  part.units->from = part.from;
  part.units->to = static_cast<uint8_t *>(part.to);
}

PartMove planScales(const ConvertPlan &plan, const Conversion &p, bool plain) {
  const auto bits = [](const WeightSpec &spec) {
    return static_cast<int>(8 * sizeOf(spec.scale));
  };
  const AddressMap from = *scaleAddresses(plan.source);
  const AddressMap to = *scaleAddresses(plan.target);
  PartMove part = partOf(Part::Scales, p.source.scaleData, p.scales, to,
                         bits(plan.target), p);
  const std::optional<ScaleChange> change =
      planScaleChange(plan.source, plan.target, p.globalScale);
  if (!change)
    return part;
  planSide(part,
           {from, to, bits(plan.source), bits(plan.target), change->changes()},
           plan, p, plain);
  if (part.units)
    part.units->scale = *change;
  return part;
}

PartMove planZeros(const ConvertPlan &plan, const Conversion &p, bool plain) {
  const bool stored = p.source.zeroData != nullptr;
  const AddressMap to = *zeroAddresses(plan.target);
  const AddressMap from = stored ? *zeroAddresses(plan.source) : to;
  const int toBits = zeroBits(plan.target);
  const int fromBits = stored ? zeroBits(plan.source) : toBits;
  PartMove part =
      partOf(Part::Zeros, p.source.zeroData, p.zeros, to, toBits, p);
  const uint8_t implied = impliedZeros(plan.source, plan.target);
  if (!stored && fills(to, shapeOf(p, Axis::Group))) {
    part.fill = implied;
    return part;
  }
  const ZeroChange change = planZeroChange(plan.source, plan.target);
  planSide(part, {from, to, fromBits, toBits, change.changes()}, plan, p,
           plain);
  if (part.units) {
    part.units->zero = change;
    part.units->implied = implied * 0x01010101u;
  }
  return part;
}

} // namespace

std::vector<PartMove> cuda::planParts(const ConvertPlan &plan,
                                      const Conversion &p) {
  std::vector<PartMove> parts = {planCodes(plan, p)};
  if (plan.target.code == CodeType::Dense)
    return parts;
  // All parts in one launch: what moves blocks of both tensors moves nothing
  // else.
  for (bool plain : {parts.front().isPlain(), false}) {
    parts.resize(1);
    parts.push_back(planScales(plan, p, plain));
    if (p.zeros)
      parts.push_back(planZeros(plan, p, plain));
    if (std::all_of(parts.begin(), parts.end(),
                    [](const PartMove &part) { return part.isPlain(); }))
      break;
  }
  return parts;
}
