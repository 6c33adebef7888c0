//===- BitOrder.cpp - Layouts as permutations of address bits -------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/BitOrder.h"

#include <algorithm>

using namespace wna16;

static constexpr std::string_view kAxisNames = "knsg";

int64_t BitOrder::tileExtent(Axis axis) const {
  return int64_t(1) << std::count_if(low.begin(), low.end(),
                                     [&](Bit bit) { return bit.axis == axis; });
}

bool BitOrder::names(Axis axis) const {
  return std::any_of(low.begin(), low.end(),
                     [&](Bit bit) { return bit.axis == axis; }) ||
         std::find(rest.begin(), rest.end(), axis) != rest.end();
}

std::string BitOrder::str() const {
  std::string text;
  for (size_t word = 0; word < low.size() + rest.size(); ++word) {
    if (word)
      text += bars >> word & 1 ? " | " : " ";
    if (word >= low.size()) {
      text += "KNSG"[static_cast<int>(rest[word - low.size()])];
      continue;
    }
    Bit bit = low[word];
    if (bit.axis == Axis::Half)
      text += bit.inverted ? 'u' : 's';
    else
      text +=
          kAxisNames[static_cast<int>(bit.axis)] + std::to_string(bit.index);
  }
  return text;
}

/// One word of the notation: "k12", "u", "N". Returns what is wrong with it.
static std::string parseWord(std::string_view word, BitOrder::Bits &low,
                             BitOrder::Rests &rest) {
  char letter = word.front();
  std::string_view digits = word.substr(1);
  bool capital = letter >= 'A' && letter <= 'Z';
  bool inverted = letter == 'u';
  char small =
      inverted ? 's' : static_cast<char>(capital ? letter + 32 : letter);
  size_t axis = kAxisNames.find(small);
  if (axis == std::string_view::npos)
    return "expected an axis of k, n, s, u, g or K, N, S, G";
  if (capital) {
    if (!digits.empty())
      return "expected no number after a capital letter";
    if (std::find(rest.begin(), rest.end(), Axis(axis)) != rest.end())
      return "expected each rest once";
    rest.push_back(Axis(axis));
    return {};
  }
  if (!rest.empty())
    return "expected all bits before the rests";
  int index = 0;
  if (small == 's' ? !digits.empty() : digits.empty() || digits.size() > 2)
    return "expected a bit number after k, n and g and none after s and u";
  for (char digit : digits) {
    if (digit < '0' || digit > '9')
      return "expected a decimal bit number";
    index = index * 10 + (digit - '0');
  }
  if (low.size() >= BitOrder::kMaxBits ||
      index >= static_cast<int>(BitOrder::kMaxBits))
    return "expected at most 40 bits";
  low.push_back({Axis(axis), static_cast<uint8_t>(index), inverted});
  return {};
}

Result<BitOrder> BitOrder::parse(std::string_view text) {
  BitOrder order;
  for (size_t pos = 0; pos < text.size();) {
    size_t words = order.low.size() + order.rest.size();
    if (text[pos] == ' ' || text[pos] == '|') {
      if (text[pos++] == '|' && words)
        order.bars |= uint64_t(1) << words;
      continue;
    }
    size_t end = std::min(text.find_first_of(" |", pos), text.size());
    std::string_view word = text.substr(pos, end - pos);
    if (std::string error = parseWord(word, order.low, order.rest);
        !error.empty())
      return fail(error + ", got '" + std::string(word) + "' in '" +
                  std::string(text) + "'");
    pos = end;
  }
  if (order.low.empty() && order.rest.empty())
    return fail("expected a bit order, got '" + std::string(text) + "'");
  // The bits of each axis are 0 .. n-1.
  for (int axis = 0; axis < kNumAxes; ++axis) {
    uint64_t seen = 0;
    int count = 0;
    for (Bit bit : order.low)
      if (bit.axis == Axis(axis)) {
        seen |= uint64_t(1) << bit.index;
        ++count;
      }
    if (seen != (uint64_t(1) << count) - 1)
      return fail(std::string("expected bits ") + kAxisNames[axis] + "0 .. " +
                  kAxisNames[axis] + std::to_string(count - 1) +
                  " once each in '" + std::string(text) + "'");
  }
  return order;
}
