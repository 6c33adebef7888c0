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

Failure wna16::checkGroupIndex(const ExpertView &view, int64_t expert) {
  if (!view.groupIndex)
    return ok();
  int64_t groups = view.spec->groups();
  for (int64_t k = 0; k < view.spec->input; ++k)
    if (int32_t group = loadInt(view.groupIndex, k);
        group < 0 || group >= groups)
      return fail("expected group indices of expert " + std::to_string(expert) +
                  " in 0.." + std::to_string(groups - 1) + ", got " +
                  std::to_string(group) + " at input " + std::to_string(k));
  return ok();
}

/// The addresses of codes, scales and zero points, as far as they exist.
static Failure resolveAddresses(const WeightSpec &spec, ExpertView &view) {
  struct {
    bool exists;
    Result<AddressMap> (*addresses)(const WeightSpec &);
    AddressMap *map;
  } const parts[] = {
      {true, codeAddresses, &view.codes},
      {spec.code != CodeType::Dense, scaleAddresses, &view.scales},
      {spec.code != CodeType::Dense && spec.zeros != ZeroPoints::None,
       zeroAddresses, &view.zeros}};
  for (auto [exists, addresses, map] : parts) {
    if (!exists)
      continue;
    Result<AddressMap> found = addresses(spec);
    if (!found)
      return found.takeFailure();
    *map = *found;
  }
  return ok();
}

Result<ExpertView> wna16::viewExpert(const WeightSpec &spec,
                                     const WeightBuffers &buffers,
                                     int64_t expert) {
  Result<PartShapes> parts = partShapesOf(spec);
  if (!parts)
    return parts.takeFailure();
  ExpertView view;
  view.spec = &spec;
  if (Failure bad = resolveAddresses(spec, view))
    return bad;
  // In Part order.
  uint8_t **fields[kNumParts] = {&view.codeData,    &view.scaleData,
                                 &view.zeroData,    &view.groupIndex,
                                 &view.permutation, &view.globalScale};
  for (const PartShape &part : *parts) {
    uint8_t *data = buffers.get<uint8_t>(part.part);
    if (!data && part.elements())
      return fail("expected a buffer for " + std::string(name(part.part)));
    if (part.part != Part::GlobalScale && part.elements())
      data += expert * (part.bytes() / part.shape.front());
    *fields[static_cast<size_t>(part.part)] = data;
  }
  return view;
}

void ExpertView::clear() const {
  std::fill_n(codeData, codes.size() * spec->bits() / 8, 0);
  if (scaleData)
    std::fill_n(scaleData, scales.size() * sizeOf(spec->scale), 0);
  if (zeroData)
    std::fill_n(zeroData, zeros.size() * zeroBits(*spec) / 8, 0);
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

/// Experts and halves stay, other extents may grow.
static Failure checkGrowth(const WeightSpec &source, const WeightSpec &target) {
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
  return ok();
}

static Failure checkGroups(const WeightSpec &source, const WeightSpec &target) {
  if (source.groups() > 1 && (target.group < 0 || source.group % target.group))
    return fail("expected the new group (" + std::to_string(target.group) +
                ") to divide the old one (" + std::to_string(source.group) +
                ")");
  if (source.actOrder != target.actOrder &&
      (source.actOrder != ActOrder::Index ||
       target.actOrder != ActOrder::Sorted))
    return fail("expected act_order to stay or to go from index to sorted, "
                "got " +
                show(name(source.actOrder)) + " and " +
                show(name(target.actOrder)));
  if (source.actOrder != ActOrder::None &&
      (source.group != target.group || source.input != target.input))
    return fail("expected act-order rows to keep group and input, got group " +
                std::to_string(source.group) + " to " +
                std::to_string(target.group) + " and input " +
                std::to_string(source.input) + " to " +
                std::to_string(target.input));
  return ok();
}

Failure wna16::checkMove(const WeightSpec &source, const WeightSpec &target) {
  for (const WeightSpec *spec : {&source, &target})
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec); !parts)
      return parts.takeFailure();
  if (Failure bad = checkGrowth(source, target))
    return bad;
  if (Failure bad = checkCodes(source, target))
    return bad;
  if (source.code != CodeType::Dense)
    return checkGroups(source, target);
  if (source.element != target.element)
    return fail("expected one element type, got " + show(name(source.element)) +
                " and " + show(name(target.element)));
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
    if (source.code == CodeType::Dense) {
      to.clear();
      moveElements();
      return ok();
    }
    if (Failure bad = orderRows())
      return bad;
    // What is not written below is padding.
    to.clear();
    if (Failure bad = moveScales(largestScale))
      return bad;
    moveZeros();
    moveCodes();
    if (target.layout->trailerBytes)
      writeBlockSums();
    return ok();
  }

