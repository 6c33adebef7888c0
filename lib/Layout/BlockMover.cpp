//===- BlockMover.cpp - Tensors of one expert from layout to layout -------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockMover.h"

#include <algorithm>

using namespace wna16;

/// Targets below this may as well stay in the caches.
static constexpr int64_t kStreamBytes = int64_t(1) << 18;
static constexpr int64_t kLine = 64;

static int trailingZeros(int64_t value) {
  return value ? __builtin_ctzll(static_cast<uint64_t>(value)) : 62;
}

static int floorLog2(int64_t value) {
  return 63 - __builtin_clzll(static_cast<uint64_t>(value));
}

/// Bits of a block along an extent. Blocks that divide it leave no rest; where
/// it has few factors of two, a rest is better than tiny blocks.
static int extentBits(int64_t extent) {
  constexpr int kEnough = 4;
  int divides = trailingZeros(extent);
  return divides >= kEnough ? divides : floorLog2(extent);
}

static int64_t inner(const AddressMap &map, Axis axis, int64_t at) {
  return axis == Axis::Input ? map.input(at) : map.group(at);
}

static int64_t paddedExtent(const AddressMap &map, Axis axis) {
  return std::max<int64_t>(map.tiles(axis), 1)
         << static_cast<int>(map.bits(axis).size());
}

