//===- Values.cpp - Codes to floats and back ------------------------------===//
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

using namespace wna16;

//===----------------------------------------------------------------------===//
// RowDecoder
//===----------------------------------------------------------------------===//

int64_t RowDecoder::tableBytes(const WeightSpec &spec) {
  return 8 * (spec.input + spec.groups() * 2 + spec.rows() * 3);
}

/// Whether each even input and the next one share a byte, low half first.
static bool arePaired(const int64_t *offsets, int64_t count) {
  for (int64_t k = 0; k + 1 < count; k += 2)
    if (offsets[k] % 2 != 0 || offsets[k + 1] != offsets[k] + 1)
      return false;
  return true;
}

Failure RowDecoder::init(const WeightSpec &weight, const WeightBuffers &data,
                         void *table) {
  spec = weight;
  if (spec.experts == 0 || spec.input == 0 || spec.rows() == 0) {
    // Nothing to read: no expert, row or input to be asked for.
    Result<PartShapes> parts = partShapesOf(spec);
    return parts ? ok() : parts.takeFailure();
  }
  Result<ExpertView> view = viewExpert(spec, data, 0);
  if (!view)
    return view.takeFailure();
  groupIndex = view->groupIndex;
  scaleUnit = view->scaleUnit();
  auto *next = static_cast<int64_t *>(table);
  // Fills the two tables of a part: by input or group, then by row.
  auto store = [&](Stored &stored, const uint8_t *bytes, const AddressMap &map,
                   int64_t expertUnits, int bits, bool side) {
    stored = {bytes, expertUnits * bits / 8, next, nullptr};
    for (int64_t i = 0, e = side ? spec.groups() : spec.input; i < e; ++i)
      *next++ = side ? map.group(i) : map.input(i);
    stored.row = next;
    for (int64_t r = 0, e = spec.rows(); r < e; ++r)
      *next++ = map.row(r);
  };
  codes = scales = zeros = {};
  store(codes, view->codeData, view->codes, view->codes.size(), spec.bits(),
        false);
  paired = spec.bits() == 4 && arePaired(codes.inner, spec.input) &&
           std::all_of(codes.row, codes.row + spec.rows(),
                       [](int64_t offset) { return offset % 2 == 0; });
  if (view->scaleData)
    store(scales, view->scaleData, view->scales, view->scales.size(),
          static_cast<int>(8 * sizeOf(spec.scale)), true);
  if (view->zeroData)
    store(zeros, view->zeroData, view->zeros, view->zeros.size(),
          zeroBits(spec), true);
  return ok();
}

float RowDecoder::valueOf(uint32_t code, int zero) const {
  return static_cast<float>(
      static_cast<int>(toUnsigned(spec.code, code, zero)) - zero);
}

/// Inputs [first, last), which share a scale and a zero point.
void RowDecoder::decodeGroup(const uint8_t *data, int64_t base, int64_t first,
                             int64_t last, int zero, float scale,
                             float *out) const {
  int bits = spec.bits();
  if (last - first < (1 << bits)) {
    for (int64_t k = first; k < last; ++k)
      out[k] =
          valueOf(loadCode(data, bits, base + codes.inner[k]), zero) * scale;
    return;
  }
  // Long groups look each code's value up.
  float values[256];
  for (int code = 0; code < 1 << bits; ++code)
    values[code] = valueOf(static_cast<uint32_t>(code), zero) * scale;
  int64_t k = first;
  if (paired && first % 2 == 0)
    for (; k + 1 < last; k += 2) {
      uint8_t pair = data[(base + codes.inner[k]) >> 1];
      out[k] = values[pair & 15];
      out[k + 1] = values[pair >> 4];
    }
  for (; k < last; ++k)
    out[k] = values[loadCode(data, bits, base + codes.inner[k])];
}

