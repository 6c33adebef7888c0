//===- Reference.cpp - Comparing a run with a reference -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "CommandLine.h"
#include "Layout/Scalar.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>

using namespace wna16;
using namespace wna16::cli;

namespace {

/// Routing weights are f32 whatever the activations are.
constexpr double kWeightTolerance = 1e-5;

/// The elements of a tensor of any float or integer type.
Result<std::vector<double>> toDoubles(llvm::StringRef name, ScalarType type,
                                      const uint8_t *data, int64_t bytes) {
  std::vector<double> values(bytes / sizeOf(type));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t *element = data + i * sizeOf(type);
    switch (type) {
    case ScalarType::F64:
      std::memcpy(&values[i], element, sizeof(double));
      break;
    case ScalarType::F16:
    case ScalarType::BF16:
    case ScalarType::F32:
      values[i] = loadFloat(type, data, static_cast<int64_t>(i));
      break;
    case ScalarType::I32: {
      int32_t value;
      std::memcpy(&value, element, sizeof(value));
      values[i] = value;
      break;
    }
    case ScalarType::I64: {
      int64_t value;
      std::memcpy(&value, element, sizeof(value));
      values[i] = static_cast<double>(value);
      break;
    }
    default:
      return fail(("tensor " + name + ": expected floats, i32 or i64").str());
    }
  }
  return values;
}

