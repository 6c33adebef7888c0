//===- Deployment.cpp - What only a deployment knows ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Backend/Backend.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace wna16;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {

using Deployment = LayerInfo::Deployment;

/// A word of a deployment: a switch, or a name that comes after '='.
struct Word {
  StringLiteral name;
  bool Deployment::*flag;
  std::string Deployment::*value;
};

} // namespace

static constexpr Word kWords[] = {
    {"eplb", &Deployment::loadBalancing, nullptr},
    {"lora", &Deployment::lora, nullptr},
    {"flashinfer-int4", &Deployment::flashinferInt4, nullptr},
    {"all2all", nullptr, &Deployment::allToAll},
    {"humming-gemm", nullptr, &Deployment::hummingGemm},
};

static std::string knownWords() {
  return llvm::join(llvm::map_range(kWords,
                                    [](const Word &word) {
                                      return word.name.str() +
                                             (word.flag ? "" : "=NAME");
                                    }),
                    ", ");
}

Result<Deployment> wna16::parseDeployment(llvm::ArrayRef<std::string> words) {
  Deployment deployment;
  for (StringRef text : words) {
    auto [name, value] = text.split('=');
    const Word *word =
        llvm::find_if(kWords, [&](const Word &w) { return w.name == name; });
    // A switch stands alone, a name is not empty.
    if (word == std::end(kWords) || (word->flag ? name != text : value.empty()))
      return fail(
          ("deployment: expected " + knownWords() + "; got '" + text + "'")
              .str());
    if (word->flag)
      deployment.*word->flag = true;
    else
      deployment.*word->value = value.str();
  }
  return deployment;
}
