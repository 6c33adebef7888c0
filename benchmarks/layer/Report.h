//===- Report.h - What measuring a layer gives ------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_LAYER_REPORT_H
#define WNA16_BENCHMARKS_LAYER_REPORT_H

#include "Layout/Result.h"
#include "Layout/WeightSpec.h"

#include <functional>
#include <string>
#include <vector>

namespace wna16 {

struct BenchOptions {
  int64_t experts = 0;
  int64_t topK = 0;
  int64_t hidden = 0;
  int64_t width = 0;
  int bits = 4;
  int64_t group = 128;
  bool zeroPoints = false;
  /// Of activations, scales and results.
  ScalarType element = ScalarType::BF16;
  std::string layout;
  std::vector<int64_t> tokens = {1, 4, 16, 64, 256, 512};
  int threads = 0;     ///< 0: one per core; not of a device
  bool skewed = false; ///< every second token asks for expert 0
};

/// What the machine can do at most; 0 where it has no such unit.
struct Ceilings {
  double readBytes = 0;   ///< bytes a second from memory
  double copyBytes = 0;   ///< likewise, read and written
  double fmaFlops = 0;    ///< f32 operations a second, an FMA being two
  double vnniOps = 0;     ///< int8 operations a second, likewise
  double tensorFlops = 0; ///< of 16-bit products, likewise

  /// The best of both: what disturbs a measurement only makes it slower.
  void raise(const Ceilings &other);
  /// Seconds that no call can be faster than.
  double floorSeconds(double bytes, double flops) const;
};

/// One call.
struct BenchSample {
  double seconds;
  double bytes;    ///< stored, of the experts it touched
  double nearRead; ///< bytes a second from memory just before and after
};

/// Calls with one number of tokens.
struct BenchRow {
  int64_t tokens = 0;
  std::string kernel;
  double flops = 0; ///< of the products of one call
  double error = 0; ///< |y - f64| / |f64| of some tokens
  std::vector<BenchSample> samples;

  double seconds() const; ///< median
  double bytesPerSecond() const;
  /// What neither memory nor arithmetic could do faster, median.
  double floorSeconds(const Ceilings &ceilings) const;
  double ratioToFloor(const Ceilings &ceilings) const;
  /// The same, memory being as fast as it was just before and after each call:
  /// other machines that share it take a third away for seconds.
  double ratioToNearFloor(const Ceilings &ceilings) const;
  double nearReadBytes() const;
};

struct BenchReport {
  BenchOptions options; ///< `threads` being those that ran
  Ceilings ceilings;
  std::vector<BenchRow> rows;
};

/// Gets each row when it is there, with the ceilings so far.
using BenchProgress = std::function<void(const BenchRow &, const Ceilings &)>;

/// As text, with a line of headings first.
std::string headingText();
std::string rowText(const BenchRow &row, const Ceilings &ceilings);
std::string ceilingsText(const Ceilings &ceilings);
/// {"options": {..}, "ceilings": {..}, "rows": [..]}
std::string reportJson(const BenchReport &report);

} // namespace wna16

#endif // WNA16_BENCHMARKS_LAYER_REPORT_H
