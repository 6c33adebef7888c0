//===- DiscardableAttrs.cpp - What the passes leave for each other --------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/AttrNames.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Layout/TensorNames.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace wna16;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static bool isText(Attribute attr) {
  auto text = dyn_cast_or_null<StringAttr>(attr);
  return text && !text.empty();
}

static bool isFlag(Attribute attr) { return isa<UnitAttr>(attr); }

static bool isTarget(Attribute attr) { return isa<TargetAttr>(attr); }

static bool isSymbol(Attribute attr) { return isa<FlatSymbolRefAttr>(attr); }

static bool isIntegerFrom(Attribute attr, int64_t least) {
  auto number = dyn_cast_or_null<IntegerAttr>(attr);
  return number && number.getValue().isSignedIntN(64) &&
         number.getValue().getSExtValue() >= least;
}

static bool isCount(Attribute attr) { return isIntegerFrom(attr, 1); }

/// {rank = 1, size = 4}.
static bool isShare(Attribute attr) {
  auto share = dyn_cast<DictionaryAttr>(attr);
  return share && share.size() == 2 && isIntegerFrom(share.get("rank"), 0) &&
         isIntegerFrom(share.get("size"), 1) &&
         share.getAs<IntegerAttr>("rank").getValue().getSExtValue() <
             share.getAs<IntegerAttr>("size").getValue().getSExtValue();
}

static bool isTextList(Attribute attr) {
  auto list = dyn_cast<ArrayAttr>(attr);
  return list && llvm::all_of(list, isText);
}

static bool isExtentList(Attribute attr) {
  auto list = dyn_cast<ArrayAttr>(attr);
  return list && llvm::all_of(list, [](Attribute entry) {
           auto pair = dyn_cast<ArrayAttr>(entry);
           return pair && pair.size() == 2 && isIntegerFrom(pair[0], 0) &&
                  isIntegerFrom(pair[1], 0);
         });
}

static bool isTextDictionary(Attribute attr) {
  auto entries = dyn_cast<DictionaryAttr>(attr);
  return entries && llvm::all_of(entries, [](NamedAttribute entry) {
           return isa<StringAttr>(entry.getValue());
         });
}

/// {pattern = "..."} or {pattern = "...", concat = 1}.
static bool isFileTensor(Attribute attr) {
  auto entries = dyn_cast<DictionaryAttr>(attr);
  if (!entries || !isText(entries.get("pattern")))
    return false;
  StringRef pattern = cast<StringAttr>(entries.get("pattern")).getValue();
  if (!TensorNames::parse(pattern))
    return false;
  Attribute concat = entries.get("concat");
  return entries.size() == (concat ? 2 : 1) &&
         (!concat || isIntegerFrom(concat, 0));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {

enum Place { OnModule = 1, OnFunction = 2, OnArgument = 4, OnResult = 8 };

struct KnownAttr {
  llvm::StringLiteral name;
  int places;
  bool (*isValid)(Attribute);
  llvm::StringLiteral expected;
};

} // namespace

static constexpr llvm::StringLiteral kText = "a string that is not empty";
static constexpr llvm::StringLiteral kTarget = "a #wna16.target";

static constexpr KnownAttr kKnown[] = {
    {kTargetAttrName, OnModule, isTarget, kTarget},
    {kPreparedForAttrName, OnModule, isTarget, kTarget},
    {kCheckpointAttrName, OnModule, isTextDictionary,
     "a dictionary of strings"},
    {kShareAttrName, OnModule, isShare, "{rank = RANK, size = RANKS}"},
    {kPrepareAttrName, OnFunction, isText, kText},
    {kExpertsAttrName, OnFunction, isCount, "a positive integer"},
    {kBackendsAttrName, OnFunction, isTextList, "an array of strings"},
    {kWorkspaceAttrName, OnFunction, isSymbol, "a symbol"},
    {kExtentsAttrName, OnFunction, isExtentList, "[[argument, axis], ...]"},
    {kParameterAttrName, OnArgument, isFileTensor,
     "{pattern = \"...\"}, or with concat = AXIS"},
    {kOutputAttrName, OnArgument, isFlag, "a unit attribute"},
    {kEncodingAttrName, OnArgument | OnResult, isText, kText},
    {kPreparedAttrName, OnArgument | OnResult, isText, kText},
    {kNameAttrName, OnArgument | OnResult, isText, kText},
};

static std::string placeNames(int places) {
  static constexpr std::pair<Place, llvm::StringLiteral> kPlaces[] = {
      {OnModule, "a module"},
      {OnFunction, "a function"},
      {OnArgument, "an argument"},
      {OnResult, "a result"}};
  std::string names;
  for (auto [place, name] : kPlaces)
    if (places & place)
      names += (names.empty() ? "" : " or ") + name.str();
  return names;
}

static LogicalResult verifyAt(Operation *op, NamedAttribute attribute,
                              int place) {
  StringRef name = attribute.getName();
  const KnownAttr *known = llvm::find_if(
      kKnown, [&](const KnownAttr &entry) { return entry.name == name; });
  if (known == std::end(kKnown)) {
    InFlightDiagnostic error = op->emitError()
                               << "expected an attribute of the dialect (";
    llvm::interleaveComma(kKnown, error,
                          [&](const KnownAttr &entry) { error << entry.name; });
    return error << "), got '" << name << "'";
  }
  if (!(known->places & place))
    return op->emitError() << "expected '" << name << "' on "
                           << placeNames(known->places) << ", got it on "
                           << (place
                                   ? placeNames(place)
                                   : "'" + op->getName().getStringRef().str() +
                                         "'");
  if (!known->isValid(attribute.getValue()))
    return op->emitError() << "expected '" << name << "' to be "
                           << known->expected << ", got "
                           << attribute.getValue();
  return success();
}

LogicalResult WNA16Dialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  int place = isa<ModuleOp>(op)              ? OnModule
              : isa<FunctionOpInterface>(op) ? OnFunction
                                             : 0;
  return verifyAt(op, attribute, place);
}

LogicalResult WNA16Dialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned,
                                                     NamedAttribute attribute) {
  return verifyAt(op, attribute, OnArgument);
}

LogicalResult
WNA16Dialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                          NamedAttribute attribute) {
  return verifyAt(op, attribute, OnResult);
}
