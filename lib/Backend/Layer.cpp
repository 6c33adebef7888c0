//===- Layer.cpp - The facts of an operation ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Dialect/WNA16/IR/AttrNames.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace wna16;

static LayerInfo::Routing describeRouting(RouteOp op) {
  LayerInfo::Routing routing;
  routing.scoring = op.getScoring();
  routing.renormalize = op.getRenormalize();
  routing.softmaxAfterTopK = op.getSoftmaxAfterTopk();
  routing.correction = op.getCorrection() != nullptr;
  routing.expertScale = op.getExpertScale() != nullptr;
  routing.groups = op.getGroups();
  routing.topGroups = op.getTopGroups();
  routing.scaling = op.getScaling().convertToDouble();
  routing.logits = getScalarType(op.getLogits().getType().getElementType())
                       .value_or(ScalarType::F32);
  return routing;
}

/// The route whose ids and weights both are the operation's.
static RouteOp routeOf(FusedExpertsOp op) {
  auto route = op.getIds().getDefiningOp<RouteOp>();
  if (!route || !op.getWeights() ||
      op.getWeights().getDefiningOp<RouteOp>() != route)
    return {};
  return route;
}

static void describeActivation(FusedExpertsOp op, LayerInfo &layer) {
  layer.activation = op.getActivation();
  if (std::optional<APFloat> alpha = op.getAlpha())
    layer.alpha = alpha->convertToDouble();
  if (std::optional<APFloat> beta = op.getBeta())
    layer.beta = beta->convertToDouble();
  if (std::optional<APFloat> limit = op.getLimit())
    layer.limit = limit->convertToDouble();
  layer.activationType = op.getActivationType();
  layer.gated = op.getHalves() == 2;
}

LayerInfo wna16::describeLayer(FusedExpertsOp op) {
  LayerInfo layer;
  layer.w13 = getWeightSpec(op.getW13().getType()).value_or(WeightSpec());
  layer.w2 = getWeightSpec(op.getW2().getType()).value_or(WeightSpec());
  layer.hidden = op.getHidden();
  layer.intermediate = op.getIntermediate();
  layer.experts = layer.globalExperts = op.getExperts();
  layer.topK = op.getTopK();
  layer.element = getScalarType(op.getX().getType().getElementType())
                      .value_or(ScalarType::F32);
  describeActivation(op, layer);
  layer.hasBias = op.getBias13() || op.getBias2();
  layer.hasExpertMap = op.getExpertMap() != nullptr;
  layer.batched = op.getBatched();
  layer.routerWeightOnInput = op.getRouterWeightOnInput();
  layer.batchInvariant = op.getBatchInvariant();
  if (RouteOp route = routeOf(op)) {
    layer.routing = describeRouting(route);
    layer.globalExperts = route.getExperts();
  } else if (layer.hasExpertMap &&
             !op.getExpertMap().getType().isDynamicDim(0)) {
    layer.globalExperts = op.getExpertMap().getType().getDimSize(0);
  }
  if (auto module = op->getParentOfType<ModuleOp>())
    if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttrName))
      layer.capability = target.getCapability();
  return layer;
}

std::string wna16::layerName(Operation *op) {
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  if (auto parent = op->getParentOfType<FunctionOpInterface>())
    return parent.getName().str();
  return "layer";
}
