//===- Names.h - Attributes and functions the passes agree on ---*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_NAMES_H
#define WNA16_TRANSFORMS_NAMES_H

#include "Dialect/WNA16/IR/AttrNames.h"

#include <string>

namespace wna16 {

constexpr llvm::StringLiteral kWritableAttrName = "bufferization.writable";

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
