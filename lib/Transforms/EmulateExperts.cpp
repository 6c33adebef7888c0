//===- EmulateExperts.cpp - linear and fused_experts as linalg ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numeric contract, word for word: f32 sums of x * (Q - z) * s, f32 bias
// and activation, one rounding of the activated row, f32 sum over the slots in
// slot order, one rounding of the result. Slots without an expert do no work.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

namespace {

/// Emits one activation of f32 values.
class ActivationEmitter {
public:
  ActivationEmitter(Emitter &emitter, FusedExpertsOp op) : e(emitter), op(op) {}

  /// `up` is null without a gate.
  Value operator()(Value gate, Value up) {
    std::optional<APFloat> limit = op.getLimit();
    if (limit) {
      Value bound = e.f32(limit->convertToDouble());
      if (op.getActivation() != Activation::swiglustep)
        gate = minimum(gate, bound);
      if (up)
        up = maximum(minimum(up, bound), e.f32(-limit->convertToDouble()));
    }
    Value value = activate(gate);
    if (!up)
      return value;
    if (op.getActivation() == Activation::swigluoai)
      up = add(up, e.f32(numberOr(op.getBeta(), 0)));
    return mul(value, up);
  }

private:
  Value activate(Value x) {
    switch (op.getActivation()) {
    case Activation::silu:
      return sigmoidTimes(x, 1);
    case Activation::swigluoai:
      return sigmoidTimes(x, numberOr(op.getAlpha(), 1));
    case Activation::swiglustep:
      return minimum(sigmoidTimes(x, 1),
                     e.f32(op.getLimit()->convertToDouble()));
    case Activation::relu2: {
      Value positive = maximum(x, e.f32(0));
      return mul(positive, positive);
    }
    case Activation::gelu:
      return gelu(x, math::ErfOp::create(e, mul(x, e.f32(std::sqrt(0.5)))));
    case Activation::gelu_tanh: {
      Value cube = mul(mul(x, x), mul(x, e.f32(0.044715)));
      Value inner = mul(add(x, cube), e.f32(std::sqrt(2 / M_PI)));
      return gelu(x, math::TanhOp::create(e, inner));
    }
    }
    llvm_unreachable("unknown activation");
  }

  /// x * sigmoid(alpha * x)
  Value sigmoidTimes(Value x, double alpha) {
    Value scaled = alpha == 1 ? x : mul(x, e.f32(alpha));
    Value power = math::ExpOp::create(e, arith::NegFOp::create(e, scaled));
    return arith::DivFOp::create(e, x, add(e.f32(1), power));
  }
  /// x / 2 * (1 + step)
  Value gelu(Value x, Value step) {
    return mul(mul(x, e.f32(0.5)), add(e.f32(1), step));
  }
  static double numberOr(std::optional<APFloat> number, double otherwise) {
    return number ? number->convertToDouble() : otherwise;
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(e, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(e, a, b); }
  Value minimum(Value a, Value b) { return arith::MinimumFOp::create(e, a, b); }
  Value maximum(Value a, Value b) { return arith::MaximumFOp::create(e, a, b); }

  Emitter &e;
  FusedExpertsOp op;
};

/// The sum over `length` inputs of row[inputs of row k] * weight row.
Value dot(Emitter &e, Value rows, ValueRange row, int64_t length,
          const WeightReader &weight, Value expert, Value half, Value output) {
  return e.sum(length, [&](Value k) -> Value {
    SmallVector<Value> at(row);
    at.push_back(weight.inputOf(expert, k));
    Value x = e.toF32(e.read(rows, at));
    return arith::MulFOp::create(e, x, weight.element(expert, k, half, output));
  });
}

struct EmulateLinear : OpConversionPattern<LinearOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LinearOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    RankedTensorType type = op.getWeight().getType();
    WeightReader weight(e, type, adaptor.getWeight());
    Value x = adaptor.getX().front();
    Value y = e.generate(adaptor.getInit().front(), [&](ValueRange at) {
      Value sum =
          dot(e, x, at[0], type.getDimSize(0), weight, Value(), Value(), at[1]);
      if (op.getBias())
        sum = arith::AddFOp::create(
            e, sum, e.toF32(e.read(adaptor.getBias().front(), at[1])));
      return e.round(sum, op.getInit().getType().getElementType());
    });
    rewriter.replaceOp(op, y);
    return success();
  }
};

