//===- TestSupport.cpp - Layers and targets for the tests -----------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "mlir/IR/MLIRContext.h"

using namespace wna16;

namespace wna16::test {

LayerInfo makeLayer(llvm::StringRef layout, CodeType code, int64_t group) {
  LayerInfo layer;
  for (WeightSpec *weight : {&layer.w13, &layer.w2}) {
    weight->code = code;
    weight->group = group;
    weight->layout = findLayout(std::string_view(layout));
    weight->experts = 8;
    weight->scale = ScalarType::F16;
  }
  layer.w13.halves = 2;
  layer.experts = layer.globalExperts = 8;
  layer.topK = 2;
  layer.routing = LayerInfo::Routing();
  layer.routing->renormalize = true;
  layer.routing->logits = ScalarType::BF16;
  setExtents(layer, 512, 256);
  return layer;
}

void setExtents(LayerInfo &layer, int64_t hidden, int64_t intermediate) {
  layer.hidden = layer.w13.input = layer.w2.output = hidden;
  layer.intermediate = layer.w13.output = layer.w2.input = intermediate;
}

void forBoth(LayerInfo &layer,
             const std::function<void(WeightSpec &)> &change) {
  change(layer.w13);
  change(layer.w2);
}

void setAsymmetric(LayerInfo &layer) {
  forBoth(layer, [](WeightSpec &w) {
    w.code = w.bits() == 8 ? CodeType::U8 : CodeType::U4;
    w.zeros = ZeroPoints::Plain;
  });
}

void setBits8(LayerInfo &layer) {
  forBoth(layer, [](WeightSpec &w) { w.code = CodeType::U8B128; });
}

void setActOrder(LayerInfo &layer) {
  forBoth(layer, [](WeightSpec &w) { w.actOrder = ActOrder::Index; });
}

void setDense(WeightSpec &weight) {
  weight.code = CodeType::Dense;
  weight.group = -1;
  weight.layout = findLayout("dense");
}

static mlir::MLIRContext &context() {
  static mlir::MLIRContext context;
  static bool loaded = (context.loadDialect<WNA16Dialect>(), true);
  (void)loaded;
  return context;
}

TargetAttr makeTarget(TargetKind kind, int64_t capability,
                      std::vector<std::string> libraries,
                      std::vector<std::string> features) {
  auto strings = [](const std::vector<std::string> &texts) {
    llvm::SmallVector<mlir::StringAttr> result;
    for (const std::string &text : texts)
      result.push_back(mlir::StringAttr::get(&context(), text));
    return result;
  };
  return TargetAttr::get(&context(), kind, capability, strings(features),
                         /*memory=*/0, strings(libraries));
}

const Backend &backend(llvm::StringRef name) {
  const Backend *found = BackendRegistry::get().find(name);
  if (!found) {
    ADD_FAILURE() << "no backend " << name.str();
    return *BackendRegistry::get().all().front();
  }
  return *found;
}

LayerInfo acceptedLayer(llvm::StringRef name) {
  if (name == "flashinfer_trtllm")
    return makeLayer("compressed_tensors", CodeType::U4B8, 32);
  LayerInfo layer = makeLayer("gptq");
  layer.batched = name == "batched_marlin";
  return layer;
}

TargetAttr acceptedTarget(llvm::StringRef name) {
  if (name == "flashinfer_trtllm")
    return makeTarget(TargetKind::cuda, 100, {"flashinfer"});
  if (name == "marlin" || name == "batched_marlin" || name == "cuda")
    return makeTarget(TargetKind::cuda, 80);
  if (name == "humming")
    return makeTarget(TargetKind::cuda, 90, {"humming"});
  return makeTarget(name == "xpu" ? TargetKind::xpu : TargetKind::cpu);
}

std::string rowName(const Row &row, size_t index) {
  std::string name = std::string(row.backend) + "_" + row.constraint + "_" +
                     std::to_string(index);
  for (char &c : name)
    if (c == '-')
      c = '_';
  return name;
}

} // namespace wna16::test
