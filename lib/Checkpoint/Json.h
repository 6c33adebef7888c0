//===- Json.h - Checked access to untrusted JSON ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every file that is parsed was written by someone else. Depth, size and
// duplicate keys are checked while parsing; every access checks the type and
// names the key, the file and what was expected.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_JSON_H
#define WNA16_LIB_CHECKPOINT_JSON_H

#include "Layout/Result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wna16 {

/// Objects of configurations keep their order: the first rule that matches
/// wins. Headers and indices have too many keys for that type's linear search.
using Json = nlohmann::ordered_json;
using HeaderJson = nlohmann::json;

struct JsonLimits {
  int64_t depth = 64;
  int64_t keys = 20000;       ///< of one object
  int64_t values = 1'000'000; ///< of the whole text
};

Result<Json> parseConfig(std::string_view text, const std::string &where);
Result<HeaderJson> parseHeader(std::string_view text, const std::string &where);

/// Reads a whole file of at most `limit` bytes.
Result<std::string> readTextFile(const std::string &file, int64_t limit);

/// The member; null when it is absent or JSON's null.
const Json *member(const Json &object, std::string_view key);

/// A value as it would be written, shortened for messages.
std::string shown(const Json &value);

/// Reads the first of `keys` that is there into `out`, which stays as it is
/// when none is. Two keys with different values are refused, as are wrong
/// types.
using Keys = std::vector<const char *>;
Failure readKey(const Json &object, const Keys &keys, const std::string &where,
                std::optional<int64_t> &out);
Failure readKey(const Json &object, const Keys &keys, const std::string &where,
                std::optional<double> &out);
Failure readKey(const Json &object, const Keys &keys, const std::string &where,
                std::optional<bool> &out);
Failure readKey(const Json &object, const Keys &keys, const std::string &where,
                std::optional<std::string> &out);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_JSON_H