struct EmulateRmsNorm : OpConversionPattern<RmsNormOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RmsNormOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter e(op.getLoc(), rewriter);
    Value x = adaptor.getX();
    int64_t tokens = op.getX().getType().getDimSize(0), hidden = op.getHidden();
    auto element = [&](Value row, Value k) {
      return e.toF32(e.read(x, {row, k}));
    };
    auto times = [&](Value a, Value b) -> Value {
      return arith::MulFOp::create(e, a, b);
    };
    // f32 [M]: what a row is multiplied by.
    Value inverse =
        e.generate({tokens}, e.getF32Type(), x, [&](ValueRange at) -> Value {
          Value squares = e.sum(hidden, [&](Value k) {
            Value value = element(at[0], k);
            return times(value, value);
          });
          Value mean = arith::DivFOp::create(e, squares, e.f32(hidden));
          Value size = math::SqrtOp::create(
              e, arith::AddFOp::create(
                     e, mean, e.f32(op.getEpsilon().convertToDouble())));
          return arith::DivFOp::create(e, e.f32(1), size);
        });
    Value y = e.generate(adaptor.getInit(), [&](ValueRange at) {
      Value value = times(element(at[0], at[1]), e.read(inverse, at[0]));
      Value weight = e.scaled(e.toF32(e.read(adaptor.getWeight(), at[1])),
                              op.getScale().convertToDouble());
      value = times(value, weight);
      if (adaptor.getAddend())
        value = arith::AddFOp::create(e, value,
                                      e.toF32(e.read(adaptor.getAddend(), at)));
      return e.round(value, op.getInit().getType().getElementType());
    });
    rewriter.replaceOp(op, y);
    return success();
  }
};

/// Emits both halves of fused_experts. A row is a token and a slot; in batched
/// layout an expert and one of its tokens.
class ExpertsEmitter {
public:
  ExpertsEmitter(Emitter &emitter, FusedExpertsOp op,
                 FusedExpertsOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor)
      : e(emitter), op(op), x(adaptor.getX().front()),
        ids(adaptor.getIds().front()), weights(optional(adaptor.getWeights())),
        bias13(optional(adaptor.getBias13())),
        bias2(optional(adaptor.getBias2())),
        expertMap(optional(adaptor.getExpertMap())),
        w13(emitter, op.getW13().getType(), adaptor.getW13()),
        w2(emitter, op.getW2().getType(), adaptor.getW2()) {}

  Value emit(Value init) {
    if (expertMap)
      ids = localIds();
    Value hidden = firstHalf();
    return secondHalf(hidden, init);
  }

private:
  static Value optional(ValueRange values) {
    return values.empty() ? Value() : values.front();
  }

  Value localIds();
  Value firstHalf();
  Value secondHalf(Value hidden, Value init);
  Value activated(ValueRange row, Value expert, Value output);

  /// `body(expert)` for a row that has one, else `otherwise`.
  Value withExpert(ValueRange row, Value otherwise,
                   function_ref<Value(Value)> body);
  Value addBias(Value sum, TypedValue<RankedTensorType> bias, Value stored,
                Value expert, Value half, Value output) {
    if (!bias)
      return sum;
    return arith::AddFOp::create(
        e, sum, readBias(e, bias.getType(), stored, expert, half, output));
  }
  Value timesWeight(Value value, ValueRange row) {
    return arith::MulFOp::create(e, value, e.read(weights, row));
  }

  Emitter &e;
  FusedExpertsOp op;
  Value x, ids, weights, bias13, bias2, expertMap;
  WeightReader w13, w2;
};

/// i32 [M, k]: ids after the expert map; -1 where it does not reach.
Value ExpertsEmitter::localIds() {
  RankedTensorType type = op.getIds().getType();
  Value extent = tensor::DimOp::create(e, expertMap, 0);
  return e.generate(type.getShape(), e.getI32Type(), ids, [&](ValueRange at) {
    Value id = arith::IndexCastOp::create(e, e.getIndexType(), e.read(ids, at));
    Value inside =
        arith::CmpIOp::create(e, arith::CmpIPredicate::ult, id, extent);
    return e.when(inside, e.integer(-1), [&] { return e.read(expertMap, id); });
  });
}

