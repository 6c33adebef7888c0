//===- Module.h - Compiled modules and their weights ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled module is a set of C functions and a description of their
// arguments. This loads one, from a shared library or from a JIT, prepares its
// weights from a checkpoint, expert by expert, or takes weights that were
// prepared before, and calls it. The weights, workspace and tensors of one that
// was compiled for a device lie in the memory of the thread's current device.
// No LLVM is needed.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_MODULE_MODULE_H
#define WNA16_MODULE_MODULE_H

#include "Checkpoint/Checkpoint.h"
#include "Module/Memory.h"
#include "Runtime/wna16.h"

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
  std::string encoding; ///< of prepared weights: the type that they are part of

  /// The same with `tokens` in place of -1.
  std::vector<int64_t> shapeFor(int64_t tokens) const;
};

struct ModuleFunction {
  std::string name;
  std::string workspace; ///< symbol of its size function; empty: needs none
  std::string prepares;  ///< the function whose weights it prepares, if any
  /// How many experts it prepares, one a call; 0: all that it does in one.
  int64_t experts = 0;
  std::string backend; ///< that its prepared weights are for
  std::vector<ModuleArgument> arguments;
};

/// What a module says about itself. Texts are empty where it does not say.
struct ModuleDescription {
  std::string target;
  std::string source; ///< identity of the checkpoint it was made for
  int64_t rank = 0;   ///< which of `size` shares of the weights it takes
  int64_t size = 1;
  std::vector<ModuleFunction> functions;

  /// Null when there is none of this name.
  const ModuleFunction *find(const std::string &name) const;
};

/// Reads `wna16_module_description`. Checks everything that it says.
Result<ModuleDescription> parseDescription(const std::string &json);

/// Resolves a symbol of the module; null when there is none. May own what
/// keeps the code alive.
using SymbolLookup = std::function<void *(const std::string &)>;

struct LoadOptions {
  /// Fill prepared weights, workspace and outputs with 0xFF bytes (NaN) before
  /// each use, to show that nothing depends on what they held.
  bool poison = false;
  /// Threads that prepare. Together they hold one expert and 48 MiB, however
  /// many they are. 0: as many as the runtime uses. On a device the calling one
  /// alone does.
  int jobs = 0;
  /// Told how many bytes of weights are there, by one thread at a time; its
  /// failure ends the work.
  std::function<Failure(int64_t done, int64_t total)> progress;
};

/// A tensor that functions of a module take and that does not change.
struct ModuleWeight {
  /// "model.layers.0.mlp.w13.codes": the same in each module that takes it.
  std::string name;
  ModuleArgument argument;
  int64_t bytes = 0;
  /// Where the module's tensors lie; not written once the module is loaded.
  uint8_t *data = nullptr;
};

/// Those of all functions that run on tokens.
struct ModuleWeights {
  std::vector<ModuleWeight> list;
  /// Per function, which it takes, in the order of its arguments.
  std::map<std::string, std::vector<size_t>> uses;

  static Result<ModuleWeights> of(const ModuleDescription &description);
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

  /// Takes the weights from a file that `prepareWeights` wrote: it is mapped,
  /// and nothing is read or copied before it is used; for a device it is copied
  /// there. Refuses a file that was
  /// prepared for another target, checkpoint or share, or by another version.
  static Result<Module> loadPrepared(SymbolLookup lookup,
                                     const std::string &file,
                                     const LoadOptions &options = {});
  static Result<Module> openPrepared(const std::string &library,
                                     const std::string &file,
                                     const LoadOptions &options = {});

  /// Where the tensors of its calls lie.
  Place place() const { return memory; }

  /// The functions that run on tokens: "forward", or "forward_0" and so on.
  const std::vector<ModuleFunction> &functions() const { return forwards; }
  /// Null when there is none of this name.
  const ModuleFunction *find(const std::string &name) const;

  /// Bytes of workspace for a call with this many tokens.
  Result<int64_t> workspaceSize(const ModuleFunction &function,
                                int64_t tokens) const;

  /// Calls a function with its inputs and outputs, in the order in which its
  /// arguments list them. Grows the workspace when needed. On a device, puts
  /// its work on `stream` (a cudaStream_t) and returns.
  Failure call(const ModuleFunction &function,
               const std::vector<wna16_tensor> &tensors,
               void *stream = nullptr);

private:
  static Result<Module> make(SymbolLookup lookup, const LoadOptions &options,
                             ModuleDescription &description);
  Failure invoke(const std::string &symbol, std::vector<wna16_tensor> &tensors,
                 int64_t workspaceBytes, void *stream);

  /// Takes memory for all weights.
  Failure allocateWeights();

  SymbolLookup lookup;
  LoadOptions options;
  Place memory = Place::Host;
  std::vector<ModuleFunction> forwards;
  ModuleWeights weights;
  std::vector<AlignedBuffer> buffers; ///< what holds the weights: these,
  SafeTensors prepared;               ///< or a mapped file
  AlignedBuffer workspace;
};

/// Prepares all weights of a module into a file for `Module::loadPrepared`,
/// whichever target they are for, and goes on with a file that a killed process
/// began: what it wrote until `syncBytes` ago. The module needs its description
/// and what prepares alone.
Failure prepareWeights(const SymbolLookup &lookup, const Checkpoint &checkpoint,
                       const std::string &file, const LoadOptions &options = {},
                       int64_t syncBytes = int64_t{128} << 20);

/// A row-major tensor; `shape` must outlive it.
wna16_tensor makeTensor(void *data, ScalarType type,
                        std::vector<int64_t> &shape, Place place = Place::Host);

} // namespace wna16

#endif // WNA16_MODULE_MODULE_H
