//===- LayerBench.cpp - The speed of a layer of experts -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerBench.h"

#include "BenchLayer.h"
#include "Ceilings.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

using namespace wna16;

/// Seconds of a call.
static double timeCall(BenchLayer &layer, int64_t index, Failure &bad) {
  const auto begin = std::chrono::steady_clock::now();
  bad = layer.call(index);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Calls until there are enough of them and they have taken long enough, with
/// reads from memory in between.
static Failure measureRow(BenchLayer &layer, int64_t tokens, BenchRow &row) {
  constexpr size_t kLeastCalls = 9;
  constexpr double kLeastSeconds = 1.0, kSecondsBetweenReads = 0.02;
  row.tokens = tokens;
  row.flops = layer.flops(tokens);
  if (Failure bad = layer.setTokens(tokens))
    return bad;
  row.kernel = layer.kernelName();
  Failure bad;
  // Touches the workspace for the first time.
  timeCall(layer, 0, bad);
  double total = 0;
  double before = measureReadNow(layer.threads());
  for (int64_t call = 1;
       !bad && (row.samples.size() < kLeastCalls || total < kLeastSeconds);) {
    const size_t first = row.samples.size();
    for (const double until = total + kSecondsBetweenReads;
         !bad && total < until; ++call) {
      const double seconds = timeCall(layer, call, bad);
      total += seconds;
      row.samples.push_back({seconds, layer.touchedBytes(call), 0});
    }
    const double after = measureReadNow(layer.threads());
    for (size_t i = first; i < row.samples.size(); ++i)
      row.samples[i].nearRead = std::max(before, after);
    before = after;
  }
  row.error = layer.errorOfToken(tokens / 2);
  return bad;
}

static Result<BenchReport> measure(const BenchOptions &options,
                                   const BenchProgress &progress) {
  Result<std::unique_ptr<BenchLayer>> layer = BenchLayer::create(options);
  if (!layer)
    return layer.takeFailure();
  BenchReport report;
  report.options = options;
  report.options.threads = (*layer)->threads();
  report.ceilings = measureCeilings((*layer)->threads());
  for (int64_t tokens : options.tokens) {
    BenchRow row;
    if (Failure bad = measureRow(**layer, tokens, row))
      return bad;
    // The machine may have been disturbed the first time.
    report.ceilings.raise(measureCeilings((*layer)->threads()));
    progress(row, report.ceilings);
    report.rows.push_back(std::move(row));
  }
  return report;
}

Result<BenchReport> wna16::runBench(const BenchOptions &options,
                                    const BenchProgress &progress) {
  try {
    return measure(options, progress);
  } catch (const std::bad_alloc &) {
    return fail("out of memory for " + std::to_string(options.experts) +
                " experts of " + std::to_string(options.hidden) + " x " +
                std::to_string(options.width) + " and " +
                std::to_string(*std::max_element(options.tokens.begin(),
                                                 options.tokens.end())) +
                " tokens");
  } catch (const std::system_error &error) {
    return fail("cannot start " + std::to_string(options.threads) +
                " threads: " + error.code().message());
  }
}
