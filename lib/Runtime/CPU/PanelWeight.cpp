//===- PanelWeight.cpp - A stored weight as panels ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelWeight.h"

#include "Layout/Catalogue.h"

using namespace wna16;

/// Fewer inputs than this are no block: the work around a block would exceed
/// the work on it.
static constexpr int64_t kLeastBlock = 16;
static constexpr int64_t kMostBlock = 128;

/// Whether kernels read such codes.
static bool isRead(CodeType code) {
  return code == CodeType::U4 || code == CodeType::U8 ||
         code == CodeType::U4B8 || code == CodeType::U8B128;
}

/// The largest power of two up to kMostBlock that divides a number.
static int64_t blockDividing(int64_t number) {
  const int64_t power = number & -number;
  return power < kMostBlock ? power : kMostBlock;
}

/// Rows of elements, one after the other.
static std::optional<PanelShape> denseShapeOf(const WeightSpec &spec) {
  if (spec.layout->dense != "K | N" || spec.input == 0)
    return std::nullopt;
  PanelShape shape;
  shape.bits = spec.bits();
  shape.input = spec.input;
  shape.block = spec.input;
  shape.blocks = shape.blocksPerGroup = 1;
  shape.blockBytes = kPanelRows * spec.input * sizeOf(spec.element);
  shape.scale = spec.element;
  return shape;
}

std::optional<PanelShape> wna16::panelShapeOf(const WeightSpec &spec) {
  if (spec.code == CodeType::Dense)
    return denseShapeOf(spec);
  const CodeShape stored = spec.layout->codeShape;
  const bool isBlocked = stored == CodeShape::Blocks32;
  if ((!isBlocked && stored != CodeShape::Panels32) || !isRead(spec.code) ||
      spec.scale == ScalarType::I16 || spec.input == 0)
    return std::nullopt;
  const int64_t group = spec.groups() > 1 ? spec.group : spec.input;
  PanelShape shape;
  shape.bits = spec.bits();
  shape.input = spec.input;
  shape.block = isBlocked ? blockLength(spec) : blockDividing(group);
  if (shape.block < kLeastBlock || shape.block > kMostBlock ||
      spec.input % group != 0 || group % shape.block != 0)
    return std::nullopt;
  shape.blocks = spec.input / shape.block;
  shape.blockBytes =
      kPanelRows * shape.block * shape.bits / 8 + spec.layout->trailerBytes;
  shape.blocksPerGroup = group / shape.block;
  shape.scale = spec.scale;
  shape.zero = impliedZero(spec.code);
  return shape;
}

PanelWeight::PanelWeight(const WeightSpec &spec, const WeightBuffers &parts)
    : panelShape(*panelShapeOf(spec)), panels(spec.rows() / kPanelRows),
      scaleBytes(panelShape.groups() * kPanelRows * sizeOf(spec.scale)),
      zeroBytes(panelShape.groups() * kPanelRows),
      codes(parts.get<const uint8_t>(Part::Codes)),
      scales(spec.code == CodeType::Dense
                 ? nullptr
                 : parts.get<const uint8_t>(Part::Scales)),
      zeros(spec.zeros == ZeroPoints::None
                ? nullptr
                : parts.get<const uint8_t>(Part::Zeros)) {}
