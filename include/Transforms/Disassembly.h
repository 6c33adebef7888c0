//===- Disassembly.h - Encoded tensors as their parts -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 1:N conversion that `wna16-disassemble` and `wna16-emulate` share: an
// encoded tensor becomes its storage tensors wherever it may occur.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TRANSFORMS_DISASSEMBLY_H
#define WNA16_TRANSFORMS_DISASSEMBLY_H

#include "mlir/Transforms/DialectConversion.h"

namespace wna16 {

/// Encoded tensors to their storage tensors; all other types stay. Values that
/// cross the border of a partial conversion are assembled and disassembled.
class DisassemblyConverter : public mlir::TypeConverter {
public:
  DisassemblyConverter();
};

/// Patterns for functions, calls, returns, branches, scf, arith.select,
/// tensor.empty, tensor.dim, assemble and disassemble, with the legality that
/// goes with them.
void populateDisassemblyPatterns(const DisassemblyConverter &converter,
                                 mlir::RewritePatternSet &patterns,
                                 mlir::ConversionTarget &target);

} // namespace wna16

#endif // WNA16_TRANSFORMS_DISASSEMBLY_H