void RowDecoder::decode(int64_t expert, int64_t row, float *out) const {
  if (spec.input == 0)
    return;
  const uint8_t *data = codes.data + expert * codes.expertBytes;
  int64_t base = codes.row[row];
  if (spec.code == CodeType::Dense) {
    for (int64_t k = 0; k < spec.input; ++k)
      out[k] = loadFloat(spec.element, data, base + codes.inner[k]);
    return;
  }
  int bits = spec.bits();
  const uint8_t *scaleData = scales.data + expert * scales.expertBytes;
  auto scaleOf = [&](int64_t g) {
    return loadScale(spec.scale, scaleData, scales.inner[g] + scales.row[row],
                     scaleUnit);
  };
  auto zeroOf = [&](int64_t g) {
    return zeros.data ? loadZero(spec, zeros.data + expert * zeros.expertBytes,
                                 zeros.inner[g] + zeros.row[row])
                      : impliedZero(spec.code);
  };
  if (groupIndex) {
    const uint8_t *index = groupIndex + 4 * expert * spec.input;
    for (int64_t k = 0; k < spec.input; ++k) {
      // An index out of range reads the last group, never beyond.
      int64_t g = std::clamp<int64_t>(loadInt(index, k), 0, spec.groups() - 1);
      out[k] = valueOf(loadCode(data, bits, base + codes.inner[k]), zeroOf(g)) *
               scaleOf(g);
    }
    return;
  }
  int64_t size = groupSize(spec);
  for (int64_t g = 0, first = 0; first < spec.input; ++g, first += size)
    decodeGroup(data, base, first, std::min(first + size, spec.input),
                zeroOf(g), scaleOf(g), out);
}

//===----------------------------------------------------------------------===//
// Dequantise and quantise
//===----------------------------------------------------------------------===//

static Failure checkDense(ScalarType type, const void *data,
                          const WeightSpec &spec) {
  if (type != ScalarType::F16 && type != ScalarType::BF16 &&
      type != ScalarType::F32)
    return fail("expected dense values of f16, bf16 or f32, got " +
                std::string(name(type)));
  if (!data && spec.experts > 0 && spec.rows() > 0 && spec.input > 0)
    return fail("expected a buffer for dense values");
  return ok();
}

/// Row `r` as upstream's emulation has it: both factors rounded first.
static void decodeScaleFirst(const ExpertView &view, int64_t r, ScalarType type,
                             float *out) {
  const WeightSpec &spec = *view.spec;
  int64_t size = spec.group < 0 ? spec.input : spec.group;
  for (int64_t k = 0; k < spec.input; ++k) {
    int64_t g = view.groupIndex ? loadInt(view.groupIndex, k) : k / size;
    int zero = view.zero(g, r);
    uint32_t code = loadCode(view.codeData, spec.bits(),
                             view.codes.row(r) + view.codes.input(k));
    auto value = static_cast<float>(
        static_cast<int>(toUnsigned(spec.code, code, zero)) - zero);
    out[k] = roundTo(type, value) * roundTo(type, view.scale(g, r));
  }
}

Failure wna16::checkDequantize(const WeightSpec &source) {
  if (source.actOrder != ActOrder::Sorted)
    return ok();
  return fail("expected inputs in their order (act_order none or index), got "
              "sorted; dequantise before the rows are sorted");
}

Failure wna16::dequantizeWeight(const WeightSpec &source,
                                const WeightBuffers &from, ScalarType type,
                                bool scaleFirst, void *out, ExpertRange range) {
  if (Result<std::vector<StoredPart>> parts = storageOf(source); !parts)
    return parts.takeFailure();
  if (Failure bad = checkRange(source, range))
    return bad;
  if (Failure bad = checkDense(type, out, source))
    return bad;
  std::vector<int64_t> table(
      static_cast<size_t>(RowDecoder::tableBytes(source) / 8));
  RowDecoder decoder;
  if (Failure bad = decoder.init(source, from, table.data()))
    return bad;
  bool rounded = scaleFirst && source.code != CodeType::Dense;
  std::vector<float> row(static_cast<size_t>(source.input));
  for (int64_t e = range.begin; e < range.end; ++e) {
    Result<ExpertView> view = viewExpert(source, from, e);
    if (!view)
      return view.takeFailure();
    if (Failure bad = checkGroupIndex(*view, e))
      return bad;
    for (int64_t r = 0; r < source.rows(); ++r) {
      if (rounded)
        decodeScaleFirst(*view, r, type, row.data());
      else
        decoder.decode(e, r, row.data());
      int64_t first = (e * source.rows() + r) * source.input;
      for (int64_t k = 0; k < source.input; ++k)
        storeFloat(type, out, first + k, row[k]);
    }
  }
  return ok();
}

