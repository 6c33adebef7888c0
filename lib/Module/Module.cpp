//===- Module.cpp - Compiled modules and their weights --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Preparation.h"
#include "Prepared.h"
#include "Tensors.h"

#include <dlfcn.h>

using namespace wna16;

using Role = ModuleArgument::Role;

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static Result<SymbolLookup> openLibrary(const std::string &library) {
  // A bare name is a file here, not one of the system's libraries.
  std::string path =
      library.find('/') == std::string::npos ? "./" + library : library;
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(std::string("cannot load the module: ") + dlerror());
  std::shared_ptr<void> code(handle, dlclose);
  return SymbolLookup([code](const std::string &symbol) {
    return dlsym(code.get(), symbol.c_str());
  });
}

Result<Module> Module::open(const std::string &library,
                            const std::string &directory,
                            const LoadOptions &options) {
  Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint)
    return checkpoint.takeFailure();
  Result<SymbolLookup> lookup = openLibrary(library);
  if (!lookup)
    return lookup.takeFailure();
  return load(std::move(*lookup), *checkpoint, options);
}

Result<Module> Module::openPrepared(const std::string &library,
                                    const std::string &file,
                                    const LoadOptions &options) {
  Result<SymbolLookup> lookup = openLibrary(library);
  if (!lookup)
    return lookup.takeFailure();
  return loadPrepared(std::move(*lookup), file, options);
}

/// Where a module for a target ("#wna16.target<cuda, capability = 90>") keeps
/// its tensors.
static Result<Place> placeOf(const std::string &target) {
  const std::string prefix = "#wna16.target<";
  if (target.rfind(prefix, 0) != 0)
    return Place::Host; // a module that does not say
  size_t end = target.find_first_of(",>", prefix.size());
  std::string kind = target.substr(prefix.size(), end - prefix.size());
  if (kind == "cpu")
    return Place::Host;
  if (kind == "cuda")
    return Place::CUDA;
  return fail("module: this version loads modules for cpu and cuda, got one "
              "for " +
              kind);
}

Result<Module> Module::make(SymbolLookup lookup, const LoadOptions &options,
                            ModuleDescription &description) {
  Result<ModuleDescription> parsed = describe(lookup);
  if (!parsed)
    return parsed.takeFailure();
  description = std::move(*parsed);
  Result<ModuleWeights> weights = ModuleWeights::of(description);
  if (!weights)
    return weights.takeFailure();
  Result<Place> place = placeOf(description.target);
  if (!place)
    return place.takeFailure();
  Module module;
  module.lookup = std::move(lookup);
  module.options = options;
  module.memory = *place;
  module.weights = std::move(*weights);
  for (const ModuleFunction &function : description.functions)
    if (function.prepares.empty())
      module.forwards.push_back(function);
  return module;
}

Result<Module> Module::load(SymbolLookup lookup, const Checkpoint &checkpoint,
                            const LoadOptions &options) {
  ModuleDescription description;
  Result<Module> module = make(std::move(lookup), options, description);
  if (!module)
    return module;
  Result<Preparation> preparation = Preparation::plan(
      description, module->weights, module->lookup, checkpoint);
  if (!preparation)
    return preparation.takeFailure();
  if (Failure failure = module->allocateWeights())
    return failure;
  StepJournal none;
  if (Failure failure =
          preparation->run(module->weights, options, none, module->memory))
    return failure;
  return module;
}

Failure Module::allocateWeights() {
  for (ModuleWeight &weight : weights.list) {
    Result<AlignedBuffer> buffer =
        AlignedBuffer::allocate(weight.bytes, memory);
    if (!buffer)
      return fail(weight.name + ": " + buffer.message());
    if (options.poison)
      if (Failure failure =
              fillBytes(buffer->data(), kPoison, weight.bytes, memory))
        return failure;
    weight.data = buffer->data();
    buffers.push_back(std::move(*buffer));
  }
  return ok();
}

Result<Module> Module::loadPrepared(SymbolLookup lookup,
                                    const std::string &file,
                                    const LoadOptions &options) {
  ModuleDescription description;
  Result<Module> module = make(std::move(lookup), options, description);
  if (!module)
    return module;
  Result<SafeTensors> prepared =
      openPreparedWeights(file, description, module->weights);
  if (!prepared)
    return prepared.takeFailure();
  module->prepared = std::move(*prepared);
  if (module->memory == Place::Host)
    return module;
  std::vector<const uint8_t *> sources;
  for (const ModuleWeight &weight : module->weights.list)
    sources.push_back(weight.data);
  if (Failure failure = module->allocateWeights())
    return failure;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ModuleWeight &weight = module->weights.list[i];
    if (Failure failure =
            copyBytes(weight.data, sources[i], weight.bytes, module->memory))
      return fail(weight.name + ": " + failure.message);
  }
  return module;
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

