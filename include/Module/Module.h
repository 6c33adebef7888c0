//===- Module.h - Compiled modules and their weights ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled module is a set of C functions and a description of their
// arguments. This loads one, from a shared library or from a JIT, reads its
// parameters from a checkpoint, prepares the weights once and calls it. No LLVM
// is needed.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_MODULE_MODULE_H
#define WNA16_MODULE_MODULE_H

#include "Checkpoint/Checkpoint.h"
#include "Runtime/wna16.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

namespace wna16 {

/// An argument of a compiled function. Every extent of -1 is the number of
/// tokens.
struct ModuleArgument {
  enum class Role { Input, Output, Prepared, Parameter };

  Role role = Role::Input;
  std::string name;    ///< "x", "out", "w13.codes"; empty for parameters
  std::string pattern; ///< of parameters, as in TensorPattern
  int64_t concat = -1; ///< of parameters, as in TensorPattern
  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;

  /// The same with `tokens` in place of -1.
  std::vector<int64_t> shapeFor(int64_t tokens) const;
};

struct ModuleFunction {
  std::string name;
  std::string workspace; ///< symbol of its size function; empty: needs none
  std::vector<ModuleArgument> arguments;
};

/// Reads `wna16_module_description`. Checks everything that it says.
Result<std::vector<ModuleFunction>> parseDescription(const std::string &json);

/// Resolves a symbol of the module; null when there is none. May own what
/// keeps the code alive.
using SymbolLookup = std::function<void *(const std::string &)>;

struct LoadOptions {
  /// Fill prepared weights, workspace and outputs with 0xFF bytes (NaN) before
  /// each use, to show that nothing depends on what they held.
  bool poison = false;
  /// Told after each function whose weights are there.
  std::function<void(int64_t done, int64_t total)> progress;
};

/// Storage of a tensor, aligned to 64 bytes.
class AlignedBuffer {
public:
  static Result<AlignedBuffer> allocate(int64_t bytes);
  uint8_t *data() const { return memory.get(); }
  int64_t size() const { return bytes; }
  void fill(uint8_t byte);

private:
  struct Free {
    void operator()(uint8_t *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<uint8_t, Free> memory;
  int64_t bytes = 0;
};

/// A loaded module with its weights. One call at a time.
class Module {
public:
  /// Takes a module apart that `lookup` resolves, and prepares its weights.
  static Result<Module> load(SymbolLookup lookup, const Checkpoint &checkpoint,
                             const LoadOptions &options = {});
  /// The same for a shared library that `wna16 compile` wrote.
  static Result<Module> open(const std::string &library,
                             const std::string &directory,
                             const LoadOptions &options = {});

  /// The functions that run on tokens: "forward", or "forward_0" and so on.
  const std::vector<ModuleFunction> &functions() const { return forwards; }
  /// Null when there is none of this name.
  const ModuleFunction *find(const std::string &name) const;

  /// Bytes of workspace for a call with this many tokens.
  Result<int64_t> workspaceSize(const ModuleFunction &function,
                                int64_t tokens) const;

  /// Calls a function with its inputs and outputs, in the order in which its
  /// arguments list them. Grows the workspace when needed.
  Failure call(const ModuleFunction &function,
               const std::vector<wna16_tensor> &tensors,
               void *stream = nullptr);

private:
  struct Weight {
    ModuleArgument argument;
    AlignedBuffer buffer;
  };
  using Weights = std::vector<Weight>;

  Failure prepare(const ModuleFunction &forward, const ModuleFunction *prepare,
                  const Checkpoint &checkpoint);
  Result<Weight> allocate(const ModuleArgument &argument) const;
  Failure runPrepare(const ModuleFunction &prepare,
                     const Checkpoint &checkpoint, Weights &prepared);
  Failure invoke(const std::string &symbol, std::vector<wna16_tensor> &tensors,
                 int64_t workspaceBytes, void *stream);

  SymbolLookup lookup;
  LoadOptions options;
  std::vector<ModuleFunction> forwards;
  /// Per function, its parameters and prepared weights in order of arguments.
  std::map<std::string, Weights> weights;
  AlignedBuffer workspace;
};

/// A row-major tensor in host memory; `shape` must outlive it.
wna16_tensor makeTensor(void *data, ScalarType type,
                        std::vector<int64_t> &shape);

} // namespace wna16

#endif // WNA16_MODULE_MODULE_H
