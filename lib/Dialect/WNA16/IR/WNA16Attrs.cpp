//===- WNA16Attrs.cpp - Encodings and the target --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/WNA16.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace wna16;

#include "Dialect/WNA16/IR/WNA16Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Dialect/WNA16/IR/WNA16Attrs.cpp.inc"

void WNA16Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Dialect/WNA16/IR/WNA16Attrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Keywords with a table behind them
//===----------------------------------------------------------------------===//

/// Names of all layouts, for messages.
static std::string layoutNames() {
  std::string names;
  for (const LayoutEntry &entry : allLayouts())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

static FailureOr<const LayoutEntry *> parseLayout(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseKeyword(&name)))
    return failure();
  if (const LayoutEntry *entry = findLayout(name))
    return entry;
  return parser.emitError(loc, "expected a layout (")
         << layoutNames() << "), got '" << name << "'";
}

/// Parses a keyword that one of the `parse` functions of the layout library
/// knows.
template <typename T>
static FailureOr<T> parseName(AsmParser &parser,
                              std::optional<T> (*parse)(std::string_view),
                              StringRef what) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseKeyword(&name)))
    return failure();
  if (std::optional<T> value = parse(name))
    return *value;
  return parser.emitError(loc, "expected ") << what << ", got '" << name << "'";
}

static std::optional<ZeroPoints> parseZeros(std::string_view text) {
  for (ZeroPoints zeros : {ZeroPoints::Plain, ZeroPoints::MinusOne})
    if (wna16::name(zeros) == text)
      return zeros;
  return std::nullopt;
}

static std::optional<ActOrder> parseActOrder(std::string_view text) {
  for (ActOrder order : {ActOrder::Index, ActOrder::Sorted})
    if (wna16::name(order) == text)
      return order;
  return std::nullopt;
}

static std::optional<CodeType> parsePackedCode(std::string_view text) {
  std::optional<CodeType> code = parseCodeType(text);
  return code == CodeType::Dense ? std::nullopt : code;
}

//===----------------------------------------------------------------------===//
// PackedAttr
//===----------------------------------------------------------------------===//

Attribute PackedAttr::parse(AsmParser &parser, Type) {
  FailureOr<CodeType> code;
  FailureOr<const LayoutEntry *> layout;
  FailureOr<ScalarType> scale = ScalarType::F16;
  FailureOr<ZeroPoints> zeros = ZeroPoints::None;
  FailureOr<ActOrder> order = ActOrder::None;
  int64_t group, keptGroups = 0;
  if (parser.parseLess() ||
      failed(code = parseName(parser, parsePackedCode,
                              "a code type (u4, u4b8, s4, u8, u8b128, s8, "
                              "u4fp8)")) ||
      parser.parseComma() || parser.parseKeyword("group") ||
      parser.parseEqual() || parser.parseInteger(group) ||
      parser.parseComma() || parser.parseKeyword("layout") ||
      parser.parseEqual() || failed(layout = parseLayout(parser)))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key == "scale")
      scale = parseName(parser, parseScalarType,
                        "a scale type (f16, bf16, f32, i16)");
    else if (key == "zeros")
      zeros = parseName(parser, parseZeros, "plain or minus_one");
    else if (key == "act_order")
      order = parseName(parser, parseActOrder, "index or sorted");
    else if (key == "groups") {
      if (parser.parseInteger(keptGroups))
        return {};
    } else
      return parser.emitError(
                 loc, "expected scale, zeros, act_order or groups, got '")
                 << key << "'",
             Attribute();
    if (failed(scale) || failed(zeros) || failed(order))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), *code, group, keptGroups, *layout, *scale,
             *zeros, *order);
}

void PackedAttr::print(AsmPrinter &printer) const {
  printer << '<' << wna16::name(getCode()) << ", group = " << getGroup()
          << ", layout = " << getLayout()->name;
  if (getScale() != ScalarType::F16)
    printer << ", scale = " << wna16::name(getScale());
  if (getZeros() != ZeroPoints::None)
    printer << ", zeros = " << wna16::name(getZeros());
  if (getActOrder() != ActOrder::None)
    printer << ", act_order = " << wna16::name(getActOrder());
  if (getKeptGroups())
    printer << ", groups = " << getKeptGroups();
  printer << '>';
}

