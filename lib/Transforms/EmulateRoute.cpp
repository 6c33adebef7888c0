//===- EmulateRoute.cpp - route as linalg ---------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Experts, and groups of experts, are chosen by rank: how many others come
// before one in a total order (greater value first, NaN after everything, then
// lower index). Ranks are a permutation whatever the values are, so every slot
// finds exactly one expert and every id is in range. Experts of dropped groups
// come after all others.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace wna16;
using namespace wna16::emulation;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Emits the tensors between logits and weights.
class RouteEmitter {
public:
  RouteEmitter(Emitter &emitter, RouteOp op, Value logits, Value correction,
               Value expertScale)
      : e(emitter), op(op), logits(logits), correction(correction),
        expertScale(expertScale),
        tokens(op.getLogits().getType().getDimSize(0)),
        experts(op.getExperts()), groups(op.getGroups()) {}

  /// f32 [M, E]: softmax or sigmoid of the logits, or the logits themselves.
  Value scores();
  /// i32 [M, E]: the rank of each expert.
  Value expertRanks(Value scores);
  Value ids(Value ranks, Value init);
  Value weights(Value scores, Value ranks, Value ids, Value init);

private:
  Value logit(Value m, Value expert) {
    return e.toF32(e.read(logits, {m, expert}));
  }
  Value exp(Value x) { return math::ExpOp::create(e, x); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(e, a, b); }
  Value add(Value a, Value b) { return arith::AddFOp::create(e, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(e, a, b); }

  /// Folds f(accumulator, term(i)) over [0, length).
  Value fold(int64_t length, double start, function_ref<Value(Value)> term,
             function_ref<Value(Value, Value)> f) {
    return e
        .loop(e.index(0), e.index(length), 1, e.f32(start),
              [&](Value i, ValueRange state) -> SmallVector<Value> {
                return {f(state.front(), term(i))};
              })
        .front();
  }
  Value maximum(int64_t length, function_ref<Value(Value)> term) {
    return fold(length, -kInfinity, term, [&](Value a, Value b) -> Value {
      return arith::MaximumFOp::create(e, a, b);
    });
  }
  /// Whether `a` is the greater one, and no NaN; `b` may be NaN.
  Value beats(Value a, Value b);
  Value groupScores(Value biased);
  /// i32 [M, extent]: the rank of each of `values` [M, extent] among those that
  /// `isKept`, `extent` for the others.
  Value ranks(Value values, int64_t extent,
              function_ref<Value(Value, Value)> isKept);
  /// A sparse mixer's weight of the expert in a slot, whose logit is `top`.
  Value mixed(Value scores, Value ranks, Value m, Value slot, Value top);
  Value slotSum(function_ref<Value(Value)> term) {
    return fold(op.getTopK(), 0, term,
                [&](Value a, Value b) { return add(a, b); });
  }

  Emitter &e;
  RouteOp op;
  Value logits, correction, expertScale;
  int64_t tokens, experts, groups;
};

Value RouteEmitter::scores() {
  auto perToken = [&](function_ref<Value(Value)> body) {
    return e.generate({tokens}, e.getF32Type(), logits,
                      [&](ValueRange at) { return body(at[0]); });
  };
  auto perExpert = [&](function_ref<Value(Value, Value)> body) {
    return e.generate({tokens, experts}, e.getF32Type(), logits,
                      [&](ValueRange at) { return body(at[0], at[1]); });
  };
  if (op.getSoftmaxAfterTopk() || op.getScoring() == Scoring::sparsemixer)
    return perExpert([&](Value m, Value x) { return logit(m, x); });
  if (op.getScoring() == Scoring::sigmoid)
    return perExpert([&](Value m, Value x) {
      Value negated = arith::NegFOp::create(e, logit(m, x));
      return div(e.f32(1), add(e.f32(1), exp(negated)));
    });
  Value top = perToken([&](Value m) {
    return maximum(experts, [&](Value x) { return logit(m, x); });
  });
  Value powers = perExpert(
      [&](Value m, Value x) { return exp(sub(logit(m, x), e.read(top, m))); });
  Value total = perToken([&](Value m) {
    return e.sum(experts, [&](Value x) { return e.read(powers, {m, x}); });
  });
  return perExpert([&](Value m, Value x) {
    return div(e.read(powers, {m, x}), e.read(total, m));
  });
}

/// f32 [M, groups]: the best member, with a correction the sum of the two best.
Value RouteEmitter::groupScores(Value biased) {
  int64_t size = experts / groups;
  bool addSecond = correction && size > 1;
  return e.generate(
      {tokens, groups}, e.getF32Type(), biased, [&](ValueRange at) -> Value {
        Value begin = e.times(at[1], size);
        Value lowest = e.f32(std::numeric_limits<double>::quiet_NaN());
        auto best =
            e.loop(e.index(0), e.index(size), 1, {lowest, lowest},
                   [&](Value i, ValueRange two) -> SmallVector<Value> {
                     Value x = e.read(biased, {at[0], e.add(begin, i)});
                     Value isFirst = beats(x, two[0]);
                     Value rest = e.select(isFirst, two[0], x);
                     return {e.select(isFirst, x, two[0]),
                             e.select(beats(rest, two[1]), rest, two[1])};
                   });
        return addSecond ? add(best[0], best[1]) : best[0];
      });
}

Value RouteEmitter::expertRanks(Value scores) {
  Value biased = scores;
  if (correction)
    biased = e.generate(
        {tokens, experts}, e.getF32Type(), scores, [&](ValueRange at) {
          return add(e.read(scores, at), e.toF32(e.read(correction, at[1])));
        });
  Value all = e.integer(1, 1);
  auto any = [&](Value, Value) { return all; };
  if (groups == 1)
    return ranks(biased, experts, any);
  Value groupRanks = ranks(groupScores(biased), groups, any);
  return ranks(biased, experts, [&](Value m, Value expert) -> Value {
    Value group = e.quotient(expert, experts / groups);
    return arith::CmpIOp::create(e, arith::CmpIPredicate::slt,
                                 e.read(groupRanks, {m, group}),
                                 e.integer(op.getTopGroups()));
  });
}

Value RouteEmitter::beats(Value a, Value b) {
  Value greater = arith::CmpFOp::create(e, arith::CmpFPredicate::OGT, a, b);
  Value isNumber = arith::CmpFOp::create(e, arith::CmpFPredicate::ORD, a, a);
  Value isNaN = arith::CmpFOp::create(e, arith::CmpFPredicate::UNO, b, b);
  return arith::OrIOp::create(e, greater,
                              arith::AndIOp::create(e, isNumber, isNaN));
}

Value RouteEmitter::ranks(Value values, int64_t extent,
                          function_ref<Value(Value, Value)> isKept) {
  auto body = [&](ValueRange at) -> Value {
    Value own = e.read(values, at);
    Value before =
        e.loop(e.index(0), e.index(extent), 1, e.integer(0),
               [&](Value i, ValueRange count) -> SmallVector<Value> {
                 Value other = e.read(values, {at[0], i});
                 Value isLower = arith::CmpIOp::create(
                     e, arith::CmpIPredicate::ult, i, at[1]);
                 // Equal ones, which do not beat each other, go by index.
                 Value loses = arith::XOrIOp::create(e, beats(own, other),
                                                     e.integer(1, 1));
                 Value first = e.select(isLower, loses, beats(other, own));
                 Value counts =
                     arith::AndIOp::create(e, first, isKept(at[0], i));
                 Value one = arith::ExtUIOp::create(e, e.getI32Type(), counts);
                 return {arith::AddIOp::create(e, count.front(), one)};
               })
            .front();
    return e.select(isKept(at[0], at[1]), before, e.integer(extent));
  };
  return e.generate({tokens, extent}, e.getI32Type(), values, body);
}

Value RouteEmitter::ids(Value ranks, Value init) {
  return e.generate(init, [&](ValueRange at) -> Value {
    Value slot = arith::IndexCastOp::create(e, e.getI32Type(), at[1]);
    return e
        .loop(e.index(0), e.index(experts), 1, e.integer(0),
              [&](Value x, ValueRange found) -> SmallVector<Value> {
                Value here =
                    arith::CmpIOp::create(e, arith::CmpIPredicate::eq,
                                          e.read(ranks, {at[0], x}), slot);
                Value id = arith::IndexCastOp::create(e, e.getI32Type(), x);
                return {e.select(here, id, found.front())};
              })
        .front();
  });
}

Value RouteEmitter::mixed(Value scores, Value ranks, Value m, Value slot,
                          Value top) {
  Value reach = e.f32(2 * op.getJitter().convertToDouble());
  Value position = arith::IndexCastOp::create(e, e.getI32Type(), slot);
  Value sum = e.sum(experts, [&](Value x) -> Value {
    Value logit = e.read(scores, {m, x});
    Value size = math::AbsFOp::create(e, logit);
    Value distance =
        div(sub(top, logit), arith::MaximumFOp::create(e, size, top));
    // No number (of 0 from 0, of an infinity) is near.
    Value isNear =
        arith::CmpFOp::create(e, arith::CmpFPredicate::ULE, distance, reach);
    Value isLeft = arith::CmpIOp::create(e, arith::CmpIPredicate::sge,
                                         e.read(ranks, {m, x}), position);
    return e.select(arith::AndIOp::create(e, isLeft, isNear),
                    exp(sub(logit, top)), e.f32(0));
  });
  return div(e.f32(1), sum);
}

Value RouteEmitter::weights(Value scores, Value ranks, Value ids, Value init) {
  auto chosenIndex = [&](Value m, Value slot) {
    return e.clampedIndex(e.read(ids, {m, slot}), experts);
  };
  auto chosen = [&](Value m, Value slot) {
    return e.read(scores, {m, chosenIndex(m, slot)});
  };
  double scaling = op.getScaling().convertToDouble();
  return e.generate(init, [&](ValueRange at) -> Value {
    Value m = at[0], weight = chosen(m, at[1]);
    if (op.getScoring() == Scoring::sparsemixer) {
      weight = mixed(scores, ranks, m, at[1], weight);
    } else if (op.getSoftmaxAfterTopk()) {
      Value top =
          maximum(op.getTopK(), [&](Value slot) { return chosen(m, slot); });
      weight = exp(sub(weight, top));
      weight = div(weight, slotSum([&](Value slot) {
                     return exp(sub(chosen(m, slot), top));
                   }));
    } else if (op.getRenormalize()) {
      Value total = slotSum([&](Value slot) { return chosen(m, slot); });
      // Scores that all underflowed stay 0.
      Value isZero =
          arith::CmpFOp::create(e, arith::CmpFPredicate::OEQ, total, e.f32(0));
      weight = div(weight, e.select(isZero, e.f32(1), total));
    }
    if (scaling != 1)
      weight = arith::MulFOp::create(e, weight, e.f32(scaling));
    if (expertScale)
      weight = arith::MulFOp::create(
          e, weight, e.toF32(e.read(expertScale, chosenIndex(m, at[1]))));
    return weight;
  });
}

struct EmulateRoute : OpConversionPattern<RouteOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RouteOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Emitter emitter(op.getLoc(), rewriter);
    RouteEmitter route(emitter, op, adaptor.getLogits(),
                       adaptor.getCorrection(), adaptor.getExpertScale());
    Value scores = route.scores();
    Value ranks = route.expertRanks(scores);
    Value ids = route.ids(ranks, adaptor.getIdsInit());
    Value weights = route.weights(scores, ranks, ids, adaptor.getWeightsInit());
    rewriter.replaceOp(op, {weights, ids});
    return success();
  }
};

} // namespace

void emulation::populateRoutePatterns(const DisassemblyConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<EmulateRoute>(converter, patterns.getContext());
}