/// Scale and zero point of min-max ranges that include 0.
static std::pair<float, int> rangeOf(const float *values, int64_t count,
                                     bool symmetric, int bits) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  int most = (1 << bits) - 1, middle = 1 << (bits - 1);
  if (symmetric) {
    float scale = std::max(-low / static_cast<float>(middle),
                           high / static_cast<float>(middle - 1));
    return {scale > 0 ? scale : 1.0f, middle};
  }
  float scale = (high - low) / static_cast<float>(most);
  if (!(scale > 0))
    return {1.0f, 0};
  int zero = static_cast<int>(std::nearbyint(-low / scale));
  return {scale, std::clamp(zero, 0, most)};
}

/// Quantises inputs [first, first + count) of a row: group g.
static Failure quantizeGroup(const ExpertView &view, int64_t expert, int64_t r,
                             int64_t g, int64_t first, int64_t count,
                             const float *values) {
  const WeightSpec &spec = *view.spec;
  int bits = spec.bits(), most = (1 << bits) - 1;
  auto [exact, zero] =
      rangeOf(values, count, spec.zeros == ZeroPoints::None, bits);
  float factor = scaleFactor(spec.code);
  float stored = roundTo(spec.scale, exact * factor), scale = stored / factor;
  bool finite = std::all_of(values, values + count,
                            [](float value) { return std::isfinite(value); });
  if (!finite || !(scale > 0) || !std::isfinite(scale))
    return fail("expected finite values and " + scaleRule(spec) +
                ", got scale " + std::to_string(exact) + " for expert " +
                std::to_string(expert) + ", row " + std::to_string(r));
  storeFloat(spec.scale, view.scaleData,
             view.scales.group(g) + view.scales.row(r), stored);
  if (view.zeroData) {
    int storedZero = spec.zeros == ZeroPoints::MinusOne ? zero - 1 : zero;
    storeCode(view.zeroData, zeroBits(spec),
              view.zeros.group(g) + view.zeros.row(r),
              static_cast<uint32_t>(storedZero & most));
  }
  for (int64_t i = 0; i < count; ++i) {
    float steps = std::nearbyint(values[i] / scale) + static_cast<float>(zero);
    auto q = static_cast<uint32_t>(
        std::clamp(steps, 0.0f, static_cast<float>(most)));
    storeCode(view.codeData, bits,
              view.codes.row(r) + view.codes.input(first + i),
              fromUnsigned(spec.code, q, zero));
  }
  return ok();
}

Failure wna16::quantizeWeight(ScalarType type, const void *in,
                              const WeightSpec &target, const WeightBuffers &to,
                              ExpertRange range) {
  if (Result<std::vector<StoredPart>> parts = storageOf(target); !parts)
    return parts.takeFailure();
  if (target.code == CodeType::Dense || target.actOrder != ActOrder::None ||
      target.scale == ScalarType::I16 || target.layout->trailerBytes)
    return fail("expected codes without act-order, folded scales and block "
                "sums, got " +
                std::string(name(target.code)) + " in layout " +
                std::string(target.layout->name) + "; convert afterwards");
  if (Failure bad = checkRange(target, range))
    return bad;
  if (Failure bad = checkDense(type, in, target))
    return bad;
  int64_t size = groupSize(target);
  std::vector<float> row(static_cast<size_t>(target.input));
  for (int64_t e = range.begin; e < range.end; ++e) {
    Result<ExpertView> view = viewExpert(target, to, e);
    if (!view)
      return view.takeFailure();
    view->clearCodes();
    view->clearSides();
    for (int64_t r = 0; r < target.rows(); ++r) {
      for (int64_t k = 0; k < target.input; ++k)
        row[k] =
            loadFloat(type, in, (e * target.rows() + r) * target.input + k);
      for (int64_t g = 0, first = 0; first < target.input; ++g, first += size) {
        int64_t count = std::min(size, target.input - first);
        if (Failure bad =
                quantizeGroup(*view, e, r, g, first, count, row.data() + first))
          return bad;
      }
    }
  }
  return ok();
}
