//===- MoveCodes.cu - Blocks that do more than move -----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One launch for a weight: blocks of codes with what happens to them, then
// scales and zero points, then what of the codes is zeros.
//
//===----------------------------------------------------------------------===//

#include "BlockMover.cuh"
#include "Convert.h"
#include "Kernels.cuh"
#include "UnitMover.cuh"

#include <algorithm>

using namespace wna16;
using namespace wna16::cuda;

namespace {

/// The work of a code mover beside moving, and what threads share for it.
template <typename Work>
struct CodeMove {
  BlockMove move;
  Work work;
  UnitMoves sides;
};

struct CodeMemory : MoverMemory<> {
  /// Beside each way, a place in another tensor.
  int64_t places[kMoveThreads];
  /// Zero points of the blocks that are put in order.
  uint8_t zeros[kMoveThreads * BlockRecode::kFetched];
};

class PlainMover : public BlockMover {
public:
  struct Work {};
  static constexpr int kResident = 6;

  __device__ PlainMover(const CodeMove<Work> &p, CodeMemory &shared)
      : BlockMover(p.move, shared) {}
};

//===----------------------------------------------------------------------===//
// Zero points
//===----------------------------------------------------------------------===//

/// Of the first unit of a block.
__device__ int64_t placeOf(const BlockZeros &zeros, const BlockSide &source,
                           BlockPlace block) {
  if (!zeros.data)
    return 0;
  const int64_t input = int64_t(block.inner + source.innerBegin)
                        << zeros.innerBits;
  const int64_t row =
      block.half * zeros.outputs +
      (int64_t(block.output + source.outputBegin) << zeros.outputBits);
  return block.expert * zeros.map.size +
         groupTerm(zeros.map, input / zeros.group) + rowTerm(zeros.map, row);
}

/// A zero point on its way: nothing looks at the byte, and waits for it, before
/// the value is asked for.
struct ZeroByte {
  uint32_t byte = 0, shift = 0;

  __device__ void fetch(const BlockZeros &zeros, int64_t place) {
    if (!zeros.data)
      return;
    const bool whole = zeros.bits == 8;
    byte = zeros.data[whole ? place : place >> 1];
    shift = whole ? 0 : 4 * (static_cast<uint32_t>(place) & 1);
  }

  __device__ uint32_t value(const BlockZeros &zeros) const {
    const uint32_t stored = (byte >> shift) & ((1u << zeros.bits) - 1);
    return zeros.data ? (stored + zeros.add) & zeros.mask : zeros.implied;
  }
};

/// A mover that looks for zero points.
template <typename Work>
class ZeroMover : public BlockMover {
public:
  static constexpr int kResident = 5;

  __device__ ZeroMover(const CodeMove<Work> &p, CodeMemory &shared)
      : BlockMover(p.move, shared), work(p.work), places(shared.places) {}

  __device__ void plan(uint32_t first, uint32_t count) const {
    BlockMover::plan(first, count);
    const uint32_t number = planned(first, count);
    if (number < move.blocks)
      places[threadIdx.x] =
          placeOf(work.zeros, move.source, placeOf(move, number));
  }

protected:
  __device__ uint32_t thread() const {
    return threadIdx.x & ((1u << move.threadBits) - 1);
  }

  const Work &work;
  int64_t *places;
};

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

class SumMover : public ZeroMover<BlockSums> {
public:
  using Work = BlockSums;
  struct Target {
    uint8_t *to = nullptr;
    ZeroByte zero[2];
    __device__ explicit operator bool() const { return to; }
  };

  __device__ SumMover(const CodeMove<Work> &p, CodeMemory &shared)
      : ZeroMover(p, shared) {
    first = (block << (move.threadBits + 5)) +
            sumWithoutCarry(work.words, thread());
    after = sumOf(work.bytes, thread());
    zero = sumOf(work.zeros.units, thread());
  }

  __device__ void holdSums() {
    BlockMover::holdSums();
    for (uint32_t *sum : {&first, &after, &zero})
      asm volatile("" : "+r"(*sum));
  }

  /// Zero points are on their way with the block.
  __device__ Target fetch(uint32_t turn, uint32_t stage) const {
    Target target;
    target.to = BlockMover::fetch(turn, stage);
    if (!target.to)
      return target;
    const int64_t place = places[wayOf(turn)] + zero;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (writes(i))
        target.zero[i].fetch(work.zeros, place + work.zeros.units.access[i]);
    return target;
  }

  __device__ void reorder(const Target &target, uint32_t stage) const {
    BlockMover::reorder(target.to, stage);
  }

