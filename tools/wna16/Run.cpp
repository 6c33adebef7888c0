//===- Run.cpp - wna16 run ------------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Codegen.h"
#include "Commands.h"
#include "Importer.h"
#include "Progress.h"
#include "Reference.h"

#include "Backend/Backend.h"
#include "Layout/Scalar.h"
#include "Runtime/wna16_cuda.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <random>

using namespace mlir;
using namespace wna16;
using namespace wna16::cli;

namespace {

/// A call is repeated until it took this long in all, for the sake of timing.
constexpr double kMinimumSeconds = 0.02;

/// The activations of a file in the type that the module takes.
Result<OutputTensor> readInput(const SafeTensors &files,
                               const std::string &tensor, ScalarType type) {
  const TensorView *view = files.find(tensor);
  if (!view)
    return fail("input: no tensor " + tensor);
  if (view->shape.size() != 2)
    return fail("input " + tensor + ": expected two axes, tokens and hidden, " +
                "got " + std::to_string(view->shape.size()));
  if (view->type != ScalarType::F32 && view->type != ScalarType::F16 &&
      view->type != ScalarType::BF16)
    return fail("input " + tensor + ": expected f32, f16 or bf16, got " +
                std::string(name(view->type)));
  OutputTensor input{tensor, type, view->shape, {}};
  int64_t elements = view->bytes / sizeOf(view->type);
  input.data.resize(elements * sizeOf(type));
  for (int64_t i = 0; i < elements; ++i)
    storeFloat(type, input.data.data(), i,
               loadFloat(view->type, view->data, i));
  return input;
}

/// Made-up activations in [-1, 1): the same ones wherever they are made.
OutputTensor makeInput(const std::string &tensor, int64_t tokens,
                       int64_t hidden, ScalarType type) {
  OutputTensor input{tensor, type, {tokens, hidden}, {}};
  input.data.resize(tokens * hidden * sizeOf(type));
  std::mt19937 random(0);
  for (int64_t i = 0; i < tokens * hidden; ++i)
    storeFloat(type, input.data.data(), i,
               static_cast<float>(random()) / 2147483648.0f - 1.0f);
  return input;
}

/// The inputs `x.M*` of a file, fewest tokens first.
std::vector<std::string> listInputs(const SafeTensors &files) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const auto &[name, view] : files.all())
    if (llvm::StringRef(name).starts_with("x.M"))
      found.push_back({view.shape.empty() ? 0 : view.shape[0], name});
  llvm::sort(found);
  std::vector<std::string> names;
  for (auto &[tokens, name] : found)
    names.push_back(std::move(name));
  return names;
}

struct Settings {
  std::vector<int64_t> layers; ///< empty: all
  Rank rank;
  int64_t jobs = 0;
  int64_t tokens = 0; ///< of made-up inputs; 0: inputs come from a file
  std::optional<SafeTensors> input;
  std::vector<std::string> tensors;
  std::optional<Reference> reference;
  Tolerances tolerances;
  ScalarType dtype;
};

/// Runs layers on inputs, and compares and keeps what they give.
class Runner {
public:
  Runner(Module module, ExpertsPlans plans, const Settings &settings)
      : module(std::move(module)), plans(std::move(plans)), settings(settings) {
  }

  /// False: something is out of tolerance.
  Result<bool> run(llvm::ArrayRef<const MoELayer *> layers,
                   Progress &progress) {
    bool fits = true;
    printHeader(llvm::outs());
    for (const MoELayer *layer : layers)
      for (const std::string &input : settings.tensors) {
        progress.show("layer " + llvm::Twine(layer->index) + ", " + input);
        Result<bool> row = runOne(
            *layer, layerFunctionName(layer->index, layers.size()), input);
        if (!row)
          return row.takeFailure();
        fits &= *row;
      }
    return fits;
  }

  Failure write(const std::string &file) const {
    std::vector<TensorToWrite> list;
    for (const OutputTensor &output : results)
      list.push_back(
          {output.name, output.type, output.shape, output.data.data()});
    return writeSafeTensors(file, list);
  }

private:
  Result<OutputTensor> inputOf(const MoELayer &layer,
                               const std::string &tensor) const {
    if (settings.tokens)
      return makeInput(tensor, settings.tokens, layer.hidden, settings.dtype);
    const SafeTensors &files =
        settings.input ? *settings.input : settings.reference->tensors();
    return readInput(files, tensor, settings.dtype);
  }

