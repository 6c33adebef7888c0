//===- Describe.cpp - Stored weights as kernels see them ----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"

#include <algorithm>
#include <array>

using namespace wna16;
using namespace wna16::cuda;

DeviceMap cuda::describe(const AddressMap &map, int64_t outputs) {
  DeviceMap result;
  for (int a = 0; a < kNumAxes; ++a) {
    const auto axis = static_cast<Axis>(a);
    AxisTerms &terms = result.axis[a];
    for (const AddressMap::Term &term : map.bits(axis)) {
      terms.bit[terms.count] = term.bit;
      terms.inverted[terms.count] = term.inverted;
      terms.weight[terms.count++] = static_cast<int32_t>(term.weight);
    }
    terms.stride = map.tileStride(axis);
  }
  result.outputs = outputs;
  result.size = map.size();
  result.tile = map.tile();
  result.hasHalves = map.hasHalves();
  std::array<uint8_t, kNumAxes> axes = {0, 1, 2, 3};
  auto stride = [&](uint8_t a) { return result.axis[a].stride; };
  std::sort(axes.begin(), axes.end(),
            [&](uint8_t a, uint8_t b) { return stride(a) > stride(b); });
  for (uint8_t a : axes)
    if (stride(a) > 0) {
      result.restAxis[result.rests] = a;
      result.restStride[result.rests++] = static_cast<uint32_t>(stride(a));
    }
  return result;
}

DeviceWeight cuda::describe(const WeightSpec &spec,
                            const WeightBuffers &buffers) {
  DeviceWeight result = {};
  result.code = spec.code;
  result.element = spec.element;
  result.scale = spec.scale;
  result.zeros = spec.zeros;
  result.bits = spec.bits();
  result.input = spec.input;
  result.rows = spec.rows();
  result.outputs = spec.output;
  result.group = spec.group > 0 ? spec.group : spec.input;
  result.groups = spec.groups();
  result.codeData = buffers.get<const uint8_t>(Part::Codes);
  result.scaleData = buffers.get<const uint8_t>(Part::Scales);
  result.zeroData = buffers.get<const uint8_t>(Part::Zeros);
  result.groupIndex = buffers.get<const int32_t>(Part::GroupIndex);
  result.permutation = buffers.get<const int32_t>(Part::Permutation);
  result.globalScale = buffers.get<const float>(Part::GlobalScale);
  // The catalogue's orders parse: storageOf has seen this specification.
  result.codes = describe(*codeAddresses(spec), spec.output);
  if (result.scaleData)
    result.scales = describe(*scaleAddresses(spec), spec.output);
  if (result.zeroData) {
    result.zeroPoints = describe(*zeroAddresses(spec), spec.output);
    result.zeroBits = zeroBits(spec);
  }
  return result;
}

bool cuda::isTiled(const WeightSpec &weight, ScalarType element) {
  const bool code = weight.code == CodeType::U4B8 ||
                    weight.code == CodeType::U4 ||
                    weight.code == CodeType::U8B128;
  const bool group = weight.groups() == 1 || weight.group % 32 == 0;
  return code && group && weight.layout->codeShape == CodeShape::Tiles16 &&
         codeOrder(weight)->tileExtent(Axis::Input) == 16 &&
         weight.scale == element && weight.actOrder == ActOrder::None &&
         (weight.bits() == 4 || weight.zeros == ZeroPoints::None) &&
         weight.zeros != ZeroPoints::MinusOne;
}

bool cuda::isSwapped(const WeightSpec &weight) {
  return codeOrder(weight)->bits().front().axis == Axis::Output;
}

bool cuda::shiftsZeros(const WeightSpec &weight) {
  const BitOrder order = *BitOrder::parse(weight.layout->zeros4);
  return order.bits().front().index == 3;
}

uint32_t cuda::divisionMagic(const WeightSpec &weight) {
  if (weight.groups() == 1)
    return 0;
  const uint64_t tiles = static_cast<uint64_t>(weight.group) / 16;
  return static_cast<uint32_t>(((uint64_t(1) << 32) + tiles - 1) / tiles);
}
