//===- Move.cpp - From any layout to any other ----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Move.h"

#include "CodeMover.h"
#include "SideMover.h"

#include <algorithm>
#include <array>
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

void ExpertView::clearCodes() const {
  std::fill_n(codeData, codes.size() * spec->bits() / 8, 0);
}

void ExpertView::clearSides() const {
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

/// The window with its extents filled in, once it lies within the source.
Result<Window> wna16::resolve(const WeightSpec &source, Window window) {
  struct {
    const char *axis;
    int64_t begin, *size, extent;
  } const axes[] = {{"input", window.input, &window.inputs, source.input},
                    {"output", window.output, &window.outputs, source.output}};
  for (auto [axis, begin, size, extent] : axes) {
    const bool begins = begin >= 0 && begin <= extent;
    if (begins && *size == -1)
      *size = extent - begin;
    if (!begins || *size < 0 || *size > extent - begin)
      return fail("expected a window within " + std::string(axis) + " " +
                  std::to_string(extent) + ", got " +
                  (*size == -1 ? "all" : std::to_string(*size)) + " from " +
                  std::to_string(begin) + " on");
  }
  return window;
}

/// Experts and halves stay, other extents may grow.
static Failure checkGrowth(const WeightSpec &source, const WeightSpec &target,
                           Window window) {
  if (source.experts != target.experts || source.halves != target.halves)
    return fail("expected equal experts and halves, got " +
                std::to_string(source.experts) + " x " +
                std::to_string(source.halves) + " and " +
                std::to_string(target.experts) + " x " +
                std::to_string(target.halves));
  if (target.input < window.inputs || target.output < window.outputs)
    return fail("expected no extent to shrink, got input " +
                std::to_string(window.inputs) + " to " +
                std::to_string(target.input) + " and output " +
                std::to_string(window.outputs) + " to " +
                std::to_string(target.output));
  return ok();
}

/// Rows keep their groups: sorted ones all, indexed ones of a window with all
/// scales and zero points of the whole.
static Failure checkActOrder(const WeightSpec &source, const WeightSpec &target,
                             Window window) {
  if (source.group != target.group || source.groups() != target.groups() ||
      target.input != window.inputs)
    return fail(
        "expected act-order rows to keep group, groups and input, got "
        "group " +
        std::to_string(source.group) + " to " + std::to_string(target.group) +
        ", groups " + std::to_string(source.groups()) + " to " +
        std::to_string(target.groups()) + " and input " +
        std::to_string(window.inputs) + " to " + std::to_string(target.input));
  if (window.inputs != source.input && target.actOrder == ActOrder::Sorted)
    return fail("expected all " + std::to_string(source.input) +
                " inputs of sorted act-order rows, got " +
                std::to_string(window.inputs) +
                "; take them with act_order = index");
  return ok();
}

static Failure checkGroups(const WeightSpec &source, const WeightSpec &target,
                           Window window) {
  if (source.actOrder != target.actOrder &&
      (source.actOrder != ActOrder::Index ||
       target.actOrder != ActOrder::Sorted))
    return fail("expected act_order to stay or to go from index to sorted, "
                "got " +
                show(name(source.actOrder)) + " and " +
                show(name(target.actOrder)));
  if (source.actOrder != ActOrder::None)
    return checkActOrder(source, target, window);
  if (source.groups() > 1 && (target.group < 0 || source.group % target.group))
    return fail("expected the new group (" + std::to_string(target.group) +
                ") to divide the old one (" + std::to_string(source.group) +
                ")");
  if (source.groups() > 1 && window.input % target.group)
    return fail("expected the new group (" + std::to_string(target.group) +
                ") to divide the window's first input (" +
                std::to_string(window.input) + ")");
  return ok();
}

Failure wna16::checkMove(const WeightSpec &source, const WeightSpec &target,
                         Window window) {
  for (const WeightSpec *spec : {&source, &target})
    if (Result<std::vector<StoredPart>> parts = storageOf(*spec); !parts)
      return parts.takeFailure();
  Result<Window> resolved = resolve(source, window);
  if (!resolved)
    return resolved.takeFailure();
  if (Failure bad = checkGrowth(source, target, *resolved))
    return bad;
  if (Failure bad = checkCodes(source, target))
    return bad;
  if (source.code != CodeType::Dense)
    return checkGroups(source, target, *resolved);
  if (source.element != target.element)
    return fail("expected one element type, got " + show(name(source.element)) +
                " and " + show(name(target.element)));
  return ok();
}

//===----------------------------------------------------------------------===//
// moveWeight
//===----------------------------------------------------------------------===//

/// Dense elements; padding is zeros.
static void moveElements(const ExpertView &from, const ExpertView &to,
                         Window window) {
  const WeightSpec &source = *from.spec, &target = *to.spec;
  int64_t size = sizeOf(target.element);
  bool copies = from.codes.input(1) == 1 && to.codes.input(1) == 1;
  for (int64_t half = 0; half < target.halves; ++half)
    for (int64_t n = 0; n < target.output; ++n) {
      uint8_t *out =
          to.codeData + to.codes.row(half * target.output + n) * size;
      int64_t moved = n < window.outputs ? window.inputs : 0;
      const uint8_t *in = from.codeData;
      if (moved)
        in += from.codes.row(half * source.output + window.output + n) * size;
      if (copies)
        std::copy_n(in + window.input * size, moved * size, out);
      for (int64_t k = copies ? moved : 0; k < target.input; ++k) {
        uint8_t *element = out + to.codes.input(k) * size;
        if (k < moved)
          std::copy_n(in + from.codes.input(window.input + k) * size, size,
                      element);
        else
          std::fill_n(element, size, 0);
      }
    }
}

namespace {

/// One expert's move.
class Mover {
public:
  Mover(const ExpertView &from, const ExpertView &to, const CodeMover &codes,
        const SideMover &sides, Window window, int64_t expert)
      : from(from), to(to), codes(codes), sides(sides), source(*from.spec),
        target(*to.spec), window(window), expert(expert) {
    impliedZeros.fill(static_cast<uint8_t>(impliedZero(source.code)));
  }

  /// Scales and zero points, and clears padding: before all codes.
  Failure moveSides(float largestScale, Slice slice) {
    if (target.code == CodeType::Dense)
      return ok();
    codes.clear(to, slice);
    // One slice would clear what another has moved.
    if (sides.clears()) {
      if (!slice.isLast())
        return ok();
      slice = Slice();
    }
    sides.clear(to, slice);
    if (Failure bad = sides.moveScales(from, to, expert, largestScale, slice))
      return bad;
    sides.moveZeros(from, to, slice);
    return ok();
  }

  Failure moveCodes(Slice slice) {
    if (target.code == CodeType::Dense) {
      moveElements(from, to, window);
      return ok();
    }
    if (Failure bad = orderInputs(slice))
      return bad;
    codes.run(
        from, to, order,
        [this](int64_t tile, const uint8_t *block, bool streams) {
          writeBlockSums(tile, block, streams);
        },
        slice);
    return ok();
  }

private:
  /// For each input that the target takes the source's, and its group.
  Failure orderInputs(Slice slice) {
    if (Failure bad = checkGroupIndex(from, expert))
      return bad;
    order.source.resize(static_cast<size_t>(window.inputs));
    std::iota(order.source.begin(), order.source.end(), window.input);
    order.group.resize(static_cast<size_t>(source.input));
    int64_t size = groupSize(source);
    for (int64_t k = 0; k < source.input; ++k)
      order.group[k] = from.groupIndex ? loadInt(from.groupIndex, k) : k / size;
    if (source.actOrder != target.actOrder)
      return sortInputs(size);
    if (!slice.isLast())
      return ok();
    if (to.groupIndex)
      std::copy_n(from.groupIndex + 4 * window.input, 4 * window.inputs,
                  to.groupIndex);
    if (to.permutation)
      std::copy_n(from.permutation, 4 * source.input, to.permutation);
    return ok();
  }

  Failure sortInputs(int64_t size) {
    std::vector<int64_t> &inputs = order.source;
    std::stable_sort(inputs.begin(), inputs.end(), [&](int64_t a, int64_t b) {
      return order.group[a] < order.group[b];
    });
    for (int64_t k = 0; k < source.input; ++k) {
      if (order.group[inputs[k]] != k / size)
        return fail("expected groups of " + std::to_string(size) +
                    " inputs of expert " + std::to_string(expert) +
                    ", got group " + std::to_string(order.group[inputs[k]]) +
                    " where " + std::to_string(k / size) +
                    " should be (sorted input " + std::to_string(k) + ")");
      storeInt(to.permutation, k, inputs[k]);
    }
    return ok();
  }

  /// After each block of codes, i32 sums of Q - z over its inputs for 32
  /// outputs. A block lies in one group.
  void writeBlockSums(int64_t tile, const uint8_t *codes, bool streams) {
    int64_t length = blockLength(target), blocks = target.input / length;
    int64_t tileBytes = to.codes.tile() * target.bits() / 8;
    int64_t bytes = tileBytes - target.layout->trailerBytes;
    // Zero points of a tile are 32 bytes side by side. Where they are known,
    // nothing waits for memory to give back what was written.
    const uint8_t *zeros = impliedZeros.data();
    if (!sides.impliesZeros(from)) {
      int64_t group = tile % blocks * length / groupSize(target);
      zeros = to.zeroData + group * to.zeros.tileStride(Axis::Group) +
              tile / blocks * to.zeros.tileStride(Axis::Output);
    }
    sumBlock({codes, bytes, zeros, static_cast<int32_t>(length), streams},
             to.codeData + tile * tileBytes + bytes);
  }

  const ExpertView &from, &to;
  const CodeMover &codes;
  const SideMover &sides;
  const WeightSpec &source, &target;
  Window window;
  int64_t expert;
  InputOrder order;
  std::array<uint8_t, 32> impliedZeros; ///< of the outputs of a tile
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

struct WeightMove::State {
  WeightSpec source, target;
  WeightBuffers from, to;
  ExpertRange range;
  Window window;
  float largest = 0; ///< of all scales, where they are folded
  CodeMover codes;
  SideMover sides;
  int64_t slices = 1; ///< of an expert

  Failure plan();
  /// Calls step(mover, slice) for an expert's slice.
  template <typename Step>
  Failure forSlice(int64_t index, Step step) const;
};

Failure WeightMove::State::plan() {
  Result<float> scale = moveGlobalScale(source, from, target, to);
  if (!scale)
    return scale.takeFailure();
  largest = *scale;
  if (target.code == CodeType::Dense)
    return ok();
  Result<CodeMover> codeMover = CodeMover::make(source, target, window);
  if (!codeMover)
    return codeMover.takeFailure();
  Result<SideMover> sideMover = SideMover::make(source, target, window);
  if (!sideMover)
    return sideMover.takeFailure();
  codes = std::move(*codeMover);
  sides = std::move(*sideMover);
  slices = codes.slices();
  return ok();
}

template <typename Step>
Failure WeightMove::State::forSlice(int64_t index, Step step) const {
  int64_t expert = range.begin + index / slices;
  Result<ExpertView> in = viewExpert(source, from, expert);
  if (!in)
    return in.takeFailure();
  Result<ExpertView> out = viewExpert(target, to, expert);
  if (!out)
    return out.takeFailure();
  return step(Mover(*in, *out, codes, sides, window, expert),
              Slice{index % slices, slices});
}

WeightMove::WeightMove(std::unique_ptr<State> state)
    : state(std::move(state)) {}
WeightMove::WeightMove(WeightMove &&) = default;
WeightMove &WeightMove::operator=(WeightMove &&) = default;
WeightMove::~WeightMove() = default;

Result<WeightMove> WeightMove::plan(const WeightSpec &source,
                                    const WeightBuffers &from,
                                    const WeightSpec &target,
                                    const WeightBuffers &to, ExpertRange range,
                                    Window window) {
  if (Failure bad = checkMove(source, target, window))
    return bad;
  if (Failure bad = checkRange(source, range))
    return bad;
  auto state = std::make_unique<State>();
  state->source = source;
  state->target = target;
  state->from = from;
  state->to = to;
  state->range = range;
  state->window = *resolve(source, window);
  if (Failure bad = state->plan())
    return bad;
  return WeightMove(std::move(state));
}

int64_t WeightMove::steps() const {
  return (state->range.end - state->range.begin) * state->slices;
}

Failure WeightMove::moveSides(int64_t step) const {
  return state->forSlice(step, [&](Mover mover, Slice slice) {
    return mover.moveSides(state->largest, slice);
  });
}

Failure WeightMove::moveCodes(int64_t step) const {
  return state->forSlice(
      step, [&](Mover mover, Slice slice) { return mover.moveCodes(slice); });
}

Failure wna16::moveWeight(const WeightSpec &source, const WeightBuffers &from,
                          const WeightSpec &target, const WeightBuffers &to,
                          ExpertRange range, Window window) {
  Result<WeightMove> move =
      WeightMove::plan(source, from, target, to, range, window);
  if (!move)
    return move.takeFailure();
  for (int64_t step = 0; step < move->steps(); ++step)
    if (Failure bad = move->moveSides(step))
      return bad;
  for (int64_t step = 0; step < move->steps(); ++step)
    if (Failure bad = move->moveCodes(step))
      return bad;
  return ok();
}

Failure wna16::moveBias(const WeightSpec &source, const void *from,
                        const WeightSpec &target, void *to, ScalarType type,
                        Window window) {
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
  Result<Window> part = resolve(source, window);
  if (!part)
    return part.takeFailure();
  if (source.experts != target.experts || source.halves != target.halves ||
      target.output < part->outputs)
    return fail("expected a bias of equal experts and halves that does not "
                "shrink, got " +
                std::to_string(part->outputs) + " to " +
                std::to_string(target.output));
  int64_t size = sizeOf(type);
  auto *bytes = static_cast<uint8_t *>(to);
  const auto *original = static_cast<const uint8_t *>(from);
  for (int64_t e = 0; e < target.experts; ++e) {
    std::fill_n(bytes + e * target.rows() * size, target.rows() * size, 0);
    for (int64_t half = 0; half < source.halves; ++half)
      for (int64_t n = 0; n < part->outputs; ++n) {
        int64_t row = in->row(half * source.output + part->output + n);
        int64_t place = out->row(half * target.output + n);
        std::copy_n(original + (e * source.rows() + row) * size, size,
                    bytes + (e * target.rows() + place) * size);
      }
  }
  return ok();
}