  Result<bool> runOne(const MoELayer &of, const std::string &function,
                      const std::string &tensor) {
    int64_t layer = of.index;
    const ModuleFunction *entry = module.find(function);
    if (!entry)
      return fail("the module has no function " + function);
    Result<OutputTensor> input = inputOf(of, tensor);
    if (!input)
      return input.takeFailure();
    Result<std::vector<OutputTensor>> outputs = call(*entry, *input);
    if (!outputs)
      return fail("layer " + std::to_string(layer) + ", " + tensor + ": " +
                  outputs.message());
    Comparison row;
    row.layer = layer;
    row.tokens = input->shape[0];
    if (settings.reference) {
      Result<Comparison> compared =
          settings.reference->compare(layer, tensor, *outputs);
      if (!compared)
        return compared.takeFailure();
      row = *compared;
    }
    row.tokensPerSecond = row.tokens / seconds;
    row.backend = entry->backend;
    row.kernel = kernelOf(*entry, row.tokens);
    bool fits = printRow(row, settings.tolerances, llvm::outs());
    printNonFinite(*outputs);
    llvm::outs().flush();
    keep(layer, tensor, std::move(*outputs));
    return fits;
  }

  /// The runtime's kernel of fused experts, on the CPU by its instruction set;
  /// "-": they are code of the module.
  std::string kernelOf(const ModuleFunction &function, int64_t tokens) const {
    auto plan = plans.find(function.workspace);
    if (plan == plans.end())
      return "-";
    const char *kernel =
        (module.place() == Place::CUDA
             ? wna16_cuda_fused_experts_kernel
             : wna16_cpu_fused_experts_kernel)(plan->second.data(), tokens);
    return kernel ? kernel : "-";
  }

  /// A value beyond the range of its type is said here, not found layers later.
  static void printNonFinite(const std::vector<OutputTensor> &outputs) {
    for (const OutputTensor &output : outputs) {
      if (output.type == ScalarType::I32)
        continue;
      auto values =
          static_cast<int64_t>(output.data.size()) / sizeOf(output.type);
      int64_t bad = 0;
      for (int64_t i = 0; i < values; ++i)
        bad += !std::isfinite(loadFloat(output.type, output.data.data(), i));
      if (bad)
        llvm::outs() << "      not finite: " << bad << " of " << values
                     << " values of " << output.name << "\n";
    }
  }

  Result<std::vector<OutputTensor>> call(const ModuleFunction &function,
                                         OutputTensor &input) {
    std::vector<OutputTensor> outputs;
    for (const ModuleArgument &argument : function.arguments)
      if (argument.role == ModuleArgument::Role::Output) {
        outputs.push_back({argument.name,
                           argument.type,
                           argument.shapeFor(input.shape[0]),
                           {}});
        int64_t bytes = sizeOf(argument.type);
        for (int64_t extent : outputs.back().shape)
          bytes *= extent;
        outputs.back().data.resize(bytes);
      }
    if (Failure failure = callInPlace(function, input, outputs))
      return failure;
    return outputs;
  }

  /// Calls with copies of the tensors where the module's lie.
  Failure callInPlace(const ModuleFunction &function, OutputTensor &input,
                      std::vector<OutputTensor> &outputs) {
    std::vector<OutputTensor *> all{&input};
    for (OutputTensor &output : outputs)
      all.push_back(&output);
    std::vector<AlignedBuffer> buffers;
    std::vector<wna16_tensor> tensors;
    for (OutputTensor *tensor : all) {
      Result<AlignedBuffer> buffer =
          AlignedBuffer::allocate(tensor->data.size(), module.place());
      if (!buffer)
        return buffer.takeFailure();
      tensors.push_back(makeTensor(buffer->data(), tensor->type, tensor->shape,
                                   module.place()));
      buffers.push_back(std::move(*buffer));
    }
    if (Failure failure = copyBytes(buffers[0].data(), input.data.data(),
                                    input.data.size(), module.place()))
      return failure;
    if (Failure failure = time(function, tensors))
      return failure;
    for (size_t i = 1; i < all.size(); ++i)
      if (Failure failure = copyBytes(all[i]->data.data(), buffers[i].data(),
                                      all[i]->data.size(), module.place()))
        return failure;
    return ok();
  }