const ModuleFunction *Module::find(const std::string &name) const {
  for (const ModuleFunction &function : forwards)
    if (function.name == name)
      return &function;
  return nullptr;
}

Result<int64_t> Module::workspaceSize(const ModuleFunction &function,
                                      int64_t tokens) const {
  return wna16::workspaceSize(lookup, function, tokens);
}

Failure Module::invoke(const std::string &symbol,
                       std::vector<wna16_tensor> &tensors,
                       int64_t workspaceBytes, void *stream) {
  auto entry = reinterpret_cast<EntryFn>(lookup(symbol));
  if (!entry)
    return fail("module: no symbol " + symbol);
  if (workspace.size() < workspaceBytes) {
    Result<AlignedBuffer> grown =
        AlignedBuffer::allocate(workspaceBytes, memory);
    if (!grown)
      return fail("workspace: " + grown.message());
    workspace = std::move(*grown);
  }
  if (options.poison)
    if (Failure failure =
            fillBytes(workspace.data(), kPoison, workspace.size(), memory))
      return failure;
  if (entry(tensors.data(), static_cast<int64_t>(tensors.size()),
            workspace.data(), workspace.size(), stream) != WNA16_OK)
    return fail(symbol + ": " + wna16_status_message());
  return ok();
}

/// Checks a caller's tensor; `tokens` is -1 until one says how many there are.
static Failure checkTensor(const ModuleArgument &argument,
                           const wna16_tensor &tensor, int64_t &tokens) {
  wna16_dtype type = dtypeOf(argument.type);
  bool fits = tensor.dtype.code == type.code &&
              tensor.dtype.bits == type.bits && tensor.dtype.lanes == 1 &&
              tensor.ndim == static_cast<int32_t>(argument.shape.size());
  for (size_t axis = 0; fits && axis < argument.shape.size(); ++axis) {
    int64_t expected = argument.shape[axis];
    if (expected < 0) {
      if (tokens < 0)
        tokens = tensor.shape[axis];
      expected = tokens;
    }
    fits = tensor.shape[axis] == expected && expected >= 0;
  }
  if (fits)
    return ok();
  std::string got = tensor.ndim >= 0 && tensor.shape
                        ? shown(tensor.shape, static_cast<size_t>(tensor.ndim))
                        : "[]";
  return fail(argument.name + ": expected " + shown(argument) +
              (tokens < 0 ? "" : " with M = " + std::to_string(tokens)) +
              ", got " + std::to_string(tensor.dtype.bits) + "-bit " + got);
}

Failure Module::call(const ModuleFunction &function,
                     const std::vector<wna16_tensor> &given, void *stream) {
  auto used = weights.uses.find(function.name);
  if (used == weights.uses.end())
    return fail("module: no function " + function.name);
  std::vector<wna16_tensor> tensors;
  size_t next = 0, nextWeight = 0;
  int64_t tokens = -1;
  for (const ModuleArgument &argument : function.arguments) {
    if (isWeight(argument)) {
      ModuleWeight &weight = weights.list[used->second[nextWeight++]];
      tensors.push_back(makeTensor(weight.data, argument.type,
                                   weight.argument.shape, memory));
      continue;
    }
    if (next == given.size())
      return fail("function " + function.name + ": no tensor for " +
                  argument.name);
    const wna16_tensor &tensor = given[next++];
    if (Failure failure = checkTensor(argument, tensor, tokens))
      return failure;
    if (options.poison && argument.role == Role::Output)
      if (auto bytes = bytesOf(argument.type, argument.shapeFor(tokens)))
        if (Failure failure = fillBytes(static_cast<uint8_t *>(tensor.data) +
                                            tensor.byte_offset,
                                        kPoison, *bytes, memory))
          return failure;
    tensors.push_back(tensor);
  }
  if (next != given.size())
    return fail("function " + function.name + ": expected " +
                std::to_string(next) + " tensors, got " +
                std::to_string(given.size()));
  Result<int64_t> bytes = workspaceSize(function, std::max<int64_t>(tokens, 0));
  if (!bytes)
    return bytes.takeFailure();
  return invoke(function.name, tensors, *bytes, stream);
}
