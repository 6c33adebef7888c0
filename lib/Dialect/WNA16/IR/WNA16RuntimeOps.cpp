//===- WNA16RuntimeOps.cpp - The contact with the runtime -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/KernelPlan.h"
#include "Dialect/WNA16/IR/WNA16.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace wna16;

static ParseResult parseKeyword(OpAsmParser &parser, StringAttr &keyword) {
  StringRef text;
  if (parser.parseKeyword(&text))
    return failure();
  keyword = parser.getBuilder().getStringAttr(text);
  return success();
}

static void printKeyword(OpAsmPrinter &printer, KernelPlanOp,
                         StringAttr keyword) {
  printer << keyword.getValue();
}

LogicalResult KernelPlanOp::verify() {
  const PlanKind *kind = findPlanKind(getKind());
  if (!kind)
    return emitOpError() << "(C1) expected a plan kind (" << planKindNames()
                         << "), got '" << getKind() << "'";
  for (NamedAttribute field : getFields())
    if (!llvm::is_contained(kind->fields, field.getName().getValue()))
      return emitOpError() << "(C2) expected fields of " << getKind()
                           << ", got '" << field.getName().getValue() << "'";
  if (Failure why = buildPlan(getKind(), getFields(), nullptr))
    return emitOpError() << "(C2) " << why.message;
  return success();
}

//===----------------------------------------------------------------------===//
// KernelRunOp
//===----------------------------------------------------------------------===//

LogicalResult KernelRunOp::verify() {
  size_t operands = getInputs().size() + getOutputs().size();
  if (getRoles().size() != operands)
    return emitOpError() << "(C1) expected one role for each of " << operands
                         << " operands, got " << getRoles().size();
  llvm::StringSet<> seen;
  for (Attribute role : getRoles())
    if (!seen.insert(cast<StringAttr>(role).getValue()).second)
      return emitOpError() << "(C2) expected distinct roles, got " << role
                           << " twice";
  SmallVector<Type> tensors;
  for (Value output : getOutputs())
    if (isa<RankedTensorType>(output.getType()))
      tensors.push_back(output.getType());
  if (TypeRange(tensors) != getResultTypes())
    return emitOpError() << "(C3) expected results of the types of the tensor "
                            "outs ("
                         << tensors << "), got (" << getResultTypes() << ")";
  return success();
}

void KernelRunOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  auto add = [&](MutableOperandRange range, auto effect) {
    for (OpOperand &operand : range)
      if (isa<MemRefType>(operand.get().getType()))
        effects.emplace_back(effect, &operand,
                             SideEffects::DefaultResource::get());
  };
  add(getInputsMutable(), MemoryEffects::Read::get());
  add(getOutputsMutable(), MemoryEffects::Write::get());
  add(getWorkspaceMutable(), MemoryEffects::Read::get());
  add(getWorkspaceMutable(), MemoryEffects::Write::get());
}

bool KernelRunOp::bufferizesToMemoryRead(OpOperand &operand,
                                         const bufferization::AnalysisState &) {
  // Outs are written whole.
  return !isDpsInit(&operand);
}

bool KernelRunOp::bufferizesToMemoryWrite(
    OpOperand &operand, const bufferization::AnalysisState &) {
  return isDpsInit(&operand);
}

bufferization::AliasingValueList
KernelRunOp::getAliasingValues(OpOperand &operand,
                               const bufferization::AnalysisState &) {
  if (!isDpsInit(&operand))
    return {};
  return {
      {getTiedOpResult(&operand), bufferization::BufferRelation::Equivalent}};
}

LogicalResult
KernelRunOp::bufferize(RewriterBase &rewriter,
                       const bufferization::BufferizationOptions &options,
                       bufferization::BufferizationState &state) {
  auto buffers = [&](OperandRange values, SmallVectorImpl<Value> &result) {
    for (Value value : values) {
      if (!isa<TensorType>(value.getType())) {
        result.push_back(value);
        continue;
      }
      FailureOr<Value> buffer =
          bufferization::getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      result.push_back(*buffer);
    }
    return success();
  };
  SmallVector<Value> inputs, outputs;
  if (failed(buffers(getInputs(), inputs)) ||
      failed(buffers(getOutputs(), outputs)))
    return failure();
  KernelRunOp::create(rewriter, getLoc(), TypeRange(), getPlan(), inputs,
                      outputs, getWorkspace(), getStream(), getRoles());
  bufferization::replaceOpWithBufferizedValues(rewriter, *this, outputs);
  return success();
}

#define GET_OP_CLASSES
#include "Dialect/WNA16/IR/WNA16RuntimeOps.cpp.inc"

void WNA16Dialect::registerRuntimeOps() {
  addOperations<
#define GET_OP_LIST
#include "Dialect/WNA16/IR/WNA16RuntimeOps.cpp.inc"
      >();
}
