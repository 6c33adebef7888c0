//===- Module.cpp - Compiled modules and their weights --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

using namespace wna16;

using Role = ModuleArgument::Role;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t kAlignment = 64;
constexpr uint8_t kPoison = 0xFF;

/// DLPack's type code, per ScalarType.
uint8_t dlpackCode(ScalarType type) {
  switch (type) {
  case ScalarType::F16:
  case ScalarType::F32:
  case ScalarType::F64:
    return 2;
  case ScalarType::BF16:
    return 4;
  case ScalarType::U8:
    return 1;
  case ScalarType::Bool:
    return 6;
  default:
    return 0;
  }
}

/// Bytes of a tensor, or nothing when they do not fit 63 bits.
std::optional<int64_t> bytesOf(ScalarType type,
                               const std::vector<int64_t> &shape) {
  int64_t bytes = sizeOf(type);
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

std::string shown(const int64_t *shape, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? "M" : std::to_string(shape[i]));
  return text + "]";
}

std::string shown(const ModuleArgument &argument) {
  return std::string(name(argument.type)) + " " +
         shown(argument.shape.data(), argument.shape.size());
}

std::string labelOf(const ModuleArgument &argument) {
  return argument.role == Role::Parameter ? argument.pattern : argument.name;
}

bool isWeight(const ModuleArgument &argument) {
  return argument.role == Role::Prepared || argument.role == Role::Parameter;
}

/// "prepare_3" of "forward_3", "f_prepare" of "f": the name that the compiler
/// gives the function that prepares the weights of another.
std::string prepareName(const std::string &function) {
  const std::string forward = "forward";
  if (function.compare(0, forward.size(), forward) == 0)
    return "prepare" + function.substr(forward.size());
  return function + "_prepare";
}

} // namespace

wna16_tensor wna16::makeTensor(void *data, ScalarType type,
                               std::vector<int64_t> &shape) {
  wna16_tensor tensor = {};
  tensor.data = data;
  tensor.device.device_type = 1;
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = {dlpackCode(type), static_cast<uint8_t>(8 * sizeOf(type)), 1};
  tensor.shape = shape.data();
  return tensor;
}

std::vector<int64_t> ModuleArgument::shapeFor(int64_t tokens) const {
  std::vector<int64_t> result = shape;
  for (int64_t &extent : result)
    if (extent < 0)
      extent = tokens;
  return result;
}

Result<AlignedBuffer> AlignedBuffer::allocate(int64_t bytes) {
  AlignedBuffer buffer;
  int64_t whole;
  if (bytes < 0 || __builtin_add_overflow(bytes, kAlignment - 1, &whole))
    return fail("cannot allocate " + std::to_string(bytes) + " bytes");
  whole = std::max(whole / kAlignment, int64_t{1}) * kAlignment;
  buffer.memory.reset(static_cast<uint8_t *>(
      std::aligned_alloc(kAlignment, static_cast<size_t>(whole))));
  if (!buffer.memory)
    return fail("cannot allocate " + std::to_string(bytes) + " bytes");
  buffer.bytes = bytes;
  return buffer;
}

void AlignedBuffer::fill(uint8_t byte) {
  if (bytes)
    std::memset(memory.get(), byte, static_cast<size_t>(bytes));
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Result<Module> Module::open(const std::string &library,
                            const std::string &directory,
                            const LoadOptions &options) {
  Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint)
    return checkpoint.takeFailure();
  // A bare name is a file here, not one of the system's libraries.
  std::string path =
      library.find('/') == std::string::npos ? "./" + library : library;
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(std::string("cannot load the module: ") + dlerror());
  std::shared_ptr<void> code(handle, dlclose);
  return load(
      [code](const std::string &symbol) {
        return dlsym(code.get(), symbol.c_str());
      },
      *checkpoint, options);
}

