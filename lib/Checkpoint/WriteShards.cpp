//===- WriteShards.cpp - A directory of shards, streamed ------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/CheckpointWriter.h"

#include "Disk.h"
#include "Json.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace wna16;

namespace fs = std::filesystem;

namespace {

/// A file and the tensors [first, last) that it holds.
struct Shard {
  std::string name;
  size_t first = 0, last = 0;
  int64_t start = 0; ///< of the data in the file
  int fd = -1;
};

/// Where a tensor lies.
struct Place {
  int64_t bytes = 0;
  int64_t offset = 0; ///< in the data of its shard
  size_t shard = 0;
};

/// An element type as headers spell it.
std::string spelled(ScalarType type) {
  std::string text(name(type));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

Result<int64_t> sizeOfTensor(const PlannedTensor &tensor) {
  int64_t bytes = sizeOf(tensor.type);
  for (int64_t extent : tensor.shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return fail("tensor " + tensor.name + ": its size does not fit 63 bits");
  return bytes;
}

Failure writeAt(int fd, int64_t offset, const void *data, int64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::pwrite(fd, next, static_cast<size_t>(bytes), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemFailure("cannot write");
    next += written;
    offset += written;
    bytes -= written;
  }
  return ok();
}

} // namespace

struct CheckpointWriter::State {
  std::string directory, partial;
  std::vector<PlannedTensor> tensors;
  std::vector<Place> places;
  std::vector<Shard> shards;
  int64_t total = 0;
  bool finished = false;

  ~State() {
    for (Shard &shard : shards)
      if (shard.fd >= 0)
        ::close(shard.fd);
    std::error_code ignored;
    if (!finished && !partial.empty())
      fs::remove_all(partial, ignored);
  }

  Failure placeTensors(int64_t shardBytes);
  Failure checkDirectory();
  Failure makeDirectory();
  Failure openShard(Shard &shard);
  std::string headerOf(const Shard &shard) const;
  Failure writeIndex() const;
  Failure sync() const;
};

/// Consecutive tensors share a file until it is full.
Failure CheckpointWriter::State::placeTensors(int64_t shardBytes) {
  std::unordered_set<std::string_view> names;
  int64_t filled = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!names.insert(tensors[i].name).second)
      return fail("tensor " + tensors[i].name + " appears twice");
    Result<int64_t> bytes = sizeOfTensor(tensors[i]);
    if (!bytes)
      return bytes.takeFailure();
    if (__builtin_add_overflow(total, *bytes, &total))
      return fail("the checkpoint does not fit 63 bits");
    if (shards.empty() || (filled > 0 && *bytes > shardBytes - filled)) {
      shards.push_back({"", i, i, 0, -1});
      filled = 0;
    }
    places.push_back({*bytes, filled, shards.size() - 1});
    filled += *bytes;
    shards.back().last = i + 1;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64] = "model.safetensors";
    if (shards.size() > 1)
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors",
                    i + 1, shards.size());
    shards[i].name = name;
  }
  return ok();
}

/// Whether what is written can get its name: hours later is too late.
Failure CheckpointWriter::State::checkDirectory() {
  std::error_code error;
  if (fs::is_symlink(directory, error)) {
    fs::path real = fs::canonical(directory, error);
    if (error)
      return fail("cannot follow the link " + directory + ": " +
                  error.message());
    directory = real;
  }
  if (!fs::exists(directory, error))
    return ok();
  if (!fs::is_directory(directory, error) || !fs::is_empty(directory, error))
    return fail("expected " + directory + " to be an empty directory or none");
  struct stat self, parent;
  if (fs::equivalent(directory, ".", error) ||
      (::stat(directory.c_str(), &self) == 0 &&
       ::stat((directory + "/..").c_str(), &parent) == 0 &&
       self.st_dev != parent.st_dev))
    return fail("cannot replace " + directory +
                ", a mount point or the current directory; name a new "
                "directory in it");
  return ok();
}

Failure CheckpointWriter::State::makeDirectory() {
  if (Failure failure = checkDirectory())
    return failure;
  std::error_code error;
  fs::path parent = fs::path(directory).parent_path();
  if (!parent.empty())
    fs::create_directories(parent, error);
  std::string name = directory + ".partial" + std::to_string(::getpid());
  if (!fs::create_directory(name, error))
    return fail("cannot create " + name +
                (error ? ": " + error.message() : ", which exists"));
  partial = name;
  fs::space_info space = fs::space(partial, error);
  // Better now than hours later.
  if (!error && space.available < static_cast<uint64_t>(total))
    return fail("expected room for " + std::to_string(total) + " bytes in " +
                name + ", got " + std::to_string(space.available));
  return ok();
}