/// Shape and element rules that packed and dense encodings share.
static LogicalResult
verifyWeightTensor(Attribute encoding, ArrayRef<int64_t> shape,
                   Type elementType,
                   function_ref<InFlightDiagnostic()> emitError) {
  if (shape.size() < 2 || shape.size() > 4)
    return emitError() << "expected a weight of rank 2 [input, output], 3 [E, "
                          "input, output] or 4 [E, input, halves, output], got "
                          "rank "
                       << shape.size();
  if (ShapedType::isDynamicShape(shape))
    return emitError() << "expected static extents of a weight, got "
                       << RankedTensorType::get(shape, elementType);
  if (!elementType.isF16() && !elementType.isBF16() && !elementType.isF32())
    return emitError() << "expected a weight of f16, bf16 or f32, got "
                       << elementType;
  std::string error;
  getStorageTypes(RankedTensorType::get(shape, elementType, encoding), &error);
  if (!error.empty())
    return emitError() << error;
  return success();
}

LogicalResult
PackedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  return verifyWeightTensor(*this, shape, elementType, emitError);
}

//===----------------------------------------------------------------------===//
// DenseAttr, BiasAttr
//===----------------------------------------------------------------------===//

/// `layout = name>`, after the bracket.
static FailureOr<const LayoutEntry *> parseLayoutClause(AsmParser &parser) {
  FailureOr<const LayoutEntry *> layout;
  if (parser.parseKeyword("layout") || parser.parseEqual() ||
      failed(layout = parseLayout(parser)) || parser.parseGreater())
    return failure();
  return layout;
}

Attribute DenseAttr::parse(AsmParser &parser, Type) {
  const LayoutEntry *dense = findLayout("dense");
  if (failed(parser.parseOptionalLess()))
    return get(parser.getContext(), dense);
  FailureOr<const LayoutEntry *> layout = parseLayoutClause(parser);
  if (failed(layout))
    return {};
  return get(parser.getContext(), *layout);
}

void DenseAttr::print(AsmPrinter &printer) const {
  if (getLayout() != findLayout("dense"))
    printer << "<layout = " << getLayout()->name << '>';
}

LogicalResult
DenseAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                          function_ref<InFlightDiagnostic()> emitError) const {
  return verifyWeightTensor(*this, shape, elementType, emitError);
}

Attribute BiasAttr::parse(AsmParser &parser, Type) {
  FailureOr<const LayoutEntry *> layout;
  if (parser.parseLess() || failed(layout = parseLayoutClause(parser)))
    return {};
  return get(parser.getContext(), *layout);
}

void BiasAttr::print(AsmPrinter &printer) const {
  printer << "<layout = " << getLayout()->name << '>';
}

LogicalResult
BiasAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "expected a bias of rank 2 [E, output] or 3 [E, "
                          "halves, output], got rank "
                       << shape.size();
  if (ShapedType::isDynamicShape(shape))
    return emitError() << "expected static extents of a bias, got "
                       << RankedTensorType::get(shape, elementType);
  if (!elementType.isF16() && !elementType.isBF16() && !elementType.isF32())
    return emitError() << "expected a bias of f16, bf16 or f32, got "
                       << elementType;
  return success();
}

//===----------------------------------------------------------------------===//
// TargetAttr
//===----------------------------------------------------------------------===//

/// What is wrong with a list of features or libraries; empty: nothing.
static std::string wordsError(StringRef what, ArrayRef<StringAttr> words) {
  for (auto [i, word] : llvm::enumerate(words)) {
    bool fine = !word.empty() && llvm::all_of(word.getValue(), [](char c) {
      return llvm::isAlnum(c) || c == '.' || c == '_' || c == '-';
    });
    if (!fine)
      return ("expected " + what +
              " of letters, digits, '.', '_' and '-', got '" + word.getValue() +
              "'")
          .str();
    if (llvm::is_contained(words.take_front(i), word))
      return ("expected distinct " + what + ", got '" + word.getValue() +
              "' twice")
          .str();
  }
  return {};
}

