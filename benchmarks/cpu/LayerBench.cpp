//===- LayerBench.cpp - The speed of a layer of experts -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerBench.h"

#include "BenchLayer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

template <typename Of>
static double medianOf(const std::vector<BenchSample> &samples, Of of) {
  std::vector<double> values;
  for (const BenchSample &sample : samples)
    values.push_back(of(sample));
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? 0 : *middle;
}

static double floorOf(const BenchSample &sample, double flops,
                      const Ceilings &ceilings) {
  return std::max(sample.bytes / ceilings.readBytes,
                  ceilings.fmaFlops ? flops / ceilings.fmaFlops : 0);
}

double BenchRow::seconds() const {
  return medianOf(samples, [](const BenchSample &s) { return s.seconds; });
}

double BenchRow::bytesPerSecond() const {
  return medianOf(samples,
                  [](const BenchSample &s) { return s.bytes / s.seconds; });
}

double BenchRow::floorSeconds(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    return floorOf(s, flops, ceilings);
  });
}

double BenchRow::ratioToFloor(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    return s.seconds / floorOf(s, flops, ceilings);
  });
}

double BenchRow::ratioToNearFloor(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    Ceilings near = ceilings;
    near.readBytes = s.nearRead;
    return s.seconds / floorOf(s, flops, near);
  });
}

double BenchRow::nearReadBytes() const {
  return medianOf(samples, [](const BenchSample &s) { return s.nearRead; });
}

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

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

Result<BenchReport> wna16::runBench(
    const BenchOptions &options,
    const std::function<void(const BenchRow &, const Ceilings &)> &progress) {
  Result<std::unique_ptr<BenchLayer>> layer = BenchLayer::create(options);
  if (!layer)
    return layer.takeFailure();
  BenchReport report;
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

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

template <typename... Values>
static std::string format(const char *text, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

std::string wna16::headingText() {
  return format("%8s %12s %8s %8s %12s %8s %8s %10s  %s\n", "tokens", "us",
                "GB/s", "GFLOP/s", "floor us", "x floor", "x near", "error",
                "kernel");
}

std::string wna16::rowText(const BenchRow &row, const Ceilings &ceilings) {
  return format("%8lld %12.1f %8.1f %8.1f %12.1f %8.2f %8.2f %10.1e  %s\n",
                static_cast<long long>(row.tokens), 1e6 * row.seconds(),
                1e-9 * row.bytesPerSecond(), 1e-9 * row.flops / row.seconds(),
                1e6 * row.floorSeconds(ceilings), row.ratioToFloor(ceilings),
                row.ratioToNearFloor(ceilings), row.error, row.kernel.c_str());
}

std::string wna16::ceilingsText(const Ceilings &ceilings) {
  return format("ceilings: memory %.1f GB/s, f32 FMA %.1f GFLOP/s, int8 VNNI "
                "%.1f GOP/s\n",
                1e-9 * ceilings.readBytes, 1e-9 * ceilings.fmaFlops,
                1e-9 * ceilings.vnniOps);
}

std::string wna16::reportJson(const BenchReport &report) {
  const Ceilings &ceilings = report.ceilings;
  std::string text = format(
      "{\"ceilings\": {\"read_gb_per_s\": %.2f, \"fma_gflop_per_s\": %.2f, "
      "\"vnni_gop_per_s\": %.2f},\n \"rows\": [",
      1e-9 * ceilings.readBytes, 1e-9 * ceilings.fmaFlops,
      1e-9 * ceilings.vnniOps);
  const char *separator = "\n  ";
  for (const BenchRow &row : report.rows) {
    text += separator;
    text += format(
        "{\"tokens\": %lld, \"time_us\": %.2f, \"gb_per_s\": %.2f, "
        "\"gflop_per_s\": %.2f, \"floor_us\": %.2f, \"ratio_to_floor\": %.3f, "
        "\"near_read_gb_per_s\": %.2f, \"ratio_to_near_floor\": %.3f, "
        "\"error\": %.3e, \"kernel\": \"%s\"}",
        static_cast<long long>(row.tokens), 1e6 * row.seconds(),
        1e-9 * row.bytesPerSecond(), 1e-9 * row.flops / row.seconds(),
        1e6 * row.floorSeconds(ceilings), row.ratioToFloor(ceilings),
        1e-9 * row.nearReadBytes(), row.ratioToNearFloor(ceilings), row.error,
        row.kernel.c_str());
    separator = ",\n  ";
  }
  return text + "]}\n";
}
