//===- CodeMover.h - Codes of an expert from layout to layout -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves the codes of one expert: whole blocks by a block program, the edges,
// and what no program can do, code by code. Each code is read once and written
// once, padding included.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_LAYOUT_CODEMOVER_H
#define WNA16_LIB_LAYOUT_CODEMOVER_H

#include "BlockProgram.h"
#include "Codes.h"

namespace wna16 {

/// Which input of the source goes where, and its group: what act-order changes.
struct InputOrder {
  std::vector<int64_t> source; ///< of each input that the target takes
  std::vector<int64_t> group;  ///< of each input of the source
  bool sorted = false;         ///< `source` does not count up
};

class CodeMover {
public:
  /// Plans for the current instruction set. The specs passed `checkMove`; the
  /// window's extents are filled in.
  static Result<CodeMover> make(const WeightSpec &source,
                                const WeightSpec &target, Window window);

  /// Writes all codes of an expert, not its trailers.
  void run(const ExpertView &from, const ExpertView &to,
           const InputOrder &order) const;

private:
  /// A rectangle of the target, in one half.
  struct Rect {
    int64_t half, outputBegin, outputEnd, inputBegin, inputEnd;
  };
  /// Blocks by the byte offsets of their first codes.
  struct Blocks {
    std::vector<int64_t> from, to;
  };

  bool plan(const AddressMap &from, const AddressMap &to);
  BlockLimits limits() const;
  void listBlocks(const AddressMap &from, const AddressMap &to);
  void listBlock(const AddressMap &from, const AddressMap &to, Rect block);
  void runProgram(const ExpertView &from, const ExpertView &to) const;
  void clearBlock(uint8_t *to) const;
  bool streams(const uint8_t *to) const;

  void moveRect(const ExpertView &from, const ExpertView &to,
                const InputOrder &order, Rect rect) const;
  uint32_t recode(const ExpertView &from, int64_t group, int64_t row,
                  uint32_t code) const;
  uint32_t padding(const ExpertView &from, int64_t row, int64_t input) const;

  int64_t sourceRow(int64_t half, int64_t n) const {
    return half * sourceOutput + window.output + n;
  }
  int64_t targetRow(int64_t half, int64_t n) const {
    return half * targetOutput + n;
  }

  WeightSpec source, target;
  Window window;
  /// Rows as blocks see them: two halves without a seam count as one.
  int64_t halves = 1, sourceOutput = 0, targetOutput = 0, outputs = 0;
  int64_t paddedInput = 0; ///< where padding that decodes to 0 by its code ends
  bool exact = true;       ///< every code of the target has a coordinate
  bool recodes = false;    ///< codes change with their zero point
  uint8_t flip = 0;        ///< XORed into every byte otherwise

  const BlockKernels *kernels = nullptr; ///< null: no program
  BlockProgram program;
  Blocks whole;
  std::vector<int64_t> cleared; ///< blocks of which the source has not all
  std::vector<Rect> rest;
};

} // namespace wna16

#endif // WNA16_LIB_LAYOUT_CODEMOVER_H
