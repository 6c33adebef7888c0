//===- EmitEntryPoints.cpp - C functions on DLPack-style tensors ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"
#include "Runtime/wna16.h"
#include "Transforms/Names.h"
#include "Transforms/Passes.h"
#include "Transforms/RuntimeCalls.h"
#include "Transforms/Target.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Support/JSON.h"

namespace wna16 {
#define GEN_PASS_DEF_EMITENTRYPOINTS
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

constexpr llvm::StringLiteral kDescription = "wna16_module_description";

/// The arguments of a function that are tensors of a call: all but workspace
/// and stream.
ArrayRef<Type> tensorTypes(func::FuncOp function) {
  ArrayRef<Type> types = function.getArgumentTypes();
  return function->hasAttr(kWorkspaceAttrName) && types.size() >= 2
             ? types.drop_back(2)
             : types;
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

llvm::json::Object describeArgument(func::FuncOp function, unsigned index) {
  llvm::json::Object object;
  auto type = cast<MemRefType>(function.getArgumentTypes()[index]);
  StringRef role = "input";
  if (auto parameter = function.getArgAttrOfType<DictionaryAttr>(
          index, kParameterAttrName)) {
    role = "parameter";
    object["pattern"] = parameter.getAs<StringAttr>("pattern").getValue();
    if (auto concat = parameter.getAs<IntegerAttr>("concat"))
      object["concat"] = concat.getInt();
  }
  if (auto name =
          function.getArgAttrOfType<StringAttr>(index, kPreparedAttrName)) {
    role = "prepared";
    object["name"] = name.getValue();
  } else if (function.getArgAttr(index, kOutputAttrName)) {
    role = "output";
  }
  if (auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttrName))
    object["name"] = name.getValue();
  if (auto encoding =
          function.getArgAttrOfType<StringAttr>(index, kEncodingAttrName))
    object["encoding"] = encoding.getValue();
  object["role"] = role;
  std::optional<ScalarType> scalar = getScalarType(type.getElementType());
  object["type"] = scalar ? StringRef(name(*scalar)) : StringRef("unknown");
  llvm::json::Array shape;
  for (int64_t extent : type.getShape())
    shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
  object["shape"] = std::move(shape);
  return object;
}

llvm::json::Object describeFunction(func::FuncOp function) {
  llvm::json::Array arguments;
  for (unsigned i = 0, e = tensorTypes(function).size(); i < e; ++i)
    arguments.push_back(describeArgument(function, i));
  llvm::json::Object object{{"name", function.getName()},
                            {"arguments", std::move(arguments)}};
  if (auto size =
          function->getAttrOfType<FlatSymbolRefAttr>(kWorkspaceAttrName))
    object["workspace"] = size.getValue();
  if (auto forward = function->getAttrOfType<StringAttr>(kPrepareAttrName))
    object["prepares"] = forward.getValue();
  if (auto experts = function->getAttrOfType<IntegerAttr>(kExpertsAttrName))
    object["experts"] = experts.getInt();
  if (auto backends = function->getAttrOfType<ArrayAttr>(kBackendsAttrName)) {
    std::string list;
    for (auto backend : backends.getAsRange<StringAttr>())
      list += (list.empty() ? "" : ", ") + backend.str();
    object["backend"] = list;
  }
  return object;
}

/// Where the module runs and whose weights it takes, as far as it says so.
llvm::json::Object describeModule(ModuleOp module) {
  llvm::json::Object object{{"abi", WNA16_ABI_VERSION}};
  auto target = module->getAttrOfType<TargetAttr>(kPreparedForAttrName);
  if (!target)
    target = module->getAttrOfType<TargetAttr>(kTargetAttrName);
  if (target) {
    std::string text;
    llvm::raw_string_ostream os(text);
    cast<Attribute>(target).print(os);
    object["target"] = text;
  }
  if (auto source = module->getAttrOfType<DictionaryAttr>(kCheckpointAttrName))
    if (auto identity = source.getAs<StringAttr>("source"))
      object["source"] = identity.getValue();
  if (auto share = module->getAttrOfType<DictionaryAttr>(kShareAttrName))
    for (NamedAttribute entry : share)
      object[entry.getName().getValue()] =
          cast<IntegerAttr>(entry.getValue()).getInt();
  return object;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Builds the C function of one function on memrefs.
class EntryBuilder {
public:
  EntryBuilder(func::FuncOp function, const LLVMTypeConverter &converter)
      : function(function), converter(converter), loc(function.getLoc()),
        builder(function), module(function->getParentOfType<ModuleOp>()),
        calls(module) {}

  void run() {
    std::string name = function.getName().str();
    MLIRContext *context = builder.getContext();
    auto renamed = StringAttr::get(context, "wna16_impl_" + name);
    // Functions of the module go on calling the one on memrefs.
    LogicalResult replaced =
        SymbolTable::replaceAllSymbolUses(function, renamed, module);
    assert(succeeded(replaced) && "func.func hides no symbol uses");
    (void)replaced;
    function.setName(renamed);
    function.setPrivate();
    Type pointer = LLVM::LLVMPointerType::get(context);
    Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
    auto entry = LLVM::LLVMFuncOp::create(
        builder, loc, name,
        LLVM::LLVMFunctionType::get(i32,
                                    {pointer, i64, pointer, i64, pointer}));
    Block *body = entry.addEntryBlock(builder);
    Block *bad = builder.createBlock(&entry.getBody());
    Value status = bad->addArgument(i32, loc);
    LLVM::ReturnOp::create(builder, loc, status);
    builder.setInsertionPointToStart(body);
    tensors = body->getArgument(0);

    Value checked = calls.call(builder, loc, "wna16_check_arguments", i32,
                               {signature(), tensors, body->getArgument(1)});
    leaveUnlessOk(entry, checked, bad);
    checkWorkspace(entry, body->getArgument(2), body->getArgument(3), bad);
    callFunction(body->getArgument(2), body->getArgument(3),
                 body->getArgument(4));
    Value result = calls.call(builder, loc, "wna16_status_get", i32, {});
    LLVM::ReturnOp::create(builder, loc, result);
  }

private:
  /// The device, n, and for each tensor its element type, rank and extents.
  Value signature() {
    ArrayRef<Type> types = tensorTypes(function);
    SmallVector<int64_t> words{calls.deviceType(),
                               static_cast<int64_t>(types.size())};
    for (Type type : types) {
      auto memref = cast<MemRefType>(type);
      words.push_back(static_cast<int64_t>(
          getScalarType(memref.getElementType()).value_or(ScalarType::U8)));
      words.push_back(memref.getRank());
      for (auto [axis, extent] : llvm::enumerate(memref.getShape()))
        words.push_back(ShapedType::isDynamic(extent)
                            ? symbolOf(memref.getRank(), axis)
                            : extent);
    }
    return calls.constantWords(builder, loc, "wna16_signature", words);
  }

  /// Dynamic extents of one axis agree among tensors of one rank: tokens.
  static int64_t symbolOf(int64_t rank, int64_t axis) {
    constexpr int64_t kMaxRank = 8;
    return rank <= kMaxRank ? -2 - (rank * kMaxRank + axis) : -1;
  }

  /// Goes on in a new block when the status is WNA16_OK.
  void leaveUnlessOk(LLVM::LLVMFuncOp entry, Value status, Block *bad) {
    Value fine = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                      status, calls.i32(builder, loc, 0));
    auto next = new Block;
    entry.getBody().push_back(next);
    LLVM::CondBrOp::create(builder, loc, fine, next, ValueRange(), bad,
                           ValueRange(status));
    builder.setInsertionPointToEnd(next);
  }

  void checkWorkspace(LLVM::LLVMFuncOp entry, Value workspace, Value bytes,
                      Block *bad) {
    auto symbol =
        function->getAttrOfType<FlatSymbolRefAttr>(kWorkspaceAttrName);
    if (!symbol)
      return;
    auto size = module.lookupSymbol<func::FuncOp>(symbol.getValue());
    // The size is that for the largest of the extents it depends on.
    Value tokens = calls.i64(builder, loc, 0);
    for (Attribute pair : size->getAttrOfType<ArrayAttr>(kExtentsAttrName)) {
      auto numbers = cast<ArrayAttr>(pair);
      Value extent = loadExtent(cast<IntegerAttr>(numbers[0]).getInt(),
                                cast<IntegerAttr>(numbers[1]).getInt());
      tokens = arith::MaxSIOp::create(builder, loc, tokens, extent);
    }
    Value needed =
        func::CallOp::create(builder, loc, size, ValueRange{toIndex(tokens)})
            .getResult(0);
    Value status = calls.call(
        builder, loc, "wna16_check_workspace", builder.getI32Type(),
        {arith::IndexCastOp::create(builder, loc, builder.getI64Type(), needed)
             .getResult(),
         workspace, bytes});
    leaveUnlessOk(entry, status, bad);
  }

  void callFunction(Value workspace, Value bytes, Value stream) {
    SmallVector<Value> arguments;
    ArrayRef<Type> types = tensorTypes(function);
    for (auto [i, type] : llvm::enumerate(types))
      arguments.push_back(loadMemRef(i, cast<MemRefType>(type)));
    if (types.size() < function.getNumArguments()) {
      auto type = cast<MemRefType>(function.getArgumentTypes()[types.size()]);
      arguments.push_back(makeMemRef(type, workspace, {bytes}));
      arguments.push_back(stream);
    }
    func::CallOp::create(builder, loc, function, arguments);
  }

  Value toIndex(Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                      value);
  }