/// |got - expected| / |expected|; NaN where anything is.
double relativeError(llvm::ArrayRef<double> got,
                     llvm::ArrayRef<double> expected) {
  double difference = 0, norm = 0;
  for (auto [a, b] : llvm::zip(got, expected)) {
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

/// The larger of two numbers; NaN when one is.
double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

/// Experts and weights of a token, in the order of experts.
using Slots = std::vector<std::pair<double, double>>;

Slots slotsOf(llvm::ArrayRef<double> ids, llvm::ArrayRef<double> weights,
              size_t token, size_t topK) {
  Slots slots;
  for (size_t i = token * topK; i < (token + 1) * topK; ++i)
    slots.push_back({ids[i], weights.empty() ? 0 : weights[i]});
  llvm::sort(slots);
  return slots;
}

} // namespace

std::optional<double> Comparison::ratio() const {
  if (!out || !yardstick || *yardstick == 0)
    return std::nullopt;
  return *out / *yardstick;
}

Result<Tolerance> Tolerance::parse(llvm::StringRef option,
                                   llvm::StringRef text) {
  Tolerance tolerance;
  llvm::StringRef number = text;
  tolerance.isMultiple = number.consume_back("lp");
  if (number.getAsDouble(tolerance.value) || !(tolerance.value >= 0))
    return usage(option +
                 ": expected a number, or a multiple of the reference's own "
                 "error as 0.75lp, got '" +
                 text + "'");
  return tolerance;
}

bool Tolerance::allows(double error, std::optional<double> yardstick) const {
  if (isMultiple && !yardstick)
    return false;
  // A NaN is not allowed.
  return error <= (isMultiple ? value * *yardstick : value);
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

Result<Reference> Reference::open(const std::string &file) {
  Result<SafeTensors> files = SafeTensors::open(file);
  if (!files)
    return files.takeFailure();
  Reference reference;
  reference.files = std::move(*files);
  llvm::SmallString<128> beside(file);
  llvm::sys::path::replace_extension(beside, "json");
  auto text = llvm::MemoryBuffer::getFile(beside);
  if (!text)
    return reference;
  llvm::Expected<llvm::json::Value> json =
      llvm::json::parse((*text)->getBuffer());
  if (!json)
    return fail(std::string(beside) + ": " + llvm::toString(json.takeError()));
  if (const llvm::json::Object *object = json->getAsObject())
    if (const auto *errors = object->getObject("lp_vs_f64_relative_error"))
      for (const auto &[key, value] : *errors)
        if (std::optional<double> number = value.getAsNumber())
          reference.yardsticks[key.str()] = *number;
  return reference;
}

const TensorView *Reference::find(int64_t layer, llvm::StringRef name,
                                  llvm::StringRef suffix) const {
  return files.find(
      llvm::formatv("layers.{0}.{1}{2}", layer, name, suffix).str());
}

namespace {

using Pair = Reference::Pair;
using Pairs = std::map<std::string, Pair>;

std::optional<double> errorOf(const Pairs &pairs, const char *name) {
  auto pair = pairs.find(name);
  if (pair == pairs.end())
    return std::nullopt;
  return relativeError(pair->second.got, pair->second.expected);
}

/// Compares routing expert by expert: the order of equal scores is free.
void compareRouting(const Pairs &pairs, Comparison &row) {
  auto ids = pairs.find("topk_ids"), weights = pairs.find("topk_weights");
  if (ids == pairs.end())
    return;
  static const Pair kNone{};
  bool weighted = weights != pairs.end();
  const Pair &weight = weighted ? weights->second : kNone;
  size_t topK = ids->second.got.size() / std::max<int64_t>(row.tokens, 1);
  row.sameIds = true;
  if (weighted)
    row.weights = 0;
  for (int64_t token = 0; token < row.tokens; ++token) {
    Slots mine = slotsOf(ids->second.got, weight.got, token, topK);
    Slots theirs = slotsOf(ids->second.expected, weight.expected, token, topK);
    for (auto [a, b] : llvm::zip(mine, theirs)) {
      row.sameIds = *row.sameIds && a.first == b.first;
      if (weighted)
        row.weights = larger(*row.weights, std::abs(a.second - b.second));
    }
  }
}

} // namespace

Failure Reference::pair(int64_t layer, llvm::StringRef suffix,
                        const OutputTensor &output, Pairs &pairs) const {
  const TensorView *view = find(layer, output.name, suffix);
  // A block without shared experts has one output.
  if (!view && output.name == "experts_out")
    view = find(layer, "out", suffix);
  if (!view)
    return ok();
  if (view->shape != output.shape)
    return fail("reference tensor layers." + std::to_string(layer) + "." +
                output.name + suffix.str() + ": expected the run's shape");
  auto got = toDoubles(output.name, output.type, output.data.data(),
                       static_cast<int64_t>(output.data.size()));
  if (!got)
    return got.takeFailure();
  auto expected = toDoubles(output.name, view->type, view->data, view->bytes);
  if (!expected)
    return expected.takeFailure();
  pairs[output.name] = {std::move(*got), std::move(*expected)};
  return ok();
}

Result<Comparison>
Reference::compare(int64_t layer, llvm::StringRef input,
                   const std::vector<OutputTensor> &outputs) const {
  llvm::StringRef suffix =
      input.substr(std::min(input.find('.'), input.size()));
  Comparison row;
  row.layer = layer;
  Pairs pairs;
  for (const OutputTensor &output : outputs) {
    row.tokens = output.shape[0];
    if (Failure failure = pair(layer, suffix, output, pairs))
      return failure;
  }
  if (pairs.empty())
    return fail(llvm::formatv("nothing to compare: the reference has no "
                              "layers.{0}.out{1} and no other result for {2}",
                              layer, suffix, input)
                    .str());
  row.logits = errorOf(pairs, "router_logits");
  row.experts = errorOf(pairs, "experts_out");
  row.out = errorOf(pairs, "out");
  compareRouting(pairs, row);
  auto yardstick =
      yardsticks.find(llvm::formatv("layers.{0}{1}", layer, suffix).str());
  if (yardstick != yardsticks.end())
    row.yardstick = yardstick->second;
  return row;
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static std::string cell(std::optional<double> value, const char *format) {
  char text[32] = "-";
  if (value)
    std::snprintf(text, sizeof text, format, *value);
  return text;
}

static const char kRow[] = "{0,5} {1,6} {2,10} {3,5} {4,10} {5,12} {6,10} "
                           "{7,10} {8,6} {9,10}  {10,-9} {11}\n";

void cli::printHeader(llvm::raw_ostream &os) {
  os << llvm::formatv(kRow, "layer", "M", "logits", "ids", "weights",
                      "experts_out", "out", "lp", "ratio", "tokens/s",
                      "backend", "kernel");
}

bool cli::printRow(const Comparison &row, const Tolerances &tolerances,
                   llvm::raw_ostream &os) {
  const char *error = "%.3g";
  const char *ids = !row.sameIds ? "-" : *row.sameIds ? "same" : "DIFFER";
  os << llvm::formatv(
      kRow, row.layer, row.tokens, cell(row.logits, error), ids,
      cell(row.weights, error), cell(row.experts, error), cell(row.out, error),
      cell(row.yardstick, error), cell(row.ratio(), "%.2f"),
      cell(row.tokensPerSecond, "%.0f"), row.backend, row.kernel);
  if (!tolerances.all)
    return true;
  bool fits = true;
  auto check = [&](const char *what, auto value, auto allows) {
    bool allowed = value && allows(*value);
    if (!allowed)
      os << "      out of tolerance: " << what
         << (value ? "\n" : ", which the reference lacks\n");
    fits &= allowed;
  };
  auto within = [&](const Tolerance &tolerance) {
    return [&](double error) { return tolerance.allows(error, row.yardstick); };
  };
  check("topk_ids", row.sameIds, [](bool same) { return same; });
  check("topk_weights", row.weights,
        [](double error) { return error <= kWeightTolerance; });
  check("experts_out", row.experts, within(*tolerances.all));
  check("out", row.out,
        within(tolerances.out ? *tolerances.out : *tolerances.all));
  return fits;
}
