//===- BlockWork.cpp - What blocks become on their way --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockWork.h"

#include "UnitMove.h"

#include <algorithm>
#include <limits>

using namespace wna16;
using namespace wna16::cuda;

/// Bits of the number of a nibble that say which of its word it is.
static constexpr int kWordBits = 3;

//===----------------------------------------------------------------------===//
// Zero points of codes
//===----------------------------------------------------------------------===//

namespace {

/// What bits of coordinates of codes add to the address of their zero point.
class ZeroTerms {
public:
  explicit ZeroTerms(CodeSource source) : spec(source.spec) {
    if (source.weight.zeroData)
      map = *zeroAddresses(spec);
    group = spec.groups() > 1 ? spec.group : 0;
  }

  /// Whether blocks are within a group, or are several.
  bool fit(const BlockBits &bits) const {
    const bool several = group > 0 && (group & (group - 1)) == 0;
    return !map || (!map->hasHalves() &&
                    (!group || several || group % (1 << bits.inner) == 0));
  }

  uint32_t operator()(CoordinateBit at) const {
    const int64_t one = at.bit < 0 ? 0 : int64_t(1) << at.bit;
    if (!map)
      return 0;
    if (at.isOutput)
      return static_cast<uint32_t>(map->row(one) - map->row(0));
    return group && one >= group
               ? static_cast<uint32_t>(map->group(one / group) - map->group(0))
               : 0;
  }

private:
  const WeightSpec &spec;
  std::optional<AddressMap> map;
  int64_t group = 0; ///< 0: one for all
};

BlockZeros zerosOf(CodeSource source, const BlockBits &bits) {
  const WeightSpec &spec = source.spec;
  BlockZeros zeros;
  zeros.data = source.weight.zeroData;
  zeros.map = source.weight.zeroPoints;
  zeros.implied = impliedZero(spec.code);
  zeros.bits = source.weight.zeroBits;
  zeros.add = spec.zeros == ZeroPoints::MinusOne ? 1 : 0;
  zeros.mask =
      spec.zeros == ZeroPoints::MinusOne ? (1u << spec.bits()) - 1 : ~0u;
  zeros.innerBits = bits.inner;
  zeros.outputBits = bits.output;
  zeros.outputs = spec.output;
  zeros.group =
      spec.groups() > 1 ? spec.group : std::numeric_limits<int64_t>::max();
  return zeros;
}

/// Terms of the words that a thread holds; `held`: the bits of their number.
/// Terms without carry have no bits in common, or are meant to cancel.
template <typename Term>
void listHeld(const std::vector<int> &held, bool carries, Term term,
              uint32_t (&access)[kHeldWords]) {
  for (int word = 0; word < kHeldWords; ++word)
    for (size_t bit = 0; bit < held.size(); ++bit)
      if (word >> bit & 1)
        access[word] = carries ? access[word] + term(held[bit])
                               : access[word] ^ term(held[bit]);
}

} // namespace