Result<Module> Module::load(SymbolLookup lookup, const Checkpoint &checkpoint,
                            const LoadOptions &options) {
  auto *text = static_cast<const char *>(lookup("wna16_module_description"));
  if (!text)
    return fail("expected a module with the symbol wna16_module_description; "
                "was it written by wna16 compile?");
  Result<std::vector<ModuleFunction>> functions = parseDescription(text);
  if (!functions)
    return functions.takeFailure();
  Module module;
  module.lookup = std::move(lookup);
  module.options = options;
  std::map<std::string, const ModuleFunction *> prepares;
  for (const ModuleFunction &function : *functions)
    prepares[prepareName(function.name)] = nullptr;
  for (const ModuleFunction &function : *functions)
    if (auto entry = prepares.find(function.name); entry != prepares.end())
      entry->second = &function;
    else
      module.forwards.push_back(function);
  int64_t done = 0, total = static_cast<int64_t>(module.forwards.size());
  for (const ModuleFunction &forward : module.forwards) {
    if (Failure failure = module.prepare(
            forward, prepares[prepareName(forward.name)], checkpoint))
      return failure;
    if (options.progress)
      options.progress(++done, total);
  }
  return module;
}

Result<Module::Weight> Module::allocate(const ModuleArgument &argument) const {
  std::optional<int64_t> bytes = bytesOf(argument.type, argument.shape);
  if (!bytes)
    return fail(labelOf(argument) +
                ": expected a static shape of less than "
                "2^63 bytes, got " +
                shown(argument));
  Result<AlignedBuffer> buffer = AlignedBuffer::allocate(*bytes);
  if (!buffer)
    return fail(labelOf(argument) + ": " + buffer.message());
  if (options.poison)
    buffer->fill(kPoison);
  return Weight{argument, std::move(*buffer)};
}

/// Integers are signless in a module.
static bool isSameStorage(ScalarType a, ScalarType b) {
  auto isInteger = [](ScalarType type) { return type >= ScalarType::I8; };
  return a == b || (isInteger(a) && isInteger(b) && sizeOf(a) == sizeOf(b));
}

/// Reads a parameter's tensors, whose types must be those the module was
/// compiled for.
static Failure readParameter(const ModuleArgument &argument,
                             const Checkpoint &checkpoint, void *out) {
  TensorPattern pattern;
  pattern.pattern = argument.pattern;
  pattern.concat = argument.concat;
  pattern.shape = argument.shape;
  pattern.type = argument.type;
  if (pattern.pattern.find("{expert}") != std::string::npos)
    pattern.experts = pattern.shape.empty() ? 0 : pattern.shape[0];
  for (const std::string &name : pattern.names()) {
    const TensorView *view = checkpoint.tensors().find(name);
    if (!view)
      return fail("tensor " + name + ": the checkpoint " +
                  checkpoint.directory() + " has none of this name");
    if (!isSameStorage(view->type, pattern.type))
      return fail("tensor " + name + ": the module was compiled for " +
                  std::string(wna16::name(pattern.type)) + ", the checkpoint " +
                  "has " + std::string(wna16::name(view->type)) +
                  "; compile it for this checkpoint");
    pattern.type = view->type;
  }
  return checkpoint.read(pattern, out);
}

Failure Module::runPrepare(const ModuleFunction &prepare,
                           const Checkpoint &checkpoint, Weights &prepared) {
  Weights sources;
  std::vector<wna16_tensor> tensors;
  // Buffers do not move with the vectors; shapes would.
  sources.reserve(prepare.arguments.size());
  prepared.reserve(prepare.arguments.size());
  for (const ModuleArgument &argument : prepare.arguments) {
    if (!isWeight(argument))
      return fail("function " + prepare.name + ": expected parameters and " +
                  "prepared weights only, got " + labelOf(argument));
    Result<Weight> weight = allocate(argument);
    if (!weight)
      return weight.takeFailure();
    bool isSource = argument.role == Role::Parameter;
    if (isSource)
      if (Failure failure =
              readParameter(argument, checkpoint, weight->buffer.data()))
        return failure;
    Weights &list = isSource ? sources : prepared;
    list.push_back(std::move(*weight));
    Weight &kept = list.back();
    tensors.push_back(makeTensor(kept.buffer.data(), kept.argument.type,
                                 kept.argument.shape));
  }
  Result<int64_t> bytes = workspaceSize(prepare, 0);
  if (!bytes)
    return bytes.takeFailure();
  return invoke(prepare.name, tensors, *bytes, nullptr);
}

