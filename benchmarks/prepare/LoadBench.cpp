//===- LoadBench.cpp - How long prepared weights take to load -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens a compiled library with prepared weights many times, then calls it, and
// prints medians. With a checkpoint, the time of preparing at load beside it.
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace wna16;

static double millisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

/// The first function on one row of zeros.
static Failure callOnce(Module &module) {
  const ModuleFunction &function = module.functions().front();
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<uint8_t>> data;
  std::vector<wna16_tensor> tensors;
  shapes.reserve(function.arguments.size());
  for (const ModuleArgument &argument : function.arguments) {
    if (argument.role != ModuleArgument::Role::Input &&
        argument.role != ModuleArgument::Role::Output)
      continue;
    shapes.push_back(argument.shapeFor(1));
    int64_t bytes = sizeOf(argument.type);
    for (int64_t extent : shapes.back())
      bytes *= extent;
    data.emplace_back(static_cast<size_t>(bytes));
    tensors.push_back(
        makeTensor(data.back().data(), argument.type, shapes.back()));
  }
  return module.call(function, tensors);
}

static int report(const char *what, const Failure &failure) {
  std::fprintf(stderr, "%s: %s\n", what, failure.message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s LIB.so PREPARED [CHECKPOINT]\n", argv[0]);
    return 2;
  }
  constexpr int kRounds = 21;
  std::vector<double> opened, called;
  for (int round = 0; round < kRounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    Result<Module> module = Module::openPrepared(argv[1], argv[2]);
    if (!module)
      return report(argv[2], module.takeFailure());
    opened.push_back(millisecondsSince(start));
    start = std::chrono::steady_clock::now();
    if (Failure failure = callOnce(*module))
      return report(argv[1], failure);
    called.push_back(millisecondsSince(start));
  }
  double first = opened.front();
  std::sort(opened.begin(), opened.end());
  std::sort(called.begin(), called.end());
  std::printf("map prepared weights: first %.2f ms, median %.2f ms\n", first,
              opened[kRounds / 2]);
  std::printf("first call after it, one token: median %.2f ms\n",
              called[kRounds / 2]);
  if (argc == 3)
    return 0;
  auto start = std::chrono::steady_clock::now();
  Result<Module> module = Module::open(argv[1], argv[3]);
  if (!module)
    return report(argv[3], module.takeFailure());
  std::printf("prepare at load: %.0f ms\n", millisecondsSince(start));
  return 0;
}
