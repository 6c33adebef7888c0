//===- Disassembly.cpp - Encoded tensors as their parts -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transforms/Disassembly.h"

#include "Dialect/WNA16/IR/WNA16.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace wna16;

DisassemblyConverter::DisassemblyConverter() {
  addConversion([](Type type) { return type; });
  addConversion(
      [](RankedTensorType type,
         SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        if (!isEncoded(type))
          return std::nullopt;
        llvm::append_range(types, getStorageTypes(type));
        return success(!types.empty());
      });
  addSourceMaterialization([](OpBuilder &builder, RankedTensorType type,
                              ValueRange parts, Location loc) -> Value {
    if (!isEncoded(type))
      return {};
    return AssembleOp::create(builder, loc, type, parts);
  });
  addTargetMaterialization([](OpBuilder &builder, TypeRange, ValueRange sources,
                              Location loc) -> SmallVector<Value> {
    if (sources.size() != 1 || !isEncoded(sources.front().getType()))
      return {};
    return DisassembleOp::create(builder, loc, sources.front()).getParts();
  });
}

namespace {

struct ConvertAssemble : OpConversionPattern<AssembleOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(AssembleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(
        op, {llvm::to_vector(
                llvm::map_range(adaptor.getParts(), [](ValueRange part) {
                  return part.front();
                }))});
    return success();
  }
};

struct ConvertDisassemble : OpConversionPattern<DisassembleOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(DisassembleOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

struct ConvertEmpty : OpConversionPattern<tensor::EmptyOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(tensor::EmptyOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (RankedTensorType part : getStorageTypes(op.getType()))
      parts.push_back(tensor::EmptyOp::create(
          rewriter, op.getLoc(), part.getShape(), part.getElementType()));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// The extents of an encoded tensor are static. Nothing else makes such an
/// operation legal, so that its pattern may say why it stays.
struct ConvertDim : OpConversionPattern<tensor::DimOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(tensor::DimOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> index = op.getConstantIndex();
    auto type = cast<RankedTensorType>(op.getSource().getType());
    if (!index || *index < 0 || *index >= type.getRank())
      return op.emitOpError()
             << "expected a constant axis of the encoded tensor, below "
             << type.getRank();
    rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(
        op, type.getDimSize(*index));
    return success();
  }
};

struct ConvertSelect : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (auto [left, right] :
         llvm::zip(adaptor.getTrueValue(), adaptor.getFalseValue()))
      parts.push_back(arith::SelectOp::create(
          rewriter, op.getLoc(), adaptor.getCondition().front(), left, right));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};

/// The branches of cf hand encoded tensors to block arguments.
struct ConvertBranch : OpConversionPattern<cf::BranchOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(cf::BranchOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands;
    for (ValueRange values : adaptor.getDestOperands())
      llvm::append_range(operands, values);
    rewriter.replaceOpWithNewOp<cf::BranchOp>(op, op.getDest(), operands);
    return success();
  }
};

struct ConvertCondBranch : OpConversionPattern<cf::CondBranchOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(cf::CondBranchOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto flatten = [](ArrayRef<ValueRange> ranges) {
      SmallVector<Value> values;
      for (ValueRange range : ranges)
        llvm::append_range(values, range);
      return values;
    };
    rewriter.replaceOpWithNewOp<cf::CondBranchOp>(
        op, adaptor.getCondition().front(), op.getTrueDest(),
        flatten(adaptor.getTrueDestOperands()), op.getFalseDest(),
        flatten(adaptor.getFalseDestOperands()));
    return success();
  }
};

/// Successor blocks get the parts as arguments.
static LogicalResult convertBlocks(func::FuncOp function,
                                   const TypeConverter &converter,
                                   ConversionPatternRewriter &rewriter) {
  if (function.isExternal())
    return success();
  return rewriter.convertRegionTypes(&function.getBody(), converter);
}

