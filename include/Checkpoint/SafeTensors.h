//===- SafeTensors.h - Mapped safetensors files -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The safetensors format: an 8-byte little-endian header length, a JSON header
// and the data. Files are untrusted: header size and nesting, offsets, sizes,
// dtypes, overlaps and gaps are checked before anything is used.
//
// Files are mapped. One that another process cuts would make reading its pages
// a fatal signal: `checkMapped` says so before a read. Cut during a read, it
// still is one; replacing a file by renaming another is always safe.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_SAFETENSORS_H
#define WNA16_CHECKPOINT_SAFETENSORS_H

#include "Layout/WeightSpec.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wna16 {

/// One tensor of a mapped file. `data` need not be aligned for its type.
struct TensorView {
  ScalarType type = ScalarType::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;
  int64_t bytes = 0;
};

/// A file as it was mapped: its name without the directory.
struct MappedFile {
  std::string name;
  int64_t bytes = 0;
  std::string_view header;
};

/// One file, or the shards that an index names, as one set of tensors.
class SafeTensors {
public:
  /// Maps one file.
  static Result<SafeTensors> open(const std::string &file);
  /// Maps `model.safetensors`, or the shards that
  /// `model.safetensors.index.json` names, of a directory.
  static Result<SafeTensors> openDirectory(const std::string &directory);

  /// Null when there is no such tensor.
  const TensorView *find(const std::string &name) const;
  /// Fails when the file of a tensor has become shorter since it was mapped.
  Failure checkMapped(const TensorView &view) const;
  const std::map<std::string, TensorView> &all() const { return tensors; }
  /// Tensors of element types that are legal in a file but not usable here
  /// ("F8_E4M3", ...): name and type.
  const std::map<std::string, std::string> &foreign() const { return unusable; }
  /// `__metadata__` of all files; the first file wins.
  const std::map<std::string, std::string> &metadata() const { return meta; }

  /// In the order of their names.
  std::vector<MappedFile> files() const;

private:
  struct Mapping;
  Failure add(const std::string &file);
  Failure addShards(const std::string &directory, const std::string &index);
  Failure merge(SafeTensors shard, const std::string &name,
                const std::map<std::string, std::string> &index);

  std::vector<std::shared_ptr<Mapping>> mappings;
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> unusable;
  std::map<std::string, std::string> meta;
};

/// An element type as headers spell it ("BF16").
const char *fileTypeName(ScalarType type);

/// A tensor to be written.
struct TensorToWrite {
  std::string name;
  ScalarType type;
  std::vector<int64_t> shape;
  const void *data;
};

/// Writes a safetensors file under a temporary name and renames it.
Failure
writeSafeTensors(const std::string &file,
                 const std::vector<TensorToWrite> &tensors,
                 const std::map<std::string, std::string> &metadata = {});

} // namespace wna16

#endif // WNA16_CHECKPOINT_SAFETENSORS_H
