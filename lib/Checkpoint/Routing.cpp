//===- Routing.cpp - Routing and activation by architecture ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Routing.h"

#include <algorithm>
#include <limits>
#include <sstream>

using namespace wna16;

namespace {

enum class Renormalize { Always, Never, Key, KeyOr1 };
enum Flags : unsigned {
  kNone = 0,
  kAfterTopK = 1,    ///< softmax over the chosen logits
  kOnInput = 2,      ///< the weight multiplies the experts' input
  kGroups = 4,       ///< n_group, topk_group
  kScaling = 8,      ///< routed_scaling_factor
  kTransposed = 16,  ///< fused tensors are [E, in, out]
  kInterleaved = 32, ///< gate and up rows in turn
  kSwiGLUOAI = 64,   ///< gpt-oss's clamped activation
  kCorrection = 128, ///< must have a correction bias
  kNorms = 256,      ///< norms within the block, and the experts' scales
};

struct Architecture {
  const char *type;
  wna16_scoring scoring;
  Renormalize renormalize;
  unsigned flags;
};

constexpr auto kSoft = WNA16_SOFTMAX;
constexpr auto kSigm = WNA16_SIGMOID;
constexpr auto kMix = WNA16_SPARSEMIXER;
constexpr unsigned kDeepSeek = kGroups | kScaling;

const Architecture kArchitectures[] = {
    {"qwen2_moe", kSoft, Renormalize::Key, kNone},
    {"qwen3_moe", kSoft, Renormalize::Key, kNone},
    {"qwen3_next", kSoft, Renormalize::KeyOr1, kNone},
    {"qwen3_5_moe", kSoft, Renormalize::KeyOr1, kNone},
    {"qwen3_5_moe_text", kSoft, Renormalize::KeyOr1, kNone},
    {"qwen3_vl_moe", kSoft, Renormalize::KeyOr1, kTransposed},
    {"qwen3_vl_moe_text", kSoft, Renormalize::KeyOr1, kTransposed},
    {"mixtral", kSoft, Renormalize::Always, kNone},
    {"olmoe", kSoft, Renormalize::Key, kNone},
    {"deepseek_v2", kSoft, Renormalize::Key, kDeepSeek},
    {"deepseek_v3", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"deepseek_v32", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"kimi_k2", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"kimi_linear", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"glm4_moe", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"glm4_moe_lite", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"glm_moe_dsa", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"minimax_m2", kSigm, Renormalize::Always, kCorrection},
    {"minimax", kSoft, Renormalize::Always, kNone},
    {"minimax_m1", kSoft, Renormalize::Always, kNone},
    {"minimax_text_01", kSoft, Renormalize::Always, kNone},
    {"jamba", kSoft, Renormalize::Never, kNone},
    {"dbrx", kSoft, Renormalize::Always, kNone},
    {"granitemoe", kSoft, Renormalize::Never, kAfterTopK},
    {"granitemoeshared", kSoft, Renormalize::Never, kAfterTopK},
    {"granitemoehybrid", kSoft, Renormalize::Never, kAfterTopK},
    {"llama4", kSigm, Renormalize::Never, kOnInput | kTransposed},
    {"llama4_text", kSigm, Renormalize::Never, kOnInput | kTransposed},
    {"gpt_oss", kSoft, Renormalize::Never,
     kAfterTopK | kTransposed | kInterleaved | kSwiGLUOAI},
    {"ernie4_5_moe", kSoft, Renormalize::Always, kNone},
    {"hunyuan", kSoft, Renormalize::KeyOr1, kNone},
    {"hunyuan_v1_moe", kSoft, Renormalize::KeyOr1, kNone},
    {"bailing_moe", kSoft, Renormalize::KeyOr1, kNone},
    {"bailing_moe_v2", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"nemotron_h", kSigm, Renormalize::KeyOr1, kDeepSeek | kCorrection},
    {"phimoe", kMix, Renormalize::Never, kNone},
    {"gemma4", kSoft, Renormalize::Always, kNorms},
    {"gemma4_text", kSoft, Renormalize::Always, kNorms},
};

const Architecture *findArchitecture(const std::string &type) {
  for (const Architecture &row : kArchitectures)
    if (type == row.type)
      return &row;
  return nullptr;
}

struct ActivationName {
  const char *name;
  wna16_activation kind;
};
const ActivationName kActivations[] = {
    {"silu", WNA16_SILU},
    {"swish", WNA16_SILU},
    {"gelu", WNA16_GELU},
    {"gelu_pytorch_tanh", WNA16_GELU_TANH},
    {"gelu_new", WNA16_GELU_TANH},
    {"gelu_tanh", WNA16_GELU_TANH},
    {"relu2", WNA16_RELU2},
    {"swigluoai", WNA16_SWIGLUOAI},
    {"swiglustep", WNA16_SWIGLUSTEP},
};

/// Kernels hold factors as f32.
Failure checkFactor(const ModelConfig &config, const char *key, double value) {
  if (value >= std::numeric_limits<float>::min() &&
      value <= std::numeric_limits<float>::max())
    return ok();
  std::ostringstream text;
  text << value;
  return fail(config.file() + ": expected " + key +
              " to be positive and finite, got " + text.str());
}

Failure readActivation(const ModelConfig &config, const Architecture &row,
                       ActivationSource &out) {
  std::optional<std::string> name;
  // The keys belong to different models; the first one there counts.
  for (const char *key : {"mlp_hidden_act", "hidden_act", "hidden_activation"})
    if (!name)
      if (Failure failure = config.read({key}, name))
        return failure;
  std::optional<double> limit, alpha;
  if (Failure failure = config.read({"swiglu_limit"}, limit))
    return failure;
  if (Failure failure = config.read({"swiglu_alpha"}, alpha))
    return failure;
  std::string text =
      (row.flags & kSwiGLUOAI) ? "swigluoai" : name.value_or("silu");
  auto known = std::find_if(
      std::begin(kActivations), std::end(kActivations),
      [&](const ActivationName &entry) { return text == entry.name; });
  if (known == std::end(kActivations))
    return fail(config.file() + ": activation \"" + text +
                "\" is not supported");
  out.kind = known->kind;
  if (limit)
    if (Failure failure = checkFactor(config, "swiglu_limit", *limit))
      return failure;
  out.limit = limit.value_or(0.0);
  if (out.kind == WNA16_SWIGLUOAI) {
    out.alpha = alpha.value_or(1.702);
    out.beta = 1.0;
    out.limit = limit.value_or(7.0);
  } else if (out.kind == WNA16_SWIGLUSTEP) {
    out.limit = limit.value_or(7.0);
  }
  return ok();
}

Failure readTopK(const ModelConfig &config, MoELayer &layer) {
  std::optional<int64_t> topK;
  if (Failure failure =
          config.readLayer({"num_experts_per_tok", "num_experts_per_token",
                            "moe_topk", "moe_k", "moe_top_k", "top_k_experts"},
                           layer.index, topK))
    return failure;
  const Json *ffn = config.find("ffn_config"); // DBRX
  if (!topK && ffn)
    if (Failure failure =
            readKey(*ffn, {"moe_top_k"}, config.file() + ": ffn_config", topK))
      return failure;
  int64_t experts = layer.experts.w13.spec.experts;
  if (!topK)
    return fail(config.file() + ": missing num_experts_per_tok");
  if (*topK < 1 || *topK > experts)
    return fail(config.file() + ": expected 1 to " + std::to_string(experts) +
                " experts for each token, got " + std::to_string(*topK));
  layer.router.topK = *topK;
  return ok();
}

Failure readRenormalize(const ModelConfig &config, const Architecture &row,
                        RouterSource &router) {
  std::optional<bool> key;
  if (Failure failure = config.read({"norm_topk_prob", "moe_renormalize"}, key))
    return failure;
  switch (row.renormalize) {
  case Renormalize::Always:
    router.renormalize = true;
    break;
  case Renormalize::Never:
    router.renormalize = false;
    break;
  case Renormalize::Key:
    router.renormalize = key.value_or(false);
    break;
  case Renormalize::KeyOr1:
    router.renormalize = key.value_or(true);
    break;
  }
  return ok();
}

Failure readScoring(const ModelConfig &config, const Architecture &row,
                    RouterSource &router) {
  std::optional<std::string> name;
  router.scoring = row.scoring;
  if (Failure failure = config.read(
          {"scoring_func", "moe_router_activation_func", "score_function"},
          name))
    return failure;
  if (!name)
    return ok();
  if (*name != "softmax" && *name != "sigmoid")
    return fail(config.file() + ": scoring \"" + *name +
                "\" is not supported; softmax and sigmoid are");
  router.scoring = *name == "softmax" ? WNA16_SOFTMAX : WNA16_SIGMOID;
  return ok();
}

/// A sparse mixer's reach. Its models choose two experts; what more would mean
/// is nowhere defined.
Failure readMixer(const ModelConfig &config, RouterSource &router) {
  if (router.scoring != WNA16_SPARSEMIXER)
    return ok();
  if (router.topK != 2)
    return fail(config.file() +
                ": expected num_experts_per_tok to be 2 for "
                "the sparse mixer of " +
                config.modelType() + ", got " + std::to_string(router.topK));
  std::optional<double> jitter;
  if (Failure failure = config.read({"router_jitter_noise"}, jitter))
    return failure;
  router.jitter = jitter.value_or(0.01);
  if (router.jitter < 0)
    return fail(config.file() +
                ": expected router_jitter_noise to be 0 or more, got " +
                std::to_string(router.jitter));
  return ok();
}

/// Whether experts are chosen out of the best groups; models that do not say so
/// have groups when there is more than one.
Failure readMethod(const ModelConfig &config, bool &grouped) {
  std::optional<std::string> method;
  if (Failure failure = config.read({"topk_method"}, method))
    return failure;
  grouped = method != "greedy";
  if (method && grouped && *method != "group_limited_greedy" &&
      *method != "noaux_tc")
    return fail(config.file() + ": topk_method \"" + *method +
                "\" is not supported; greedy, group_limited_greedy and "
                "noaux_tc are");
  return ok();
}

Failure readGroups(const ModelConfig &config, int64_t experts,
                   RouterSource &router) {
  std::optional<int64_t> groups, top;
  bool grouped = true;
  if (Failure failure = config.read({"n_group", "num_expert_group"}, groups))
    return failure;
  if (Failure failure = config.read({"topk_group"}, top))
    return failure;
  if (Failure failure = readMethod(config, grouped))
    return failure;
  router.groups = std::max<int64_t>(groups.value_or(1), 1);
  router.topGroups = top.value_or(1);
  if (!grouped)
    router.groups = 1;
  if (router.groups == 1)
    router.topGroups = 1;
  if (experts % router.groups != 0 || router.topGroups < 1 ||
      router.topGroups > router.groups)
    return fail(config.file() + ": " + std::to_string(experts) +
                " experts cannot be in " + std::to_string(router.groups) +
                " groups of which " + std::to_string(router.topGroups) +
                " are kept");
  int64_t eligible = experts / router.groups * router.topGroups;
  if (router.topK > eligible)
    return fail(config.file() + ": " + std::to_string(router.topK) +
                " experts for each token, but the groups kept have " +
                std::to_string(eligible));
  if (router.groups > 1 && router.correction && experts / router.groups < 2)
    return fail(config.file() + ": groups of one expert have no two best");
  return ok();
}

Failure readScaling(const ModelConfig &config, RouterSource &router) {
  std::optional<double> scaling;
  if (Failure failure = config.read({"routed_scaling_factor"}, scaling))
    return failure;
  router.scaling = scaling.value_or(1.0);
  return checkFactor(config, "routed_scaling_factor", router.scaling);
}

/// Architectures whose keys interact.
Failure checkSpecial(const ModelConfig &config, const MoELayer &layer) {
  if (config.modelType() == "deepseek_v2" && layer.router.renormalize &&
      layer.router.scaling != 1.0)
    return fail(config.file() +
                ": deepseek_v2 either renormalises or scales; found "
                "norm_topk_prob with a routed_scaling_factor of " +
                std::to_string(layer.router.scaling));
  const Json *ffn = config.find("ffn_config");
  std::optional<double> norm;
  if (config.modelType() == "dbrx" && ffn)
    if (Failure failure = readKey(*ffn, {"moe_normalize_expert_weights"},
                                  config.file() + ": ffn_config", norm))
      return failure;
  if (norm && *norm != 1.0)
    return fail(config.file() +
                ": moe_normalize_expert_weights other than 1 is not supported");
  return ok();
}

} // namespace

