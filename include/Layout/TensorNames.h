//===- TensorNames.h - Which file tensors make up a tensor ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checkpoints store a weight as one tensor for each expert and projection. A
// pattern names them all: in "experts.{expert}.{gate_proj,up_proj}.qweight",
// "{expert}" stands for 0 .. E-1 and "{a,b}" for tensors that are joined.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_TENSORNAMES_H
#define WNA16_LAYOUT_TENSORNAMES_H

#include "Layout/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wna16 {

/// What stands for the number of an expert.
inline constexpr std::string_view kExpertMark = "{expert}";

/// A parsed pattern: at most one "{expert}" and one list of alternatives.
class TensorNames {
public:
  /// Fails on an empty pattern, braces that do not pair or that nest, a second
  /// "{expert}" or list, and alternatives that are empty, equal or only one.
  static Result<TensorNames> parse(std::string_view pattern);

  bool isPerExpert() const { return perExpert; }

  /// How many tensors are joined; 0 without a list.
  size_t alternatives() const { return count; }

  /// One name; `alternative` is ignored without a list, `expert` without
  /// "{expert}".
  std::string name(int64_t expert, size_t alternative) const;

  /// The pattern of one alternative alone.
  std::string patternOf(size_t alternative) const;

private:
  std::string join(std::string_view expert, size_t alternative) const;

  /// In order: one string as it stands, several alternatives, or none: the
  /// number of the expert.
  std::vector<std::vector<std::string>> pieces;
  size_t count = 0;
  bool perExpert = false;
};

} // namespace wna16

#endif // WNA16_LAYOUT_TENSORNAMES_H
