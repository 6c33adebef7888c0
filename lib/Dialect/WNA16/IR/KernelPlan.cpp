//===- KernelPlan.cpp - Plans as the C ABI wants them ---------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dialect/WNA16/IR/KernelPlan.h"
#include "Dialect/WNA16/IR/WNA16.h"
#include "Runtime/Weight.h"
#include "Runtime/wna16_cuda.h"

#include <cstring>
#include <limits>

using namespace mlir;
using namespace wna16;

std::vector<std::string> wna16::getAbiRoles(const PlanKind &kind) {
  std::vector<std::string> roles;
  for (StringRef role : kind.roles) {
    if (!role.consume_back("*")) {
      roles.push_back(role.str());
      continue;
    }
    for (int part = 0; part < kNumParts; ++part)
      roles.push_back(
          (role + "." + StringRef(name(static_cast<Part>(part)))).str());
  }
  return roles;
}

namespace {

/// Reads the fields of a plan; the first missing or ill-typed one is the error.
class FieldReader {
public:
  explicit FieldReader(DictionaryAttr fields) : fields(fields) {}

  int64_t integer(StringRef field) {
    if (auto attr = fields.getAs<IntegerAttr>(field))
      return attr.getInt();
    return complain(field, "an integer"), 0;
  }

  double number(StringRef field, double absent) {
    if (!fields.get(field))
      return absent;
    if (auto attr = fields.getAs<FloatAttr>(field))
      return attr.getValueAsDouble();
    return complain(field, "a float"), absent;
  }

  int64_t flag(StringRef field) { return fields.get(field) ? 1 : 0; }

  /// An enumerator by name, `absent` when the field is not there.
  template <typename EnumT>
  int64_t keyword(StringRef field, std::optional<EnumT> (*symbolize)(StringRef),
                  EnumT absent) {
    if (!fields.get(field))
      return static_cast<int64_t>(absent);
    auto attr = fields.getAs<StringAttr>(field);
    if (std::optional<EnumT> value =
            attr ? symbolize(attr.getValue()) : std::nullopt)
      return static_cast<int64_t>(*value);
    return complain(field, "one of its keywords"), 0;
  }

  int64_t element(StringRef field) {
    if (auto attr = fields.getAs<TypeAttr>(field))
      if (std::optional<ScalarType> type = getScalarType(attr.getValue()))
        return static_cast<int64_t>(*type);
    return complain(field, "a float type"), 0;
  }

  int64_t layout(StringRef field) {
    if (!fields.get(field))
      return findLayout("dense")->id;
    auto attr = fields.getAs<StringAttr>(field);
    if (const LayoutEntry *entry = attr ? findLayout(attr.getValue()) : nullptr)
      return entry->id;
    return complain(field, "a layout"), 0;
  }

  wna16_weight weight(StringRef field) {
    auto attr = fields.getAs<TypeAttr>(field);
    std::optional<WeightSpec> spec =
        attr ? getWeightSpec(attr.getValue()) : std::nullopt;
    if (!spec)
      return complain(field, "an encoded tensor type"), wna16_weight();
    return weightOf(*spec);
  }

  /// The weight whose outputs a bias type has.
  wna16_weight bias(StringRef field) {
    auto attr = fields.getAs<TypeAttr>(field);
    std::optional<WeightSpec> spec =
        attr ? getBiasSpec(attr.getValue()) : std::nullopt;
    if (!spec)
      return complain(field, "a bias type"), wna16_weight();
    return weightOf(*spec);
  }

  /// Adds the window to a plan, if there is one.
  void window(StringRef field, wna16_convert_plan &plan) {
    if (!fields.get(field))
      return;
    auto attr = fields.getAs<DenseI64ArrayAttr>(field);
    if (!attr || attr.size() != 4)
      return complain(field, "[input, inputs, output, outputs]");
    plan.input = attr[0];
    plan.inputs = attr[1];
    plan.output = attr[2];
    plan.outputs = attr[3];
  }

  Failure takeFailure() { return std::move(error); }

private:
  void complain(StringRef field, StringRef expected) {
    if (error)
      return;
    std::string got;
    llvm::raw_string_ostream os(got);
    if (Attribute value = fields.get(field))
      os << value;
    else
      os << "none";
    error = fail("expected field '" + field.str() + "' to be " +
                 expected.str() + ", got " + got);
  }

  DictionaryAttr fields;
  Failure error;
};

} // namespace

static wna16_experts_plan expertsPlan(FieldReader &read) {
  wna16_experts_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.w13 = read.weight("w13");
  plan.w2 = read.weight("w2");
  plan.hidden = read.integer("hidden");
  plan.element = read.element("element");
  plan.top_k = read.integer("top_k");
  plan.activation =
      read.keyword("activation", symbolizeActivation, Activation::silu);
  plan.activation_type = read.keyword(
      "activation_type", symbolizeActivationType, ActivationType::a16);
  plan.batched = read.flag("batched");
  plan.weight_on_input = read.flag("weight_on_input");
  plan.batch_invariant = read.flag("batch_invariant");
  plan.bias_layout = read.layout("bias_layout");
  plan.alpha = read.number("alpha", 1.0);
  plan.beta = read.number("beta", 0.0);
  plan.limit = read.number("limit", std::numeric_limits<double>::infinity());
  return plan;
}