  __device__ void store(const Target &target, uint32_t stage) const {
    BlockMover::store(target.to, stage);
    const uint32_t both = addUp(buffers[stage]);
    uint8_t *to = target.to - out + after;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (writes(i))
        *reinterpret_cast<int32_t *>(to + work.bytes.access[i]) =
            static_cast<int32_t>((both >> (16 * i)) & 0xffff) -
            static_cast<int32_t>(target.zero[i].value(work.zeros)) *
                work.length;
  }

private:
  /// Whether the thread writes the sums of the low or the high nibbles: those
  /// that share them take turns.
  __device__ bool writes(uint32_t high) const {
    const uint32_t parts = (1u << work.partBits) - 1;
    return ((thread() >> kPartLane) & parts) == (high & parts);
  }

  /// Sums of low nibbles, and of high ones in the upper half: of at most 128
  /// each.
  __device__ uint32_t addUp(const uint8_t *data) const {
    constexpr uint32_t kLow = 0x0f0f0f0f, kOnes = 0x01010101;
    uint32_t low = 0, high = 0;
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i) {
      const uint32_t word = *reinterpret_cast<const uint32_t *>(
          data + (first ^ work.words.access[i]));
      low = __dp4a(word & kLow, kOnes, low);
      high = __dp4a((word >> 4) & kLow, kOnes, high);
    }
    uint32_t both = low | high << 16;
    // All lanes are here: those that share sums share a block (planSums), and
    // blocks are of whole warps then.
    for (int part = 0; part < work.partBits; ++part)
      both += __shfl_xor_sync(~0u, both, 1 << (kPartLane + part));
    return both;
  }

  static constexpr int kPartLane = 3;
  uint32_t first, after, zero;
};

//===----------------------------------------------------------------------===//
// Codes for fp8 activations
//===----------------------------------------------------------------------===//

template <bool ToFP8>
class RecodeMover : public ZeroMover<BlockRecode> {
public:
  using Work = BlockRecode;
  struct Target {
    uint8_t *to = nullptr;
    ZeroByte zero[BlockRecode::kFetched];
    __device__ explicit operator bool() const { return to; }
  };

  __device__ RecodeMover(const CodeMove<Work> &p, CodeMemory &shared)
      : ZeroMover(p, shared), table(shared.zeros), fetched(thread()),
        zero(sumOf(work.zeros.units, thread())),
        inTable(tableOf(0) + sumOf(work.inTable, thread())) {}

  __device__ Target fetch(uint32_t turn, uint32_t stage) const {
    Target target;
    target.to = BlockMover::fetch(turn, stage);
    if (!target.to)
      return target;
    const int64_t place = places[wayOf(turn)] + zero;
#pragma unroll
    for (int i = 0; i < BlockRecode::kFetched; ++i)
      if (fetches(i))
        target.zero[i].fetch(work.zeros, place + work.zeros.units.access[i]);
    return target;
  }

  __device__ void arrive(const Target &target) const {
#pragma unroll
    for (int i = 0; i < BlockRecode::kFetched; ++i)
      if (fetches(i))
        table[tableOf(fetched + (i << move.threadBits))] =
            static_cast<uint8_t>(target.zero[i].value(work.zeros));
  }

  __device__ void reorder(const Target &, uint32_t stage) const {
    uint32_t words[kHeldWords];
    readWords(stage, words);
    if (work.asRead)
      recode(words);
    permute(move, words);
    if (!work.asRead)
      recode(words);
    writeWords(stage, words);
  }

  __device__ void store(const Target &target, uint32_t stage) const {
    BlockMover::store(target.to, stage);
  }

private:
  /// Where a zero point of the thread's block is.
  __device__ uint32_t tableOf(uint32_t number) const {
    return (block << move.threadBits) * BlockRecode::kFetched + number;
  }
  __device__ bool fetches(uint32_t i) const {
    return fetched + (i << move.threadBits) < work.count;
  }

  __device__ void recode(uint32_t (&words)[kHeldWords]) const {
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      words[i] =
          recodeWord(words[i], table[inTable + work.inTable.access[i]], ToFP8);
  }

  uint8_t *table;
  uint32_t fetched, zero, inTable;
};

} // namespace

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Scales and zero points, then what of the codes is zeros: parts are of so
/// many items, and whose turn it is goes on from part to part.
template <typename Work>
__device__ void moveRest(const CodeMove<Work> &p, uint32_t items) {
  uint32_t first = blockIdx.x;
  auto skip = [&first](uint32_t items) {
    first = (first + gridDim.x - items % gridDim.x) % gridDim.x;
  };
  skip(items);
#pragma unroll 1
  for (int i = 0; i < p.sides.count; ++i) {
    moveUnits(p.sides.move[i], first, gridDim.x);
    skip(itemsOf(p.sides.move[i]));
  }
  clearEdges(p.move, first, gridDim.x);
}

