//===- BlockMove.cpp - A move plan as tables for threads ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockMove.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace wna16;
using namespace wna16::cuda;

/// Bits of the number of a nibble that say which of its word it is.
static constexpr int kWordBits = 3;
/// The same for 16 bytes.
static constexpr int kVectorBits = 5;
/// Bits of the number of a nibble that choose among 16-byte pieces of the banks
/// of shared memory.
static constexpr int kBankBegin = kVectorBits, kBankEnd = 8;

//===----------------------------------------------------------------------===//
// Steps on words
//===----------------------------------------------------------------------===//

namespace {

/// A plan's permutation in nibbles, whatever the unit.
struct NibblePlan {
  int bits = 0;
  std::vector<int> source;         ///< of a bit of the target, the source's
  std::vector<int> target;         ///< the inverse
  std::vector<int64_t> weights[2]; ///< nibbles that a bit adds; source, target
  int runBits[2] = {};

  explicit NibblePlan(const MovePlan &plan) {
    int extra = 0;
    while (4 << extra < plan.unitBits)
      ++extra;
    bits = plan.bits() + extra;
    source.resize(bits);
    target.resize(bits);
    std::iota(source.begin(), source.begin() + extra, 0);
    for (int bit = extra; bit < bits; ++bit)
      source[bit] = plan.permutation[bit - extra] + extra;
    for (int bit = 0; bit < bits; ++bit)
      target[source[bit]] = bit;
    const BlockOrder *orders[] = {&plan.source, &plan.target};
    for (int side : {0, 1}) {
      for (int bit = 0; bit < extra; ++bit)
        weights[side].push_back(int64_t(1) << bit);
      for (int64_t weight : orders[side]->weights)
        weights[side].push_back(weight << extra);
      runBits[side] = orders[side]->runBits + extra;
    }
  }
};

/// Chooses which bits of the source's count are held, and takes the
/// permutation of those in words apart into steps.
class StepBuilder {
public:
  explicit StepBuilder(const NibblePlan &plan) : plan(plan) {
    for (int bit = 0; bit < kWordBits; ++bit)
      holds.push_back(bit);
    for (int bit = 0; bit < kWordBits; ++bit)
      if (plan.source[bit] >= kWordBits)
        holds.push_back(plan.source[bit]);
    // The others so that they take no banks from the threads.
    std::vector<int> others;
    for (int bit = kWordBits; bit < plan.bits; ++bit)
      if (std::find(holds.begin(), holds.end(), bit) == holds.end())
        others.push_back(bit);
    std::stable_sort(others.begin(), others.end(),
                     [&](int a, int b) { return bankUse(a) < bankUse(b); });
    while (holds.size() < kWordBits + kHeldBits) {
      holds.push_back(others.front());
      others.erase(others.begin());
    }
    read.assign(holds.begin() + kWordBits, holds.end());
    // Threads of a warp take those that count in banks.
    std::reverse(others.begin(), others.end());
    threads = others;
  }

  void build(BlockMove &move) {
    placeNibble(move);
    for (int at : {1, 2})
      if (!inBytes(holds[at]))
        exchangeByte(move, at, findWanted());
    if (holds[1] != plan.source[1])
      swapBytes(move);
    write.assign(holds.begin() + kWordBits, holds.end());
  }

  /// Bits of the source's count: held when words are read, and when they are
  /// written; those of the thread's number.
  std::vector<int> read, write, threads;

private:
  /// How much it hurts when a bit is none of the threads'.
  int bankUse(int bit) const {
    auto use = [](int at) {
      return at < kVectorBits ? 16 : at < kBankEnd ? 4 : 0;
    };
    return use(bit) + use(plan.target[bit]);
  }

  bool inBytes(int bit) const {
    return bit == plan.source[1] || bit == plan.source[2];
  }

  int find(int bit) const {
    return static_cast<int>(std::find(holds.begin(), holds.end(), bit) -
                            holds.begin());
  }

  /// A register bit that bytes of the target want, or any.
  int findWanted() const {
    for (int at = kWordBits; at < kWordBits + kHeldBits; ++at)
      if (inBytes(holds[at]))
        return at;
    return kWordBits;
  }

