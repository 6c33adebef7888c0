//===- Preparation.cpp - Weights, expert by expert ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Preparation.h"

#include "Checkpoint/Threads.h"
#include "Layout/TensorNames.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <tuple>

using namespace wna16;

using Role = ModuleArgument::Role;

namespace {

constexpr int64_t kAlignment = 64;
/// What jobs hold beside the largest step. With what the process holds besides,
/// this stays below 64 MiB.
constexpr int64_t kSharedRoom = int64_t{48} << 20;

int64_t alignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool isPerExpert(const ModuleArgument &argument) {
  return argument.pattern.find(kExpertMark) != std::string::npos;
}

/// Integers are signless in a module.
bool isSameStorage(ScalarType a, ScalarType b) {
  auto isInteger = [](ScalarType type) { return type >= ScalarType::I8; };
  return a == b || (isInteger(a) && isInteger(b) && sizeOf(a) == sizeOf(b));
}

/// The file tensors that make up a parameter, of one expert where a step takes
/// one of several.
TensorPattern patternOf(const ModuleArgument &argument, int64_t experts,
                        int64_t expert) {
  TensorPattern pattern;
  pattern.pattern = argument.pattern;
  pattern.concat = argument.concat;
  pattern.shape = argument.shape;
  pattern.type = argument.type;
  size_t at = argument.pattern.find(kExpertMark);
  if (at != std::string::npos && experts > 1)
    pattern.pattern.replace(at, kExpertMark.size(), std::to_string(expert));
  else if (at != std::string::npos)
    pattern.experts = argument.shape.empty() ? 0 : argument.shape[0];
  return pattern;
}

/// The views of a pattern's tensors, whose types must be those the module was
/// compiled for; sets the pattern's type to theirs.
Result<std::vector<const TensorView *>> findViews(const Checkpoint &checkpoint,
                                                  TensorPattern &pattern) {
  std::vector<const TensorView *> views;
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
    views.push_back(view);
  }
  return views;
}

/// Whether a step takes a part of a tensor that holds all experts.
bool isSlice(const ModuleArgument &argument, int64_t experts) {
  return experts > 1 && !isPerExpert(argument);
}

} // namespace

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

class Preparation::Planner {
public:
  Planner(const ModuleDescription &description, const ModuleWeights &weights,
          const SymbolLookup &lookup, const Checkpoint &checkpoint)
      : description(description), weights(weights), lookup(lookup),
        checkpoint(checkpoint), provided(weights.list.size()) {}

  Result<Preparation> run() {
    result.checkpoint = &checkpoint;
    for (const ModuleFunction &function : description.functions)
      if (!function.prepares.empty())
        if (Failure failure = addCalls(function))
          return failure;
    for (const auto &[function, used] : weights.uses)
      for (size_t index : used)
        if (Failure failure = addCopy(function, index))
          return failure;
    return std::move(result);
  }

private:
  Failure addCalls(const ModuleFunction &function) {
    Task task;
    task.name = function.name;
    task.entry = reinterpret_cast<EntryFn>(lookup(function.name));
    if (!task.entry)
      return fail("module: no symbol " + function.name);
    task.experts = std::max<int64_t>(function.experts, 1);
    for (const ModuleArgument &argument : function.arguments) {
      Binding binding;
      binding.argument = argument;
      std::optional<int64_t> bytes = bytesOf(argument.type, argument.shape);
      if (!isWeight(argument) || !bytes)
        return fail("function " + function.name +
                    ": expected static parameters and prepared weights only, "
                    "got " +
                    labelOf(argument));
      binding.bytes = *bytes;
      Failure failure = argument.role == Role::Parameter
                            ? bindSource(task, binding)
                            : bindWeight(function, task, binding);
      if (failure)
        return failure;
      task.bindings.push_back(std::move(binding));
    }
    Result<int64_t> workspace = wna16::workspaceSize(lookup, function, 0);
    if (!workspace)
      return workspace.takeFailure();
    task.workspace = *workspace;
    add(std::move(task));
    return ok();
  }

