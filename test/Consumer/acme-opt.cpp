//===- acme-opt.cpp - An optimizer with a backend of its own --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of WNA16 and one more backend: "acme", whose kernels read 4-bit
// weights in the layout of compressed-tensors. docs/Selection.md explains it.
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Layout/Catalogue.h"
#include "Transforms/RegisterAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace wna16;

namespace {

using Verdict = std::optional<Constraint::Verdict>;

Verdict askBits(const LayerInfo &layer, TargetAttr) {
  for (const WeightSpec *weight : {&layer.w13, &layer.w2})
    if (weight->code != CodeType::U4B8)
      return Constraint::Verdict{"expected codes u4b8, got " +
                                     std::string(wna16::name(weight->code)),
                                 "quantise symmetrically to 4 bits"};
  return std::nullopt;
}

class Acme : public Backend {
public:
  llvm::StringRef name() const override { return "acme"; }
  llvm::StringRef summary() const override {
    return "kernels of another library";
  }
  llvm::ArrayRef<Constraint> constraints(Rules) const override {
    static const Constraint table[] = {{"acme-bits", askBits}};
    return table;
  }
  WeightSpec prepared(const LayerInfo &, const WeightSpec &source,
                      Projection) const override {
    WeightSpec wanted = source;
    wanted.layout = findLayout("compressed_tensors");
    return wanted;
  }
  llvm::StringRef kernel() const override { return "acme_fused_experts"; }
};

} // namespace

int main(int argc, char **argv) {
  BackendRegistry::get().add(std::make_unique<Acme>());
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "optimizer of Acme\n", registry));
}
