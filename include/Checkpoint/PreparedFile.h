//===- PreparedFile.h - A file of tensors, filled step by step --*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a safetensors file whose tensors begin at multiples of 4 KiB, through
// a mapping of a temporary file beside it, FILE.partial. A journal at that
// file's end says which steps are done, so that whoever asks for the same file
// again goes on where a killed process stopped. FILE appears when all is done.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_PREPAREDFILE_H
#define WNA16_CHECKPOINT_PREPAREDFILE_H

#include "Layout/WeightSpec.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace wna16 {

/// A tensor to be filled in place.
struct TensorToFill {
  std::string name;
  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;
};

class PreparedFile {
public:
  /// What is to be written: with the same, in the same order, a file that was
  /// begun is gone on with.
  struct Content {
    std::vector<TensorToFill> tensors;
    std::map<std::string, std::string> metadata;
    int64_t steps = 0;
  };

  /// Reserves the space on disk. After a step is done and before the journal
  /// says so, its bytes must be on disk; that is waited for every `syncBytes`.
  static Result<PreparedFile> create(const std::string &file,
                                     const Content &content, int64_t syncBytes);

  PreparedFile(PreparedFile &&other) noexcept;
  PreparedFile &operator=(PreparedFile &&other) noexcept;
  /// Without `finish`, what is done stays for the next time.
  ~PreparedFile();

  /// Where a tensor lies, in the order of `Content::tensors`.
  uint8_t *data(size_t tensor) const;

  /// Whether the journal has a step; those of this process too, once synced.
  bool isDone(int64_t step) const;
  /// Tells that a step has written its bytes. For any thread.
  Failure markDone(int64_t step, int64_t bytes);

  /// Puts the file in its place.
  Failure finish();
  /// For an end without `finish`: brings what is done to disk. Returns how many
  /// steps the next time finds done; without any, nothing stays.
  int64_t keep();

private:
  class State;
  explicit PreparedFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace wna16

#endif // WNA16_CHECKPOINT_PREPAREDFILE_H