/// The same of a whole target.
static std::string targetError(TargetKind kind, int64_t capability,
                               ArrayRef<StringAttr> features, int64_t memory,
                               ArrayRef<StringAttr> libraries) {
  StringRef name = stringifyTargetKind(kind);
  if (capability < 0 || capability > 999)
    return "expected a compute capability from 0 to 999, got " +
           std::to_string(capability);
  if (kind != TargetKind::cuda && capability)
    return ("expected no compute capability of a " + name + " target, got " +
            Twine(capability))
        .str();
  if (kind != TargetKind::cuda && !libraries.empty())
    return ("expected no libraries of a " + name + " target, got '" +
            libraries.front().getValue() + "'")
        .str();
  if (memory < 0)
    return "expected memory of 0 or more bytes, got " + std::to_string(memory);
  std::string error = wordsError("features", features);
  return error.empty() ? wordsError("libraries", libraries) : error;
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 TargetKind kind, int64_t capability,
                                 ArrayRef<StringAttr> features, int64_t memory,
                                 ArrayRef<StringAttr> libraries) {
  std::string error =
      targetError(kind, capability, features, memory, libraries);
  return error.empty() ? success() : LogicalResult(emitError() << error);
}

static ParseResult parseStrings(AsmParser &parser,
                                SmallVectorImpl<StringAttr> &strings) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    std::string text;
    if (parser.parseString(&text))
      return failure();
    strings.push_back(StringAttr::get(parser.getContext(), text));
    return success();
  });
}

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  FailureOr<TargetKind> kind;
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseLess() ||
      failed(kind = FieldParser<TargetKind>::parse(parser)))
    return {};
  int64_t capability = 0, memory = 0;
  SmallVector<StringAttr> features, libraries;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    ParseResult result = failure();
    if (key == "capability")
      result = parser.parseInteger(capability);
    else if (key == "memory")
      result = parser.parseInteger(memory);
    else if (key == "features")
      result = parseStrings(parser, features);
    else if (key == "libraries")
      result = parseStrings(parser, libraries);
    else
      parser.emitError(
          loc, "expected capability, features, memory or libraries, got '")
          << key << "'";
    if (failed(result))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(start); },
                    parser.getContext(), *kind, capability, features, memory,
                    libraries);
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyTargetKind(getKind());
  auto strings = [&](StringRef key, ArrayRef<StringAttr> values) {
    if (values.empty())
      return;
    printer << ", " << key << " = [";
    llvm::interleaveComma(values, printer);
    printer << ']';
  };
  if (getCapability())
    printer << ", capability = " << getCapability();
  strings("features", getFeatures());
  if (getMemory())
    printer << ", memory = " << getMemory();
  strings("libraries", getLibraries());
  printer << '>';
}

TargetAttr TargetAttr::parse(MLIRContext *context, StringRef text,
                             std::string &error) {
  auto [kindName, rest] = text.split(':');
  std::optional<TargetKind> kind = symbolizeTargetKind(kindName);
  if (!kind) {
    error = ("expected a target cpu[:features], cuda:sm_NN[,libraries] or xpu, "
             "got '" +
             text + "'")
                .str();
    return {};
  }
  int64_t capability = 0;
  SmallVector<StringAttr> features, libraries;
  SmallVector<StringRef> pieces;
  if (text.contains(':'))
    rest.split(pieces, ',');
  for (StringRef piece : pieces) {
    StringRef number = piece;
    if (piece.empty()) {
      error = ("expected words with one ',' between them after '" + kindName +
               ":', got '" + text + "'")
                  .str();
      return {};
    }
    if (*kind != TargetKind::cuda) {
      features.push_back(StringAttr::get(context, piece));
      continue;
    }
    if (!number.consume_front("sm_")) {
      libraries.push_back(StringAttr::get(context, piece));
      continue;
    }
    number.consume_back("a");
    if (capability) {
      error =
          ("expected one compute capability sm_NN, got '" + text + "'").str();
      return {};
    }
    // The compute capability times ten has two or three digits.
    if (number.size() > 3 || number.getAsInteger(10, capability) ||
        capability <= 0) {
      error =
          ("expected a compute capability sm_NN, got '" + piece + "'").str();
      return {};
    }
  }
  if (*kind == TargetKind::cuda && !capability) {
    error =
        ("expected a compute capability, as in cuda:sm_90, got '" + text + "'")
            .str();
    return {};
  }
  error = targetError(*kind, capability, features, /*memory=*/0, libraries);
  return error.empty() ? get(context, *kind, capability, features,
                             /*memory=*/0, libraries)
                       : TargetAttr();
}

bool TargetAttr::hasFeature(StringRef feature) const {
  return llvm::any_of(getFeatures(),
                      [&](StringAttr f) { return f.getValue() == feature; });
}

bool TargetAttr::hasLibrary(StringRef library) const {
  return llvm::any_of(getLibraries(),
                      [&](StringAttr l) { return l.getValue() == library; });
}
