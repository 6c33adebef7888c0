//===- Moves.cpp - Moves between layouts on a device against a copy -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rates of moving the weights of one layer of Qwen3-30B-A3B and of Mixtral-8x7B
// between every ordered pair of 4-bit and of 8-bit layouts, and of moves that
// change more than the layout, as CSV for benchmarks/layout/moves-table.
// `ratio` is bytes read and written per second, scales and zero points
// included, by the rate of a device-to-device copy of the target's bytes, run
// in turn; medians. A call is captured once and replayed, so that what the host
// does to plan it is not part of the time; it is in `host_us`.
//
//===----------------------------------------------------------------------===//

#include "../layout/MoveCases.h"

#include "Layout/Move.h"
#include "Runtime/DType.h"
#include "Runtime/Weight.h"
#include "Runtime/wna16_cuda.h"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

using namespace wna16;

namespace {

constexpr MoveCase kShapes[] = {{"qwen3 w13", 128, 2048, 2, 768},
                                {"qwen3 w2", 128, 768, 1, 2048},
                                {"mixtral w13", 8, 4096, 2, 14336},
                                {"mixtral w2", 8, 14336, 1, 4096}};
constexpr int kRuns = 15;

void check(cudaError_t error) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

/// Memory for each part of any weight of a shape.
class Memory {
public:
  /// `bytes` for codes, as many for all side tensors together.
  explicit Memory(int64_t bytes) {
    std::vector<uint64_t> random(static_cast<size_t>(bytes / 8));
    std::mt19937_64 engine(1);
    for (uint64_t &word : random)
      word = engine();
    for (int part = 0; part < kNumParts; ++part) {
      const auto size = static_cast<size_t>(part ? bytes / 4 : bytes);
      check(cudaMalloc(&data[part], size));
      // Scales of about one; zero points that four bits hold.
      check(cudaMemset(data[part], part == 1 ? 0x3c : 0x03, size));
    }
    check(cudaMemcpy(data[0], random.data(), static_cast<size_t>(bytes),
                     cudaMemcpyHostToDevice));
  }

  void shuffleGroups(const WeightSpec &spec) {
    const std::vector<int32_t> groups = shuffledGroups(spec);
    check(cudaMemcpy(data[static_cast<int>(Part::GroupIndex)], groups.data(),
                     4 * groups.size(), cudaMemcpyHostToDevice));
  }
  ~Memory() {
    for (void *part : data)
      cudaFree(part);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  void *data[kNumParts] = {};
};

/// The tensors of a call, for one weight after the other.
struct Tensors {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<wna16_tensor> views;
  int64_t bytes = 0;

  Tensors() { shapes.reserve(2 * kNumParts); }
  int64_t add(const WeightSpec &spec, const Memory &memory) {
    views.resize(views.size() + kNumParts);
    int64_t added = 0;
    const Result<std::vector<StoredPart>> storage = storageOf(spec);
    for (const StoredPart &part : *storage) {
      const auto index = static_cast<size_t>(part.part);
      shapes.push_back(part.shape);
      wna16_tensor &view = views[views.size() - kNumParts + index];
      view.data = memory.data[index];
      view.device = {2, 0};
      view.ndim = static_cast<int32_t>(part.shape.size());
      view.dtype = dtypeOf(part.type);
      view.shape = shapes.back().data();
      added += part.bytes();
    }
    bytes += added;
    return added;
  }
};

/// One pair; the stream is captured and replayed.
class Run {
public:
  Run(const WeightSpec &source, const WeightSpec &target, const Memory &from,
      const Memory &to)
      : from(from), to(to) {
    plan.abi_version = WNA16_ABI_VERSION;
    plan.source = weightOf(source);
    plan.target = weightOf(target);
    tensors.add(source, from);
    copied = tensors.add(target, to);
    check(cudaStreamCreate(&stream));
    for (cudaEvent_t &event : events)
      check(cudaEventCreate(&event));
  }
  ~Run() {
    for (cudaEvent_t event : events)
      cudaEventDestroy(event);
    cudaGraphExecDestroy(graph);
    cudaStreamDestroy(stream);
  }
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  void measure(const std::string &name) {
    call(); // loads kernels
    const double hostUs = call();
    cudaGraph_t captured;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call();
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiate(&graph, captured, 0));
    check(cudaGraphDestroy(captured));
    std::vector<float> moves, copies;
    for (int run = 0; run < kRuns; ++run) {
      copies.push_back(timeOf([&] {
        check(cudaMemcpyAsync(to.data[0], from.data[0],
                              static_cast<size_t>(copied),
                              cudaMemcpyDeviceToDevice, stream));
      }));
      moves.push_back(timeOf([&] { check(cudaGraphLaunch(graph, stream)); }));
    }
    const double us = 1e3 * median(moves);
    const double rate = static_cast<double>(tensors.bytes) / us / 1e3;
    const double copy =
        2 * static_cast<double>(copied) / (1e3 * median(copies)) / 1e3;
    std::printf("%s,%.2f,%.0f,%.0f,%.3f,%.0f\n", name.c_str(), us, rate, copy,
                rate / copy, hostUs);
    std::fflush(stdout);
  }

private:
  double call() {
    wna16_status_clear();
    const auto start = std::chrono::steady_clock::now();
    const wna16_status status = wna16_cuda_convert(
        &plan, tensors.views.data(), static_cast<int64_t>(tensors.views.size()),
        nullptr, 0, stream);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    if (status != WNA16_OK) {
      std::fprintf(stderr, "%s\n", wna16_status_message());
      std::exit(1);
    }
    return took.count();
  }

