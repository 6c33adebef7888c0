//===- Modules.cpp - Packed linear modules, one by one --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/TargetFormat.h"

#include "Weights.h"

using namespace wna16;

namespace {

/// The module whose codes a tensor holds; empty when it holds none.
std::string moduleOf(const std::string &tensor) {
  for (const Format *format : allFormats()) {
    std::string suffix = std::string(".") + format->suffixOf(Part::Codes);
    if (tensor.size() > suffix.size() &&
        tensor.compare(tensor.size() - suffix.size(), suffix.size(), suffix) ==
            0)
      return tensor.substr(0, tensor.size() - suffix.size());
  }
  return {};
}

Result<PackedModule> readModule(const SafeTensors &files, WeightReader &reader,
                                const std::string &module) {
  // Braces are what patterns are made of.
  if (module.find_first_of("{},") != std::string::npos)
    return fail("module " + module + ": its name is none of a module");
  WeightNames names;
  names.pattern = module;
  Result<WeightSource> source = reader.read(names);
  if (!source)
    return source.takeFailure();
  PackedModule result = {module, std::move(*source), {}};
  std::string prefix = module + ".";
  for (auto it = files.all().lower_bound(prefix);
       it != files.all().end() &&
       it->first.compare(0, prefix.size(), prefix) == 0;
       ++it) {
    if (reader.used().count(it->first))
      result.tensors.push_back(it->first);
    else if (it->first != prefix + "bias")
      return fail("tensor " + it->first +
                  " of a packed module is not "
                  "understood");
  }
  return result;
}

/// What is left beside packed modules must be floats: integers would be codes
/// of a module that was not recognised.
Failure checkRest(const SafeTensors &files, const std::set<std::string> &used) {
  for (const auto &[name, type] : files.foreign())
    return fail("tensor " + name + " has dtype " + type +
                ", which is not supported");
  for (const auto &[name, view] : files.all())
    if (!used.count(name) && !isFloat(view.type) &&
        view.type != ScalarType::F64)
      return fail("tensor " + name + " of " +
                  std::string(wna16::name(view.type)) +
                  " belongs to no packed module that is stored by itself");
  return ok();
}

} // namespace

Result<std::vector<PackedModule>>
wna16::readPackedModules(const Checkpoint &checkpoint) {
  Result<ModelConfig> config = ModelConfig::open(checkpoint.directory());
  if (!config)
    return config.takeFailure();
  Result<Quantization> quantization =
      readQuantization(checkpoint.directory(), *config);
  if (!quantization)
    return quantization.takeFailure();
  const SafeTensors &files = checkpoint.tensors();
  std::vector<PackedModule> modules;
  std::set<std::string> used;
  for (const auto &[name, view] : files.all()) {
    std::string module = moduleOf(name);
    if (module.empty())
      continue;
    WeightReader reader(files, *config, *quantization, checkpoint.dtype(),
                        /*hidden=*/0);
    Result<PackedModule> read = readModule(files, reader, module);
    if (!read)
      return read.takeFailure();
    used.insert(read->tensors.begin(), read->tensors.end());
    modules.push_back(std::move(*read));
  }
  if (Failure failure = checkRest(files, used))
    return failure;
  return modules;
}
