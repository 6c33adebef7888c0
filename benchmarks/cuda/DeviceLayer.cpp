//===- DeviceLayer.cpp - A layer of random experts on a device ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceLayer.h"

#include "DeviceKernels.h"
#include "Layout/Catalogue.h"
#include "Layout/Scalar.h"

#include <algorithm>
#include <cmath>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The runtime's entry points for a layout.
struct DeviceLayer::Entry {
  const char *layout;
  wna16_kernel call;
  int64_t (*workspace)(const void *plan, int64_t tokens);
  const char *(*kernel)(const void *plan, int64_t tokens);
};

#define WNA16_ENTRY(LAYOUT, NAME)                                              \
  {LAYOUT, NAME##_fused_experts, NAME##_fused_experts_workspace,               \
   NAME##_fused_experts_kernel}
const DeviceLayer::Entry DeviceLayer::kEntries[] = {
    WNA16_ENTRY("marlin", wna16_cuda_marlin),
    WNA16_ENTRY("humming_mma", wna16_cuda_humming),
    WNA16_ENTRY("humming_wgmma", wna16_cuda_humming),
};
#undef WNA16_ENTRY

WeightBuffers DeviceLayer::WeightMemory::buffers() const {
  WeightBuffers result;
  for (size_t i = 0; i < parts.size(); ++i)
    result.part[i] = parts[i].data();
  return result;
}

/// Any bits are codes and zero points; scales keep values of about the inputs'
/// size.
Result<DeviceLayer::WeightMemory>
DeviceLayer::makeWeight(const BenchWeight &weight) {
  const WeightSpec &spec = weight.spec;
  const auto scale =
      static_cast<float>(1 / (std::sqrt(static_cast<double>(spec.input)) *
                              (1 << (spec.bits() - 2))));
  WeightMemory result;
  for (const StoredPart &part : weight.stored) {
    const int64_t bytes = (part.bytes() + 7) / 8 * 8;
    Result<DeviceMemory> memory = DeviceMemory::create(bytes);
    if (!memory)
      return memory.takeFailure();
    if (part.part == Part::Scales)
      WNA16_TRY_CUDA(fillValues(spec.scale, memory->data(), part.elements(),
                                random(), 0.5f * scale, 1.5f * scale));
    else
      WNA16_TRY_CUDA(fillBits(memory->data(), bytes, random()));
    result.parts[static_cast<size_t>(part.part)] = std::move(*memory);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The layer
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<DeviceLayer>>
DeviceLayer::create(const BenchOptions &options) {
  wna16_status_clear();
  if (wna16_cuda_capability() < 0)
    return fail(std::string("no device to run on: ") + wna16_status_message());
  const auto *entry =
      std::find_if(std::begin(kEntries), std::end(kEntries),
                   [&](const Entry &e) { return options.layout == e.layout; });
  if (entry == std::end(kEntries))
    return fail("expected layout marlin, humming_mma or humming_wgmma on a "
                "device, got " +
                options.layout);
  if (sizeOf(options.element) != 2)
    return fail("expected bf16 or f16 on a device, got " +
                std::string(name(options.element)));
  if (options.bits == 8 && options.zeroPoints)
    return fail("expected codes of 4 bits with stored zero points on a device, "
                "got 8");
  Result<LayerPlan> plan = LayerPlan::create(options);
  if (!plan)
    return plan.takeFailure();
  std::unique_ptr<DeviceLayer> result(
      new DeviceLayer(options, std::move(*plan), *entry));
  if (Failure bad = result->init())
    return bad;
  return result;
}

Failure DeviceLayer::init() {
  constexpr size_t kMostCopies = 8;
  constexpr int64_t kMostBytes = 3000000000;
  WNA16_TRY_CUDA(cudaStreamCreate(&stream));
  do {
    Result<WeightMemory> w13 = makeWeight(layer.w13);
    if (!w13)
      return w13.takeFailure();
    Result<WeightMemory> w2 = makeWeight(layer.w2);
    if (!w2)
      return w2.takeFailure();
    copies.push_back({std::move(*w13), std::move(*w2)});
  } while (copies.size() < kMostCopies &&
           static_cast<int64_t>(copies.size() + 1) * layer.bytes() <
               kMostBytes);
  return ok();
}

DeviceLayer::~DeviceLayer() {
  if (stream)
    cudaStreamDestroy(stream);
}

Result<DeviceLayer::Routing> DeviceLayer::makeRouting() {
  const BenchRouting host(options, tokens, random);
  const auto bytes = static_cast<int64_t>(host.ids.size() * 4);
  Result<DeviceMemory> ids = DeviceMemory::create(bytes);
  if (!ids)
    return ids.takeFailure();
  Result<DeviceMemory> weights = DeviceMemory::create(bytes);
  if (!weights)
    return weights.takeFailure();
  wna16_cuda_transfer(ids->data(), host.ids.data(), bytes);
  wna16_cuda_transfer(weights->data(), host.weights.data(), bytes);
  if (Failure bad = statusFailure())
    return bad;
  return Routing{std::move(*ids), std::move(*weights), host.touched};
}

Failure DeviceLayer::setTokens(int64_t count) {
  tokens = count;
  const int64_t elements = tokens * options.hidden;
  wna16_status_clear();
  workspaceBytes = entry.workspace(&layer.plan, tokens);
  if (Failure bad = statusFailure())
    return bad;
  struct {
    DeviceMemory &memory;
    int64_t bytes;
  } const buffers[] = {
      {x, 2 * elements}, {y, 2 * elements}, {workspace, workspaceBytes}};
  for (const auto &[memory, bytes] : buffers) {
    memory = {};
    Result<DeviceMemory> created = DeviceMemory::create(bytes);
    if (!created)
      return created.takeFailure();
    memory = std::move(*created);
  }
  WNA16_TRY_CUDA(
      fillValues(options.element, x.data(), elements, random(), -1, 1));
  const size_t sets = tokens <= 64 ? 16 : tokens <= 1024 ? 4 : 1;
  routings.clear();
  while (routings.size() < sets) {
    Result<Routing> routing = makeRouting();
    if (!routing)
      return routing.takeFailure();
    routings.push_back(std::move(*routing));
  }
  return ok();
}

const char *DeviceLayer::kernelName() const {
  const char *name = entry.kernel(&layer.plan, tokens);
  return name ? name : "none";
}

double DeviceLayer::touchedBytes() const {
  double touched = 0;
  for (const Routing &routing : routings)
    touched += static_cast<double>(routing.touched);
  return touched / static_cast<double>(routings.size()) * layer.expertBytes();
}

Failure DeviceLayer::call(size_t index) {
  const Copy &copy = copies[index % copies.size()];
  const Routing &routing = routings[index % routings.size()];
  const std::vector<int64_t> shape = {tokens, options.hidden};
  const std::vector<int64_t> slots = {tokens, options.topK};
  BenchTensors tensors(/*deviceType=*/2);
  tensors.add(x.data(), options.element, shape);
  tensors.add(routing.weights.data(), ScalarType::F32, slots);
  tensors.add(routing.ids.data(), ScalarType::I32, slots);
  tensors.add(layer.w13, copy.w13.buffers());
  tensors.add(layer.w2, copy.w2.buffers());
  tensors.addAbsent(3); // biases and expert map
  tensors.add(y.data(), options.element, shape);
  entry.call(&layer.plan, tensors.get(), tensors.count(), workspace.data(),
             workspaceBytes, stream);
  return statusFailure();
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

Failure DeviceLayer::poison() {
  WNA16_TRY_CUDA(
      cudaMemsetAsync(workspace.data(), 0xff, workspaceBytes, stream));
  WNA16_TRY_CUDA(
      cudaMemsetAsync(y.data(), 0xff, 2 * tokens * options.hidden, stream));
  return ok();
}

/// Of call 0.
Result<std::vector<uint16_t>> DeviceLayer::output() {
  if (Failure bad = poison())
    return bad;
  if (Failure bad = call(0))
    return bad;
  std::vector<uint16_t> values(tokens * options.hidden);
  wna16_cuda_synchronize(stream);
  wna16_cuda_transfer(values.data(), y.data(), 2 * values.size());
  if (Failure bad = statusFailure())
    return bad;
  return values;
}

Result<std::vector<double>>
DeviceLayer::reference(const std::vector<int32_t> &sample) {
  const auto count = static_cast<int64_t>(sample.size());
  const int64_t outputs = count * options.hidden;
  Result<DeviceMemory> where = DeviceMemory::create(4 * count);
  Result<DeviceMemory> middle =
      DeviceMemory::create(8 * count * options.topK * options.width);
  Result<DeviceMemory> last = DeviceMemory::create(8 * outputs);
  for (Result<DeviceMemory> *memory : {&where, &middle, &last})
    if (!*memory)
      return memory->takeFailure();
  wna16_cuda_transfer(where->data(), sample.data(), 4 * count);
  const Routing &routing = routings[0];
  const auto topK = static_cast<int>(options.topK);
  WNA16_TRY_CUDA(runReference(
      {TiledMatrix(layer.w13.spec, copies[0].w13.buffers()),
       TiledMatrix(layer.w2.spec, copies[0].w2.buffers()), x.data(),
       routing.ids.as<int32_t>(), routing.weights.as<float>(),
       where->as<int32_t>(), static_cast<int>(count), topK, options.hidden,
       options.width, middle->as<double>(), last->as<double>()}));
  std::vector<double> out(outputs);
  wna16_cuda_transfer(out.data(), last->data(), 8 * outputs);
  if (Failure bad = statusFailure())
    return bad;
  return out;
}

float DeviceLayer::valueOf(const std::vector<uint16_t> &values,
                           int64_t index) const {
  return loadFloat(options.element, values.data(), index);
}

Result<double> DeviceLayer::check() {
  Result<std::vector<uint16_t>> out = output();
  if (!out)
    return out.takeFailure();
  Result<std::vector<uint16_t>> again = output();
  if (!again)
    return again.takeFailure();
  if (*out != *again)
    return fail("two calls with " + std::to_string(tokens) +
                " tokens give different bits");
  double written = 0;
  for (size_t i = 0; i < out->size(); ++i)
    written += valueOf(*out, static_cast<int64_t>(i)); // NaN: poison is left
  // A token of long experts takes the reference long.
  const int64_t count =
      std::min<int64_t>(tokens, options.width > 8000 ? 8 : 24);
  std::vector<int32_t> sample;
  for (int64_t i = 0; i < count; ++i)
    sample.push_back(
        static_cast<int32_t>(count == 1 ? 0 : i * (tokens - 1) / (count - 1)));
  Result<std::vector<double>> expected = reference(sample);
  if (!expected)
    return expected.takeFailure();
  double difference = 0, norm = 0;
  for (int64_t s = 0; s < count; ++s)
    for (int64_t n = 0; n < options.hidden; ++n) {
      const double want = (*expected)[s * options.hidden + n];
      const double got = valueOf(*out, sample[s] * options.hidden + n);
      difference += (got - want) * (got - want);
      norm += want * want;
    }
  const double error = std::sqrt(difference / norm);
  if (!std::isfinite(written) || !std::isfinite(error))
    return fail("a call with " + std::to_string(tokens) +
                " tokens leaves outputs unwritten");
  return error;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

Failure DeviceLayer::capture(size_t calls, cudaGraphExec_t &executable) {
  cudaGraph_t graph;
  WNA16_TRY_CUDA(
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (size_t i = 0; i < calls; ++i)
    if (Failure bad = call(i))
      return bad;
  WNA16_TRY_CUDA(cudaStreamEndCapture(stream, &graph));
  WNA16_TRY_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  WNA16_TRY_CUDA(cudaGraphDestroy(graph));
  return ok();
}

Result<std::vector<double>> DeviceLayer::time() {
  constexpr int kWarmUps = 3, kRuns = 9;
  const size_t calls = tokens <= 256    ? 48
                       : tokens <= 1024 ? 16
                       : tokens <= 4096 ? 4
                                        : 2;
  cudaGraphExec_t executable;
  if (Failure bad = capture(calls, executable))
    return bad;
  cudaEvent_t begin, end;
  WNA16_TRY_CUDA(cudaEventCreate(&begin));
  WNA16_TRY_CUDA(cudaEventCreate(&end));
  std::vector<double> seconds;
  for (int run = -kWarmUps; run < kRuns; ++run) {
    WNA16_TRY_CUDA(cudaEventRecord(begin, stream));
    WNA16_TRY_CUDA(cudaGraphLaunch(executable, stream));
    WNA16_TRY_CUDA(cudaEventRecord(end, stream));
    WNA16_TRY_CUDA(cudaEventSynchronize(end));
    float milliseconds;
    WNA16_TRY_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    if (run >= 0)
      seconds.push_back(milliseconds * 1e-3 / static_cast<double>(calls));
  }
  WNA16_TRY_CUDA(cudaEventDestroy(begin));
  WNA16_TRY_CUDA(cudaEventDestroy(end));
  WNA16_TRY_CUDA(cudaGraphExecDestroy(executable));
  return seconds;
}