  void placeNibble(BlockMove &move) {
    if (holds[0] == plan.source[0])
      return;
    if (int at = find(plan.source[0]); at < kWordBits)
      exchangeByte(move, at, findWanted());
    const int at = find(plan.source[0]);
    WordStep &step = move.step[move.steps++];
    step.held = static_cast<uint32_t>(at - kWordBits);
    step.nibbles = 1;
    std::swap(holds[0], holds[at]);
  }

  /// Bytes by the bits of their number: two within a word, one of the register.
  static void fill(WordStep &step, const int (&order)[3]) {
    for (int byte = 0; byte < 8; ++byte) {
      int from = 0;
      for (int bit = 0; bit < 3; ++bit)
        from |= (byte >> bit & 1) << order[bit];
      (byte & 4 ? step.high : step.low) |=
          static_cast<uint32_t>(from << (4 * (byte & 3)));
    }
  }

  void exchangeByte(BlockMove &move, int at, int held) {
    WordStep &step = move.step[move.steps++];
    step.held = static_cast<uint32_t>(held - kWordBits);
    const int first[] = {2, 1, 0}, second[] = {0, 2, 1};
    if (at == 1)
      fill(step, first);
    else
      fill(step, second);
    std::swap(holds[at], holds[held]);
  }

  /// Swaps the two bits of a byte's number.
  void swapBytes(BlockMove &move) {
    fill(move.step[move.steps++], {1, 0, 2});
    std::swap(holds[1], holds[2]);
  }

  const NibblePlan &plan;
  /// Bit of the source's count at each bit within words, then of registers.
  std::vector<int> holds;
};

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Where the words of a block lie in shared memory, in one of its orders: each
/// bit of the count adds its weight and, where threads of a warp differ in a
/// high bit, a bank that they do not use yet.
class SharedOrder {
public:
  /// `lanes`: bits of this order in which threads of a warp differ.
  SharedOrder(int bits, const std::vector<int> &lanes) {
    for (int bit = 0; bit < bits; ++bit)
      terms.push_back(bit < 1 ? 0 : 1u << (bit - 1));
    std::vector<int> free;
    for (int bank = kBankBegin; bank < kBankEnd; ++bank)
      if (std::find(lanes.begin(), lanes.end(), bank) == lanes.end())
        free.push_back(bank);
    for (int lane : lanes)
      if (lane >= kBankEnd && !free.empty()) {
        terms[lane] ^= 1u << (free.front() - 1);
        free.erase(free.begin());
      }
  }