  Failure time(const ModuleFunction &function,
               const std::vector<wna16_tensor> &tensors) {
    auto start = std::chrono::steady_clock::now();
    int calls = 0;
    do {
      if (Failure failure = module.call(function, tensors))
        return failure;
      if (Failure failure = waitFor(nullptr, module.place()))
        return failure;
      ++calls;
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                              start)
                    .count();
    } while (seconds < kMinimumSeconds);
    seconds /= calls;
    return ok();
  }

  /// One run keeps the outputs' names; several are told apart as in a
  /// reference, "layers.0.out.M7". So are those of made-up inputs: a file of
  /// them serves as the reference of another run.
  void keep(int64_t layer, llvm::StringRef tensor,
            std::vector<OutputTensor> outputs) {
    bool single = settings.layers.size() == 1 && settings.tensors.size() == 1 &&
                  !settings.tokens;
    auto dot = tensor.find('.');
    llvm::StringRef suffix =
        dot == llvm::StringRef::npos ? "" : tensor.substr(dot);
    for (OutputTensor &output : outputs) {
      if (!single)
        output.name =
            llvm::formatv("layers.{0}.{1}{2}", layer, output.name, suffix);
      results.push_back(std::move(output));
    }
  }

  Module module;
  const ExpertsPlans plans;
  const Settings &settings;
  std::vector<OutputTensor> results;
  double seconds = 0;
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Failure readFiles(const Arguments &arguments, Settings &settings) {
  if (arguments.has("--reference")) {
    Result<Reference> reference = Reference::open(arguments.get("--reference"));
    if (!reference)
      return reference.takeFailure();
    settings.reference = std::move(*reference);
  }
  if (arguments.has("--input")) {
    Result<SafeTensors> input = SafeTensors::open(arguments.get("--input"));
    if (!input)
      return input.takeFailure();
    settings.input = std::move(*input);
  }
  if (settings.tokens) {
    settings.tensors = {"x.M" + std::to_string(settings.tokens)};
    return ok();
  }
  settings.tensors = arguments.all("--tensor");
  if (settings.tensors.empty())
    settings.tensors = listInputs(
        settings.input ? *settings.input : settings.reference->tensors());
  if (settings.tensors.empty())
    return fail("expected --tensor NAME: the file has no tensor x.M*");
  return ok();
}

/// Where inputs come from and results go to.
Failure checkFlow(const Arguments &arguments, Settings &settings) {
  Result<int64_t> tokens = arguments.integer("--tokens", 0, 1);
  if (!tokens)
    return tokens.takeFailure();
  constexpr int64_t kMostTokens = 1 << 20;
  if (*tokens > kMostTokens)
    return usage("--tokens: expected at most " + llvm::Twine(kMostTokens) +
                 ", got " + llvm::Twine(*tokens));
  settings.tokens = *tokens;
  if (settings.tokens &&
      (arguments.has("--input") || arguments.has("--tensor")))
    return usage("--tokens makes inputs up; it goes without --input and "
                 "--tensor");
  if (settings.tokens || arguments.has("--reference"))
    return ok();
  if (!arguments.has("--input"))
    return usage("expected --input FILE, --reference FILE or --tokens N");
  if (!arguments.has("-o"))
    return usage("expected -o FILE or --reference FILE");
  return ok();
}

Failure readTolerances(const Arguments &arguments, Tolerances &tolerances) {
  std::pair<llvm::StringLiteral, std::optional<Tolerance> *> list[] = {
      {"--tolerance", &tolerances.all}, {"--out-tolerance", &tolerances.out}};
  for (auto [option, tolerance] : list) {
    if (!arguments.has(option))
      continue;
    if (!arguments.has("--reference"))
      return usage(option + " goes with --reference");
    Result<Tolerance> parsed = Tolerance::parse(option, arguments.get(option));
    if (!parsed)
      return parsed.takeFailure();
    *tolerance = *parsed;
  }
  if (tolerances.out && !tolerances.all)
    return usage("--out-tolerance goes with --tolerance");
  return ok();
}

