//===- Result.h - A value or a message --------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the LLVM-free libraries report bad input: a message that names the
// thing, the numbers and what would work. Nothing here throws.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_RESULT_H
#define WNA16_LAYOUT_RESULT_H

#include <optional>
#include <string>
#include <utility>

namespace wna16 {

/// A failure with its message; the empty message is success.
struct [[nodiscard]] Failure {
  std::string message;

  /// True when something went wrong.
  explicit operator bool() const { return !message.empty(); }
};

/// Named so that they stay apart from MLIR's success() and failure().
inline Failure ok() { return {}; }
inline Failure fail(std::string message) { return {std::move(message)}; }

/// A value, or the failure that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Failure failure) : error(std::move(failure)) {}

  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  const std::string &message() const { return error.message; }
  /// The failure, to be handed on by a function that returns another Result.
  Failure takeFailure() { return std::move(error); }

private:
  std::optional<T> value;
  Failure error;
};

} // namespace wna16

#endif // WNA16_LAYOUT_RESULT_H
