//===- PlanWorkspace.cpp - Temporary buffers in one workspace -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "Dialect/WNA16/IR/KernelPlan.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Transforms/Names.h"
#include "Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace wna16 {
#define GEN_PASS_DEF_PLANWORKSPACE
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

constexpr int64_t kAlignment = 64;

/// An extent of a function argument.
using Extent = std::pair<unsigned, int64_t>;

/// The bytes that the static extents of a buffer stand for; nothing when they
/// do not fit 63 bits.
std::optional<int64_t> staticBytes(MemRefType type) {
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent) &&
        llvm::MulOverflow(bytes, extent, bytes))
      return std::nullopt;
  if (bytes > std::numeric_limits<int64_t>::max() - kAlignment)
    return std::nullopt;
  return bytes;
}

/// Emits size computations at one place, in terms of the extents of a
/// function's arguments. Sizes are unsigned and saturate, so that a kernel's -1
/// stays above every size that there is.
class SizeBuilder {
public:
  using ExtentFn = std::function<Value(Extent)>;

  SizeBuilder(OpBuilder builder, Location loc, ExtentFn extent)
      : builder(builder), loc(loc), extent(std::move(extent)) {}

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  /// A copy of `value` here; null when it depends on more than extents.
  Value rebuild(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *def = value.getDefiningOp();
    if (!def)
      return {};
    if (auto dim = dyn_cast<memref::DimOp>(def))
      return remember(value, rebuildDim(dim));
    if (def->getNumRegions() || !isMemoryEffectFree(def))
      return {};
    for (Value operand : def->getOperands())
      if (!rebuild(operand))
        return {};
    return remember(value, builder.clone(*def, mapping)->getResult(0));
  }

  /// The extent of axis `axis` of a buffer.
  Value extentOf(Value buffer, int64_t axis) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.isDynamicDim(axis))
      return constant(type.getDimSize(axis));
    if (auto argument = dyn_cast<BlockArgument>(buffer)) {
      Block *block = argument.getOwner();
      bool ofFunction =
          block->isEntryBlock() && isa<func::FuncOp>(block->getParentOp());
      return ofFunction ? extent({argument.getArgNumber(), axis}) : Value();
    }
    if (auto alloc = buffer.getDefiningOp<memref::AllocOp>())
      return rebuild(alloc.getDynamicSizes()[type.getDynamicDimIndex(axis)]);
    return {};
  }

  /// Bytes of an allocation, a multiple of the alignment.
  Value bytesOf(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    int64_t known = *staticBytes(type);
    if (type.hasStaticShape())
      return constant(llvm::alignTo(known, kAlignment));
    Value bytes = constant(known);
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      Value size = extentOf(alloc.getResult(), axis);
      if (!size)
        return {};
      bytes = multiply(bytes, size);
    }
    bytes = add(bytes, constant(kAlignment - 1));
    Value whole =
        arith::DivUIOp::create(builder, loc, bytes, constant(kAlignment));
    return arith::MulIOp::create(builder, loc, whole, constant(kAlignment));
  }

  Value add(Value a, Value b) {
    if (matchPattern(a, m_Zero()))
      return b;
    Value sum = arith::AddIOp::create(builder, loc, a, b);
    return saturated(arith::CmpIPredicate::ult, sum, a, sum);
  }

  Value larger(Value a, Value b) {
    return arith::MaxUIOp::create(builder, loc, a, b);
  }

  /// A size as the C ABI's signed number.
  Value clamped(Value size) {
    return arith::MinUIOp::create(
        builder, loc, size, constant(std::numeric_limits<int64_t>::max()));
  }

  OpBuilder builder;

