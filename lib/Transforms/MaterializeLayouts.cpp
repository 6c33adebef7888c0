//===- MaterializeLayouts.cpp - Insert the preparation steps --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"
#include "Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace wna16 {
#define GEN_PASS_DEF_MATERIALIZELAYOUTS
#include "Transforms/Passes.h.inc"
} // namespace wna16

using namespace mlir;
using namespace wna16;

namespace {

/// Appends steps to a weight, one kind of change at a time.
class StepBuilder {
public:
  StepBuilder(OpBuilder &builder, TypedValue<RankedTensorType> weight)
      : builder(builder), value(weight),
        spec(*getWeightSpec(weight.getType())) {}

  /// One step to `next`; none where nothing changes.
  template <typename OpT>
  void step(const WeightSpec &next) {
    if (next == spec)
      return;
    RankedTensorType type =
        getWeightType(builder.getContext(), next, value.getType().getRank());
    value = cast<TypedValue<RankedTensorType>>(
        OpT::create(builder, value.getLoc(), type, value).getResult());
    spec = next;
  }

  void dequantize(const WeightSpec &next) {
    RankedTensorType type =
        getWeightType(builder.getContext(), next, value.getType().getRank());
    value = DequantizeOp::create(builder, value.getLoc(), type, value,
                                 /*scale_first=*/false)
                .getResult();
    spec = next;
  }

  const WeightSpec &current() const { return spec; }
  TypedValue<RankedTensorType> result() const { return value; }

private:
  OpBuilder &builder;
  TypedValue<RankedTensorType> value;
  WeightSpec spec;
};

/// The steps from a weight to the form that a backend wants. Values and
/// extents change in the checkpoint's layout, the layout last.
TypedValue<RankedTensorType> prepare(OpBuilder &builder,
                                     TypedValue<RankedTensorType> weight,
                                     const WeightSpec &wanted) {
  StepBuilder steps(builder, weight);
  if (steps.current().code != CodeType::Dense &&
      wanted.code == CodeType::Dense) {
    steps.dequantize(wanted);
    return steps.result();
  }
  WeightSpec next = steps.current();
  next.actOrder = wanted.actOrder;
  steps.step<SortGroupsOp>(next);
  next.input = wanted.input;
  next.output = wanted.output;
  steps.step<PadOp>(next);
  next.group = wanted.group;
  steps.step<RegroupOp>(next);
  // A layout that cannot hold the wanted code gets it with the repack.
  WeightSpec recoded = next;
  recoded.code = wanted.code;
  recoded.zeros = wanted.zeros;
  recoded.scale = wanted.scale;
  if (storageOf(recoded)) {
    steps.step<RecodeOp>(recoded);
    steps.step<RepackOp>(wanted);
  } else {
    steps.step<ConvertOp>(wanted);
  }
  return steps.result();
}

/// A bias in the order and extents of the weight that it belongs to.
Value prepareBias(OpBuilder &builder, TypedValue<RankedTensorType> bias,
                  int64_t output, const LayoutEntry *layout) {
  SmallVector<int64_t> shape(bias.getType().getShape());
  shape.back() = output;
  Attribute encoding;
  if (layout)
    encoding = BiasAttr::get(builder.getContext(), layout);
  auto type =
      RankedTensorType::get(shape, bias.getType().getElementType(), encoding);
  if (type == bias.getType())
    return bias;
  return ConvertBiasOp::create(builder, bias.getLoc(), type, bias);
}

struct MaterializeLayouts
    : wna16::impl::MaterializeLayoutsBase<MaterializeLayouts> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](FusedExpertsOp op) {
      return succeeded(materialize(op)) ? WalkResult::advance()
                                        : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  static LogicalResult materialize(FusedExpertsOp op) {
    StringRef name = op.getBackend().value_or("");
    const Backend *backend = BackendRegistry::get().find(name);
    if (!backend)
      return op.emitOpError() << "expected a backend, chosen by "
                                 "wna16-select-backend, got '"
                              << name << "'";
    LayerInfo layer = describeLayer(op);
    OpBuilder builder(op);
    WeightSpec w13 = backend->prepared(layer, layer.w13, Projection::W13);
    WeightSpec w2 = backend->prepared(layer, layer.w2, Projection::W2);
    for (const WeightSpec &wanted : {w13, w2})
      if (Result<std::vector<StoredPart>> parts = storageOf(wanted); !parts)
        return op.emitOpError() << "cannot be stored for backend " << name
                                << ": " << parts.message();
    op.getW13Mutable().assign(prepare(builder, op.getW13(), w13));
    op.getW2Mutable().assign(prepare(builder, op.getW2(), w2));
    if (op.getBias13())
      op.getBias13Mutable().assign(prepareBias(
          builder, op.getBias13(), w13.output, backend->biasLayout()));
    if (op.getBias2())
      op.getBias2Mutable().assign(prepareBias(builder, op.getBias2(), w2.output,
                                              backend->biasLayout()));
    return success();
  }
};

} // namespace
