//===- Identity.cpp - Which checkpoint it is ------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Checkpoint.h"
#include "Checkpoint/Sha256.h"
#include "Json.h"

using namespace wna16;

static std::string digest(std::string_view text) {
  return sha256(text.data(), static_cast<int64_t>(text.size()));
}

Result<std::string> Checkpoint::identity() const {
  constexpr int64_t kMaxConfig = 100'000'000;
  Result<std::string> config = readTextFile(path + "/config.json", kMaxConfig);
  if (!config)
    return config.takeFailure();
  std::string list = "config.json " + digest(*config) + "\n";
  for (const MappedFile &file : files.files())
    list += file.name + " " + std::to_string(file.bytes) + " " +
            digest(file.header) + "\n";
  return digest(list);
}
