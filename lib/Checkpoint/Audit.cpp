//===- Audit.cpp - What a checkpoint really holds -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Audit.h"

#include "Format.h"

#include "Layout/Scalar.h"

#include <cmath>

using namespace wna16;

namespace {

/// What may be wrong with a number: with a scale all of it, with others what
/// comes last.
enum Oddity { kZero, kNegative, kNaN, kInfinite, kNumOddities };
const char *const kOddityNames[] = {"zero", "negative", "NaN", "infinite"};

std::optional<Oddity> oddityOf(float scale) {
  if (std::isnan(scale))
    return kNaN;
  if (std::isinf(scale))
    return kInfinite;
  if (scale == 0.0F)
    return kZero;
  if (scale < 0.0F)
    return kNegative;
  return std::nullopt;
}

/// Reports what is odd among the floats of a tensor. Weights and biases may be
/// zero or negative.
void auditFloats(const std::string &tensor, const TensorView &view, bool scales,
                 std::vector<Finding> &findings) {
  int64_t count[kNumOddities] = {};
  int64_t first[kNumOddities] = {};
  int64_t elements = view.bytes / sizeOf(view.type);
  for (int64_t i = 0; i < elements; ++i)
    if (std::optional<Oddity> oddity =
            oddityOf(loadFloat(view.type, view.data, i)))
      if (count[*oddity]++ == 0)
        first[*oddity] = i;
  for (int kind = scales ? kZero : kNaN; kind < kNumOddities; ++kind)
    if (count[kind] != 0)
      findings.push_back({true, tensor,
                          std::to_string(count[kind]) + " of " +
                              std::to_string(elements) +
                              (scales ? " scales are " : " elements are ") +
                              kOddityNames[kind] + ", the first is number " +
                              std::to_string(first[kind])});
}

/// Counts the values of packed fields.
std::vector<int64_t> histogram(const TensorView &view, int bits) {
  std::vector<int64_t> counts(size_t(1) << bits);
  uint32_t mask = (uint32_t(1) << bits) - 1;
  for (int64_t i = 0; i < view.bytes / 4; ++i) {
    uint32_t word = elementAt<uint32_t>(view, i);
    for (int shift = 0; shift < 32; shift += bits)
      ++counts[word >> shift & mask];
  }
  return counts;
}

/// Symmetric GPTQ: zero points are not used, but tell what the writer meant.
void auditUnusedZeros(const std::string &tensor, const TensorView &view,
                      const WeightSource &source,
                      std::vector<Finding> &findings) {
  int bits = source.spec.bits();
  int64_t middle = int64_t(1) << (bits - 1);
  bool plain = source.format.find("v2") != std::string::npos;
  int64_t expected = plain ? middle : middle - 1;
  if (view.type != ScalarType::I32)
    return;
  std::vector<int64_t> counts = histogram(view, bits);
  for (int64_t value = 0; value < int64_t(counts.size()); ++value)
    if (value != expected && counts[size_t(value)] != 0) {
      findings.push_back(
          {true, tensor,
           "stored zero points are " + std::to_string(value) + ", not " +
               std::to_string(expected) +
               "; they are not used: symmetric weights have the zero point " +
               std::to_string(middle)});
      return;
    }
}

/// Asymmetric GPTQ v1: a stored value of all ones is a zero point of 0, or was
/// borrowed from by a writer that subtracts from whole words.
void auditWrappedZeros(const std::string &tensor, const TensorView &view,
                       const WeightSpec &spec, std::vector<Finding> &findings) {
  std::vector<int64_t> counts = histogram(view, spec.bits());
  if (counts.back() != 0)
    findings.push_back(
        {false, tensor,
         std::to_string(counts.back()) +
             " zero points wrapped around when one was subtracted; if the "
             "writer subtracted from whole words, their neighbours are off by "
             "one"});
}

void auditPart(const SafeTensors &files, const WeightSpec &spec, Part part,
               const TensorPattern &pattern, std::vector<Finding> &findings) {
  bool dense = spec.code == CodeType::Dense;
  for (const std::string &name : pattern.names()) {
    const TensorView &view = *files.find(name);
    if (Failure failure = files.checkMapped(view))
      findings.push_back({true, name, failure.message});
    else if (part == Part::Scales || dense)
      auditFloats(name, view, !dense, findings);
    else if (part == Part::Zeros && spec.zeros == ZeroPoints::MinusOne)
      auditWrappedZeros(name, view, spec, findings);
  }
}

void auditWeight(const SafeTensors &files, const WeightSource &source,
                 std::vector<Finding> &findings) {
  const WeightSpec &spec = source.spec;
  Result<std::vector<StoredPart>> storage = storageOf(spec);
  for (size_t i = 0; storage && i < storage->size(); ++i)
    auditPart(files, spec, (*storage)[i].part, source.parts[i], findings);
  if (spec.code == CodeType::Dense || spec.zeros != ZeroPoints::None)
    return;
  for (std::string name : source.parts[0].names()) {
    size_t dot = name.rfind('.');
    name = name.substr(0, dot) + ".qzeros";
    if (const TensorView *view = files.find(name))
      auditUnusedZeros(name, *view, source, findings);
  }
}

/// Biases and the like.
void auditVector(const SafeTensors &files,
                 const std::optional<TensorPattern> &vector,
                 std::vector<Finding> &findings) {
  if (vector)
    auditPart(files, WeightSpec(), Part::Codes, *vector, findings);
}

void auditExperts(const SafeTensors &files, const ExpertsSource &experts,
                  std::vector<Finding> &findings) {
  auditWeight(files, experts.w13, findings);
  auditWeight(files, experts.w2, findings);
  auditVector(files, experts.bias13, findings);
  auditVector(files, experts.bias2, findings);
}

} // namespace

void wna16::auditLayer(const SafeTensors &files, const MoELayer &layer,
                       std::vector<Finding> &findings) {
  auditWeight(files, layer.router.weight, findings);
  auditVector(files, layer.router.bias, findings);
  auditVector(files, layer.router.correction, findings);
  auditVector(files, layer.router.expertScale, findings);
  auditExperts(files, layer.experts, findings);
  if (layer.shared)
    auditExperts(files, *layer.shared, findings);
  if (layer.sharedGate)
    auditWeight(files, *layer.sharedGate, findings);
  if (const auto &norms = layer.norms)
    for (const NormSource *norm :
         {&norms->router, &norms->experts, &norms->shared, &norms->expertsOut,
          &norms->sharedOut, &norms->out})
      auditVector(files, norm->weight, findings);
}
