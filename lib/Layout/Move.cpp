//===- Move.cpp - From any layout to any other ----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Move.h"

#include "Codes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace wna16;

Failure wna16::checkRange(const WeightSpec &spec, ExpertRange range) {
  if (range.begin >= 0 && range.begin <= range.end && range.end <= spec.experts)
    return ok();
  return fail("expected experts in 0.." + std::to_string(spec.experts) +
              ", got " + std::to_string(range.begin) + ".." +
              std::to_string(range.end));
}

Failure wna16::checkGroupIndex(const WeightSpec &spec, const int32_t *index,
                               int64_t expert) {
  for (int64_t k = 0, groups = spec.groups(); k < spec.input; ++k)
    if (index[k] < 0 || index[k] >= groups)
      return fail("expected group indices of expert " + std::to_string(expert) +
                  " in 0.." + std::to_string(groups - 1) + ", got " +
                  std::to_string(index[k]) + " at input " + std::to_string(k));
  return ok();
}

Result<ExpertView> wna16::viewExpert(const WeightSpec &spec,
                                     const WeightBuffers &buffers,
                                     int64_t expert) {
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  if (!parts)
    return parts.takeFailure();
  ExpertView view;
  view.spec = &spec;
  Result<AddressMap> codes = codeAddresses(spec);
  if (!codes)
    return codes.takeFailure();
  view.codes = *codes;
  if (spec.code != CodeType::Dense) {
    Result<AddressMap> scales = scaleAddresses(spec);
    if (!scales)
      return scales.takeFailure();
    view.scales = *scales;
  }
  if (spec.zeros != ZeroPoints::None) {
    Result<AddressMap> zeros = zeroAddresses(spec);
    if (!zeros)
      return zeros.takeFailure();
    view.zeros = *zeros;
  }
  for (const StoredPart &part : *parts) {
    uint8_t *data = buffers.get<uint8_t>(part.part);
    if (!data && part.elements())
      return fail("expected a buffer for " + std::string(name(part.part)));
    if (part.part != Part::GlobalScale && part.shape.front())
      data += expert * (part.bytes() / part.shape.front());
    switch (part.part) {
    case Part::Codes:
      view.codeData = data;
      break;
    case Part::Scales:
      view.scaleData = data;
      break;
    case Part::Zeros:
      view.zeroData = data;
      break;
    case Part::GroupIndex:
      view.groupIndex = reinterpret_cast<int32_t *>(data);
      break;
    case Part::Permutation:
      view.permutation = reinterpret_cast<int32_t *>(data);
      break;
    case Part::GlobalScale:
      view.globalScale = reinterpret_cast<float *>(data);
      break;
    }
  }
  return view;
}

//===----------------------------------------------------------------------===//
// checkMove
//===----------------------------------------------------------------------===//

static std::string show(std::string_view text) { return std::string(text); }

static Failure checkCodes(const WeightSpec &source, const WeightSpec &target) {
  if ((source.code == CodeType::Dense) != (target.code == CodeType::Dense))
    return fail("expected both or none to be dense, got " +
                show(name(source.code)) + " and " + show(name(target.code)) +
                "; quantize or dequantize");
  if (source.bits() != target.bits())
    return fail("expected codes of one width, got " +
                std::to_string(source.bits()) + " and " +
                std::to_string(target.bits()) + " bits");
  if (source.zeros != ZeroPoints::None && target.zeros == ZeroPoints::None)
    return fail("expected zero points to be kept, got zeros = " +
                show(name(source.zeros)) + " and none");
  if (source.scale == ScalarType::I16 && target.scale != ScalarType::I16)
    return fail("expected folded scales to stay folded, got i16 and " +
                show(name(target.scale)));
  return ok();
}

