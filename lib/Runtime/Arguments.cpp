//===- Arguments.cpp - What a caller hands over, checked ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "Layout/Catalogue.h"
#include "Runtime/DType.h"
#include "Status.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

using namespace wna16;

namespace {

constexpr int kMaxRank = 8;

/// The element type that DLPack's description stands for.
std::optional<ScalarType> findScalarType(const wna16_dtype &dtype) {
  for (int64_t i = 0; i < kNumScalarTypes; ++i)
    if (kDTypes[i].code == dtype.code && kDTypes[i].bits == dtype.bits &&
        kDTypes[i].lanes == dtype.lanes)
      return static_cast<ScalarType>(i);
  return std::nullopt;
}

/// A text of fixed size, for messages.
struct Text {
  char chars[160] = "";
  size_t size = 0;

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int added =
        std::vsnprintf(chars + size, sizeof chars - size, format, arguments);
    va_end(arguments);
    if (added > 0)
      size = std::min(size + static_cast<size_t>(added), sizeof chars - 1);
  }
};

Text describeShape(const int64_t *shape, int rank) {
  Text text;
  text.add("[");
  for (int i = 0; i < rank; ++i) {
    text.add("%s", i ? ", " : "");
    if (shape[i] < 0)
      text.add("?");
    else
      text.add("%" PRId64, shape[i]);
  }
  text.add("]");
  return text;
}

Text describeTypes(TypeSet types) {
  Text text;
  for (int64_t i = 0; i < kNumScalarTypes; ++i) {
    auto type = static_cast<ScalarType>(i);
    if (types & typeSet(type))
      text.add("%s%s", text.size ? " or " : "", name(type).data());
  }
  return text;
}

bool hasShape(const wna16_tensor &tensor, const int64_t *shape, int rank) {
  if (tensor.ndim != rank || (rank > 0 && !tensor.shape))
    return false;
  for (int i = 0; i < rank; ++i)
    if (tensor.shape[i] < 0 || (shape[i] >= 0 && tensor.shape[i] != shape[i]))
      return false;
  return true;
}

/// Bytes of a tensor, -1 when they overflow.
int64_t byteCount(const wna16_tensor &tensor, ScalarType type) {
  int64_t bytes = sizeOf(type);
  bool overflow = false;
  bool empty = false;
  for (int i = 0; i < tensor.ndim; ++i) {
    empty |= tensor.shape[i] == 0;
    overflow |= __builtin_mul_overflow(bytes, tensor.shape[i], &bytes);
  }
  return empty ? 0 : overflow ? -1 : bytes;
}

bool isRowMajor(const wna16_tensor &tensor) {
  if (!tensor.strides)
    return true;
  int64_t stride = 1;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != stride)
      return false;
    stride *= tensor.shape[i];
  }
  return true;
}

} // namespace

ArgumentReader::ArgumentReader(const char *kernel, const wna16_tensor *tensors,
                               int64_t count, int64_t expected, int64_t device)
    : kernel(kernel), next(tensors), device(device),
      isGood(count == expected && tensors) {
  if (count != expected)
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %" PRId64 " tensors, got %" PRId64, kernel,
              expected, count);
  else if (!tensors)
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %" PRId64 " tensors, got NULL", kernel, expected);
}

static bool isAbsent(const wna16_tensor &tensor) {
  return !tensor.data && tensor.ndim == 0;
}

/// The first thing wrong with a tensor whose type and shape are right.
static const char *findFault(const wna16_tensor &tensor, ScalarType type) {
  int64_t bytes = byteCount(tensor, type);
  if (bytes < 0)
    return "is larger than 2^63 bytes";
  if (bytes == 0)
    return nullptr;
  if (!isRowMajor(tensor))
    return "has to be contiguous in row-major order";
  if (!tensor.data)
    return "has no data";
  auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  if (address % static_cast<uintptr_t>(sizeOf(type)) != 0)
    return "is not aligned to its element size";
  return nullptr;
}

