//===- WNA16Dialect.cpp - The dialect -------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace wna16;

#include "Dialect/WNA16/IR/WNA16Dialect.cpp.inc"

namespace {

/// Bytecode carries the dialect's version, so that later readers can upgrade
/// what earlier writers wrote. Attributes and operations use the textual and
/// property encodings of MLIR, but for RouteOp, which has grown.
struct WNA16BytecodeInterface : BytecodeDialectInterface {
  explicit WNA16BytecodeInterface(Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    writer.writeVarInt(WNA16Dialect::kVersion);
  }

  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > WNA16Dialect::kVersion) {
      reader.emitError("expected wna16 bytecode of version at most ")
          << WNA16Dialect::kVersion << ", got " << number;
      return nullptr;
    }
    return std::make_unique<WNA16Dialect::Version>(number);
  }

  LogicalResult
  upgradeFromVersion(Operation *top,
                     const DialectVersion &version) const override {
    if (static_cast<const WNA16Dialect::Version &>(version).number < 2)
      top->walk([](RouteOp route) { route.upgradeOperands(); });
    return success();
  }
};

struct WNA16OpAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  /// Types with encodings are long; #gptq, #marlin, ... keep the IR readable.
  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto packed = dyn_cast<PackedAttr>(attr);
    if (!packed)
      return AliasResult::NoAlias;
    os << packed.getLayout()->name;
    return AliasResult::OverridableAlias;
  }
};

struct WNA16InlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool,
                       IRMapping &) const override {
    return true;
  }
};

} // namespace

void WNA16Dialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Dialect/WNA16/IR/WNA16Types.cpp.inc"
      >();
  registerAttributes();
  registerWeightOps();
  registerMoEOps();
  registerRuntimeOps();
  addInterfaces<WNA16BytecodeInterface, WNA16OpAsmInterface,
                WNA16InlinerInterface>();
}

#define GET_TYPEDEF_CLASSES
#include "Dialect/WNA16/IR/WNA16Types.cpp.inc"