private:
  Value multiply(Value a, Value b) {
    auto product = arith::MulUIExtendedOp::create(builder, loc, a, b);
    return saturated(arith::CmpIPredicate::ne, product.getHigh(), constant(0),
                     product.getLow());
  }

  /// `size`, or the largest there is where the comparison says so.
  Value saturated(arith::CmpIPredicate overflow, Value a, Value b, Value size) {
    Value over = arith::CmpIOp::create(builder, loc, overflow, a, b);
    return arith::SelectOp::create(builder, loc, over, constant(-1), size);
  }

  Value rebuildDim(memref::DimOp dim) {
    std::optional<int64_t> axis = dim.getConstantIndex();
    return axis ? extentOf(dim.getSource(), *axis) : Value();
  }

  Value remember(Value value, Value copy) {
    if (copy)
      mapping.map(value, copy);
    return copy;
  }

  Location loc;
  ExtentFn extent;
  IRMapping mapping;
};

/// Gives one function its workspace.
class Planner {
public:
  explicit Planner(func::FuncOp function) : function(function) {
    function.walk([&](memref::AllocOp alloc) {
      if (isMadeOnce(alloc))
        allocs.push_back(alloc);
    });
    function.walk([&](KernelRunOp run) { runs.push_back(run); });
  }

  bool isNeeded() const { return !allocs.empty() || !runs.empty(); }

  LogicalResult run() {
    if (failed(buildSizeFunction()))
      return failure();
    addArguments();
    return placeBuffers();
  }

private:
  /// Whether there is at most one buffer of an allocation in a call: it is in
  /// no loop.
  bool isMadeOnce(memref::AllocOp alloc) {
    Block *block = alloc->getBlock();
    while (isa<scf::IfOp>(block->getParentOp()))
      block = block->getParentOp()->getBlock();
    return block == &function.getBody().front();
  }

  /// @workspace_size: the buffers, and the largest scratch of a kernel.
  LogicalResult buildSizeFunction() {
    OpBuilder outer(function);
    Location loc = function.getLoc();
    Type index = outer.getIndexType();
    std::string name = companionName(function.getName(), "workspace_size");
    if (Operation *taken = SymbolTable::lookupNearestSymbolFrom(
            function, outer.getStringAttr(name))) {
      InFlightDiagnostic error = function.emitError()
                                 << "expected the name @" << name
                                 << " to be free for its workspace";
      error.attachNote(taken->getLoc()) << "it is taken here";
      return error;
    }
    auto size = func::FuncOp::create(outer, loc, name,
                                     outer.getFunctionType({index}, {index}));
    Block *entry = size.addEntryBlock();
    // A function of the tokens alone: sizes grow with every extent, so the
    // largest stands for all.
    SizeBuilder sizes(OpBuilder::atBlockBegin(entry), loc, [&](Extent extent) {
      extents.insert(extent);
      return entry->getArgument(0);
    });
    Value buffers = bytesOfBuffers(sizes), scratch = bytesOfScratch(sizes);
    if (!buffers || !scratch)
      return failure();
    func::ReturnOp::create(sizes.builder, loc,
                           sizes.clamped(sizes.add(buffers, scratch)));
    SmallVector<Attribute> list;
    for (Extent extent : extents)
      list.push_back(outer.getI64ArrayAttr(
          {static_cast<int64_t>(extent.first), extent.second}));
    size->setAttr(kExtentsAttrName, outer.getArrayAttr(list));
    function->setAttr(kWorkspaceAttrName, FlatSymbolRefAttr::get(size));
    return success();
  }

  /// What all buffers take together; null, with an error, when that is unknown.
  Value bytesOfBuffers(SizeBuilder &sizes) {
    Value total = sizes.constant(0);
    for (memref::AllocOp alloc : allocs) {
      if (!staticBytes(alloc.getType())) {
        alloc.emitOpError() << "expected fewer than 2^63 bytes";
        return {};
      }
      Value bytes = sizes.bytesOf(alloc);
      if (!bytes) {
        alloc.emitOpError() << "expected a size that depends on the extents of "
                               "the function's arguments";
        return {};
      }
      total = sizes.add(total, bytes);
    }
    return total;
  }

