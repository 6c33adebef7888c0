//===- FusedExperts.cpp - The table of fused experts on a GPU -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks and times the points of docs/gpu-performance.md and prints its rows.
//
//===----------------------------------------------------------------------===//

#include "DeviceBench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace wna16;

namespace {

constexpr int64_t kPeerTokens[] = {1,   4,   8,    16,   32,   64,   128,
                                   256, 512, 1024, 2048, 4096, 16384};

struct Shape {
  const char *name, *title;
  int64_t experts, topK, hidden, width;
  /// Microseconds of the best peer, by kPeerTokens; 0: not known.
  double peers[std::size(kPeerTokens)];
};

// clang-format off
constexpr Shape kShapes[] = {
    {"qwen3", "Qwen3-30B-A3B", 128, 8, 2048, 768,
     {26.1, 42.6, 62.0, 85.4, 110, 120, 141, 166, 229, 296, 436, 839, 2684}},
    {"ds_tp8", "DeepSeek-V3 TP8", 256, 8, 7168, 256,
     {27.6, 55.4, 80.8, 125, 184, 245, 283, 341, 417, 596, 781, 1214, 3918}},
    {"qwen3next", "Qwen3-Next", 512, 10, 2048, 512,
     {27.7, 43.2, 62.1, 98.0, 154, 222, 276, 318, 364, 434, 624, 891, 2531}},
    {"mixtral", "Mixtral", 8, 2, 4096, 14336,
     {78.0, 164, 206, 233, 267, 289, 409, 467, 798, 1403, 2775, 5093, 19097}},
    {"kimi_ep", "Kimi-K2 EP", 48, 8, 7168, 2048,
     {81.0, 188, 0, 330, 0, 413, 0, 688, 0, 1691, 0, 5273, 20790}},
};

struct Scheme {
  const char *name, *layout;
  int bits;
  int64_t group;
  bool zeroPoints;
  ScalarType element;
};

constexpr Scheme kSchemes[] = {
    {"w4", "marlin", 4, 128, false, ScalarType::BF16},
    {"w4f16", "marlin", 4, 128, false, ScalarType::F16},
    {"awq", "marlin", 4, 128, true, ScalarType::BF16},
    {"w8", "marlin", 8, 128, false, ScalarType::BF16},
    {"wgmma", "humming_wgmma", 4, 128, false, ScalarType::BF16},
    {"g32", "marlin", 4, 32, false, ScalarType::BF16},
    {"g64", "marlin", 4, 64, false, ScalarType::BF16},
    {"channel", "marlin", 4, -1, false, ScalarType::BF16},
};
// clang-format on

/// Of the relative error.
double boundOf(ScalarType element) {
  return element == ScalarType::BF16 ? 5e-3 : 8e-4;
}

double peerOf(const Shape &shape, const Scheme &scheme, int64_t tokens) {
  const auto *at =
      std::find(std::begin(kPeerTokens), std::end(kPeerTokens), tokens);
  if (&scheme != kSchemes || at == std::end(kPeerTokens))
    return 0;
  return shape.peers[at - kPeerTokens];
}

void printRow(const Shape &shape, const Scheme &scheme, bool skewed,
              const BenchRow &row, const Ceilings &ceilings) {
  const double seconds = row.seconds();
  char peer[64] = " | ";
  if (const double best = peerOf(shape, scheme, row.tokens); best > 0)
    std::snprintf(peer, sizeof peer, "%.1f | %.2f", best,
                  best * 1e-6 / seconds);
  const bool right = row.error <= boundOf(scheme.element);
  std::printf("| %s | %s%s | %lld | %.2f | %.2f | %.0f | %.0f | %s | %.2e%s | "
              "%s |\n",
              shape.title, scheme.name, skewed ? ", skewed" : "",
              static_cast<long long>(row.tokens), 1e6 * seconds,
              row.ratioToFloor(ceilings), 1e-9 * row.bytesPerSecond(),
              1e-12 * row.flops / seconds, peer, row.error,
              right ? "" : " WRONG", row.kernel.c_str());
  std::fflush(stdout);
}

/// Whether everything was right.
bool measure(const Shape &shape, const Scheme &scheme,
             const std::vector<int64_t> &tokens, bool skewed, Ceilings &best) {
  BenchOptions options;
  options.experts = shape.experts;
  options.topK = shape.topK;
  options.hidden = shape.hidden;
  options.width = shape.width;
  options.bits = scheme.bits;
  options.group = scheme.group;
  options.zeroPoints = scheme.zeroPoints;
  options.element = scheme.element;
  options.layout = scheme.layout;
  options.tokens = tokens;
  options.skewed = skewed;
  bool right = true;
  Result<BenchReport> report = runDeviceBench(
      options, [&](const BenchRow &row, const Ceilings &ceilings) {
        best.raise(ceilings);
        right &= row.error <= boundOf(scheme.element);
        printRow(shape, scheme, skewed, row, best);
      });
  if (!report)
    std::fprintf(stderr, "%s, %s: %s\n", shape.name, scheme.name,
                 report.message().c_str());
  return report && right;
}

std::vector<std::string> split(const char *text) {
  std::vector<std::string> parts(1);
  for (; *text; ++text)
    if (*text == ',')
      parts.emplace_back();
    else
      parts.back() += *text;
  return parts;
}

template <typename Rows>
const auto &find(const Rows &rows, const std::string &name) {
  for (const auto &row : rows)
    if (name == row.name)
      return row;
  std::fprintf(stderr, "no such name: %s\n", name.c_str());
  std::exit(2);
}

} // namespace

/// Arguments, any number of times: shapes, numbers of tokens and schemes, each
/// separated by commas, and "even" or "skew" for every second token to one
/// expert.
int main(int argc, char **argv) {
  if (argc < 5 || argc % 4 != 1) {
    std::fprintf(stderr, "usage: %s {SHAPES TOKENS SCHEMES even|skew} ...\n",
                 argv[0]);
    return 2;
  }
  bool right = true;
  Ceilings ceilings;
  for (int at = 1; at < argc; at += 4)
    for (const std::string &shape : split(argv[at]))
      for (const std::string &scheme : split(argv[at + 2])) {
        std::vector<int64_t> tokens;
        for (const std::string &count : split(argv[at + 1]))
          tokens.push_back(std::atoll(count.c_str()));
        right &= measure(find(kShapes, shape), find(kSchemes, scheme), tokens,
                         !std::strcmp(argv[at + 3], "skew"), ceilings);
      }
  std::fputs(ceilingsText(ceilings).c_str(), stdout);
  return right ? 0 : 1;
}
