//===- SynthModel.cpp - The tensors of a made-up model --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SynthModel.h"

#include "Layout/Catalogue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace wna16;
using namespace wna16::cli;

namespace json = llvm::json;

namespace {

/// How an architecture names what a model of it has.
struct Architecture {
  llvm::StringLiteral type, className;
  llvm::StringLiteral block; ///< of a layer
  llvm::StringLiteral gate, up, down;
  llvm::StringLiteral expertsKey, widthKey;
  llvm::StringLiteral shared; ///< the shared expert; empty: none
  bool sharedGate = false;
  bool correction = false; ///< a bias for the choice of experts
  bool normalizes = false; ///< norm_topk_prob
};

constexpr Architecture kArchitectures[] = {
    {"qwen2_moe", "Qwen2MoeForCausalLM", "mlp", "gate_proj", "up_proj",
     "down_proj", "num_experts", "moe_intermediate_size", "shared_expert",
     true},
    {"qwen3_moe", "Qwen3MoeForCausalLM", "mlp", "gate_proj", "up_proj",
     "down_proj", "num_experts", "moe_intermediate_size", "", false, false,
     true},
    {"olmoe", "OlmoeForCausalLM", "mlp", "gate_proj", "up_proj", "down_proj",
     "num_experts", "intermediate_size", ""},
    {"mixtral", "MixtralForCausalLM", "block_sparse_moe", "w1", "w3", "w2",
     "num_local_experts", "intermediate_size", ""},
    {"deepseek_v2", "DeepseekV2ForCausalLM", "mlp", "gate_proj", "up_proj",
     "down_proj", "n_routed_experts", "moe_intermediate_size",
     "shared_experts"},
    {"deepseek_v3", "DeepseekV3ForCausalLM", "mlp", "gate_proj", "up_proj",
     "down_proj", "n_routed_experts", "moe_intermediate_size", "shared_experts",
     false, true, true},
};

/// Builds the list of tensors.
class Planner {
public:
  Planner(const SynthOptions &options)
      : options(options),
        row(*llvm::find_if(kArchitectures, [&](const Architecture &entry) {
          return entry.type == options.model;
        })) {
    // The dtype that the format's quantisers usually work in.
    element = llvm::StringRef(options.format->name) == "awq" ? ScalarType::F16
                                                             : ScalarType::BF16;
    scale = options.format->method && llvm::StringRef(options.format->method) ==
                                          "compressed-tensors"
                ? element
                : ScalarType::F16;
  }

  Result<SynthModel> run();

private:
  Failure addLayer(int64_t layer);
  Failure addExpert(const std::string &prefix);
  Failure addModule(const std::string &module, int64_t input, int64_t output,
                    const std::string &order);
  void addFloats(const std::string &name, std::vector<int64_t> shape,
                 float mean, float spread, ScalarType type);
  void addLinear(const std::string &module, int64_t input, int64_t output);
  json::Object config() const;

