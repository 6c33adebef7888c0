//===- main.cpp - Another project that uses WNA16 -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses an encoded type with the dialect library, asks the runtime for its
// version and the checkpoint reader for a folder that is not there.
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Checkpoint.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Runtime/wna16.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

int main() {
  mlir::MLIRContext context;
  context.loadDialect<wna16::WNA16Dialect>();
  mlir::Type type =
      mlir::parseType("tensor<8x256x2x128xbf16, "
                      "#wna16.packed<u4b8, group = 128, layout = gptq>>",
                      &context);
  if (!type)
    return 1;
  llvm::outs() << "type: " << type << "\n"
               << "runtime ABI: " << wna16_abi_version()
               << ", built against: " << WNA16_ABI_VERSION << "\n";
  auto checkpoint = wna16::Checkpoint::open("absent-folder");
  llvm::outs() << "checkpoint: " << checkpoint.message() << "\n";
  return 0;
}
