//===- BlockProgram.h - A move plan as register shuffles ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block fills registers in the order in which the source counts. The bits of
// that count are the nibble within a byte, the byte within a register (a lane),
// on some machines the half of a register that shuffles do not cross, and the
// register. Steps permute them: a shuffle permutes lane bits, exchanges swap
// the top lane bit, the nibble bit or the half bit with a register bit.
// Renaming registers is free.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_BLOCKPROGRAM_H
#define WNA16_LIB_LAYOUT_BLOCKPROGRAM_H

#include "Layout/Isa.h"
#include "Layout/MovePlan.h"

namespace wna16 {

/// One step, on single registers or on pairs.
struct BlockStep {
  enum class Kind : uint8_t { Shuffle, Exchange, NibbleExchange, HalfExchange };

  Kind kind = Kind::Shuffle;
  int pairBit = -1; ///< of the register's number; -1: single registers
  int heldBit = -1; ///< which of its pass's `heldBits` that is
  /// Lane indices. Shuffle: table[0]. Exchange, fused: of the two results, in
  /// the concatenation of the two operands; not fused: table[0], before the top
  /// lane bit is swapped.
  alignas(64) uint8_t table[2][64] = {};
};

/// Steps that are done in one go over all registers of a block.
struct BlockPass {
  static constexpr size_t kMaxHeldBits = 4;

  std::vector<BlockStep> steps;
  /// Bits of a register's number that tell those held at once apart: all that
  /// its steps exchange.
  InlineVector<int, kMaxHeldBits> heldBits;
  /// Whether registers come from the source and go to the target; otherwise
  /// from and to a scratch buffer.
  bool readsSource = false;
  bool writesTarget = false;
  /// Byte offsets of registers: of the first of those held at once, and what
  /// is added where the i-th held bit is set.
  struct Offsets {
    std::vector<int64_t> first;
    int64_t second[kMaxHeldBits] = {};
  };
  Offsets in, out;
};

/// What a set of kernels can do.
struct BlockMachine {
  int laneBits; ///< log2 of the bytes that a shuffle permutes
  /// A register has two halves, and a shuffle permutes each alike.
  bool halves;
  /// One instruction picks bytes from two registers.
  bool fused;
  int heldBits; ///< at most in a pass, kMaxHeldBits or less

  int64_t registerBytes() const {
    return int64_t(1) << (laneBits + (halves ? 1 : 0));
  }
};

/// What passes through the scratch buffer on its way, whatever the runs.
struct BlockStaging {
  /// A block is whole there, in the order in which the target counts, before it
  /// is copied to the target.
  bool result = false;
  /// Bits of the source's units where the caller brings them there
  /// (`BlockList::fetch`); 0: they are the plan's, and the kernels do.
  int fetchedBits = 0;
};

struct BlockKernels;
struct BlockList;

struct BlockProgram {
  /// Bytes copied between memory and the scratch buffer where runs are shorter
  /// than a register.
  struct Copies {
    int64_t bytes = 0; ///< of one copy
    std::vector<int64_t> memory;
    int64_t size() const { return static_cast<int64_t>(memory.size()); }
  };

  static constexpr int64_t kMaxBlockBytes = MovePlan::kMaxBytes;

  static BlockProgram make(const MovePlan &plan, BlockMachine machine,
                           BlockStaging staging = {});
  void run(const BlockKernels &kernels, const BlockList &list) const;

  MovePlan plan;
  Copies gather, scatter; ///< empty where runs are long enough
  std::vector<BlockPass> passes;
  /// A byte of each cache line of the source, for prefetching.
  std::vector<int64_t> lines;
  /// Where the lines of a staged result go; empty where they go in pieces.
  std::vector<int64_t> resultLines;
};

/// Blocks to move: addresses of each, in bytes from `from` and `to`.
struct BlockList {
  const uint8_t *from = nullptr;
  uint8_t *to = nullptr;
  const int64_t *fromOffsets = nullptr;
  const int64_t *toOffsets = nullptr;
  int64_t count = 0;
  uint8_t flip = 0; ///< XORed into every byte
  /// Write past the caches: the target is far larger than they are, and not
  /// read again soon.
  bool streams = false;
  /// Told of each block in the scratch buffer, where the program's result is
  /// staged.
  void (*inspect)(void *context, int64_t block, const uint8_t *codes) = nullptr;
  /// Brings a run of the source, `bytes` once it is there, to the scratch
  /// buffer.
  void (*fetch)(void *context, const uint8_t *from, int64_t bytes,
                uint8_t *scratch) = nullptr;
  void *context = nullptr; ///< of both
};

/// A block of the blocked CPU layout, for 32 outputs.
struct CodeBlock {
  const uint8_t *codes;
  int64_t bytes;        ///< a multiple of 64
  const uint8_t *zeros; ///< of the outputs, one byte each
  int32_t inputs;
  bool streams; ///< sums go past the caches, to whole lines
};

/// A program as its kernels see it. They are compiled for more than every
/// machine has, so they use no inline function of the standard library or of
/// other files: the linker keeps one copy of those for all.
struct BlockView {
  struct Copies {
    int64_t bytes;
    const int64_t *memory;
    int64_t count;
  };
  struct Offsets {
    const int64_t *first;
    int64_t second[BlockPass::kMaxHeldBits];
  };
  struct Pass {
    const BlockStep *steps;
    int64_t stepCount;
    int heldBits;
    bool readsSource, writesTarget;
    int64_t count; ///< of the first registers held
    Offsets in, out;
  };

  Copies gather, scatter;
  const Pass *passes;
  int64_t passCount;
  const int64_t *lines, *resultLines;
  int64_t lineCount, resultLineCount;
};

struct BlockKernels {
  BlockMachine machine;
  void (*run)(const BlockView &program, const BlockList &list);
  /// As the function `sumBlock`.
  void (*sumBlock)(const CodeBlock &block, uint8_t *sums);
};

/// Writes 32 integers: of each output the sum of Q - z over the inputs.
void sumBlock(const CodeBlock &block, uint8_t *sums);

/// Of an instruction set; null for the portable one.
const BlockKernels *blockKernels(Isa isa);
extern const BlockKernels kBlockKernelsAVX2;
extern const BlockKernels kBlockKernelsAVX512;

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_BLOCKPROGRAM_H
