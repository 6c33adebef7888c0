//===- Json.cpp - Checked access to untrusted JSON ------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

using namespace wna16;

namespace {

/// Walks a text without building anything and stops at what is not allowed.
class Checker : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Checker(const JsonLimits &limits) : limits(limits) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t &) override {
    return count();
  }
  bool string(string_t &) override { return count(); }
  bool binary(binary_t &) override { return count(); }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }

  bool key(string_t &name) override {
    std::set<std::string> &seen = keys.back();
    if (!seen.insert(name).second)
      return stop("the key \"" + name + "\" appears twice");
    if (static_cast<int64_t>(seen.size()) > limits.keys)
      return stop("an object has more than " + std::to_string(limits.keys) +
                  " keys");
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return stop("byte " + std::to_string(position) + " is not valid JSON");
  }

  std::string error;

private:
  bool stop(std::string message) {
    error = std::move(message);
    return false;
  }
  /// Values cost far more memory than their text.
  bool count() {
    return ++values <= limits.values ||
           stop("it has more than " + std::to_string(limits.values) +
                " values");
  }
  bool enter() {
    if (!count())
      return false;
    if (static_cast<int64_t>(keys.size()) == limits.depth)
      return stop("it is nested deeper than " + std::to_string(limits.depth) +
                  " levels");
    keys.emplace_back();
    return true;
  }
  bool leave() {
    keys.pop_back();
    return true;
  }

  JsonLimits limits;
  int64_t values = 0;
  std::vector<std::set<std::string>> keys;
};

template <typename T>
Result<T> parse(std::string_view text, const std::string &where,
                const JsonLimits &limits) {
  Checker checker(limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &checker))
    return fail(where + ": " + checker.error);
  T value = T::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded())
    return fail(where + ": it is not valid JSON");
  if (!value.is_object())
    return fail(where + ": expected a JSON object");
  return value;
}

bool convert(const Json &value, int64_t &out) {
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return false;
  if (value.is_number_integer()) {
    out = value.get<int64_t>();
    return true;
  }
  // Some writers store whole numbers as 4.0.
  if (!value.is_number_float())
    return false;
  double number = value.get<double>();
  if (std::fabs(number) > 9e15 || number != std::floor(number))
    return false;
  out = static_cast<int64_t>(number);
  return true;
}

bool convert(const Json &value, double &out) {
  if (!value.is_number())
    return false;
  out = value.get<double>();
  return std::isfinite(out);
}

bool convert(const Json &value, bool &out) {
  if (!value.is_boolean())
    return false;
  out = value.get<bool>();
  return true;
}

bool convert(const Json &value, std::string &out) {
  if (!value.is_string())
    return false;
  out = value.get<std::string>();
  return true;
}

template <typename T>
Failure readAny(const Json &object, const Keys &keys, const std::string &where,
                const char *expected, std::optional<T> &out) {
  const char *first = nullptr;
  for (const char *key : keys) {
    const Json *value = member(object, key);
    if (!value)
      continue;
    T converted{};
    if (!convert(*value, converted))
      return fail(where + ": expected " + key + " to be " + expected +
                  ", got " + shown(*value));
    if (first && !(*out == converted))
      return fail(where + ": " + first + " is " +
                  shown(*member(object, first)) + " but " + key + " is " +
                  shown(*value));
    if (!first)
      first = key;
    out = std::move(converted);
  }
  return ok();
}

} // namespace

Result<Json> wna16::parseConfig(std::string_view text,
                                const std::string &where) {
  return parse<Json>(text, where, JsonLimits());
}

Result<HeaderJson> wna16::parseHeader(std::string_view text,
                                      const std::string &where) {
  return parse<HeaderJson>(text, where,
                           {8, int64_t(1) << 21, int64_t(1) << 24});
}

Result<std::string> wna16::readTextFile(const std::string &file,
                                        int64_t limit) {
  // Opening a pipe would wait for its writer.
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::is_regular_file(status))
    return fail("cannot open " + file + ": " +
                (std::filesystem::exists(status) ? "it is not a regular file"
                                                 : "there is no such file"));
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream)
    return fail("cannot open " + file);
  std::streamoff size = stream.tellg();
  if (size < 0 || size > limit)
    return fail(file + ": expected at most " + std::to_string(limit) +
                " bytes, got " + std::to_string(size));
  std::string text(static_cast<size_t>(size), '\0');
  stream.seekg(0);
  if (!stream.read(text.data(), size))
    return fail("cannot read " + file);
  return text;
}

const Json *wna16::member(const Json &object, std::string_view key) {
  if (!object.is_object())
    return nullptr;
  auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string wna16::shown(const Json &value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

Failure wna16::readKey(const Json &object, const Keys &keys,
                       const std::string &where, std::optional<int64_t> &out) {
  return readAny(object, keys, where, "an integer", out);
}
Failure wna16::readKey(const Json &object, const Keys &keys,
                       const std::string &where, std::optional<double> &out) {
  return readAny(object, keys, where, "a finite number", out);
}
Failure wna16::readKey(const Json &object, const Keys &keys,
                       const std::string &where, std::optional<bool> &out) {
  return readAny(object, keys, where, "true or false", out);
}
Failure wna16::readKey(const Json &object, const Keys &keys,
                       const std::string &where,
                       std::optional<std::string> &out) {
  return readAny(object, keys, where, "a string", out);
}
