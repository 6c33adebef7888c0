//===- Reader.cpp - From a directory to described MoE layers --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Audit.h"
#include "Config.h"
#include "Naming.h"
#include "Routing.h"
#include "Weights.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace wna16;

namespace wna16 {

/// Builds a Checkpoint block by block.
class CheckpointReader {
public:
  CheckpointReader(const std::string &directory, const OpenOptions &options)
      : options(options) {
    result.path = directory;
  }
  Result<Checkpoint> run();

private:
  Failure readModel();
  Failure readBlocks();
  Result<MoELayer> readBlock(const Block &block, int64_t index);
  Failure readExpertsOf(const Block &block, WeightReader &weights,
                        MoELayer &layer);
  Result<ExpertsSource> readPair(const ExpertNames &names,
                                 WeightReader &weights);
  Failure readRouter(const Block &block, WeightReader &weights,
                     MoELayer &layer);
  Failure readShared(const Block &block, WeightReader &weights,
                     MoELayer &layer);
  Failure readNorms(const Block &block, WeightReader &weights, MoELayer &layer);
  Failure checkExtents(const ExpertsSource &experts, const char *what) const;
  Failure checkUsed(const Block &block, const WeightReader &weights) const;
  Failure compareCount(const std::vector<Block> &blocks);
  void compareLayers();

  OpenOptions options;
  Checkpoint result;
  std::optional<ModelConfig> config;
  Quantization quantization;
  std::optional<int64_t> layerCount;
  std::set<int64_t> unread; ///< layers that an audit could not read
  int64_t hidden = 0;
};

} // namespace wna16

Result<Checkpoint> Checkpoint::open(const std::string &directory,
                                    const OpenOptions &options) {
  return CheckpointReader(directory, options).run();
}

Result<Checkpoint> CheckpointReader::run() {
  if (Failure failure = readModel())
    return failure;
  if (Failure failure = readBlocks())
    return failure;
  compareLayers();
  if (options.audit)
    for (const MoELayer &layer : result.moeLayers)
      auditLayer(result.files, layer, result.audited);
  return std::move(result);
}

Failure CheckpointReader::readModel() {
  Result<ModelConfig> opened = ModelConfig::open(result.path);
  if (!opened)
    return opened.takeFailure();
  config = std::move(*opened);
  result.type = config->modelType();
  Result<Quantization> quantized = readQuantization(result.path, *config);
  if (!quantized)
    return quantized.takeFailure();
  quantization = std::move(*quantized);
  result.quantMethod = quantization.format ? quantization.format->name : "none";
  Result<SafeTensors> files = SafeTensors::openDirectory(result.path);
  if (!files)
    return files.takeFailure();
  result.files = std::move(*files);
  std::optional<int64_t> size;
  if (Failure failure = config->read({"hidden_size", "d_model"}, size))
    return failure;
  if (!size || *size < 1)
    return fail(config->file() + ": expected hidden_size to be positive, got " +
                (size ? std::to_string(*size) : "none"));
  hidden = *size;
  return ok();
}

Failure CheckpointReader::readBlocks() {
  Result<std::vector<Block>> blocks =
      findBlocks(result.files, hasNorms(result.type));
  if (!blocks)
    return blocks.takeFailure();
  if (blocks->empty())
    return fail(result.path + " has no MoE layer of a known family");
  if (Failure failure = checkArchitecture(*config))
    return failure;
  // The model's dtype, where the configuration is silent, is its router's.
  std::optional<std::string> router = routerModule(blocks->front());
  const TensorView *view =
      router ? result.files.find(*router + ".weight") : nullptr;
  result.modelDtype =
      config->dtype().value_or(view ? view->type : ScalarType::BF16);
  if (Failure failure =
          config->read({"num_hidden_layers", "n_layers"}, layerCount))
    return failure;
  if (Failure failure = compareCount(*blocks))
    return failure;
  // Prediction layers come after the last layer, as DeepSeek numbers them.
  int64_t end = layerCount.value_or(0);
  for (const Block &block : *blocks)
    if (!block.prediction)
      end = std::max(end, block.layer + 1);
  for (const Block &block : *blocks) {
    int64_t index = block.prediction ? end + block.layer : block.layer;
    Result<MoELayer> layer = readBlock(block, index);
    std::string name = "layer " + std::to_string(index);
    if (!layer && !options.audit)
      return fail(name + ": " + layer.message());
    if (layer) {
      result.moeLayers.push_back(std::move(*layer));
      continue;
    }
    // An audit goes on with the other layers.
    unread.insert(index);
    result.audited.push_back({true, name, layer.message()});
  }
  return ok();
}