Failure readArguments(const Arguments &arguments, Settings &settings) {
  Result<std::vector<int64_t>> layers = layerIndices(arguments);
  if (!layers)
    return layers.takeFailure();
  settings.layers = *layers;
  if (settings.layers.empty() != arguments.has("--all"))
    return usage("expected either --layer L or --all");
  Result<Rank> rank = rankOf(arguments);
  if (!rank)
    return rank.takeFailure();
  settings.rank = *rank;
  if (rank->size > 1 && arguments.has("--reference"))
    return usage("--reference holds whole results, and those of --tp are "
                 "parts; take --input and add up the results of all ranks");
  Result<int64_t> threads = arguments.integer("--threads", 0, 0);
  if (!threads)
    return threads.takeFailure();
  Result<int64_t> jobs = arguments.integer("--jobs", 0, 1);
  if (!jobs)
    return jobs.takeFailure();
  settings.jobs = std::min<int64_t>(*jobs, 1024);
  wna16_set_num_threads(
      static_cast<int32_t>(std::min<int64_t>(*threads, INT32_MAX)));
  // The runtime takes as many as it can.
  if (int32_t most = wna16_get_num_threads(); *threads > most)
    return usage("--threads: expected at most " + llvm::Twine(most) + ", got " +
                 llvm::Twine(*threads));
  return ok();
}

/// Inputs and references, once it is certain that the layers can run.
Failure readData(const Arguments &arguments, Settings &settings) {
  if (Failure failure = checkFlow(arguments, settings))
    return failure;
  if (Failure failure = readTolerances(arguments, settings.tolerances))
    return failure;
  return readFiles(arguments, settings);
}

/// The target that is asked for, or the one that a backend's kernels run on;
/// fails where this machine cannot run it.
Result<std::string> targetOf(const Arguments &arguments,
                             const std::string &backend) {
  const Backend *named = BackendRegistry::get().find(backend);
  bool forCuda = named && named->kernel().starts_with("wna16_cuda_");
  std::string target = arguments.get("--target", forCuda ? "cuda" : "cpu");
  llvm::StringRef kind = llvm::StringRef(target).split(':').first;
  if (kind == "cpu")
    return target;
  if (kind != "cuda")
    return usage(
        "--target " + target +
        ": run knows cpu and cuda; compile writes a library for others");
  wna16_status_clear();
  int32_t capability = wna16_cuda_capability();
  if (capability < 0)
    return fail((forCuda ? "backend " + backend : "--target " + target) +
                ": no device to run on: " + wna16_status_message() +
                "; compile writes a library for a machine that has one");
  return target == "cuda" ? "cuda:sm_" + std::to_string(capability) : target;
}

/// Imports, compiles and loads the layers; gives their plans, too.
Result<Module> buildModule(const Arguments &arguments, MLIRContext *context,
                           const CompileOptions &compiling,
                           const Checkpoint &checkpoint,
                           const Settings &settings, Progress &progress,
                           ExpertsPlans &plans) {
  ImportOptions importing;
  importing.layers = settings.layers;
  importing.rank = settings.rank;
  importing.dtype = settings.dtype;
  importing.intermediates = true;
  Result<OwningOpRef<ModuleOp>> module =
      importCheckpoint(context, checkpoint, importing);
  if (!module)
    return module.takeFailure();
  progress.show("compiling");
  Result<std::unique_ptr<llvm::MemoryBuffer>> object =
      compileToObject(**module, compiling);
  if (!object)
    return object.takeFailure();
  plans = findExpertsPlans(**module);
  Result<SymbolLookup> lookup = linkInProcess(std::move(*object));
  if (!lookup)
    return lookup.takeFailure();
  LoadOptions loading;
  loading.poison = arguments.has("--poison");
  loading.jobs = static_cast<int>(settings.jobs);
  loading.progress = [&](int64_t done, int64_t total) {
    progress.showBytes("preparing", done, total);
    return ok();
  };
  if (arguments.has("--prepared"))
    return Module::loadPrepared(*lookup, arguments.get("--prepared"), loading);
  return Module::load(*lookup, checkpoint, loading);
}