  /// Field `field` of tensor `index`.
  Value loadField(int64_t index, int32_t field, Type type) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, tensors.getType(),
        RuntimeCalls::tensorType(builder.getContext()), tensors,
        {LLVM::GEPArg(static_cast<int32_t>(index)), LLVM::GEPArg(field)});
    return LLVM::LoadOp::create(builder, loc, type, slot);
  }

  Value loadExtent(int64_t index, int64_t axis) {
    Value shape = loadField(index, 7, tensors.getType());
    Value slot = LLVM::GEPOp::create(builder, loc, tensors.getType(),
                                     builder.getI64Type(), shape,
                                     LLVM::GEPArg(static_cast<int32_t>(axis)));
    return LLVM::LoadOp::create(builder, loc, builder.getI64Type(), slot);
  }

  Value loadMemRef(int64_t index, MemRefType type) {
    Value data = loadField(index, 0, tensors.getType());
    Value offset = loadField(index, 9, builder.getI64Type());
    Value start =
        LLVM::GEPOp::create(builder, loc, tensors.getType(),
                            builder.getI8Type(), data, LLVM::GEPArg(offset));
    SmallVector<Value> extents;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      if (type.isDynamicDim(axis))
        extents.push_back(loadExtent(index, axis));
    return makeMemRef(type, start, extents);
  }

  /// A row-major memref at an address.
  Value makeMemRef(MemRefType type, Value start, ArrayRef<Value> dynamic) {
    auto descriptor =
        MemRefDescriptor::poison(builder, loc, converter.convertType(type));
    descriptor.setAllocatedPtr(builder, loc, start);
    descriptor.setAlignedPtr(builder, loc, start);
    descriptor.setOffset(builder, loc, calls.i64(builder, loc, 0));
    Value stride = calls.i64(builder, loc, 1);
    const Value *next = dynamic.end();
    for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
      Value extent = type.isDynamicDim(axis)
                         ? *--next
                         : calls.i64(builder, loc, type.getDimSize(axis));
      descriptor.setSize(builder, loc, axis, extent);
      descriptor.setStride(builder, loc, axis, stride);
      stride = LLVM::MulOp::create(builder, loc, stride, extent);
    }
    return UnrealizedConversionCastOp::create(builder, loc, type,
                                              Value(descriptor))
        .getResult(0);
  }

  func::FuncOp function;
  const LLVMTypeConverter &converter;
  Location loc;
  OpBuilder builder;
  ModuleOp module;
  RuntimeCalls calls;
  Value tensors;
};