Failure wna16::checkMove(const WeightSpec &source, const WeightSpec &target) {
  for (const WeightSpec *spec : {&source, &target})
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec); !parts)
      return parts.takeFailure();
  if (source.experts != target.experts || source.halves != target.halves)
    return fail("expected equal experts and halves, got " +
                std::to_string(source.experts) + " x " +
                std::to_string(source.halves) + " and " +
                std::to_string(target.experts) + " x " +
                std::to_string(target.halves));
  if (target.input < source.input || target.output < source.output)
    return fail("expected no extent to shrink, got input " +
                std::to_string(source.input) + " to " +
                std::to_string(target.input) + " and output " +
                std::to_string(source.output) + " to " +
                std::to_string(target.output));
  if (Failure bad = checkCodes(source, target))
    return bad;
  if (source.code == CodeType::Dense) {
    if (source.element != target.element)
      return fail("expected one element type, got " +
                  show(name(source.element)) + " and " +
                  show(name(target.element)));
    return ok();
  }
  if (source.groups() > 1 && (target.group < 0 || source.group % target.group))
    return fail("expected the new group (" + std::to_string(target.group) +
                ") to divide the old one (" + std::to_string(source.group) +
                ")");
  if (source.actOrder != target.actOrder) {
    if (source.actOrder != ActOrder::Index ||
        target.actOrder != ActOrder::Sorted)
      return fail("expected act_order to stay or to go from index to sorted, "
                  "got " +
                  show(name(source.actOrder)) + " and " +
                  show(name(target.actOrder)));
  }
  if (source.actOrder != ActOrder::None &&
      (source.group != target.group || source.input != target.input))
    return fail("expected act-order rows to keep group and input, got group " +
                std::to_string(source.group) + " to " +
                std::to_string(target.group) + " and input " +
                std::to_string(source.input) + " to " +
                std::to_string(target.input));
  return ok();
}

//===----------------------------------------------------------------------===//
// moveWeight
//===----------------------------------------------------------------------===//

namespace {

/// One expert's move.
class Mover {
public:
  Mover(const ExpertView &from, const ExpertView &to, int64_t expert)
      : from(from), to(to), source(*from.spec), target(*to.spec),
        expert(expert) {}

  Failure run(float largestScale) {
    if (Failure bad = orderRows())
      return bad;
    clear();
    if (source.code == CodeType::Dense) {
      moveElements();
      return ok();
    }
    moveScales(largestScale);
    moveZeros();
    moveCodes();
    if (target.layout->trailerBytes)
      writeBlockSums();
    return ok();
  }

private:
  std::string where() const { return " of expert " + std::to_string(expert); }

  /// For each target row along the input, the source row and its group.
  Failure orderRows() {
    rows.resize(target.input);
    std::iota(rows.begin(), rows.end(), 0);
    groupOfRow.resize(source.input);
    if (from.groupIndex)
      if (Failure bad = checkGroupIndex(source, from.groupIndex, expert))
        return bad;
    int64_t size = source.group < 0 ? std::max<int64_t>(source.input, 1)
                                    : std::max<int64_t>(source.group, 1);
    for (int64_t k = 0; k < source.input; ++k) {
      if (from.groupIndex)
        groupOfRow[k] = from.groupIndex[k];
      else
        groupOfRow[k] = source.code == CodeType::Dense ? 0 : k / size;
    }
    if (target.actOrder == ActOrder::Index)
      std::copy(from.groupIndex, from.groupIndex + source.input, to.groupIndex);
    if (target.actOrder != ActOrder::Sorted)
      return ok();
    if (source.actOrder == ActOrder::Sorted) {
      std::copy(from.permutation, from.permutation + source.input,
                to.permutation);
      return ok();
    }
    return sortRows(size);
  }

