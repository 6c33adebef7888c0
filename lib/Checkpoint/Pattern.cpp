//===- Pattern.cpp - Regular expressions in linear time -------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pattern.h"

#include <algorithm>
#include <cctype>
#include <cstring>

using namespace wna16;

namespace {

constexpr size_t kMaxLength = 1000;
constexpr size_t kMaxProgram = 20000;
constexpr int kMaxNesting = 32;
constexpr int kMaxRepeat = 1000;

using Op = Pattern::Op;
using Set = Pattern::Set;

/// A parsed expression. Sequence and Choice have any number of children, the
/// others one or none.
struct Node {
  enum Kind { Sequence, Choice, Repeat, One, Begin, End, Look, NotLook };
  Kind kind = Sequence;
  Set set;
  int min = 1;
  int max = 1; ///< -1: unbounded
  std::vector<Node> children;
};

void addRange(Set &set, int first, int last) {
  for (int c = first; c <= last; ++c)
    set.set(static_cast<size_t>(c));
}

/// The set of \d, \w or \s, complemented for the capital letter.
bool classSet(char letter, Set &set) {
  Set result;
  switch (letter | 0x20) {
  case 'd':
    addRange(result, '0', '9');
    break;
  case 'w':
    addRange(result, '0', '9');
    addRange(result, 'a', 'z');
    addRange(result, 'A', 'Z');
    result.set('_');
    break;
  case 's':
    for (char c : {' ', '\t', '\n', '\r', '\f', '\v'})
      result.set(static_cast<size_t>(c));
    break;
  default:
    return false;
  }
  set |= letter & 0x20 ? result : ~result;
  return true;
}

class Parser {
public:
  explicit Parser(const std::string &text) : text(text) {}

  Result<Node> parse() {
    Node node = choice(0);
    if (error.empty() && position != text.size())
      error = "unmatched )";
    if (!error.empty())
      return fail("regular expression \"" + text + "\": " + error);
    return node;
  }

private:
  bool at(char c) const {
    return position < text.size() && text[position] == c;
  }
  bool take(const char *token) {
    size_t length = std::strlen(token);
    if (text.compare(position, length, token) != 0)
      return false;
    position += length;
    return true;
  }
  void stop(std::string message) {
    if (error.empty())
      error = std::move(message);
    position = text.size();
  }

  Node choice(int depth) {
    Node result;
    result.kind = Node::Choice;
    if (depth > kMaxNesting)
      stop("nested deeper than " + std::to_string(kMaxNesting));
    do
      result.children.push_back(sequence(depth));
    while (take("|"));
    return result;
  }

  Node sequence(int depth) {
    Node result;
    while (position < text.size() && !at('|') && !at(')'))
      result.children.push_back(repeat(atom(depth)));
    return result;
  }

  Node repeat(Node node) {
    int min = 1, max = 1;
    if (take("*"))
      min = 0, max = -1;
    else if (take("+"))
      max = -1;
    else if (take("?"))
      min = 0;
    else if (!at('{') || !bounds(min, max))
      return node;
    take("?"); // lazy or greedy is the same when only the verdict counts
    if (at('*') || at('+') || at('?'))
      stop("a repetition is repeated");
    Node result;
    result.kind = Node::Repeat;
    result.min = min;
    result.max = max;
    result.children.push_back(std::move(node));
    return result;
  }

  /// Reads "{m}", "{m,}" or "{m,n}"; anything else is a literal brace.
  bool bounds(int &min, int &max) {
    size_t start = position++;
    bool ok = number(min);
    max = min;
    if (ok && take(","))
      if (!number(max))
        max = -1;
    if (!ok || !take("}")) {
      position = start;
      min = max = 1;
      return false;
    }
    if (min > kMaxRepeat || max > kMaxRepeat || (max >= 0 && max < min))
      stop("expected a repetition of at most " + std::to_string(kMaxRepeat));
    return true;
  }

  bool number(int &value) {
    size_t start = position;
    value = 0;
    for (; position < text.size() && text[position] >= '0' &&
           text[position] <= '9';
         ++position)
      value = std::min(value * 10 + (text[position] - '0'), kMaxRepeat + 1);
    return position != start;
  }

  Node group(int depth) {
    Node::Kind kind = Node::Sequence;
    if (take("?=")) {
      kind = Node::Look;
    } else if (take("?!")) {
      kind = Node::NotLook;
    } else if (!take("?:") && at('?')) {
      stop("only (...), (?:...), (?=...) and (?!...) are supported");
      return {};
    }
    Node result;
    result.kind = kind;
    result.children.push_back(choice(depth + 1));
    if (!take(")"))
      stop("missing )");
    return result;
  }

  Node atom(int depth) {
    Node result;
    result.kind = Node::One;
    char c = text[position++];
    switch (c) {
    case '(':
      return group(depth);
    case '^':
      result.kind = Node::Begin;
      break;
    case '$':
      result.kind = Node::End;
      break;
    case '.':
      result.set = ~Set();
      result.set.reset('\n');
      break;
    case '[':
      bracket(result.set);
      break;
    case '\\':
      escape(result.set);
      break;
    case '*':
    case '+':
    case '?':
      stop("nothing to repeat");
      break;
    default:
      result.set.set(static_cast<unsigned char>(c));
    }
    return result;
  }

  /// Reads what follows a backslash.
  void escape(Set &set) {
    if (position == text.size())
      return stop("it ends in a backslash");
    char c = text[position++];
    if (classSet(c, set))
      return;
    if (std::isalnum(static_cast<unsigned char>(c)))
      return stop(std::string("\\") + c + " is not supported");
    set.set(static_cast<unsigned char>(c));
  }