struct EmitEntryPoints : wna16::impl::EmitEntryPointsBase<EmitEntryPoints> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVMTypeConverter converter(&getContext());
    SmallVector<func::FuncOp> functions;
    llvm::json::Array descriptions;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(checkName(function)))
        return signalPassFailure();
      if (!function.isPublic())
        continue;
      // Size functions and scalar ones are C functions as they are.
      if (isScalar(function))
        continue;
      if (function->hasAttr(kExtentsAttrName)) {
        function.emitError() << "expected " << kExtentsAttrName
                             << " on a size function (index) -> index, got "
                             << function.getFunctionType();
        return signalPassFailure();
      }
      if (failed(check(function)))
        return signalPassFailure();
      functions.push_back(function);
      descriptions.push_back(describeFunction(function));
    }
    if (functions.empty())
      return;
    for (func::FuncOp function : functions)
      EntryBuilder(function, converter).run();
    hidePrivate(module);
    llvm::json::Object description = describeModule(module);
    description["functions"] = std::move(descriptions);
    emitDescription(std::move(description));
  }

private:
  /// Private functions are no symbols of the library.
  static void hidePrivate(ModuleOp module) {
    auto internal =
        LLVM::LinkageAttr::get(module.getContext(), LLVM::Linkage::Internal);
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPrivate() && !function.isExternal())
        function->setAttr("llvm.linkage", internal);
  }

  /// Has to do with no tensor and no kernel, and stays as it is.
  static bool isScalar(func::FuncOp function) {
    return function.getNumArguments() &&
           llvm::none_of(tensorTypes(function), llvm::IsaPred<MemRefType>) &&
           !function->hasAttr(kWorkspaceAttrName);
  }

  /// Machine code calls functions of C's libraries, and ours, by their names.
  static LogicalResult checkName(func::FuncOp function) {
    StringRef name = function.getName();
    static const llvm::TargetLibraryInfoImpl library{llvm::Triple()};
    llvm::LibFunc known;
    if (!name.starts_with("wna16_") && !library.getLibFunc(name, known) &&
        name != "_init" && name != "_fini")
      return success();
    return function.emitError()
           << "expected a name that neither C's libraries nor wna16's runtime "
              "have, got '"
           << name << "'; rename the function";
  }

  static LogicalResult check(func::FuncOp function) {
    if (function.getNumResults())
      return function.emitError() << "expected results as arguments; run "
                                     "wna16-results-to-outs before "
                                     "bufferization";
    for (auto [i, type] : llvm::enumerate(tensorTypes(function))) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref)
        return function.emitError()
               << "expected tensors as arguments of a public function, got "
               << type << " as argument " << i
               << "; make it a tensor of rank 0, or the function private";
      if (!memref.getLayout().isIdentity() ||
          !getScalarType(memref.getElementType()))
        return function.emitError()
               << "expected argument " << i
               << " with identity layout and elements of the runtime, got "
               << type;
    }
    return checkWorkspace(function);
  }

  /// Workspace and stream are the last arguments; a function of the module
  /// says how large the workspace must be.
  static LogicalResult checkWorkspace(func::FuncOp function) {
    Attribute attribute = function->getAttr(kWorkspaceAttrName);
    if (!attribute)
      return success();
    ArrayRef<Type> types = function.getArgumentTypes();
    Type bytes = MemRefType::get(ShapedType::kDynamic,
                                 IntegerType::get(function.getContext(), 8));
    if (types.size() < 2 || types[types.size() - 2] != bytes ||
        !isa<LLVM::LLVMPointerType>(types.back()))
      return function.emitError()
             << "expected " << bytes << " and !llvm.ptr as last arguments of a "
             << "function with " << kWorkspaceAttrName;
    auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute);
    auto size =
        symbol
            ? function->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(
                  symbol.getValue())
            : func::FuncOp();
    if (!size || !isSizeOf(size, function))
      return function.emitError()
             << "expected " << kWorkspaceAttrName << " to name a function "
             << "(index) -> index with " << kExtentsAttrName
             << " = [[argument, axis], ...], got " << attribute;
    return success();
  }

  static bool isSizeOf(func::FuncOp size, func::FuncOp function) {
    auto extents = size->getAttrOfType<ArrayAttr>(kExtentsAttrName);
    Type index = IndexType::get(function.getContext());
    if (!extents || size.getArgumentTypes() != ArrayRef<Type>(index) ||
        size.getResultTypes() != ArrayRef<Type>(index))
      return false;
    ArrayRef<Type> tensors = tensorTypes(function);
    return llvm::all_of(extents, [&](Attribute extent) {
      auto pair = dyn_cast<ArrayAttr>(extent);
      if (!pair || pair.size() != 2)
        return false;
      auto argument = dyn_cast<IntegerAttr>(pair[0]);
      auto axis = dyn_cast<IntegerAttr>(pair[1]);
      if (!argument || !axis || argument.getValue().getActiveBits() > 31 ||
          axis.getValue().getActiveBits() > 31)
        return false;
      return argument.getValue().ult(tensors.size()) &&
             axis.getValue().ult(
                 cast<MemRefType>(tensors[argument.getInt()]).getRank());
    });
  }

  void emitDescription(llvm::json::Object description) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(description));
    text.push_back('\0');
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    LLVM::GlobalOp::create(
        builder, getOperation().getLoc(),
        LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
        /*isConstant=*/true, LLVM::Linkage::External, kDescription,
        builder.getStringAttr(text));
  }
};

} // namespace
