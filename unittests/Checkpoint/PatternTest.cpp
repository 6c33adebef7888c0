//===- PatternTest.cpp - Regular expressions in linear time -----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pattern.h"

#include <gtest/gtest.h>

using namespace wna16;

namespace {

bool matches(const std::string &pattern, const std::string &name) {
  Result<Pattern> compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled) << compiled.message();
  return compiled && compiled->matches(name);
}

TEST(Pattern, MatchesFromTheStartOnly) {
  EXPECT_TRUE(matches("mlp", "mlp.gate"));
  EXPECT_FALSE(matches("gate", "mlp.gate"));
  EXPECT_TRUE(matches(".*gate", "mlp.gate_proj"));
  EXPECT_TRUE(matches("", "anything"));
}

TEST(Pattern, EveryConstruct) {
  EXPECT_TRUE(matches("^a$", "a"));
  EXPECT_FALSE(matches("^a$", "ab"));
  EXPECT_TRUE(matches("a|b|cd", "cd"));
  EXPECT_FALSE(matches("a|b|cd", "c"));
  EXPECT_TRUE(matches("(?:ab)+c", "ababc"));
  EXPECT_FALSE(matches("(?:ab)+c", "c"));
  EXPECT_TRUE(matches("ab?c", "ac"));
  EXPECT_TRUE(matches("a{2}b", "aab"));
  EXPECT_FALSE(matches("a{2}b$", "ab"));
  EXPECT_TRUE(matches("a{1,3}b", "aaab"));
  EXPECT_FALSE(matches("a{1,3}b", "aaaab"));
  EXPECT_TRUE(matches("a{2,}b", "aaaaab"));
  EXPECT_TRUE(matches("a{b", "a{b"));
  EXPECT_TRUE(matches("[a-c]+$", "abcabc"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]x]", "]"));
  EXPECT_TRUE(matches("[\\d.]+$", "1.5"));
  EXPECT_TRUE(matches("layers\\.\\d+\\.", "layers.17.mlp"));
  EXPECT_FALSE(matches("layers\\.\\d+\\.", "layersx17.mlp"));
  EXPECT_TRUE(matches("\\w+\\W", "abc."));
  EXPECT_TRUE(matches(".*?b", "aab"));
}

TEST(Pattern, Lookahead) {
  const std::string pattern = "^(?!.*experts).*proj";
  EXPECT_TRUE(matches(pattern, "model.mlp.up_proj"));
  EXPECT_FALSE(matches(pattern, "model.mlp.experts.3.up_proj"));
  EXPECT_TRUE(matches(".*layers\\.(?=1)", "model.layers.12"));
  EXPECT_FALSE(matches(".*layers\\.(?=1)", "model.layers.2"));
}

TEST(Pattern, RefusesByName) {
  for (const char *text : {"(a)\\1", "(?<=a)b", "(?P<x>a)", "a**", "*a", "(a",
                           "a)", "[a", "a\\", "a{2000}", "[z-a]"}) {
    Result<Pattern> compiled = Pattern::compile(text);
    EXPECT_FALSE(compiled) << text;
    EXPECT_NE(compiled.message().find(text), std::string::npos)
        << compiled.message();
  }
  EXPECT_FALSE(Pattern::compile(std::string(1001, 'a')));
  EXPECT_FALSE(Pattern::compile(std::string(40, '(') + std::string(40, ')')));
  EXPECT_FALSE(Pattern::compile("(((a{1000}){1000}){1000}){1000}"));
  EXPECT_FALSE(Pattern::compile("((((){1000}){1000}){1000}){1000}"));
}

// A backtracking matcher needs 2^40 steps for these.
TEST(Pattern, CatastrophicPatternsAreCheap) {
  std::string name(400, 'a');
  EXPECT_FALSE(matches("(a*)*b", name));
  EXPECT_FALSE(matches("(a|a)*b", name));
  EXPECT_FALSE(matches("(a|aa)+$b", name));
  EXPECT_FALSE(matches("(.*.*.*.*.*.*)x", name));
}

TEST(Pattern, NestedLookaheadIsCheap) {
  std::string open, close;
  for (int i = 0; i < 30; ++i) {
    open += i % 2 ? "(?=.*" : "(?!.*";
    close += ")";
  }
  std::string name(400, 'a');
  // An odd number of refusals around what is never there.
  EXPECT_FALSE(matches(open + "Z" + close, name) ==
               matches("(?!" + open + "Z" + close + ")", name));
  EXPECT_TRUE(matches(".*(?=.*a(?=.*b(?!.*c)))", "a.c.a.b"));
  EXPECT_FALSE(matches(".*(?=.*a(?=.*b(?!.*c)))", "a.b.c"));
}

// States within loops within loops, reached from the loop's end.
TEST(Pattern, NestedLoops) {
  EXPECT_TRUE(matches("^((a*b?)*c?)*d$", "aabcacbbad"));
  EXPECT_FALSE(matches("^((a*b?)*c?)*d$", "aabcaxbbad"));
  EXPECT_TRUE(matches("^((?!x)(a|b)*(c|(?=d))?)*d$", "abcabd"));
  EXPECT_FALSE(matches("^((?!x)(a|b)*(c|(?=d))?)*d$", "abxabd"));
}

} // namespace
