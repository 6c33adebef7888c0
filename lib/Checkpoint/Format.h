//===- Format.h - What a checkpoint format is -------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A format is one object in one file: its name, the suffixes of its tensors,
// how its configuration reads and what its tensors say. Everything that the
// formats share is here and in Format.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_CHECKPOINT_FORMAT_H
#define WNA16_LIB_CHECKPOINT_FORMAT_H

#include "Json.h"
#include "Pattern.h"

#include "Checkpoint/Checkpoint.h"

namespace wna16 {

/// How one linear is quantised, as its configuration says.
struct Scheme {
  int64_t bits = 4;
  int64_t group = -1;
  bool symmetric = true;
  ZeroPoints zeros = ZeroPoints::Plain; ///< when not symmetric
  bool actOrder = false;
  /// Why this scheme cannot be read; only an error where it is used.
  std::string refusal;

  bool operator==(const Scheme &other) const;
};

/// A configuration's rule for some modules. The first that matches wins.
struct Rule {
  enum Kind {
    Regex,     ///< matches from the start of the name
    Exact,     ///< the name
    Component, ///< whole dotted components anywhere in the name
    Linear,    ///< every linear
  };
  Kind kind = Linear;
  std::string text;
  std::optional<Pattern> pattern;
  std::optional<Scheme> scheme; ///< none: kept dense

  bool matches(const std::string &module) const;
};

/// A rule in the notation of compressed-tensors: "re:...", "Linear" or a name.
Result<Rule> parseTarget(const std::string &text);

struct Format;

/// The quantisation configuration of a model.
struct Quantization {
  const Format *format = nullptr; ///< null: a dense model
  std::string variant;            ///< "gptq v1", for reports
  bool silent = false;            ///< does not say how zero points are stored
  std::vector<Rule> rules;
  std::optional<Scheme> base; ///< of modules that no rule matches

  /// The scheme of a module; none when it is kept dense.
  std::optional<Scheme> schemeOf(const std::string &module) const;
};

/// Where a part lies: a suffix of the module's name, and the axis of the file
/// tensor along which gate and up are joined.
struct PartSuffix {
  Part part;
  const char *suffix;
  int64_t concat; ///< -1: gate and up share one tensor
};

struct Format {
  const char *name;
  const char *layout;
  /// The tensors of a module; the first one holds the codes.
  std::vector<PartSuffix> parts;
  /// Suffixes of tensors that only help to check.
  std::vector<const char *> checks;
  /// Reads the configuration's object into rules.
  Failure (*configure)(const Json &config, const std::string &where,
                       Quantization &out);
  /// Completes `spec` (input, output, act-order) from the tensors of the
  /// modules, expert by expert, halves in order, and checks what shapes alone
  /// do not say.
  Failure (*describe)(const SafeTensors &files,
                      const std::vector<std::string> &modules,
                      const Scheme &scheme, WeightSpec &spec);

  const char *suffixOf(Part part) const;
};

extern const Format kGPTQ;
extern const Format kAWQ;
extern const Format kCompressedTensors;
const std::vector<const Format *> &allFormats();

/// Finds a format by any spelling of its name ("awq_marlin", ...).
Result<const Format *> findFormat(const std::string &method);

/// Reads `bits` as 4 or "int4".
Failure readBits(const Json &config, const Keys &keys, const std::string &where,
                 std::optional<int64_t> &out);
/// Why a bit width or group size cannot be read; empty when it can.
std::string refusalOf(const Format &format, int64_t bits, int64_t group);

/// The tensor, or a failure that names it.
Result<const TensorView *> require(const SafeTensors &files,
                                   const std::string &name);
Result<const TensorView *> requireMatrix(const SafeTensors &files,
                                         const std::string &name,
                                         ScalarType type);
std::string shapeText(const std::vector<int64_t> &shape);

/// Copies element `i` out of a possibly unaligned tensor.
template <typename T>
T elementAt(const TensorView &view, int64_t i) {
  T value;
  __builtin_memcpy(&value, view.data + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

/// Checks group indices: with act-order that they are in range and that the
/// halves of an expert share them; without that they say k / group, if there.
Failure checkGroupIndex(const SafeTensors &files,
                        const std::vector<std::string> &modules,
                        const char *suffix, const Scheme &scheme,
                        WeightSpec &spec);

/// Tells GPTQ from AWQ by shapes and refuses what contradicts `expected`.
Failure checkPacking(const SafeTensors &files, const std::string &module,
                     const Format &expected, int64_t bits);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_FORMAT_H