  /// The scratch of the kernel that needs most; null, with an error, when that
  /// is unknown.
  Value bytesOfScratch(SizeBuilder &sizes) {
    Value scratch = sizes.constant(0);
    for (KernelRunOp run : runs) {
      auto plan = run.getPlan().getDefiningOp<KernelPlanOp>();
      if (!plan) {
        run.emitOpError() << "expected a plan of wna16.kernel_plan";
        return {};
      }
      const PlanKind &kind = *findPlanKind(plan.getKind());
      if (kind.tokens.empty())
        continue;
      Value tokens = tokensOf(run, kind.tokens,
                              PlanKind::tokenAxis(plan.getFields()), sizes);
      if (!tokens) {
        run.emitOpError() << "expected memrefs with tokens that depend on the "
                             "extents of the function's arguments";
        return {};
      }
      Value copy = sizes.rebuild(plan.getPlan());
      Value bytes =
          KernelWorkspaceOp::create(sizes.builder, run.getLoc(),
                                    sizes.builder.getIndexType(), copy, tokens);
      scratch = sizes.larger(scratch, bytes);
    }
    return scratch;
  }

  /// The extent of an axis of the input with a role; null without one.
  static Value tokensOf(KernelRunOp run, StringRef role, int64_t axis,
                        SizeBuilder &sizes) {
    for (auto [name, input] : llvm::zip(run.getRoles(), run.getInputs())) {
      auto type = dyn_cast<MemRefType>(input.getType());
      if (cast<StringAttr>(name).getValue() == role && type &&
          axis < type.getRank())
        return sizes.extentOf(input, axis);
    }
    return {};
  }

  void addArguments() {
    OpBuilder builder(function);
    auto bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    workspace = append(bytes);
    stream = append(LLVM::LLVMPointerType::get(builder.getContext()));
  }

  Value append(Type type) {
    return appendArgument(function, type,
                          DictionaryAttr::get(function.getContext()),
                          function.getLoc());
  }

  /// Offsets are computed at the start, so that the rest of the workspace is
  /// known to every kernel.
  LogicalResult placeBuffers() {
    Location loc = function.getLoc();
    OpBuilder start = OpBuilder::atBlockBegin(&function.getBody().front());
    SizeBuilder sizes(start, loc, [&](Extent extent) -> Value {
      auto &dim = dims[extent];
      if (!dim)
        dim = memref::DimOp::create(
            start, loc, function.getArgument(extent.first), extent.second);
      return dim;
    });
    SmallVector<Value> offsets;
    Value total = sizes.constant(0);
    for (memref::AllocOp alloc : allocs) {
      offsets.push_back(total);
      total = sizes.add(total, sizes.bytesOf(alloc));
    }
    Value all = memref::DimOp::create(sizes.builder, loc, workspace, 0);
    Value rest = arith::SubIOp::create(sizes.builder, loc, all, total);
    Value scratch = memref::ViewOp::create(
        sizes.builder, loc, cast<MemRefType>(workspace.getType()), workspace,
        total, rest);
    for (auto [alloc, offset] : llvm::zip(allocs, offsets)) {
      OpBuilder builder(alloc);
      Value view =
          memref::ViewOp::create(builder, alloc.getLoc(), alloc.getType(),
                                 workspace, offset, alloc.getDynamicSizes());
      for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
        if (isa<memref::DeallocOp>(user))
          user->erase();
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
    for (KernelRunOp run : runs) {
      run.getWorkspaceMutable().assign(scratch);
      run.getStreamMutable().assign(stream);
    }
    return success();
  }

  func::FuncOp function;
  SmallVector<memref::AllocOp> allocs;
  SmallVector<KernelRunOp> runs;
  llvm::SetVector<Extent> extents;
  llvm::MapVector<Extent, Value> dims;
  Value workspace, stream;
};

struct PlanWorkspace : wna16::impl::PlanWorkspaceBase<PlanWorkspace> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal() &&
          !function->hasAttr(kWorkspaceAttrName))
        functions.push_back(function);
    for (func::FuncOp function : functions) {
      Planner planner(function);
      if (planner.isNeeded() && failed(planner.run()))
        return signalPassFailure();
    }
  }
};

} // namespace
