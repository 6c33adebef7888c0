//===- AttrNames.h - Discardable attributes of the dialect ------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the passes leave on modules, functions, arguments and results for each
// other. The dialect verifies them; DiscardableAttrs.cpp says what each holds.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_ATTRNAMES_H
#define WNA16_DIALECT_ATTRNAMES_H

#include "llvm/ADT/StringRef.h"

namespace wna16 {

/// On a module: its target.
constexpr llvm::StringLiteral kTargetAttrName = "wna16.target";
/// On an imported module: {model = "...", method = "...", source = "..."}, the
/// last the identity of the checkpoint's files.
constexpr llvm::StringLiteral kCheckpointAttrName = "wna16.checkpoint";
/// On a module that is left with its preparation alone: the target that the
/// weights are for.
constexpr llvm::StringLiteral kPreparedForAttrName = "wna16.prepared_for";
/// On a module that takes a share of the weights: {rank = 1, size = 4}.
constexpr llvm::StringLiteral kShareAttrName = "wna16.share";

/// On arguments: a file tensor, {pattern = "...", concat = 1}; a prepared
/// weight's name; the name of an input or output.
constexpr llvm::StringLiteral kParameterAttrName = "wna16.parameter";
constexpr llvm::StringLiteral kPreparedAttrName = "wna16.prepared";
constexpr llvm::StringLiteral kNameAttrName = "wna16.name";
/// On an argument that a function writes.
constexpr llvm::StringLiteral kOutputAttrName = "wna16.output";
/// What a prepared weight is in the program, as text: its tensor type.
constexpr llvm::StringLiteral kEncodingAttrName = "wna16.encoding";

/// On the functions that prepare weights: for which function; and for how many
/// experts one by one, of which they take and give one.
constexpr llvm::StringLiteral kPrepareAttrName = "wna16.prepare";
constexpr llvm::StringLiteral kExpertsAttrName = "wna16.experts";
/// On a function with prepared weights: the backends that they are for.
constexpr llvm::StringLiteral kBackendsAttrName = "wna16.backends";
/// On a function with a workspace: the symbol of its size function; and there,
/// the extents that it takes, [[argument, axis], ...].
constexpr llvm::StringLiteral kWorkspaceAttrName = "wna16.workspace";
constexpr llvm::StringLiteral kExtentsAttrName = "wna16.extents";

} // namespace wna16

#endif // WNA16_DIALECT_ATTRNAMES_H