static wna16_route_plan routePlan(FieldReader &read) {
  wna16_route_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.experts = read.integer("experts");
  plan.top_k = read.integer("top_k");
  plan.scoring = read.keyword("scoring", symbolizeScoring, Scoring::softmax);
  plan.renormalize = read.flag("renormalize");
  plan.groups = read.integer("groups");
  plan.top_groups = read.integer("top_groups");
  plan.softmax_after_topk = read.flag("softmax_after_topk");
  plan.scaling = read.number("scaling", 1.0);
  plan.jitter = read.number("jitter", 0.0);
  return plan;
}

/// Every plan struct consists of 8-byte fields.
template <typename PlanT>
static void copyWords(const PlanT &plan, SmallVectorImpl<int64_t> *words) {
  static_assert(sizeof(PlanT) % sizeof(int64_t) == 0, "8-byte fields only");
  if (!words)
    return;
  words->resize(sizeof(PlanT) / sizeof(int64_t));
  std::memcpy(words->data(), &plan, sizeof(PlanT));
}

static void buildExperts(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  copyWords(expertsPlan(read), words);
}

static void buildRoute(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  copyWords(routePlan(read), words);
}

static void buildLinear(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  copyWords(wna16_linear_plan{WNA16_ABI_VERSION, read.weight("weight"),
                              read.flag("batch_invariant")},
            words);
}

static void buildNorm(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  copyWords(wna16_rms_norm_plan{WNA16_ABI_VERSION, read.integer("hidden"),
                                read.number("epsilon", 0.0),
                                read.number("scale", 1.0)},
            words);
}

static void buildConvert(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  wna16_convert_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.source = read.weight("source");
  plan.target = read.weight("target");
  plan.scale_first = read.flag("scale_first");
  read.window("window", plan);
  copyWords(plan, words);
}

static void buildConvertBias(FieldReader &read,
                             SmallVectorImpl<int64_t> *words) {
  wna16_convert_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.source = read.bias("source");
  plan.target = read.bias("target");
  read.window("window", plan);
  copyWords(plan, words);
}

static void buildFill(FieldReader &read, SmallVectorImpl<int64_t> *words) {
  copyWords(wna16_fill_plan{WNA16_ABI_VERSION, read.number("value", 0.0)},
            words);
}

/// A plan that says nothing but its version.
static void buildPlain(FieldReader &, SmallVectorImpl<int64_t> *words) {
  static_assert(sizeof(wna16_sum_plan) == sizeof(wna16_copy_plan));
  copyWords(wna16_sum_plan{WNA16_ABI_VERSION}, words);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {

struct KindRow {
  PlanKind kind;
  void (*build)(FieldReader &read, SmallVectorImpl<int64_t> *words);
};

} // namespace

static const KindRow kKinds[] = {
    {{"experts",
      {"w13", "w2", "hidden", "element", "top_k", "activation",
       "activation_type", "batched", "weight_on_input", "batch_invariant",
       "bias_layout", "alpha", "beta", "limit"},
      {"x", "weights", "ids", "w13*", "w2*", "bias13", "bias2", "expert_map",
       "y"},
      "x"},
     buildExperts},
    {{"linear",
      {"weight", "batch_invariant"},
      {"x", "weight*", "bias", "y"},
      "x"},
     buildLinear},
    {{"route",
      {"experts", "top_k", "scoring", "renormalize", "groups", "top_groups",
       "softmax_after_topk", "scaling", "jitter"},
      {"logits", "correction", "expert_scale", "weights", "ids"},
      "logits"},
     buildRoute},
    {{"rms_norm",
      {"hidden", "epsilon", "scale"},
      {"x", "weight", "addend", "y"},
      "x"},
     buildNorm},
    {{"convert", {"source", "target", "window"}, {"source*", "target*"}},
     buildConvert},
    {{"convert_bias", {"source", "target", "window"}, {"source", "target"}},
     buildConvertBias},
    {{"dequantize", {"source", "target", "scale_first"}, {"source*", "target"}},
     buildConvert},
    {{"quantize", {"source", "target"}, {"source", "target*"}}, buildConvert},
    {{"fill", {"value"}, {"y"}}, buildFill},
    {{"sum", {}, {"a", "b", "y"}}, buildPlain},
    {{"copy", {}, {"source", "target"}}, buildPlain},
};

static const KindRow *findRow(StringRef name) {
  for (const KindRow &row : kKinds)
    if (row.kind.name == name)
      return &row;
  return nullptr;
}

const PlanKind *wna16::findPlanKind(StringRef name) {
  const KindRow *row = findRow(name);
  return row ? &row->kind : nullptr;
}

std::string wna16::planKindNames() {
  std::string names;
  for (const KindRow &row : kKinds)
    names += (names.empty() ? "" : ", ") + row.kind.name.str();
  return names;
}

Failure wna16::buildPlan(StringRef kind, DictionaryAttr fields,
                         SmallVectorImpl<int64_t> *words) {
  const KindRow *row = findRow(kind);
  if (!row)
    return fail("expected a plan kind (" + planKindNames() + "), got '" +
                kind.str() + "'");
  FieldReader read(fields);
  row->build(read, words);
  return read.takeFailure();
}