template <typename Mover>
__global__ void __launch_bounds__(kMoveThreads, Mover::kResident)
    moveCodesKernel(const __grid_constant__ CodeMove<typename Mover::Work> p) {
  __shared__ __align__(128) CodeMemory shared;
  const uint32_t items = itemsOf(p.move);
  runMover(Mover(p, shared), blockIdx.x, items, gridDim.x);
  moveRest(p, items);
}

//===----------------------------------------------------------------------===//
// Inputs sorted by group, by way of slices
//===----------------------------------------------------------------------===//

namespace {

/// Few CUDA blocks are resident: each has more on its way.
constexpr uint32_t kSortBuffers = 4;

struct SortMemory : MoverMemory<kSortBuffers> {
  /// Of each block of a slice that leaves it, where to, its first input, and
  /// what its first output adds.
  struct Leaving {
    uint8_t *to;
    uint32_t input, output;
  } leaving[BlockSort::kMaxBlocks];
};

/// One slice after the other.
class Sorter {
public:
  __device__ Sorter(const CodeMove<BlockSort> &p, uint8_t *memory)
      : p(p), work(p.work), shared(*reinterpret_cast<SortMemory *>(memory)),
        slice(memory + sizeof(SortMemory)), into(work.in, shared),
        outOf(p.move, shared) {
    const uint32_t writer = threadIdx.x & ((1u << work.in.threadBits) - 1);
    const uint32_t reader = threadIdx.x & ((1u << p.move.threadBits) - 1);
    written = sumOf(work.slice, writer);
    input = sumOf(work.inputTerms, reader);
    output = sumOf(work.outputTerms, reader);
  }

  __device__ void sort(uint32_t number) {
    const BlockPlace place = placeOf(work, p.move.halves, number);
    plan(place);
    __syncthreads();
    fill();
    __syncthreads();
    empty(work.rows + place.expert * work.inputs + input);
    __syncthreads();
  }

private:
  /// What the outputs before `block` add within a slice.
  __device__ uint32_t bytesOf(uint32_t outputs) const {
    return outputs << work.rowBits >> work.outputBits;
  }

  __device__ void plan(BlockPlace place) const {
    Way way = {};
    if (threadIdx.x < work.blocksIn) {
      const SliceBlock block = sliceBlock(work.in.source, work, work.in, place,
                                          threadIdx.x, work.innersIn);
      way = {p.move.from + block.bytes,
             slice + (block.input << work.rowBits) + bytesOf(block.output)};
    }
    shared.ways[threadIdx.x] = way;
    if (threadIdx.x < work.blocksOut) {
      const SliceBlock block = sliceBlock(p.move.target, work, p.move, place,
                                          threadIdx.x, work.innersOut);
      shared.leaving[threadIdx.x] = {p.move.to + block.bytes, block.input,
                                     bytesOf(block.output)};
    }
  }

  /// While a block is put in order the next ones are on their way.
  __device__ void fill() const {
    const uint32_t atOnce = work.in.blocksAtOnce();
    const uint32_t turns = (work.blocksIn + atOnce - 1) / atOnce;
    auto fetch = [&](uint32_t turn) {
      if (turn < turns)
        into.fetch(turn, turn % kSortBuffers);
      endBatch();
    };
    for (uint32_t turn = 0; turn < kSortBuffers - 1; ++turn)
      fetch(turn);
    for (uint32_t turn = 0; turn < turns; ++turn) {
      waitForBatches<kSortBuffers - 2>();
      __syncthreads();
      fetch(turn + kSortBuffers - 1);
      uint8_t *to = shared.ways[into.wayOf(turn)].to;
      if (!to)
        continue;
      uint32_t words[kHeldWords];
      into.readWords(turn % kSortBuffers, words);
      permute(work.in, words);
      const auto first = static_cast<uint32_t>(to - slice) + written;
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        *reinterpret_cast<uint32_t *>(
            slice + inSlice(first + work.slice.access[i], work.rowBits)) =
            words[i];
    }
  }

  /// The block of those that leave at once from `first` on.
  __device__ const SortMemory::Leaving &leaving(uint32_t first) const {
    return shared.leaving[min(first + outOf.block, work.blocksOut - 1)];
  }