/// Whether all units of the storage belong to a coordinate.
static bool isExact(const AddressMap &map, const MoveExtents &extents) {
  int64_t halves = map.hasHalves() ? 1 : extents.halves;
  return paddedExtent(map, extents.inner) == extents.targetInners &&
         paddedExtent(map, Axis::Output) == extents.targetOutputs * halves;
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Calls fn(i, j) for all i and j, in squares of both: what two blocks have of
/// a page, on either side, is soon used. Within a square j comes first.
template <typename Fn>
static void forSquares(int64_t outer, int64_t count, Fn fn) {
  constexpr int64_t kSide = 16;
  for (int64_t firstI = 0; firstI < outer; firstI += kSide)
    for (int64_t firstJ = 0; firstJ < count; firstJ += kSide)
      for (int64_t i = firstI; i < std::min(firstI + kSide, outer); ++i)
        for (int64_t j = firstJ; j < std::min(firstJ + kSide, count); ++j)
          fn(i, j);
}

BlockMover::BlockMover(const AddressMap &from, const AddressMap &to,
                       int unitBits, const MoveExtents &shape, bool plans,
                       int convertedBits)
    : extents(shape), unitBits(unitBits),
      sourceBits(convertedBits ? convertedBits : unitBits),
      totalBytes(to.size() * unitBits / 8), tileBytes(to.tile() * unitBits / 8),
      exact(isExact(to, shape)),
      padless(exact && shape.inners == shape.targetInners &&
              shape.outputs == shape.targetOutputs) {
  for (Axis axis : {Axis::Input, Axis::Output, Axis::Half, Axis::Group})
    tileBits += static_cast<int>(to.bits(axis).size());
  if (!from.hasHalves() && !to.hasHalves() &&
      extents.outputs == extents.sourceOutputs &&
      extents.outputs == extents.targetOutputs) {
    for (int64_t *rows :
         {&extents.outputs, &extents.sourceOutputs, &extents.targetOutputs})
      *rows *= extents.halves;
    extents.halves = 1;
  }
  if (plans && extents.outputs > 0 && extents.inners > 0 && plan(from, to)) {
    listBlocks(from, to);
    inspects = coversTiles(to);
    program = BlockProgram::make(program.plan, kernels->machine,
                                 {inspects || gathersLines(), convertedBits});
    if (inspects)
      listTiles();
    return;
  }
  exact = false;
  for (int64_t half = 0; half < extents.halves; ++half)
    left.push_back({half, 0, extents.outputs, 0, extents.filledInners});
}

/// Blocks start at multiples of their extents, in both tensors and all halves.
BlockLimits BlockMover::limits() const {
  BlockLimits limits;
  limits.inner =
      std::min(extentBits(std::min(extents.inners, extents.targetInners)),
               trailingZeros(extents.innerBegin));
  limits.output =
      std::min(extentBits(extents.outputs), trailingZeros(extents.outputBegin));
  if (extents.halves > 1)
    limits.output =
        std::min({limits.output, trailingZeros(extents.sourceOutputs),
                  trailingZeros(extents.targetOutputs)});
  return limits;
}

/// Finds the best kernels that the limits leave room for.
bool BlockMover::plan(const AddressMap &from, const AddressMap &to) {
  for (int set = static_cast<int>(isa()); set > 0; --set) {
    const BlockKernels *candidate = blockKernels(static_cast<Isa>(set));
    if (!candidate)
      continue;
    std::optional<MovePlan> plan =
        planMove(from, to, unitBits, extents.inner, limits(),
                 /*minBytes=*/2 * candidate->machine.registerBytes());
    if (!plan)
      continue;
    kernels = candidate;
    program.plan = *plan;
    return true;
  }
  return false;
}

/// Covers the target: whole blocks, blocks to clear, and rectangles.
void BlockMover::listBlocks(const AddressMap &from, const AddressMap &to) {
  int64_t inners = program.plan.inners(), steps = program.plan.outputs();
  int64_t columns = extents.targetInners / inners;
  int64_t rows = extents.targetOutputs / steps;
  // An address is a sum of terms, each the same for many blocks.
  std::vector<Origin> columnOrigins, rowOrigins;
  for (int64_t k = 0; k < columns * inners; k += inners)
    columnOrigins.push_back({inner(from, extents.inner, extents.innerBegin + k),
                             inner(to, extents.inner, k)});
  for (int64_t half = 0; half < extents.halves; ++half)
    for (int64_t n = 0; n < rows * steps; n += steps) {
      Rect row{half, n, n, 0, 0};
      rowOrigins.push_back(
          {from.row(sourceRow(row, n)), to.row(targetRow(row, n))});
    }
  const AddressMap &followed = followsTarget() ? to : from;
  bool innerFirst =
      inner(followed, extents.inner, inners) < followed.row(steps);
  int64_t together = from.hasHalves() ? extents.halves : 1;
  auto list = [&](int64_t row, int64_t column, int64_t firstHalf) {
    // Where the source's halves alternate, blocks do: memory is fetched ahead
    // without regard for whose it is.
    for (int64_t half = firstHalf; half < firstHalf + together; ++half) {
      Origin of = rowOrigins[half * rows + row], more = columnOrigins[column];
      listBlock({of.source + more.source, of.target + more.target},
                {half, row * steps, (row + 1) * steps, column * inners,
                 (column + 1) * inners});
    }
  };
  for (int64_t half = 0; half < extents.halves; half += together)
    forSquares(innerFirst ? rows : columns, innerFirst ? columns : rows,
               [&](int64_t outer, int64_t i) {
                 list(innerFirst ? outer : i, innerFirst ? i : outer, half);
               });
  listEdges(columns * inners, rows * steps);
}

/// What is beyond the whole blocks.
void BlockMover::listEdges(int64_t innerEnd, int64_t outputEnd) {
  for (int64_t half = 0; half < extents.halves; ++half) {
    if (innerEnd < extents.targetInners)
      left.push_back(
          {half, 0, extents.targetOutputs, innerEnd, extents.targetInners});
    if (outputEnd < extents.targetOutputs)
      left.push_back({half, outputEnd, extents.targetOutputs, 0, innerEnd});
  }
}

void BlockMover::listBlock(Origin origin, Rect block) {
  if (block.outputEnd <= extents.outputs && block.innerEnd <= extents.inners) {
    toOffsets.push_back(origin.target * unitBits / 8);
    fromOffsets.push_back(origin.source * sourceBits / 8);
    return;
  }
  cleared.push_back(origin.target * unitBits / 8);
  block.outputEnd = std::min(block.outputEnd, extents.outputs);
  block.innerEnd = std::min(block.innerEnd, extents.filledInners);
  if (block.outputBegin < block.outputEnd && block.innerBegin < block.innerEnd)
    left.push_back(block);
}

/// Bytes that lie side by side on one side of a block.
int64_t BlockMover::runBytes(const BlockOrder &order) const {
  return (int64_t(1) << order.runBits) * unitBits / 8;
}

/// Whether blocks follow the target's addresses instead of the source's: loads
/// wait for memory, streaming stores do not, but where lines are far from each
/// other on both sides, those of the source are at least asked for ahead.
bool BlockMover::followsTarget() const {
  return std::max(runBytes(program.plan.source),
                  runBytes(program.plan.target)) <= kLine;
}

/// Whether lines of the target are put together in the scratch buffer, so that
/// registers that are shorter can stream them whole.
bool BlockMover::gathersLines() const {
  return totalBytes >= kStreamBytes &&
         kernels->machine.registerBytes() < kLine &&
         runBytes(program.plan.target) >= kLine;
}

/// Whether the program's blocks consist of whole tiles, with a trailer each,
/// and nothing else is in the target.
bool BlockMover::coversTiles(const AddressMap &to) const {
  return to.tile() > int64_t(1) << tileBits && exact && left.empty() &&
         cleared.empty() && program.plan.target.runBits >= tileBits;
}

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

void BlockMover::clear(uint8_t *to, Slice slice) const {
  if (!exact)
    std::fill(to + slice.begin(totalBytes), to + slice.end(totalBytes), 0);
}

void BlockMover::run(const Work &work, Slice slice) const {
  if (!kernels)
    return;
  struct Context {
    const BlockMover *mover;
    const Work *work;
    int64_t firstBlock;
    bool streams;
  } context{this, &work, 0, false};
  BlockList list = blocks(work, slice);
  context.firstBlock = list.toOffsets - toOffsets.data();
  context.streams = list.streams;
  list.context = &context;
  if (inspects)
    list.inspect = [](void *opaque, int64_t block, const uint8_t *codes) {
      const Context &run = *static_cast<Context *>(opaque);
      const BlockMover &mover = *run.mover;
      int64_t at = mover.toOffsets[run.firstBlock + block];
      int64_t bytes = (int64_t(1) << mover.tileBits) * mover.unitBits / 8;
      for (int64_t offset : mover.tileOffsets) {
        (*run.work->visit)((at + offset) / mover.tileBytes, codes, run.streams);
        codes += bytes;
      }
    };
  if (work.convert)
    list.fetch = [](void *opaque, const uint8_t *from, int64_t bytes,
                    uint8_t *scratch) {
      (*static_cast<Context *>(opaque)->work->convert)(from, bytes, scratch);
    };
  program.run(*kernels, list);
  if (slice.isLast())
    for (int64_t block : cleared)
      clearBlock(work.to + block);
}

/// Offsets of the tiles of a block, in the order in which the target counts.
void BlockMover::listTiles() {
  int64_t tile = int64_t(1) << tileBits, end = int64_t(1)
                                               << program.plan.bits();
  for (int64_t at = 0; at < end; at += tile)
    tileOffsets.push_back(program.plan.target.offset(at) * unitBits / 8);
}

BlockList BlockMover::blocks(const Work &work, Slice slice) const {
  BlockList list;
  auto count = static_cast<int64_t>(toOffsets.size());
  int64_t first = slice.begin(count);
  list.from = work.from;
  list.to = work.to;
  list.fromOffsets = fromOffsets.data() + first;
  list.toOffsets = toOffsets.data() + first;
  list.count = slice.end(count) - first;
  list.flip = work.flip;
  list.streams = streams(work.to);
  return list;
}

/// Streaming stores want whole, aligned lines.
bool BlockMover::streams(const uint8_t *to) const {
  auto aligned = [](int64_t offset) { return offset % kLine == 0; };
  if (totalBytes < kStreamBytes ||
      !aligned(static_cast<int64_t>(reinterpret_cast<uintptr_t>(to))) ||
      !std::all_of(toOffsets.begin(), toOffsets.end(), aligned))
    return false;
  const BlockPass &last = program.passes.back();
  const BlockPass::Offsets &out = last.out;
  if (last.writesTarget)
    return kernels->machine.registerBytes() >= kLine &&
           std::all_of(out.first.begin(), out.first.end(), aligned) &&
           std::all_of(std::begin(out.second), std::end(out.second), aligned);
  const BlockProgram::Copies &scatter = program.scatter;
  return aligned(scatter.bytes) &&
         std::all_of(scatter.memory.begin(), scatter.memory.end(), aligned);
}

void BlockMover::clearBlock(uint8_t *to) const {
  const BlockOrder &order = program.plan.target;
  int64_t run = int64_t(1) << order.runBits;
  for (int64_t at = 0; at < int64_t(1) << program.plan.bits(); at += run)
    std::fill_n(to + order.offset(at) * unitBits / 8, run * unitBits / 8, 0);
}