  /// A weight that is a parameter as it lies, stacked and joined.
  Failure addCopy(const std::string &function, size_t index) {
    const ModuleWeight &weight = weights.list[index];
    if (weight.argument.role != Role::Parameter)
      return provided[index]
                 ? ok()
                 : fail("function " + function + ": nothing prepares " +
                        weight.argument.name + " (" + shown(weight.argument) +
                        ")");
    Task task;
    task.name = weight.name;
    Binding binding;
    binding.argument = weight.argument;
    binding.weight = static_cast<int64_t>(index);
    if (isPerExpert(weight.argument) && !weight.argument.shape.empty() &&
        weight.argument.shape[0] > 1) {
      task.experts = weight.argument.shape[0];
      binding.argument.shape[0] = 1;
    }
    binding.bytes = weight.bytes / task.experts;
    task.written = binding.bytes;
    if (Failure failure = checkSource(task, binding))
      return failure;
    task.bindings.push_back(std::move(binding));
    add(std::move(task));
    return ok();
  }

  /// Finds the weight that a function writes one expert of, or all.
  Failure bindWeight(const ModuleFunction &function, Task &task,
                     Binding &binding) {
    const ModuleArgument &argument = binding.argument;
    std::vector<int64_t> whole = argument.shape;
    if (task.experts > 1 && !whole.empty() && whole[0] == 1)
      whole[0] = task.experts;
    for (size_t index : weights.uses.at(function.prepares)) {
      const ModuleArgument &weight = weights.list[index].argument;
      if (weight.role != Role::Prepared || weight.name != argument.name ||
          weight.type != argument.type || weight.shape != whole ||
          binding.bytes * task.experts != weights.list[index].bytes ||
          provided[index])
        continue;
      provided[index] = true;
      binding.weight = static_cast<int64_t>(index);
      task.written += binding.bytes;
      return ok();
    }
    return fail("function " + function.name + ": " + function.prepares +
                " takes no " + argument.name + " (" + shown(argument) +
                (task.experts > 1
                     ? " for each of " + std::to_string(task.experts)
                     : std::string()) +
                ") that something else does not prepare");
  }

  Failure bindSource(Task &task, Binding &binding) {
    if (Failure failure = checkSource(task, binding))
      return failure;
    if (binding.staged)
      task.staged += alignUp(binding.bytes);
    task.inputs += alignUp(binding.bytes);
    return ok();
  }

  /// Checks the tensors of all steps, and whether each lies in one piece that
  /// is aligned for its elements.
  Failure checkSource(const Task &task, Binding &binding) {
    const ModuleArgument &argument = binding.argument;
    int64_t files = isPerExpert(argument) ? task.experts : 1;
    for (int64_t expert = 0; expert < files; ++expert) {
      TensorPattern pattern = patternOf(argument, task.experts, expert);
      Result<std::vector<const TensorView *>> views =
          findViews(checkpoint, pattern);
      if (!views)
        return views.takeFailure();
      int64_t bytes = 0;
      for (const TensorView *view : *views)
        bytes += view->bytes; // of mapped files: no overflow
      if (isSlice(argument, task.experts) && views->size() != 1)
        return fail("tensor " + pattern.pattern +
                    ": expected one tensor of all experts, not several");
      int64_t expected = binding.bytes * (task.experts / files);
      if (bytes != expected)
        return fail("tensor " + pattern.pattern + ": the module was compiled " +
                    "for " + std::to_string(expected) +
                    " bytes, the checkpoint has " + std::to_string(bytes));
      binding.staged |= views->size() != 1 ||
                        reinterpret_cast<uintptr_t>(views->front()->data) %
                            static_cast<uintptr_t>(sizeOf(argument.type));
    }
    return ok();
  }

  void add(Task task) {
    task.firstStep = result.count;
    result.count += task.experts;
    result.tasks.push_back(std::move(task));
  }

  const ModuleDescription &description;
  const ModuleWeights &weights;
  const SymbolLookup &lookup;
  const Checkpoint &checkpoint;
  std::vector<bool> provided;
  Preparation result;
};