  const SynthOptions &options;
  const Architecture &row;
  ScalarType element, scale;
  TargetScheme scheme;
  SynthModel model;
  std::vector<std::string> kept, packed;
};

/// Triangles on (-1, 1) have a standard deviation of 1 / sqrt(6).
const float kTriangle = std::sqrt(6.0f);

/// Outputs of unit inputs are of order 1.
float deviation(int64_t input) {
  return 1.0f / std::sqrt(static_cast<float>(input));
}

void Planner::addFloats(const std::string &name, std::vector<int64_t> shape,
                        float mean, float spread, ScalarType type) {
  SynthTensor tensor;
  tensor.plan.tensor = {name, type, std::move(shape)};
  tensor.mean = mean;
  tensor.spread = spread;
  model.tensors.push_back(std::move(tensor));
}

void Planner::addLinear(const std::string &module, int64_t input,
                        int64_t output) {
  addFloats(module + ".weight", {output, input}, 0,
            kTriangle * deviation(input), element);
  kept.push_back(module);
}

Failure Planner::addModule(const std::string &module, int64_t input,
                           int64_t output, const std::string &order) {
  WeightSpec plain;
  plain.layout = findLayout("compressed_tensors");
  bool four = options.bits == 4;
  plain.code = options.symmetric ? (four ? CodeType::U4B8 : CodeType::U8B128)
                                 : (four ? CodeType::U4 : CodeType::U8);
  plain.zeros = options.symmetric ? ZeroPoints::None : ZeroPoints::Plain;
  plain.element = element;
  plain.scale = scale;
  plain.group = options.group;
  plain.input = input;
  plain.output = output;
  if (options.actOrder && plain.groups() > 1)
    plain.actOrder = ActOrder::Index;
  if (plain.actOrder != ActOrder::None && input % options.group != 0)
    return fail("--act-order: expected whole groups, got an input of " +
                std::to_string(input) + " in groups of " +
                std::to_string(options.group));
  Result<WeightSpec> spec = specIn(*options.format, plain);
  if (!spec)
    return fail("module " + module + ": " + spec.message());
  if (packed.empty())
    scheme = TargetScheme::of(*spec);
  scheme.actOrder = options.actOrder;
  packed.push_back(module);
  Result<std::vector<ModuleTensor>> tensors =
      tensorsOf(*options.format, module, *spec, scheme);
  if (!tensors)
    return tensors.takeFailure();
  // Of stored codes, from their triangles.
  float codes = four ? 3.26f : 52.3f;
  for (ModuleTensor &part : *tensors) {
    SynthTensor tensor;
    if (part.part == Part::GroupIndex)
      tensor.stream = order;
    bool isScale = part.part == Part::Scales;
    tensor.mean = isScale ? deviation(input) / codes : 0.0f;
    tensor.spread = isScale ? 0.5f * tensor.mean : kTriangle * deviation(input);
    tensor.plan = std::move(part);
    tensor.spec = *spec;
    model.tensors.push_back(std::move(tensor));
  }
  return ok();
}

Failure Planner::addExpert(const std::string &prefix) {
  struct {
    llvm::StringRef name;
    int64_t input, output;
  } const projections[] = {{row.gate, options.hidden, options.intermediate},
                           {row.up, options.hidden, options.intermediate},
                           {row.down, options.intermediate, options.hidden}};
  for (auto [name, input, output] : projections) {
    std::string order =
        prefix + (name == row.down ? ".down" : ".gate_up") + ".g_idx";
    if (Failure failure =
            addModule(prefix + "." + name.str(), input, output, order))
      return failure;
  }
  return ok();
}

Failure Planner::addLayer(int64_t layer) {
  std::string prefix = "model.layers." + std::to_string(layer) + ".";
  std::string block = prefix + row.block.str();
  for (const char *norm : {"input_layernorm", "post_attention_layernorm"})
    addFloats(prefix + norm + ".weight", {options.hidden}, 1, 0.1f, element);
  addLinear(block + ".gate", options.hidden, options.experts);
  if (row.correction)
    addFloats(block + ".gate.e_score_correction_bias", {options.experts}, 0,
              0.1f, ScalarType::F32);
  for (int64_t expert = 0; expert < options.experts; ++expert)
    if (Failure failure =
            addExpert(block + ".experts." + std::to_string(expert)))
      return failure;
  if (!row.shared.empty())
    if (Failure failure = addExpert(block + "." + row.shared.str()))
      return failure;
  if (row.sharedGate)
    addLinear(block + "." + row.shared.str() + "_gate", options.hidden, 1);
  return ok();
}

json::Object Planner::config() const {
  bool isGrouped = row.correction && options.experts % 8 == 0 &&
                   options.experts >= 16 && options.topK <= options.experts / 2;
  json::Object object{
      {"architectures", json::Array{row.className}},
      {"model_type", row.type},
      {"torch_dtype", element == ScalarType::F16 ? "float16" : "bfloat16"},
      {"hidden_act", "silu"},
      {"hidden_size", options.hidden},
      {"num_hidden_layers", options.layers},
      {"num_attention_heads", 1},
      {"num_key_value_heads", 1},
      {"vocab_size", 1},
      {"num_experts_per_tok", options.topK},
      {"norm_topk_prob", row.normalizes}};
  object[row.expertsKey] = options.experts;
  object[row.widthKey] = options.intermediate;
  if (row.sharedGate)
    object["shared_expert_intermediate_size"] = options.intermediate;
  if (row.type.starts_with("deepseek")) {
    object["n_shared_experts"] = 1;
    object["first_k_dense_replace"] = 0;
    object["n_group"] = isGrouped ? 8 : 1;
    object["topk_group"] = isGrouped ? 4 : 1;
    object["routed_scaling_factor"] = row.correction ? 2.5 : 1.0;
    object["scoring_func"] = row.correction ? "sigmoid" : "softmax";
  }
  return object;
}

Result<SynthModel> Planner::run() {
  for (int64_t layer = 0; layer < options.layers; ++layer)
    if (Failure failure = addLayer(layer))
      return failure;
  addFloats("model.norm.weight", {options.hidden}, 1, 0.1f, element);
  Result<std::string> text =
      configIn(*options.format, scheme,
               llvm::formatv("{0}", json::Value(config())).str(), kept, packed);
  if (!text)
    return text.takeFailure();
  model.config = std::move(*text);
  model.hidden = options.hidden;
  return std::move(model);
}

} // namespace

Result<SynthModel> cli::planModel(const SynthOptions &options) {
  return Planner(options).run();
}
