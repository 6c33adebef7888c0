//===- Synth.cpp - wna16 synth --------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every byte follows from the seed, the tensor's name and its offset, through a
// generator that counts (splitmix64) and integer arithmetic: the result depends
// neither on threads nor on the machine.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interruption.h"
#include "Progress.h"
#include "SynthModel.h"
#include "Workers.h"

#include "Checkpoint/SafeTensors.h"
#include "Layout/Scalar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace wna16;
using namespace wna16::cli;

namespace {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// The random words of one tensor, by number.
class Stream {
public:
  Stream(uint64_t seed, llvm::StringRef name) : key(mix(seed + kStep)) {
    for (char c : name)
      key = mix(key ^ static_cast<unsigned char>(c));
  }
  uint64_t operator()(int64_t index) const {
    return mix(key + static_cast<uint64_t>(index) * kStep);
  }

private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  uint64_t key;
};

/// Sums of two uniform numbers: a triangle around the middle, as wide as codes
/// of real weights are.
constexpr uint64_t kNibbles = 0x0f0f0f0f0f0f0f0fu;

uint64_t eightNibbles(uint64_t random) {
  uint64_t sum = (random & kNibbles) + (random >> 4 & kNibbles);
  return (sum + 0x0101010101010101u) >> 1 & kNibbles;
}

/// Eight bytes of codes.
uint64_t codesOf(const Stream &random, int64_t index, int bits) {
  uint64_t a = random(2 * index), b = random(2 * index + 1);
  if (bits == 4)
    return eightNibbles(a) | eightNibbles(b) << 4;
  // The mean of two bytes, rounded up.
  return (a | b) - ((a ^ b) >> 1 & 0x7f7f7f7f7f7f7f7fu);
}

/// Eight bytes of zero points, stored: 6 to 9 of 15 and 120 to 135 of 255, far
/// from where conventions differ.
uint64_t zerosOf(const Stream &random, int64_t index, int bits) {
  uint64_t word = random(index);
  return bits == 4 ? (word & 0x3333333333333333u) + 0x6666666666666666u
                   : (word & kNibbles) + 0x7878787878787878u;
}

/// In (-1, 1), a triangle of standard deviation 1 / sqrt(6).
float triangleOf(uint64_t random) {
  auto sum = static_cast<int>((random & 0xffff) + (random >> 16 & 0xffff));
  return static_cast<float>(sum - 0xffff) / 65536.0f;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Fills bytes [offset, offset + size) of a tensor; both are multiples of 8
/// except at its end.
class Filler {
public:
  Filler(uint64_t seed, const TargetFormat &format)
      : seed(seed), format(format) {}

  void fill(const SynthTensor &tensor, int64_t offset,
            std::vector<uint8_t> &out) const;

private:
  void fillWords(std::vector<uint8_t> &out,
                 llvm::function_ref<uint64_t(int64_t)> word,
                 int64_t first) const;
  void fillFloats(const SynthTensor &tensor, const Stream &random,
                  int64_t offset, std::vector<uint8_t> &out) const;
  void shuffleGroups(const SynthTensor &tensor, const Stream &random,
                     std::vector<uint8_t> &out) const;

  uint64_t seed;
  const TargetFormat &format;
};

void Filler::fillWords(std::vector<uint8_t> &out,
                       llvm::function_ref<uint64_t(int64_t)> word,
                       int64_t first) const {
  for (size_t at = 0; at < out.size(); at += 8) {
    uint64_t value = word(first + static_cast<int64_t>(at / 8));
    std::memcpy(out.data() + at, &value, std::min<size_t>(8, out.size() - at));
  }
}

void Filler::fillFloats(const SynthTensor &tensor, const Stream &random,
                        int64_t offset, std::vector<uint8_t> &out) const {
  ScalarType type = tensor.plan.tensor.type;
  int64_t size = sizeOf(type), first = offset / size;
  auto count = static_cast<int64_t>(out.size()) / size;
  for (int64_t i = 0; i < count; ++i) {
    // Each word is two numbers.
    uint64_t word = random((first + i) / 2) >> ((first + i) % 2 * 32);
    storeFloat(type, out.data(), i,
               tensor.mean + tensor.spread * triangleOf(word));
  }
}

/// Groups in random order, all of the same size.
void Filler::shuffleGroups(const SynthTensor &tensor, const Stream &random,
                           std::vector<uint8_t> &out) const {
  std::vector<int32_t> index(out.size() / sizeof(int32_t));
  for (size_t k = 0; k < index.size(); ++k)
    index[k] =
        static_cast<int32_t>(static_cast<int64_t>(k) / tensor.spec.group);
  for (size_t k = index.size(); k > 1; --k)
    std::swap(index[k - 1], index[random(static_cast<int64_t>(k)) % k]);
  std::memcpy(out.data(), index.data(), out.size());
}

void Filler::fill(const SynthTensor &tensor, int64_t offset,
                  std::vector<uint8_t> &out) const {
  const ModuleTensor &plan = tensor.plan;
  if (plan.content != ModuleTensor::Stored)
    return fillConstant(format, plan, tensor.spec, out.data());
  // Gate and up of an expert share the order of their groups.
  Stream random(seed, tensor.stream.empty() ? plan.tensor.name : tensor.stream);
  int bits = tensor.spec.bits();
  if (tensor.isFloat())
    return fillFloats(tensor, random, offset, out);
  if (plan.part == Part::GroupIndex)
    return shuffleGroups(tensor, random, out);
  auto words = plan.part == Part::Zeros ? zerosOf : codesOf;
  fillWords(
      out, [&](int64_t index) { return words(random, index, bits); },
      offset / 8);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// A piece of a tensor that is made and written at once.
constexpr int64_t kPiece = 1 << 20;

struct Piece {
  size_t tensor;
  int64_t offset, bytes;
};

/// Activations to run the result with.
Failure writeInputs(const std::string &file, int64_t hidden, uint64_t seed) {
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<uint8_t>> data;
  for (int64_t tokens : {1, 32}) {
    std::string name = "x.M" + std::to_string(tokens);
    Stream random(seed, name);
    data.emplace_back(static_cast<size_t>(2 * tokens * hidden));
    for (int64_t i = 0; i < tokens * hidden; ++i)
      storeFloat(ScalarType::BF16, data.back().data(), i,
                 2.45f * triangleOf(random(i)));
    tensors.push_back(
        {name, ScalarType::BF16, {tokens, hidden}, data.back().data()});
  }
  return writeSafeTensors(file, tensors);
}

std::vector<Piece> piecesOf(const SynthModel &model,
                            const CheckpointWriter &writer) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    int64_t bytes = writer.bytesOf(i);
    bool whole = !model.tensors[i].isStream();
    int64_t step = whole ? std::max<int64_t>(bytes, 1) : kPiece;
    for (int64_t offset = 0; offset < bytes; offset += step)
      pieces.push_back({i, offset, std::min(step, bytes - offset)});
  }
  return pieces;
}

Failure write(const SynthModel &model, const TargetFormat &format,
              const std::string &directory, uint64_t seed, int64_t shardBytes,
              int64_t threads) {
  std::vector<PlannedTensor> planned;
  for (const SynthTensor &tensor : model.tensors)
    planned.push_back(tensor.plan.tensor);
  Interruptible interruptible;
  Result<CheckpointWriter> writer =
      CheckpointWriter::create(directory, std::move(planned), shardBytes);
  if (!writer)
    return writer.takeFailure();
  const std::vector<Piece> pieces = piecesOf(model, *writer);
  Progress progress("synth", writer->bytes());
  Filler filler(seed, format);
  Failure failure = forEach(
      static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) -> Failure {
        const Piece &piece = pieces[static_cast<size_t>(i)];
        thread_local std::vector<uint8_t> bytes;
        bytes.resize(static_cast<size_t>(piece.bytes));
        filler.fill(model.tensors[piece.tensor], piece.offset, bytes);
        progress.add(piece.bytes);
        return writer->write(piece.tensor, piece.offset, bytes.data(),
                             piece.bytes);
      });
  if (failure)
    return failure;
  if (Failure failure =
          writeInputs(writer->pathOf("inputs.safetensors"), model.hidden, seed))
    return failure;
  if (Failure failure = writer->finish(model.config))
    return failure;
  llvm::outs() << directory << ": "
               << llvm::formatv("{0:f2} GiB in {1} tensors, {2:f2} GB/s\n",
                                double(writer->bytes()) / (1 << 30),
                                model.tensors.size(),
                                double(writer->bytes()) / 1e9 /
                                    std::max(progress.seconds(), 1e-3));
  return ok();
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

Failure readShape(const std::string &text, SynthOptions &options) {
  llvm::SmallVector<llvm::StringRef> fields;
  llvm::StringRef(text).split(fields, ',');
  int64_t *const extents[] = {&options.experts, &options.topK, &options.hidden,
                              &options.intermediate};
  bool fits = fields.size() == std::size(extents);
  for (size_t i = 0; fits && i < fields.size(); ++i)
    fits = !fields[i].getAsInteger(10, *extents[i]) && *extents[i] >= 1 &&
           *extents[i] <= 1 << 20;
  if (!fits)
    return usage("--shape: expected E,k,K,N (experts, experts for each token, "
                 "hidden and intermediate size), each from 1 to 2^20, got '" +
                 text + "'");
  if (options.topK > options.experts)
    return usage("--shape: expected at most " + llvm::Twine(options.experts) +
                 " experts for each token, got " + llvm::Twine(options.topK));
  return ok();
}

Result<SynthOptions> readOptions(const Arguments &arguments) {
  SynthOptions options;
  options.model = arguments.get("--model", "qwen3_moe");
  options.format = findTargetFormat(arguments.get("--format", "gptq"));
  if (!options.format->method)
    for (const char *option : {"--bits", "--group", "--asym", "--act-order"})
      if (arguments.has(option))
        return usage(llvm::Twine(option) + ": " + options.format->name +
                     " has floats alone; leave it out, or choose a format "
                     "with codes");
  options.bits = arguments.get("--bits") == "8" ? 8 : 4;
  options.symmetric = !arguments.has("--asym");
  options.actOrder = arguments.has("--act-order");
  if (Failure failure = readShape(arguments.get("--shape"), options))
    return failure;
  Result<int64_t> layers = arguments.integer("--layers", 1, 1);
  if (!layers)
    return layers.takeFailure();
  Result<int64_t> group = groupOf(arguments);
  if (!group)
    return group.takeFailure();
  options.layers = *layers;
  options.group = *group;
  return options;
}

Result<int> run(const Arguments &arguments) {
  Result<SynthOptions> options = readOptions(arguments);
  if (!options)
    return options.takeFailure();
  Result<int64_t> seed = arguments.integer("--seed", 0, 0);
  if (!seed)
    return seed.takeFailure();
  Result<int64_t> threads = arguments.integer("--threads", 0, 1);
  if (!threads)
    return threads.takeFailure();
  Result<int64_t> shard = byteSize(arguments, "--shards", int64_t(5) << 30);
  if (!shard)
    return shard.takeFailure();
  Result<SynthModel> model = planModel(*options);
  if (!model) // the options alone make it
    return usage(model.message());
  if (Failure failure = write(*model, *options->format, arguments.input(),
                              static_cast<uint64_t>(*seed), *shard, *threads))
    return failure;
  return 0;
}

constexpr Option kOptions[] = {
    {"--shape", "E,k,K,N",
     "experts, experts for each token, hidden and intermediate size", "", true},
    {"--model", "M", "architecture (default: qwen3_moe)",
     "qwen2_moe|qwen3_moe|olmoe|mixtral|deepseek_v2|deepseek_v3"},
    {"--layers", "L", "MoE layers (default: 1)"},
    {"--format", "F",
     "gptq, gptq_v2, awq, compressed-tensors or dense (default: gptq)",
     "gptq|gptq_v2|awq|compressed-tensors|dense"},
    {"--bits", "B", "4 or 8 (default: 4)", "4|8"},
    kGroupOption,
    {"--asym", "", "with zero points (default: without; awq always has them)"},
    {"--act-order", "", "groups in another order than inputs"},
    {"--seed", "S", "makes other numbers (default: 0)"},
    {"--shards", "SIZE", "most bytes of one file: 500M, 5G (default: 5G)"},
    {"--threads", "N", "threads (default: one per core)"},
};

} // namespace

const Command cli::synthCommand = {
    "synth",
    "DIR",
    "write a checkpoint of any shape with random weights",
    "Writes config.json, safetensors and inputs.safetensors (activations for\n"
    "wna16 run) as a model of that architecture has them: MoE layers and "
    "norms,\n"
    "no attention. Equal options give equal bytes. Memory does not grow with "
    "the\n"
    "size.\n",
    kOptions,
    run,
};