Result<Preparation> Preparation::plan(const ModuleDescription &description,
                                      const ModuleWeights &weights,
                                      const SymbolLookup &lookup,
                                      const Checkpoint &checkpoint) {
  return Planner(description, weights, lookup, checkpoint).run();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Takes steps one after the other, with memory of its own.
class Preparation::Worker {
public:
  Worker(const Preparation &preparation, const ModuleWeights &weights,
         bool poison, Place place)
      : preparation(preparation), weights(weights), poison(poison),
        place(place) {}

  Failure allocate(const Room &needed) {
    for (auto [bytes, where, buffer] :
         {std::tuple(needed.host, Place::Host, &scratch),
          std::tuple(needed.device, place, &copies)}) {
      Result<AlignedBuffer> room = AlignedBuffer::allocate(bytes, where);
      if (!room)
        return fail("room for one expert: " + room.message());
      *buffer = std::move(*room);
    }
    return ok();
  }

  Failure take(const Task &task, int64_t expert) {
    try {
      return task.entry ? call(task, expert) : copy(task, expert);
    } catch (const std::bad_alloc &) {
      return fail(task.name + ": out of memory");
    }
  }

private:
  uint8_t *target(const Binding &binding, int64_t expert) const {
    return weights.list[static_cast<size_t>(binding.weight)].data +
           expert * binding.bytes;
  }

  Failure copy(const Task &task, int64_t expert) {
    const Binding &binding = task.bindings.front();
    uint8_t *out = target(binding, expert);
    if (place == Place::Host)
      return read(task, binding, expert, out);
    if (Failure failure = read(task, binding, expert, scratch.data()))
      return failure;
    return copyBytes(out, scratch.data(), binding.bytes, place);
  }

  /// Puts one step's tensor together in `out`.
  Failure read(const Task &task, const Binding &binding, int64_t expert,
               uint8_t *out) {
    if (isSlice(binding.argument, task.experts)) {
      Result<const uint8_t *> found = locate(task, binding, expert);
      if (!found)
        return found.takeFailure();
      std::memcpy(out, *found, static_cast<size_t>(binding.bytes));
      return ok();
    }
    TensorPattern pattern = patternOf(binding.argument, task.experts, expert);
    Result<std::vector<const TensorView *>> views =
        findViews(*preparation.checkpoint, pattern);
    return views ? preparation.checkpoint->read(pattern, out)
                 : views.takeFailure();
  }

  /// Where one step's tensor lies in its file.
  Result<const uint8_t *> locate(const Task &task, const Binding &binding,
                                 int64_t expert) {
    TensorPattern pattern = patternOf(binding.argument, task.experts, expert);
    Result<std::vector<const TensorView *>> views =
        findViews(*preparation.checkpoint, pattern);
    if (!views)
      return views.takeFailure();
    const TensorView &view = *views->front();
    if (Failure failure = preparation.checkpoint->tensors().checkMapped(view))
      return failure;
    bool slice = isSlice(binding.argument, task.experts);
    return view.data + (slice ? expert * binding.bytes : 0);
  }

  /// The address of a parameter: in the file, or in the scratch.
  Result<const uint8_t *> source(const Task &task, const Binding &binding,
                                 int64_t expert, int64_t &used) {
    if (!binding.staged)
      return locate(task, binding, expert);
    uint8_t *out = scratch.data() + used;
    used += alignUp(binding.bytes);
    if (Failure failure = read(task, binding, expert, out))
      return failure;
    return static_cast<const uint8_t *>(out);
  }

  /// The address of a parameter where the function can read it.
  Result<uint8_t *> input(const Task &task, const Binding &binding,
                          int64_t expert, int64_t &staged, int64_t &copied) {
    Result<const uint8_t *> found = source(task, binding, expert, staged);
    if (!found)
      return found.takeFailure();
    if (place == Place::Host)
      return const_cast<uint8_t *>(*found); // functions only read them
    uint8_t *out = copies.data() + copied;
    copied += alignUp(binding.bytes);
    if (Failure failure = copyBytes(out, *found, binding.bytes, place))
      return failure;
    return out;
  }

  Failure call(const Task &task, int64_t expert) {
    AlignedBuffer &room = place == Place::Host ? scratch : copies;
    if (poison)
      if (Failure failure = fillBytes(room.data(), kPoison, room.size(), place))
        return failure;
    std::vector<std::vector<int64_t>> shapes;
    shapes.reserve(task.bindings.size()); // tensors point into it
    std::vector<wna16_tensor> tensors;
    int64_t staged = 0, copied = 0;
    for (const Binding &binding : task.bindings) {
      Result<uint8_t *> data =
          binding.weight >= 0 ? target(binding, expert)
                              : input(task, binding, expert, staged, copied);
      if (!data)
        return data.takeFailure();
      shapes.push_back(binding.argument.shape);
      tensors.push_back(
          makeTensor(*data, binding.argument.type, shapes.back(), place));
    }
    int64_t used = place == Place::Host ? staged : copied;
    if (task.entry(tensors.data(), static_cast<int64_t>(tensors.size()),
                   room.data() + used, room.size() - used, nullptr) == WNA16_OK)
      return ok();
    std::string which =
        task.experts > 1 ? ", expert " + std::to_string(expert) : "";
    return fail(task.name + which + ": " + wna16_status_message());
  }

  const Preparation &preparation;
  const ModuleWeights &weights;
  bool poison;
  Place place;
  AlignedBuffer scratch; ///< on the host
  AlignedBuffer copies;  ///< on the device, with the workspace
};

const Preparation::Task &Preparation::taskOf(int64_t step) const {
  auto after = std::upper_bound(
      tasks.begin(), tasks.end(), step,
      [](int64_t value, const Task &task) { return value < task.firstStep; });
  return *std::prev(after);
}

Preparation::Room Preparation::roomOf(const Task &task, Place place) {
  if (place == Place::Host)
    return {task.staged + task.workspace, 0};
  return {task.entry ? task.staged : task.written,
          task.inputs + task.workspace};
}

Preparation::Room Preparation::largestRoom(Place place) const {
  Room largest;
  for (const Task &task : tasks) {
    Room room = roomOf(task, place);
    largest.host = std::max(largest.host, room.host);
    largest.device = std::max(largest.device, room.device);
  }
  return largest;
}

int64_t wna16::jobsWithRoom(int64_t jobs, int64_t largestStep) {
  return largestStep ? std::min(jobs, 1 + kSharedRoom / largestStep) : jobs;
}

/// What the jobs of a run share.
class Preparation::Run {
public:
  Run(const LoadOptions &options, StepJournal &journal)
      : journal(journal), options(options) {}

  /// Before the jobs begin, in order.
  void add(const Task &task, int64_t step, bool needsRoom) {
    total += task.written;
    if (journal.isDone(step))
      done += task.written;
    else
      (needsRoom ? roomy : roomless).push_back(step);
  }
  int64_t steps() const {
    return static_cast<int64_t>(roomy.size() + roomless.size());
  }

  /// The first step that is left; -1 when there is none.
  int64_t next(bool hasRoom) {
    std::lock_guard<std::mutex> lock(mutex);
    std::deque<int64_t> &first =
        hasRoom && !roomy.empty() &&
                (roomless.empty() || roomy.front() < roomless.front())
            ? roomy
            : roomless;
    if (first.empty() || failure)
      return -1;
    int64_t step = first.front();
    first.pop_front();
    return step;
  }
  Failure report(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    done += bytes;
    return options.progress ? options.progress(done, total) : ok();
  }
  void stop(Failure why) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure)
      failure = std::move(why);
  }

  StepJournal &journal;
  Failure failure;