/// Written piece by piece: a header of many tensors is long.
std::string CheckpointWriter::State::headerOf(const Shard &shard) const {
  std::string text = "{\"__metadata__\":{\"format\":\"pt\"}";
  for (size_t i = shard.first; i < shard.last; ++i) {
    text += "," +
            HeaderJson(tensors[i].name)
                .dump(-1, ' ', false, HeaderJson::error_handler_t::replace) +
            ":{\"dtype\":\"" + spelled(tensors[i].type) + "\",\"shape\":[";
    for (size_t axis = 0; axis < tensors[i].shape.size(); ++axis)
      text += (axis ? "," : "") + std::to_string(tensors[i].shape[axis]);
    text += "],\"data_offsets\":[" + std::to_string(places[i].offset) + "," +
            std::to_string(places[i].offset + places[i].bytes) + "]}";
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

Failure CheckpointWriter::State::openShard(Shard &shard) {
  std::string file = partial + "/" + shard.name;
  shard.fd =
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (shard.fd < 0)
    return systemFailure("cannot create " + file);
  std::string header = headerOf(shard);
  char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(uint64_t(header.size()) >> (8 * i));
  shard.start = 8 + static_cast<int64_t>(header.size());
  const Place &last = places[shard.last - 1];
  int64_t size = shard.start + last.offset + last.bytes;
  if (::ftruncate(shard.fd, size) != 0)
    return systemFailure("cannot write " + file);
  if (Failure failure = writeAt(shard.fd, 0, length, 8))
    return fail(failure.message + " " + file);
  if (Failure failure = writeAt(shard.fd, 8, header.data(),
                                static_cast<int64_t>(header.size())))
    return fail(failure.message + " " + file);
  return ok();
}

/// weight_map, for more than one shard.
Failure CheckpointWriter::State::writeIndex() const {
  if (shards.size() < 2)
    return ok();
  std::string file = partial + "/model.safetensors.index.json";
  std::ofstream stream(file, std::ios::binary);
  stream << "{\n  \"metadata\": {\"total_size\": " << total
         << "},\n  \"weight_map\": {";
  const char *separator = "\n";
  for (const Shard &shard : shards)
    for (size_t i = shard.first; i < shard.last; ++i) {
      stream << separator << "    "
             << HeaderJson(tensors[i].name)
                    .dump(-1, ' ', false, HeaderJson::error_handler_t::replace)
             << ": \"" << shard.name << "\"";
      separator = ",\n";
    }
  stream << "\n  }\n}\n";
  stream.close();
  return stream.fail() ? fail("cannot write " + file) : ok();
}

/// Brings all files to disk, and their names.
Failure CheckpointWriter::State::sync() const {
  std::error_code error;
  for (fs::directory_iterator it(partial, error), end; it != end && !error;
       it.increment(error))
    if (Failure failure = syncToDisk(it->path()))
      return failure;
  return error ? fail("cannot list " + partial + ": " + error.message())
               : syncToDisk(partial);
}

CheckpointWriter::CheckpointWriter(std::unique_ptr<State> state)
    : state(std::move(state)) {}
CheckpointWriter::CheckpointWriter(CheckpointWriter &&) = default;
CheckpointWriter &CheckpointWriter::operator=(CheckpointWriter &&) = default;
CheckpointWriter::~CheckpointWriter() = default;

Result<CheckpointWriter>
CheckpointWriter::create(const std::string &directory,
                         std::vector<PlannedTensor> tensors,
                         int64_t shardBytes) {
  auto state = std::make_unique<State>();
  state->directory = directory;
  while (state->directory.size() > 1 && state->directory.back() == '/')
    state->directory.pop_back();
  state->tensors = std::move(tensors);
  if (Failure failure = state->placeTensors(shardBytes))
    return failure;
  if (Failure failure = state->makeDirectory())
    return failure;
  for (Shard &shard : state->shards)
    if (Failure failure = state->openShard(shard))
      return failure;
  return CheckpointWriter(std::move(state));
}

const std::vector<PlannedTensor> &CheckpointWriter::tensors() const {
  return state->tensors;
}
int64_t CheckpointWriter::bytes() const { return state->total; }
int64_t CheckpointWriter::bytesOf(size_t tensor) const {
  return state->places[tensor].bytes;
}

Failure CheckpointWriter::write(size_t tensor, int64_t offset, const void *data,
                                int64_t bytes) {
  const Place &place = state->places[tensor];
  if (offset < 0 || bytes < 0 || bytes > place.bytes - offset)
    return fail("tensor " + state->tensors[tensor].name +
                ": expected bytes 0 "
                "to " +
                std::to_string(place.bytes) + ", got " +
                std::to_string(offset) + " to " +
                std::to_string(offset + bytes));
  const Shard &shard = state->shards[place.shard];
  if (Failure failure =
          writeAt(shard.fd, shard.start + place.offset + offset, data, bytes))
    return fail(failure.message + " " + state->partial + "/" + shard.name);
  return ok();
}

std::string CheckpointWriter::pathOf(const std::string &name) const {
  return state->partial + "/" + name;
}

Failure CheckpointWriter::finish(const std::string &config) {
  if (Failure failure = state->writeIndex())
    return failure;
  for (Shard &shard : state->shards)
    if (::close(std::exchange(shard.fd, -1)) != 0)
      return systemFailure("cannot write " + state->partial + "/" + shard.name);
  std::string file = pathOf("config.json");
  std::ofstream stream(file, std::ios::binary);
  stream << config;
  stream.close();
  if (stream.fail())
    return fail("cannot write " + file);
  Failure failure = state->sync();
  if (!failure)
    failure = rename(state->partial, state->directory);
  state->finished = !failure;
  return failure;
}
