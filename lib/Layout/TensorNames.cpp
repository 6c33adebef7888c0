//===- TensorNames.cpp - Which file tensors make up a tensor --------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/TensorNames.h"

#include <algorithm>
#include <utility>

using namespace wna16;

namespace {

Failure malformed(std::string_view pattern, const std::string &what) {
  return fail("pattern \"" + std::string(pattern) + "\": " + what);
}

/// The alternatives within braces; empty unless there are two or more, each
/// with a name of its own.
std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t comma; (comma = text.find(',')) != std::string_view::npos;
       text.remove_prefix(comma + 1))
    parts.emplace_back(text.substr(0, comma));
  parts.emplace_back(text);
  std::vector<std::string> sorted = parts;
  std::sort(sorted.begin(), sorted.end());
  bool repeats =
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (parts.size() < 2 || sorted.front().empty() || repeats)
    parts.clear();
  return parts;
}

} // namespace

Result<TensorNames> TensorNames::parse(std::string_view pattern) {
  if (pattern.empty())
    return malformed(pattern, "expected the name of a tensor");
  TensorNames names;
  for (std::string_view rest = pattern; !rest.empty();) {
    size_t open = std::min(rest.find_first_of("{}"), rest.size());
    if (open > 0)
      names.pieces.push_back({std::string(rest.substr(0, open))});
    rest.remove_prefix(open);
    if (rest.empty())
      break;
    size_t close = rest.find_first_of("{}", 1);
    if (rest[0] == '}' || close == std::string_view::npos || rest[close] == '{')
      return malformed(pattern, "expected braces in pairs, without nesting");
    std::string_view inner = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (inner == "expert") {
      if (std::exchange(names.perExpert, true))
        return malformed(pattern, "expected {expert} once");
      names.pieces.emplace_back();
      continue;
    }
    std::vector<std::string> list = splitList(inner);
    if (list.empty())
      return malformed(pattern, "expected {expert} or different names {a,b}, "
                                "got {" +
                                    std::string(inner) + "}");
    if (std::exchange(names.count, list.size()))
      return malformed(pattern, "expected one list {a,b}");
    names.pieces.push_back(std::move(list));
  }
  return names;
}

std::string TensorNames::join(std::string_view expert,
                              size_t alternative) const {
  std::string result;
  for (const std::vector<std::string> &piece : pieces)
    result += piece.empty()       ? expert
              : piece.size() == 1 ? piece.front()
                                  : piece[alternative];
  return result;
}

std::string TensorNames::name(int64_t expert, size_t alternative) const {
  return join(std::to_string(expert), alternative);
}

std::string TensorNames::patternOf(size_t alternative) const {
  return join(kExpertMark, alternative);
}
