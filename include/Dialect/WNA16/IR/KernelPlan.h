//===- KernelPlan.h - Plans as the C ABI wants them -------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table says, for each kind of runtime kernel, which fields a
// `wna16.kernel_plan` has and which tensors a call takes in which order. It is
// the IR's mirror of Runtime/wna16.h.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_DIALECT_KERNELPLAN_H
#define WNA16_DIALECT_KERNELPLAN_H

#include "Layout/Result.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace wna16 {

struct PlanKind {
  llvm::StringLiteral name;
  /// Fields of the plan's dictionary.
  std::vector<llvm::StringRef> fields;
  /// Tensors of a call in ABI order; a name that ends in '*' stands for the six
  /// parts of a weight, "w13.codes" and so on.
  std::vector<llvm::StringRef> roles;
  /// The role whose rows are the call's tokens, on which its workspace depends;
  /// empty: a kernel without workspace.
  llvm::StringLiteral tokens = "";

  /// The axis of these rows: of one expert when batched.
  static int64_t tokenAxis(mlir::DictionaryAttr fields) {
    return fields.get("batched") ? 1 : 0;
  }
};

/// Null when there is no such kind.
const PlanKind *findPlanKind(llvm::StringRef name);

/// All kinds, for messages.
std::string planKindNames();

/// The roles of a kind in ABI order, weights expanded to their six parts.
std::vector<std::string> getAbiRoles(const PlanKind &kind);

/// Checks the fields and, where `words` is given, writes the plan struct of
/// Runtime/wna16.h as the 8-byte words that it consists of.
Failure buildPlan(llvm::StringRef kind, mlir::DictionaryAttr fields,
                  llvm::SmallVectorImpl<int64_t> *words);

} // namespace wna16

#endif // WNA16_DIALECT_KERNELPLAN_H