std::optional<BlockRecode> cuda::planRecode(CodeSource source, CodeType to,
                                            const BlockBits &bits) {
  const CodeType codes[] = {source.spec.code, to};
  const ZeroTerms terms(source);
  if (std::count(codes, codes + 2, CodeType::U4FP8) != 1 ||
      std::count(codes, codes + 2, CodeType::U4) != 1 || !terms.fit(bits))
    return std::nullopt;
  auto isOne = [&](bool asRead) {
    for (int bit = 0; bit < kWordBits; ++bit)
      if (terms(asRead ? bits.source[bit] : bits.target(bit)))
        return false;
    return true;
  };
  BlockRecode recode;
  recode.asRead = !isOne(false);
  if (recode.asRead && !isOne(true))
    return std::nullopt;
  recode.toFP8 = to == CodeType::U4FP8;
  recode.zeros = zerosOf(source, bits);
  // Bits that tell zero points apart, in the order of their addresses: lanes
  // fetch what lies side by side.
  std::vector<int> apart;
  for (int bit = 0; bit < bits.count(); ++bit)
    if (terms(bits.source[bit]))
      apart.push_back(bit);
  std::sort(apart.begin(), apart.end(), [&](int a, int b) {
    return terms(bits.source[a]) < terms(bits.source[b]);
  });
  const size_t threadBits = bits.threads.size();
  if (apart.size() > threadBits + 1)
    return std::nullopt;
  recode.count = 1u << apart.size();
  ThreadTerms &units = recode.zeros.units;
  for (size_t i = 0; i < apart.size(); ++i)
    (i < threadBits ? units.bit[i] : units.access[1]) =
        terms(bits.source[apart[i]]);
  auto inTable = [&](int bit) -> uint32_t {
    const auto at = std::find(apart.begin(), apart.end(), bit);
    return at == apart.end() ? 0 : 1u << (at - apart.begin());
  };
  for (size_t bit = 0; bit < threadBits; ++bit)
    recode.inTable.bit[bit] = inTable(bits.threads[bit]);
  listHeld(recode.asRead ? bits.read : bits.write, /*carries=*/true, inTable,
           recode.inTable.access);
  return recode;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {

/// Bits of the target's count beyond words: those of a tile's outputs and
/// inputs, and those of its number.
struct TileBits {
  std::vector<int> outputs, inputs, number;

  TileBits(const BlockBits &bits, int tileBits) {
    for (int bit = kWordBits; bit < bits.count(); ++bit)
      (bit >= tileBits             ? number
       : bits.target(bit).isOutput ? outputs
                                   : inputs)
          .push_back(bit);
  }
};

int log2Of(int64_t value) { return 63 - __builtin_clzll(uint64_t(value)); }

} // namespace

std::optional<BlockSums> cuda::planSums(CodeSource source, int64_t length,
                                        const BlockMove &move,
                                        const BlockBits &bits) {
  constexpr int kOutputBits = 5;
  const int tileBits = log2Of(length) + kOutputBits;
  const TileBits tile(bits, tileBits);
  const ZeroTerms terms(source);
  // Words are four inputs of two outputs. Threads add up eight, and lanes that
  // share a sum differ in two bits at most.
  constexpr size_t kLaneOutputs = 3, kMostParts = 2;
  const bool words = bits.target(0).isOutput && !bits.target(1).isOutput &&
                     !bits.target(2).isOutput;
  if (move.edges || !move.exact || bits.count() < tileBits || !words ||
      tile.outputs.size() != kOutputBits - 1 ||
      tile.inputs.size() < kHeldBits ||
      tile.inputs.size() > kHeldBits + kMostParts || !terms.fit(bits))
    return std::nullopt;
  const auto held = tile.inputs.end() - kHeldBits;
  // Lanes that share a sum meet: a warp is of one block then.
  constexpr int kLaneBits = 5;
  if (held != tile.inputs.begin() && move.threadBits < kLaneBits)
    return std::nullopt;
  std::vector<int> threads(tile.outputs.begin(),
                           tile.outputs.begin() + kLaneOutputs);
  threads.insert(threads.end(), tile.inputs.begin(), held);
  threads.insert(threads.end(), tile.outputs.begin() + kLaneOutputs,
                 tile.outputs.end());
  threads.insert(threads.end(), tile.number.begin(), tile.number.end());

  BlockSums sums;
  sums.length = static_cast<int32_t>(length);
  sums.partBits = static_cast<int32_t>(held - tile.inputs.begin());
  sums.zeros = zerosOf(source, bits);
  // A sum of 32 bits for each output, after the codes.
  auto bytesOf = [&](int bit) -> uint32_t {
    if (bit >= tileBits)
      return static_cast<uint32_t>(bits.weights[1][bit] / 2);
    const CoordinateBit at = bits.target(bit);
    return at.isOutput ? 4u << at.bit : 0;
  };
  for (size_t i = 0; i < threads.size(); ++i) {
    sums.words.bit[i] = bits.shared[threads[i]];
    sums.bytes.bit[i] = bytesOf(threads[i]);
    sums.zeros.units.bit[i] = terms(bits.target(threads[i]));
  }
  listHeld(
      {held, tile.inputs.end()}, /*carries=*/false,
      [&](int bit) { return bits.shared[bit]; }, sums.words.access);
  sums.bytes.access[0] = 1u << (tileBits - 1);
  sums.bytes.access[1] = sums.bytes.access[0] + bytesOf(0);
  sums.zeros.units.access[1] = terms(bits.target(0));
  return sums;
}

//===----------------------------------------------------------------------===//
// Rows in another order
//===----------------------------------------------------------------------===//

namespace {

/// Counts blocks of a slice; false where there are too many.
bool listBlocks(const BlockMove &move, const BlockSort &sort, uint32_t &blocks,
                uint32_t &inners) {
  inners = static_cast<uint32_t>(sort.inputs >> move.innerBits);
  blocks = inners << (static_cast<int>(sort.outputBits) - move.outputBits);
  return blocks <= BlockSort::kMaxBlocks;
}

/// The tables of one size of slices.
class SlicePlanner {
public:
  SlicePlanner(const WeightSpec &spec, const MoveShape &shape, int outputBits)
      : spec(spec), shape(shape), outputs(int64_t(1) << outputBits) {
    sort.outputBits = static_cast<uint32_t>(outputBits);
    sort.rowBits = static_cast<uint32_t>(outputBits + log2Of(spec.bits()) - 3);
    sort.inputs = spec.input;
  }

  /// None of more bytes.
  bool plan(const AddressMap &to, int64_t alignment, int64_t most) {
    const int64_t bytes = spec.input << sort.rowBits;
    if (shape.outputs % outputs || shape.outputBegin % outputs || bytes > most)
      return false;
    sort.bytes = static_cast<uint32_t>(bytes);
    const AddressMap from = *codeAddresses(spec);
    const AddressMap slice(*BitOrder::parse(spec.bits() == 4
                                                ? "n0 n1 n2 | N | K"
                                                : "n0 n1 | N | K"),
                           spec.input, 1, outputs, 1);
    MoveShape in = shape;
    in.keepsHalves = in.whole = true;
    in.outputs = outputs;
    MoveShape out = in;
    in.targetInners = in.inners;
    in.targetOutputs = outputs;
    out.sourceOutputs = outputs;
    out.outputBegin = 0;
    const auto into =
        planBlocks(from, slice, spec.bits(), in, alignment, &inBits);
    const auto outOf =
        planBlocks(slice, to, spec.bits(), out, alignment, &outBits);
    if (!into || !outOf)
      return false;
    sort.in = *into;
    move = *outOf;
    listWritten();
    listRead();
    return count();
  }

  BlockSort sort;
  BlockMove move; ///< out of slices

private:
  bool count() {
    sort.inHalf = divisorOf(static_cast<uint32_t>(shape.outputs / outputs));
    const auto slices = static_cast<uint32_t>(shape.experts * shape.halves);
    sort.slices = slices * sort.inHalf.value;
    // Of all slices.
    move.blocks = 0;
    move.outputs = static_cast<uint32_t>(shape.outputs >> move.outputBits);
    move.edges = move.allInners * move.allOutputs - move.inners * move.outputs;
    move.cleared = std::max(shape.inners, shape.filled) == shape.inners
                       ? slices * move.edges
                       : 0;
    return listBlocks(sort.in, sort, sort.blocksIn, sort.innersIn) &&
           listBlocks(move, sort, sort.blocksOut, sort.innersOut);
  }

  void listWritten() {
    auto bytesOf = [&](int bit) {
      const std::vector<int> &order = inBits.inSource;
      const auto at = std::find(order.begin(), order.end(), bit);
      return static_cast<uint32_t>(inBits.weights[1][at - order.begin()] / 2);
    };
    for (size_t bit = 0; bit < inBits.threads.size(); ++bit)
      sort.slice.bit[bit] = bytesOf(inBits.threads[bit]);
    listHeld(inBits.write, /*carries=*/true, bytesOf, sort.slice.access);
  }

  void listRead() {
    auto inputsOf = [&](int bit) {
      const CoordinateBit at = outBits.source[bit];
      return at.isOutput ? 0 : 1u << at.bit;
    };
    auto bytesOf = [&](int bit) {
      return outBits.source[bit].isOutput
                 ? static_cast<uint32_t>(outBits.weights[0][bit] / 2)
                 : 0;
    };
    for (size_t bit = 0; bit < outBits.threads.size(); ++bit) {
      sort.inputTerms.bit[bit] = inputsOf(outBits.threads[bit]);
      sort.outputTerms.bit[bit] = bytesOf(outBits.threads[bit]);
    }
    listHeld(outBits.read, /*carries=*/true, inputsOf, sort.inputTerms.access);
    listHeld(outBits.read, /*carries=*/true, bytesOf, sort.outputTerms.access);
  }

  const WeightSpec &spec;
  const MoveShape &shape;
  int64_t outputs; ///< of a slice
  BlockBits inBits, outBits;
};

} // namespace

std::optional<BlockSort> cuda::planSort(CodeSource source, const AddressMap &to,
                                        const int32_t *rows,
                                        const MoveShape &shape,
                                        int64_t alignment, BlockMove &move) {
  // Rows that are sorted all move.
  if (shape.innerBegin || shape.inners != source.spec.input)
    return std::nullopt;
  // Slices of two words an input or more of which a multiprocessor holds
  // several; otherwise what it holds at all.
  const int least = kWordBits + 2 - log2Of(source.spec.bits());
  for (bool several : {true, false})
    for (int outputBits = least + 3; outputBits >= least + several;
         --outputBits) {
      SlicePlanner planner(source.spec, shape, outputBits);
      if (!planner.plan(to, alignment,
                        several ? BlockSort::kWantedBytes
                                : BlockSort::kMaxBytes))
        continue;
      planner.sort.rows = rows;
      move = planner.move;
      return planner.sort;
    }
  return std::nullopt;
}