Failure Module::prepare(const ModuleFunction &forward,
                        const ModuleFunction *prepare,
                        const Checkpoint &checkpoint) {
  Weights prepared;
  if (prepare)
    if (Failure failure = runPrepare(*prepare, checkpoint, prepared))
      return failure;
  Weights &list = weights[forward.name];
  for (const ModuleArgument &argument : forward.arguments) {
    if (argument.role == Role::Parameter) {
      Result<Weight> weight = allocate(argument);
      if (!weight)
        return weight.takeFailure();
      if (Failure failure =
              readParameter(argument, checkpoint, weight->buffer.data()))
        return failure;
      list.push_back(std::move(*weight));
    } else if (argument.role == Role::Prepared) {
      auto source = std::find_if(
          prepared.begin(), prepared.end(), [&](const Weight &weight) {
            return weight.buffer.data() &&
                   weight.argument.name == argument.name &&
                   weight.argument.type == argument.type &&
                   weight.argument.shape == argument.shape;
          });
      if (source == prepared.end())
        return fail("function " + forward.name + ": nothing prepares " +
                    argument.name + " (" + shown(argument) + ")");
      list.push_back(std::move(*source));
    }
  }
  return ok();
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
  if (function.workspace.empty())
    return int64_t{0};
  using SizeFn = int64_t (*)(int64_t);
  auto size = reinterpret_cast<SizeFn>(lookup(function.workspace));
  if (!size)
    return fail("module: no symbol " + function.workspace);
  wna16_status_clear();
  int64_t bytes = size(tokens);
  if (bytes < 0 || wna16_status_get() != WNA16_OK)
    return fail(function.workspace + ": " + wna16_status_message());
  return bytes;
}

Failure Module::invoke(const std::string &symbol,
                       std::vector<wna16_tensor> &tensors,
                       int64_t workspaceBytes, void *stream) {
  using EntryFn =
      int32_t (*)(const wna16_tensor *, int64_t, void *, int64_t, void *);
  auto entry = reinterpret_cast<EntryFn>(lookup(symbol));
  if (!entry)
    return fail("module: no symbol " + symbol);
  if (workspace.size() < workspaceBytes) {
    Result<AlignedBuffer> grown = AlignedBuffer::allocate(workspaceBytes);
    if (!grown)
      return fail("workspace: " + grown.message());
    workspace = std::move(*grown);
  }
  if (options.poison)
    workspace.fill(kPoison);
  if (entry(tensors.data(), static_cast<int64_t>(tensors.size()),
            workspace.data(), workspace.size(), stream) != WNA16_OK)
    return fail(symbol + ": " + wna16_status_message());
  return ok();
}

/// Checks a caller's tensor; `tokens` is -1 until one says how many there are.
static Failure checkTensor(const ModuleArgument &argument,
                           const wna16_tensor &tensor, int64_t &tokens) {
  wna16_dtype type = {dlpackCode(argument.type),
                      static_cast<uint8_t>(8 * sizeOf(argument.type)), 1};
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
  auto owned = weights.find(function.name);
  if (owned == weights.end())
    return fail("module: no function " + function.name);
  std::vector<wna16_tensor> tensors;
  size_t next = 0, nextWeight = 0;
  int64_t tokens = -1;
  for (const ModuleArgument &argument : function.arguments) {
    if (isWeight(argument)) {
      Weight &weight = owned->second[nextWeight++];
      tensors.push_back(makeTensor(weight.buffer.data(), argument.type,
                                   weight.argument.shape));
      continue;
    }
    if (next == given.size())
      return fail("function " + function.name + ": no tensor for " +
                  argument.name);
    const wna16_tensor &tensor = given[next++];
    if (Failure failure = checkTensor(argument, tensor, tokens))
      return failure;
    if (options.poison && argument.role == Role::Output)
      if (auto bytes = bytesOf(argument.type, argument.shapeFor(tokens));
          bytes && *bytes)
        std::memset(static_cast<uint8_t *>(tensor.data) + tensor.byte_offset,
                    kPoison, static_cast<size_t>(*bytes));
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