Failure wna16::checkArchitecture(const ModelConfig &config) {
  const Architecture *row = findArchitecture(config.modelType());
  if (!row)
    return fail(config.file() + ": model_type \"" + config.modelType() +
                "\" is not known");
  return ok();
}

Failure wna16::readRouting(const ModelConfig &config, MoELayer &layer) {
  const Architecture *row = findArchitecture(config.modelType());
  RouterSource &router = layer.router;
  router.softmaxAfterTopK = row->flags & kAfterTopK;
  layer.weightOnInput = row->flags & kOnInput;
  if (Failure failure = readTopK(config, layer))
    return failure;
  if (Failure failure = readScoring(config, *row, router))
    return failure;
  if (Failure failure = readMixer(config, router))
    return failure;
  if (Failure failure = readRenormalize(config, *row, router))
    return failure;
  if (row->flags & kGroups)
    if (Failure failure =
            readGroups(config, layer.experts.w13.spec.experts, router))
      return failure;
  if (row->flags & kScaling)
    if (Failure failure = readScaling(config, router))
      return failure;
  if ((row->flags & kCorrection) && router.groups > 1 && !router.correction)
    return fail("layer " + std::to_string(layer.index) +
                ": missing the correction bias of the router, which " +
                config.modelType() + " has");
  if (Failure failure = checkSpecial(config, layer))
    return failure;
  return readActivation(config, *row, layer.activation);
}

