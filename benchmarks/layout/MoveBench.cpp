//===- MoveBench.cpp - Moves between layouts against memcpy ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rates of moving a w13 weight of Qwen3-30B-A3B and of Mixtral-8x7B between
// every ordered pair of layouts, and of moves that change more than the layout,
// on one thread. Weights are larger than the caches together: experts are moved
// one after the other. `ratio` is bytes read and written per second, scales and
// zero points included, by the rate of memcpy, run in turn on the same codes;
// medians.
//
//===----------------------------------------------------------------------===//

#include "../Main.h"
#include "MoveCases.h"

#include "Layout/Isa.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

using namespace wna16;

namespace {

/// Enough experts for 50 MB of codes a side.
constexpr MoveCase kShapes[] = {{"qwen3", 32, 2048, 2, 768},
                                {"mixtral", 1, 4096, 2, 14336}};

struct Free {
  void operator()(uint8_t *pointer) const { std::free(pointer); }
};

/// A stored weight in page-aligned memory, written to once.
class Stored {
public:
  explicit Stored(const WeightSpec &of) : spec(of) {
    Result<std::vector<StoredPart>> storage = storageOf(spec);
    if (!storage)
      return;
    std::mt19937_64 random(1);
    for (const StoredPart &part : *storage) {
      int64_t size = (part.bytes() + 4095) / 4096 * 4096;
      memory.emplace_back(
          static_cast<uint8_t *>(std::aligned_alloc(4096, size)));
      fill(part, memory.back().get(), size, random);
      if (part.part == Part::GroupIndex)
        std::memcpy(memory.back().get(), shuffledGroups(spec).data(),
                    static_cast<size_t>(part.bytes()));
      buffers.part[static_cast<int64_t>(part.part)] = memory.back().get();
      bytes += part.bytes();
    }
  }

  WeightSpec spec;
  WeightBuffers buffers;
  int64_t bytes = 0;

private:
  /// Random codes; scales of one; zero points that four bits hold.
  static void fill(const StoredPart &part, uint8_t *data, int64_t size,
                   std::mt19937_64 &random) {
    if (part.part == Part::Scales) {
      std::memset(data, 0x3c, size);
      return;
    }
    uint64_t mask = part.part == Part::Zeros ? 0x0707070707070707 : ~0ull;
    for (int64_t at = 0; at < size; at += 8) {
      uint64_t word = random() & mask;
      std::memcpy(data + at, &word, 8);
    }
  }

  std::vector<std::unique_ptr<uint8_t, Free>> memory;
};

template <typename Work>
double secondsOf(Work work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Copies the codes of one weight over those of another; the bytes read and
/// written.
int64_t copyCodes(const Stored &from, Stored &to) {
  int64_t bytes = from.spec.rows() * from.spec.input / 2;
  auto *in = from.buffers.get<uint8_t>(Part::Codes);
  auto *out = to.buffers.get<uint8_t>(Part::Codes);
  for (int64_t expert = 0; expert < from.spec.experts; ++expert)
    std::memcpy(out + expert * bytes, in + expert * bytes,
                static_cast<size_t>(bytes));
  return 2 * bytes * from.spec.experts;
}

void moves(benchmark::State &state, const WeightSpec &from,
           const WeightSpec &target, Isa isa) {
  if (!setIsa(isa)) {
    state.SkipWithError("this machine has not got the instruction set");
    return;
  }
  if (Failure bad = checkMove(from, target)) {
    state.SkipWithError(bad.message.c_str());
    return;
  }
  Stored source(from), result(target);
  int64_t copied = 0;
  std::vector<double> copies, times;
  for (auto _ : state) {
    copies.push_back(secondsOf([&] { copied = copyCodes(source, result); }));
    times.push_back(secondsOf([&] {
      if (Failure bad = moveWeight(source.spec, source.buffers, target,
                                   result.buffers, {0, target.experts}))
        state.SkipWithError(bad.message.c_str());
    }));
  }
  if (times.empty())
    return;
  double rate =
      static_cast<double>(source.bytes + result.bytes) / median(times);
  double copy = static_cast<double>(copied) / median(copies);
  state.counters["GB/s"] = rate / 1e9;
  state.counters["memcpy"] = copy / 1e9;
  state.counters["ratio"] = rate / copy;
}

/// `what`: the instruction set, the model and what changes.
void registerMove(const std::string &what, const WeightSpec &source,
                  const WeightSpec &target, Isa isa) {
  std::string name = what + "/" + std::string(source.layout->name) + "/" +
                     std::string(target.layout->name);
  benchmark::RegisterBenchmark(name.c_str(), moves, source, target, isa)
      ->Iterations(isa == Isa::Portable ? 1 : 7)
      ->Unit(benchmark::kMillisecond);
}

void registerPairs(const std::string &what, const MoveCase &shape, Isa isa) {
  for (const LayoutEntry &from : allLayouts())
    for (const LayoutEntry &to : allLayouts()) {
      if (from.codes4.empty() || to.codes4.empty())
        continue;
      WeightSpec target = specOf(to, shape);
      if (from.group)
        target.group = *from.group;
      registerMove(what, sourceOf(from, target), target, isa);
    }
}

void registerChanges(const std::string &what, const MoveCase &shape, Isa isa) {
  for (const MoveChange &change : kMoveChanges) {
    auto [source, target] = change.specs(shape);
    registerMove(what + ": " + change.what, source, target, isa);
  }
}

} // namespace

void wna16::registerBenchmarks() {
  for (Isa isa : {Isa::AVX512, Isa::AVX2, Isa::Portable})
    for (const MoveCase &shape : kShapes) {
      std::string what = std::string(name(isa)) + "/" + shape.model;
      registerPairs(what, shape, isa);
      registerChanges(what, shape, isa);
    }
}