  template <typename Work>
  float timeOf(Work work) {
    check(cudaEventRecord(events[0], stream));
    work();
    check(cudaEventRecord(events[1], stream));
    check(cudaEventSynchronize(events[1]));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    return milliseconds;
  }

  const Memory &from, &to;
  wna16_convert_plan plan = {};
  Tensors tensors;
  int64_t copied = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t events[2] = {};
  cudaGraphExec_t graph = nullptr;
};

/// Times what moves of one shape are asked for by name.
class Shape {
public:
  Shape(const MoveCase &shape, std::string gpu, std::string only)
      : shape(shape), gpu(std::move(gpu)), only(std::move(only)),
        from(3 * codeBytes(shape)), to(3 * codeBytes(shape)) {}

  void measurePairs(int bits) {
    for (const LayoutEntry &source : allLayouts())
      for (const LayoutEntry &target : allLayouts()) {
        const bool both =
            bits == 4 ? !source.codes4.empty() && !target.codes4.empty()
                      : !source.codes8.empty() && !target.codes8.empty();
        if (!both)
          continue;
        WeightSpec spec = specOf(target, shape);
        if (source.group)
          spec.group = *source.group;
        WeightSpec origin = sourceOf(source, spec);
        if (bits == 8)
          origin.code = spec.code = CodeType::U8B128;
        measure(bits == 4 ? "" : " in 8 bits", origin, spec);
      }
  }

  void measureChanges() {
    for (const MoveChange &change : kMoveChanges) {
      const auto [source, target] = change.specs(shape);
      if (source.actOrder == ActOrder::Index)
        from.shuffleGroups(source);
      measure(std::string(": ") + change.what, source, target);
    }
  }

private:
  /// Of 4-bit codes; as much again for 8-bit ones, and for all side tensors.
  static int64_t codeBytes(const MoveCase &shape) {
    return shape.experts * shape.input * shape.halves * shape.output / 2;
  }

  void measure(const std::string &what, const WeightSpec &source,
               const WeightSpec &target) {
    const std::string name = gpu + "/" + shape.model + what + "/" +
                             std::string(source.layout->name) + "/" +
                             std::string(target.layout->name);
    if (name.find(only) != std::string::npos &&
        checkMove(source, target).message.empty())
      Run(source, target, from, to).measure(name);
  }

  const MoveCase &shape;
  const std::string gpu, only;
  Memory from, to;
};

} // namespace

int main(int argc, char **argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  std::string gpu = device.name;
  for (char &c : gpu)
    c = c == ' ' || c == '/' ? '-' : c;
  std::printf("name,us,GB/s,copy,ratio,host_us\n");
  for (const MoveCase &shape : kShapes) {
    Shape moves(shape, gpu, only);
    moves.measurePairs(4);
    moves.measurePairs(8);
    moves.measureChanges();
  }
}
