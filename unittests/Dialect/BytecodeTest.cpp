//===- BytecodeTest.cpp - Damaged bytecode --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file may end early, or what the dialect wrote may be damaged. Reading it
// gives a module that verifies or an error, and never ends the process.
//
//===----------------------------------------------------------------------===//

#include "Transforms/RegisterAll.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {

class Bytecode : public testing::Test {
protected:
  void SetUp() override {
    auto file = llvm::MemoryBuffer::getFile(WNA16_BYTECODE_INPUT);
    ASSERT_TRUE(file);
    good = (*file)->getBuffer().str();
    DialectRegistry registry;
    wna16::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
  }

  /// Whether `bytes` are a module; says so when neither that nor an error.
  bool reads(const std::string &bytes) {
    errors = 0;
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(bytes, ParserConfig(&context));
    if (module) {
      EXPECT_TRUE(succeeded(verify(*module)));
      return true;
    }
    EXPECT_GT(errors, 0);
    return false;
  }

  MLIRContext context;
  std::string good;
  int errors = 0;
};

TEST_F(Bytecode, IsRead) { EXPECT_TRUE(reads(good)); }

TEST_F(Bytecode, EndsEarly) {
  // The first bytes alone say that it is bytecode.
  for (size_t size = 4; size < good.size(); ++size)
    EXPECT_FALSE(reads(good.substr(0, size))) << size;
}

/// What the dialect reads itself is the text of its attributes and types; other
/// bytes are MLIR's, whose reader trusts some of them.
TEST_F(Bytecode, AttributesAreDamaged) {
  int texts = 0, refused = 0;
  for (const char *name : {"packed<", "target<", "bias<"})
    for (size_t begin = good.find(name); begin != std::string::npos;
         begin = good.find(name, begin + 1)) {
      size_t end = good.find('>', begin) + 1;
      ASSERT_NE(end, 0u);
      ++texts;
      for (size_t bit = 8 * begin; bit < 8 * end; ++bit) {
        std::string bad = good;
        bad[bit / 8] ^= 1 << bit % 8;
        SCOPED_TRACE(bit);
        refused += !reads(bad);
      }
    }
  EXPECT_GT(texts, 2);
  EXPECT_GT(refused, 100);
}

} // namespace