Result<MoELayer> CheckpointReader::readBlock(const Block &block,
                                             int64_t index) {
  WeightReader weights(result.files, *config, quantization, result.modelDtype,
                       hidden);
  MoELayer layer;
  layer.index = index;
  layer.prefix = block.prefix.substr(0, block.prefix.size() - 1);
  if (Failure failure = readExpertsOf(block, weights, layer))
    return failure;
  if (Failure failure = readRouter(block, weights, layer))
    return failure;
  if (Failure failure = readShared(block, weights, layer))
    return failure;
  if (Failure failure = readNorms(block, weights, layer))
    return failure;
  if (Failure failure = checkUsed(block, weights))
    return failure;
  if (Failure failure = checkWidths(*config, layer))
    return failure;
  if (Failure failure = readRouting(*config, layer))
    return failure;
  result.audited.insert(result.audited.end(), weights.findings.begin(),
                        weights.findings.end());
  return layer;
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

Result<ExpertsSource> CheckpointReader::readPair(const ExpertNames &names,
                                                 WeightReader &weights) {
  WeightNames w13 = {names.w13, names.experts, names.halves, names.fused,
                     false};
  WeightNames w2 = {names.w2, names.experts, 1, names.fused, true};
  ExpertsSource experts;
  for (bool second : {false, true}) {
    const WeightNames &which = second ? w2 : w13;
    Result<WeightSource> weight = weights.read(which);
    if (!weight)
      return weight.takeFailure();
    auto bias = weights.readBias(which, weight->spec);
    if (!bias)
      return bias.takeFailure();
    (second ? experts.w2 : experts.w13) = std::move(*weight);
    (second ? experts.bias2 : experts.bias13) = std::move(*bias);
  }
  return experts;
}

/// Both weights must describe the same two layers.
Failure CheckpointReader::checkExtents(const ExpertsSource &experts,
                                       const char *what) const {
  const WeightSpec &w13 = experts.w13.spec;
  const WeightSpec &w2 = experts.w2.spec;
  const std::string &first = experts.w13.parts[0].pattern;
  const std::string &second = experts.w2.parts[0].pattern;
  auto text = [](const WeightSpec &spec) {
    return std::to_string(spec.experts) + " of " + std::to_string(spec.input) +
           " to " + std::to_string(spec.output);
  };
  if (w13.experts != w2.experts || w13.output != w2.input ||
      w13.input != w2.output)
    return fail(std::string(what) + " do not fit: " + first + " has " +
                text(w13) + ", " + second + " has " + text(w2));
  if (w13.input != hidden)
    return fail(first + " takes " + std::to_string(w13.input) +
                " inputs, but hidden_size is " + std::to_string(hidden));
  return ok();
}

Failure CheckpointReader::readExpertsOf(const Block &block,
                                        WeightReader &weights,
                                        MoELayer &layer) {
  Result<ExpertNames> names = routedNames(block);
  if (!names)
    return names.takeFailure();
  std::optional<int64_t> expected;
  if (Failure failure = readExperts(*config, block.layer, expected))
    return failure;
  if (!names->fused && expected && *expected != names->experts)
    return fail("the configuration has " + std::to_string(*expected) +
                " experts, the file " + std::to_string(names->experts) +
                " of " + names->w13);
  Result<ExpertsSource> experts = readPair(*names, weights);
  if (!experts)
    return experts.takeFailure();
  layer.experts = std::move(*experts);
  if (Failure failure = checkExtents(layer.experts, "the experts' weights"))
    return failure;
  const WeightSpec &spec = layer.experts.w13.spec;
  if (spec.experts == 0)
    return fail("tensor " + layer.experts.w13.parts[0].pattern +
                " holds no experts");
  if (expected && *expected != spec.experts)
    return fail("the configuration has " + std::to_string(*expected) +
                " experts, the file " + std::to_string(spec.experts) + " in " +
                names->w13);
  layer.hidden = spec.input;
  layer.intermediate = spec.output;
  return ok();
}

Failure CheckpointReader::readShared(const Block &block, WeightReader &weights,
                                     MoELayer &layer) {
  std::optional<ExpertNames> names = sharedNames(block);
  if (!names)
    return ok();
  Result<ExpertsSource> shared = readPair(*names, weights);
  if (!shared)
    return shared.takeFailure();
  layer.shared = std::move(*shared);
  if (Failure failure = checkExtents(*layer.shared, "the shared experts"))
    return failure;
  std::optional<std::string> module = sharedGateModule(block);
  if (!module)
    return ok();
  Result<WeightSource> gate = weights.read({*module});
  if (!gate)
    return gate.takeFailure();
  if (gate->spec.output != 1 || gate->spec.input != hidden)
    return fail("module " + *module + ": expected " + std::to_string(hidden) +
                " to 1, got " + std::to_string(gate->spec.input) + " to " +
                std::to_string(gate->spec.output));
  layer.sharedGate = std::move(*gate);
  return ok();
}

//===----------------------------------------------------------------------===//
// The router
//===----------------------------------------------------------------------===//

Failure CheckpointReader::readRouter(const Block &block, WeightReader &weights,
                                     MoELayer &layer) {
  std::optional<std::string> module = routerModule(block);
  if (!module)
    return fail("missing the router of " + block.prefix);
  int64_t experts = layer.experts.w13.spec.experts;
  Result<WeightSource> weight = weights.read({*module});
  if (!weight)
    return weight.takeFailure();
  if (weight->spec.output != experts)
    return fail("the router " + weight->parts[0].pattern + " has " +
                std::to_string(weight->spec.output) + " experts, " +
                layer.experts.w13.parts[0].pattern + " has " +
                std::to_string(experts));
  if (weight->spec.input != hidden)
    return fail("the router " + weight->parts[0].pattern + " takes " +
                std::to_string(weight->spec.input) +
                " inputs, but hidden_size is " + std::to_string(hidden));
  layer.router.weight = std::move(*weight);
  if (result.files.find(*module + ".bias")) {
    Result<TensorPattern> bias = weights.readVector(*module + ".bias", experts);
    if (!bias)
      return bias.takeFailure();
    layer.router.bias = std::move(*bias);
  }
  if (std::optional<std::string> tensor = correctionTensor(block)) {
    Result<TensorPattern> correction = weights.readVector(*tensor, experts);
    if (!correction)
      return correction.takeFailure();
    layer.router.correction = std::move(*correction);
  }
  return ok();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {

struct NormName {
  NormSource BlockNorms::*norm;
  const char *tensor; ///< of the layer
};
const NormName kNorms[] = {
    {&BlockNorms::router, "router.scale"},
    {&BlockNorms::experts, "pre_feedforward_layernorm_2.weight"},
    {&BlockNorms::shared, "pre_feedforward_layernorm.weight"},
    {&BlockNorms::expertsOut, "post_feedforward_layernorm_2.weight"},
    {&BlockNorms::sharedOut, "post_feedforward_layernorm_1.weight"},
    {&BlockNorms::out, "post_feedforward_layernorm.weight"},
};

} // namespace

Failure CheckpointReader::readNorms(const Block &block, WeightReader &weights,
                                    MoELayer &layer) {
  if (!hasNorms(result.type))
    return ok();
  if (!layer.shared)
    return fail("missing the dense part beside the experts, " +
                block.layerPrefix + "mlp");
  std::optional<std::string> scales = expertScaleTensor(block);
  if (!scales)
    return fail("missing the experts' scales, " + block.layerPrefix +
                "router.per_expert_scale");
  Result<TensorPattern> scale =
      weights.readVector(*scales, layer.experts.w13.spec.experts);
  if (!scale)
    return scale.takeFailure();
  layer.router.expertScale = std::move(*scale);
  std::optional<double> epsilon;
  if (Failure failure = config->read({"rms_norm_eps"}, epsilon))
    return failure;
  if (epsilon.value_or(0) < 0)
    return fail(config->file() + ": expected rms_norm_eps to be 0 or more, " +
                "got " + std::to_string(*epsilon));
  layer.norms.emplace();
  for (const NormName &row : kNorms) {
    Result<TensorPattern> weight =
        weights.readVector(block.layerPrefix + row.tensor, hidden);
    if (!weight)
      return weight.takeFailure();
    NormSource &norm = (*layer.norms).*row.norm;
    norm.weight = std::move(*weight);
    norm.epsilon = epsilon.value_or(1e-6);
  }
  layer.norms->router.scale = 1 / std::sqrt(static_cast<double>(hidden));
  return ok();
}

//===----------------------------------------------------------------------===//
// Accounting
//===----------------------------------------------------------------------===//

/// A tensor of the block that nothing uses means that the block was
/// misunderstood.
Failure CheckpointReader::checkUsed(const Block &block,
                                    const WeightReader &weights) const {
  std::string list;
  int64_t count = 0;
  for (const std::string &tensor : block.tensors)
    if (!weights.used().count(tensor) && ++count <= 5)
      list += (list.empty() ? "" : ", ") + tensor;
  if (count == 0)
    return ok();
  return fail(std::to_string(count) +
              " tensors of the MoE block are not "
              "understood: " +
              list + (count > 5 ? ", ..." : ""));
}

/// Whether there are more layers than the configuration has, and predicts with.
Failure CheckpointReader::compareCount(const std::vector<Block> &blocks) {
  std::optional<int64_t> predicting;
  if (Failure failure = config->read(
          {"num_nextn_predict_layers", "num_mtp_modules"}, predicting))
    return failure;
  if (!layerCount)
    return ok();
  auto beyond =
      std::count_if(blocks.begin(), blocks.end(), [&](const Block &block) {
        return !block.prediction &&
               block.layer - predicting.value_or(0) >= *layerCount;
      });
  if (beyond)
    result.audited.push_back(
        {true, "layers",
         std::to_string(beyond) + " MoE layers beyond the " +
             std::to_string(*layerCount) + " that the configuration has"});
  return ok();
}

/// Where configuration and tensors differ about which layers are MoE layers.
void CheckpointReader::compareLayers() {
  constexpr int64_t kMost = 10'000, kShown = 8;
  int64_t wrong = 0;
  for (int64_t i = 0; i < std::min(layerCount.value_or(0), kMost); ++i) {
    std::optional<bool> expected = expectsMoE(*config, i);
    bool found = result.layer(i) || unread.count(i);
    if (expected && *expected != found && ++wrong <= kShown)
      result.audited.push_back(
          {true, "layers." + std::to_string(i),
           found ? "an MoE layer, although the configuration makes it dense"
                 : "no MoE layer, although the configuration makes it one"});
  }
  if (wrong > kShown)
    result.audited.push_back(
        {true, "layers",
         std::to_string(wrong - kShown) +
             " more are not what the configuration makes them"});
}
