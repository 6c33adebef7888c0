//===- Prepared.cpp - Weights that were prepared before -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Prepared.h"

#include "Checkpoint/PreparedFile.h"
#include "Preparation.h"

using namespace wna16;

namespace {

using Metadata = std::map<std::string, std::string>;

constexpr const char *kFormat = "wna16-prepared";
/// Raised when the same metadata begin to mean something else.
constexpr const char *kFormatVersion = "1";

/// What must be the same in a file and in the module that takes it, in the
/// order in which it is compared.
struct Claim {
  const char *key;
  const char *what;
  std::string value;
};

std::vector<Claim> claimsOf(const ModuleDescription &description) {
  return {{"format", "format", kFormat},
          {"version", "format version", kFormatVersion},
          {"wna16", "wna16", WNA16_VERSION},
          {"target", "target", description.target},
          {"source", "checkpoint", description.source},
          {"rank", "rank", std::to_string(description.rank)},
          {"size", "ranks", std::to_string(description.size)}};
}

std::string encodingKey(const std::string &weight) {
  return "encoding." + weight;
}
std::string backendKey(const std::string &weight) {
  return "backend." + weight;
}

/// What a file says of each weight beside type and shape.
std::vector<std::pair<std::string, std::string>>
describeWeights(const ModuleDescription &description,
                const ModuleWeights &weights) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const auto &[name, used] : weights.uses)
    for (size_t index : used) {
      const ModuleWeight &weight = weights.list[index];
      const std::string &backend = description.find(name)->backend;
      if (weight.argument.role != ModuleArgument::Role::Prepared)
        continue;
      list.push_back({encodingKey(weight.name), weight.argument.encoding});
      list.push_back({backendKey(weight.name), backend});
    }
  return list;
}

/// Steps of a preparation, kept in the file that it fills.
class FileJournal : public StepJournal {
public:
  explicit FileJournal(PreparedFile &file) : file(file) {}
  bool isDone(int64_t step) const override { return file.isDone(step); }
  Failure markDone(int64_t step, int64_t bytes) override {
    return file.markDone(step, bytes);
  }

private:
  PreparedFile &file;
};

//===----------------------------------------------------------------------===//
// Refusing
//===----------------------------------------------------------------------===//

Failure refuse(const std::string &where, const std::string &what,
               const std::string &found, const std::string &expected) {
  return fail(where + ": prepared for " + what + " " +
              (found.empty() ? "(none)" : found) + ", the module takes " +
              (expected.empty() ? "(none)" : expected) +
              "; prepare the weights again");
}

Failure compare(const std::string &where, const Metadata &metadata,
                const std::string &key, const std::string &what,
                const std::string &expected) {
  auto found = metadata.find(key);
  std::string value = found == metadata.end() ? "" : found->second;
  return value == expected ? ok() : refuse(where, what, value, expected);
}

Failure checkClaims(const std::string &file, const Metadata &metadata,
                    const ModuleDescription &description) {
  for (const Claim &claim : claimsOf(description)) {
    // A module that was not imported may belong to any checkpoint.
    if (claim.value.empty() && claim.key == std::string_view("source"))
      continue;
    if (Failure failure =
            compare(file, metadata, claim.key, claim.what, claim.value))
      return failure;
  }
  return ok();
}

/// Finds a weight in the file.
Failure takeWeight(const std::string &file, const SafeTensors &tensors,
                   const std::string &backend, ModuleWeight &weight) {
  std::string where = file + ": " + weight.name;
  const TensorView *view = tensors.find(weight.name);
  if (!view)
    return fail(file + ": no weight " + weight.name +
                "; prepare its layer as well");
  if (weight.argument.role == ModuleArgument::Role::Prepared) {
    if (Failure failure = compare(where, tensors.metadata(),
                                  backendKey(weight.name), "backend", backend))
      return failure;
    if (Failure failure =
            compare(where, tensors.metadata(), encodingKey(weight.name),
                    "encoding", weight.argument.encoding))
      return failure;
  }
  ModuleArgument found = weight.argument;
  found.type = view->type;
  found.shape = view->shape;
  if (view->type != weight.argument.type ||
      view->shape != weight.argument.shape)
    return refuse(where, "shape", shown(found), shown(weight.argument));
  // Headers of another writer's may have any length.
  if (int64_t size = sizeOf(view->type);
      reinterpret_cast<uintptr_t>(view->data) % static_cast<uintptr_t>(size))
    return fail(where + ": expected data at a multiple of " +
                std::to_string(size) +
                " bytes, as its elements have; prepare "
                "the weights again");
  weight.data = const_cast<uint8_t *>(view->data); // functions only read it
  return ok();
}

} // namespace

Result<SafeTensors>
wna16::openPreparedWeights(const std::string &file,
                           const ModuleDescription &description,
                           ModuleWeights &weights) {
  Result<SafeTensors> tensors = SafeTensors::open(file);
  if (!tensors)
    return tensors;
  if (Failure failure = checkClaims(file, tensors->metadata(), description))
    return failure;
  for (const auto &[name, used] : weights.uses)
    for (size_t index : used)
      if (Failure failure =
              takeWeight(file, *tensors, description.find(name)->backend,
                         weights.list[index]))
        return failure;
  return tensors;
}

//===----------------------------------------------------------------------===//
// Preparing
//===----------------------------------------------------------------------===//

/// An error, and what it leaves behind.
static Failure describeLeft(Failure failure, const std::string &file,
                            PreparedFile &output, int64_t steps) {
  if (int64_t kept = output.keep())
    failure.message += "\nnote: " + file + ".partial holds " +
                       std::to_string(kept) + " of " + std::to_string(steps) +
                       " steps; the same command goes on from there";
  return failure;
}

/// What the file will hold.
static PreparedFile::Content contentOf(const ModuleDescription &description,
                                       const ModuleWeights &weights,
                                       const std::string &source,
                                       int64_t steps) {
  PreparedFile::Content content;
  for (const ModuleWeight &weight : weights.list)
    content.tensors.push_back(
        {weight.name, weight.argument.type, weight.argument.shape});
  for (const Claim &claim : claimsOf(description))
    content.metadata[claim.key] = claim.value;
  content.metadata["source"] = source;
  for (auto &[key, value] : describeWeights(description, weights))
    content.metadata[key] = value;
  content.steps = steps;
  return content;
}

Failure wna16::prepareWeights(const SymbolLookup &lookup,
                              const Checkpoint &checkpoint,
                              const std::string &file,
                              const LoadOptions &options, int64_t syncBytes) {
  Result<ModuleDescription> description = describe(lookup);
  if (!description)
    return description.takeFailure();
  Result<ModuleWeights> weights = ModuleWeights::of(*description);
  if (!weights)
    return weights.takeFailure();
  Result<std::string> source = checkpoint.identity();
  if (!source)
    return source.takeFailure();
  Result<Preparation> preparation =
      Preparation::plan(*description, *weights, lookup, checkpoint);
  if (!preparation)
    return preparation.takeFailure();
  Result<PreparedFile> output = PreparedFile::create(
      file, contentOf(*description, *weights, *source, preparation->steps()),
      syncBytes);
  if (!output)
    return output.takeFailure();
  for (size_t i = 0; i < weights->list.size(); ++i)
    weights->list[i].data = output->data(i);
  FileJournal journal(*output);
  if (Failure failure = preparation->run(*weights, options, journal))
    return describeLeft(std::move(failure), file, *output,
                        preparation->steps());
  return output->finish();
}