  Failure sortRows(int64_t size) {
    std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
      return groupOfRow[a] < groupOfRow[b];
    });
    for (int64_t k = 0; k < target.input; ++k) {
      if (groupOfRow[rows[k]] != k / size)
        return fail("expected groups of " + std::to_string(size) + " inputs" +
                    where() + ", got group " +
                    std::to_string(groupOfRow[rows[k]]) + " where " +
                    std::to_string(k / size) + " should be (sorted input " +
                    std::to_string(k) + ")");
      to.permutation[k] = static_cast<int32_t>(rows[k]);
    }
    return ok();
  }

  /// What is not written below is padding.
  void clear() {
    std::fill_n(to.codeData, to.codes.size() * target.bits() / 8, 0);
    if (to.scaleData)
      std::fill_n(to.scaleData, to.scales.size() * sizeOf(target.scale), 0);
    if (to.zeroData)
      std::fill_n(to.zeroData, to.zeros.size() * zeroBits(target) / 8, 0);
  }

  /// The source's row for a row of the target; -1 in the padding.
  int64_t sourceRow(int64_t row) const {
    int64_t n = row % target.output;
    return n < source.output ? row / target.output * source.output + n : -1;
  }

  /// The source's group that group `g` of the target is part of; -1 beyond.
  int64_t sourceGroup(int64_t g) const {
    int64_t first = target.group < 0 ? 0 : g * target.group;
    if (first >= source.input)
      return -1;
    return source.group < 0 ? 0 : first / source.group;
  }

  template <typename Fn>
  void forEachGroup(Fn fn) {
    for (int64_t g = 0, e = target.groups(); g < e; ++g)
      for (int64_t r = 0, rs = target.rows(); r < rs; ++r)
        if (int64_t group = sourceGroup(g), row = sourceRow(r);
            group >= 0 && row >= 0)
          fn(g, r, group, row);
  }

  void moveScales(float largest) {
    forEachGroup([&](int64_t g, int64_t r, int64_t group, int64_t row) {
      int64_t at = to.scales.group(g) + to.scales.row(r);
      int64_t source_ = from.scales.group(group) + from.scales.row(row);
      if (source.scale == target.scale) {
        int64_t size = sizeOf(target.scale);
        std::copy_n(from.scaleData + source_ * size, size,
                    to.scaleData + at * size);
        return;
      }
      float value = loadFloat(source.scale, from.scaleData, source_);
      if (target.scale != ScalarType::I16) {
        storeFloat(target.scale, to.scaleData, at, value);
        return;
      }
      // Folded for int8 activations: every step in the scale's own type.
      // What is no number, or overflows on the way, saturates.
      float ratio = roundTo(source.scale, value / largest);
      float folded = std::nearbyint(roundTo(source.scale, ratio * 4096.0f));
      auto stored = static_cast<int16_t>(
          std::isnan(folded) ? 0.0f : std::clamp(folded, -32768.0f, 32767.0f));
      std::memcpy(to.scaleData + 2 * at, &stored, 2);
    });
  }

  void moveZeros() {
    if (!to.zeroData)
      return;
    uint32_t mask = (1u << target.bits()) - 1;
    forEachGroup([&](int64_t g, int64_t r, int64_t group, int64_t row) {
      uint32_t zero = static_cast<uint32_t>(from.zero(group, row));
      if (target.zeros == ZeroPoints::MinusOne)
        zero = (zero - 1) & mask;
      storeCode(to.zeroData, zeroBits(target),
                to.zeros.group(g) + to.zeros.row(r), zero);
    });
  }

  void moveCodes() {
    int bits = target.bits();
    // Codes that mean the same bits need no zero point.
    bool needsZero =
        source.code != target.code &&
        (source.code == CodeType::U4FP8 || target.code == CodeType::U4FP8);
    std::vector<int64_t> fromInput(target.input), toInput(target.input);
    for (int64_t k = 0; k < target.input; ++k) {
      toInput[k] = to.codes.input(k);
      fromInput[k] = rows[k] < source.input ? from.codes.input(rows[k]) : -1;
    }
    for (int64_t r = 0, e = target.rows(); r < e; ++r) {
      int64_t row = sourceRow(r);
      if (row < 0)
        continue;
      int64_t toRow = to.codes.row(r), fromRow = from.codes.row(row);
      for (int64_t k = 0; k < source.input; ++k) {
        uint32_t code = loadCode(from.codeData, bits, fromRow + fromInput[k]);
        if (source.code != target.code) {
          int zero = needsZero ? from.zero(groupOfRow[rows[k]], row) : 0;
          code = fromUnsigned(target.code, toUnsigned(source.code, code, zero),
                              zero);
        }
        storeCode(to.codeData, bits, toRow + toInput[k], code);
      }
    }
  }

  void moveElements() {
    int64_t size = sizeOf(target.element);
    for (int64_t r = 0, e = target.rows(); r < e; ++r) {
      int64_t row = sourceRow(r);
      if (row < 0)
        continue;
      for (int64_t k = 0; k < source.input; ++k)
        std::copy_n(
            from.codeData + (from.codes.row(row) + from.codes.input(k)) * size,
            size, to.codeData + (to.codes.row(r) + to.codes.input(k)) * size);
    }
  }

  /// After each block, i32 sums of Q - z over its inputs for 32 outputs.
  void writeBlockSums() {
    int64_t block = blockLength(target);
    int64_t tileBytes = to.codes.tile() * target.bits() / 8;
    int64_t blocks = target.input / block;
    for (int64_t r = 0, e = target.rows(); r < e; ++r)
      for (int64_t b = 0; b < blocks; ++b) {
        int32_t sum = 0;
        for (int64_t k = b * block; k < (b + 1) * block; ++k) {
          int64_t group = target.group < 0 ? 0 : k / target.group;
          sum += static_cast<int32_t>(
                     loadCode(to.codeData, target.bits(),
                              to.codes.row(r) + to.codes.input(k))) -
                 to.zero(group, r);
        }
        uint8_t *trailer = to.codeData + (r / 32 * blocks + b + 1) * tileBytes -
                           target.layout->trailerBytes;
        std::memcpy(trailer + 4 * (r % 32), &sum, 4);
      }
  }

  const ExpertView &from, &to;
  const WeightSpec &source, &target;
  int64_t expert;
  std::vector<int64_t> rows, groupOfRow;
};

} // namespace