private:
  /// For each input of the target, the source's input and its group.
  Failure orderRows() {
    if (Failure bad = checkGroupIndex(from, expert))
      return bad;
    rows.resize(static_cast<size_t>(source.input));
    std::iota(rows.begin(), rows.end(), 0);
    groupOfRow.resize(rows.size());
    int64_t size = groupSize(source);
    for (int64_t k = 0; k < source.input; ++k)
      groupOfRow[k] = from.groupIndex ? loadInt(from.groupIndex, k) : k / size;
    if (source.actOrder != target.actOrder)
      return sortRows(size);
    if (to.groupIndex)
      std::copy_n(from.groupIndex, 4 * source.input, to.groupIndex);
    if (to.permutation)
      std::copy_n(from.permutation, 4 * source.input, to.permutation);
    return ok();
  }

  Failure sortRows(int64_t size) {
    std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
      return groupOfRow[a] < groupOfRow[b];
    });
    for (int64_t k = 0; k < source.input; ++k) {
      if (groupOfRow[rows[k]] != k / size)
        return fail("expected groups of " + std::to_string(size) +
                    " inputs of expert " + std::to_string(expert) +
                    ", got group " + std::to_string(groupOfRow[rows[k]]) +
                    " where " + std::to_string(k / size) +
                    " should be (sorted input " + std::to_string(k) + ")");
      storeInt(to.permutation, k, rows[k]);
    }
    return ok();
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

  Failure moveScales(float largest) {
    int64_t size = sizeOf(target.scale);
    float factor = scaleFactor(target.code);
    bool copies =
        source.scale == target.scale && factor == scaleFactor(source.code);
    Failure bad;
    forEachGroup([&](int64_t g, int64_t r, int64_t group, int64_t row) {
      int64_t at = to.scales.group(g) + to.scales.row(r);
      if (copies) {
        int64_t old = from.scales.group(group) + from.scales.row(row);
        std::copy_n(from.scaleData + old * size, size,
                    to.scaleData + at * size);
        return;
      }
      float value = from.scale(group, row);
      if (target.scale == ScalarType::I16)
        return fold(value, largest, at);
      storeFloat(target.scale, to.scaleData, at, value * factor);
      if (std::isfinite(value) && !bad &&
          !std::isfinite(loadFloat(target.scale, to.scaleData, at)))
        bad = overflow(value, group, row);
    });
    return bad;
  }

  Failure overflow(float scale, int64_t group, int64_t row) const {
    std::string remedy =
        target.scale == ScalarType::F16 ? "; use scales of bf16" : "";
    return fail("expected " + scaleRule(target) + ", got " +
                std::to_string(scale) + " for expert " +
                std::to_string(expert) + ", group " + std::to_string(group) +
                ", row " + std::to_string(row) + remedy);
  }

  /// For int8 activations: every step in the scale's own type. What is no
  /// number, or overflows on the way, saturates.
  void fold(float value, float largest, int64_t at) {
    float ratio = roundTo(source.scale, value / largest);
    float folded = std::nearbyint(roundTo(source.scale, ratio * 4096.0f));
    auto stored = static_cast<int16_t>(
        std::isnan(folded) ? 0.0f : std::clamp(folded, -32768.0f, 32767.0f));
    std::memcpy(to.scaleData + 2 * at, &stored, 2);
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
    std::vector<int64_t> fromInput(rows.size());
    std::vector<int64_t> toInput(static_cast<size_t>(target.input));
    for (int64_t k = 0; k < source.input; ++k)
      fromInput[k] = from.codes.input(rows[k]);
    for (int64_t k = 0; k < target.input; ++k)
      toInput[k] = to.codes.input(k);
    for (int64_t r = 0, e = target.rows(); r < e; ++r)
      if (int64_t row = sourceRow(r); row >= 0) {
        moveRow(r, row, fromInput.data(), toInput.data());
        padRow(r, row, toInput.data());
      }
  }

  void moveRow(int64_t r, int64_t row, const int64_t *fromInput,
               const int64_t *toInput) {
    int bits = target.bits();
    bool recodes = source.code != target.code;
    // Codes that mean the same bits need no zero point.
    bool needsZero = recodes && (source.code == CodeType::U4FP8 ||
                                 target.code == CodeType::U4FP8);
    int64_t toRow = to.codes.row(r), fromRow = from.codes.row(row);
    for (int64_t k = 0; k < source.input; ++k) {
      uint32_t code = loadCode(from.codeData, bits, fromRow + fromInput[k]);
      if (recodes) {
        int zero = needsZero ? from.zero(groupOfRow[rows[k]], row) : 0;
        code = fromUnsigned(target.code, toUnsigned(source.code, code, zero),
                            zero);
      }
      storeCode(to.codeData, bits, toRow + toInput[k], code);
    }
  }

  /// New inputs of an old group decode to 0; new groups have a scale of 0.
  void padRow(int64_t r, int64_t row, const int64_t *toInput) {
    int64_t size = groupSize(target);
    for (int64_t k = source.input; k < target.input; ++k) {
      int64_t group = sourceGroup(k / size);
      if (group < 0)
        return;
      int zero = from.zero(group, row);
      uint32_t code =
          fromUnsigned(target.code, static_cast<uint32_t>(zero), zero);
      storeCode(to.codeData, target.bits(), to.codes.row(r) + toInput[k], code);
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
    int64_t block = blockLength(target), size = groupSize(target);
    int64_t tileBytes = to.codes.tile() * target.bits() / 8;
    int64_t blocks = target.input / block;
    for (int64_t r = 0, e = target.rows(); r < e; ++r)
      for (int64_t b = 0; b < blocks; ++b) {
        // A block lies in one group.
        int zero = to.zero(b * block / size, r);
        int64_t sum = -zero * block, row = to.codes.row(r);
        for (int64_t k = b * block; k < (b + 1) * block; ++k)
          sum += loadCode(to.codeData, target.bits(), row + to.codes.input(k));
        uint8_t *trailer = to.codeData + (r / 32 * blocks + b + 1) * tileBytes -
                           target.layout->trailerBytes;
        storeInt(trailer, r % 32, sum);
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
  Result<std::vector<StoredPart>> parts = storageOf(spec);
  if (!parts)
    return parts.takeFailure();
  const StoredPart &scales = (*parts)[static_cast<size_t>(Part::Scales)];
  const void *data = buffers.get(Part::Scales);
  if (!data && scales.elements())
    return fail("expected a buffer for scales");
  float largest = 0;
  for (int64_t i = 0, e = scales.elements(); i < e; ++i)
    largest = std::max(largest,
                       loadFloat(spec.scale, data, i) / scaleFactor(spec.code));
  if (scales.elements() && !(largest > 0 && std::isfinite(largest)))
    return fail("expected a positive, finite largest scale to fold, got " +
                std::to_string(largest));
  return largest;
}

/// Writes the global scale of folded scales; returns the largest scale.
static Result<float> moveGlobalScale(const WeightSpec &source,
                                     const WeightBuffers &from,
                                     const WeightSpec &target,
                                     const WeightBuffers &to) {
  if (target.code == CodeType::Dense || target.scale != ScalarType::I16)
    return 0.0f;
  if (!to.get(Part::GlobalScale))
    return fail("expected a buffer for global_scale");
  Result<float> largest = 0.0f;
  float global = 0;
  if (source.scale == ScalarType::I16) {
    if (!from.get(Part::GlobalScale))
      return fail("expected a buffer for global_scale");
    global = loadFloat(ScalarType::F32, from.get(Part::GlobalScale), 0);
  } else {
    largest = largestScale(source, from);
    if (!largest)
      return largest;
    global = *largest / 4096.0f;
  }
  storeFloat(ScalarType::F32, to.get(Part::GlobalScale), 0, global);
  return largest;
}

Failure wna16::moveWeight(const WeightSpec &source, const WeightBuffers &from,
                          const WeightSpec &target, const WeightBuffers &to,
                          ExpertRange range) {
  if (Failure bad = checkMove(source, target))
    return bad;
  if (Failure bad = checkRange(source, range))
    return bad;
  Result<float> largest = moveGlobalScale(source, from, target, to);
  if (!largest)
    return largest.takeFailure();
  for (int64_t e = range.begin; e < range.end; ++e) {
    Result<ExpertView> in = viewExpert(source, from, e),
                       out = viewExpert(target, to, e);
    if (!in)
      return in.takeFailure();
    if (!out)
      return out.takeFailure();
    if (Failure bad = Mover(*in, *out, e).run(*largest))
      return bad;
  }
  return ok();
}

Failure wna16::moveBias(const WeightSpec &source, const void *from,
                        const WeightSpec &target, void *to, ScalarType type) {
  for (const WeightSpec *spec : {&source, &target})
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec); !parts)
      return parts.takeFailure();
  if (type != ScalarType::F16 && type != ScalarType::BF16 &&
      type != ScalarType::F32)
    return fail("expected a bias of f16, bf16 or f32, got " + show(name(type)));
  if ((!from && source.experts * source.rows() > 0) ||
      (!to && target.experts * target.rows() > 0))
    return fail("expected buffers for a bias");
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
