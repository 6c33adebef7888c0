//===- Names.h - Attributes and functions the passes agree on ---*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_NAMES_H
#define WNA16_TRANSFORMS_NAMES_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace wna16 {

/// Argument attributes: a file tensor, {pattern = "...", concat = 1}; a
/// prepared weight's name; the name of an input or output.
constexpr llvm::StringLiteral kParameterAttrName = "wna16.parameter";
constexpr llvm::StringLiteral kPreparedAttrName = "wna16.prepared";
constexpr llvm::StringLiteral kNameAttrName = "wna16.name";
/// On an argument that a function writes.
constexpr llvm::StringLiteral kOutputAttrName = "wna16.output";
/// On the functions that prepare weights.
constexpr llvm::StringLiteral kPrepareAttrName = "wna16.prepare";
constexpr llvm::StringLiteral kWritableAttrName = "bufferization.writable";

/// On a function with a workspace: the symbol of its size function; and there,
/// the extents that it takes, [[argument, axis], ...].
constexpr llvm::StringLiteral kWorkspaceAttrName = "wna16.workspace";
constexpr llvm::StringLiteral kExtentsAttrName = "wna16.extents";

/// The companion of a function: "prepare" of "forward", "prepare_3" of
/// "forward_3", "f_prepare" of "f".
inline std::string companionName(llvm::StringRef function,
                                 llvm::StringRef companion) {
  llvm::StringRef rest = function;
  if (rest.consume_front("forward"))
    return companion.str() + rest.str();
  return function.str() + "_" + companion.str();
}

} // namespace wna16

#endif // WNA16_TRANSFORMS_NAMES_H