Result<int> run(const Arguments &arguments) {
  Settings settings;
  if (Failure failure = readArguments(arguments, settings))
    return failure;
  std::unique_ptr<MLIRContext> context = makeContext();
  CompileOptions compiling;
  compiling.backend = arguments.get("--backend", "auto");
  Result<std::string> target = targetOf(arguments, compiling.backend);
  if (!target)
    return target.takeFailure();
  compiling.target = *target;
  if (Failure failure =
          checkChoice(context.get(), compiling.target, compiling.backend))
    return failure;
  Result<Checkpoint> checkpoint = Checkpoint::open(arguments.input());
  if (!checkpoint)
    return checkpoint.takeFailure();
  settings.dtype = checkpoint->dtype();
  if (arguments.has("--dtype"))
    settings.dtype = *parseScalarType(arguments.get("--dtype"));
  Result<std::vector<const MoELayer *>> layers =
      selectLayers(*checkpoint, settings.layers);
  if (!layers)
    return layers.takeFailure();
  if (Failure failure = readData(arguments, settings))
    return failure;
  Progress progress;
  ExpertsPlans plans;
  Result<Module> module = buildModule(arguments, context.get(), compiling,
                                      *checkpoint, settings, progress, plans);
  context.reset();
  if (!module)
    return module.takeFailure();
  Runner runner(std::move(*module), std::move(plans), settings);
  Result<bool> fits = runner.run(*layers, progress);
  if (!fits)
    return fits.takeFailure();
  if (arguments.has("-o"))
    if (Failure failure = runner.write(arguments.get("-o")))
      return failure;
  return *fits ? 0 : 1;
}

constexpr Option kOptions[] = {
    {"--layer", "L...", "an MoE layer by its index"},
    {"--all", "", "every MoE layer"},
    kRankOption,
    {"--backend", "B", "first of B,B that takes a layer (default: auto)"},
    {"--target", "T",
     "cpu[:features] or cuda[:sm_NN] (default: what the backend runs on)"},
    {"--dtype", "TYPE", "activations: bf16, f16 or f32 (default: the model's)",
     "bf16|f16|f32"},
    {"--prepared", "FILE", "take the weights that wna16 prepare wrote"},
    {"--jobs", "N", "experts that are prepared at once (default: --threads)"},
    {"--input", "FILE", "safetensors with the inputs (default: the reference)"},
    {"--tensor", "NAME...", "an input, [M, hidden] (default: every x.M*)"},
    {"--tokens", "N", "make up an input of N tokens, always the same"},
    {"-o", "FILE", "write the results as safetensors"},
    {"--reference", "FILE", "compare with these results"},
    {"--tolerance", "E",
     "fail when experts_out or out is off by more: 1e-6, or 0.75lp"},
    {"--out-tolerance", "E", "another tolerance for out"},
    {"--threads", "N", "threads (default: one per core)"},
    {"--poison", "", "fill buffers with NaN before they are written"},
};

} // namespace

const Command cli::runCommand = {
    "run",
    "DIR",
    "run MoE layers on this machine and compare with a reference",
    "DIR is a Hugging Face directory. Writes router_logits, topk_ids,\n"
    "topk_weights, experts_out (the routed experts) and out (the whole "
    "block);\n"
    "for several layers or inputs as layers.L.out.M7. With --reference a "
    "table\n"
    "shows relative Frobenius errors; lp is the error of the reference's own\n"
    "16-bit run, from the .json beside it, and ratio is out / lp. kernel is\n"
    "what the runtime ran for the experts, on the CPU by its instruction set\n"
    "(portable, avx2, avx512, amx), or - where they are compiled code. With\n"
    "--tolerance the same experts must be chosen too, with weights within\n"
    "1e-5. With --tp experts_out and out are the rank's part, whose sum over\n"
    "ranks is the whole; take --dtype f32 for exact sums, as each part is\n"
    "rounded. Results of --tokens are named as those of a reference, so that\n"
    "they can be the --reference of a run on another backend.\n",
    kOptions,
    run,
};
