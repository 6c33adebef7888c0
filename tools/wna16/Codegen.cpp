//===- Codegen.cpp - From a module to machine code ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Codegen.h"

#include "Importer.h"

#include "Backend/Backend.h"
#include "Transforms/Passes.h"
#include "Transforms/RegisterAll.h"
#include "Transforms/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <dlfcn.h>

using namespace mlir;
using namespace wna16;

static Failure failFrom(llvm::Error error) {
  return fail(llvm::toString(std::move(error)));
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

std::unique_ptr<MLIRContext> wna16::makeContext() {
  DialectRegistry registry;
  registerDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  // Operations of layers are long, and not what their readers wrote.
  context->printOpOnDiagnostic(false);
  return context;
}

bool wna16::isModuleFile(llvm::StringRef path) {
  return path.ends_with(".mlir") || path.ends_with(".mlirbc");
}

Result<OwningOpRef<ModuleOp>>
wna16::loadModule(MLIRContext *context, const cli::Arguments &arguments) {
  Result<std::vector<int64_t>> layers = cli::layerIndices(arguments);
  if (!layers)
    return layers.takeFailure();
  Result<Rank> rank = cli::rankOf(arguments);
  if (!rank)
    return rank.takeFailure();
  const std::string &path = arguments.input();
  if (!isModuleFile(path)) {
    Result<Checkpoint> checkpoint = Checkpoint::open(path);
    if (!checkpoint)
      return checkpoint.takeFailure();
    ImportOptions options;
    options.layers = *layers;
    options.rank = *rank;
    return importCheckpoint(context, *checkpoint, options);
  }
  if (!layers->empty())
    return cli::usage("--layer goes with a directory; " + path +
                      " holds the layers that it holds");
  if (rank->size > 1)
    return cli::usage("--tp goes with a directory; " + path +
                      " takes the share that it takes");
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, context);
  auto module = parseSourceFile<ModuleOp>(path, sources, context);
  if (!module)
    return cli::reported();
  return module;
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// LLVM itself only warns of a feature that it does not know.
static Failure checkFeatures(TargetAttr target) {
  if (!target || target.getKind() != TargetKind::cpu ||
      target.getFeatures().empty())
    return ok();
  llvm::InitializeNativeTarget();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return fail(error);
  std::unique_ptr<llvm::MCSubtargetInfo> known(
      backend->createMCSubtargetInfo(triple, "", ""));
  for (StringAttr feature : target.getFeatures())
    if (llvm::none_of(known->getAllProcessorFeatures(),
                      [&](const llvm::SubtargetFeatureKV &row) {
                        return feature.getValue() == row.Key;
                      }))
      return fail("target feature '" + feature.str() + "' is not one of " +
                  triple.getArchName().str() +
                  "; 'llc -mattr=help' lists them, such as avx2, fma, f16c, "
                  "avx512f, avx512bw and avx512vnni");
  return ok();
}

Result<TargetAttr> wna16::readTarget(MLIRContext *context,
                                     llvm::StringRef text) {
  context->loadDialect<WNA16Dialect>(); // a module may have none of it
  std::string error;
  TargetAttr target = TargetAttr::parse(context, text, error);
  if (!target)
    return cli::usage(error);
  if (Failure failure = checkLibraries(target))
    return cli::usage(failure.message);
  if (Failure failure = checkFeatures(target))
    return cli::usage(failure.message);
  return target;
}

Failure wna16::checkChoice(MLIRContext *context, llvm::StringRef target,
                           llvm::StringRef backends) {
  if (!target.empty())
    if (Result<TargetAttr> read = readTarget(context, target); !read)
      return read.takeFailure();
  if (Failure failure = checkBackends(backends))
    return cli::usage("--backend: " + failure.message);
  return ok();
}

/// A machine of the host's architecture with the target's features alone: the
/// same code wherever it is compiled.
static Result<std::unique_ptr<llvm::TargetMachine>>
makeMachine(TargetAttr target) {
  if (Failure failure = checkFeatures(target))
    return failure;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return fail(error);
  std::string features;
  if (target && target.getKind() == TargetKind::cpu)
    for (StringAttr feature : target.getFeatures())
      features += (features.empty() ? "+" : ",+") + feature.str();
  llvm::StringRef cpu =
      triple.getArch() == llvm::Triple::x86_64 ? "x86-64" : "generic";
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return fail("LLVM has no code generator for " + triple.str());
  return machine;
}

/// A place in a file, or the layer.
static std::string placeOf(Location location) {
  if (auto place = location->findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}", place.getFilename().getValue(),
                         place.getLine(), place.getColumn());
  auto layer = location->findInstanceOf<NameLoc>();
  return layer ? layer.getName().str() : "wna16";
}

static void printError(const Diagnostic &error) {
  if (error.getSeverity() != DiagnosticSeverity::Error)
    return;
  llvm::WithColor::error(llvm::errs(), placeOf(error.getLocation()))
      << error << "\n";
  for (const Diagnostic &note : error.getNotes())
    llvm::WithColor::note(llvm::errs(), placeOf(note.getLocation()))
        << note << "\n";
}