  uint32_t term(int bit) const { return terms[bit]; }

private:
  std::vector<uint32_t> terms; ///< in bytes
};

/// Terms of accesses to words or vectors in an order: threads take the low bits
/// in turn.
void listAccesses(BlockSide &side, const std::vector<int64_t> &weights,
                  const SharedOrder &shared, int threadBits) {
  const int first = side.wide ? kVectorBits : kWordBits;
  const int accessBits = side.wide ? 1 : kHeldBits;
  for (int bit = 0; bit < threadBits; ++bit) {
    side.bytes.bit[bit] = static_cast<uint32_t>(weights[first + bit] / 2);
    side.shared.bit[bit] = shared.term(first + bit);
  }
  for (int access = 0; access < 1 << accessBits; ++access)
    for (int bit = 0; bit < accessBits; ++bit)
      if (access >> bit & 1) {
        const int at = first + threadBits + bit;
        side.bytes.access[access] += static_cast<uint32_t>(weights[at] / 2);
        side.shared.access[access] ^= shared.term(at);
      }
}

/// Terms of the words that threads hold.
ThreadTerms listWords(const SharedOrder &shared,
                      const std::vector<int> &threads,
                      const std::vector<int> &held) {
  ThreadTerms terms;
  for (size_t bit = 0; bit < threads.size(); ++bit)
    terms.bit[bit] = shared.term(threads[bit]);
  for (int word = 0; word < kHeldWords; ++word)
    for (int bit = 0; bit < kHeldBits; ++bit)
      if (word >> bit & 1)
        terms.access[word] ^= shared.term(held[bit]);
  return terms;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

int trailingZeros(int64_t value) {
  return value ? __builtin_ctzll(static_cast<uint64_t>(value)) : 62;
}

/// Halves without a seam count as one.
void joinHalves(const AddressMap &from, const AddressMap &to,
                MoveShape &shape) {
  if (shape.keepsHalves || from.hasHalves() || to.hasHalves() ||
      shape.outputs != shape.sourceOutputs ||
      shape.outputs != shape.targetOutputs)
    return;
  for (int64_t *rows :
       {&shape.outputs, &shape.sourceOutputs, &shape.targetOutputs})
    *rows *= shape.halves;
  shape.halves = 1;
}

/// Blocks divide the target, and start at multiples of their extents.
BlockLimits limitsOf(const MoveShape &shape) {
  BlockLimits limits;
  limits.inner = std::min(trailingZeros(shape.targetInners),
                          trailingZeros(shape.innerBegin));
  limits.output = std::min(trailingZeros(shape.targetOutputs),
                           trailingZeros(shape.outputBegin));
  if (shape.halves > 1)
    limits.output = std::min(limits.output, trailingZeros(shape.sourceOutputs));
  // A block is within what moves.
  auto most = [](int64_t extent) {
    return 63 - __builtin_clzll(static_cast<uint64_t>(extent));
  };
  limits.inner = std::min(limits.inner, most(shape.inners));
  limits.output = std::min(limits.output, most(shape.outputs));
  if (shape.whole) {
    limits.inner = std::min(limits.inner, trailingZeros(shape.inners));
    limits.output = std::min(limits.output, trailingZeros(shape.outputs));
  }
  return limits;
}

/// Units of a tensor in words; false where they are no whole number of those.
bool toWords(int64_t units, int unitBits, uint32_t &words) {
  const int64_t bits = units * unitBits;
  words = static_cast<uint32_t>(bits / 32);
  return bits % 32 == 0 && bits / 32 <= std::numeric_limits<uint32_t>::max();
}

/// How blocks of 2^`blockBits` coordinates count up the address, or
/// 2^-blockBits blocks each of a coordinate; false where that takes too many
/// terms, or a bit counts down.
bool listSteps(const AddressMap &map, Axis axis, int blockBits, int unitBits,
               AxisSteps &steps) {
  const AddressMap::Terms &terms = map.bits(axis);
  const int last = std::max(static_cast<int>(terms.size()), blockBits);
  int count = 0;
  for (int bit = std::max(blockBits, 0); bit <= last; ++bit) {
    int64_t weight = map.tileStride(axis)
                     << std::max(bit - static_cast<int>(terms.size()), 0);
    for (const AddressMap::Term &term : terms)
      if (term.bit == bit) {
        if (term.inverted)
          return false;
        weight = term.weight;
      }
    uint32_t words;
    if (!toWords(weight, unitBits, words))
      return false;
    const auto shift = static_cast<uint32_t>(bit - blockBits);
    if (count > 0) {
      AxisSteps::Step &before = steps.step[count - 1];
      if (words == before.words << (shift - before.shift)) {
        before.mask = bit == last ? ~0u : before.mask * 2 + 1;
        continue;
      }
    }
    if (count == AxisSteps::kMax)
      return false;
    steps.step[count++] = {shift, bit == last ? ~0u : 1u, words};
  }
  return true;
}

/// Whether accesses to 2^`bits` nibbles are to so many side by side, and all at
/// multiples of that.
bool isAligned(const BlockSide &side, const NibblePlan &plan, int at,
               int bits) {
  auto fits = [bits](int64_t nibbles) {
    return nibbles % (int64_t(1) << bits) == 0;
  };
  for (const AxisSteps *axis : {&side.inner, &side.output})
    for (const AxisSteps::Step &step : axis->step)
      if (!fits(int64_t(step.words) << kWordBits))
        return false;
  const std::vector<int64_t> &weights = plan.weights[at];
  return plan.runBits[at] >= bits &&
         std::all_of(weights.begin() + bits, weights.end(), fits) &&
         fits(int64_t(side.first) << kWordBits) &&
         fits(side.expert << kWordBits) &&
         fits(int64_t(side.half) << kWordBits);
}

/// Whether all units of the storage belong to a coordinate.
bool isExact(const AddressMap &map, const MoveShape &shape) {
  auto padded = [&](Axis axis) {
    return std::max<int64_t>(map.tiles(axis), 1)
           << static_cast<int>(map.bits(axis).size());
  };
  const int64_t halves = map.hasHalves() ? 1 : shape.halves;
  return padded(shape.inner) == shape.targetInners &&
         padded(Axis::Output) == shape.targetOutputs * halves;
}

/// Numbers blocks; false when there are too many.
bool countBlocks(const MovePlan &plan, const MoveShape &shape,
                 BlockMove &move) {
  const int64_t inners = shape.inners >> plan.innerBits;
  const int64_t outputs = shape.outputs >> plan.outputBits;
  const int64_t allInners = shape.targetInners >> plan.innerBits;
  const int64_t allOutputs = shape.targetOutputs >> plan.outputBits;
  constexpr double kMost = 1 << 30;
  if (static_cast<double>(allInners) * static_cast<double>(allOutputs) *
          static_cast<double>(shape.experts * shape.halves) >
      kMost)
    return false;
  move.halves = static_cast<int32_t>(shape.halves);
  move.inners = static_cast<uint32_t>(inners);
  move.outputs = static_cast<uint32_t>(outputs);
  move.allInners = static_cast<uint32_t>(allInners);
  move.allOutputs = static_cast<uint32_t>(allOutputs);
  move.inFirst = divisorOf(move.outputsFirst ? move.outputs : move.inners);
  move.inSlice = divisorOf(move.inners * move.outputs);
  move.blocks =
      static_cast<uint32_t>(inners * outputs * shape.experts * shape.halves);
  move.edges = static_cast<uint32_t>(allInners * allOutputs - inners * outputs);
  if (std::max(shape.inners, shape.filled) == inners << plan.innerBits &&
      shape.outputs == outputs << plan.outputBits)
    move.cleared =
        move.edges * static_cast<uint32_t>(shape.experts * shape.halves);
  return true;
}

/// Bits of the target's count of bits of the source's.
std::vector<int> inTarget(const NibblePlan &plan, std::vector<int> bits) {
  for (int &bit : bits)
    bit = plan.target[bit];
  return bits;
}

bool fitsInt(const NibblePlan &plan) {
  for (const std::vector<int64_t> &weights : plan.weights)
    if (std::accumulate(weights.begin(), weights.end(), int64_t(0)) / 2 >
        std::numeric_limits<int32_t>::max())
      return false;
  return true;
}

/// What the bits of a plan's count are, in the source's order.
std::vector<CoordinateBit> listCoordinates(const AddressMap &from,
                                           const MovePlan &plan, Axis inner,
                                           const NibblePlan &nibbles) {
  std::vector<CoordinateBit> bits(nibbles.bits);
  const int extra = nibbles.bits - plan.bits();
  auto list = [&](bool isOutput, int count, auto addressOf) {
    for (int bit = 0; bit < count; ++bit) {
      const int64_t weight = addressOf(int64_t(1) << bit) - addressOf(0);
      for (int at = 0; at < plan.bits(); ++at)
        if (plan.source.weights[at] == weight)
          bits[at + extra] = {isOutput, bit};
    }
  };
  list(false, plan.innerBits, [&](int64_t at) {
    return inner == Axis::Input ? from.input(at) : from.group(at);
  });
  list(true, plan.outputBits, [&](int64_t at) { return from.row(at); });
  return bits;
}

/// Everything within a block.
void listBlock(const NibblePlan &plan, BlockMove &move, BlockBits *bits) {
  StepBuilder steps(plan);
  steps.build(move);
  std::vector<int> lanes = steps.threads;
  lanes.resize(std::min<size_t>(lanes.size(), 5));
  const SharedOrder in(plan.bits, lanes), out(plan.bits, inTarget(plan, lanes));
  listAccesses(move.source, plan.weights[0], in, move.threadBits);
  listAccesses(move.target, plan.weights[1], out, move.threadBits);
  move.read = listWords(in, steps.threads, steps.read);
  move.write = listWords(out, inTarget(plan, steps.threads),
                         inTarget(plan, steps.write));
  if (!bits)
    return;
  bits->inSource = plan.source;
  for (int side : {0, 1})
    bits->weights[side] = plan.weights[side];
  for (int bit = 0; bit < plan.bits; ++bit)
    bits->shared.push_back(out.term(bit));
  bits->threads = steps.threads;
  bits->read = steps.read;
  bits->write = steps.write;
}

} // namespace

Divisor cuda::divisorOf(uint32_t value) {
  return {value,
          value > 1 ? std::numeric_limits<uint64_t>::max() / value + 1 : 0};
}

bool cuda::listAddress(const AddressMap &map, int unitBits,
                       const MoveShape &shape, int innerBits, int outputBits,
                       int64_t outputs, BlockAddress &address) {
  uint32_t words;
  if (!toWords(map.size(), unitBits, words) ||
      !toWords(map.row(0), unitBits, address.first))
    return false;
  address.expert = words;
  if (!map.hasHalves() || shape.halves == 1)
    address.halfOutputs = static_cast<uint32_t>(outputs >> outputBits);
  else if (!toWords(map.row(outputs) - map.row(0), unitBits, address.half))
    return false;
  return listSteps(map, shape.inner, innerBits, unitBits, address.inner) &&
         listSteps(map, Axis::Output, outputBits, unitBits, address.output);
}

std::optional<BlockMove> cuda::planBlocks(const AddressMap &from,
                                          const AddressMap &to, int unitBits,
                                          MoveShape shape, int64_t alignment,
                                          BlockBits *bits) {
  if (shape.inners <= 0 || shape.outputs <= 0 || shape.experts <= 0)
    return std::nullopt;
  BlockMove move;
  move.exact = isExact(to, shape);
  joinHalves(from, to, shape);
  constexpr int64_t kLeastBytes = 4 * kHeldWords;
  std::optional<MovePlan> plan =
      planMove(from, to, unitBits, shape.inner, limitsOf(shape), kLeastBytes,
               /*wantedBytes=*/MovePlan::kMaxBytes);
  if (!plan)
    return std::nullopt;
  const NibblePlan nibbles(*plan);
  const int in = plan->innerBits, out = plan->outputBits;
  if (!listAddress(from, unitBits, shape, in, out, shape.sourceOutputs,
                   move.source) ||
      !listAddress(to, unitBits, shape, in, out, shape.targetOutputs,
                   move.target) ||
      !fitsInt(nibbles))
    return std::nullopt;
  move.source.innerBegin = static_cast<uint32_t>(shape.innerBegin >> in);
  move.source.outputBegin = static_cast<uint32_t>(shape.outputBegin >> out);
  move.threadBits = nibbles.bits - kWordBits - kHeldBits;
  move.innerBits = in;
  move.outputBits = out;
  move.outputsFirst = to.row(plan->outputs()) - to.row(0) <
                      (shape.inner == Axis::Input ? to.input(plan->inners())
                                                  : to.group(plan->inners()));
  BlockSide *sides[] = {&move.source, &move.target};
  for (int side : {0, 1}) {
    if (alignment % 4 || !isAligned(*sides[side], nibbles, side, kWordBits))
      return std::nullopt;
    sides[side]->wide = alignment % 16 == 0 &&
                        isAligned(*sides[side], nibbles, side, kVectorBits);
  }
  if (!countBlocks(*plan, shape, move))
    return std::nullopt;
  if (bits) {
    bits->source = listCoordinates(from, *plan, shape.inner, nibbles);
    bits->inner = in;
    bits->output = out;
  }
  listBlock(nibbles, move, bits);
  return move;
}

bool cuda::fills(const AddressMap &to, const MoveShape &shape) {
  return isExact(to, shape) && shape.inners == shape.targetInners &&
         shape.outputs == shape.targetOutputs;
}

WordRecode cuda::recodeOf(CodeType from, CodeType to) {
  constexpr uint32_t kSign4 = 0x88888888, kSign8 = 0x80808080;
  auto sign = [](CodeType code) {
    return code == CodeType::S4 ? kSign4 : code == CodeType::S8 ? kSign8 : 0;
  };
  WordRecode recode;
  recode.flip = sign(from) ^ sign(to);
  if ((from == CodeType::U4FP8) == (to == CodeType::U4FP8))
    return recode;
  // 15 - v instead of v ^ 8: below the zero point, or what was below it.
  recode.flip ^= kSign4;
  recode.select = kSign4;
  if (to == CodeType::U4FP8 && from != CodeType::S4)
    recode.invert = kSign4;
  return recode;
}
