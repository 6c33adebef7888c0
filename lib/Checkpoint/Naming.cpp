//===- Naming.cpp - How model families name their MoE tensors -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Naming.h"

#include <algorithm>
#include <map>

using namespace wna16;

namespace {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

struct Prefix {
  const char *text;
  bool prediction;
};
const Prefix kPrefixes[] = {
    {"model.", false},
    {"model.language_model.", false},
    {"language_model.model.", false},
    {"language_model.", false},
    {"transformer.", false},
    {"backbone.", false},
    {"", false},
    {"mtp.", true},
    {"model.mtp.", true},
};

const char *const kLayerLists[] = {"layers", "blocks"};

/// The MoE block within a layer; "" is the layer itself.
const char *const kBlocks[] = {
    "mlp.", "block_sparse_moe.", "feed_forward.", "ffn.", "mixer.", "moe.", ""};

/// Where the experts are within a block, and before which their number stands.
const char *const kExperts[] = {"experts.experts.", "experts.mlp.", "experts."};

/// gate, up and down. Without a gate the experts are not gated.
struct Projections {
  const char *gate;
  const char *up;
  const char *down;
};
const Projections kProjections[] = {
    {"gate_proj", "up_proj", "down_proj"},
    {"w1", "w3", "w2"},
    {"w1", "v1", "w2"}, // DBRX
    {nullptr, "up_proj", "down_proj"},
};

/// One tensor that holds gate and up. A parameter's packed parts follow its
/// name without a dot.
struct Fused {
  const char *w13;
  const char *w2;
};
const Fused kFused[] = {
    {"experts.gate_up_proj", "experts.down_proj"},
    {"input_linear", "output_linear"}, // Granite
};

/// The last one, which is a layer's own, belongs to blocks with norms alone.
const char *const kShared[] = {"shared_expert.", "shared_experts.",
                               "shared_mlp.", "mlp."};
const char *const kRouters[] = {"gate", "gate.wg", "router", "router.layer",
                                "router.proj"};
const char *const kCorrections[] = {
    "gate.e_score_correction_bias", "moe_statics.e_score_correction_bias",
    "e_score_correction_bias", "gate.expert_bias", "expert_bias"};
const char *const kExpertScales[] = {"router.per_expert_scale",
                                     "per_expert_scale"};
const char *const kSharedGates[] = {"shared_expert_gate"};
/// What such a block has in its layer besides.
const char *const kNormed[] = {"mlp.", "pre_feedforward_layernorm",
                               "post_feedforward_layernorm"};

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool startsWith(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// Reads digits at `position`; -1 when there are none or too many.
int64_t numberAt(const std::string &text, size_t &position) {
  size_t start = position;
  int64_t value = 0;
  while (position < text.size() && text[position] >= '0' &&
         text[position] <= '9' && position - start < 7)
    value = value * 10 + (text[position++] - '0');
  bool ends = position < text.size() && text[position] == '.';
  // "00" would be a second name of 0.
  bool padded = position > start + 1 && text[start] == '0';
  return position == start || !ends || padded ? -1 : value;
}

/// "model.", 1 and the rest of "model.layers.1.mlp.gate.weight".
struct LayerName {
  std::string prefix;
  std::string layer; ///< "model.layers.1."
  int64_t index;
  std::string rest;
};
std::optional<LayerName> splitLayer(const std::string &name) {
  for (const char *list : kLayerLists) {
    std::string token = std::string(list) + ".";
    size_t at = startsWith(name, token) ? 0 : name.find("." + token);
    if (at == std::string::npos)
      continue;
    size_t start = at == 0 && startsWith(name, token) ? 0 : at + 1;
    size_t position = start + token.size();
    int64_t index = numberAt(name, position);
    if (index < 0)
      continue;
    return LayerName{name.substr(0, start), name.substr(0, position + 1), index,
                     name.substr(position + 1)};
  }
  return std::nullopt;
}

/// The block of a tensor that only MoE blocks have; null when it is none.
const char *blockOf(const std::string &rest) {
  for (const char *block : kBlocks) {
    if (!startsWith(rest, block))
      continue;
    std::string inner = rest.substr(std::char_traits<char>::length(block));
    if (startsWith(inner, "experts.") || startsWith(inner, "input_linear."))
      return block;
  }
  return nullptr;
}

const Prefix *findPrefix(const std::string &text) {
  for (const Prefix &prefix : kPrefixes)
    if (text == prefix.text)
      return &prefix;
  return nullptr;
}

/// All tensor names, usable or not.
std::vector<std::string> allNames(const SafeTensors &files) {
  std::vector<std::string> names;
  for (const auto &[name, view] : files.all())
    names.push_back(name);
  for (const auto &[name, type] : files.foreign())
    names.push_back(name);
  return names;
}

bool hasModule(const Block &block, const std::string &module) {
  auto it = block.tensors.lower_bound(module);
  for (; it != block.tensors.end() && startsWith(*it, module); ++it)
    if (it->size() == module.size() || (*it)[module.size()] == '.')
      return true;
  return false;
}

bool hasFused(const Block &block, const std::string &module) {
  return hasModule(block, module) || block.tensors.count(module + "_packed");
}

template <size_t count>
std::optional<std::string> firstTensor(const Block &block,
                                       const char *const (&names)[count],
                                       const char *suffix) {
  for (const std::string &prefix : {block.prefix, block.layerPrefix})
    for (const char *name : names)
      for (const char *end : {suffix, ".qweight", ".weight_packed"}) {
        if (block.tensors.count(prefix + name + end))
          return prefix + name;
        if (*suffix == '\0')
          break;
      }
  return std::nullopt;
}

/// Gives every block the tensors that it must account for.
void collectTensors(const std::vector<std::string> &names, bool hasNorms,
                    std::map<std::string, Block> &blocks) {
  for (const std::string &name : names) {
    std::optional<LayerName> split = splitLayer(name);
    auto it = split ? blocks.find(split->layer) : blocks.end();
    if (it == blocks.end())
      continue;
    Block &block = it->second;
    bool inBlock = block.prefix != block.layerPrefix
                       ? startsWith(name, block.prefix)
                       : startsWith(split->rest, "experts.");
    bool beside = startsWith(split->rest, "shared_mlp.") ||
                  startsWith(split->rest, "router.") ||
                  startsWith(split->rest, "gate.");
    if (hasNorms)
      for (const char *start : kNormed)
        beside |= startsWith(split->rest, start);
    if (inBlock || beside)
      block.tensors.insert(name);
  }
}

} // namespace

Result<std::vector<Block>> wna16::findBlocks(const SafeTensors &files,
                                             bool hasNorms) {
  std::vector<std::string> names = allNames(files);
  std::map<std::string, Block> blocks; // by layer prefix
  std::optional<std::string> mainPrefix, predictionPrefix;
  for (const std::string &name : names) {
    std::optional<LayerName> split = splitLayer(name);
    const char *inner = split ? blockOf(split->rest) : nullptr;
    if (!inner)
      continue;
    const Prefix *prefix = findPrefix(split->prefix);
    if (!prefix)
      return fail("tensor " + name + ": prefix \"" + split->prefix +
                  "\" is none that a model has");
    auto &expected = prefix->prediction ? predictionPrefix : mainPrefix;
    if (expected && *expected != split->prefix)
      return fail("tensor " + name + ": prefix \"" + split->prefix +
                  "\" beside \"" + *expected + "\"");
    expected = split->prefix;
    Block &block = blocks[split->layer];
    block.layer = split->index;
    block.prediction = prefix->prediction;
    block.layerPrefix = split->layer;
    std::string full = split->layer + inner;
    if (!block.prefix.empty() && block.prefix != full)
      return fail("layer " + std::to_string(block.layer) +
                  " has MoE blocks at " + block.prefix + " and " + full);
    block.prefix = full;
  }
  collectTensors(names, hasNorms, blocks);
  std::vector<Block> result;
  for (auto &[layer, block] : blocks)
    result.push_back(std::move(block));
  std::sort(result.begin(), result.end(), [](const Block &a, const Block &b) {
    return std::make_pair(a.prediction, a.layer) <
           std::make_pair(b.prediction, b.layer);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

namespace {

/// Projections that are there, and the experts that have them.
using Found = std::map<std::string, std::set<int64_t>>;

Found findProjections(const Block &block, const std::string &base) {
  Found found;
  for (auto it = block.tensors.lower_bound(base);
       it != block.tensors.end() && startsWith(*it, base); ++it) {
    size_t position = base.size();
    int64_t expert = numberAt(*it, position);
    size_t end = it->find('.', position + 1);
    if (expert >= 0 && end != std::string::npos)
      found[it->substr(position + 1, end - position - 1)].insert(expert);
  }
  return found;
}

/// Every projection must have the same experts, numbered from 0.
Failure countExperts(const Found &found, const std::string &base,
                     const std::vector<std::string> &projections,
                     int64_t &experts) {
  const std::string &first = projections.front();
  experts = static_cast<int64_t>(found.at(first).size());
  auto text = [&](const std::string &projection) {
    return std::to_string(found.at(projection).size()) + " of " + base +
           "{expert}." + projection;
  };
  for (const std::string &projection : projections) {
    const std::set<int64_t> &have = found.at(projection);
    if (have.size() != found.at(first).size())
      return fail("experts differ in number: " + text(first) + " but " +
                  text(projection));
    int64_t next = 0;
    for (int64_t expert : have)
      if (expert != next++)
        return fail("missing tensors of " + base + std::to_string(next - 1) +
                    "." + projection);
  }
  return ok();
}

std::optional<Projections> matchProjections(const Found &found) {
  for (const Projections &row : kProjections)
    if ((!row.gate || found.count(row.gate)) && found.count(row.up) &&
        found.count(row.down))
      return row;
  return std::nullopt;
}

Result<ExpertNames> namesOf(const Found &found, const std::string &base) {
  std::optional<Projections> row = matchProjections(found);
  if (!row) {
    std::string list;
    for (const auto &[projection, experts] : found)
      list += (list.empty() ? "" : ", ") + projection;
    return fail(base + "{expert} has the projections " + list +
                ", which no family has");
  }
  ExpertNames names;
  std::vector<std::string> projections = {row->up, row->down};
  if (row->gate)
    projections.insert(projections.begin(), row->gate);
  if (Failure failure = countExperts(found, base, projections, names.experts))
    return failure;
  std::string up =
      row->gate ? "{" + std::string(row->gate) + "," + row->up + "}" : row->up;
  names.halves = row->gate ? 2 : 1;
  names.w13 = base + "{expert}." + up;
  names.w2 = base + "{expert}." + row->down;
  return names;
}

} // namespace

Result<ExpertNames> wna16::routedNames(const Block &block) {
  for (const char *experts : kExperts) {
    std::string base = block.prefix + experts;
    Found found = findProjections(block, base);
    if (!found.empty())
      return namesOf(found, base);
  }
  for (const Fused &row : kFused) {
    ExpertNames names;
    names.fused = true;
    names.w13 = block.prefix + row.w13;
    names.w2 = block.prefix + row.w2;
    if (hasFused(block, names.w13) && hasFused(block, names.w2))
      return names;
  }
  for (const std::string &tensor : block.tensors)
    if (tensor.find("_proj_blocks") != std::string::npos)
      return fail("tensor " + tensor + ": mxfp4 experts are not supported");
  return fail("the experts of " + block.prefix +
              " are named as in no known family; its first tensor is " +
              *block.tensors.begin());
}

std::optional<ExpertNames> wna16::sharedNames(const Block &block) {
  for (const std::string &prefix : {block.prefix, block.layerPrefix})
    for (const char *shared : kShared) {
      std::string base = prefix + shared;
      ExpertNames names;
      for (const Projections &row : kProjections) {
        if ((row.gate && !hasModule(block, base + row.gate)) ||
            !hasModule(block, base + row.up) ||
            !hasModule(block, base + row.down))
          continue;
        names.halves = row.gate ? 2 : 1;
        names.w13 = row.gate ? base + "{" + row.gate + "," + row.up + "}"
                             : base + row.up;
        names.w2 = base + row.down;
        return names;
      }
      names.w13 = base + kFused[1].w13;
      names.w2 = base + kFused[1].w2;
      names.fused = true;
      if (hasFused(block, names.w13) && hasFused(block, names.w2))
        return names;
    }
  return std::nullopt;
}

std::optional<std::string> wna16::routerModule(const Block &block) {
  return firstTensor(block, kRouters, ".weight");
}

std::optional<std::string> wna16::correctionTensor(const Block &block) {
  return firstTensor(block, kCorrections, "");
}

std::optional<std::string> wna16::expertScaleTensor(const Block &block) {
  return firstTensor(block, kExpertScales, "");
}

std::optional<std::string> wna16::sharedGateModule(const Block &block) {
  return firstTensor(block, kSharedGates, ".weight");
}