Value ExpertsEmitter::withExpert(ValueRange row, Value otherwise,
                                 function_ref<Value(Value)> body) {
  if (op.getBatched()) {
    Value count = arith::IndexCastOp::create(e, e.getIndexType(),
                                             e.read(ids, row.front()));
    Value used =
        arith::CmpIOp::create(e, arith::CmpIPredicate::slt, row[1], count);
    return e.when(used, otherwise, [&] { return body(row.front()); });
  }
  Value id = arith::IndexCastOp::create(e, e.getIndexType(), e.read(ids, row));
  // Unsigned, so that -1 and other ids without an expert are none.
  Value here = arith::CmpIOp::create(e, arith::CmpIPredicate::ult, id,
                                     e.index(op.getExperts()));
  return e.when(here, otherwise, [&] { return body(id); });
}

/// One element of the activated row, in f32.
Value ExpertsEmitter::activated(ValueRange row, Value expert, Value output) {
  ValueRange token = op.getBatched() ? row : row.take_front(1);
  SmallVector<Value, 2> halves;
  for (int64_t half = 0; half < op.getHalves(); ++half) {
    Value index = op.getHalves() > 1 ? e.index(half) : Value();
    Value sum = dot(e, x, token, op.getHidden(), w13, expert, index, output);
    if (op.getRouterWeightOnInput())
      sum = timesWeight(sum, row);
    halves.push_back(
        addBias(sum, op.getBias13(), bias13, expert, index, output));
  }
  return ActivationEmitter(e, op)(halves.front(),
                                  halves.size() > 1 ? halves[1] : Value());
}

/// [M, k, N] or [E, T, N] in x's type: act(x * w13 + bias13), 0 for rows
/// without an expert.
Value ExpertsEmitter::firstHalf() {
  RankedTensorType type = op.getX().getType();
  SmallVector<int64_t> shape(op.getBatched()
                                 ? type.getShape().drop_back()
                                 : op.getIds().getType().getShape());
  shape.push_back(op.getIntermediate());
  return e.generate(shape, type.getElementType(), x, [&](ValueRange at) {
    ValueRange row = at.take_front(2);
    Value value = withExpert(row, e.f32(0), [&](Value expert) {
      return activated(row, expert, at.back());
    });
    return e.round(value, type.getElementType());
  });
}

Value ExpertsEmitter::secondHalf(Value hidden, Value init) {
  auto addSlot = [&](ValueRange row, Value output, Value total) {
    return withExpert(row, total, [&](Value expert) -> Value {
      Value sum = dot(e, hidden, row, op.getIntermediate(), w2, expert, Value(),
                      output);
      sum = addBias(sum, op.getBias2(), bias2, expert, Value(), output);
      if (weights && !op.getRouterWeightOnInput())
        sum = timesWeight(sum, row);
      return arith::AddFOp::create(e, total, sum);
    });
  };
  return e.generate(init, [&](ValueRange at) {
    Value total = e.f32(0);
    if (op.getBatched())
      total = addSlot(at.take_front(2), at.back(), total);
    else
      total = e.loop(e.index(0), e.index(op.getTopK()), 1, total,
                     [&](Value slot, ValueRange state) -> SmallVector<Value> {
                       Value row[] = {at[0], slot};
                       return {addSlot(row, at.back(), state.front())};
                     })
                  .front();
    return e.round(total, op.getInit().getType().getElementType());
  });
}

struct EmulateFusedExperts : OpConversionPattern<FusedExpertsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FusedExpertsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getActivationType() != ActivationType::a16)
      return rewriter.notifyMatchFailure(op,
                                         "8-bit activations are not emulated");
    Emitter emitter(op.getLoc(), rewriter);
    ExpertsEmitter experts(emitter, op, adaptor);
    rewriter.replaceOp(op, experts.emit(adaptor.getInit().front()));
    return success();
  }
};

} // namespace

void emulation::populateExpertsPatterns(const DisassemblyConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<EmulateLinear, EmulateRmsNorm, EmulateFusedExperts>(
      converter, patterns.getContext());
}