bool wna16::storesTransposed(const std::string &modelType) {
  const Architecture *row = findArchitecture(modelType);
  return row && (row->flags & kTransposed);
}

bool wna16::hasNorms(const std::string &modelType) {
  const Architecture *row = findArchitecture(modelType);
  return row && (row->flags & kNorms);
}

bool wna16::storesInterleaved(const std::string &modelType) {
  const Architecture *row = findArchitecture(modelType);
  return row && (row->flags & kInterleaved);
}

Failure wna16::readExperts(const ModelConfig &config, int64_t layer,
                           std::optional<int64_t> &out) {
  if (Failure failure =
          config.readLayer({"num_experts", "num_local_experts",
                            "n_routed_experts", "moe_num_experts"},
                           layer, out))
    return failure;
  const Json *ffn = config.find("ffn_config");
  if (!out && ffn)
    return readKey(*ffn, {"moe_num_experts"}, config.file() + ": ffn_config",
                   out);
  return ok();
}

namespace {

/// Every `step`-th layer is an MoE layer: where layer modulo step is the
/// remainder, counted from the end when negative.
struct LayerStep {
  const char *step;
  const char *remainderKey;
  int64_t remainder;
};
const LayerStep kLayerSteps[] = {
    {"decoder_sparse_step", nullptr, -1},
    {"interleave_moe_layer_step", nullptr, -1},
    {"moe_layer_interval", nullptr, -1},
    {"moe_layer_freq", nullptr, 0},
    {"expert_layer_period", "expert_layer_offset", 0},
};

/// A number that only serves to cross-check: other types count as absent.
std::optional<int64_t> numberOf(const ModelConfig &config, const char *key) {
  const Json *value = key ? config.find(key) : nullptr;
  if (!value || !value->is_number_integer())
    return std::nullopt;
  return value->get<int64_t>();
}

} // namespace

std::optional<bool> wna16::expectsMoE(const ModelConfig &config,
                                      int64_t layer) {
  const Json *dense = config.find("mlp_only_layers");
  if (dense && dense->is_array())
    for (const Json &entry : *dense)
      if (entry.is_number_integer() && entry.get<int64_t>() == layer)
        return false;
  std::optional<bool> expected;
  for (const char *key : {"first_k_dense_replace", "moe_layer_start_index"})
    if (std::optional<int64_t> first = numberOf(config, key)) {
      if (layer < *first)
        return false;
      expected = true;
    }
  for (const LayerStep &row : kLayerSteps) {
    std::optional<int64_t> step = numberOf(config, row.step);
    if (!step || *step < 1)
      continue;
    int64_t remainder =
        numberOf(config, row.remainderKey).value_or(row.remainder);
    if (remainder < 0)
      remainder += *step;
    if (layer % *step != remainder)
      return false;
    expected = true;
  }
  return expected;
}
