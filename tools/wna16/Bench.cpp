//===- Bench.cpp - wna16 bench --------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "DeviceBench.h"
#include "LayerBench.h"

#include "llvm/ADT/StringExtras.h"

using namespace wna16;
using namespace wna16::cli;

namespace {
struct Backend {
  llvm::StringRef name;
  const char *layout;
  decltype(runBench) *run;
};
} // namespace

/// A device's layouts begin with their backend's name; the CPU takes any.
static constexpr Backend kBackends[] = {
    {"cpu", "cpu_panels", runBench},
    {"marlin", "marlin", runDeviceBench},
    {"humming", "humming_wgmma", runDeviceBench},
};

/// Numbers separated by commas, all of them at least `least`; `count` of them
/// unless that is 0.
static Result<std::vector<int64_t>> numbersOf(llvm::StringRef option,
                                              llvm::StringRef text,
                                              int64_t least, size_t count) {
  std::vector<int64_t> numbers;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    int64_t number;
    if (part.getAsInteger(10, number) || number < least || number > INT32_MAX)
      return usage(option + ": expected numbers from " + llvm::Twine(least) +
                   " to " + llvm::Twine(INT32_MAX) + ", got '" + text + "'");
    numbers.push_back(number);
  }
  if (count && numbers.size() != count)
    return usage(option + ": expected " + llvm::Twine(count) +
                 " numbers, got " + llvm::Twine(numbers.size()));
  return numbers;
}

/// The layout of `name`, which holds codes that the backend reads.
static Result<const LayoutEntry *> layoutOf(const std::string &name,
                                            const Backend &backend) {
  std::vector<std::string> fast, slow;
  for (const LayoutEntry &entry : allLayouts()) {
    const bool isCpu = backend.run == runBench;
    if ((entry.codes4.empty() && entry.codes8.empty()) ||
        (!isCpu && !llvm::StringRef(entry.name).starts_with(backend.name)))
      continue;
    if (entry.name == name)
      return &entry;
    const bool isFast = !isCpu || entry.codeShape == CodeShape::Panels32 ||
                        entry.codeShape == CodeShape::Blocks32;
    (isFast ? fast : slow).emplace_back(entry.name);
  }
  std::string expected = llvm::join(fast, ", ");
  if (!slow.empty())
    expected += ", or without a fast kernel " + llvm::join(slow, ", ");
  return usage("--layout: expected " + expected + " for backend " +
               backend.name + ", got '" + name + "'");
}

static Result<BenchOptions> optionsOf(const Arguments &arguments,
                                      const Backend &backend) {
  BenchOptions options;
  Result<std::vector<int64_t>> shape =
      numbersOf("--shape", arguments.get("--shape"), 1, 4);
  if (!shape)
    return shape.takeFailure();
  options.experts = (*shape)[0];
  options.topK = (*shape)[1];
  options.hidden = (*shape)[2];
  options.width = (*shape)[3];
  if (arguments.has("--tokens")) {
    Result<std::vector<int64_t>> tokens =
        numbersOf("--tokens", arguments.get("--tokens"), 1, 0);
    if (!tokens)
      return tokens.takeFailure();
    options.tokens = *tokens;
  }
  Result<int64_t> threads = arguments.integer("--threads", 0, 1, 1024);
  if (!threads)
    return threads.takeFailure();
  options.threads = static_cast<int>(*threads);
  options.bits = arguments.get("--bits", "4") == "8" ? 8 : 4;
  Result<int64_t> group = groupOf(arguments);
  if (!group)
    return group.takeFailure();
  options.group = *group;
  options.element = *parseScalarType(arguments.get("--dtype", "bf16"));
  options.layout = arguments.get("--layout", backend.layout);
  Result<const LayoutEntry *> layout = layoutOf(options.layout, backend);
  if (!layout)
    return layout.takeFailure();
  options.zeroPoints = arguments.has("--zero-points") || (*layout)->needsZeros;
  if (backend.run == runDeviceBench && arguments.has("--threads"))
    return usage("--threads: expected backend cpu, got '" + backend.name + "'");
  return options;
}

static Result<int> run(const Arguments &arguments) {
  const std::string name = arguments.get("--backend", "cpu");
  const auto *backend = llvm::find_if(
      kBackends, [&](const Backend &b) { return b.name == name; });
  Result<BenchOptions> options = optionsOf(arguments, *backend);
  if (!options)
    return options.takeFailure();
  const bool json = arguments.has("--json");
  std::string heading = headingText();
  Result<BenchReport> report = backend->run(
      *options, [&](const BenchRow &row, const Ceilings &ceilings) {
        if (json)
          return;
        llvm::outs() << std::exchange(heading, "") << rowText(row, ceilings);
        llvm::outs().flush();
      });
  if (!report)
    return report.takeFailure();
  llvm::outs() << (json ? reportJson(*report) : ceilingsText(report->ceilings));
  return 0;
}

static constexpr Option kOptions[] = {
    {"--shape", "E,k,K,N", "experts, experts a token, hidden and expert size",
     "", true},
    {"--backend", "B", "whose kernels (default: cpu)", "cpu|marlin|humming"},
    {"--bits", "B", "of a code (default: 4)", "4|8"},
    kGroupOption,
    {"--zero-points", "", "codes with stored zero points"},
    {"--dtype", "TYPE", "activations: bf16, f16 or f32 (default: bf16)",
     "bf16|f16|f32"},
    {"--layout", "NAME", "of the weights (default: the backend's)"},
    {"--tokens", "M,..", "tokens of a call (default: 1,4,16,64,256,512)"},
    {"--threads", "T", "threads of a call (default: one per core)"},
    {"--json", "", "print the report as JSON, with these options"},
};

const Command cli::benchCommand = {
    "bench",
    "",
    "measure a layer of random experts against what the machine can do",
    "Weights come from memory and routing is random, as in a model. Times are\n"
    "medians. The floor is the greater of the bytes of the experts that a "
    "call\n"
    "touches over the fastest read from memory and its products over the "
    "fastest\n"
    "loop of f32 FMA or tensor instructions, all measured in the same run. "
    "The\n"
    "error is that of some tokens against f64. On the CPU, cpu_panels and\n"
    "cpu_blocked have fast kernels; the last column of a row names the kernel\n"
    "that ran. WNA16_ISA (portable, avx2, avx512, amx) asks for lesser ones.\n"
    "marlin and humming measure the current CUDA device, by replays of "
    "graphs.\n",
    kOptions,
    run,
};