Tensor ArgumentReader::take(const char *name, TypeSet types,
                            const int64_t *shape, int rank) {
  if (!isGood)
    return {};
  const wna16_tensor &tensor = *next++;
  isGood = false;
  if (isAbsent(tensor)) {
    setStatus(WNA16_INVALID_ARGUMENT, "%s: %s is missing", kernel, name);
    return {};
  }
  if (tensor.device.device_type != device) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %s on device type %d (1 is the cpu), got device "
              "type %d",
              kernel, name, static_cast<int>(device),
              static_cast<int>(tensor.device.device_type));
    return {};
  }
  std::optional<ScalarType> type = findScalarType(tensor.dtype);
  if (!type || !(types & typeSet(*type))) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %s of type %s, got %s (code %d, %d bits, %d lanes)",
              kernel, name, describeTypes(types).chars,
              type ? wna16::name(*type).data() : "an unknown type",
              tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
    return {};
  }
  if (!hasShape(tensor, shape, rank)) {
    int shown = tensor.shape ? std::clamp(tensor.ndim, 0, kMaxRank) : 0;
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %s of shape %s, got rank %d, %s", kernel, name,
              describeShape(shape, rank).chars, static_cast<int>(tensor.ndim),
              describeShape(tensor.shape, shown).chars);
    return {};
  }
  if (const char *fault = findFault(tensor, *type)) {
    setStatus(WNA16_INVALID_ARGUMENT, "%s: %s %s", kernel, name, fault);
    return {};
  }
  isGood = true;
  char *data = static_cast<char *>(tensor.data);
  return {data ? data + tensor.byte_offset : nullptr, *type, tensor.shape,
          true};
}

Tensor ArgumentReader::takeOptional(const char *name, TypeSet types,
                                    std::initializer_list<int64_t> shape) {
  if (!isGood || !isAbsent(*next))
    return take(name, types, shape);
  ++next;
  return {};
}

void ArgumentReader::takeAbsent(const char *name, const char *when) {
  if (!isGood)
    return;
  isGood = isAbsent(*next++);
  if (!isGood)
    setStatus(WNA16_INVALID_ARGUMENT, "%s: expected no %s %s", kernel, name,
              when);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

namespace {

struct FieldRange {
  const char *field;
  int64_t wna16_weight::*member;
  int64_t low;
  int64_t high;
};
constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();
constexpr FieldRange kWeightFields[] = {
    {"code", &wna16_weight::code, 0, static_cast<int64_t>(CodeType::U4FP8)},
    {"element", &wna16_weight::element, 0,
     static_cast<int64_t>(ScalarType::F32)},
    {"scale", &wna16_weight::scale, 0, kNumScalarTypes - 1},
    {"zeros", &wna16_weight::zeros, 0,
     static_cast<int64_t>(ZeroPoints::MinusOne)},
    {"act_order", &wna16_weight::act_order, 0,
     static_cast<int64_t>(ActOrder::Sorted)},
    {"experts", &wna16_weight::experts, 1, kMaxExtent},
    {"input", &wna16_weight::input, 1, kMaxExtent},
    {"halves", &wna16_weight::halves, 1, 2},
    {"output", &wna16_weight::output, 1, kMaxExtent},
    {"group", &wna16_weight::group, -1, kMaxExtent},
    {"kept_groups", &wna16_weight::kept_groups, 0, kMaxExtent},
};

WeightSpec makeSpec(const wna16_weight &weight, const LayoutEntry *layout) {
  WeightSpec spec;
  spec.code = static_cast<CodeType>(weight.code);
  spec.element = static_cast<ScalarType>(weight.element);
  spec.layout = layout;
  spec.experts = weight.experts;
  spec.input = weight.input;
  spec.halves = weight.halves;
  spec.output = weight.output;
  if (spec.code == CodeType::Dense) // without what the fields below stand for
    return spec;
  spec.scale = static_cast<ScalarType>(weight.scale);
  spec.zeros = static_cast<ZeroPoints>(weight.zeros);
  spec.actOrder = static_cast<ActOrder>(weight.act_order);
  spec.group = weight.group;
  spec.keptGroups = weight.kept_groups;
  return spec;
}

bool checkFields(const char *kernel, const char *name,
                 const wna16_weight &weight) {
  for (const FieldRange &range : kWeightFields) {
    const int64_t value = weight.*range.member;
    // Names are put together for messages alone: that takes longer than checks.
    if (range.low <= value && value <= range.high)
      continue;
    char field[48];
    std::snprintf(field, sizeof field, "%s.%s", name, range.field);
    return checkRange(kernel, field, value, range.low, range.high);
  }
  if (weight.group == 0)
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected %s.group to be -1 or positive, got 0", kernel,
              name);
  return weight.group != 0;
}

} // namespace

