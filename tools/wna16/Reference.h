//===- Reference.h - Comparing a run with a reference -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reference is a safetensors file with `x.M7`, `layers.0.out.M7` and so on,
// and reference.json beside it, with the error that a 16-bit run of the
// reference has itself: a yardstick.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_REFERENCE_H
#define WNA16_TOOLS_WNA16_REFERENCE_H

#include "Checkpoint/SafeTensors.h"

#include "llvm/Support/raw_ostream.h"

namespace wna16::cli {

/// One result of a run. Its name is that of the module's output.
struct OutputTensor {
  std::string name;
  ScalarType type;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

/// How a run of one layer on one batch compares.
struct Comparison {
  int64_t layer = 0;
  int64_t tokens = 0;
  double tokensPerSecond = 0;
  std::string backend, kernel;
  /// Relative Frobenius errors; nothing where the reference lacks the tensor.
  std::optional<double> logits, experts, out;
  std::optional<bool> sameIds;
  std::optional<double> weights; ///< largest difference, expert by expert
  std::optional<double> yardstick;

  std::optional<double> ratio() const;
};

/// The errors that are allowed: a number, or a multiple of the yardstick.
struct Tolerance {
  double value = 0;
  bool isMultiple = false;

  /// Reads "1e-6" or "0.75lp".
  static Result<Tolerance> parse(llvm::StringRef option, llvm::StringRef text);
  /// Whether `error` is allowed; a missing yardstick allows nothing.
  bool allows(double error, std::optional<double> yardstick) const;
};

struct Tolerances {
  std::optional<Tolerance> all; ///< of experts_out and out
  std::optional<Tolerance> out; ///< of out alone; nothing: as `all`
};

class Reference {
public:
  static Result<Reference> open(const std::string &file);

  const SafeTensors &tensors() const { return files; }
  /// Compares what a layer gave for the input `input` ("x.M7").
  Result<Comparison> compare(int64_t layer, llvm::StringRef input,
                             const std::vector<OutputTensor> &outputs) const;

  /// One tensor as a run gave it and as it should be.
  struct Pair {
    std::vector<double> got, expected;
  };

private:
  const TensorView *find(int64_t layer, llvm::StringRef name,
                         llvm::StringRef suffix) const;
  /// Adds what the reference has of an output.
  Failure pair(int64_t layer, llvm::StringRef suffix,
               const OutputTensor &output,
               std::map<std::string, Pair> &pairs) const;

  SafeTensors files;
  std::map<std::string, double> yardsticks;
};

void printHeader(llvm::raw_ostream &os);
/// One row of the table, and what is out of tolerance. False: something is.
bool printRow(const Comparison &row, const Tolerances &tolerances,
              llvm::raw_ostream &os);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_REFERENCE_H
