//===- Preparation.h - Weights, expert by expert ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one way from a checkpoint to the weights that functions take, for modules
// that are loaded and for files. A step is one call of a function that prepares
// weights, usually for one expert, or the copy of a parameter that needs no
// preparation. Steps take their input from the mapped checkpoint where it lies
// in one piece, and write into the weights. On a device they take copies.
//
// However many jobs take steps, their memory is that of the largest step and
// 48 MiB: where it does not reach for all, the others take the steps that need
// none.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_MODULE_PREPARATION_H
#define WNA16_LIB_MODULE_PREPARATION_H

#include "Tensors.h"

namespace wna16 {

/// Keeps account of steps. The default keeps none.
class StepJournal {
public:
  virtual ~StepJournal() = default;
  virtual bool isDone(int64_t) const { return false; }
  /// Called by the thread that took the step.
  virtual Failure markDone(int64_t, int64_t) { return ok(); }
};

/// How many of `jobs` have memory, each for the largest step.
int64_t jobsWithRoom(int64_t jobs, int64_t largestStep);

class Preparation {
public:
  /// Finds what gives each weight, and checks the checkpoint's tensors. What it
  /// refers to must outlive the result.
  static Result<Preparation> plan(const ModuleDescription &description,
                                  const ModuleWeights &weights,
                                  const SymbolLookup &lookup,
                                  const Checkpoint &checkpoint);

  int64_t steps() const { return count; }

  /// Takes all steps that are not done, where the functions' tensors lie. The
  /// weights' `data` must be set.
  Failure run(const ModuleWeights &weights, const LoadOptions &options,
              StepJournal &journal, Place place = Place::Host) const;

private:
  /// One argument of a task: a parameter, or a weight that is written.
  struct Binding {
    ModuleArgument argument; ///< of one step
    int64_t bytes = 0;       ///< of one step
    int64_t weight = -1;     ///< index of what is written; -1: a parameter
    bool staged = false;     ///< does not lie in one piece
  };
  /// Steps that differ in the expert alone.
  struct Task {
    std::string name;
    EntryFn entry = nullptr; ///< null: the one binding is copied
    std::vector<Binding> bindings;
    int64_t firstStep = 0;
    int64_t experts = 1;
    int64_t staged = 0;    ///< bytes that hold what is staged
    int64_t inputs = 0;    ///< bytes of all parameters
    int64_t workspace = 0; ///< bytes
    int64_t written = 0;   ///< bytes of one step
  };
  /// Bytes of memory.
  struct Room {
    int64_t host = 0;
    int64_t device = 0;
  };
  class Planner;
  class Worker;
  class Run;

  const Task &taskOf(int64_t step) const;
  static Room roomOf(const Task &task, Place place);
  /// That of the largest step.
  Room largestRoom(Place place) const;
  /// Takes steps until none is left or one has failed.
  void takeSteps(Worker &worker, bool hasRoom, Run &run) const;

  const Checkpoint *checkpoint = nullptr;
  std::vector<Task> tasks;
  int64_t count = 0;
};

} // namespace wna16

#endif // WNA16_LIB_MODULE_PREPARATION_H
