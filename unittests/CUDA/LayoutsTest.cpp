//===- LayoutsTest.cpp - Checkpoints in every layout on a device ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The routed experts of the checkpoints through the C ABI alone: weights go
// from the checkpoint's layout to that of a backend on the device, and the
// reference's own routing asks for them. So layouts are tried whose backends
// the compiler would not choose for these models, and tokens in batches of each
// expert.
//
//===----------------------------------------------------------------------===//

#include "Checkpoints.h"
#include "TestSupport.h"

#include "Checkpoint/Checkpoint.h"
#include "Layout/Move.h"
#include "Runtime/Weight.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace wna16;
using namespace wna16test;

namespace {

constexpr int64_t kTokens[] = {1, 7, 33};

/// How a backend stores a weight.
struct Storage {
  const char *layout;
  wna16_kernel kernel;
  wna16_workspace workspace;
  int64_t width; ///< the experts' width is a multiple of it
};
const Storage kStorages[] = {
    {"marlin", wna16_cuda_marlin_fused_experts,
     wna16_cuda_marlin_fused_experts_workspace, 64},
    {"humming_mma", wna16_cuda_humming_fused_experts,
     wna16_cuda_humming_fused_experts_workspace, 64},
    {"humming_wgmma", wna16_cuda_humming_fused_experts,
     wna16_cuda_humming_fused_experts_workspace, 64},
    {"trtllm", wna16_cuda_trtllm_fused_experts,
     wna16_cuda_trtllm_fused_experts_workspace, 256},
};

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

WeightSpec wantedOf(const WeightSpec &source, const Storage &storage) {
  WeightSpec wanted = source;
  wanted.layout = findLayout(storage.layout);
  wanted.scale = source.element;
  (source.halves == 2 ? wanted.output : wanted.input) =
      roundUp(source.halves == 2 ? source.output : source.input, storage.width);
  if (std::strcmp(storage.layout, "trtllm") == 0)
    wanted.code = CodeType::S4;
  return wanted;
}

/// Whether the layout holds the weight at all.
bool applies(const WeightSpec &source, const Storage &storage) {
  const bool trtllm = std::strcmp(storage.layout, "trtllm") == 0;
  if (source.actOrder != ActOrder::None ||
      (trtllm && (source.group != 32 || source.bits() != 4 ||
                  source.zeros != ZeroPoints::None ||
                  source.element != ScalarType::BF16)))
    return false;
  const WeightSpec wanted = wantedOf(source, storage);
  return storageOf(wanted) && checkMove(source, wanted).message.empty();
}

TestWeight loadWeight(const Checkpoint &checkpoint, const WeightSource &source,
                      const WeightSpec &spec) {
  TestWeight weight = emptyWeight(weightOf(spec));
  auto parts = storageOf(spec);
  EXPECT_TRUE(parts) << parts.message();
  size_t next = 0;
  if (parts)
    for (const StoredPart &part : *parts) {
      HostTensor &tensor = weight.parts[static_cast<int>(part.part)];
      Failure failure = checkpoint.read(source.parts[next++], tensor.data());
      EXPECT_FALSE(failure) << failure.message;
    }
  return weight;
}

/// Brings a weight into a layout on the device.
TestWeight convertOnDevice(TestWeight &source, const WeightSpec &wanted) {
  TestWeight result = emptyWeight(weightOf(wanted));
  const wna16_convert_plan plan = convertPlan(source.plan, result.plan);
  std::vector<HostTensor *> tensors;
  addParts(source, tensors);
  addParts(result, tensors);
  EXPECT_EQ(runOnDevice(wna16_cuda_convert, &plan, tensors, kNumParts),
            WNA16_OK)
      << wna16_status_message();
  return result;
}

/// Tensors of a reference of one layer and number of tokens.
class LayerReference {
public:
  LayerReference(const ReferenceFiles &files, int64_t layer, int64_t tokens)
      : files(files), tokens(tokens),
        prefix("layers." + std::to_string(layer) + "."),
        suffix(".M" + std::to_string(tokens)) {}