  /// Which rows the words of a block are in.
  __device__ void fetchRows(const int32_t *rows, uint32_t first,
                            uint32_t (&fetched)[kHeldWords]) const {
    rows += leaving(first).input;
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      fetched[i] =
          static_cast<uint32_t>(__ldg(rows + work.inputTerms.access[i]));
  }

  __device__ void empty(const int32_t *rows) const {
    const uint32_t atOnce = p.move.blocksAtOnce();
    uint32_t stage = 0;
    uint32_t next[kHeldWords];
    fetchRows(rows, 0, next);
    for (uint32_t first = 0; first < work.blocksOut; first += atOnce) {
      const bool moves = first + outOf.block < work.blocksOut;
      const SortMemory::Leaving block = leaving(first);
      uint32_t words[kHeldWords];
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        words[i] = *reinterpret_cast<const uint32_t *>(
            slice + inSlice((next[i] << work.rowBits) + block.output + output +
                                work.outputTerms.access[i],
                            work.rowBits));
      if (first + atOnce < work.blocksOut)
        fetchRows(rows, first + atOnce, next);
      permute(p.move, words);
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        *reinterpret_cast<uint32_t *>(shared.buffer[stage] +
                                      (outOf.write ^ p.move.write.access[i])) =
            words[i];
      // Whoever writes this buffer again has met all who store it.
      __syncthreads();
      if (moves)
        outOf.store(block.to + outOf.out, stage);
      stage ^= 1;
    }
  }

  const CodeMove<BlockSort> &p;
  const BlockSort &work;
  SortMemory &shared;
  uint8_t *slice;
  BlockMover into, outOf;
  uint32_t written, input, output;
};

} // namespace

__global__ void __launch_bounds__(kMoveThreads, 3)
    sortCodesKernel(const __grid_constant__ CodeMove<BlockSort> p) {
  extern __shared__ __align__(128) uint8_t memory[];
  Sorter sorter(p, memory);
  for (uint32_t slice = blockIdx.x; slice < p.work.slices; slice += gridDim.x)
    sorter.sort(slice);
  moveRest(p, p.work.slices);
}

static bool sortCodes(const char *kernel, const BlockMove &move,
                      const BlockSort &work, const UnitMoves &sides,
                      cudaStream_t stream) {
  static_assert(sizeof(CodeMove<BlockSort>) <= 4096,
                "parameters of any CUDA kernel");
  // Of a multiprocessor's, and what each CUDA block takes beside its own.
  constexpr uint32_t kShared = 227 * 1024, kReserved = 1024, kBanks = 128;
  const DeviceInfo *device = currentDevice(kernel);
  if (!device)
    return false;
  Launch how;
  how.shared = sizeof(SortMemory) + (work.bytes + kBanks - 1) / kBanks * kBanks;
  how.grid = static_cast<unsigned>(device->multiprocessors) *
             std::min<unsigned>(
                 kShared / static_cast<unsigned>(how.shared + kReserved), 6);
  how.block = kMoveThreads;
  how.stream = stream;
  return launch(kernel, sortCodesKernel, how,
                CodeMove<BlockSort>{move, work, sides});
}

template <typename Mover>
static bool moveCodes(const char *kernel, const BlockMove &move,
                      const typename Mover::Work &work, const UnitMoves &sides,
                      cudaStream_t stream) {
  static_assert(sizeof(CodeMove<typename Mover::Work>) <= 4096,
                "parameters of any CUDA kernel");
  const DeviceInfo *device = currentDevice(kernel);
  if (!device)
    return false;
  Launch how;
  how.grid = static_cast<unsigned>(device->multiprocessors) * Mover::kResident;
  how.block = kMoveThreads;
  how.stream = stream;
  return launch(kernel, moveCodesKernel<Mover>, how,
                CodeMove<typename Mover::Work>{move, work, sides});
}

bool cuda::moveWeight(const char *kernel, const BlockMove &codes,
                      const CodeWork &work, const UnitMoves &sides,
                      cudaStream_t stream) {
  if (work.sort)
    return sortCodes(kernel, codes, *work.sort, sides, stream);
  if (work.recode)
    return (work.recode->toFP8 ? moveCodes<RecodeMover<true>>
                               : moveCodes<RecodeMover<false>>)(kernel, codes,
                                                                *work.recode,
                                                                sides, stream);
  if (work.sums)
    return moveCodes<SumMover>(kernel, codes, *work.sums, sides, stream);
  return moveCodes<PlainMover>(kernel, codes, {}, sides, stream);
}
