//===- Convert.cpp - wna16 convert ----------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interruption.h"
#include "Progress.h"
#include "Workers.h"

#include "Checkpoint/TargetFormat.h"
#include "Layout/Move.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace wna16;
using namespace wna16::cli;

namespace {

/// A tensor of the result, and where it comes from.
struct Output {
  PlannedTensor tensor;
  const TensorView *copied = nullptr; ///< null: of a module
  int64_t module = -1;
  ModuleTensor::Content content = ModuleTensor::Stored;
  Part part = Part::Codes;
};

/// A module and the specification that it gets.
struct Converted {
  PackedModule from;
  WeightSpec spec;
  std::vector<size_t> outputs; ///< indices of its tensors
};

class Converter {
public:
  Converter(const Checkpoint &checkpoint, const TargetFormat &format)
      : checkpoint(checkpoint), format(format) {}

  Failure plan();
  Failure write(const std::string &directory, int64_t shardBytes,
                int64_t threads);
  size_t modulesConverted() const { return modules.size(); }
  size_t tensorsCopied() const { return copies.size(); }

private:
  Failure planModules();
  Failure joinScheme(const Converted &module);
  Failure planTensors();
  Failure convert(const Converted &module, CheckpointWriter &writer,
                  Progress &progress) const;
  Failure copy(size_t output, CheckpointWriter &writer,
               Progress &progress) const;
  Failure copyFiles(const CheckpointWriter &writer) const;
  Result<std::string> config() const;

  const Checkpoint &checkpoint;
  const TargetFormat &format;
  TargetScheme scheme;
  std::vector<Converted> modules;
  std::vector<Output> outputs;
  std::vector<size_t> copies; ///< outputs that are copied
  std::vector<std::string> kept;
};

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

std::string schemeText(const TargetScheme &scheme) {
  return std::to_string(scheme.bits) + " bits in groups of " +
         std::to_string(scheme.group) +
         (scheme.symmetric ? ", symmetric" : ", asymmetric");
}

/// Configurations that are written have one scheme for all modules.
Failure Converter::joinScheme(const Converted &module) {
  TargetScheme one = TargetScheme::of(module.spec);
  if (modules.empty())
    scheme = one;
  scheme.actOrder |= one.actOrder;
  one.actOrder = scheme.actOrder;
  if (schemeText(one) == schemeText(scheme))
    return ok();
  return fail("expected one scheme for all modules, got " + schemeText(scheme) +
              " for " + modules.front().from.name + " and " + schemeText(one) +
              " for " + module.from.name);
}

Failure Converter::planModules() {
  Result<std::vector<PackedModule>> packed = readPackedModules(checkpoint);
  if (!packed)
    return packed.takeFailure();
  if (packed->empty())
    return fail(checkpoint.directory() +
                " has no packed module; convert does not quantise");
  for (PackedModule &module : *packed) {
    Result<WeightSpec> spec = specIn(format, module.source.spec);
    if (!spec)
      return fail("module " + module.name + ": " + spec.message());
    Converted converted{std::move(module), *spec, {}};
    if (format.method)
      if (Failure failure = joinScheme(converted))
        return failure;
    modules.push_back(std::move(converted));
  }
  return ok();
}

/// Linear modules that stay dense: matrices that are no embeddings.
bool isKeptLinear(llvm::StringRef name, const TensorView &view) {
  return name.ends_with(".weight") && view.shape.size() == 2 &&
         !name.contains("embed");
}

Failure Converter::planTensors() {
  llvm::StringSet<> replaced;
  for (size_t i = 0; i < modules.size(); ++i) {
    for (const std::string &tensor : modules[i].from.tensors)
      replaced.insert(tensor);
    Result<std::vector<ModuleTensor>> tensors =
        tensorsOf(format, modules[i].from.name, modules[i].spec, scheme);
    if (!tensors)
      return tensors.takeFailure();
    for (ModuleTensor &tensor : *tensors)
      outputs.push_back({std::move(tensor.tensor), nullptr,
                         static_cast<int64_t>(i), tensor.content, tensor.part});
  }
  for (const auto &[name, view] : checkpoint.tensors().all()) {
    if (replaced.contains(name))
      continue;
    outputs.push_back({{name, view.type, view.shape}, &view});
    if (isKeptLinear(name, view))
      kept.push_back(name.substr(0, name.size() - sizeof(".weight") + 1));
  }
  llvm::sort(outputs, [](const Output &a, const Output &b) {
    return a.tensor.name < b.tensor.name;
  });
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].copied)
      copies.push_back(i);
    else
      modules[static_cast<size_t>(outputs[i].module)].outputs.push_back(i);
  }
  return ok();
}

