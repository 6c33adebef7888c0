//===- Arguments.h - What a caller hands over, checked ----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place where tensors and plans from outside are checked. Whatever
// passes is used without further tests.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_ARGUMENTS_H
#define WNA16_LIB_RUNTIME_ARGUMENTS_H

#include "Layout/WeightSpec.h"
#include "Runtime/wna16.h"

#include <initializer_list>

namespace wna16 {

/// A set of element types, one bit each.
using TypeSet = uint32_t;
constexpr TypeSet typeSet(ScalarType type) {
  return TypeSet(1) << static_cast<int>(type);
}
constexpr TypeSet kFloatTypes = typeSet(ScalarType::F16) |
                                typeSet(ScalarType::BF16) |
                                typeSet(ScalarType::F32);
constexpr TypeSet kF32 = typeSet(ScalarType::F32);
constexpr TypeSet kI32 = typeSet(ScalarType::I32);

/// A tensor that passed the checks; data is null when it is absent.
struct Tensor {
  void *data = nullptr;
  ScalarType type = ScalarType::F32;
  const int64_t *shape = nullptr;
  bool present = false;
};

/// Reads the tensors of a call one after the other. The first fault sets the
/// thread's status; from then on every tensor is absent, so that callers check
/// once, at the end.
class ArgumentReader {
public:
  /// `kernel` begins every message.
  ArgumentReader(const char *kernel, const wna16_tensor *tensors, int64_t count,
                 int64_t expected, int64_t device = 1);

  /// The next tensor, with extents as in `shape` (-1: any).
  Tensor take(const char *name, TypeSet types, const int64_t *shape, int rank);
  Tensor take(const char *name, TypeSet types,
              std::initializer_list<int64_t> shape) {
    return take(name, types, shape.begin(), static_cast<int>(shape.size()));
  }
  /// The same, or an absent tensor.
  Tensor takeOptional(const char *name, TypeSet types,
                      std::initializer_list<int64_t> shape);
  /// Refuses a tensor that is there, saying when it may not be.
  void takeAbsent(const char *name, const char *when);
  /// A dense weight [experts, rows, input]; one of one expert may come without
  /// that axis.
  Tensor takeDense(const char *name, ScalarType type, const WeightSpec &spec);
  /// The six tensors of a weight; those of one expert may come without that
  /// axis.
  WeightBuffers takeWeight(const char *name, const wna16_weight &weight);

  /// Whether everything has been in order so far.
  bool good() const { return isGood; }

private:
  /// As `take`; a leading 1 may be missing.
  Tensor takeMatrices(const char *name, TypeSet types, const int64_t *shape,
                      int rank);

  const char *kernel;
  const wna16_tensor *next;
  int64_t device; ///< DLPack's number of the device that all tensors lie on
  bool isGood;
};

/// Whether a call may go on: the thread's status is clear, there is a plan and
/// it is of a version that this library takes.
bool startCall(const char *kernel, const void *plan);

/// Reads a weight of a plan; false, with a status, when a field is out of its
/// range or the layout cannot hold the weight.
bool readWeight(const char *kernel, const char *name,
                const wna16_weight &weight, WeightSpec &spec);

/// Whether a value of a plan lies in [low, high]; sets the status when not.
bool checkRange(const char *kernel, const char *field, int64_t value,
                int64_t low, int64_t high);

/// Whether all `count` entries of an index tensor lie in [low, high).
bool checkIndices(const char *kernel, const char *name, const int32_t *values,
                  int64_t count, int64_t low, int64_t high);

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_ARGUMENTS_H