/// Reads a weight of a plan and the shapes of its tensors.
static bool readStorage(const char *kernel, const char *name,
                        const wna16_weight &weight, WeightSpec &spec,
                        PartShapes &parts) {
  if (!checkFields(kernel, name, weight))
    return false;
  const LayoutEntry *layout = findLayout(weight.layout);
  if (!layout) {
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: %s.layout %" PRId64 " is not in the catalogue", kernel, name,
              weight.layout);
    return false;
  }
  spec = makeSpec(weight, layout);
  Result<PartShapes> found = partShapesOf(spec);
  if (!found) {
    setStatus(WNA16_INVALID_ARGUMENT, "%s: %s: %s", kernel, name,
              found.message().c_str());
    return false;
  }
  parts = *found;
  return true;
}

bool wna16::readWeight(const char *kernel, const char *name,
                       const wna16_weight &weight, WeightSpec &spec) {
  PartShapes parts;
  return readStorage(kernel, name, weight, spec, parts);
}

/// Bytes are bytes: compiled code does not tell signed from unsigned ones.
static TypeSet storedAs(ScalarType type) {
  if (type == ScalarType::I8 || type == ScalarType::U8)
    return typeSet(ScalarType::I8) | typeSet(ScalarType::U8);
  return typeSet(type);
}

Tensor ArgumentReader::takeMatrices(const char *name, TypeSet types,
                                    const int64_t *shape, int rank) {
  const bool matrix = isGood && shape[0] == 1 && next->ndim == rank - 1;
  return take(name, types, shape + matrix, rank - matrix);
}

Tensor ArgumentReader::takeDense(const char *name, ScalarType type,
                                 const WeightSpec &spec) {
  const int64_t shape[] = {spec.experts, spec.rows(), spec.input};
  return takeMatrices(name, typeSet(type), shape, 3);
}

WeightBuffers ArgumentReader::takeWeight(const char *name,
                                         const wna16_weight &weight) {
  if (!isGood)
    return {};
  WeightSpec spec;
  PartShapes parts;
  isGood = readStorage(kernel, name, weight, spec, parts);
  const PartShape *part = parts.begin();
  WeightBuffers buffers;
  for (int i = 0; i < kNumParts && isGood; ++i) {
    char full[64];
    std::snprintf(full, sizeof full, "%s %s", name,
                  wna16::name(static_cast<Part>(i)).data());
    if (part == parts.end() || static_cast<int>(part->part) != i) {
      takeAbsent(full, "for this weight");
      continue;
    }
    buffers.part[i] =
        takeMatrices(full, storedAs(part->type), part->shape.data(),
                     static_cast<int>(part->shape.size()))
            .data;
    ++part;
  }
  return buffers;
}

//===----------------------------------------------------------------------===//
// Plans and values
//===----------------------------------------------------------------------===//

bool wna16::startCall(const char *kernel, const void *plan) {
  if (wna16_status_get() != WNA16_OK)
    return false;
  if (!plan) {
    setStatus(WNA16_INVALID_ARGUMENT, "%s: the plan is missing", kernel);
    return false;
  }
  int64_t version;
  std::memcpy(&version, plan, sizeof version);
  if (version >= WNA16_ABI_OLDEST && version <= WNA16_ABI_VERSION)
    return true;
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected a plan of version %d to %d, got %" PRId64, kernel,
            WNA16_ABI_OLDEST, WNA16_ABI_VERSION, version);
  return false;
}