Failure Converter::plan() {
  if (Failure failure = planModules())
    return failure;
  return planTensors();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The mapped parts of a module, which are only read.
WeightBuffers mappedParts(const SafeTensors &files, const WeightSource &source,
                          llvm::ArrayRef<StoredPart> storage) {
  WeightBuffers buffers;
  for (auto [part, pattern] : llvm::zip_equal(storage, source.parts))
    buffers.part[static_cast<size_t>(part.part)] =
        const_cast<uint8_t *>(files.find(pattern.pattern)->data);
  return buffers;
}

Failure Converter::convert(const Converted &module, CheckpointWriter &writer,
                           Progress &progress) const {
  const WeightSource &source = module.from.source;
  Result<std::vector<StoredPart>> storage = storageOf(source.spec);
  if (!storage)
    return storage.takeFailure();
  WeightBuffers from = mappedParts(checkpoint.tensors(), source, *storage), to;
  std::vector<std::vector<uint8_t>> data;
  for (size_t index : module.outputs) {
    const Output &output = outputs[index];
    data.emplace_back(static_cast<size_t>(writer.bytesOf(index)));
    if (output.content == ModuleTensor::Stored)
      to.part[static_cast<size_t>(output.part)] = data.back().data();
    else
      fillConstant(format, {output.tensor, output.content, output.part},
                   module.spec, data.back().data());
  }
  Failure failure =
      format.method
          ? moveWeight(source.spec, from, module.spec, to, {0, 1})
          : dequantizeWeight(source.spec, from, module.spec.element,
                             /*scaleFirst=*/false, to.get(Part::Codes), {0, 1});
  if (!failure)
    failure =
        checkStoredZeros(format, module.spec, to.get<uint8_t>(Part::Zeros));
  if (failure)
    return fail("module " + module.from.name + ": " + failure.message);
  for (auto [index, bytes] : llvm::zip_equal(module.outputs, data)) {
    auto size = static_cast<int64_t>(bytes.size());
    if (Failure failure = writer.write(index, 0, bytes.data(), size))
      return failure;
    progress.add(size);
  }
  return ok();
}

Failure Converter::copy(size_t output, CheckpointWriter &writer,
                        Progress &progress) const {
  const TensorView &view = *outputs[output].copied;
  progress.add(view.bytes);
  return writer.write(output, 0, view.data, view.bytes);
}

/// Tokenizer, generation settings and the like; not weights, and not what is
/// written anew.
Failure Converter::copyFiles(const CheckpointWriter &writer) const {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(checkpoint.directory(), error), end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    bool skipped =
        llvm::StringSwitch<bool>(name)
            .Cases({"config.json", "quantize_config.json",
                    "quantization_config.json", "model.safetensors.index.json",
                    // These speak of the weights as they were.
                    "config.transformers4.json", "reference.json"},
                   true)
            .EndsWith(".safetensors", true)
            .EndsWith(".bin", true)
            .EndsWith(".pt", true)
            .EndsWith(".pth", true)
            .EndsWith(".gguf", true)
            .Default(false);
    if (skipped || !llvm::sys::fs::is_regular_file(it->path()))
      continue;
    if (std::error_code code =
            llvm::sys::fs::copy_file(it->path(), writer.pathOf(name.str())))
      return fail("cannot copy " + it->path() + ": " + code.message());
  }
  if (error)
    return fail("cannot list " + checkpoint.directory() + ": " +
                error.message());
  return ok();
}

Result<std::string> Converter::config() const {
  std::string file = checkpoint.directory() + "/config.json";
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text)
    return fail("cannot read " + file + ": " + text.getError().message());
  std::vector<std::string> packed;
  for (const Converted &module : modules)
    packed.push_back(module.from.name);
  return configIn(format, scheme, (*text)->getBuffer().str(), kept, packed);
}

Failure Converter::write(const std::string &directory, int64_t shardBytes,
                         int64_t threads) {
  std::vector<PlannedTensor> tensors;
  for (const Output &output : outputs)
    tensors.push_back(output.tensor);
  Result<std::string> text = config();
  if (!text)
    return text.takeFailure();
  Interruptible interruptible;
  Result<CheckpointWriter> writer =
      CheckpointWriter::create(directory, std::move(tensors), shardBytes);
  if (!writer)
    return writer.takeFailure();
  Progress progress("convert", writer->bytes());
  auto count = static_cast<int64_t>(modules.size() + copies.size());
  Failure failure = forEach(count, threads, [&](int64_t i) {
    auto index = static_cast<size_t>(i);
    return index < modules.size()
               ? convert(modules[index], *writer, progress)
               : copy(copies[index - modules.size()], *writer, progress);
  });
  if (failure)
    return failure;
  if (Failure failure = copyFiles(*writer))
    return failure;
  return writer->finish(*text);
}

//===----------------------------------------------------------------------===//
// The command
//===----------------------------------------------------------------------===//

Result<int> run(const Arguments &arguments) {
  const TargetFormat &format = *findTargetFormat(arguments.get("--to"));
  Result<int64_t> shard = byteSize(arguments, "--shards", int64_t(5) << 30);
  if (!shard)
    return shard.takeFailure();
  Result<int64_t> threads = arguments.integer("--threads", 0, 1);
  if (!threads)
    return threads.takeFailure();
  Result<Checkpoint> checkpoint = Checkpoint::open(arguments.input());
  if (!checkpoint)
    return checkpoint.takeFailure();
  Converter converter(*checkpoint, format);
  if (Failure failure = converter.plan())
    return failure;
  if (Failure failure = converter.write(arguments.get("-o"), *shard, *threads))
    return failure;
  llvm::outs() << arguments.get("-o") << ": " << converter.modulesConverted()
               << " modules as " << format.name << ", "
               << converter.tensorsCopied() << " tensors copied\n";
  return 0;
}

constexpr Option kOptions[] = {
    {"--to", "FORMAT",
     "gptq, gptq_v2, awq, compressed-tensors, or dense: floats, rounded once",
     "gptq|gptq_v2|awq|compressed-tensors|dense", true},
    {"-o", "DIR2", "the new directory", "", true},
    {"--shards", "SIZE", "most bytes of one file: 500M, 5G (default: 5G)"},
    {"--threads", "N", "threads (default: one per core)"},
};

} // namespace

const Command cli::convertCommand = {
    "convert",
    "DIR",
    "write a checkpoint in another format",
    "DIR is a Hugging Face directory. Every packed module is brought into the\n"
    "format, exactly: what the format cannot hold is refused. Other tensors "
    "and\n"
    "small files are copied, and config.json gets the new "
    "quantization_config.\n"
    "DIR2 appears when all is written; an interruption leaves nothing.\n",
    kOptions,
    run,
};