  void bracket(Set &set) {
    bool negate = take("^");
    for (bool first = true; first || !at(']'); first = false) {
      if (position >= text.size())
        return stop("missing ]");
      unsigned char low = static_cast<unsigned char>(text[position++]);
      if (low == '\\') {
        escape(set);
        continue;
      }
      unsigned char high = low;
      if (at('-') && position + 1 < text.size() && text[position + 1] != ']') {
        high = static_cast<unsigned char>(text[position + 1]);
        position += 2;
      }
      if (high < low || high == '\\')
        return stop("bad range in [...]");
      addRange(set, low, high);
    }
    ++position;
    if (negate)
      set = ~set;
  }

  const std::string &text;
  size_t position = 0;
  std::string error;
};

/// Emits instructions; stops growing at kMaxProgram, which compile checks.
class Emitter {
public:
  Emitter(std::vector<Pattern::Instruction> &program, std::vector<Set> &sets)
      : program(program), sets(sets) {}

  int32_t add(Op op) {
    program.push_back({op, here() + 1, 0});
    return here() - 1;
  }

  /// Work is counted as well as instructions: repeating nothing emits nothing.
  bool tooLarge() const { return work > kMaxProgram; }

  void emit(const Node &node) {
    if (++work > kMaxProgram)
      return;
    switch (node.kind) {
    case Node::Sequence:
      for (const Node &child : node.children)
        emit(child);
      break;
    case Node::Choice:
      emitChoice(node);
      break;
    case Node::Repeat:
      emitRepeat(node);
      break;
    case Node::One: {
      int32_t set = static_cast<int32_t>(sets.size());
      sets.push_back(node.set);
      program[size_t(add(Op::Set))].first = set;
      break;
    }
    case Node::Begin:
      add(Op::Begin);
      break;
    case Node::End:
      add(Op::End);
      break;
    case Node::Look:
    case Node::NotLook: {
      int32_t look = add(node.kind == Node::Look ? Op::Look : Op::NotLook);
      emit(node.children[0]);
      add(Op::Match);
      program[size_t(look)].second = here();
      break;
    }
    }
  }

private:
  int32_t here() const { return static_cast<int32_t>(program.size()); }

  size_t work = 0;

  void emitChoice(const Node &node) {
    std::vector<int32_t> exits;
    for (size_t i = 0; i + 1 < node.children.size(); ++i) {
      int32_t split = add(Op::Split);
      emit(node.children[i]);
      exits.push_back(add(Op::Jump));
      program[size_t(split)].second = here();
    }
    emit(node.children.back());
    for (int32_t jump : exits)
      program[size_t(jump)].first = here();
  }

  void emitRepeat(const Node &node) {
    const Node &child = node.children[0];
    for (int i = 0; i < node.min && !tooLarge(); ++i)
      emit(child);
    if (node.max < 0) {
      int32_t split = add(Op::Split);
      emit(child);
      program[size_t(add(Op::Jump))].first = split;
      program[size_t(split)].second = here();
      return;
    }
    std::vector<int32_t> splits;
    for (int i = node.min; i < node.max && !tooLarge(); ++i) {
      splits.push_back(add(Op::Split));
      emit(child);
    }
    for (int32_t split : splits)
      program[size_t(split)].second = here();
  }

  std::vector<Pattern::Instruction> &program;
  std::vector<Set> &sets;
};

} // namespace

Result<Pattern> Pattern::compile(const std::string &text) {
  if (text.size() > kMaxLength)
    return fail("expected a regular expression of at most " +
                std::to_string(kMaxLength) + " characters, got " +
                std::to_string(text.size()));
  Result<Node> node = Parser(text).parse();
  if (!node)
    return node.takeFailure();
  Pattern pattern;
  Emitter emitter(pattern.program, pattern.sets);
  emitter.emit(*node);
  emitter.add(Op::Match);
  if (emitter.tooLarge())
    return fail("regular expression \"" + text +
                "\": its repetitions are too "
                "large");
  return pattern;
}

/// Updates which states match the rest of `name` from `position` on, given
/// those that do from the next position on; true when one was found that was
/// not known to. A verdict hangs on later states alone, but for the jump that
/// closes a loop, so each pass settles one level of loops. What a look-ahead
/// asks of is entered at its start, from where no such jump leads anywhere new:
/// the first pass settles it, and later ones only add.
bool Pattern::step(std::string_view name, size_t position, const Verdicts &next,
                   Verdicts &now) const {
  bool atEnd = position == name.size();
  size_t c = atEnd ? 0 : static_cast<unsigned char>(name[position]);
  bool grown = false;
  for (size_t state = program.size(); state-- > 0;) {
    const Instruction &in = program[state];
    auto first = static_cast<size_t>(in.first);
    auto second = static_cast<size_t>(in.second);
    bool before = now[state] != 0;
    switch (in.op) {
    case Op::Match:
      now[state] = 1;
      break;
    case Op::Set:
      now[state] = !atEnd && sets[first][c] && next[state + 1];
      break;
    case Op::Split:
      now[state] = now[first] | now[second];
      break;
    case Op::Jump:
      now[state] = now[first];
      break;
    case Op::Begin:
      now[state] = position == 0 && now[first];
      break;
    case Op::End:
      now[state] = atEnd && now[first];
      break;
    case Op::Look:
    case Op::NotLook:
      now[state] = (now[first] != 0) == (in.op == Op::Look) && now[second];
      break;
    }
    grown |= !before && now[state];
  }
  return grown;
}

bool Pattern::matches(std::string_view name) const {
  Verdicts next(program.size()), now(program.size());
  for (size_t position = name.size() + 1; position-- > 0;) {
    now.swap(next);
    std::fill(now.begin(), now.end(), 0);
    while (step(name, position, next, now)) {
    }
  }
  return now[0] != 0;
}
