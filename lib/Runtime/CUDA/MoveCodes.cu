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

struct CodeMemory : MoverMemory {
  /// Beside each way, a place in another tensor.
  int64_t places[kMoveThreads];
};

class PlainMover : public BlockMover {
public:
  struct Work {};
  static constexpr bool kNearInputs = false;
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

__device__ uint32_t zeroAt(const BlockZeros &zeros, int64_t place) {
  return zeros.data
             ? (codeAt(zeros.data, zeros.bits, place) + zeros.add) & zeros.mask
             : zeros.implied;
}

/// A mover that looks for zero points.
template <typename Work>
class ZeroMover : public BlockMover {
public:
  static constexpr bool kNearInputs = false;
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
    uint32_t zero[2] = {};
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
        target.zero[i] = zeroAt(work.zeros, place + work.zeros.units.access[i]);
    return target;
  }

  __device__ void reorder(const Target &target, uint32_t stage) const {
    BlockMover::reorder(target.to, stage);
  }

  __device__ void store(const Target &target, uint32_t stage) const {
    BlockMover::store(target.to, stage);
    const uint32_t both = addUp(shared.buffer[stage]);
    uint8_t *to = target.to - out + after;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (writes(i))
        *reinterpret_cast<int32_t *>(to + work.bytes.access[i]) =
            static_cast<int32_t>((both >> (16 * i)) & 0xffff) -
            static_cast<int32_t>(target.zero[i]) * work.length;
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

class RecodeMover : public ZeroMover<BlockRecode> {
public:
  using Work = BlockRecode;
  struct Target {
    uint8_t *to = nullptr;
    int64_t place = 0;
    __device__ explicit operator bool() const { return to; }
  };

  __device__ RecodeMover(const CodeMove<Work> &p, CodeMemory &shared)
      : ZeroMover(p, shared), zero(sumOf(work.zeros.units, thread())) {}

  __device__ Target fetch(uint32_t turn, uint32_t stage) const {
    Target target;
    target.to = BlockMover::fetch(turn, stage);
    if (target.to)
      target.place = places[wayOf(turn)] + zero;
    return target;
  }

  __device__ void reorder(const Target &target, uint32_t stage) const {
    uint32_t zeros[kHeldWords] = {}, words[kHeldWords];
    if (target.to)
#pragma unroll
      for (int i = 0; i < kHeldWords; ++i)
        zeros[i] =
            zeroAt(work.zeros, target.place + work.zeros.units.access[i]);
    readWords(stage, words);
    if (work.asRead)
      recode(words, zeros);
    permute(move, words);
    if (!work.asRead)
      recode(words, zeros);
    writeWords(stage, words);
  }

  __device__ void store(const Target &target, uint32_t stage) const {
    BlockMover::store(target.to, stage);
  }

private:
  __device__ void recode(uint32_t (&words)[kHeldWords],
                         const uint32_t (&zeros)[kHeldWords]) const {
#pragma unroll
    for (int i = 0; i < kHeldWords; ++i)
      words[i] = recodeWord(words[i], zeros[i], work.toFP8);
  }

  uint32_t zero;
};

//===----------------------------------------------------------------------===//
// Inputs sorted by group
//===----------------------------------------------------------------------===//

/// Puts words of the source together from those that hold their inputs, which
/// the first cache has from other blocks of the same outputs.
template <int Bits>
class GatherMover : public BlockMover {
public:
  using Work = BlockGather;
  static constexpr bool kNearInputs = true;
  static constexpr int kResident = 4;

  __device__ GatherMover(const CodeMove<Work> &p, CodeMemory &shared)
      : BlockMover(p.move, shared), work(p.work), places(shared.places) {
    const uint32_t thread = threadIdx.x & ((1u << move.threadBits) - 1);
    input = sumOf(work.inputTerms, thread);
    in = sumOf(work.outputTerms, thread);
  }

  __device__ void plan(uint32_t first, uint32_t count) const {
    const uint32_t number = planned(first, count);
    Way way = {};
    if (number < move.blocks) {
      BlockPlace place = placeOf(move, number);
      way.to = move.to + addressOf(move.target, place);
      places[threadIdx.x] =
          place.expert * work.inputs + (int64_t(place.inner) << work.innerBits);
      place.inner = 0;
      way.from = move.from + addressOf(move.source, place);
    }
    shared.ways[threadIdx.x] = way;
  }

  __device__ Target fetch(uint32_t turn, uint32_t stage) const {
    const Way way = shared.ways[wayOf(turn)];
    if (!way.to)
      return nullptr;
    const uint8_t *from = way.from + in;
    const int32_t *rows = work.rows + places[wayOf(turn)] + input;
#pragma unroll 2
    for (int i = 0; i < kHeldWords; ++i)
      *reinterpret_cast<uint32_t *>(shared.buffer[stage] +
                                    (fill ^ move.source.shared.access[i])) =
          gather(from + work.outputTerms.access[i],
                 rows + work.inputTerms.access[i]);
    return way.to + out;
  }

private:
  static constexpr int kUnits = 32 / Bits;

  __device__ uint32_t gather(const uint8_t *from, const int32_t *rows) const {
    uint32_t row[kUnits], words[kUnits];
#pragma unroll
    for (int i = 0; i < kUnits; i += 4) {
      const int4 four = *reinterpret_cast<const int4 *>(rows + i);
      row[i] = four.x;
      row[i + 1] = four.y;
      row[i + 2] = four.z;
      row[i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kUnits; ++i)
      words[i] = __ldg(reinterpret_cast<const uint32_t *>(
          from + row[i] / kUnits * work.stride));
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < kUnits; ++i)
      word |= ((words[i] >> (row[i] % kUnits * Bits)) & ((1u << Bits) - 1))
              << (i * Bits);
    return word;
  }

  const Work &work;
  int64_t *places;
  uint32_t input;
};

} // namespace

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Items in turn; or those of a multiprocessor one after the other, as far as
/// CUDA blocks are dealt out to them in turn.
template <typename Mover>
__global__ void __launch_bounds__(kMoveThreads, Mover::kResident)
    moveCodesKernel(const __grid_constant__ CodeMove<typename Mover::Work> p,
                    uint32_t multiprocessors) {
  __shared__ __align__(128) CodeMemory shared;
  const uint32_t items = itemsOf(p.move);
  if constexpr (Mover::kNearInputs) {
    const uint32_t each = (items + multiprocessors - 1) / multiprocessors;
    const uint32_t begin = blockIdx.x % multiprocessors * each;
    runMover(Mover(p, shared), begin + blockIdx.x / multiprocessors,
             min(begin + each, items), Mover::kResident);
  } else {
    runMover(Mover(p, shared), blockIdx.x, items, gridDim.x);
  }
  // Whose turn it is goes on from part to part.
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
static bool moveCodes(const char *kernel, const BlockMove &move,
                      const typename Mover::Work &work, const UnitMoves &sides,
                      cudaStream_t stream) {
  static_assert(sizeof(CodeMove<typename Mover::Work>) + sizeof(uint32_t) <=
                    4096,
                "parameters of any CUDA kernel");
  const DeviceInfo *device = currentDevice(kernel);
  if (!device)
    return false;
  const auto multiprocessors = static_cast<uint32_t>(device->multiprocessors);
  Launch how;
  how.grid = multiprocessors * Mover::kResident;
  how.block = kMoveThreads;
  how.stream = stream;
  return launch(kernel, moveCodesKernel<Mover>, how,
                CodeMove<typename Mover::Work>{move, work, sides},
                multiprocessors);
}

bool cuda::moveWeight(const char *kernel, const BlockMove &codes,
                      const CodeWork &work, const UnitMoves &sides,
                      cudaStream_t stream) {
  if (work.gather && work.gather->bits == 4)
    return moveCodes<GatherMover<4>>(kernel, codes, *work.gather, sides,
                                     stream);
  if (work.gather)
    return moveCodes<GatherMover<8>>(kernel, codes, *work.gather, sides,
                                     stream);
  if (work.recode)
    return moveCodes<RecodeMover>(kernel, codes, *work.recode, sides, stream);
  if (work.sums)
    return moveCodes<SumMover>(kernel, codes, *work.sums, sides, stream);
  return moveCodes<PlainMover>(kernel, codes, {}, sides, stream);
}