static LogicalResult lower(ModuleOp module, const CompileOptions &options) {
  ScopedDiagnosticHandler handler(module.getContext(),
                                  [](Diagnostic &diagnostic) {
                                    printError(diagnostic);
                                    return success();
                                  });
  PassManager passes(module.getContext());
  PipelineOptions pipeline;
  pipeline.target = options.target;
  pipeline.backend = options.backend;
  pipeline.rules = options.rules;
  pipeline.prepareOnly = options.prepareOnly;
  buildPipeline(passes, pipeline);
  return passes.run(module);
}

Result<std::unique_ptr<llvm::MemoryBuffer>>
wna16::compileToObject(ModuleOp module, const CompileOptions &options) {
  if (failed(lower(module, options)))
    return cli::reported();
  Result<std::unique_ptr<llvm::TargetMachine>> machine =
      makeMachine(getTarget(module));
  if (!machine)
    return machine.takeFailure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return cli::reported();
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  auto optimize = makeOptimizingTransformer(/*optLevel=*/2, /*sizeLevel=*/0,
                                            machine->get());
  if (llvm::Error error = optimize(code.get()))
    return failFrom(std::move(error));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager emitter;
  if ((*machine)->addPassesToEmitFile(emitter, os, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return fail("LLVM cannot write object files for " +
                (*machine)->getTargetTriple().str());
  emitter.run(*code);
  return std::unique_ptr<llvm::MemoryBuffer>(
      std::make_unique<llvm::SmallVectorMemoryBuffer>(
          std::move(bytes), "wna16-module",
          /*RequiresNullTerminator=*/false));
}

ExpertsPlans wna16::findExpertsPlans(ModuleOp lowered) {
  ExpertsPlans plans;
  lowered.walk([&](LLVM::CallOp call) {
    if (!call.getCallee() ||
        !call.getCallee()->ends_with("_fused_experts_workspace"))
      return;
    auto address = call.getOperand(0).getDefiningOp<LLVM::AddressOfOp>();
    if (!address)
      return;
    auto global = lowered.lookupSymbol<LLVM::GlobalOp>(address.getGlobalName());
    auto words = cast<DenseIntElementsAttr>(*global.getValue());
    plans[call->getParentOfType<LLVM::LLVMFuncOp>().getName().str()].assign(
        words.value_begin<int64_t>(), words.value_end<int64_t>());
  });
  return plans;
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

Result<SymbolLookup>
wna16::linkInProcess(std::unique_ptr<llvm::MemoryBuffer> object) {
  llvm::InitializeNativeTarget();
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> made =
      llvm::orc::LLJITBuilder().create();
  if (!made)
    return failFrom(made.takeError());
  std::shared_ptr<llvm::orc::LLJIT> jit = std::move(*made);
  if (llvm::Error error = jit->addObjectFile(std::move(object)))
    return failFrom(std::move(error));
  // One symbol resolves all that the object refers to.
  if (auto symbol = jit->lookup("wna16_module_description"); !symbol)
    return failFrom(symbol.takeError());
  return SymbolLookup([jit](const std::string &name) -> void * {
    llvm::Expected<llvm::orc::ExecutorAddr> address = jit->lookup(name);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void *>();
  });
}

Failure wna16::linkLibrary(const llvm::MemoryBuffer &object,
                           const std::string &file) {
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName("cc");
  if (!compiler)
    return fail("expected the C compiler 'cc' in PATH to link " + file +
                "; install gcc or clang");
  // The runtime that this process uses is the one to link against.
  Dl_info runtime;
  if (!dladdr(reinterpret_cast<void *>(&wna16_abi_version), &runtime))
    return fail("cannot find the file of the runtime library");
  llvm::SmallString<128> library(runtime.dli_fname);
  if (std::error_code code = llvm::sys::fs::make_absolute(library))
    return fail(library.str().str() + ": " + code.message());
  std::string directory = llvm::sys::path::parent_path(library).str();

  llvm::SmallString<128> temporary;
  int descriptor;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile(
          "wna16", "o", descriptor, temporary))
    return fail("cannot write a temporary file: " + code.message());
  llvm::FileRemover remover(temporary);
  llvm::sys::RemoveFileOnSignal(temporary);
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << object.getBuffer();
  os.close();
  if (os.has_error())
    return fail(temporary.str().str() + ": " + os.error().message());

  std::string rpath = "-Wl,-rpath," + directory;
  llvm::StringRef arguments[] = {
      *compiler, "-shared",        "-o",  file, temporary,
      library,   "-Wl,-Bsymbolic", rpath, "-lm"};
  std::string error;
  int status = llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt, {},
                                         0, 0, &error);
  if (status)
    return fail(*compiler + " could not link " + file + " (status " +
                std::to_string(status) + ")" +
                (error.empty() ? "" : ": " + error));
  return ok();
}
