//===- Widths.cpp - Intermediate sizes that configurations give -----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The extents of tensors are what is used. Where the configuration gives the
// intermediate size too, both must agree: a file that was cut for one of
// several devices, or padded, otherwise passes for whole.
//
//===----------------------------------------------------------------------===//

#include "Routing.h"

using namespace wna16;

namespace {

/// The keys of architectures that do not call it moe_intermediate_size.
struct WidthKey {
  const char *type;
  const char *key;
  const char *part; ///< object that holds the key; null: the model's own
  const char *shared = nullptr; ///< of a dense part beside the experts
};
const WidthKey kWidthKeys[] = {
    {"mixtral", "intermediate_size", nullptr},
    {"olmoe", "intermediate_size", nullptr},
    {"minimax", "intermediate_size", nullptr},
    {"minimax_m1", "intermediate_size", nullptr},
    {"minimax_m2", "intermediate_size", nullptr},
    {"minimax_text_01", "intermediate_size", nullptr},
    {"jamba", "intermediate_size", nullptr},
    {"phimoe", "intermediate_size", nullptr},
    {"granitemoe", "intermediate_size", nullptr},
    {"granitemoeshared", "intermediate_size", nullptr},
    {"granitemoehybrid", "intermediate_size", nullptr},
    {"llama4", "intermediate_size", nullptr},
    {"llama4_text", "intermediate_size", nullptr},
    {"gpt_oss", "intermediate_size", nullptr},
    {"dbrx", "ffn_hidden_size", "ffn_config"},
    {"gemma4", "moe_intermediate_size", nullptr, "intermediate_size"},
    {"gemma4_text", "moe_intermediate_size", nullptr, "intermediate_size"},
};

WidthKey widthKeyOf(const std::string &modelType) {
  for (const WidthKey &row : kWidthKeys)
    if (modelType == row.type)
      return row;
  return {"", "moe_intermediate_size", nullptr};
}

/// Widths of all shared experts together; no architecture has two of these.
const char *const kSharedWidths[] = {"shared_expert_intermediate_size",
                                     "moe_shared_expert_intermediate_size",
                                     "shared_intermediate_size"};
/// Shared experts of the routed ones' width.
const char *const kSharedCounts[] = {"n_shared_experts", "num_shared_experts",
                                     "moe_num_shared_experts"};

/// An extent of a weight and what gives another.
Failure compare(const ModelConfig &config, const std::string &said,
                int64_t width, const WeightSource &weight) {
  if (weight.spec.output == width)
    return ok();
  return fail(config.file() + ": " + said + " is " + std::to_string(width) +
              ", but " + weight.parts[0].pattern + " holds " +
              std::to_string(weight.spec.output));
}

Failure checkShared(const ModelConfig &config, std::optional<int64_t> expert,
                    const WidthKey &row, const MoELayer &layer) {
  const WeightSource &weight = layer.shared->w13;
  const std::string expertKey = row.key;
  std::optional<bool> isDouble;
  if (Failure failure = config.read({"use_double_wide_mlp"}, isDouble))
    return failure;
  // Which layers are twice as wide depends on their attention.
  if (row.shared && !isDouble.value_or(false)) {
    std::optional<int64_t> width;
    if (Failure failure = config.read({row.shared}, width))
      return failure;
    return width ? compare(config, row.shared, *width, weight) : ok();
  }
  for (const char *key : kSharedWidths) {
    std::optional<int64_t> width;
    if (Failure failure = config.read({key}, width))
      return failure;
    if (width && *width > 0)
      return compare(config, key, *width, weight);
  }
  for (const char *key : kSharedCounts) {
    std::optional<int64_t> count;
    if (Failure failure = config.read({key}, count))
      return failure;
    int64_t width = 0;
    if (!count || *count < 1 || !expert)
      continue;
    if (__builtin_mul_overflow(*count, *expert, &width))
      return fail(config.file() + ": " + key + " (" + std::to_string(*count) +
                  ") times " + expertKey + " does not fit 63 bits");
    return compare(config, std::string(key) + " times " + expertKey, width,
                   weight);
  }
  return ok();
}

} // namespace

Failure wna16::checkWidths(const ModelConfig &config, const MoELayer &layer) {
  WidthKey row = widthKeyOf(config.modelType());
  std::optional<int64_t> width;
  const Json *part = row.part ? config.find(row.part) : nullptr;
  Failure failure = row.part
                        ? part ? readKey(*part, {row.key},
                                         config.file() + ": " + row.part, width)
                               : ok()
                        : config.readLayer({row.key}, layer.index, width);
  if (failure)
    return failure;
  if (width)
    if (Failure bad = compare(config, row.key, *width, layer.experts.w13))
      return bad;
  return layer.shared ? checkShared(config, width, row, layer) : ok();
}
