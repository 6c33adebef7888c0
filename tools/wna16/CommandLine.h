//===- CommandLine.h - Subcommands and their options ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each subcommand is a row: its options, its help and its function. llvm::cl is
// not used here because it would show the options of all of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_COMMANDLINE_H
#define WNA16_TOOLS_WNA16_COMMANDLINE_H

#include "Layout/Shard.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace wna16::cli {

struct Option {
  llvm::StringLiteral name; ///< "--target", "-o"
  /// "FILE", or "FILE..." where it may be given again; empty: a flag.
  llvm::StringLiteral value;
  llvm::StringLiteral help;
  /// "a|b": what the value may be; empty: anything.
  llvm::StringLiteral choices = "";
  bool required = false;
};

/// What was given to a subcommand.
class Arguments {
public:
  /// The one positional argument.
  const std::string &input() const { return positional; }
  bool has(llvm::StringRef option) const { return values.contains(option); }
  /// The value given, or `otherwise`.
  std::string get(llvm::StringRef option, llvm::StringRef otherwise = "") const;
  /// All values, in the order given.
  std::vector<std::string> all(llvm::StringRef option) const;
  /// A number from `least` to `most`.
  Result<int64_t> integer(llvm::StringRef option, int64_t otherwise,
                          int64_t least, int64_t most = INT64_MAX) const;

private:
  friend class ArgumentParser;
  std::string positional;
  llvm::StringMap<std::vector<std::string>> values;
};

struct Command {
  llvm::StringLiteral name;
  llvm::StringLiteral positional; ///< "DIR"; empty: none
  llvm::StringLiteral summary;
  llvm::StringLiteral details;
  llvm::ArrayRef<Option> options;
  /// Returns the exit status; a failure is printed and is 1, or 2 for usage.
  Result<int> (*run)(const Arguments &arguments);
};

/// Finds the command, reads its options and runs it. Bad usage is 2.
int dispatch(llvm::ArrayRef<const Command *> commands, int argc,
             const char *const *argv);

/// A failure whose diagnostics have been printed already.
inline Failure reported() { return fail(" "); }

/// A failure of how the command was called: its status is 2.
inline constexpr char kUsageMark[] = "usage: ";
inline Failure usage(const llvm::Twine &message) {
  return fail((llvm::Twine(kUsageMark) + message).str());
}

/// Layer indices of `--layer`, of which each must be one.
Result<std::vector<int64_t>> layerIndices(const Arguments &arguments);

constexpr Option kRankOption = {
    "--tp", "RANK/SIZE", "one rank's share of the experts' weights, as 0/4"};

constexpr Option kGroupOption = {
    "--group", "G",
    "inputs that share a scale, -1 or channel: all (default: 128)"};

/// The group of `--group`, -1 for all inputs.
Result<int64_t> groupOf(const Arguments &arguments);

/// The rank of `--tp`; without it, the one there is.
Result<Rank> rankOf(const Arguments &arguments);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_COMMANDLINE_H
