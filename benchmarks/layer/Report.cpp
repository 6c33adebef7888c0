//===- Report.cpp - What measuring a layer gives --------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include <algorithm>
#include <cstdio>

using namespace wna16;

template <typename... Values>
static std::string format(const char *text, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

//===----------------------------------------------------------------------===//
// Ceilings
//===----------------------------------------------------------------------===//

namespace {
struct Rate {
  double Ceilings::*value;
  const char *key, *label, *unit;
};
} // namespace

static constexpr Rate kRates[] = {
    {&Ceilings::readBytes, "read_gb_per_s", "memory", "GB/s"},
    {&Ceilings::copyBytes, "copy_gb_per_s", "copies", "GB/s"},
    {&Ceilings::fmaFlops, "fma_gflop_per_s", "f32 FMA", "GFLOP/s"},
    {&Ceilings::vnniOps, "vnni_gop_per_s", "int8 VNNI", "GOP/s"},
    {&Ceilings::tensorFlops, "tensor_gflop_per_s", "16-bit tensor", "GFLOP/s"},
};

void Ceilings::raise(const Ceilings &other) {
  for (const Rate &rate : kRates)
    this->*rate.value = std::max(this->*rate.value, other.*rate.value);
}

double Ceilings::floorSeconds(double bytes, double flops) const {
  const double arithmetic = std::max(fmaFlops, tensorFlops);
  return std::max(bytes / readBytes, arithmetic ? flops / arithmetic : 0);
}

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

double BenchRow::seconds() const {
  return medianOf(samples, [](const BenchSample &s) { return s.seconds; });
}

double BenchRow::bytesPerSecond() const {
  return medianOf(samples,
                  [](const BenchSample &s) { return s.bytes / s.seconds; });
}

double BenchRow::floorSeconds(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    return ceilings.floorSeconds(s.bytes, flops);
  });
}

double BenchRow::ratioToFloor(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    return s.seconds / ceilings.floorSeconds(s.bytes, flops);
  });
}

double BenchRow::ratioToNearFloor(const Ceilings &ceilings) const {
  return medianOf(samples, [&](const BenchSample &s) {
    Ceilings near = ceilings;
    near.readBytes = s.nearRead;
    return s.seconds / near.floorSeconds(s.bytes, flops);
  });
}

double BenchRow::nearReadBytes() const {
  return medianOf(samples, [](const BenchSample &s) { return s.nearRead; });
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string wna16::headingText() {
  return format("%8s %12s %8s %9s %12s %8s %8s %10s  %s\n", "tokens", "us",
                "GB/s", "GFLOP/s", "floor us", "x floor", "x near", "error",
                "kernel");
}

std::string wna16::rowText(const BenchRow &row, const Ceilings &ceilings) {
  return format("%8lld %12.1f %8.1f %9.1f %12.1f %8.2f %8.2f %10.1e  %s\n",
                static_cast<long long>(row.tokens), 1e6 * row.seconds(),
                1e-9 * row.bytesPerSecond(), 1e-9 * row.flops / row.seconds(),
                1e6 * row.floorSeconds(ceilings), row.ratioToFloor(ceilings),
                row.ratioToNearFloor(ceilings), row.error, row.kernel.c_str());
}

std::string wna16::ceilingsText(const Ceilings &ceilings) {
  std::string text = "ceilings:";
  const char *separator = " ";
  for (const Rate &rate : kRates)
    if (const double value = ceilings.*rate.value; value > 0) {
      text += separator;
      text += format("%s %.1f %s", rate.label, 1e-9 * value, rate.unit);
      separator = ", ";
    }
  return text + "\n";
}

static std::string optionsJson(const BenchOptions &options) {
  std::string text = format(
      "{\"shape\": [%lld, %lld, %lld, %lld], \"bits\": %d, \"group\": %lld, "
      "\"zero_points\": %s, \"dtype\": \"%s\", \"layout\": \"%s\"",
      static_cast<long long>(options.experts),
      static_cast<long long>(options.topK),
      static_cast<long long>(options.hidden),
      static_cast<long long>(options.width), options.bits,
      static_cast<long long>(options.group),
      options.zeroPoints ? "true" : "false",
      std::string(name(options.element)).c_str(), options.layout.c_str());
  if (options.threads)
    text += format(", \"threads\": %d", options.threads);
  return text + "}";
}

std::string wna16::reportJson(const BenchReport &report) {
  const Ceilings &ceilings = report.ceilings;
  std::string text =
      "{\"options\": " + optionsJson(report.options) + ",\n \"ceilings\": {";
  const char *separator = "";
  for (const Rate &rate : kRates) {
    text += separator;
    text += format("\"%s\": %.2f", rate.key, 1e-9 * (ceilings.*rate.value));
    separator = ", ";
  }
  text += "},\n \"rows\": [";
  separator = "\n  ";
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
