//===- CheckpointWriter.h - A directory of shards, streamed -----*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a checkpoint of any size: the tensors are planned first, their data
// come in any order, from any thread, and are kept nowhere. Until all is there,
// everything lies in a directory of another name that has no config.json.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_CHECKPOINTWRITER_H
#define WNA16_CHECKPOINT_CHECKPOINTWRITER_H

#include "Layout/WeightSpec.h"

#include <memory>
#include <string>
#include <vector>

namespace wna16 {

/// A tensor that a checkpoint will hold.
struct PlannedTensor {
  std::string name;
  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;
};

class CheckpointWriter {
public:
  /// Makes files for the tensors, in their order: as many to a file as
  /// `shardBytes` allow, at least one. Fails when `directory` exists and is not
  /// empty, when names repeat and when there is no room.
  static Result<CheckpointWriter> create(const std::string &directory,
                                         std::vector<PlannedTensor> tensors,
                                         int64_t shardBytes);
  CheckpointWriter(CheckpointWriter &&);
  CheckpointWriter &operator=(CheckpointWriter &&);
  /// Removes what was written, unless it was finished.
  ~CheckpointWriter();

  const std::vector<PlannedTensor> &tensors() const;
  /// Bytes of all tensors.
  int64_t bytes() const;
  /// Bytes of one.
  int64_t bytesOf(size_t tensor) const;

  /// Writes a part of a tensor, from any thread.
  Failure write(size_t tensor, int64_t offset, const void *data, int64_t bytes);
  /// Where another file of the directory is written.
  std::string pathOf(const std::string &name) const;
  /// Writes config.json, brings all to disk and gives the directory its name.
  Failure finish(const std::string &config);

private:
  struct State;
  explicit CheckpointWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace wna16

#endif // WNA16_CHECKPOINT_CHECKPOINTWRITER_H
