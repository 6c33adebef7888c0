//===- Pattern.h - Regular expressions in linear time -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ignore lists and per-module rules come with the checkpoint, as regular
// expressions of Python. A backtracking matcher would let a file hang the
// reader, so this one runs an automaton from the name's end to its start, with
// one verdict for each state: time is length times states times the depth of
// loops, look-aheads within look-aheads included. Back references and
// lookbehind are refused by name.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_PATTERN_H
#define WNA16_LIB_CHECKPOINT_PATTERN_H

#include "Layout/Result.h"

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace wna16 {

class Pattern {
public:
  static Result<Pattern> compile(const std::string &text);

  /// Whether the pattern matches from the start of `name`, as re.match does;
  /// it need not reach the end.
  bool matches(std::string_view name) const;

  enum class Op { Set, Split, Jump, Begin, End, Look, NotLook, Match };
  struct Instruction {
    Op op;
    int32_t first = 0;  ///< Set: index of the set; else the next instruction
    int32_t second = 0; ///< Split: the alternative; Look: where to go on
  };
  using Set = std::bitset<256>;

private:
  using Verdicts = std::vector<char>;
  bool step(std::string_view name, size_t position, const Verdicts &next,
            Verdicts &now) const;

  std::vector<Instruction> program;
  std::vector<Set> sets;
};

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_PATTERN_H