  std::vector<double> values(const std::string &name) const {
    const TensorView *view = files.tensors.find(name);
    EXPECT_NE(view, nullptr) << name;
    return view ? valuesOf(*view) : std::vector<double>();
  }
  std::vector<double> x() const { return values("x" + suffix); }
  std::vector<double> ids() const {
    return values(prefix + "topk_ids" + suffix);
  }
  std::vector<double> weights() const {
    return values(prefix + "topk_weights" + suffix);
  }
  std::vector<double> experts() const {
    const std::string routed = prefix + "experts_out" + suffix;
    return values(files.tensors.find(routed) ? routed
                                             : prefix + "out" + suffix);
  }
  double own() const {
    return files.errors.at(prefix.substr(0, prefix.size() - 1) + suffix);
  }

  const ReferenceFiles &files;
  int64_t tokens;

private:
  std::string prefix, suffix;
};

HostTensor tensorOf(ScalarType type, std::vector<int64_t> shape,
                    const std::vector<double> &values) {
  HostTensor tensor(type, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

HostTensor idsOf(std::vector<int64_t> shape, const std::vector<double> &ids) {
  return indexTensor(std::move(shape),
                     std::vector<int32_t>(ids.begin(), ids.end()));
}

/// One layer's weights in one layout.
struct Prepared {
  TestWeight w13, w2;
  wna16_experts_plan plan = {};

  HostTensor run(const Storage &storage, HostTensor &x, HostTensor &weights,
                 HostTensor &ids) {
    HostTensor y(ScalarType::F32, x.shape), absent;
    std::vector<HostTensor *> tensors = {&x, &weights, &ids};
    addParts(w13, tensors);
    addParts(w2, tensors);
    for (HostTensor *tensor : {&absent, &absent, &absent, &y})
      tensors.push_back(tensor);
    const int64_t bytes =
        storage.workspace(&plan, x.shape[plan.batched ? 1 : 0]);
    EXPECT_GE(bytes, 0) << wna16_status_message();
    EXPECT_EQ(runOnDevice(storage.kernel, &plan, tensors, 1,
                          std::max<int64_t>(bytes, 0)),
              WNA16_OK)
        << wna16_status_message();
    return y;
  }
};

Prepared prepareLayer(const Checkpoint &checkpoint, const MoELayer &layer,
                      const WeightSpec &spec13, const WeightSpec &spec2,
                      const Storage &storage) {
  TestWeight source13 = loadWeight(checkpoint, layer.experts.w13, spec13);
  TestWeight source2 = loadWeight(checkpoint, layer.experts.w2, spec2);
  Prepared prepared{convertOnDevice(source13, wantedOf(spec13, storage)),
                    convertOnDevice(source2, wantedOf(spec2, storage))};
  wna16_experts_plan &plan = prepared.plan;
  plan.abi_version = WNA16_ABI_VERSION;
  plan.w13 = prepared.w13.plan;
  plan.w2 = prepared.w2.plan;
  plan.hidden = layer.hidden;
  plan.element = static_cast<int64_t>(checkpoint.dtype());
  plan.top_k = layer.router.topK;
  plan.activation = WNA16_SILU;
  plan.bias_layout = findLayout("dense")->id;
  plan.alpha = 1;
  plan.limit = INFINITY;
  return prepared;
}

/// The tokens of each expert in rows of their own; what is beyond is NaN. Their
/// sums, weighted, are the layer's result.
std::vector<double> runBatched(Prepared &prepared, const Storage &storage,
                               const LayerReference &reference,
                               ScalarType type) {
  const int64_t hidden = prepared.plan.hidden, topK = prepared.plan.top_k;
  const int64_t experts = prepared.w13.plan.experts;
  const std::vector<double> x = reference.x(), ids = reference.ids(),
                            weights = reference.weights();
  const int64_t rows = reference.tokens;
  HostTensor batches(type, {experts, rows, hidden});
  batches.poison();
  std::vector<int32_t> counts(static_cast<size_t>(experts));
  std::vector<int64_t> rowOf;
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const auto expert = static_cast<int64_t>(ids[slot]);
    const int64_t row = expert * rows + counts[static_cast<size_t>(expert)]++;
    const int64_t token = static_cast<int64_t>(slot) / topK;
    for (int64_t k = 0; k < hidden; ++k)
      batches.set(row * hidden + k, x[static_cast<size_t>(token * hidden + k)]);
    rowOf.push_back(row);
  }
  HostTensor tokensOf = indexTensor({experts}, counts), absent;
  Prepared batched = prepared;
  batched.plan.batched = batched.plan.top_k = 1;
  HostTensor y = batched.run(storage, batches, absent, tokensOf);
  std::vector<double> sums(x.size());
  for (size_t slot = 0; slot < ids.size(); ++slot)
    for (int64_t k = 0; k < hidden; ++k)
      sums[slot / static_cast<size_t>(topK) * static_cast<size_t>(hidden) +
           static_cast<size_t>(k)] +=
          weights[slot] * y.get(rowOf[slot] * hidden + k);
  return sums;
}

void report(const std::string &checkpoint, const char *layout, int64_t layer,
            const LayerReference &reference,
            const std::vector<double> &result) {
  const HostTensor got =
      tensorOf(ScalarType::F32, {static_cast<int64_t>(result.size())}, result);
  const double error = relativeError(got, reference.experts());
  EXPECT_LE(error, reference.own())
      << checkpoint << ", " << layout << ", layer " << layer
      << ", M = " << reference.tokens;
  std::printf("| %s | %s | %lld | %lld | %.2e | - | %.2e | %.2f |\n",
              checkpoint.c_str(), layout, static_cast<long long>(layer),
              static_cast<long long>(reference.tokens), error, reference.own(),
              error / reference.own());
}

/// Every layer that a layout holds; how many.
int runCheckpoint(const std::string &directory, const Storage &storage) {
  auto checkpoint = Checkpoint::open(directory);
  EXPECT_TRUE(checkpoint) << checkpoint.message();
  if (!checkpoint)
    return 0;
  const ReferenceFiles files = openReference(directory);
  const std::string name = directory.substr(directory.rfind('/') + 1);
  const ScalarType type = checkpoint->dtype();
  int layers = 0;
  for (const MoELayer &layer : checkpoint->layers()) {
    WeightSpec spec13 = layer.experts.w13.spec, spec2 = layer.experts.w2.spec;
    spec13.element = spec2.element = type;
    if (!applies(spec13, storage) || !applies(spec2, storage))
      continue;
    ++layers;
    Prepared prepared =
        prepareLayer(*checkpoint, layer, spec13, spec2, storage);
    for (int64_t tokens : kTokens) {
      const LayerReference reference(files, layer.index, tokens);
      HostTensor x = tensorOf(type, {tokens, layer.hidden}, reference.x());
      HostTensor weights = tensorOf(
          ScalarType::F32, {tokens, layer.router.topK}, reference.weights());
      HostTensor ids = idsOf({tokens, layer.router.topK}, reference.ids());
      report(name, storage.layout, layer.index, reference,
             prepared.run(storage, x, weights, ids).values());
      if (storage.kernel != wna16_cuda_marlin_fused_experts)
        continue;
      Storage batched = storage;
      batched.kernel = wna16_cuda_batched_marlin_fused_experts;
      batched.workspace = wna16_cuda_batched_marlin_fused_experts_workspace;
      report(name, "marlin, batched", layer.index, reference,
             runBatched(prepared, batched, reference, type));
    }
  }
  return layers;
}

TEST(Layouts, HoldTheCheckpoints) {
  if (checkpointDirectories().empty())
    GTEST_SKIP() << "layouts of checkpoints DID NOT RUN: expected checkpoints "
                    "in $WNA16_TEST_DATA/checkpoints or test/Inputs";
  for (const Storage &storage : kStorages) {
    int layers = 0;
    for (const std::string &directory : checkpointDirectories())
      layers += runCheckpoint(directory, storage);
    if (layers == 0 && !std::getenv("WNA16_TEST_DATA"))
      std::printf("%s DID NOT RUN: expected checkpoints for it in "
                  "$WNA16_TEST_DATA/checkpoints\n",
                  storage.layout);
    else
      EXPECT_GE(layers, 1) << storage.layout;
  }
}

} // namespace
