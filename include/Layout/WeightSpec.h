//===- WeightSpec.h - What one experts weight is and how it is stored -----===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// WeightSpec is the one description of an experts weight that the dialect's
// encodings, the backends, the checkpoint reader and the runtime share:
// logical extents, code type, groups, zero points and layout. From it follow
// the tensors that hold the weight (`storageOf`); no shape is written twice.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_WEIGHTSPEC_H
#define WNA16_LAYOUT_WEIGHTSPEC_H

#include "Layout/InlineVector.h"
#include "Layout/Result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wna16 {

struct LayoutEntry;

/// Element types of storage tensors. The values are part of the runtime ABI.
enum class ScalarType : int64_t {
  F16 = 0,
  BF16 = 1,
  F32 = 2,
  F64 = 3,
  I8 = 4,
  U8 = 5,
  I16 = 6,
  I32 = 7,
  I64 = 8,
  Bool = 9,
};

/// How a stored code turns into a number, before the scale: value = Q - z.
/// The values are part of the runtime ABI.
enum class CodeType : int64_t {
  Dense = 0,  ///< no code: elements of `WeightSpec::element`, no scale
  U4 = 1,     ///< 0..15, z from the zero-point tensor
  U4B8 = 2,   ///< 0..15, z = 8
  S4 = 3,     ///< two's complement -8..7, z = 0
  U8 = 4,     ///< 0..255, z from the zero-point tensor
  U8B128 = 5, ///< 0..255, z = 128
  S8 = 6,     ///< two's complement -128..127, z = 0
  /// 4-bit code rewritten for fp8 activations: v >= z ? v - z : 15 - v; z is 8
  /// or from the zero-point tensor. Its scales are stored times 512.
  U4FP8 = 7,
};

/// The zero point of unsigned codes Q where none is stored.
constexpr int impliedZero(CodeType code) {
  switch (code) {
  case CodeType::U4B8:
  case CodeType::S4:
  case CodeType::U4FP8:
    return 8;
  case CodeType::U8B128:
  case CodeType::S8:
    return 128;
  default:
    return 0;
  }
}

/// What scales are stored times, in their own type. Kernels put a code's bits
/// into an e4m3 number, whose smallest is 1 / 512; a power of two, so that
/// multiplying and dividing are exact.
constexpr float scaleFactor(CodeType code) {
  return code == CodeType::U4FP8 ? 512.0f : 1.0f;
}

/// What the zero-point tensor holds. The values are part of the runtime ABI.
enum class ZeroPoints : int64_t {
  None = 0,     ///< there is no tensor; z is implied by the code type
  Plain = 1,    ///< z
  MinusOne = 2, ///< z - 1 modulo 2^bits (GPTQ v1)
};

/// Whether input rows are grouped out of order. The values are part of the
/// runtime ABI.
enum class ActOrder : int64_t {
  None = 0,   ///< group of row k is k / group
  Index = 1,  ///< group of row k is g_idx[k]; rows in the model's order
  Sorted = 2, ///< rows sorted by group; row k came from perm[k]
};

/// The tensors that hold one weight, in the order in which they appear
/// wherever they are listed (operands, ABI, storageOf).
enum class Part : int64_t {
  Codes = 0,
  Scales = 1,
  Zeros = 2,
  GroupIndex = 3,  ///< ActOrder::Index: i32 [E, input], group of each row
  Permutation = 4, ///< ActOrder::Sorted: i32 [E, input], source row of each row
  GlobalScale = 5, ///< f32 [1], with int16 scales (8-bit activations)
};
constexpr int kNumParts = 6;

/// An experts weight. w13 has halves = 2 when gated (gate = half 0, up = half
/// 1) and 1 otherwise; w2 and every other linear has halves = 1.
struct WeightSpec {
  CodeType code = CodeType::Dense;
  /// Element type of dense weights, and the type dequantised values round to.
  ScalarType element = ScalarType::BF16;
  ScalarType scale = ScalarType::F16;
  ZeroPoints zeros = ZeroPoints::None;
  ActOrder actOrder = ActOrder::None;
  /// Input rows that share a scale; -1: all of them.
  int64_t group = -1;
  /// With ActOrder::Index, where there are more groups than the input fills: a
  /// shard of the inputs, whose rows may belong to any group of the whole. 0:
  /// those of the input.
  int64_t keptGroups = 0;
  const LayoutEntry *layout = nullptr;
  int64_t experts = 1;
  int64_t input = 0;
  int64_t halves = 1;
  int64_t output = 0; ///< outputs of one half

  /// Outputs of all halves: row r of the weight is half r / output.
  int64_t rows() const { return halves * output; }
  /// keptGroups, or ceil(input / group); 1 for channel scales and 0 for dense
  /// weights.
  int64_t groups() const;
  /// Bits of one code; for dense weights, of one element.
  int bits() const;

  bool operator==(const WeightSpec &other) const;
  bool operator!=(const WeightSpec &other) const { return !(*this == other); }
};

/// One tensor of a stored weight.
struct StoredPart {
  Part part;
  ScalarType type;
  std::vector<int64_t> shape; ///< leading extent: experts (GlobalScale: [1])

  int64_t elements() const;
  int64_t bytes() const;
};

/// The tensors that hold `spec`, in Part order. Fails, naming the rule and the
/// numbers, when the spec does not fit its layout (divisibility, bit width,
/// zero points or act-order that the layout cannot hold) or when a size
/// overflows 63 bits.
Result<std::vector<StoredPart>> storageOf(const WeightSpec &spec);

/// The same tensors, held in place: for code that may not allocate.
struct PartShape {
  Part part = Part::Codes;
  ScalarType type = ScalarType::F32;
  InlineVector<int64_t, 4> shape;

  int64_t elements() const;
  int64_t bytes() const;
};
using PartShapes = InlineVector<PartShape, kNumParts>;

/// What `storageOf` gives; allocates nothing unless it fails.
Result<PartShapes> partShapesOf(const WeightSpec &spec);

/// Storage addresses of one weight, indexed by Part; absent parts are null.
struct WeightBuffers {
  std::array<void *, kNumParts> part = {};

  template <typename T = void>
  T *get(Part p) const {
    return static_cast<T *>(part[static_cast<int64_t>(p)]);
  }
};

/// Bytes of one element.
int64_t sizeOf(ScalarType type);
/// Spellings used in IR, messages and JSON: "f16", "u4b8", "minus_one", ...
std::string_view name(ScalarType type);
std::string_view name(CodeType code);
std::string_view name(ZeroPoints zeros);
std::string_view name(ActOrder order);
std::string_view name(Part part);
std::optional<ScalarType> parseScalarType(std::string_view text);
std::optional<CodeType> parseCodeType(std::string_view text);

} // namespace wna16

#endif // WNA16_LAYOUT_WEIGHTSPEC_H
