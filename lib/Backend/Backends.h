//===- Backends.h - The backends of this library ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_BACKEND_BACKENDS_H
#define WNA16_LIB_BACKEND_BACKENDS_H

#include "Needs.h"
#include "Preparation.h"
#include "Reference.h"

#include "Layout/Catalogue.h"

namespace wna16 {

/// A backend that is data: its two tables of constraints and what the passes
/// ask for.
struct Description {
  llvm::StringRef name;
  llvm::StringRef summary;
  llvm::StringRef kernel;
  llvm::ArrayRef<Constraint> native;
  llvm::ArrayRef<Constraint> reference;
  Prepare prepare = nullptr;
  const LayoutEntry *biasLayout = nullptr;
  llvm::StringRef library;
  Roundings roundings;
  bool dequantizes = false;
};

class DescribedBackend : public Backend {
public:
  explicit DescribedBackend(Description description)
      : description(description) {}

  llvm::StringRef name() const override { return description.name; }
  llvm::StringRef summary() const override { return description.summary; }
  llvm::ArrayRef<Constraint> constraints(Rules rules) const override {
    return rules == Rules::Native ? description.native : description.reference;
  }
  WeightSpec prepared(const LayerInfo &layer, const WeightSpec &source,
                      Projection which) const override {
    return description.prepare(layer, source, which);
  }
  const LayoutEntry *biasLayout() const override {
    return description.biasLayout;
  }
  llvm::StringRef kernel() const override { return description.kernel; }
  Roundings roundings() const override { return description.roundings; }
  llvm::StringRef library() const override { return description.library; }
  bool dequantizes() const override { return description.dequantizes; }

private:
  Description description;
};

std::unique_ptr<Backend> createFlashInferTRTLLM();
std::unique_ptr<Backend> createMarlin();
std::unique_ptr<Backend> createBatchedMarlin();
std::unique_ptr<Backend> createHumming();
std::unique_ptr<Backend> createCUDA();
std::unique_ptr<Backend> createCPU();
std::unique_ptr<Backend> createXPU();
std::unique_ptr<Backend> createEmulation();
std::unique_ptr<Backend> createEmulationOnTheFly();

} // namespace wna16

#endif // WNA16_LIB_BACKEND_BACKENDS_H
