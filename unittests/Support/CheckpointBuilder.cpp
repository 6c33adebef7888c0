//===- CheckpointBuilder.cpp - Small checkpoints of real formats *- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointBuilder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>

namespace wna16::test {

//===----------------------------------------------------------------------===//
// Directories
//===----------------------------------------------------------------------===//

TemporaryDirectory::TemporaryDirectory() {
  std::string name =
      (std::filesystem::temp_directory_path() / "wna16-test-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw std::runtime_error("cannot make a temporary directory");
  directory = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

void TemporaryDirectory::write(const std::string &name,
                               const std::string &text) const {
  std::ofstream(file(name), std::ios::binary) << text;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {

/// 16-bit encodings of numbers that both 16-bit types hold exactly.
uint16_t encode16(float value, ScalarType type) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (type == ScalarType::BF16)
    return uint16_t(bits >> 16);
  if (value == 0.0F)
    return 0;
  int exponent = int(bits >> 23 & 255) - 127 + 15;
  return uint16_t((bits >> 16 & 0x8000) | uint32_t(exponent) << 10 |
                  (bits >> 13 & 1023));
}

OwnedTensor makeFloats(const std::vector<float> &values,
                       std::vector<int64_t> shape, ScalarType type) {
  OwnedTensor tensor = {type, std::move(shape), {}};
  tensor.bytes.resize(values.size() * size_t(sizeOf(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == ScalarType::F32) {
      std::memcpy(&tensor.bytes[4 * i], &values[i], 4);
      continue;
    }
    uint16_t bits = encode16(values[i], type);
    std::memcpy(&tensor.bytes[2 * i], &bits, 2);
  }
  return tensor;
}

template <typename T>
OwnedTensor makeIntegers(const std::vector<T> &values,
                         std::vector<int64_t> shape, ScalarType type) {
  OwnedTensor tensor = {type, std::move(shape), {}};
  tensor.bytes.resize(values.size() * sizeof(T));
  if (!values.empty())
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

/// Packs along the last axis of [rows, columns]; field p of a word holds
/// column offset order[p].
std::vector<uint32_t> packColumns(const std::vector<uint32_t> &values,
                                  int64_t rows, int64_t columns, int bits,
                                  const std::vector<int64_t> &order) {
  int64_t factor = 32 / bits;
  int64_t words = (columns + factor - 1) / factor;
  std::vector<uint32_t> packed(size_t(rows * words));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t w = 0; w < words; ++w)
      for (int64_t p = 0; p < factor; ++p) {
        int64_t c = w * factor + order[size_t(p)];
        if (c < columns)
          packed[size_t(r * words + w)] |= values[size_t(r * columns + c)]
                                           << (p * bits);
      }
  return packed;
}

std::vector<int64_t> naturalOrder(int bits) {
  std::vector<int64_t> order(size_t(32 / bits));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<uint32_t> transpose(const std::vector<uint32_t> &values,
                                int64_t rows, int64_t columns) {
  std::vector<uint32_t> result(values.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[size_t(c * rows + r)] = values[size_t(r * columns + c)];
  return result;
}

template <typename T>
std::vector<float> transposeFloats(const std::vector<T> &values, int64_t rows,
                                   int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[size_t(c * rows + r)] = values[size_t(r * columns + c)];
  return result;
}

/// One quantised linear before it is packed.
struct Quantised {
  int64_t input, output, groups;
  std::vector<uint32_t> codes;     ///< [input, output]
  std::vector<uint32_t> zeros;     ///< [groups, output]
  std::vector<float> scales;       ///< [groups, output]
  std::vector<int32_t> groupIndex; ///< [input]
};

Quantised makeQuantised(int64_t input, int64_t output, const LinearStyle &style,
                        std::mt19937_64 &random, uint64_t orderSeed) {
  int64_t group = style.group < 0 ? input : style.group;
  Quantised q = {input, output, (input + group - 1) / group, {}, {}, {}, {}};
  uint64_t top = (uint64_t(1) << style.bits) - 1;
  for (int64_t i = 0; i < input * output; ++i)
    q.codes.push_back(uint32_t(random() & top));
  for (int64_t i = 0; i < q.groups * output; ++i) {
    // Zero points from 1: v1 stores them minus one.
    q.zeros.push_back(style.symmetric ? uint32_t(top / 2 + 1)
                                      : uint32_t(1 + random() % top));
    q.scales.push_back(float(8 + random() % 8) / 1024.0F);
  }
  for (int64_t k = 0; k < input; ++k)
    q.groupIndex.push_back(int32_t(k / group));
  if (style.actOrder) {
    std::mt19937_64 order(orderSeed);
    std::shuffle(q.groupIndex.begin(), q.groupIndex.end(), order);
  }
  return q;
}

std::vector<float> dequantise(const Quantised &q) {
  std::vector<float> dense(q.codes.size());
  for (int64_t k = 0; k < q.input; ++k)
    for (int64_t n = 0; n < q.output; ++n) {
      size_t side = size_t(q.groupIndex[size_t(k)] * q.output + n);
      float difference =
          float(q.codes[size_t(k * q.output + n)]) - float(q.zeros[side]);
      dense[size_t(n * q.input + k)] = difference * q.scales[side];
    }
  return dense;
}

} // namespace

//===----------------------------------------------------------------------===//
// Linears
//===----------------------------------------------------------------------===//

namespace {

using Tensors = std::map<std::string, OwnedTensor>;

void storeGPTQ(Tensors &out, const std::string &module, const Quantised &q,
               const LinearStyle &style) {
  int64_t factor = 32 / style.bits;
  std::vector<int64_t> natural = naturalOrder(style.bits);
  // Words run down the columns: pack the transpose and turn it back.
  std::vector<uint32_t> words =
      packColumns(transpose(q.codes, q.input, q.output), q.output, q.input,
                  style.bits, natural);
  int64_t rows = (q.input + factor - 1) / factor;
  out[module + ".qweight"] = makeIntegers(transpose(words, q.output, rows),
                                          {rows, q.output}, ScalarType::I32);
  std::vector<uint32_t> zeros = q.zeros;
  if (style.stored == Stored::GPTQ)
    for (uint32_t &zero : zeros)
      zero -= 1;
  out[module + ".qzeros"] = makeIntegers(
      packColumns(zeros, q.groups, q.output, style.bits, natural),
      {q.groups, (q.output + factor - 1) / factor}, ScalarType::I32);
  out[module + ".scales"] =
      makeFloats(q.scales, {q.groups, q.output}, style.scale);
  out[module + ".g_idx"] =
      makeIntegers(q.groupIndex, {q.input}, ScalarType::I32);
}

void storeAWQ(Tensors &out, const std::string &module, const Quantised &q,
              const LinearStyle &style) {
  std::vector<int64_t> order = {0, 2, 4, 6, 1, 3, 5, 7};
  out[module + ".qweight"] =
      makeIntegers(packColumns(q.codes, q.input, q.output, 4, order),
                   {q.input, q.output / 8}, ScalarType::I32);
  if (!style.symmetric)
    out[module + ".qzeros"] =
        makeIntegers(packColumns(q.zeros, q.groups, q.output, 4, order),
                     {q.groups, q.output / 8}, ScalarType::I32);
  out[module + ".scales"] =
      makeFloats(q.scales, {q.groups, q.output}, style.scale);
}

void storeCompressed(Tensors &out, const std::string &module,
                     const Quantised &q, const LinearStyle &style) {
  int64_t factor = 32 / style.bits;
  std::vector<int64_t> natural = naturalOrder(style.bits);
  out[module + ".weight_packed"] = makeIntegers(
      packColumns(transpose(q.codes, q.input, q.output), q.output, q.input,
                  style.bits, natural),
      {q.output, (q.input + factor - 1) / factor}, ScalarType::I32);
  out[module + ".weight_scale"] =
      makeFloats(transposeFloats(q.scales, q.groups, q.output),
                 {q.output, q.groups}, style.scale);
  int64_t words = (q.output + factor - 1) / factor;
  if (!style.symmetric)
    out[module + ".weight_zero_point"] = makeIntegers(
        transpose(packColumns(q.zeros, q.groups, q.output, style.bits, natural),
                  q.groups, words),
        {words, q.groups}, ScalarType::I32);
  out[module + ".weight_shape"] = makeIntegers(
      std::vector<int64_t>{q.output, q.input}, {2}, ScalarType::I64);
  if (style.actOrder)
    out[module + ".weight_g_idx"] =
        makeIntegers(q.groupIndex, {q.input}, ScalarType::I32);
}

} // namespace

void CheckpointBuilder::addLinear(const std::string &module, int64_t input,
                                  int64_t output, const LinearStyle &style,
                                  uint64_t orderSeed) {
  if (style.stored == Stored::Dense) {
    std::vector<float> values;
    for (int64_t i = 0; i < input * output; ++i)
      values.push_back((float(random() % 15) - 7.0F) / 64.0F);
    tensors[module + ".weight"] =
        makeFloats(values, {output, input}, style.element);
    dense[module] = std::move(values);
    return;
  }
  Quantised q = makeQuantised(input, output, style, random, orderSeed);
  dense[module] = dequantise(q);
  if (style.stored == Stored::AWQ)
    storeAWQ(tensors, module, q, style);
  else if (style.stored == Stored::CompressedTensors)
    storeCompressed(tensors, module, q, style);
  else
    storeGPTQ(tensors, module, q, style);
}

void CheckpointBuilder::addTensor(const std::string &name, ScalarType type,
                                  std::vector<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i)
    values.push_back((float(random() % 15) - 7.0F) / 64.0F);
  tensors[name] = makeFloats(values, std::move(shape), type);
}

void CheckpointBuilder::removeModule(const std::string &module) {
  dense.erase(module);
  for (auto it = tensors.lower_bound(module + ".");
       it != tensors.end() && it->first.find(module + ".") == 0;)
    it = tensors.erase(it);
}

//===----------------------------------------------------------------------===//
// Fused experts
//===----------------------------------------------------------------------===//

/// Stacks the rows of matrices: expert by expert, then leaf by leaf or, in
/// turn, row by row.
OwnedTensor CheckpointBuilder::fuseRows(const std::vector<std::string> &modules,
                                        size_t leaves,
                                        const std::string &suffix,
                                        bool interleaved) const {
  const OwnedTensor &first = tensors.at(modules[0] + suffix);
  int64_t rows = first.shape[0];
  size_t bytes = first.bytes.size() / size_t(rows);
  OwnedTensor result = {first.type,
                        {int64_t(modules.size() / leaves),
                         rows * int64_t(leaves), first.shape[1]},
                        {}};
  for (size_t expert = 0; expert < modules.size(); expert += leaves)
    for (size_t i = 0; i < size_t(rows) * leaves; ++i) {
      size_t leaf = interleaved ? i % leaves : i / size_t(rows);
      size_t row = interleaved ? i / leaves : i % size_t(rows);
      const auto &from = tensors.at(modules[expert + leaf] + suffix).bytes;
      auto begin = from.begin() + std::ptrdiff_t(row * bytes);
      result.bytes.insert(result.bytes.end(), begin,
                          begin + std::ptrdiff_t(bytes));
    }
  return result;
}

/// Swaps the last two axes.
static OwnedTensor transposed(const OwnedTensor &tensor) {
  int64_t rows = tensor.shape[1], columns = tensor.shape[2];
  size_t size = size_t(sizeOf(tensor.type));
  OwnedTensor result = {tensor.type, {tensor.shape[0], columns, rows}, {}};
  for (int64_t e = 0; e < tensor.shape[0]; ++e)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r) {
        auto at = tensor.bytes.begin() +
                  std::ptrdiff_t(size_t((e * rows + r) * columns + c) * size);
        result.bytes.insert(result.bytes.end(), at, at + std::ptrdiff_t(size));
      }
  return result;
}

void CheckpointBuilder::fuse(int64_t layer, const std::string &module,
                             const std::vector<std::string> &leaves,
                             const LinearStyle &linear,
                             const FusedStyle &style) {
  std::vector<std::string> modules;
  std::vector<float> values;
  for (int64_t e = 0; e < model.count; ++e)
    for (const std::string &leaf : leaves) {
      modules.push_back(expert(layer, e) + leaf);
      const std::vector<float> &one = dense.at(modules.back());
      values.insert(values.end(), one.begin(), one.end());
    }
  bool turns = style.interleaved && leaves.size() == 2;
  if (linear.stored == Stored::Dense) {
    OwnedTensor all = fuseRows(modules, leaves.size(), ".weight", turns);
    tensors[module] = style.transposed ? transposed(all) : all;
  } else {
    std::string start = module + (style.nested ? ".weight" : "");
    for (const char *part : {"_packed", "_scale", "_zero_point"})
      if (tensors.count(modules[0] + ".weight" + part))
        tensors[start + part] = fuseRows(modules, leaves.size(),
                                         std::string(".weight") + part, turns);
    int64_t out = tensors.at(start + "_packed").shape[1];
    int64_t in = int64_t(values.size()) / model.count / out;
    tensors[start + "_shape"] = makeIntegers(
        std::vector<int64_t>{model.count, out, in}, {3}, ScalarType::I64);
  }
  for (const std::string &each : modules)
    removeModule(each);
  dense[module] = std::move(values);
}

void CheckpointBuilder::fuseExperts(int64_t layer, const FusedStyle &style) {
  std::string base = block(layer) + model.experts;
  std::vector<std::string> first = {model.up};
  if (!model.gate.empty())
    first.insert(first.begin(), model.gate);
  fuse(layer, base + style.w13, first, model.w13, style);
  fuse(layer, base + style.w2, {model.down}, model.w2, style);
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

nlohmann::ordered_json quantizationConfig(const LinearStyle &style) {
  nlohmann::ordered_json json;
  if (style.stored == Stored::Dense)
    return nullptr;
  if (style.stored == Stored::AWQ)
    return {
        {"quant_method", "awq"},          {"bits", style.bits},
        {"group_size", style.group},      {"version", "gemm"},
        {"zero_point", !style.symmetric}, {"modules_to_not_convert", {"gate"}}};
  if (style.stored != Stored::CompressedTensors)
    return {{"quant_method", "gptq"},
            {"bits", style.bits},
            {"group_size", style.group},
            {"sym", style.symmetric},
            {"desc_act", style.actOrder},
            {"checkpoint_format",
             style.stored == Stored::GPTQv2 ? "gptq_v2" : "gptq"}};
  nlohmann::ordered_json weights = {
      {"num_bits", style.bits},
      {"type", "int"},
      {"symmetric", style.symmetric},
      {"strategy", style.group < 0 ? "channel" : "group"},
      {"group_size", style.group < 0 ? nlohmann::ordered_json()
                                     : nlohmann::ordered_json(style.group)},
      {"actorder", style.actOrder ? nlohmann::ordered_json("group")
                                  : nlohmann::ordered_json()}};
  nlohmann::ordered_json targets = nlohmann::ordered_json::array({"Linear"});
  json["quant_method"] = "compressed-tensors";
  json["format"] = "pack-quantized";
  json["ignore"] = {"lm_head", "re:.*mlp.gate$"};
  json["config_groups"]["group_0"] = {{"targets", targets},
                                      {"weights", weights},
                                      {"input_activations", nullptr}};
  return json;
}

CheckpointBuilder::CheckpointBuilder(ModelStyle model, LinearStyle style)
    : CheckpointBuilder([&] {
        model.w13 = model.w2 = style;
        return model;
      }()) {}

CheckpointBuilder::CheckpointBuilder(ModelStyle style)
    : model(std::move(style)), random(model.seed) {
  config = {{"architectures", {"TestForCausalLM"}},
            {"model_type", model.modelType},
            {"hidden_size", model.hidden},
            {"moe_intermediate_size", model.intermediate},
            {"num_experts", model.count},
            {"num_experts_per_tok", model.topK},
            {"num_hidden_layers", model.layers},
            {"norm_topk_prob", true},
            {"hidden_act", "silu"},
            {"dtype", "bfloat16"}};
  nlohmann::ordered_json quantization = quantizationConfig(
      model.w13.stored != Stored::Dense ? model.w13 : model.w2);
  if (!quantization.is_null())
    config["quantization_config"] = quantization;
  for (int64_t layer = 0; layer < model.layers; ++layer)
    addLayer(layer);
}

std::string CheckpointBuilder::block(int64_t layer) const {
  return model.prefix + "layers." + std::to_string(layer) + "." + model.block;
}

std::string CheckpointBuilder::expert(int64_t layer, int64_t index) const {
  return block(layer) + model.experts + std::to_string(index) + ".";
}

void CheckpointBuilder::addExpert(const std::string &base,
                                  const LinearStyle &w13, const LinearStyle &w2,
                                  uint64_t orderSeed) {
  if (!model.gate.empty())
    addLinear(base + model.gate, model.hidden, model.intermediate, w13,
              orderSeed);
  addLinear(base + model.up, model.hidden, model.intermediate, w13, orderSeed);
  addLinear(base + model.down, model.intermediate, model.hidden, w2,
            orderSeed + 1);
}

void CheckpointBuilder::addLayer(int64_t layer) {
  LinearStyle plain;
  plain.stored = Stored::Dense;
  addLinear(block(layer) + model.router, model.hidden, model.count, plain);
  for (int64_t e = 0; e < model.count; ++e)
    addExpert(expert(layer, e), model.w13, model.w2,
              model.seed + uint64_t(layer * 1000 + e * 2));
}

void CheckpointBuilder::write(const std::string &directory) const {
  std::vector<TensorToWrite> list;
  for (const auto &[name, tensor] : tensors)
    list.push_back({name, tensor.type, tensor.shape, tensor.bytes.data()});
  if (Failure failure = writeSafeTensors(directory + "/model.safetensors", list,
                                         {{"format", "pt"}}))
    throw std::runtime_error(failure.message);
  std::ofstream(directory + "/config.json") << config.dump(2) << "\n";
}

} // namespace wna16::test