private:
  const LoadOptions &options;
  int64_t total = 0;            ///< bytes of all steps
  int64_t done = 0;             ///< bytes
  std::deque<int64_t> roomy;    ///< steps that need memory
  std::deque<int64_t> roomless; ///< steps that need none
  std::mutex mutex; ///< guards them, `failure`, and calls of `progress`
};

void Preparation::takeSteps(Worker &worker, bool hasRoom, Run &run) const {
  for (int64_t step; (step = run.next(hasRoom)) >= 0;) {
    const Task &task = taskOf(step);
    Failure failure = worker.take(task, step - task.firstStep);
    if (!failure)
      failure = run.journal.markDone(step, task.written);
    if (!failure)
      failure = run.report(task.written);
    if (failure)
      run.stop(std::move(failure));
  }
}

Failure Preparation::run(const ModuleWeights &weights,
                         const LoadOptions &options, StepJournal &journal,
                         Place place) const {
  Run run(options, journal);
  for (const Task &task : tasks) {
    Room room = roomOf(task, place);
    for (int64_t expert = 0; expert < task.experts; ++expert)
      run.add(task, task.firstStep + expert, room.host || room.device);
  }
  int64_t jobs = options.jobs > 0 ? options.jobs : wna16_get_num_threads();
  jobs = std::min(jobs, run.steps());
  // A device's steps form one queue, and it is this thread's current device.
  if (place != Place::Host)
    jobs = 1;
  Room room = largestRoom(place);
  const int64_t rooms = jobsWithRoom(jobs, room.host);
  std::atomic<int64_t> begun{0};
  onThreads(jobs, [&] {
    bool hasRoom = begun++ < rooms;
    Worker worker(*this, weights, options.poison, place);
    if (Failure failure = worker.allocate(hasRoom ? room : Room()))
      return run.stop(std::move(failure));
    takeSteps(worker, hasRoom, run);
  });
  return run.failure ? run.failure : waitFor(nullptr, place);
}