/// The largest scale of all experts, for folding.
static Result<float> largestScale(const WeightSpec &spec,
                                  const WeightBuffers &buffers) {
  if (!buffers.get(Part::Scales))
    return fail("expected a buffer for scales");
  float largest = 0;
  int64_t count = 0;
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  if (!parts)
    return parts.takeFailure();
  for (const StoredPart &part : *parts)
    if (part.part == Part::Scales)
      count = part.elements();
  for (int64_t i = 0; i < count; ++i)
    largest =
        std::max(largest, loadFloat(spec.scale, buffers.get(Part::Scales), i));
  if (count && !(largest > 0 && std::isfinite(largest)))
    return fail("expected a positive, finite largest scale to fold, got " +
                std::to_string(largest));
  return largest;
}

Failure wna16::moveWeight(const WeightSpec &source, const WeightBuffers &from,
                          const WeightSpec &target, const WeightBuffers &to,
                          ExpertRange range) {
  if (Failure bad = checkMove(source, target))
    return bad;
  if (Failure bad = checkRange(source, range))
    return bad;
  float largest = 0;
  if (target.scale == ScalarType::I16 && source.scale != ScalarType::I16 &&
      target.code != CodeType::Dense) {
    Result<float> found = largestScale(source, from);
    if (!found)
      return found.takeFailure();
    largest = *found;
    if (!to.get(Part::GlobalScale))
      return fail("expected a buffer for global_scale");
    *to.get<float>(Part::GlobalScale) = largest / 4096.0f;
  }
  if (source.scale == ScalarType::I16 && source.code != CodeType::Dense) {
    if (!from.get(Part::GlobalScale) || !to.get(Part::GlobalScale))
      return fail("expected buffers for global_scale");
    *to.get<float>(Part::GlobalScale) = *from.get<float>(Part::GlobalScale);
  }
  for (int64_t e = range.begin; e < range.end; ++e) {
    Result<ExpertView> in = viewExpert(source, from, e),
                       out = viewExpert(target, to, e);
    if (!in)
      return in.takeFailure();
    if (!out)
      return out.takeFailure();
    if (Failure bad = Mover(*in, *out, e).run(largest))
      return bad;
  }
  return ok();
}

Failure wna16::moveBias(const WeightSpec &source, const void *from,
                        const WeightSpec &target, void *to, ScalarType type) {
  for (const WeightSpec *spec : {&source, &target})
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec); !parts)
      return parts.takeFailure();
  Result<AddressMap> in = biasAddresses(source), out = biasAddresses(target);
  if (!in)
    return in.takeFailure();
  if (!out)
    return out.takeFailure();
  if (source.experts != target.experts || source.halves != target.halves ||
      target.output < source.output)
    return fail("expected a bias of equal experts and halves that does not "
                "shrink, got " +
                std::to_string(source.output) + " to " +
                std::to_string(target.output));
  int64_t size = sizeOf(type);
  auto *bytes = static_cast<uint8_t *>(to);
  const auto *original = static_cast<const uint8_t *>(from);
  for (int64_t e = 0; e < target.experts; ++e) {
    std::fill_n(bytes + e * target.rows() * size, target.rows() * size, 0);
    for (int64_t r = 0; r < source.rows(); ++r) {
      int64_t row = r / source.output * target.output + r % source.output;
      std::copy_n(original + (e * source.rows() + in->row(r)) * size, size,
                  bytes + (e * target.rows() + out->row(row)) * size);
    }
  }
  return ok();
}
