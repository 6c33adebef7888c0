//===- Target.cpp - The target of a module --------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/Target.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace wna16;

/// The first `wna16.target` entry among the devices of a system.
static TargetAttr findInSystem(TargetSystemSpecInterface system) {
  if (!system)
    return {};
  for (DataLayoutEntryInterface device : system.getEntries()) {
    auto spec = dyn_cast<TargetDeviceSpecInterface>(device.getValue());
    if (!spec)
      continue;
    for (DataLayoutEntryInterface entry : spec.getEntries()) {
      auto key = dyn_cast<StringAttr>(entry.getKey());
      if (key && key.getValue() == kTargetAttrName)
        if (auto target = dyn_cast<TargetAttr>(entry.getValue()))
          return target;
    }
  }
  return {};
}

TargetAttr wna16::getTarget(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module) {
    if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName))
      return target;
    if (TargetAttr target =
            findInSystem(dyn_cast_or_null<TargetSystemSpecInterface>(
                module->getAttr(DLTIDialect::kTargetSystemDescAttrName))))
      return target;
  }
  op->emitError() << "expected a target: the option target=cpu, target=cuda:"
                     "sm_90 or target=xpu, the module attribute "
                  << kTargetAttrName << ", or that entry of a dlti device";
  return {};
}