/// Functions on parts; the attributes of an encoded argument or result go to
/// each of its parts, a `wna16.prepared` name with ".part" appended.
struct ConvertFunction : OpConversionPattern<func::FuncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(func::FuncOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FunctionType type = op.getFunctionType();
    TypeConverter::SignatureConversion signature(type.getNumInputs());
    SmallVector<Type> results;
    if (failed(getTypeConverter()->convertSignatureArgs(type.getInputs(),
                                                        signature)) ||
        failed(getTypeConverter()->convertTypes(type.getResults(), results)) ||
        failed(convertBlocks(op, *getTypeConverter(), rewriter)))
      return rewriter.notifyMatchFailure(op, "cannot convert the signature");
    SmallVector<DictionaryAttr> argAttrs, resultAttrs;
    for (auto [i, input] : llvm::enumerate(type.getInputs()))
      appendAttrs(input, op.getArgAttrDict(i), argAttrs);
    for (auto [i, result] : llvm::enumerate(type.getResults()))
      appendAttrs(result, op.getResultAttrDict(i), resultAttrs);
    rewriter.modifyOpInPlace(op, [&] {
      op.setType(
          rewriter.getFunctionType(signature.getConvertedTypes(), results));
      op.setAllArgAttrs(argAttrs);
      op.setAllResultAttrs(resultAttrs);
    });
    return success();
  }

private:
  static void appendAttrs(Type type, DictionaryAttr attrs,
                          SmallVectorImpl<DictionaryAttr> &list) {
    attrs = attrs ? attrs : DictionaryAttr::get(type.getContext());
    if (!isEncoded(type)) {
      list.push_back(attrs);
      return;
    }
    auto prepared = attrs.getAs<StringAttr>("wna16.prepared");
    for (StringRef part : getPartNames(cast<RankedTensorType>(type))) {
      NamedAttrList partAttrs(attrs);
      if (prepared)
        partAttrs.set("wna16.prepared",
                      StringAttr::get(type.getContext(),
                                      prepared.getValue() + "." + part));
      list.push_back(partAttrs.getDictionary(type.getContext()));
    }
  }
};

} // namespace

/// Whether nothing encoded goes in or out of an operation.
static bool isFreeOfEncodings(Operation *op) {
  return llvm::none_of(op->getOperandTypes(), isEncoded) &&
         llvm::none_of(op->getResultTypes(), isEncoded);
}

void wna16::populateDisassemblyPatterns(const DisassemblyConverter &converter,
                                        RewritePatternSet &patterns,
                                        ConversionTarget &target) {
  MLIRContext *context = patterns.getContext();
  patterns
      .add<ConvertAssemble, ConvertDisassemble, ConvertEmpty, ConvertDim,
           ConvertSelect, ConvertBranch, ConvertCondBranch, ConvertFunction>(
          converter, context);
  populateCallOpTypeConversionPattern(patterns, converter);
  populateReturnOpTypeConversionPattern(patterns, converter);
  scf::populateSCFStructuralTypeConversions(converter, patterns);

  target.markUnknownOpDynamicallyLegal(isFreeOfEncodings);
  target.addIllegalOp<AssembleOp, DisassembleOp>();
  target.addDynamicallyLegalOp<func::FuncOp>([](func::FuncOp op) {
    return llvm::none_of(op.getArgumentTypes(), isEncoded) &&
           llvm::none_of(op.getResultTypes(), isEncoded) &&
           llvm::all_of(op.getBody(), [](Block &block) {
             return llvm::none_of(block.getArgumentTypes(), isEncoded);
           });
  });
  target.addDynamicallyLegalDialect<scf::SCFDialect>([](Operation *op) {
    return isFreeOfEncodings(op) &&
           llvm::all_of(op->getRegions(), [](Region &region) {
             return llvm::all_of(region, [](Block &block) {
               return llvm::none_of(block.getArgumentTypes(), isEncoded);
             });
           });
  });
}