bool wna16::checkRange(const char *kernel, const char *field, int64_t value,
                       int64_t low, int64_t high) {
  if (low <= value && value <= high)
    return true;
  setStatus(WNA16_INVALID_ARGUMENT,
            "%s: expected %s from %" PRId64 " to %" PRId64 ", got %" PRId64,
            kernel, field, low, high, value);
  return false;
}

bool wna16::checkIndices(const char *kernel, const char *name,
                         const int32_t *values, int64_t count, int64_t low,
                         int64_t high) {
  for (int64_t i = 0; i < count; ++i) {
    if (low <= values[i] && values[i] < high)
      continue;
    setStatus(WNA16_OUT_OF_RANGE,
              "%s: expected values from %" PRId64 " to %" PRId64
              " in %s, got %d at position %" PRId64,
              kernel, low, high - 1, name, static_cast<int>(values[i]), i);
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The checks that compiled code calls
//===----------------------------------------------------------------------===//

static constexpr int64_t kMaxSymbols = 128;

/// Extents below -1 are symbols: one symbol is one number.
static bool bindExtents(const char *kernel, const char *name,
                        const int64_t *entry, const wna16_tensor &tensor,
                        int64_t *known) {
  for (int axis = 0; axis < entry[1]; ++axis) {
    int64_t symbol = -2 - entry[2 + axis];
    if (symbol < 0)
      continue;
    if (!checkRange(kernel, "a signature's symbol", symbol, 0, kMaxSymbols - 1))
      return false;
    int64_t &value = known[symbol];
    if (value < 0)
      value = tensor.shape[axis];
    if (value == tensor.shape[axis])
      continue;
    setStatus(WNA16_INVALID_ARGUMENT,
              "%s: expected axis %d of %s to be %" PRId64
              " as in the tensors before, got %" PRId64,
              kernel, axis, name, value, tensor.shape[axis]);
    return false;
  }
  return true;
}

wna16_status wna16_check_arguments(const int64_t *signature,
                                   const wna16_tensor *tensors, int64_t count) {
  constexpr const char *kCheck = "arguments";
  wna16_status_clear();
  if (!signature)
    return setStatus(WNA16_INVALID_ARGUMENT, "%s: the signature is missing",
                     kCheck);
  const int64_t expected = signature[1];
  ArgumentReader reader(kCheck, tensors, count, expected, signature[0]);
  const int64_t *entry = signature + 2;
  int64_t known[kMaxSymbols];
  std::fill_n(known, kMaxSymbols, -1);
  for (int64_t i = 0; i < expected && reader.good(); ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "argument %" PRId64, i);
    if (!checkRange(kCheck, "a signature's type", entry[0], 0,
                    kNumScalarTypes - 1) ||
        !checkRange(kCheck, "a signature's rank", entry[1], 0, kMaxRank))
      break;
    reader.take(name, storedAs(static_cast<ScalarType>(entry[0])), entry + 2,
                static_cast<int>(entry[1]));
    if (!reader.good() || !bindExtents(kCheck, name, entry, tensors[i], known))
      break;
    entry += 2 + entry[1];
  }
  return wna16_status_get();
}

wna16_status wna16_check_workspace(int64_t needed, const void *workspace,
                                   int64_t workspace_bytes) {
  if (wna16_status_get() != WNA16_OK)
    return wna16_status_get();
  if (workspace_bytes < needed || (needed > 0 && !workspace))
    return setStatus(WNA16_WORKSPACE,
                     "expected a workspace of %" PRId64 " bytes, got %" PRId64,
                     needed, workspace ? workspace_bytes : 0);
  if (needed > 0 && reinterpret_cast<uintptr_t>(workspace) % 64 != 0)
    return setStatus(WNA16_WORKSPACE,
                     "expected the workspace to be aligned to 64 bytes");
  return WNA16_OK;
}
