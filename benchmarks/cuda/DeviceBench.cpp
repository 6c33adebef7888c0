//===- DeviceBench.cpp - The speed of a layer on a device -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceBench.h"

#include "DeviceKernels.h"
#include "DeviceLayer.h"

using namespace wna16;

static Failure measureRow(DeviceLayer &layer, int64_t tokens,
                          const Ceilings &ceilings, BenchRow &row) {
  row.tokens = tokens;
  row.flops = layer.flops(tokens);
  if (Failure bad = layer.setTokens(tokens))
    return bad;
  row.kernel = layer.kernelName();
  // What is not right is not timed.
  Result<double> error = layer.check();
  if (!error)
    return error.takeFailure();
  row.error = *error;
  Result<std::vector<double>> times = layer.time();
  if (!times)
    return times.takeFailure();
  for (double seconds : *times)
    row.samples.push_back({seconds, layer.touchedBytes(), ceilings.readBytes});
  return ok();
}

Result<BenchReport> wna16::runDeviceBench(const BenchOptions &options,
                                          const BenchProgress &progress) {
  Result<std::unique_ptr<DeviceLayer>> layer = DeviceLayer::create(options);
  if (!layer)
    return layer.takeFailure();
  Result<Ceilings> ceilings = measureDeviceCeilings();
  if (!ceilings)
    return ceilings.takeFailure();
  BenchReport report;
  report.options = options;
  report.ceilings = *ceilings;
  for (int64_t tokens : options.tokens) {
    BenchRow row;
    if (Failure bad = measureRow(**layer, tokens, report.ceilings, row))
      return bad;
    progress(row, report.ceilings);
    report.rows.push_back(std::move(row));
  }
  return report;
}
